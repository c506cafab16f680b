//! MCP over standard input and output: one message a line.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::answer::Answer;
use super::desk::{Call, Desk, Errand};
use super::progress::Progress;
use super::rpc::{self, Code, Id, Rejection};
use super::visit::Visit;

/// Lines that wait to be written; a writer that falls behind slows the calls down.
const LINES_WAITING_MAX: usize = 256;

/// Calls that may be without an answer at once, lost ones included.
const CALLS_OPEN_MAX: usize = 65_536;

/// How long running calls may still answer after the agent has left.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves one agent until its end of the line closes.
pub(crate) async fn serve(desk: Desk) -> Result<()> {
    let (lines, waiting) = mpsc::channel(LINES_WAITING_MAX);
    let writer = tokio::spawn(write(waiting));
    let open = OpenCalls::default();
    let mut input = BufReader::new(tokio::io::stdin());
    while let Some(line) = read(&mut input).await.context("reading standard input")? {
        let message = match line {
            Line::Whole(bytes) if bytes.trim_ascii().is_empty() => continue,
            Line::Whole(bytes) => rpc::parse(&bytes),
            Line::TooLong => Err(Rejection::new(None, Code::InvalidRequest, "the message is too long")),
        };
        let reply = match message.and_then(|message| desk.receive(message)) {
            Ok(Errand::Reply(line)) => Some(line),
            Ok(Errand::Call(call)) => open.begin(*call, lines.clone()),
            Ok(Errand::Cancel(id)) => {
                open.cancel(&id);
                None
            }
            Ok(Errand::Nothing) => None,
            Err(rejection) => Some(rejection.line()),
        };
        if let Some(reply) = reply {
            lines.send(reply).await.ok();
        }
    }
    // The writer ends when the last running call has let go of its end of the channel.
    drop(lines);
    tokio::time::timeout(FAREWELL, writer).await.ok();
    open.finish_lost();
    Ok(())
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// Reads a line of bounded length; of a longer one, everything up to its end is thrown away.
async fn read(input: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    let max = rpc::MESSAGE_BYTES_MAX;
    let mut bounded = input.take(max as u64 + 1);
    if bounded.read_until(b'\n', &mut bytes).await? == 0 {
        return Ok(None);
    }
    if bytes.len() <= max || bytes.ends_with(b"\n") {
        return Ok(Some(Line::Whole(bytes)));
    }
    // Ends with the line, or with the input.
    while !bytes.ends_with(b"\n") {
        bytes.clear();
        let mut bounded = (&mut *input).take(max as u64);
        if bounded.read_until(b'\n', &mut bytes).await? == 0 {
            break;
        }
    }
    Ok(Some(Line::TooLong))
}

async fn write(mut lines: mpsc::Receiver<String>) {
    let mut output = tokio::io::stdout();
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        let written = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
}

/// The calls that have no answer yet, by the key of their id.
#[derive(Clone, Debug, Default)]
struct OpenCalls {
    calls: Arc<Mutex<HashMap<String, Open>>>,
}

#[derive(Debug)]
enum Open {
    Running(AbortHandle),
    /// A call that will never be answered; its agent may still cancel it.
    Lost(Visit),
}

impl OpenCalls {
    /// Starts a call, or returns the line that says why not.
    fn begin(&self, call: Call, lines: mpsc::Sender<String>) -> Option<String> {
        let key = call.caller.id.key();
        // Held until the task is in the map, so that the task cannot end before it is there.
        let mut calls = self.lock();
        let complaint = match calls.get(&key) {
            Some(Open::Running(_)) => Some("a call with this id is running"),
            _ if calls.len() >= CALLS_OPEN_MAX => Some("too many calls are open"),
            _ => None,
        };
        if let Some(complaint) = complaint {
            call.visit.finish();
            let id = Some(call.caller.id);
            return Some(Rejection::new(id, Code::InvalidRequest, complaint).line());
        }
        let task = tokio::spawn(self.clone().work(key.clone(), call, lines));
        if let Some(Open::Lost(visit)) = calls.insert(key, Open::Running(task.abort_handle())) {
            visit.finish();
        }
        None
    }

    async fn work(self, key: String, call: Call, lines: mpsc::Sender<String>) {
        let progress = call.progress_token.map(|token| Progress::new(token, lines.clone()));
        let answer = call.visit.serve(progress).await;
        if answer == Answer::Silence {
            // A call that is not in the map was cancelled a moment ago, so its visit is dropped.
            if let Some(open) = self.lock().get_mut(&key) {
                *open = Open::Lost(call.visit);
            }
            return;
        }
        self.lock().remove(&key);
        call.visit.finish();
        if let Some(line) = call.caller.line(answer) {
            lines.send(line).await.ok();
        }
    }

    /// Stops a call; the book notes it when its visit is dropped.
    fn cancel(&self, id: &Id) {
        let open = self.lock().remove(&id.key());
        if let Some(Open::Running(task)) = open {
            task.abort();
        }
    }

    /// The agent has left, which is no cancellation of what was lost before.
    fn finish_lost(&self) {
        for (_, open) in self.lock().drain() {
            if let Open::Lost(visit) = open {
                visit.finish();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
