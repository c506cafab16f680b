//! Ways of touching a ledger's file behind its back, each of which `amends verify` must find.

use std::fs;
use std::path::{Path, PathBuf};

use amends_core::SessionId;
use amends_ledger::FaultKind;
use amends_ledger::chain::Link;
use anyhow::{Context, Result};
use rusqlite::{Connection, params};

/// A ledger in a folder of its own, with what belongs to it.
#[derive(Clone, Debug)]
pub struct Site {
    folder: PathBuf,
}

impl Site {
    /// The ledger in that folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Its file.
    pub fn ledger(&self) -> PathBuf {
        self.folder.join("amends.db")
    }

    /// Its anchor.
    pub fn anchor(&self) -> PathBuf {
        self.folder.join("amends.db.checkpoints")
    }

    /// A copy of its file from before its last checkpoint.
    pub fn older(&self) -> PathBuf {
        self.folder.join("older.db")
    }

    /// Copies everything to another folder.
    pub fn copy_to(&self, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        for file in fs::read_dir(&self.folder)? {
            let file = file?;
            if file.file_type()?.is_file() {
                fs::copy(file.path(), folder.join(file.file_name()))?;
            }
        }
        Ok(Self::at(folder))
    }

    fn open(&self) -> Result<Connection> {
        Connection::open(self.ledger()).context("cannot open the ledger")
    }
}

/// One way of touching it.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// What it does, in words.
    pub name: &'static str,
    /// What verifying calls it.
    pub found_as: FaultKind,
    deed: Deed,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    /// Statements that every ledger with two whole sessions understands.
    Sql(&'static str),
    /// Something that takes more than statements.
    Work(fn(&Site) -> Result<()>),
}

impl Attack {
    /// Does it.
    pub fn run(&self, site: &Site) -> Result<()> {
        match self.deed {
            Deed::Sql(statements) => site.open()?.execute_batch(statements)?,
            Deed::Work(work) => work(site)?,
        }
        Ok(())
    }
}

const fn sql(name: &'static str, found_as: FaultKind, statements: &'static str) -> Attack {
    Attack { name, found_as, deed: Deed::Sql(statements) }
}

const fn work(name: &'static str, found_as: FaultKind, work: fn(&Site) -> Result<()>) -> Attack {
    Attack { name, found_as, deed: Deed::Work(work) }
}

/// All of them. A session that ended well is the victim where one is needed.
pub const ATTACKS: [Attack; 23] = [
    sql(
        "an edited field",
        FaultKind::Edited,
        r#"UPDATE events SET body = replace(body, '"certainty":"processed"', '"certainty":"not_processed"')
           WHERE kind = 'call_ended'"#,
    ),
    sql(
        "an edited hash",
        FaultKind::Edited,
        "UPDATE events SET hash = zeroblob(32) WHERE rowid = (SELECT max(rowid) FROM events WHERE seq = 2)",
    ),
    sql(
        "a removed event",
        FaultKind::Missing,
        "DELETE FROM events WHERE rowid = (SELECT max(rowid) FROM events WHERE seq = 2)",
    ),
    sql(
        "a swapped pair",
        FaultKind::Reordered,
        "CREATE TEMP TABLE victim AS SELECT session FROM events WHERE seq = 3 LIMIT 1;
         UPDATE events SET seq = 0 WHERE seq = 3 AND session = (SELECT session FROM victim);
         UPDATE events SET seq = 3 WHERE seq = 2 AND session = (SELECT session FROM victim);
         UPDATE events SET seq = 2 WHERE seq = 0 AND session = (SELECT session FROM victim);",
    ),
    sql(
        "a cut tail",
        FaultKind::TailCut,
        "DELETE FROM events WHERE rowid = (SELECT rowid FROM events ORDER BY seq DESC LIMIT 1)",
    ),
    sql(
        "a cut tail, the session's row in step with it",
        FaultKind::TailCut,
        "CREATE TEMP TABLE victim AS SELECT session FROM events WHERE seq = 4 LIMIT 1;
         DELETE FROM events WHERE seq > 3 AND session = (SELECT session FROM victim);
         UPDATE sessions SET seq = 3, logged = 3,
                head = (SELECT hash FROM events WHERE session = sessions.id AND seq = 3)
         WHERE id = (SELECT session FROM victim);",
    ),
    sql("a session's row removed", FaultKind::SessionMissing, "DELETE FROM sessions WHERE id = (SELECT max(id) FROM sessions)"),
    sql(
        "a session removed with all its events",
        FaultKind::SessionRemoved,
        "CREATE TEMP TABLE victim AS SELECT max(session) AS session FROM log;
         DELETE FROM events WHERE session = (SELECT session FROM victim);
         DELETE FROM calls WHERE session = (SELECT session FROM victim);
         DELETE FROM sessions WHERE id = (SELECT session FROM victim);",
    ),
    sql("an emptied table of events", FaultKind::TailCut, "DELETE FROM events"),
    sql("an emptied table of sessions", FaultKind::SessionMissing, "DELETE FROM sessions"),
    sql(
        "every table emptied",
        FaultKind::LogCut,
        "DELETE FROM events; DELETE FROM sessions; DELETE FROM calls; DELETE FROM log; DELETE FROM checkpoints;",
    ),
    work("an older file restored", FaultKind::LogCut, restore),
    work("a chain rewritten with its hashes computed anew", FaultKind::Rewritten, rewrite),
    sql(
        "an event copied from another session",
        FaultKind::Edited,
        "UPDATE events SET (body, hash) = (SELECT body, hash FROM events e WHERE e.seq = 2 AND e.session <> events.session LIMIT 1)
         WHERE rowid = (SELECT rowid FROM events WHERE seq = 2 LIMIT 1)",
    ),
    work("an event that the rules would not decide, its hash right", FaultKind::Illegal, forge),
    sql("other rules under the same digest", FaultKind::RulesChanged, "UPDATE rules SET body = replace(body, '\"timeout_ms\":', '\"timeout_ms\":1')"),
    sql("another kind beside an event", FaultKind::Columns, "UPDATE events SET kind = 'ticked' WHERE kind = 'call_ended'"),
    sql("another time beside an event", FaultKind::Columns, "UPDATE events SET at = at + 1 WHERE seq = 2"),
    sql("another call beside an event", FaultKind::Columns, "UPDATE events SET call = 'call_x' WHERE kind = 'call_ended'"),
    sql("another principal beside a session", FaultKind::NotTheSession, "UPDATE sessions SET principal = 'mallory'"),
    sql("an edited entry of the log", FaultKind::LogEdited, "UPDATE log SET head = zeroblob(32) WHERE place = 0"),
    sql(
        "a checkpoint with a wrong signature",
        FaultKind::Checkpoint,
        "UPDATE checkpoints SET note = replace(note, char(10) || size || char(10), char(10) || (size + 1) || char(10)),
                size = size + 1",
    ),
    sql(
        "a log that is shorter than the anchor",
        FaultKind::LogCut,
        "CREATE TEMP TABLE cut AS SELECT session FROM log WHERE place = (SELECT max(place) FROM log);
         DELETE FROM log WHERE place = (SELECT max(place) FROM log);
         DELETE FROM checkpoints WHERE size > (SELECT max(place) + 1 FROM log);
         UPDATE sessions SET logged = coalesce((SELECT max(seq) FROM log WHERE session = id), 0)
         WHERE id = (SELECT session FROM cut);",
    ),
];

fn restore(site: &Site) -> Result<()> {
    for ending in ["-wal", "-shm"] {
        let beside = PathBuf::from(format!("{}{ending}", site.ledger().display()));
        if beside.exists() {
            fs::remove_file(beside)?;
        }
    }
    fs::copy(site.older(), site.ledger())?;
    Ok(())
}

/// Changes an event of a logged session and computes its chain anew to the end.
fn rewrite(site: &Site) -> Result<()> {
    let connection = site.open()?;
    let session: String = connection.query_row(
        "SELECT session FROM log WHERE session IN (SELECT session FROM events WHERE kind = 'call_ended') LIMIT 1",
        [],
        |row| row.get(0),
    )?;
    connection.execute(
        r#"UPDATE events SET body = replace(body, '"certainty":"processed"', '"certainty":"not_processed"')
           WHERE session = ?1 AND kind = 'call_ended'"#,
        [&session],
    )?;
    let mut link = Link::genesis(&SessionId::new(session.as_str()));
    let mut statement = connection.prepare("SELECT rowid, body FROM events WHERE session = ?1 ORDER BY seq")?;
    let bodies = statement.query_map([&session], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let bodies: Vec<(i64, String)> = bodies.collect::<Result<_, _>>()?;
    for (row, body) in bodies {
        link = link.next(body.as_bytes());
        connection.execute("UPDATE events SET hash = ?2 WHERE rowid = ?1", params![row, link.bytes()])?;
    }
    connection.execute("UPDATE sessions SET head = ?2 WHERE id = ?1", params![session, link.bytes()])?;
    Ok(())
}

/// Has a call that ended end once more, with a hash and a row that are right.
fn forge(site: &Site) -> Result<()> {
    let connection = site.open()?;
    let (session, call, at, body): (String, String, i64, String) = connection.query_row(
        "SELECT e.session, e.call, s.updated, e.body FROM events e JOIN sessions s ON s.id = e.session
         WHERE e.kind = 'call_ended' LIMIT 1",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    let (last, head): (i64, Vec<u8>) =
        connection.query_row("SELECT seq, head FROM sessions WHERE id = ?1", [&session], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let mut event: serde_json::Value = serde_json::from_str(&body)?;
    event["seq"] = (last + 1).into();
    event["at"] = at.into();
    let body = amends_ledger::chain::canonical(&serde_json::from_value(event)?)?;
    let link = Link::stored(&head).context("a head that is none")?.next(body.as_bytes());
    connection.execute(
        "INSERT INTO events (session, seq, at, kind, call, body, hash) VALUES (?1, ?2, ?3, 'call_ended', ?4, ?5, ?6)",
        params![session, last + 1, at, call, body, link.bytes()],
    )?;
    connection
        .execute("UPDATE sessions SET seq = ?2, head = ?3 WHERE id = ?1", params![session, last + 1, link.bytes()])?;
    Ok(())
}
