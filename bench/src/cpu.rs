//! How much processor time a process has used.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// Less than this in one look is the idling of a process that has nothing left to do.
const IDLE: Duration = Duration::from_micros(200);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How many looks in a row must see nothing, and how many there are at most.
const QUIET_LOOKS: u32 = 3;
const LOOKS_MAX: u32 = 100;

/// The processor time of each thread of a process. A thread's own count is in nanoseconds, where that of the process is in
/// hundredths of a second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpu(HashMap<u32, u64>);

impl Cpu {
    /// What the process has used until now.
    pub(crate) fn of(pid: u32) -> Self {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        Self(threads.filter_map(|thread| of_thread(&thread)).collect())
    }

    /// What it has used since then. A thread that ended in between is not counted.
    pub(crate) fn since(&self, then: &Self) -> Duration {
        let used = self.0.iter().map(|(thread, now)| now.saturating_sub(then.0.get(thread).copied().unwrap_or(0)));
        Duration::from_nanos(used.sum())
    }

    /// Waits until the process has nothing left to do, and gives what it has used by then.
    ///
    /// What is answered first and recorded later is work for the same call, so it has to be counted.
    pub(crate) async fn settled(pid: u32) -> Self {
        let mut before = Self::of(pid);
        let mut quiet = 0;
        for _ in 0..LOOKS_MAX {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = Self::of(pid);
            quiet = if now.since(&before) < IDLE { quiet + 1 } else { 0 };
            before = now;
            if quiet == QUIET_LOOKS {
                break;
            }
        }
        before
    }
}

fn of_thread(thread: &fs::DirEntry) -> Option<(u32, u64)> {
    let id = thread.file_name().to_str()?.parse().ok()?;
    let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
    Some((id, stat.split_ascii_whitespace().next()?.parse().ok()?))
}

/// The children of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| parent(*id) == Some(pid)).collect()
}

/// Whether a process was started with that as its first argument.
pub(crate) fn is_called(pid: u32, argument: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(argument.as_bytes())
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything; the parent is the second field after it.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn work_is_seen_in_the_time_of_the_process_that_did_it() {
        let pid = std::process::id();
        let before = Cpu::of(pid);
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_millis(50) {
            std::hint::black_box(children(1));
        }
        let used = Cpu::of(pid).since(&before);
        assert!(used > Duration::ZERO && !before.0.is_empty(), "{used:?}");
    }
}
