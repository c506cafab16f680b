//! Measures durable appends per second: `cargo run --release -p amends-ledger --example appends -- FOLDER`.
//!
//! Each producer waits for its step before it sends the next one, as a session does. A step has two events and one claim,
//! as a write's intent has.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::claim::{Claim, ClaimKind};
use amends_core::{ClaimChange, Event, Fact, SessionId, Timestamp};
use amends_ledger::{Append, Ledger, MemoryLedger, Node, OpenWork, SqliteLedger};

const LASTING: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let node = Node::this_process(60_000)?;
    let memory: Arc<dyn Ledger> = Arc::new(MemoryLedger::new(node.clone()));
    measure("memory", 1, memory).await;
    for producers in [1, 16, 64, 256] {
        let path = folder.join(format!("appends-{}-{producers}.db", std::process::id()));
        let ledger: Arc<dyn Ledger> = Arc::new(SqliteLedger::open(&path, node.clone())?);
        measure("sqlite", producers, ledger).await;
        std::fs::remove_file(&path)?;
    }
    Ok(())
}

async fn measure(store: &str, producers: u64, ledger: Arc<dyn Ledger>) {
    let (cpu, began) = (cpu_ms(), Instant::now());
    let mut running = tokio::task::JoinSet::new();
    for producer in 0..producers {
        let ledger = Arc::clone(&ledger);
        running.spawn(async move {
            let session = SessionId::new(format!("s-{producer:032x}"));
            let mut took = Vec::new();
            let mut seq = 0;
            while began.elapsed() < LASTING {
                let sent = Instant::now();
                let appended = ledger.append(step(&session, seq)).await.expect("the store is there");
                took.push(sent.elapsed());
                seq = appended.seq;
            }
            took
        });
    }
    let mut took: Vec<Duration> = running.join_all().await.concat();
    let lasted = began.elapsed();
    took.sort_unstable();
    let per_second = took.len() as f64 / lasted.as_secs_f64();
    let at = |share: f64| took[(took.len() as f64 * share) as usize].as_secs_f64() * 1e3;
    let cpu = (cpu_ms() - cpu) * 1e3 / took.len() as f64;
    println!(
        "{store}, {producers} producers: {per_second:.0} appends/s of 2 events, p50 {:.2} ms, p99 {:.2} ms, {cpu:.1} us CPU each",
        at(0.5),
        at(0.99),
    );
}

/// How much processor time the process has used, where Linux tells.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 10.0
}

fn step(session: &SessionId, seq: u64) -> Append {
    let at = Timestamp::from_ms(1_790_000_000_000 + seq);
    let call = format!("{session}-{seq}");
    let first = match seq {
        0 => Fact::SessionOpened { session: session.clone(), seed: 7, principal: "local".into(), door: "mcp".into() },
        _ => Fact::Ignored { why: "x".repeat(300) },
    };
    let second = Fact::InterimAnswered { call: call.as_str().into() };
    let claim =
        Claim { name: call.as_str().into(), fingerprint: "f".repeat(64).as_str().into(), kind: ClaimKind::Arguments };
    let take =
        ClaimChange::Take { claim, call: call.as_str().into(), effect_key: "k".repeat(32), since: at, over: None };
    let numbered = [first, second].into_iter().zip(seq + 1..);
    let events = numbered.map(|(fact, seq)| Event { v: 1, seq, at, fact }).collect();
    let open = OpenWork { calls: 1, due: Some(at) };
    Append { claims: vec![take], open, ..Append::of(session.clone(), 1, seq, events) }
}
