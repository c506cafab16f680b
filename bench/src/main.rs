//! What one `tools/call` costs: direct, through a bare proxy, and through Amends, all in one run.

mod caller;
mod commit;
mod cpu;
mod echo;
mod house;
mod ledger;
mod line;
mod load;
mod machines;
mod nodes;
mod outcomes;
mod proxy;
mod report;
mod rounds;
mod rpc;
mod subject;
mod verify;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

/// Measures one `tools/call` direct, through a bare proxy, and through Amends.
#[derive(Debug, Parser)]
#[command(name = "amends-bench")]
struct Cli {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    measure: Measure,
}

/// The processes that are measured beside Amends, and the other thing that is measured.
#[derive(Debug, Subcommand)]
enum Part {
    /// A lean MCP server with the tools `echo_read` and `echo_write`.
    Echo(echo::EchoArgs),
    /// A bare forwarding proxy: it reads the envelope, gives each request an id of its own, and forwards the rest.
    Proxy(proxy::ProxyArgs),
    /// What happens to 10,000 calls, one in five of them faulty: with Amends, without, and behind other gateways.
    Outcomes(outcomes::OutcomesArgs),
    /// What a durable step costs: SQLite and PostgreSQL beside a bare file and beside one commit for each step.
    Ledger(ledger::LedgerArgs),
    /// What a step through a machine costs, beside Theodosia: over stdio and HTTP, with memory and the time to start.
    Machines(machines::MachinesArgs),
    /// How many writes a second several gateways do on one PostgreSQL, beside one on SQLite.
    Nodes(nodes::NodesArgs),
    /// What verifying a ledger costs, and how many bytes a call takes in it.
    Verify(verify::VerifyArgs),
}

/// The flags of a measurement.
#[derive(Debug, Args)]
struct Measure {
    /// About 20 seconds instead of about two minutes, and rougher.
    #[arg(long)]
    quick: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// The binary of Amends. The default is the one beside this binary, built anew by cargo if need be.
    #[arg(long, value_name = "FILE")]
    amends: Option<PathBuf>,
    /// Where the ledgers are kept while it runs. The default is beside this binary.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Where `bench/gateways/setup.sh` has put the proxies of others.
    #[arg(long, value_name = "FOLDER", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench-gateways"))]
    gateways: PathBuf,
    /// Each HTTP call stands alone, as in MCP 2026-07-28. The default is one session for each caller.
    #[arg(long)]
    stateless: bool,
    /// Only the variants whose name contains this.
    #[arg(long, value_name = "WORDS")]
    only: Option<String>,
    /// Only this many callers.
    #[arg(long, value_name = "N")]
    callers: Option<usize>,
    /// How many rounds.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// How long one variant is measured in one round, at most.
    #[arg(long, value_name = "MS")]
    slice_ms: Option<u64>,
}

impl Measure {
    fn plan(&self) -> rounds::Plan {
        let (rounds, slice_ms) = if self.quick { (3, 90) } else { (7, 400) };
        rounds::Plan {
            rounds: self.rounds.unwrap_or(rounds).max(1),
            slice: Duration::from_millis(self.slice_ms.unwrap_or(slice_ms)),
            callers: self.callers.map_or_else(|| vec![1, 16, 64], |callers| vec![callers.max(1)]),
        }
    }
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    match cli.part {
        Some(Part::Echo(args)) => echo::run(args),
        Some(Part::Proxy(args)) => proxy::run(args),
        Some(Part::Outcomes(args)) => outcomes::run(&args),
        Some(Part::Ledger(args)) => ledger::run(&args),
        Some(Part::Machines(args)) => machines::run(&args),
        Some(Part::Nodes(args)) => nodes::run(&args),
        Some(Part::Verify(args)) => verify::run(&args),
        None => measure(&cli.measure),
    }
}

/// On one thread: on a small machine every thread of the callers is one that the process under test does not get.
#[tokio::main(flavor = "current_thread")]
async fn measure(measure: &Measure) -> Result<()> {
    let plan = measure.plan();
    let (house, variants) = house::House::build(measure).await?;
    let measured = tokio::select! {
        measured = rounds::run(&plan, &house, &variants) => measured?,
        // Leaving in the ordinary way ends the processes and removes the ledgers.
        _ = tokio::signal::ctrl_c() => return Ok(()),
    };
    report::print(&plan, &measured, measure.json)
}
