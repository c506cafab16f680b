//! What a step through a machine costs: Amends beside Theodosia, the same order of work, the same client, taking turns.

mod order;
mod peer;
mod report;
mod start;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use tokio::task::JoinSet;

use crate::cpu::Cpu;
use crate::house::build_amends;
use crate::load::micros;
use order::Walker;
use peer::{Peer, Place, Server, Transport};
use start::Start;

/// The flags of `amends-bench machines`.
#[derive(Debug, Args)]
pub(crate) struct MachinesArgs {
    /// How many rounds.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// How long one server is measured in one round with one number of sessions.
    #[arg(long, value_name = "MS", default_value_t = 3_000)]
    slice_ms: u64,
    /// How often each server is started, to see how long that takes.
    #[arg(long, value_name = "N", default_value_t = 5)]
    starts: usize,
    /// Only the servers whose name contains this.
    #[arg(long, value_name = "WORDS")]
    only: Option<String>,
    /// Only over this: `stdio` or `HTTP`.
    #[arg(long, value_name = "TRANSPORT")]
    over: Option<String>,
    /// Only with so many sessions at once.
    #[arg(long, value_name = "N")]
    sessions: Option<usize>,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// The binary of Amends. The default is the one beside this binary, built anew by cargo if need be.
    #[arg(long, value_name = "FILE")]
    amends: Option<PathBuf>,
    /// Where the ledgers are kept while it runs. The default is beside this binary.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Where `bench/gateways/setup.sh` has put Theodosia.
    #[arg(long, value_name = "FOLDER", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench-gateways"))]
    gateways: PathBuf,
}

/// How many sessions walk at once.
const SESSIONS: [usize; 2] = [1, 16];

/// What one slice showed.
#[derive(Clone, Debug)]
struct Slice {
    /// What each step took, from the request to the answer, sorted.
    took: Vec<Duration>,
    per_second: f64,
    /// The processor time of the server for one step.
    cpu_us: f64,
}

/// One server with so many sessions, over all rounds.
#[derive(Debug)]
struct Cell {
    peer: Peer,
    transport: Transport,
    sessions: usize,
    slices: Vec<Slice>,
}

/// What all rounds showed.
#[derive(Debug)]
struct Measured {
    cells: Vec<Cell>,
    starts: Vec<Start>,
    /// The memory of each server after the load, in bytes.
    memory: Vec<(Peer, Transport, u64)>,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(args: &MachinesArgs) -> Result<()> {
    let own = std::env::current_exe()?;
    let beside = own.parent().context("this binary is in no folder")?;
    let amends = match &args.amends {
        Some(amends) => std::path::absolute(amends)?,
        None => build_amends(beside)?,
    };
    let within = args.folder.as_deref().unwrap_or(beside);
    let folder = tempfile::Builder::new().prefix("amends-machines-").tempdir_in(within)?;
    let place = Place { own, amends, gateways: std::path::absolute(&args.gateways)?, folder: folder.path().to_owned() };
    let measured = tokio::select! {
        measured = measure(args, &place) => measured?,
        // Leaving in the ordinary way ends the processes and removes the ledgers.
        _ = tokio::signal::ctrl_c() => return Ok(()),
    };
    report::print(&measured, args.json)
}

async fn measure(args: &MachinesArgs, place: &Place) -> Result<Measured> {
    let peers = chosen(args, place)?;
    let over = |transport: &Transport| args.over.as_ref().is_none_or(|only| transport.to_string() == *only);
    let transports: Vec<Transport> = Transport::ALL.into_iter().filter(over).collect();
    ensure!(!transports.is_empty(), "`--over` is `stdio` or `HTTP`");
    let starts = start::measure(place, &peers, &transports, args.starts).await?;
    let mut servers = Vec::new();
    for transport in transports {
        for peer in &peers {
            servers.push(Server::start(place, *peer, transport, &format!("{peer}-{transport}")).await?);
        }
    }
    let mut cells = Vec::new();
    let alone = args.sessions.map(|sessions| vec![sessions]);
    for sessions in alone.unwrap_or_else(|| SESSIONS.to_vec()) {
        for Server { peer, transport, .. } in &servers {
            cells.push(Cell { peer: *peer, transport: *transport, sessions, slices: Vec::new() });
        }
    }
    let lasting = Duration::from_millis(args.slice_ms);
    for round in 0..=args.rounds {
        // The first round warms up and does not count.
        let lasting = if round == 0 { lasting / 4 } else { lasting };
        for (cell, server) in cells.iter_mut().zip(servers.iter().cycle()) {
            let slice = slice(server, cell.sessions, lasting).await;
            let slice = slice.with_context(|| format!("{}, {}", server.peer, server.transport))?;
            if round > 0 {
                cell.slices.push(slice);
            }
        }
        if round > 0 {
            eprintln!("round {round} of {}", args.rounds);
        }
    }
    let memory = servers.iter().map(|server| (server.peer, server.transport, start::memory(server.id))).collect();
    Ok(Measured { cells, starts, memory })
}

/// The servers to run. One that is not installed is left out, and that is said.
fn chosen(args: &MachinesArgs, place: &Place) -> Result<Vec<Peer>> {
    let mut chosen = Vec::new();
    for peer in Peer::ALL {
        if args.only.as_ref().is_some_and(|only| !peer.to_string().contains(only.as_str())) {
            continue;
        }
        if peer.program(place).exists() {
            chosen.push(peer);
        } else {
            eprintln!("`{peer}` is left out: bench/gateways/setup.sh installs it");
        }
    }
    ensure!(!chosen.is_empty(), "there is nothing to measure");
    Ok(chosen)
}

/// So many sessions, each with orders of its own, until the time is over.
async fn slice(server: &Server, sessions: usize, lasting: Duration) -> Result<Slice> {
    let mut walkers = Vec::with_capacity(sessions);
    for _ in 0..sessions {
        walkers.push(Walker::begin(server).await?);
    }
    let before = Cpu::settled(server.id).await;
    let began = Instant::now();
    let mut running = JoinSet::new();
    for mut walker in walkers {
        running.spawn(async move {
            let mut took = Vec::new();
            while began.elapsed() < lasting {
                took.push(walker.advance().await?);
            }
            anyhow::Ok((took, walker))
        });
    }
    let ended = running.join_all().await.into_iter().collect::<Result<Vec<_>>>()?;
    let lasted = began.elapsed();
    // The sessions stay open until everything is counted.
    let (took, _walkers): (Vec<_>, Vec<_>) = ended.into_iter().unzip();
    let used = Cpu::settled(server.id).await.since(&before);
    let mut took = took.concat();
    ensure!(!took.is_empty(), "no step came to an end");
    took.sort_unstable();
    let steps = took.len() as f64;
    Ok(Slice { took, per_second: steps / lasted.as_secs_f64(), cpu_us: micros(used) / steps })
}
