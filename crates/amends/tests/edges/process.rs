//! What the system says of a process.

use std::process::Command;

/// The children of a process, beside the one that ends them should it be killed.
pub(crate) fn children(id: u32) -> Vec<u32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{id}/task")) else { return Vec::new() };
    let of_task = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
    tasks
        .flatten()
        .flat_map(|task| of_task(task).split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
        .filter(|id| !is_guard(*id))
        .collect()
}

fn is_guard(id: u32) -> bool {
    let command = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).nth(1) == Some(b"guard")
}

/// `kill -9`, by its id.
pub(crate) fn kill(id: u32) {
    let ended = Command::new("kill").args(["-9", &id.to_string()]).status().expect("`kill` runs");
    assert!(ended.success(), "{id} cannot be killed");
}

/// How much memory a process holds, in MiB.
pub(crate) fn resident_mb(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).expect("a number") / 1024
}

/// How much time a process has spent on a processor, in hundredths of a second.
pub(crate) fn cpu_ticks(id: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
    let rest = stat.rsplit_once(')').expect("a name in parentheses").1;
    rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}
