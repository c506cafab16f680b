//! What the system says of processes.

use std::process::Command;

/// Whether a process runs. One that is dead and waits for somebody to ask how it died does not.
pub(crate) fn runs(id: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Whether a process is one that ends the children of another should that be killed.
pub(crate) fn is_guard(id: u32) -> bool {
    let command = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).nth(1) == Some(b"guard")
}

/// The children of a process that run.
pub(crate) fn children(id: u32) -> Vec<u32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{id}/task")) else { return Vec::new() };
    let of_task = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let all: Vec<u32> = tasks
        .flatten()
        .flat_map(|task| of_task(task).split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect();
    all.into_iter().filter(|id| runs(*id)).collect()
}

/// How many files a process has open.
pub(crate) fn files(id: u32) -> usize {
    std::fs::read_dir(format!("/proc/{id}/fd")).map_or(0, Iterator::count)
}

/// Sends a signal to a process, by its id.
pub(crate) fn signal(id: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &id.to_string()]).status().expect("`kill` runs");
    assert!(sent.success(), "{id} takes no signal");
}
