//! `amends up` and `amends serve`: the gateway over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use amends_gateway::config::LedgerConfig;
use amends_gateway::upstream::{Greeting, Unasked};
use amends_gateway::{Config, Gateway, door, open_ledger};
use anyhow::{Context, Result};
use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::reload::Reloads;
use super::{demo, guard, ledger, shutdown};

/// The flags of `amends up`.
#[derive(Debug, Args)]
pub(super) struct UpArgs {
    /// Add a shop whose tools fail on cue, and say what to try.
    #[arg(long)]
    demo: bool,
    /// Where to listen.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Where to keep what happened, such as `sqlite:amends.db`.
    #[arg(long, value_name = "URL")]
    ledger: Option<String>,
    /// A configuration file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Do not look whether the configuration file changed; SIGHUP still has it read anew.
    #[arg(long, requires = "config")]
    no_watch: bool,
    /// With --demo: a fault script for the shop, instead of its own.
    #[arg(long, value_name = "FILE", requires = "demo")]
    faults: Option<PathBuf>,
    /// With --demo: the shop's book of effects.
    #[arg(long, value_name = "FILE", requires = "demo")]
    book: Option<PathBuf>,
}

/// The flags of `amends serve`.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Do not look whether the file changed; SIGHUP still has it read anew.
    #[arg(long)]
    no_watch: bool,
}

pub(super) async fn up(args: UpArgs) -> Result<ExitCode> {
    let (file, watch, demo) = (args.config.clone(), !args.no_watch, args.demo);
    let Some(file) = file else { return run(configured(&args)?, demo, None).await };
    let reloads = Reloads::of(file, watch, Box::new(move || configured(&args)));
    run(reloads.read()?, demo, Some(reloads)).await
}

/// What the file says, and what the command line says beside it.
fn configured(args: &UpArgs) -> Result<Config> {
    let mut config = match (&args.config, args.demo) {
        (Some(file), _) => Config::load(file)?,
        (None, true) => demo::config()?,
        (None, false) => Config::without_file(),
    };
    if args.demo {
        let book = args.book.clone().unwrap_or_else(|| "amends-shop.db".into());
        demo::add_shop(&mut config, &book, args.faults.as_deref())?;
    }
    if let Some(listen) = args.listen {
        config.http = listen;
    }
    if let Some(url) = &args.ledger {
        config.ledger = LedgerConfig::at(ledger::parse(url)?);
    }
    config.auth.may_listen(config.http)?;
    Ok(config)
}

pub(super) async fn serve(args: ServeArgs) -> Result<ExitCode> {
    let (file, watch) = (args.config.clone(), !args.no_watch);
    let read = move || -> Result<Config> {
        let config = Config::load(&args.config)?;
        config.auth.may_listen(config.http)?;
        Ok(config)
    };
    let reloads = Reloads::of(file, watch, Box::new(read));
    run(reloads.read()?, false, Some(reloads)).await
}

async fn run(mut config: Config, demo: bool, reloads: Option<Reloads>) -> Result<ExitCode> {
    guard::appoint();
    ledger::make_room(&config.ledger.place)?;
    let listener = TcpListener::bind(config.http)
        .await
        .with_context(|| format!("cannot listen on {}; choose another with --listen", config.http))?;
    let address = listener.local_addr()?;
    // Somebody may be sent to sign in before the door is open, and is led back to the port that was given.
    config.http = address;
    let ledger = open_ledger(&config.ledger).await?;
    let (unasked_to, unasked) = mpsc::unbounded_channel();
    let gateway = Gateway::start(config, ledger, Greeting::Ours, unasked_to).await?;
    let follower = tokio::spawn(follow(gateway.clone(), unasked));
    let door = tokio::spawn(door::http::serve(gateway.clone(), listener));
    let reloads = reloads.map(|reloads| reloads.start(gateway.clone()));
    eprintln!("amends listens on http://{address}; MCP is at http://{address}/mcp");
    let links = tokio::spawn(print_links(gateway.clone(), address));
    if demo {
        eprint!("{}", demo::lessons(address));
    }
    shutdown::asked().await?;
    gateway.end_runs().await;
    door.abort();
    links.abort();
    follower.abort();
    if let Some(reloads) = reloads {
        reloads.abort();
    }
    gateway.stop_upstreams().await;
    shutdown::checkpoint(&gateway).await;
    Ok(ExitCode::SUCCESS)
}

/// Prints the link to sign in at the console with, and another whenever one was used.
async fn print_links(gateway: std::sync::Arc<Gateway>, address: SocketAddr) {
    if !gateway.config().has_console_link() {
        return;
    }
    // Nobody opens an address that means every address.
    let shown = match address.ip().is_unspecified() {
        true => SocketAddr::new(std::net::Ipv4Addr::LOCALHOST.into(), address.port()),
        false => address,
    };
    let mut tokens = gateway.sign_in.tokens();
    loop {
        let token = tokens.borrow_and_update().clone();
        eprintln!("console: http://{shown}/?token={token}");
        if tokens.changed().await.is_err() {
            return;
        }
    }
}

/// Takes up what the upstreams ask of their own accord. We promised them nothing that they could ask of an agent.
pub(crate) async fn follow(
    gateway: std::sync::Arc<Gateway>,
    mut unasked: mpsc::UnboundedReceiver<(amends_core::UpstreamName, Unasked)>,
) {
    while let Some((name, unasked)) = unasked.recv().await {
        if let (Some(upstream), Unasked::Request { id, method, .. }) = (gateway.upstreams().get(&name), unasked) {
            upstream.refuse(&id, &method);
        }
    }
}
