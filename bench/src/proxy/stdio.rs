//! The bare proxy on standard input and output: two threads, one for each direction.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

use crate::rpc::{Answer, Request};

/// The ids of whoever asked, by ours.
type Asked = Mutex<HashMap<u64, String>>;

pub(super) fn serve(command: &[String]) -> Result<()> {
    let (program, arguments) = command.split_first().context("no command")?;
    let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let to_child = child.stdin.take().context("no standard input")?;
    let from_child = child.stdout.take().context("no standard output")?;
    let asked = Asked::default();
    std::thread::scope(|scope| {
        let back = scope.spawn(|| {
            forward(from_child, std::io::stdout(), |line| {
                let answer: Answer<'_> = serde_json::from_slice(line).ok()?;
                let id = asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&answer.id)?;
                Some(answer.renumbered(&id))
            })
        });
        let mut next = 0;
        // When the agent closes its end, the child's input is closed with `to_child`, and the child ends.
        forward(std::io::stdin(), to_child, |line| {
            let request: Request<'_> = serde_json::from_slice(line).ok()?;
            let Some(id) = request.id else {
                return String::from_utf8(line.trim_ascii_end().to_vec()).ok();
            };
            next += 1;
            asked.lock().unwrap_or_else(PoisonError::into_inner).insert(next, id.get().to_owned());
            Some(request.renumbered(next))
        })?;
        back.join().unwrap_or(Ok(()))
    })?;
    child.wait()?;
    Ok(())
}

/// Passes on lines, each changed by `change`; what it does not understand is dropped.
fn forward(from: impl Read, to: impl Write, mut change: impl FnMut(&[u8]) -> Option<String>) -> std::io::Result<()> {
    let mut from = BufReader::with_capacity(64 * 1024, from);
    let mut to = BufWriter::with_capacity(64 * 1024, to);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        if let Some(mut changed) = change(&line) {
            changed.push('\n');
            to.write_all(changed.as_bytes())?;
        }
        line.clear();
        if from.buffer().is_empty() {
            to.flush()?;
        }
    }
    Ok(())
}
