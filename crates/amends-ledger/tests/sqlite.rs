//! What only a file can go through: somebody edits it, takes it away, locks it, tears it.

mod common;

use std::fs;

use amends_core::Fact;
use amends_ledger::{Append, Error, FaultKind, Ledger, SqliteLedger};
use common::{
    Sqlite, answer, arguments, holder, length, letter, ms, node, note, open, question, received, said, step, verified,
};

fn is_unavailable<T>(fate: &Result<T, Error>) -> bool {
    matches!(fate, Err(Error::Unavailable { .. }))
}

/// What verifying finds after somebody changed the file behind the ledger's back.
async fn faults_after(edit: &str) -> Vec<(FaultKind, String, Option<u64>)> {
    let store = Sqlite::new();
    let ledger = store.open("a");
    ledger.append(open("one", 5, 5)).await.unwrap();
    ledger.append(open("two", 5, 5)).await.unwrap();
    ledger.append(step("two", 6, 6, vec![received("c")])).await.unwrap();
    assert!(verified(&ledger).await.unwrap().is_consistent());
    store.raw().execute_batch(edit).unwrap();
    let verified = verified(&ledger).await.unwrap();
    verified.faults.into_iter().map(|fault| (fault.kind, fault.session.unwrap().to_string(), fault.seq)).collect()
}

fn one(kind: FaultKind, seq: u64) -> (FaultKind, String, Option<u64>) {
    (kind, "one".into(), Some(seq))
}

#[tokio::test]
async fn an_edited_event_is_found() {
    let edit = "UPDATE events SET body = replace(body, 'one 1', 'one 9') WHERE session = 'one' AND seq = 3";
    assert_eq!(faults_after(edit).await, [one(FaultKind::Edited, 3)]);
    let edit = "UPDATE events SET kind = 'ticked' WHERE session = 'one' AND seq = 3";
    assert_eq!(faults_after(edit).await, [one(FaultKind::Columns, 3)]);
    let edit = "UPDATE events SET body = '{}' WHERE session = 'one' AND seq = 3";
    assert_eq!(faults_after(edit).await, [one(FaultKind::Unreadable, 3)]);
}

#[tokio::test]
async fn a_removed_event_is_found() {
    let edit = "DELETE FROM events WHERE session = 'one' AND seq = 3";
    assert_eq!(faults_after(edit).await, [one(FaultKind::Missing, 3)]);
}

#[tokio::test]
async fn a_swapped_pair_is_found() {
    let edit = "UPDATE events SET seq = 99 WHERE session = 'one' AND seq = 3;
                UPDATE events SET seq = 3 WHERE session = 'one' AND seq = 4;
                UPDATE events SET seq = 4 WHERE session = 'one' AND seq = 99;";
    let found = faults_after(edit).await;
    assert_eq!(found, [one(FaultKind::Reordered, 3), one(FaultKind::Reordered, 4)]);
}

#[tokio::test]
async fn a_cut_tail_is_found() {
    let edit = "DELETE FROM events WHERE session = 'one' AND seq > 4";
    assert_eq!(faults_after(edit).await, [one(FaultKind::TailCut, 5)]);
    let edit = "UPDATE sessions SET seq = 4, head = (SELECT hash FROM events WHERE session = 'one' AND seq = 4)
                WHERE id = 'one'";
    assert_eq!(faults_after(edit).await, [one(FaultKind::HeadMismatch, 6)]);
}

#[tokio::test]
async fn a_deleted_session_is_found_by_what_is_left_of_it() {
    let edit = "DELETE FROM sessions WHERE id = 'one'";
    let missing = |session: &str| (FaultKind::SessionMissing, session.to_owned(), None);
    assert_eq!(faults_after(edit).await, [missing("one")]);
}

#[tokio::test]
async fn an_event_copied_from_another_session_is_found() {
    let edit = "UPDATE events SET (body, hash) = (SELECT body, hash FROM events WHERE session = 'two' AND seq = 3)
                WHERE session = 'one' AND seq = 3";
    let found = faults_after(edit).await;
    assert_eq!(found[0], one(FaultKind::Edited, 3));
    let edit = "UPDATE events SET (body, hash) = (SELECT body, hash FROM events WHERE session = 'two' AND seq = 1)
                WHERE session = 'one' AND seq = 1";
    let found = faults_after(edit).await;
    assert_eq!(found[0], one(FaultKind::NotTheSession, 1));
    let edit = "UPDATE sessions SET principal = 'mallory' WHERE id = 'one'";
    assert_eq!(faults_after(edit).await, [one(FaultKind::NotTheSession, 1)]);
}

#[tokio::test]
async fn half_a_trace_is_not_given_out_and_not_continued() {
    let store = Sqlite::new();
    let ledger = store.open("a");
    ledger.append(open("s", 5, 5)).await.unwrap();
    store.raw().execute("UPDATE sessions SET seq = 4", []).unwrap();
    assert!(matches!(ledger.trace(&"s".into()).await, Err(Error::Corrupt { .. })));
    let batch = [ledger.append(step("s", 4, 6, vec![note("x")])), ledger.append(open("t", 5, 0))];
    let [continued, stranger] = batch;
    assert!(matches!(continued.await, Err(Error::Corrupt { .. })));
    assert!(stranger.await.is_ok());
}

#[tokio::test]
async fn what_was_recorded_is_there_after_reopening() {
    let store = Sqlite::new();
    let ledger = store.open("a");
    let secret = ledger.secret();
    let mut first = open("s", 5, 2);
    first.arguments = vec![arguments("c")];
    ledger.append(first).await.unwrap();
    let queued = ledger.append(step("s", 3, 6, vec![note("queued when it was dropped")]));
    drop(ledger);
    assert!(queued.await.is_ok());
    let ledger = store.open("b");
    assert_eq!(ledger.secret(), secret);
    assert_eq!(length(&ledger, "s").await, 4);
    assert_eq!(ledger.arguments(&"c".into()).await.unwrap(), Some(arguments("c")));
    assert!(verified(&ledger).await.unwrap().is_consistent());
}

#[test]
fn many_can_open_a_new_file_at_once() {
    let store = Sqlite::new();
    let secrets: Vec<[u8; 32]> = std::thread::scope(|scope| {
        let opening: Vec<_> = (0..8)
            .map(|n| {
                scope.spawn({
                    let store = &store;
                    move || store.open(&n.to_string()).secret()
                })
            })
            .collect();
        opening.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(secrets.iter().all(|secret| *secret == secrets[0]));
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_a_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let store = Sqlite::new();
    let _ledger = store.open("a");
    for file in fs::read_dir(store.0.path()).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_file_that_is_no_ledger_of_ours_is_refused() {
    let store = Sqlite::new();
    store.raw().execute("CREATE TABLE other (x)", []).unwrap();
    assert!(is_unavailable(&SqliteLedger::open(&store.path(), node("a"))));

    let store = Sqlite::new();
    drop(store.open("a"));
    store.raw().execute("UPDATE meta SET version = 99", []).unwrap();
    let Err(Error::Unavailable { reason }) = SqliteLedger::open(&store.path(), node("a")) else { panic!("opened") };
    assert!(reason.contains("version 99"), "{reason}");

    let store = Sqlite::new();
    fs::write(store.path(), "this is not a database, but long enough to look at ".repeat(99)).unwrap();
    assert!(is_unavailable(&SqliteLedger::open(&store.path(), node("a"))));
    assert!(is_unavailable(&SqliteLedger::open(store.0.path(), node("a"))), "a folder");
    assert!(is_unavailable(&SqliteLedger::open(&store.0.path().join("no/such/folder"), node("a"))));
}

/// A file as version 1 of the tables had it, made by a program of that version.
const VERSION_1: &str = include_str!("fixtures/version-1.sql");

#[tokio::test]
async fn a_file_of_version_1_is_brought_up_to_date_and_nothing_in_it_is_lost() {
    let store = Sqlite::new();
    store.raw().execute_batch(VERSION_1).unwrap();
    let ledger = store.open("a");
    assert_eq!(ledger.secret(), [7; 32]);
    let found = verified(&ledger).await.unwrap();
    assert_eq!((found.faults, found.sessions, found.events), (Vec::new(), 2, 5));
    assert_eq!(holder(&ledger, "n", 20).await.as_deref(), Some("c"));
    assert_eq!(ledger.arguments(&"c".into()).await.unwrap(), Some(arguments("c")));
    assert_eq!(ledger.answer(&"c0".into()).await.unwrap(), Some(answer("c0", 99_000)));
    assert_eq!(ledger.orphans(ms(1_000), 9).await.unwrap(), ["s".into()]);

    let asks = vec![question("q", "t", 90)];
    let more = Append { asks, ..step("t", 3, 7, vec![note("x")]) };
    ledger.append(more).await.unwrap();
    ledger.answer_interaction(&"q".into(), said("happened", "ann", 8)).await.unwrap();
    let id = ledger.post(letter(None, "x"), ms(8)).await.unwrap();
    drop(ledger);
    let ledger = store.open("b");
    assert_eq!(ledger.answered(9).await.unwrap().len(), 1);
    assert!(ledger.letter(id).await.unwrap().is_some());
    assert!(verified(&ledger).await.unwrap().is_consistent());
}

#[tokio::test]
async fn an_old_file_has_the_same_tables_as_a_new_one_once_it_is_open() {
    let (old, new) = (Sqlite::new(), Sqlite::new());
    old.raw().execute_batch(VERSION_1).unwrap();
    let tables = |store: &Sqlite| {
        drop(store.open("a"));
        let raw = store.raw();
        let mut statement = raw.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let tables: Vec<(String, Option<String>)> = rows.map(Result::unwrap).collect();
        let version: i64 = raw.query_row("SELECT version FROM meta", [], |row| row.get(0)).unwrap();
        (tables, version)
    };
    assert_eq!(tables(&old), tables(&new));
}

#[tokio::test]
async fn a_file_that_changes_its_version_while_it_is_open_is_brought_up_to_date_or_refused() {
    let store = Sqlite::new();
    store.raw().execute_batch(VERSION_1).unwrap();
    let ledger = store.open("a");
    // What a copy from before looks like that is restored in place.
    let undone = "DROP TABLE interactions; DROP TABLE reversals; DROP TABLE letters; DROP INDEX sessions_due;
                  ALTER TABLE sessions DROP COLUMN cut; ALTER TABLE sessions DROP COLUMN cut_link;
                  DROP INDEX sessions_behind; ALTER TABLE sessions DROP COLUMN behind;
                  DROP TABLE log; DROP TABLE checkpoints; ALTER TABLE sessions DROP COLUMN logged; DROP TABLE pins;
                  ALTER TABLE sessions DROP COLUMN machine; DROP TABLE fields;
                  DROP INDEX sessions_by_tenant; ALTER TABLE sessions DROP COLUMN tenant;
                  DROP TABLE kept;
                  UPDATE meta SET version = 1";
    store.raw().execute_batch(undone).unwrap();
    let asks = || Append { asks: vec![question("q", "t", 90)], ..step("t", 3, 7, vec![note("x")]) };
    assert!(is_unavailable(&ledger.append(asks()).await));
    ledger.append(asks()).await.unwrap();
    store.raw().execute("UPDATE meta SET version = 99", []).unwrap();
    store.raw().execute_batch("ALTER TABLE interactions RENAME TO others").unwrap();
    let again = || Append { asks: vec![question("q2", "t", 90)], ..step("t", 4, 8, vec![note("x")]) };
    assert!(is_unavailable(&ledger.append(again()).await));
    let Err(Error::Unavailable { reason }) = ledger.append(again()).await else { panic!("it was recorded") };
    assert!(reason.contains("version 99"), "{reason}");
}

#[tokio::test]
async fn a_torn_file_gives_errors_and_no_panic() {
    for cut in [true, false] {
        let store = Sqlite::new();
        let ledger = store.open("a");
        for n in 0..200 {
            ledger.append(open(&format!("s{n}"), 5, 9)).await.unwrap();
        }
        drop(ledger);
        let mut bytes = fs::read(store.path()).unwrap();
        if cut {
            bytes.truncate(bytes.len() / 2 + 77);
        } else {
            // What says which tables there are stands before that.
            bytes[4096 * 40..].fill(0xAA);
        }
        fs::write(store.path(), bytes).unwrap();
        let opened = SqliteLedger::open(&store.path(), node("b"));
        assert_eq!(is_unavailable(&opened), cut, "a file that is too short is not even opened");
        let Ok(ledger) = opened else { continue };
        assert!(is_unavailable(&verified(&ledger).await));
        let fates = [ledger.trace(&"s1".into()).await.map(drop), ledger.trace(&"s99".into()).await.map(drop)];
        assert!(fates.iter().all(|fate| fate.is_ok() || is_unavailable(fate)));
        let mut fates = Vec::new();
        for n in 0..200 {
            fates.push(ledger.append(step(&format!("s{n}"), 10, 6, vec![note("x")])).await);
        }
        assert!(fates.iter().any(is_unavailable));
    }
}

#[tokio::test]
async fn a_file_that_is_gone_or_replaced_is_not_written_to() {
    let store = Sqlite::new();
    let ledger = store.open("a");
    ledger.append(open("s", 5, 0)).await.unwrap();
    assert_eq!(length(&ledger, "s").await, 1);
    let hidden = store.0.path().join("hidden.db");
    fs::rename(store.path(), &hidden).unwrap();
    assert!(is_unavailable(&ledger.append(step("s", 1, 6, vec![note("x")])).await));
    assert!(is_unavailable(&ledger.trace(&"s".into()).await));
    let other = Sqlite::new();
    drop(other.open("b"));
    fs::copy(other.path(), store.path()).unwrap();
    assert!(is_unavailable(&ledger.append(step("s", 1, 6, vec![note("x")])).await));
    fs::rename(&hidden, store.path()).unwrap();
    ledger.append(step("s", 1, 6, vec![note("x")])).await.unwrap();
    assert_eq!(length(&ledger, "s").await, 2);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_may_only_be_read_gives_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let store = Sqlite::new();
    drop(store.open("a"));
    fs::set_permissions(store.path(), fs::Permissions::from_mode(0o400)).unwrap();
    // Whoever may do everything may write to it all the same.
    if fs::OpenOptions::new().write(true).open(store.path()).is_err() {
        assert!(is_unavailable(&SqliteLedger::open(&store.path(), node("a"))));
    }
}

#[tokio::test]
async fn a_locked_file_is_unavailable_until_the_lock_is_gone() {
    let store = Sqlite::new();
    let ledger = store.open("a");
    ledger.append(open("s", 5, 0)).await.unwrap();
    let raw = store.raw();
    raw.execute_batch("BEGIN IMMEDIATE").unwrap();
    let commit = ledger.append(step("s", 1, 6, vec![note("x")]));
    assert_eq!(length(&ledger, "s").await, 1, "readers do not wait");
    assert!(is_unavailable(&commit.await));
    raw.execute_batch("ROLLBACK").unwrap();
    ledger.append(step("s", 1, 6, vec![note("x")])).await.unwrap();
    assert_eq!(length(&ledger, "s").await, 2);
}

#[tokio::test]
async fn verifying_does_not_mind_that_others_write() {
    let store = Sqlite::new();
    let ledger = store.open("a");
    ledger.append(open("s", 1, 0)).await.unwrap();
    let facts = || (0..50).map(|_| note("x")).collect::<Vec<Fact>>();
    let mut commits = Vec::new();
    for n in 0..40 {
        commits.push(ledger.append(step("s", 1 + n * 50, 2, facts())));
        if n % 8 == 0 {
            assert_eq!(verified(&ledger).await.unwrap().faults, []);
        }
    }
    for commit in commits {
        commit.await.unwrap();
    }
    assert_eq!(verified(&ledger).await.unwrap().events, 2_001);
}
