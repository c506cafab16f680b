//! The servers of these tests, and the configurations that govern them.

use std::path::PathBuf;

pub(crate) use crate::support::served::serve;
use crate::support::{AMENDS, Place};

/// A Python server beside this file, with its log in that place.
pub(crate) fn python(place: &Place, name: &str, flags: &[&str]) -> Vec<String> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/edges/servers").join(name);
    let mut command =
        vec!["python3".to_owned(), script.display().to_string(), place.path("server.log").display().to_string()];
    command.extend(flags.iter().map(|flag| (*flag).to_owned()));
    command
}

/// The shop as a command, with its book in that place.
pub(crate) fn shop(place: &Place, flags: &[&str]) -> Vec<String> {
    let book = place.path("book.db").display().to_string();
    let mut command = vec![AMENDS.to_owned(), "shop".to_owned(), "--book".to_owned(), book];
    command.extend(flags.iter().map(|flag| (*flag).to_owned()));
    command
}

/// The words of a command as `Pipe` and `Client` take them.
pub(crate) fn words(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

/// What the demo declares of the shop's tools.
pub(crate) fn contracts() -> &'static str {
    let demo = include_str!("../../src/cli/demo.toml");
    &demo[demo.find("[tools.get_order]").expect("the demo declares tools")..]
}

/// A configuration file for a wrapped shop.
pub(crate) fn wrapped_shop(place: &Place) -> String {
    let text = format!("[upstreams.wrapped]\ntimeout = \"2s\"\ndeadline = \"30s\"\n\n{}", contracts());
    place.write("wrap.toml", &text).display().to_string()
}

/// How many events of that kind the ledger holds.
pub(crate) fn events(place: &Place, kind: &str) -> u64 {
    let Ok(ledger) =
        rusqlite::Connection::open_with_flags(place.path("amends.db"), rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)
    else {
        return 0;
    };
    let _ = ledger.busy_timeout(std::time::Duration::from_secs(10));
    let count = ledger.query_row("SELECT count(*) FROM events WHERE kind = ?1", [kind], |row| row.get::<_, i64>(0));
    count.map_or(0, |count| count as u64)
}
