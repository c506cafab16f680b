//! Whoever ends our children should we be killed: a small process of our own that reads a pipe of ours to its end.
//!
//! A child whose input closes usually leaves. One that does not, and what it started, would be left behind by `kill -9`, since then
//! nobody is there to end them. The guard is told of every group of processes when it begins and when it is gone; the pipe ends
//! with us, however we end, and the guard then ends the groups that are left.

use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::group;

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The guard of this process. There is one, since the children of a process are its own, whoever in it started them.
static GUARD: Mutex<Guard> = Mutex::new(Guard { program: None, process: None, groups: BTreeSet::new() });

#[derive(Debug)]
struct Guard {
    program: Option<(std::path::PathBuf, Vec<String>)>,
    process: Option<Child>,
    groups: BTreeSet<u32>,
}

/// Names the program that guards the children of this process; it calls [`stand`]. Nothing is started before there is a child.
pub fn appoint(program: std::path::PathBuf, arguments: Vec<String>) {
    held().program = Some((program, arguments));
}

/// A group of processes began.
pub(super) fn began(group: u32) {
    let mut guard = held();
    guard.groups.insert(group);
    if guard.process.is_some() && guard.tell(&format!("+{group}\n")) {
        return;
    }
    if let Err(error) = guard.start() {
        tracing::warn!(%error, "no guard: should we be killed, children that do not mind may be left behind");
    }
}

/// A group of processes is gone.
pub(super) fn gone(group: u32) {
    let mut guard = held();
    guard.groups.remove(&group);
    if guard.process.is_some() {
        // One that is gone itself is told of all groups when it is started again.
        guard.tell(&format!("-{group}\n"));
    }
}

fn held() -> MutexGuard<'static, Guard> {
    GUARD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guard {
    fn start(&mut self) -> std::io::Result<()> {
        let Some((program, arguments)) = &self.program else { return Ok(()) };
        if let Some(mut before) = self.process.take() {
            let _ = before.kill();
            let _ = before.wait();
        }
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.env_clear().current_dir("/");
        // What a terminal sends to us is not for it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        self.process = Some(command.spawn()?);
        let all: String = self.groups.iter().map(|group| format!("+{group}\n")).collect();
        match self.tell(&all) {
            true => Ok(()),
            false => Err(std::io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn tell(&mut self, line: &str) -> bool {
        let pipe = self.process.as_mut().and_then(|process| process.stdin.as_mut());
        pipe.is_some_and(|pipe| pipe.write_all(line.as_bytes()).is_ok())
    }
}

/// What the guard does: it waits until whoever started it is gone, and then ends the groups that are left.
pub fn stand(told: impl BufRead) {
    let mut groups = BTreeSet::new();
    for line in told.lines().map_while(Result::ok) {
        match line.split_at_checked(1).map(|(sign, id)| (sign, id.parse::<u32>())) {
            Some(("+", Ok(group))) => drop(groups.insert(group)),
            Some(("-", Ok(group))) => drop(groups.remove(&group)),
            _ => {}
        }
    }
    // Their input closed with the pipe; first they get their time to leave by themselves.
    for act in [group::terminate, group::kill] {
        let by = Instant::now() + super::process::LEAVING;
        while groups.iter().any(|group| group::lives(*group)) && Instant::now() < by {
            std::thread::sleep(LOOK_EVERY);
        }
        groups.retain(|group| group::lives(*group));
        groups.iter().for_each(|group| act(*group));
    }
}
