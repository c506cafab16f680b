//! What a durable step costs on each store, beside a bare file and beside one commit for each step.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::SessionId;
use amends_ledger::{Ledger, Node, PostgresLedger, SqliteLedger};
use anyhow::Result;
use clap::Args;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::commit::step;
use crate::load::quantile;

/// The flags of `amends-bench ledger`.
#[derive(Debug, Args)]
pub(crate) struct LedgerArgs {
    /// A PostgreSQL to measure as well, such as `postgres://localhost/bench`. What is there is added to.
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// Where the files are kept while it runs.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    folder: std::path::PathBuf,
    /// How long each store is measured with each number of producers.
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    slice_ms: u64,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// How many producers wait for their steps at once.
const PRODUCERS: [usize; 3] = [1, 16, 64];

/// More handles of their own would be more connections than a PostgreSQL takes by default.
const HANDLES_MAX: usize = 16;

/// A step has two events.
const EVENTS: f64 = 2.0;

struct Measured {
    store: &'static str,
    producers: usize,
    took: Vec<Duration>,
    lasted: Duration,
}

#[tokio::main]
pub(crate) async fn run(args: &LedgerArgs) -> Result<()> {
    let folder = tempfile::tempdir_in(&args.folder)?;
    let lasting = Duration::from_millis(args.slice_ms);
    let mut measured = Vec::new();
    for producers in PRODUCERS {
        let file = BareFile::open(&folder.path().join(format!("bare-{producers}")))?;
        measured.push(bare(&file, producers, lasting).await?);
        let path = folder.path().join(format!("grouped-{producers}.db"));
        let grouped: Arc<dyn Ledger> = Arc::new(SqliteLedger::open(&path, node()?)?);
        measured.push(load("SQLite", &vec![grouped; producers], lasting).await?);
        if producers <= HANDLES_MAX {
            let path = folder.path().join(format!("single-{producers}.db"));
            let mut single: Vec<Arc<dyn Ledger>> = Vec::new();
            for _ in 0..producers {
                single.push(Arc::new(SqliteLedger::open(&path, node()?)?));
            }
            measured.push(load("SQLite, a commit for each step", &single, lasting).await?);
        }
        let Some(url) = &args.postgres else { continue };
        let grouped: Arc<dyn Ledger> = Arc::new(PostgresLedger::open(url, node()?).await?);
        measured.push(load("PostgreSQL", &vec![grouped; producers], lasting).await?);
        if producers <= HANDLES_MAX {
            let mut single: Vec<Arc<dyn Ledger>> = Vec::new();
            for _ in 0..producers {
                single.push(Arc::new(PostgresLedger::open(url, node()?).await?));
            }
            measured.push(load("PostgreSQL, a commit for each step", &single, lasting).await?);
        }
    }
    print(&measured, args.json);
    Ok(())
}

fn node() -> Result<Node> {
    Ok(Node::this_process(60_000)?)
}

/// One producer for each handle, each with a session of its own, waiting for every step.
async fn load(store: &'static str, handles: &[Arc<dyn Ledger>], lasting: Duration) -> Result<Measured> {
    let began = Instant::now();
    let run = std::process::id();
    let mut running = tokio::task::JoinSet::new();
    for (producer, ledger) in handles.iter().enumerate() {
        let ledger = Arc::clone(ledger);
        let stamp = began.elapsed().as_nanos();
        let name = format!("ses_{run:x}_{}_{producer:x}_{stamp:x}", store.len() * 1_000 + handles.len());
        let session = SessionId::new(name);
        running.spawn(async move {
            let (mut took, mut seq) = (Vec::new(), 0);
            while began.elapsed() < lasting {
                let sent = Instant::now();
                seq = ledger.append(step(&session, seq)).await?.seq;
                took.push(sent.elapsed());
            }
            Ok::<_, amends_ledger::Error>(took)
        });
    }
    let mut took = Vec::new();
    while let Some(joined) = running.join_next().await {
        took.extend(joined??);
    }
    took.sort_unstable();
    Ok(Measured { store, producers: handles.len(), took, lasted: began.elapsed() })
}

/// Bytes of about a step's size, and where it is told that they are on the disk.
type Line = (Vec<u8>, oneshot::Sender<()>);

/// A file that lines are appended to: everything that waits is written at once, and then the disk is waited for.
struct BareFile(mpsc::UnboundedSender<Line>);

impl BareFile {
    fn open(path: &Path) -> Result<Self> {
        let mut file = File::create(path)?;
        let (lines, mut queue) = mpsc::unbounded_channel::<Line>();
        std::thread::spawn(move || {
            while let Some((mut bytes, first)) = queue.blocking_recv() {
                let mut waiting = vec![first];
                while let Ok((more, next)) = queue.try_recv() {
                    bytes.extend(more);
                    waiting.push(next);
                }
                if file.write_all(&bytes).and_then(|()| file.sync_data()).is_err() {
                    return;
                }
                for told in waiting {
                    // Whoever waited may have left.
                    let _ = told.send(());
                }
            }
        });
        Ok(Self(lines))
    }
}

async fn bare(file: &BareFile, producers: usize, lasting: Duration) -> Result<Measured> {
    let began = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..producers {
        let lines = file.0.clone();
        running.spawn(async move {
            let mut took = Vec::new();
            while began.elapsed() < lasting {
                let sent = Instant::now();
                let (told, written) = oneshot::channel();
                if lines.send((vec![b'x'; 1_024], told)).is_err() || written.await.is_err() {
                    break;
                }
                took.push(sent.elapsed());
            }
            took
        });
    }
    let mut took: Vec<Duration> = running.join_all().await.concat();
    took.sort_unstable();
    Ok(Measured { store: "a file and fdatasync", producers, took, lasted: began.elapsed() })
}

#[expect(clippy::print_stdout, reason = "the measurement is what it is for")]
fn print(measured: &[Measured], as_json: bool) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    if !as_json {
        println!("| store | producers | events/s | p50 ms | p99 ms | of the file |\n|---|---|---|---|---|---|");
    }
    for one in measured {
        let per_second = |one: &Measured| one.took.len() as f64 * EVENTS / one.lasted.as_secs_f64();
        let bare = measured.iter().find(|bare| bare.producers == one.producers).map_or(f64::NAN, per_second);
        let (rate, p50, p99) = (per_second(one), ms(quantile(&one.took, 0.5)), ms(quantile(&one.took, 0.99)));
        if as_json {
            println!(
                "{}",
                json!({ "store": one.store, "producers": one.producers, "events_per_s": rate, "p50_ms": p50, "p99_ms": p99 })
            );
        } else {
            let share = rate / bare;
            println!("| {} | {} | {rate:.0} | {p50:.2} | {p99:.2} | {share:.2} |", one.store, one.producers);
        }
    }
}
