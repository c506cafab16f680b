//! What only the ledger in PostgreSQL does: leases by the database's clock, nodes that race, connections that break.

mod common;
#[path = "../../../tests/postgres/mod.rs"]
mod postgres_server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::dispatcher::retire::RetireReason;
use amends_core::{Fact, SessionId};
use amends_ledger::{
    Append, Error, FaultKind, Ledger, LogEntry, Node, PostgresLedger, SessionRow, StoredCheckpoint, StoredFields, Trace,
};
use common::{
    answer, arguments, asking, busy, claiming, holder, length, letter, ms, note, open, opened, question, received,
    said, step, take, verified,
};
use postgres_server::{Cluster, Database};

/// How long a condition may take to come true on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

async fn join(database: &Database, id: &str, lease_ms: u64) -> PostgresLedger {
    let node = Node { id: id.into(), place: String::new(), lease_ms };
    PostgresLedger::open(&database.url(), node).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_go_by_the_databases_clock_whatever_the_nodes_think() {
    let database = Cluster::shared().database();
    let (slow, fast) = (join(&database, "slow", 3_600_000).await, join(&database, "fast", 1).await);
    assert_eq!(slow.heartbeat(ms(5)).await.unwrap(), ms(3_600_005), "a node sends by its own clock");
    slow.append(busy(open("s", 5, 0))).await.unwrap();
    let far = ms(9_000_000_000_000);
    assert_eq!(fast.take(&"s".into(), far).await.unwrap(), None, "its node lives by the database's clock");
    assert_eq!(fast.orphans(far, 9).await.unwrap(), []);
    fast.heartbeat(far).await.unwrap();
    fast.append(busy(open("t", 5, 0))).await.unwrap();
    let began = Instant::now();
    while slow.orphans(ms(6), 9).await.unwrap() != [SessionId::from("t")] {
        assert!(began.elapsed() < PATIENCE, "a lease of a millisecond never ran out");
    }
    assert_eq!(slow.take(&"t".into(), ms(6)).await.unwrap().map(|lease| lease.epoch), Some(2));
    assert_eq!(fast.sweep(far, 9).await.unwrap(), 1, "the node without open calls whose lease is over, and no other");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_race_for_claims_in_batches_share_them_without_a_double() {
    let database = Cluster::shared().database();
    let nodes =
        [join(&database, "a", 1_000).await, join(&database, "b", 1_000).await, join(&database, "c", 1_000).await];
    let nodes: Vec<Arc<PostgresLedger>> = nodes.into_iter().map(Arc::new).collect();
    let mut racing = tokio::task::JoinSet::new();
    for (index, node) in nodes.iter().enumerate() {
        for claim in 0..60 {
            let node = Arc::clone(node);
            racing.spawn(async move {
                let (session, call) = (format!("s{index}-{claim}"), format!("c{index}-{claim}"));
                // Two claims each, of which others want one or the other.
                let claims = vec![take(&format!("n{claim}"), &call), take(&format!("n{}", (claim + 7) % 60), &call)];
                node.append(claiming(&session, 5, claims)).await.map(|_| call)
            });
        }
    }
    let mut won = Vec::new();
    for fate in racing.join_all().await {
        match fate {
            Ok(call) => won.push(call),
            Err(Error::Held(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let mut held = Vec::new();
    for claim in 0..60 {
        held.extend(holder(&*nodes[0], &format!("n{claim}"), 0).await);
    }
    held.sort();
    let mut expected: Vec<String> = won.iter().flat_map(|call| [call.clone(), call.clone()]).collect();
    expected.sort();
    assert!(!won.is_empty());
    assert_eq!(held, expected, "whoever was told that it holds its claims holds both, and nobody else does");
    let found = verified(&*nodes[0]).await.unwrap();
    assert_eq!((found.faults, found.sessions), (Vec::new(), won.len() as u64));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_taken_anew_while_it_is_swept_stays() {
    let database = Cluster::shared().database();
    let ledger = Arc::new(join(&database, "a", 1_000).await);
    ledger.append(claiming("s", 5, vec![take("n", "c1")])).await.unwrap();
    database.sql("UPDATE claims SET state = 'complete', until = 100");
    // Another node takes it: its row is changed, and the transaction is not over.
    let mut taker = Session::begin(&database);
    taker.say("BEGIN; UPDATE claims SET call = 'c2', state = 'in_flight', until = NULL;");
    let locked = "SELECT count(*) FROM pg_locks WHERE relation = 'claims'::regclass AND mode = 'RowExclusiveLock'";
    eventually("the row is locked", || database.sql(locked) == "1");
    let sweeper = Arc::clone(&ledger);
    let swept = tokio::spawn(async move { sweeper.sweep(ms(1_000), 9).await });
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND wait_event_type = 'Lock' AND query LIKE 'DELETE FROM claims%'";
    eventually("the sweep waits for the row", || database.sql(waits) == "1");
    taker.say("COMMIT;");
    swept.await.unwrap().unwrap();
    assert_eq!(holder(&*ledger, "n", 1_000).await.as_deref(), Some("c2"));
}

/// A connection of its own, which stays open between two statements.
struct Session(std::process::Child);

impl Session {
    fn begin(database: &Database) -> Self {
        let mut psql = std::process::Command::new("psql");
        psql.args(["--no-psqlrc", "--quiet", "--username", "postgres", "--dbname", &database.name, "--host"]);
        psql.arg(database.cluster.folder()).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
        Self(psql.spawn().expect("psql can be run"))
    }

    fn say(&mut self, statement: &str) {
        use std::io::Write;
        let input = self.0.stdin.as_mut().expect("it is piped");
        writeln!(input, "{statement}").and_then(|()| input.flush()).expect("it reads");
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_postgresql_cannot_hold_is_refused_alone() {
    let database = Cluster::shared().database();
    let ledger = join(&database, "a", 1_000).await;
    let zero = Fact::SessionOpened {
        session: "z".into(),
        seed: 1,
        principal: "a\0b".into(),
        door: "mcp".into(),
        tenant: None,
        decider: Default::default(),
    };
    let commits =
        [ledger.append(open("s", 5, 0)), ledger.append(step("z", 0, 5, vec![zero])), ledger.append(open("t", 5, 0))];
    let [before, refused, after] = commits;
    before.await.unwrap();
    assert!(matches!(refused.await, Err(Error::Corrupt { .. })));
    after.await.unwrap();
    assert_eq!(ledger.sessions(9).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_were_cut_while_nobody_looked_are_made_again() {
    let database = Cluster::shared().database();
    let ledger = join(&database, "a", 1_000).await;
    for seq in 0..5 {
        let fact = if seq == 0 { opened("s") } else { note("x") };
        ledger.append(step("s", seq, 5, vec![fact])).await.unwrap();
        assert_eq!(length(&ledger, "s").await as u64, seq + 1);
        let cut = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        assert_ne!(database.sql(cut), "0");
    }
    assert!(verified(&ledger).await.unwrap().is_consistent());
}

#[tokio::test(flavor = "multi_thread")]
async fn while_postgresql_is_away_everything_is_unavailable_and_then_goes_on() {
    let cluster = Cluster::own();
    let database = cluster.database();
    let ledger = join(&database, "a", 1_000).await;
    ledger.append(open("s", 5, 0)).await.unwrap();
    cluster.crash();
    for _ in 0..3 {
        assert!(matches!(ledger.append(step("s", 1, 5, vec![note("x")])).await, Err(Error::Unavailable { .. })));
        assert!(matches!(ledger.heartbeat(ms(5)).await, Err(Error::Unavailable { .. })));
        assert!(matches!(ledger.trace(&"s".into()).await, Err(Error::Unavailable { .. })));
    }
    cluster.start_again();
    let began = Instant::now();
    while ledger.heartbeat(ms(6)).await.is_err() {
        assert!(began.elapsed() < PATIENCE, "it never came back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(ledger.append(step("s", 1, 5, vec![note("x")])).await.unwrap().seq, 2);
    assert_eq!(length(&ledger, "s").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_hears_of_answers_and_letters() {
    let database = Cluster::shared().database();
    let (a, b) = (join(&database, "a", 1_000).await, join(&database, "b", 1_000).await);
    a.append(asking("s", vec![question("q", "s", 99)])).await.unwrap();
    // Listening begins with the first wait, so the first hints may be missed.
    let heard = async {
        loop {
            let hint = a.hint();
            b.post(letter(None, "x"), ms(5)).await.unwrap();
            if tokio::time::timeout(Duration::from_millis(200), hint).await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, heard).await.expect("no letter was heard of");
    let hint = a.hint();
    let (began, fate) = (Instant::now(), b.answer_interaction(&"q".into(), said("happened", "ada", 6)));
    fate.await.unwrap();
    tokio::time::timeout(PATIENCE, hint).await.expect("the answer was not heard of");
    eprintln!("heard of the answer after {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_touched_is_found() {
    let database = Cluster::shared().database();
    let ledger = join(&database, "a", 1_000).await;
    for session in ["edited", "cut", "gone", "beside", "whole"] {
        ledger.append(open(session, 5, 3)).await.unwrap();
    }
    database.sql("UPDATE events SET body = replace(body, 'edited 1', 'edited 9') WHERE session = 'edited' AND seq = 3");
    database.sql("DELETE FROM events WHERE session = 'cut' AND seq = 4");
    database.sql("DELETE FROM sessions WHERE id = 'gone'");
    database.sql("UPDATE events SET kind = 'other' WHERE session = 'beside' AND seq = 2");
    let faults = verified(&ledger).await.unwrap().faults.into_iter();
    let mut found: Vec<_> = faults.map(|fault| (fault.session.unwrap().to_string(), fault.kind, fault.seq)).collect();
    found.sort();
    let expected = [
        ("beside", FaultKind::Columns, Some(2)),
        ("cut", FaultKind::TailCut, Some(4)),
        ("edited", FaultKind::Edited, Some(3)),
        ("gone", FaultKind::SessionMissing, None),
    ];
    assert_eq!(found, expected.map(|(session, kind, seq)| (session.to_owned(), kind, seq)));
    let stored = ledger.stored(None, 2).await.unwrap();
    let ids: Vec<_> = stored.iter().map(|stored| stored.session.as_str()).collect();
    assert_eq!(ids, ["beside", "cut"]);
    let stored = ledger.stored(Some(&"cut".into()), 9).await.unwrap();
    let ids: Vec<_> = stored.iter().map(|stored| (stored.session.as_str(), stored.tip.is_some())).collect();
    assert_eq!(ids, [("edited", true), ("gone", false), ("whole", true)]);
    // What lies behind the end of a session is not written over.
    database.sql("UPDATE sessions SET seq = 3 WHERE id = 'whole'");
    assert!(matches!(ledger.append(step("whole", 3, 5, vec![note("x")])).await, Err(Error::Corrupt { .. })));
    assert!(matches!(ledger.append(open("gone", 5, 0)).await, Err(Error::Corrupt { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_grows_by_whoever_knows_its_end() {
    let database = Cluster::shared().database();
    let (a, b) = (join(&database, "a", 1_000).await, join(&database, "b", 1_000).await);
    a.append(open("s", 5, 1)).await.unwrap();
    a.append(open("t", 5, 0)).await.unwrap();
    let heads = a.unlogged(9).await.unwrap();
    assert_eq!(heads.iter().map(|entry| (entry.session.as_str(), entry.seq)).collect::<Vec<_>>(), [("s", 2), ("t", 1)]);
    assert_eq!(a.unlogged(1).await.unwrap().len(), 1);
    let checkpoint = |size, at| StoredCheckpoint { size, at: ms(at), note: format!("note {size}\n") };
    let (one, two) = tokio::join!(
        a.extend_log(0, heads.clone(), checkpoint(2, 7)),
        b.extend_log(0, heads.clone(), checkpoint(2, 8))
    );
    assert_ne!(one.unwrap(), two.unwrap(), "both extended it");
    assert_eq!(b.log(0, 9).await.unwrap(), heads);
    assert_eq!(b.log(1, 9).await.unwrap(), heads[1..]);
    assert_eq!(a.unlogged(9).await.unwrap(), []);
    a.append(step("t", 1, 6, vec![note("x")])).await.unwrap();
    let again: Vec<LogEntry> = b.unlogged(9).await.unwrap();
    assert_eq!(again.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2]);
    assert!(!b.extend_log(3, again.clone(), checkpoint(4, 9)).await.unwrap());
    assert!(matches!(b.extend_log(2, again.clone(), checkpoint(9, 9)).await, Err(Error::Corrupt { .. })));
    assert!(b.extend_log(2, again, checkpoint(3, 9)).await.unwrap());
    assert!(b.extend_log(3, Vec::new(), checkpoint(3, 10)).await.unwrap());
    assert_eq!(a.checkpoints(2).await.unwrap(), [checkpoint(3, 10), checkpoint(3, 9)]);
    assert_eq!(a.stored(None, 9).await.unwrap().pop().unwrap().tip.unwrap().logged, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_retired_in_one_batch_with_others() {
    let database = Cluster::shared().database();
    let ledger = join(&database, "a", 1_000).await;
    let first = Append {
        answers: vec![answer("c", 99)],
        arguments: vec![arguments("c")],
        ..step("s", 0, 5, vec![opened("s"), received("c")])
    };
    ledger.append(first).await.unwrap();
    let retired = Fact::SessionRetired {
        session: "s".into(),
        principal: "local".into(),
        door: "mcp".into(),
        events: 4,
        reason: RetireReason::Retention,
    };
    let retiring = Append { retires: true, ..step("s", 3, 6, vec![note("x"), retired]) };
    let commits =
        [ledger.append(step("s", 2, 6, vec![note("x")])), ledger.append(retiring), ledger.append(open("t", 7, 0))];
    for commit in commits {
        commit.await.unwrap();
    }
    let trace = ledger.trace(&"s".into()).await.unwrap().unwrap();
    assert_eq!((trace.cut, trace.events.len(), trace.events[0].event.seq), (4, 1, 5));
    assert_eq!(ledger.answer(&"c".into()).await.unwrap(), None);
    assert_eq!(ledger.arguments(&"c".into()).await.unwrap(), None);
    let tip = ledger.stored(None, 1).await.unwrap().pop().unwrap().tip.unwrap();
    assert_eq!((tip.cut, tip.cut_link.map(|link| link.len())), (4, Some(32)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_taken_over_from_another_ledger_once() {
    let (here, there) = (Cluster::shared().database(), Cluster::shared().database());
    let (from, to) = (join(&here, "a", 1_000).await, join(&there, "b", 1_000).await);
    for (session, at) in [("s", 5), ("t", 6), ("u", 6)] {
        from.append(step(session, 0, at, vec![opened(session), received(&format!("c-{session}"))])).await.unwrap();
    }
    let mut after: Option<SessionRow> = None;
    // Ends when the sessions are through: each round begins after the last one.
    while let Some(row) = from.sessions_after(ms(6), after.as_ref(), 1).await.unwrap().pop() {
        let trace: Trace = from.trace(&row.session).await.unwrap().unwrap();
        assert!(to.import(row.clone(), trace.clone()).await.unwrap());
        assert!(!to.import(row.clone(), trace).await.unwrap());
        after = Some(row);
    }
    assert_eq!(to.sessions(9).await.unwrap().len(), 2, "those opened since then");
    assert_eq!(to.trace(&"t".into()).await.unwrap(), from.trace(&"t".into()).await.unwrap());
    assert_eq!(to.session_of(&"c-u".into()).await.unwrap(), Some("u".into()));
    assert!(verified(&to).await.unwrap().is_consistent());
    assert_eq!(to.orphans(ms(9_999), 9).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_an_earlier_version_are_brought_up_to_date_while_a_node_uses_them() {
    let database = Cluster::shared().database();
    let a = join(&database, "a", 1_000).await;
    a.append(open("s", 5, 0)).await.unwrap();
    database.sql(
        "ALTER TABLE sessions DROP COLUMN machine; DROP TABLE fields; ALTER TABLE sessions DROP COLUMN tenant;
         ALTER TABLE interactions DROP COLUMN tenant; UPDATE meta SET version = 2",
    );
    // What a program of that version writes.
    database.sql(
        "UPDATE sessions SET updated = 6;
         INSERT INTO sessions (id, principal, door, owner, epoch, seq, head, opened, updated, open_calls, due)
         SELECT 'old', principal, door, owner, epoch, seq, head, opened, updated, open_calls, due FROM sessions",
    );
    let b = join(&database, "b", 1_000).await;
    assert_eq!(database.sql("SELECT version FROM meta"), "6");
    a.append(step("s", 1, 7, vec![note("x")])).await.unwrap();
    assert_eq!(b.sessions(9).await.unwrap().iter().filter(|row| row.machine.is_none()).count(), 2);
    let fields = vec![StoredFields { seq: 0, body: "{}".into() }];
    b.append(Append { fields, machine: Some("order".into()), ..open("t", 8, 0) }).await.unwrap();
    assert_eq!(a.fields(&"t".into()).await.unwrap(), [(0, "{}".into())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_a_newer_version_are_refused() {
    let database = Cluster::shared().database();
    drop(join(&database, "a", 1_000).await);
    database.sql("UPDATE meta SET version = 99");
    let node = Node { id: "b".into(), place: String::new(), lease_ms: 1_000 };
    let Err(Error::Unavailable { reason }) = PostgresLedger::open(&database.url(), node).await else {
        panic!("it was opened")
    };
    assert!(reason.contains("version 99"), "{reason}");
}
