//! `amends wrap -- COMMAND…`: one stdio MCP server, wrapped.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use amends_core::UpstreamName;
use amends_gateway::config::{AuthConfig, LedgerConfig, LedgerPlace, Reach, UpstreamConfig};
use amends_gateway::upstream::Greeting;
use amends_gateway::{Config, Gateway, door, open_ledger};
use anyhow::Result;
use clap::Args;
use tokio::sync::mpsc;

use super::{guard, ledger, shutdown};

/// The flags of `amends wrap`.
#[derive(Debug, Args)]
pub(super) struct WrapArgs {
    /// What is declared of the server's tools; the server itself is `[upstreams.wrapped]`.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to keep what happened. The default is in the user's data folder.
    #[arg(long, value_name = "URL")]
    ledger: Option<String>,
    /// The server's command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) async fn wrap(args: WrapArgs) -> Result<ExitCode> {
    let mut config = match &args.config {
        Some(file) => Config::load_wrap(file)?,
        None => Config::without_file(),
    };
    config.ledger = match (&args.ledger, &args.config) {
        (Some(url), _) => LedgerConfig::at(ledger::parse(url)?),
        (None, Some(_)) if config.ledger.named => config.ledger,
        (None, _) => LedgerConfig::at(LedgerPlace::Sqlite(ledger::wrapped()?)),
    };
    let name = UpstreamName::new("wrapped");
    let mut wrapped = config.upstreams.remove(&name).unwrap_or_else(|| {
        // Nobody said how long its tools take, so one attempt may use all of the agent's patience.
        let undeclared = UpstreamConfig::undeclared();
        UpstreamConfig { timeout: undeclared.deadline, ..undeclared }
    });
    let (env, cwd) = match wrapped.reach {
        Reach::Stdio { env, cwd, .. } => (env, cwd),
        Reach::Http { .. } | Reach::OpenApi(_) | Reach::A2a { .. } | Reach::Functions(_) => (BTreeMap::new(), None),
    };
    wrapped.reach = Reach::Stdio { command: args.command, env, env_pass: Vec::new(), cwd, inherit_env: true };
    wrapped.prefix = String::new();
    config.upstreams = BTreeMap::from([(name, wrapped)]);
    // Whoever started us is who calls: nobody else is at the other end of a pipe.
    config.auth = AuthConfig::default();
    ledger::make_room(&config.ledger.place)?;
    guard::appoint();
    let ledger = open_ledger(&config.ledger).await?;
    let (unasked_to, unasked) = mpsc::unbounded_channel();
    let gateway = Gateway::start(config, ledger, Greeting::Forwarded, unasked_to).await?;
    let (input, output) = door::stdio::ends();
    // Among the calls that it hands over, and not beside them on the thread that the program began with.
    tokio::spawn(door::stdio::serve(gateway.clone(), input, output, unasked)).await?;
    gateway.stop_upstreams().await;
    shutdown::checkpoint(&gateway).await;
    // What is no pipe is read by a thread that only ends with the process.
    std::process::exit(0);
}
