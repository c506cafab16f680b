//! How many writes a second several gateways do that share one PostgreSQL, beside one gateway with its own SQLite file.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;
use tokio::task::JoinSet;

use crate::caller::{Caller, Target};
use crate::house::build_amends;
use crate::load::quantile;
use crate::subject::Subject;

/// The flags of `amends-bench nodes`.
#[derive(Debug, Args)]
pub(crate) struct NodesArgs {
    /// The PostgreSQL that the gateways share, such as `postgres://localhost/bench`. What is there is added to.
    #[arg(long, value_name = "URL")]
    postgres: String,
    /// The most gateways at once.
    #[arg(long, value_name = "N", default_value_t = 3)]
    nodes: usize,
    /// How many callers there are, over all gateways.
    #[arg(long, value_name = "N", default_value_t = 48)]
    callers: usize,
    /// How long each number of gateways is measured.
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    slice_ms: u64,
    /// The binary of Amends. The default is the one beside this binary, built anew by cargo if need be.
    #[arg(long, value_name = "FILE")]
    amends: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

const TOOL: &str = "echo_write";
const WARM_CALLS: usize = 3;
const READY_LOOKS: usize = 200;
const READY_EVERY: Duration = Duration::from_millis(50);

struct Measured {
    store: &'static str,
    nodes: usize,
    took: Vec<Duration>,
    lasted: Duration,
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(args: &NodesArgs) -> Result<()> {
    let own = std::env::current_exe()?;
    let beside = own.parent().context("this binary is in no folder")?;
    let amends = match &args.amends {
        Some(amends) => amends.clone(),
        None => build_amends(beside)?,
    };
    let folder = tempfile::Builder::new().prefix("amends-bench-").tempdir_in(beside)?;
    let echo = Subject::start(&own, &["echo", "--http", "127.0.0.1:0"])?;
    let lasting = Duration::from_millis(args.slice_ms);
    let sqlite = format!("sqlite:{}", folder.path().join("one.db").display());
    let config = config(folder.path(), "sqlite", &sqlite, &echo.address)?;
    let mut measured = vec![measure("SQLite", &amends, &config, 1, args.callers, lasting).await?];
    let config = self::config(folder.path(), "postgres", &args.postgres, &echo.address)?;
    for nodes in 1..=args.nodes {
        measured.push(measure("PostgreSQL", &amends, &config, nodes, args.callers, lasting).await?);
    }
    print(&measured, args);
    Ok(())
}

/// Writes a configuration with that ledger and the echo behind it.
fn config(folder: &Path, name: &str, ledger: &str, echo: &str) -> Result<String> {
    let file = folder.join(format!("{name}.toml"));
    let text = format!(
        "[ledger]\nurl = {ledger:?}\n\n[listen]\nhttp = \"127.0.0.1:0\"\n\n[upstreams.echo]\nprefix = \"\"\n\
         url = \"http://{echo}/mcp\"\n\n[tools.echo_write]\neffect = \"write\"\n"
    );
    std::fs::write(&file, text)?;
    file.into_os_string().into_string().map_err(|path| anyhow::anyhow!("{path:?} is not UTF-8"))
}

/// Starts so many gateways, spreads the callers over them, and ends the gateways.
async fn measure(
    store: &'static str,
    amends: &Path,
    config: &str,
    nodes: usize,
    callers: usize,
    lasting: Duration,
) -> Result<Measured> {
    let start = || Subject::start(amends, &["serve", "--config", config]);
    let gateways = (0..nodes).map(|_| start()).collect::<Result<Vec<_>>>()?;
    let target = |n: usize| Target::Http { address: gateways[n % nodes].address.clone(), stateless: true };
    for n in 0..nodes {
        ready(&target(n)).await?;
    }
    let mut connected = Vec::with_capacity(callers);
    for n in 0..callers {
        connected.push(target(n).connect(TOOL).await?);
    }
    let warm = |mut caller: Caller| async move {
        for _ in 0..WARM_CALLS {
            caller.call(TOOL).await?;
        }
        anyhow::Ok(caller)
    };
    let warmed: JoinSet<_> = connected.into_iter().map(warm).collect();
    let connected = warmed.join_all().await.into_iter().collect::<Result<Vec<_>>>()?;
    let began = Instant::now();
    let call = |mut caller: Caller| async move {
        let mut took = Vec::new();
        while began.elapsed() < lasting {
            let sent = Instant::now();
            caller.call(TOOL).await?;
            took.push(sent.elapsed());
        }
        anyhow::Ok(took)
    };
    let running: JoinSet<_> = connected.into_iter().map(call).collect();
    let mut took = running.join_all().await.into_iter().collect::<Result<Vec<_>>>()?.concat();
    took.sort_unstable();
    Ok(Measured { store, nodes, took, lasted: began.elapsed() })
}

/// Waits until a gateway serves the echo.
async fn ready(target: &Target) -> Result<()> {
    for _ in 0..READY_LOOKS {
        let answered = async { target.connect(TOOL).await?.call(TOOL).await };
        if answered.await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(READY_EVERY).await;
    }
    bail!("a gateway does not answer")
}

#[expect(clippy::print_stdout, reason = "the measurement is what it is for")]
fn print(measured: &[Measured], args: &NodesArgs) {
    if !args.json {
        println!("| ledger | gateways | writes/s | p50 ms | p99 ms |\n|---|---|---|---|---|");
    }
    for one in measured {
        let ms = |share| quantile(&one.took, share).as_secs_f64() * 1e3;
        let (rate, p50, p99) = (one.took.len() as f64 / one.lasted.as_secs_f64(), ms(0.5), ms(0.99));
        let (store, nodes) = (one.store, one.nodes);
        if args.json {
            let row = json!({ "ledger": store, "gateways": nodes, "writes_per_s": rate, "p50_ms": p50, "p99_ms": p99 });
            println!("{row}");
        } else {
            println!("| {store} | {nodes} | {rate:.0} | {p50:.1} | {p99:.1} |");
        }
    }
}
