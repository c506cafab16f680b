//! What verifying costs, and how a ledger grows: a ledger of plain writes is made and verified in this process.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::attempt::Payload;
use amends_core::{Call, Contract, Dispatcher, Effect, Gates, Input, Playbook, Report, Rules, Timestamp};
use amends_ledger::{
    Append, Ledger, Node, OpenWork, SqliteLedger, Verified, VerifyOptions, digest, rules_digest, verify,
};
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;

use crate::cpu::Cpu;

/// The flags of `amends-bench verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// How many calls the ledger has; each has six events.
    #[arg(long, default_value_t = 10_000)]
    calls: u64,
    /// How many calls a session has.
    #[arg(long, default_value_t = 1)]
    calls_per_session: u64,
    /// How often it is verified; the fastest counts.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// What was measured.
struct Measured {
    verified: Verified,
    cpu: Duration,
    wall: Duration,
    bytes: u64,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(args: &VerifyArgs) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("ledger.db");
    make(&file, args).await?;
    let mut best: Option<Measured> = None;
    for _ in 0..args.rounds.max(1) {
        let measured = measure(&file).await?;
        if best.as_ref().is_none_or(|best| measured.cpu < best.cpu) {
            best = Some(measured);
        }
    }
    let best = best.context("nothing was measured")?;
    ensure!(best.verified.faults.is_empty() && best.verified.undecidable == 0, "the ledger is not as it was made");
    print(args, &best);
    Ok(())
}

async fn measure(file: &Path) -> Result<Measured> {
    let ledger = open(file)?;
    // The first look opens the connection that reads.
    ledger.sessions(1).await?;
    let (before, began) = (Cpu::of(std::process::id()), Instant::now());
    let verified = verify(&ledger, VerifyOptions::default()).await?;
    let wall = began.elapsed();
    let cpu = Cpu::of(std::process::id()).since(&before);
    Ok(Measured { verified, cpu, wall, bytes: std::fs::metadata(file)?.len() })
}

#[expect(clippy::print_stdout, reason = "the measurement is what it is for")]
fn print(args: &VerifyArgs, measured: &Measured) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (events, cpu) = (measured.verified.events, ms(measured.cpu));
    let for_10k = cpu * 10_000.0 / events as f64;
    let bytes_per_call = measured.bytes / args.calls.max(1);
    if args.json {
        let report = json!({
            "events": events, "sessions": measured.verified.sessions, "cpu_ms": cpu, "wall_ms": ms(measured.wall),
            "cpu_ms_per_10000_events": for_10k, "bytes_per_call": bytes_per_call,
        });
        println!("{report}");
        return;
    }
    println!("{events} events in {} sessions, each decided again", measured.verified.sessions);
    println!("{cpu:.1} ms of processor time, {:.1} ms in all; {for_10k:.1} ms for 10,000 events", ms(measured.wall));
    println!("{bytes_per_call} bytes for a call in the ledger");
}

fn open(file: &Path) -> Result<SqliteLedger> {
    Ok(SqliteLedger::open(file, Node::this_process(60_000)?)?)
}

/// Makes a ledger whose calls are writes that were sent once and done.
async fn make(file: &Path, args: &VerifyArgs) -> Result<()> {
    let ledger = open(file)?;
    let rules =
        Arc::new(Rules { contract: Contract::undeclared(5_000, 50_000, 60_000), playbook: Playbook::default() });
    let hash = rules_digest(&rules);
    let mut commits = Vec::new();
    for session in 0..args.calls.div_ceil(args.calls_per_session.max(1)) {
        let name = format!("ses_{:024x}", session.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut dispatcher = Dispatcher::open(name.as_str().into(), session, "local".into(), "bench");
        let mut seq = 0;
        let first = session * args.calls_per_session;
        for number in first..(first + args.calls_per_session).min(args.calls) {
            let now = Timestamp::from_ms(1_700_000_000_000 + number * 10);
            let call = call(number, now, &rules);
            let id = call.id.clone();
            let received = dispatcher.handle(now, &Gates::default(), Input::Call(Box::new(call)));
            let sent = received.effects.iter().find_map(|effect| match effect {
                Effect::Send(attempt) => Some(attempt.id.clone()),
                _ => None,
            });
            let report = Box::new(done());
            let attempt = sent.context("nothing was sent")?;
            let ended = dispatcher.handle(now + 5, &Gates::default(), Input::Result { attempt, report });
            let delivered = dispatcher.handle(now + 6, &Gates::default(), Input::Delivery { call: id });
            for step in [received, ended, delivered] {
                let count = step.events.len() as u64;
                let append = Append {
                    rules: vec![(hash.clone(), rules.clone())],
                    open: OpenWork::default(),
                    ..Append::of(name.as_str().into(), 1, seq, step.events)
                };
                seq += count;
                commits.push(ledger.append_soon(append));
            }
        }
        // Not more at once than the writer's queue takes.
        if commits.len() > 10_000 {
            for commit in commits.drain(..) {
                commit.await?;
            }
        }
    }
    for commit in commits {
        commit.await?;
    }
    Ok(())
}

fn call(number: u64, now: Timestamp, rules: &Arc<Rules>) -> Call {
    Call {
        id: format!("call_{number:024x}").as_str().into(),
        tool: "issue_refund".into(),
        upstream: "shop".into(),
        rules: rules.clone(),
        rules_hash: rules_digest(rules),
        arguments: Payload { digest: digest(&number.to_be_bytes()), size: 64 },
        principal: "local".into(),
        deadline: now + 50_000,
        key: None,
        claims: Vec::new(),
        effect_key: format!("amends_{number:024x}"),
        repeat_of: None,
        evidence: Vec::new(),
        reversal: None,
        redeems: None,
        view: None,
        leg: None,
    }
}

fn done() -> Report {
    Report::success(Some(Payload { digest: digest(b"{}"), size: 2 }))
}
