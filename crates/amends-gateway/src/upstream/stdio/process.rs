//! The life of a child: start, greet, read until it ends, and again.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::process::{ChildStdin, Command};
use tokio::sync::mpsc;

use super::Shared;
use super::greet::greet;
use super::group::Group;
use super::hear::read;
use super::restarts::Restarts;
use super::stderr;
use super::traffic::Outgoing;
use crate::config::Reach;
use crate::mint;
use crate::upstream::Health;

/// How long a child may take to leave once its input is closed, and again once it is told to.
pub(super) const LEAVING: Duration = Duration::from_secs(2);
/// What is said of a child that was ended on purpose.
pub(super) const STOPPED: &str = "it was stopped";
/// How long what a dead child said before is still read. Somebody it started may keep its output open for ever.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a child of `serve` inherits of our environment: what programs need to run, and no secret.
const ENVIRONMENT: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TERM",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SYSTEMROOT",
];

/// How a life of a child ended.
enum End {
    /// Somebody wanted it to.
    Stopped,
    /// By itself, or since it was of no use.
    Failed {
        why: String,
        /// For how long it had been ready, where it ever was.
        ready_for: Option<Duration>,
    },
}

/// Starts the child again whenever it dies, until it is stopped.
pub(super) async fn supervise(shared: Arc<Shared>) {
    let mut restarts = Restarts::default();
    loop {
        let End::Failed { why, ready_for } = live(&shared).await else { break };
        let wait = restarts.ended(Instant::now(), ready_for, chance());
        let reason = restarts.reason(why);
        shared.looping.store(restarts.is_looping(), Ordering::Release);
        tracing::warn!(upstream = %shared.name, reason, "the upstream is down");
        // Down first: what is asked for from here on waits for the next life.
        shared.health.send_replace(Health::Down { reason });
        shared.traffic.close();
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shared.stop.notified() => break,
        }
    }
    shared.traffic.close();
    shared.health.send_replace(Health::Down { reason: STOPPED.into() });
}

/// A number between 0 and 1.
fn chance() -> f64 {
    (mint::seed() % 1024) as f64 / 1024.0
}

/// One life of the child.
async fn live(shared: &Arc<Shared>) -> End {
    let failed = |why| End::Failed { why, ready_for: None };
    let mut command = match command(shared) {
        Ok(command) => command,
        Err(why) => return failed(why),
    };
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return failed(format!("it could not be started: {error}")),
    };
    let group = Group::of(&child);
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return failed("it could not be spoken to".into());
    };
    let listener = tokio::spawn(stderr::listen(shared.clone(), stderr));
    let writer = tokio::spawn(write(shared.clone(), stdin, shared.traffic.open()));
    let mut greeter = tokio::spawn(greet(shared.clone()));
    let mut ready_since = None;
    let end = {
        let reading = read(shared, stdout);
        tokio::pin!(reading);
        loop {
            tokio::select! {
                () = &mut reading => {
                    let status = tokio::time::timeout(LAST_WORDS, child.wait()).await;
                    break Some(match status {
                        Ok(status) => exited(status),
                        Err(_) => "it closed its output".to_owned(),
                    });
                }
                status = child.wait() => {
                    let _ = tokio::time::timeout(LAST_WORDS, &mut reading).await;
                    break Some(exited(status));
                }
                greeted = &mut greeter, if ready_since.is_none() => match greeted {
                    Ok(Ok(())) => ready_since = Some(Instant::now()),
                    Ok(Err(why)) => {
                        // That it ended says more than that it did not answer.
                        let status = tokio::time::timeout(LAST_WORDS, child.wait()).await;
                        break Some(status.map_or(why, exited));
                    }
                    Err(error) => break Some(format!("it was not greeted: {error}")),
                },
                () = shared.stop.notified() => break None,
            }
        }
    };
    greeter.abort();
    // Its input closes with the writer, which asks it to leave.
    writer.abort();
    let end = match end {
        Some(why) => {
            // Nothing more can come of it, whether or not it still runs.
            group.end(&mut child).await;
            End::Failed { why, ready_for: ready_since.map(|since| since.elapsed()) }
        }
        None => {
            group.leave(&mut child).await;
            End::Stopped
        }
    };
    let ending = listener.abort_handle();
    if tokio::time::timeout(LAST_WORDS, listener).await.is_err() {
        ending.abort();
    }
    end
}

fn exited(status: std::io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => format!("it ended with {status}"),
        Err(error) => format!("it ended: {error}"),
    }
}

fn command(shared: &Shared) -> Result<Command, String> {
    let Reach::Stdio { command, env, env_pass, cwd, inherit_env } = &shared.reach else {
        return Err("it is no command".into());
    };
    let (program, arguments) = command.split_first().ok_or("its command is empty")?;
    let mut process = Command::new(program);
    process.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    process.process_group(0);
    if !inherit_env {
        process.env_clear();
        process.envs(ENVIRONMENT.iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value))));
        for name in env_pass {
            match std::env::var_os(name) {
                Some(value) => drop(process.env(name, value)),
                None => tracing::warn!(upstream = %shared.name, name, "`env_pass` names what is not set"),
            }
        }
    }
    process.envs(env);
    if let Some(folder) = cwd {
        if !folder.is_dir() {
            return Err(format!("there is no folder `{}` to start it in", folder.display()));
        }
        process.current_dir(folder);
    }
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
