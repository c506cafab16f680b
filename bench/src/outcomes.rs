//! What happens to many calls when some of them fail: for each contender, what its agents are told and what the shop really did.

mod agent;
mod book;
mod contender;
mod line;
mod report;
mod tally;
mod told;
mod wish;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::house;
use crate::subject::Subject;
use agent::Ending;
use book::Book;
use contender::Contender;
use line::Line;
use tally::Tally;
use wish::Wish;

/// How often the book is looked at while effects are still to come.
const SETTLE_EVERY: Duration = Duration::from_millis(200);
const SETTLE_LOOKS: usize = 100;

/// The flags of `amends-bench outcomes`.
#[derive(Debug, Args)]
pub(crate) struct OutcomesArgs {
    /// How many calls each contender makes; the gateways from elsewhere have a number of their own.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    calls: usize,
    /// How many calls the gateways from elsewhere make: the first so many of the same ones. 0 leaves them out.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    gateway_calls: usize,
    /// The same seed gives the same wishes and the same faults.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many agents call at once.
    #[arg(long, value_name = "N", default_value_t = 32)]
    callers: usize,
    /// How many agents call a gateway from elsewhere at once: few enough that its own slowness is no fault.
    #[arg(long, value_name = "N", default_value_t = 4)]
    gateway_callers: usize,
    /// Only the contenders whose name contains this; may be given several times.
    #[arg(long, value_name = "WORDS")]
    only: Vec<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Say also which faults went wrong.
    #[arg(long)]
    explain: bool,
    /// The binary of Amends, which is also the shop. The default is the one beside this binary, built anew by cargo if need be.
    #[arg(long, value_name = "FILE")]
    amends: Option<PathBuf>,
    /// Where `bench/gateways/setup.sh` has put the gateways from elsewhere.
    #[arg(long, value_name = "FOLDER", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench-gateways"))]
    gateways: PathBuf,
    /// Where the books and ledgers are kept while it runs. The default is beside this binary.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// What every contender needs.
#[derive(Debug)]
struct Place {
    amends: PathBuf,
    gateways: PathBuf,
    folder: TempDir,
}

/// Runs every contender, one after the other, and prints what happened.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(args: &OutcomesArgs) -> Result<()> {
    let own = std::env::current_exe()?;
    let beside = own.parent().context("this binary is in no folder")?;
    let amends = match &args.amends {
        Some(amends) => amends.clone(),
        None => house::build_amends(beside)?,
    };
    let within = args.folder.as_deref().unwrap_or(beside);
    let folder = tempfile::Builder::new().prefix("amends-outcomes-").tempdir_in(within)?;
    let place = Place { amends, gateways: std::path::absolute(&args.gateways)?, folder };
    let wishes = wish::wishes(args.seed, args.calls.max(args.gateway_calls));

    let mut rows = Vec::new();
    for contender in chosen(args, &place)? {
        let (calls, callers) = match contender.front.is_foreign() {
            true => (args.gateway_calls, args.gateway_callers),
            false => (args.calls, args.callers),
        };
        let tally = tokio::select! {
            tally = measure(&place, contender, &wishes[..calls], callers.max(1)) => tally,
            // Leaving in the ordinary way ends the processes and removes the books.
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        rows.push((contender, tally.with_context(|| format!("`{}`", contender.name))?));
    }
    report::print(args.seed, &rows, args.json, args.explain)
}

/// The contenders to run. A gateway that is not installed is left out, and that is said.
fn chosen(args: &OutcomesArgs, place: &Place) -> Result<Vec<Contender>> {
    let named = |contender: &Contender| {
        args.only.is_empty() || args.only.iter().any(|words| contender.name.contains(words.as_str()))
    };
    let mut chosen = Vec::new();
    for contender in Contender::ALL.into_iter().filter(named) {
        match contender.front.program(&place.gateways) {
            Some(_) if args.gateway_calls == 0 => {}
            Some(program) if !program.exists() => {
                eprintln!("`{}` is left out: bench/gateways/setup.sh installs it", contender.name);
            }
            _ => chosen.push(contender),
        }
    }
    ensure!(!chosen.is_empty(), "there is no such contender");
    Ok(chosen)
}

async fn measure(place: &Place, contender: Contender, wishes: &[Wish], callers: usize) -> Result<Tally> {
    let folder = tempfile::Builder::new().prefix("contender-").tempdir_in(place.folder.path())?;
    let book = folder.path().join("book.db");
    let shop = shop(&place.amends, folder.path(), &book, wishes)?;
    let gateway = contender.front.start(&place.amends, &place.gateways, folder.path(), &shop.address).await?;
    let address = gateway.as_ref().map_or(&shop.address, |gateway| &gateway.address);

    let mut lines = Vec::new();
    for _ in 0..callers {
        lines.push(Line::open(address, contender.patience()).await?);
    }
    let begun = Instant::now();
    let endings = call(contender, Arc::new(wishes.to_vec()), lines).await?;
    let took = begun.elapsed();

    let book = settled(&place.amends, &book).await?;
    Ok(Tally::of(wishes, &endings, &book, took))
}

/// Starts the shop with the faults of those wishes.
fn shop(amends: &Path, folder: &Path, book: &Path, wishes: &[Wish]) -> Result<Subject> {
    let faults = folder.join("faults.toml");
    std::fs::write(&faults, wish::script(wishes))?;
    let text = |path: &Path| path.to_str().map(str::to_owned).context("the folder's path is not UTF-8");
    let late = wish::LATE_MS.to_string();
    let arguments =
        ["shop", "--book", &text(book)?, "--faults", &text(&faults)?, "--http", "127.0.0.1:0", "--late-ms", &late];
    Subject::start(amends, &arguments)
}

/// Has every wish pursued by whichever agent is free.
async fn call(contender: Contender, wishes: Arc<Vec<Wish>>, lines: Vec<Line>) -> Result<Vec<Ending>> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut agents = JoinSet::new();
    for mut line in lines {
        let (next, wishes) = (Arc::clone(&next), Arc::clone(&wishes));
        agents.spawn(async move {
            let mut endings = Vec::new();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let Some(wish) = wishes.get(n) else {
                    return endings;
                };
                progress(contender.name, n, wishes.len());
                endings.push((n, contender.agent.pursue(wish, &mut line, contender.front.words()).await));
            }
        });
    }
    let mut endings: Vec<(usize, Ending)> = agents.join_all().await.into_iter().flatten().collect();
    progress(contender.name, wishes.len(), wishes.len());
    endings.sort_unstable_by_key(|(n, _)| *n);
    ensure!(endings.len() == wishes.len(), "not every wish came to an end");
    Ok(endings.into_iter().map(|(_, ending)| ending).collect())
}

/// Reads the book once nothing that was sent can still take effect.
async fn settled(amends: &Path, book: &Path) -> Result<Book> {
    tokio::time::sleep(Duration::from_millis(wish::LATE_MS)).await;
    for _ in 0..SETTLE_LOOKS {
        let read = Book::read(amends, book)?;
        if read.is_settled() {
            return Ok(read);
        }
        tokio::time::sleep(SETTLE_EVERY).await;
    }
    anyhow::bail!("an effect that was to come late did not come")
}

/// Says on a terminal how far it is.
fn progress(name: &str, done: usize, of: usize) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() && (done.is_multiple_of(50) || done == of) {
        let end = if done == of { "\r\x1b[K" } else { "" };
        let _ = write!(stderr, "\r{name}: {done} of {of}{end}");
    }
}
