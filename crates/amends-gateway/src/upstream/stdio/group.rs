//! A child with all that it started: a group of processes, which is ended as one.

use std::time::Duration;

use tokio::process::Child;

use super::guard;
use super::process::LEAVING;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A child's group of processes. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct Group {
    id: Option<u32>,
}

impl Group {
    /// The group that a child leads.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id();
        if let Some(id) = id {
            guard::began(id);
        }
        Self { id }
    }

    /// Ends the child, whose input was closed: it gets time to leave, is told to, and is then killed, with all that it started.
    pub(super) async fn leave(mut self, child: &mut Child) {
        let left = tokio::time::timeout(LEAVING, child.wait()).await.is_ok();
        if left && !self.lives() {
            return self.gone();
        }
        self.id.into_iter().for_each(terminate);
        let ended = async {
            let _ = child.wait().await;
            while self.lives() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let _ = tokio::time::timeout(LEAVING, ended).await;
        self.end(child).await;
    }

    /// Kills the child and all that it started.
    pub(super) async fn end(mut self, child: &mut Child) {
        self.id.into_iter().for_each(kill);
        let _ = child.start_kill();
        let _ = child.wait().await;
        self.gone();
    }

    fn lives(&self) -> bool {
        self.id.is_some_and(lives)
    }

    fn gone(&mut self) {
        if let Some(id) = self.id.take() {
            guard::gone(id);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.id.into_iter().for_each(kill);
        self.gone();
    }
}

/// Tells a group of processes to end.
#[cfg(unix)]
pub(super) fn terminate(id: u32) {
    signal(id, rustix::process::Signal::TERM);
}

/// Kills a group of processes.
#[cfg(unix)]
pub(super) fn kill(id: u32) {
    signal(id, rustix::process::Signal::KILL);
}

/// Whether anybody of a group of processes is left.
#[cfg(unix)]
pub(super) fn lives(id: u32) -> bool {
    pid(id).is_some_and(|pid| rustix::process::test_kill_process_group(pid).is_ok())
}

#[cfg(unix)]
fn signal(id: u32, signal: rustix::process::Signal) {
    if let Some(pid) = pid(id) {
        // It may be gone by now.
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

/// The id of a group as the system takes it. 1 would be everybody.
#[cfg(unix)]
fn pid(id: u32) -> Option<rustix::process::Pid> {
    i32::try_from(id).ok().filter(|id| *id > 1).and_then(rustix::process::Pid::from_raw)
}

/// There are no groups here: the child itself is killed.
#[cfg(not(unix))]
pub(super) fn terminate(_: u32) {}

/// There are no groups here: the child itself is killed.
#[cfg(not(unix))]
pub(super) fn kill(_: u32) {}

/// There are no groups here: the child itself is killed.
#[cfg(not(unix))]
pub(super) fn lives(_: u32) -> bool {
    false
}
