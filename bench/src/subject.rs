//! A process that listens over HTTP, ended by its id when dropped.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// A process that listens.
#[derive(Debug)]
pub(crate) struct Subject {
    child: Child,
    pub(crate) address: String,
}

impl Subject {
    /// Starts it and waits until it says where it listens.
    pub(crate) fn start(program: &Path, arguments: &[&str]) -> Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{}`", program.display()))?;
        let mut lines = BufReader::new(child.stderr.take().context("no standard error")?).lines();
        let mut said = Vec::new();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let address = line.split_once(" on http://").and_then(|(_, rest)| rest.split([';', '/', ' ']).next());
            let address = address.map(str::to_owned);
            said.push(line);
            address
        });
        // Whatever else it says must be read, or it would wait for a reader one day.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
        let address = address.with_context(|| format!("`{}` did not start: {said:?}", program.display()))?;
        Ok(Self { child, address })
    }

    /// A process that somebody else started and has found at that address.
    pub(crate) fn found(child: Child, address: String) -> Self {
        Self { child, address }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
