//! This program and the system it runs on.

use super::finding::Finding;

/// Below this many open files, a busy gateway runs out.
const FILES_MIN: u64 = 1024;
/// What one call may hold open at once: the agent's connection, and one to an upstream.
const FILES_PER_CALL: u64 = 2;

pub(super) fn look(calls: usize) -> Vec<Finding> {
    vec![version(), on_path(), files(calls)]
}

fn version() -> Finding {
    let (name, system) = (env!("CARGO_PKG_VERSION"), std::env::consts::OS);
    Finding::ok(
        "version",
        format!("amends {name} on {system} ({}), SQLite {}", std::env::consts::ARCH, rusqlite::version()),
    )
}

/// Clients start `amends` by its name.
fn on_path() -> Finding {
    let own = std::env::current_exe().and_then(|own| own.canonicalize()).ok();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let named = if cfg!(windows) { "amends.exe" } else { "amends" };
    let first = std::env::split_paths(&paths).map(|folder| folder.join(named)).find(|file| file.is_file());
    match first {
        None => Finding::warn(
            "program",
            "`amends` is in no folder of PATH, so a client cannot start it by its name",
            "put it into a folder of PATH, or write its whole path into the client's configuration",
        ),
        Some(found) if found.canonicalize().ok() == own => {
            Finding::ok("program", format!("clients find it as {}", found.display()))
        }
        Some(found) => Finding::warn(
            "program",
            format!("`amends` in PATH is another file: {}", found.display()),
            "clients start that one; remove it, or put this one in its place",
        ),
    }
}

fn files(calls: usize) -> Finding {
    let about = "open files";
    let Some(limit) = files_max() else {
        return Finding::ok(about, "the system does not say how many files may be open");
    };
    let wanted = (calls as u64).saturating_mul(FILES_PER_CALL).saturating_add(64);
    if limit < FILES_MIN {
        let words = format!("this process may open {limit} files only");
        return Finding::bad(
            about,
            words,
            "raise it where it is started: `ulimit -n 65536`, or LimitNOFILE= of its service",
        );
    }
    if limit < wanted {
        let words = format!("this process may open {limit} files, and `limits.calls` = {calls} could want {wanted}");
        return Finding::warn(
            about,
            words,
            "raise it where it is started (`ulimit -n 65536`), or lower `limits.calls`",
        );
    }
    Finding::ok(about, format!("this process may open {limit} files"))
}

fn files_max() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find(|line| line.starts_with("Max open files"))?;
    match line.split_whitespace().nth(3)? {
        "unlimited" => Some(u64::MAX),
        soft => soft.parse().ok(),
    }
}
