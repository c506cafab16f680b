//! An upstream that is a child: one ordered writer, one ordered reader.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use crate::rpc::Answer;

type Expected = Mutex<HashMap<u64, oneshot::Sender<Vec<u8>>>>;

/// A child process that speaks MCP on its standard input and output.
#[derive(Debug)]
pub(crate) struct Child {
    queue: mpsc::UnboundedSender<String>,
    expected: Arc<Expected>,
    process: tokio::process::Child,
}

impl Child {
    pub(crate) fn start(command: &[String]) -> Result<Self> {
        let (program, arguments) = command.split_first().context("no command")?;
        Self::spawn(Command::new(program).args(arguments))
    }

    /// Starts a command whose other settings are made.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let stdin = process.stdin.take().context("no standard input")?;
        let stdout = process.stdout.take().context("no standard output")?;
        let (queue, lines) = mpsc::unbounded_channel();
        let expected = Arc::<Expected>::default();
        tokio::spawn(write(stdin, lines));
        tokio::spawn(read(stdout, Arc::clone(&expected)));
        Ok(Self { queue, expected, process })
    }

    /// Sends a request under that id and gives its answer as it came.
    pub(crate) async fn send(&self, id: u64, line: String) -> Result<Vec<u8>> {
        let (reply, answer) = oneshot::channel();
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).insert(id, reply);
        self.queue.send(line)?;
        Ok(answer.await?)
    }

    /// Its process id, while it runs.
    pub(crate) fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Sends a message that has no answer.
    pub(crate) fn tell(&self, line: String) {
        let _ = self.queue.send(line);
    }
}

async fn write(stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) -> std::io::Result<()> {
    let mut stdin = BufWriter::new(stdin);
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        stdin.write_all(line.as_bytes()).await?;
        if lines.is_empty() {
            stdin.flush().await?;
        }
    }
    Ok(())
}

async fn read(stdout: ChildStdout, expected: Arc<Expected>) -> std::io::Result<()> {
    let mut reader = BufReader::with_capacity(64 * 1024, stdout);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).await? > 0 {
        let reply = id(&line).and_then(|id| expected.lock().unwrap_or_else(PoisonError::into_inner).remove(&id));
        if let Some(reply) = reply {
            let _ = reply.send(std::mem::take(&mut line));
        }
        line.clear();
    }
    Ok(())
}

/// Whose answer a line is. Most begin alike, and need not be read to their end for that.
fn id(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(br#"{"jsonrpc":"2.0","id":"#);
    let digits = rest.and_then(|rest| rest.split(|byte| !byte.is_ascii_digit()).next());
    let read = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    read.or_else(|| serde_json::from_slice::<Answer<'_>>(line).ok().map(|answer| answer.id))
}
