//! Several processes on one file, and what is left when one of them is killed.
//!
//! The child processes are this test binary itself, told by a variable what to do.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use amends_ledger::{AnswerFate, Error, Ledger, Node, SqliteLedger};
use common::{Sqlite, asking, busy, claiming, length, letter, ms, note, open, question, said, step, take, verified};

/// What a child is told to do, and on which file.
const ROLE: &str = "AMENDS_LEDGER_CHILD";
const FILE: &str = "AMENDS_LEDGER_FILE";
const NAME: &str = "AMENDS_LEDGER_NAME";

/// How many questions and letters two processes fight over.
const QUESTIONS: usize = 50;

/// How many claims two processes fight over.
const CLAIMS: usize = 200;

/// How long a child's lease would last if nobody saw it die.
const LONG_LEASE_MS: u64 = 1_000_000;

fn child(store: &Sqlite, role: &str, name: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "a_child_does_as_it_is_told", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(FILE, store.path()).env(NAME, name).stdout(Stdio::piped());
    command
}

/// The lines in which a child tells something: one word about each.
fn lines(child: &mut Child) -> impl Iterator<Item = Vec<String>> + use<> {
    let out = BufReader::new(child.stdout.take().unwrap());
    let told = out.lines().map_while(Result::ok).filter_map(|line| Some(line.split_once("> ")?.1.to_owned()));
    told.map(|line| line.split(' ').map(str::to_owned).collect())
}

fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "> {line}").unwrap();
    out.flush().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_does_as_it_is_told() {
    let Ok(role) = env::var(ROLE) else { return };
    let (file, name) = (PathBuf::from(env::var(FILE).unwrap()), env::var(NAME).unwrap());
    let ledger = Arc::new(SqliteLedger::open(&file, Node::this_process(LONG_LEASE_MS).unwrap()).unwrap());
    ledger.heartbeat(ms(0)).await.unwrap();
    match role.as_str() {
        "append" => append_for_ever(ledger, &name).await,
        "claim" => claim_all(&ledger, &name).await,
        "race" => race(&ledger, &name).await,
        "fill" => fill(&ledger).await,
        other => panic!("no such role: {other}"),
    }
}

async fn append_for_ever(ledger: Arc<SqliteLedger>, name: &str) {
    let mut producers = tokio::task::JoinSet::new();
    for producer in 0..8 {
        let (ledger, session) = (Arc::clone(&ledger), format!("{name}-{producer}"));
        producers.spawn(async move {
            let mut seq = ledger.append(busy(open(&session, 1, 0))).await.unwrap().seq;
            loop {
                tell(&format!("{session} {seq}"));
                seq = ledger.append(busy(step(&session, seq, seq, vec![note("one"), note("two")]))).await.unwrap().seq;
            }
        });
    }
    producers.join_all().await;
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let store = Sqlite::new();
    for round in 0..5 {
        let mut child = child(&store, "append", &format!("r{round}")).spawn().unwrap();
        let mut acknowledged = BTreeMap::new();
        let mut lines = lines(&mut child);
        for line in lines.by_ref().take(150 + round * 37) {
            acknowledged.insert(line[0].clone(), line[1].parse::<usize>().unwrap());
        }
        child.kill().unwrap();
        acknowledged.extend(lines.map(|line| (line[0].clone(), line[1].parse().unwrap())));
        child.wait().unwrap();

        let ledger = store.open(&format!("after {round}"));
        assert!(!acknowledged.is_empty());
        for (session, seq) in &acknowledged {
            assert!(length(&ledger, session).await >= *seq, "{session} lost event {seq}");
        }
        assert_eq!(verified(&ledger).await.unwrap().faults, []);
        // The child said that it would live for long. From the same machine it can be seen that it does not.
        let orphans = ledger.orphans(ms(1), 1_000).await.unwrap();
        for session in acknowledged.keys() {
            let session = session.as_str().into();
            assert_eq!(orphans.contains(&session), cfg!(target_os = "linux"));
            assert_eq!(ledger.take(&session, ms(1)).await.unwrap().is_some(), cfg!(target_os = "linux"));
        }
    }
}

async fn claim_all(ledger: &SqliteLedger, name: &str) {
    for n in 0..CLAIMS {
        match ledger.append(claiming(&format!("{name}-{n}"), 5, vec![take(&format!("n{n}"), name)])).await {
            Ok(_) => tell(&n.to_string()),
            Err(Error::Held(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn of_two_processes_one_gets_each_claim() {
    let store = Sqlite::new();
    let mut children: Vec<Child> =
        ["a", "b"].iter().map(|name| child(&store, "claim", name).spawn().unwrap()).collect();
    let mut won = BTreeSet::new();
    for child in &mut children {
        for line in lines(child) {
            assert!(won.insert(line[0].clone()), "{} was taken twice", line[0]);
        }
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(won.len(), CLAIMS);
    assert_eq!(verified(&store.open("after")).await.unwrap().faults, []);
}

/// Tells which questions it answered first and which letters it got. Begins when the other is there too.
async fn race(ledger: &SqliteLedger, name: &str) {
    tell("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    for n in 0..QUESTIONS {
        match ledger.answer_interaction(&format!("q{n}").as_str().into(), said("happened", name, 10)).await.unwrap() {
            AnswerFate::Taken => tell(&format!("answered q{n}")),
            AnswerFate::Late { by, .. } => assert_ne!(by, name),
            fate => panic!("{fate:?}"),
        }
        for (id, _) in ledger.collect(&["here".into()], ms(10), 1).await.unwrap() {
            tell(&format!("collected {id}"));
            assert!(ledger.reply_letter(id, name.into(), ms(11)).await.unwrap());
        }
    }
    while let [(id, _)] = &ledger.collect(&["here".into()], ms(10), 1).await.unwrap()[..] {
        tell(&format!("collected {id}"));
        assert!(ledger.reply_letter(*id, name.into(), ms(11)).await.unwrap());
    }
}

#[tokio::test]
async fn of_two_processes_one_answers_each_question_and_one_gets_each_letter() {
    let store = Sqlite::new();
    let ledger = store.open("parent");
    let questions = (0..QUESTIONS).map(|n| question(&format!("q{n}"), "s", 90)).collect();
    ledger.append(asking("s", questions)).await.unwrap();
    let mut letters = Vec::new();
    for n in 0..QUESTIONS {
        letters.push(ledger.post(letter((n % 2 == 0).then_some("here"), "x"), ms(5)).await.unwrap());
    }
    let racing = |name: &&str| child(&store, "race", name).stdin(Stdio::piped()).spawn().unwrap();
    let mut children: Vec<Child> = ["a", "b"].iter().map(racing).collect();
    let mut told: Vec<_> = children.iter_mut().map(lines).collect();
    for lines in &mut told {
        assert_eq!(lines.next().unwrap(), ["ready"]);
    }
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    let mut won: BTreeMap<Vec<String>, &str> = BTreeMap::new();
    for (lines, name) in told.into_iter().zip(["a", "b"]) {
        for line in lines {
            assert_eq!(won.insert(line.clone(), name), None, "{line:?} happened twice");
        }
    }
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(won.len(), 2 * QUESTIONS);
    for (_, id, answer) in ledger.answered(QUESTIONS).await.unwrap() {
        assert_eq!(won[&vec!["answered".to_owned(), id.to_string()]], answer.by);
    }
    for id in letters {
        let reply = ledger.letter(id).await.unwrap().unwrap().reply.unwrap();
        assert_eq!(reply, won[&vec!["collected".to_owned(), id.to_string()]]);
    }
}

async fn fill(ledger: &SqliteLedger) {
    let mut seq = ledger.append(open("s", 1, 0)).await.unwrap().seq;
    let long = "x".repeat(20_000);
    let mut is_full = false;
    for _ in 0..100_000 {
        match ledger.append(step("s", seq, seq, vec![note(&long)])).await {
            Ok(_) if is_full => {
                tell(&format!("again {}", seq + 1));
                return;
            }
            Ok(appended) => seq = appended.seq,
            Err(Error::Unavailable { .. }) if is_full => tokio::task::yield_now().await,
            Err(Error::Unavailable { .. }) => {
                is_full = true;
                tell(&format!("full {seq}"));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Files may grow to a limit only, which is as good as a full disk. The parent lifts it when the child says that it is full.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_unavailable_and_recovers_when_there_is_room() {
    let store = Sqlite::new();
    let inner = child(&store, "fill", "f");
    let mut command = Command::new("sh");
    // The signal that comes with the limit would end the process; a full disk sends none.
    command.args(["-c", "trap '' XFSZ; ulimit -S -f 4000; exec \"$0\" \"$@\""]).arg(inner.get_program());
    command.args(inner.get_args()).envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = lines(&mut child);
    let full = lines.next().unwrap();
    assert_eq!(full[0], "full");
    let lifted =
        Command::new("prlimit").args(["--pid", &child.id().to_string(), "--fsize=unlimited:"]).status().unwrap();
    assert!(lifted.success());
    let again = lines.next().unwrap();
    assert_eq!(again[0], "again");
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
    let ledger = store.open("after");
    assert_eq!(length(&ledger, "s").await.to_string(), again[1]);
    assert_eq!(verified(&ledger).await.unwrap().faults, []);
}
