//! The life of a child: start, greet, read until it ends, and again.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_wire::mcp::{Era, era};
use amends_wire::message::{self, Message};
use amends_wire::object::Object;
use tokio::io::{AsyncWriteExt, BufReader, BufWriter};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

use super::Shared;
use super::questions;
use super::traffic::Outgoing;
use crate::config::Reach;
use crate::mint;
use crate::upstream::exchange::{Aside, Fault, Progress, Reply, RpcFault};
use crate::upstream::line::{Line, LineBounds, read_line};
use crate::upstream::{Greeting, Health, Unasked};

const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// A child that lived this long starts over with the shortest wait.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);
const GREETING_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a child may take to leave once it is asked to.
pub(super) const LEAVING: Duration = Duration::from_secs(2);
/// What is said of a child that was ended on purpose.
pub(super) const STOPPED: &str = "it was stopped";

/// What a child of `serve` inherits of our environment: what programs need to run, and no secret.
const ENVIRONMENT: [&str; 10] =
    ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "SHELL", "TERM", "SSL_CERT_FILE"];

/// Starts the child again whenever it dies, with growing waits.
pub(super) async fn supervise(shared: Arc<Shared>) {
    let mut backoff = BACKOFF_MIN;
    loop {
        let started = Instant::now();
        let reason = match live(&shared).await {
            Ok(true) => {
                shared.traffic.close();
                shared.health.send_replace(Health::Down { reason: STOPPED.into() });
                return;
            }
            Ok(false) => "it ended".to_owned(),
            Err(reason) => reason,
        };
        tracing::warn!(upstream = %shared.name, reason, "the upstream is down");
        // Down first: what is asked for from here on waits for the next life.
        shared.health.send_replace(Health::Down { reason });
        shared.traffic.close();
        if started.elapsed() > HEALTHY_AFTER {
            backoff = BACKOFF_MIN;
        }
        tokio::time::sleep(backoff).await;
        backoff = (backoff * 2).min(BACKOFF_MAX);
    }
}

/// One life of the child. It says whether somebody ended it on purpose.
async fn live(shared: &Arc<Shared>) -> Result<bool, String> {
    let mut child = command(shared)?.spawn().map_err(|error| format!("it could not be started: {error}"))?;
    let stdin = child.stdin.take().ok_or("it has no standard input")?;
    let stdout = child.stdout.take().ok_or("it has no standard output")?;
    let queue = shared.traffic.open();
    let writer = tokio::spawn(write(shared.clone(), stdin, queue));
    let greeter = tokio::spawn(greet(shared.clone()));
    let stopped = tokio::select! {
        () = read(shared, stdout) => false,
        () = shared.stop.notified() => true,
    };
    greeter.abort();
    // Its input closes with the writer, which asks it to leave.
    writer.abort();
    if stopped {
        let _ = tokio::time::timeout(LEAVING, child.wait()).await;
    }
    // Its output is closed, so nothing more can come of it, whether or not it still runs.
    let _ = child.start_kill();
    let _ = child.wait().await;
    Ok(stopped)
}

fn command(shared: &Shared) -> Result<Command, String> {
    let Reach::Stdio { command, env, inherit_env } = &shared.reach else {
        return Err("it is no command".into());
    };
    let (program, arguments) = command.split_first().ok_or("its command is empty")?;
    let mut process = Command::new(program);
    process.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
    if !inherit_env {
        process.env_clear();
        process.envs(ENVIRONMENT.iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value))));
    }
    process.envs(env);
    Ok(process)
}

async fn write(shared: Arc<Shared>, stdin: ChildStdin, mut queue: mpsc::Receiver<Outgoing>) {
    let mut stdin = BufWriter::new(stdin);
    while let Some(out) = queue.recv().await {
        if let Some(ticket) = out.ticket
            && !shared.traffic.may_write(ticket, out.send_by)
        {
            continue;
        }
        let mut line = out.line.into_bytes();
        line.push(b'\n');
        let wrote = async {
            stdin.write_all(&line).await?;
            if queue.is_empty() { stdin.flush().await } else { Ok(()) }
        };
        if wrote.await.is_err() {
            return;
        }
    }
}

/// Greets the child, or says the agent's greeting again, and then calls it ready.
pub(super) async fn greet(shared: Arc<Shared>) {
    let greeted = match shared.greeting() {
        Greeting::Ours => greet_as_client(&shared).await,
        Greeting::Forwarded => greet_again(&shared).await,
    };
    match greeted {
        Ok((era, greeting)) => {
            // 52 bits, never the number that stands for a run nobody sees.
            let run = (mint::seed() >> 1) + 1;
            shared.traffic.name_run(run);
            shared.health.send_replace(Health::Ready { run, era, greeting: greeting.into() });
        }
        Err(reason) => {
            tracing::warn!(upstream = %shared.name, reason, "the upstream did not take our greeting");
            shared.health.send_replace(Health::Down { reason });
        }
    }
}

async fn greet_as_client(shared: &Shared) -> Result<(Era, String), String> {
    match ask(shared, "initialize", &era::initialize_params()).await? {
        Reply::Result(result) => {
            tell_initialized(shared);
            return Ok((Era::Legacy, String::from_utf8_lossy(&result).into_owned()));
        }
        Reply::Error(error) => tracing::debug!(code = error.code, "no `initialize`; trying `server/discover`"),
        Reply::Fault(fault) => return Err(format!("no answer to `initialize`: {fault}")),
    }
    match ask(shared, "server/discover", &era::with_own_meta(None, era::MODERN)).await? {
        Reply::Result(result) => Ok((Era::Modern, String::from_utf8_lossy(&result).into_owned())),
        Reply::Error(error) => Err(format!("`server/discover` was refused with {}", error.code)),
        Reply::Fault(fault) => Err(format!("no answer to `server/discover`: {fault}")),
    }
}

async fn greet_again(shared: &Shared) -> Result<(Era, String), String> {
    let Some(params) = shared.traffic.greeting() else {
        return Ok((Era::Legacy, String::new()));
    };
    match ask(shared, "initialize", &params).await? {
        Reply::Result(result) => {
            tell_initialized(shared);
            Ok((Era::Legacy, String::from_utf8_lossy(&result).into_owned()))
        }
        Reply::Error(error) => Err(format!("it refused the agent's greeting with {}", error.code)),
        Reply::Fault(fault) => Err(format!("no answer to the agent's greeting: {fault}")),
    }
}

fn tell_initialized(shared: &Shared) {
    let line = message::notification("notifications/initialized", None);
    let _ = shared.traffic.write(Outgoing { ticket: None, line, send_by: None, run: None });
}

async fn ask(shared: &Shared, method: &str, params: &str) -> Result<Reply, String> {
    let ticket = shared.ticket();
    let (sender, receiver) = oneshot::channel();
    shared.traffic.expect(ticket, sender, None);
    let line = message::request(&ticket.to_string(), method, Some(params));
    shared
        .traffic
        .write(Outgoing { ticket: Some(ticket), line, send_by: None, run: None })
        .map_err(|_| "it takes no messages".to_owned())?;
    match tokio::time::timeout(GREETING_TIMEOUT, receiver).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(_)) => Err("it died during the greeting".into()),
        Err(_) => Err(format!("no answer to `{method}` in {} s", GREETING_TIMEOUT.as_secs())),
    }
}

/// Reads what the child says, in order, until it closes its output.
async fn read(shared: &Arc<Shared>, stdout: ChildStdout) {
    let mut reader = BufReader::with_capacity(64 * 1024, stdout);
    let bounds = LineBounds { bytes: shared.limits.answer_bytes, depth: usize::MAX };
    loop {
        match read_line(&mut reader, bounds).await {
            Ok(Line::Whole(line)) => heard(shared, line).await,
            Ok(Line::Broken { id, start, why }) => {
                let ticket = id.as_deref().and_then(|id| id.parse().ok());
                tracing::warn!(upstream = %shared.name, ?why, "an unreadable line from the upstream");
                if let Some(ticket) = ticket {
                    let fault = match why {
                        crate::upstream::line::Broken::TooLong => Fault::TooLarge,
                        crate::upstream::line::Broken::TooDeep | crate::upstream::line::Broken::NotUtf8 => {
                            Fault::Unreadable { start }
                        }
                    };
                    shared.traffic.answer(ticket, Reply::Fault(fault));
                }
            }
            Ok(Line::End) | Err(_) => return,
        }
    }
}

async fn heard(shared: &Arc<Shared>, line: String) {
    if line.trim().is_empty() {
        return;
    }
    match Message::parse(&line) {
        Ok(Message::Success { id, result }) => {
            if let Ok(ticket) = id.get().parse() {
                shared.traffic.answer(ticket, Reply::Result(result.get().to_owned().into()));
            }
        }
        Ok(Message::Failure { id, error }) => {
            if let Some(Ok(ticket)) = id.map(|id| id.get().parse()) {
                let fault = RpcFault {
                    code: error.code,
                    message: error.message.into_owned(),
                    data: error.data.map(|data| data.get().to_owned()),
                };
                shared.traffic.answer(ticket, Reply::Error(fault));
            }
        }
        Ok(Message::Notification { method, params }) if method == "notifications/progress" => {
            let token = params.and_then(|params| amends_wire::mcp::progress_ticket(params.get()));
            match (token, params) {
                (Some(ticket), Some(params)) => {
                    shared.traffic.aside(ticket, Aside::Progress(Progress(params.get().to_owned())));
                }
                _ => tracing::debug!(upstream = %shared.name, "progress for nobody"),
            }
        }
        Ok(Message::Notification { method, .. }) => {
            let method = method.into_owned();
            unasked(shared, Unasked::Notification { method, line }).await;
        }
        Ok(Message::Request { id, method, params }) => {
            let (id, method) = (id.get().to_owned(), method.into_owned());
            let params = params.map(|params| params.get().to_owned());
            if let Some(for_agent) = questions::asked(shared, id, method, params) {
                unasked(shared, for_agent).await;
            }
        }
        Err(error) => {
            tracing::warn!(upstream = %shared.name, %error, "the upstream said what is not in the protocol");
        }
    }
}

/// Hands over what the child said of its own accord. One agent gets all of it, and the child waits for an agent that reads
/// slowly; where several share the child, each gets what it wants to hear.
async fn unasked(shared: &Shared, unasked: Unasked) {
    match (shared.greeting(), &unasked) {
        (Greeting::Forwarded, _) => shared.unheard.say().await,
        (Greeting::Ours, Unasked::Notification { method, line }) => {
            let params = Object::parse(line).and_then(|line| line.get("params"));
            return shared.news.hear(method, params.map(|params| params.get()));
        }
        (Greeting::Ours, Unasked::Request { .. }) => {}
    }
    let _ = shared.unasked.send((shared.name.clone(), unasked));
}
