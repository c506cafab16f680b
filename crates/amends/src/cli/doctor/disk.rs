//! The disk under the ledger, and who may read what lies there.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use amends_gateway::config::{KeySource, LedgerConfig, LedgerPlace};

use super::finding::Finding;

const DISK: &str = "disk";
const KEYS: &str = "keys";
const SPACE_MIN: u64 = 64 << 20;
const SPACE_LOW: u64 = 1 << 30;
/// A write waits for the disk twice: for its intent and for its result.
const SLOW: Duration = Duration::from_millis(50);
const SYNCS: u32 = 5;

/// Looks at the place of a ledger.
pub(super) fn look(config: &LedgerConfig) -> Vec<Finding> {
    let mut found = Vec::new();
    if let LedgerPlace::Sqlite(path) = &config.place {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if folder.is_dir() {
            found.extend(space(folder));
            found.push(sync(folder));
        } else {
            let words = format!("the ledger's folder {} is not there yet", folder.display());
            found.push(Finding::warn(DISK, words, "`amends` makes it at its first start; see that it may"));
        }
        found.extend(private("ledger", path));
    }
    let keys = [("the sealing key", &config.sealing_key), ("the signing key", &config.signing_key)];
    let default = LedgerConfig::at(config.place.clone());
    let defaults = [&default.sealing_key, &default.signing_key];
    for ((what, key), default) in keys.into_iter().zip(defaults) {
        found.push(self::key(what, key.as_ref(), key == default, &config.place));
    }
    found
}

#[cfg(unix)]
fn space(folder: &Path) -> Option<Finding> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let words = format!("{} MiB are free in {}", free >> 20, folder.display());
    Some(match free {
        ..SPACE_MIN => Finding::bad(DISK, words, "make room: a ledger that cannot record lets no write through"),
        SPACE_MIN..SPACE_LOW => Finding::warn(DISK, words, "make room, or drop old sessions with `ledger.retention`"),
        _ => Finding::ok(DISK, words),
    })
}

#[cfg(not(unix))]
fn space(_: &Path) -> Option<Finding> {
    None
}

/// How long it takes until something is on the disk. A file is made for that, and removed.
fn sync(folder: &Path) -> Finding {
    let probe = folder.join(format!(".amends-doctor-{}", std::process::id()));
    let timed = timed(&probe);
    // It may not have been made.
    drop(std::fs::remove_file(&probe));
    match timed {
        Ok(time) if time > SLOW => Finding::warn(
            DISK,
            format!(
                "it takes {} ms until something is on the disk, and a write waits for that twice",
                time.as_millis()
            ),
            "put the ledger on a faster disk, and not on a network's",
        ),
        Ok(time) => Finding::ok(
            DISK,
            format!("it takes {}.{} ms until something is on the disk", time.as_millis(), time.as_micros() / 100 % 10),
        ),
        Err(error) => Finding::bad(
            DISK,
            format!("nothing can be written in {}: {error}", folder.display()),
            "let the user that runs `amends` write there, or put the ledger elsewhere with `ledger.url`",
        ),
    }
}

fn timed(probe: &Path) -> std::io::Result<Duration> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(probe)?;
    let began = Instant::now();
    for _ in 0..SYNCS {
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
    }
    Ok(began.elapsed() / SYNCS)
}

fn key(what: &str, source: Option<&KeySource>, is_default: bool, place: &LedgerPlace) -> Finding {
    match source {
        None if matches!(place, LedgerPlace::Memory) => {
            Finding::ok(KEYS, format!("{what} is not needed for a ledger in memory"))
        }
        None => Finding::warn(
            KEYS,
            format!("{what} is not set"),
            "name one in `[ledger]`: see docs/privacy.md and docs/verify.md",
        ),
        Some(KeySource::Env(name)) => match std::env::var_os(name).is_some_and(|value| !value.is_empty()) {
            true => Finding::ok(KEYS, format!("{what} is in `{name}`")),
            false => Finding::bad(
                KEYS,
                format!("{what} should be in `{name}`, which is not set here"),
                "set it where `amends` is started",
            ),
        },
        Some(KeySource::File(path)) if !path.exists() => missing(what, path, is_default, place),
        Some(KeySource::File(path)) => match private(KEYS, path) {
            Some(finding) => Finding { words: format!("{what}: {}", finding.words), ..finding },
            None => Finding::ok(KEYS, format!("{what} is in {}, for its owner alone", path.display())),
        },
    }
}

fn missing(what: &str, path: &Path, is_default: bool, place: &LedgerPlace) -> Finding {
    let used = matches!(place, LedgerPlace::Sqlite(ledger) if ledger.exists());
    let words = format!("{what} is not in {}", path.display());
    match (is_default, used) {
        (true, false) => Finding::ok(KEYS, format!("{what} is made at the first start")),
        (true, true) => Finding::bad(
            KEYS,
            format!("{words}, and the ledger is there"),
            "bring the file back: a new key is made in its place, and opens nothing that was sealed with the old one",
        ),
        (false, _) => Finding::bad(KEYS, words, "put it there; a file that the configuration names is never made"),
    }
}

/// What is wrong with a file's permissions, if anything is.
#[cfg(unix)]
fn private(about: &str, path: &Path) -> Option<Finding> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let advice = format!("chmod 600 {}", path.display());
    (mode & 0o077 != 0).then(|| {
        Finding::bad(about, format!("{} can be read or written by others (mode {mode:o})", path.display()), &advice)
    })
}

#[cfg(not(unix))]
fn private(_: &str, _: &Path) -> Option<Finding> {
    None
}

/// Where a ledger is, without a password.
pub(super) fn place(place: &LedgerPlace) -> (String, Option<&PathBuf>) {
    match place {
        LedgerPlace::Memory => ("in memory".to_owned(), None),
        LedgerPlace::Sqlite(path) => (path.display().to_string(), Some(path)),
        LedgerPlace::Postgres(_) => ("PostgreSQL".to_owned(), None),
    }
}
