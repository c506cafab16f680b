//! A bare forwarding proxy, the least that anything between an agent and an upstream can do: read the envelope, give the
//! request an id of its own, pass on the bytes. It judges nothing and remembers nothing.

pub(crate) mod child;
mod http;
mod pool;
mod stdio;

use std::net::SocketAddr;

use anyhow::{Result, bail};
use clap::Args;
use hyper::Uri;

/// The flags of `amends-bench proxy`.
#[derive(Debug, Args)]
pub(crate) struct ProxyArgs {
    /// Listen over HTTP.
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Listen on standard input.
    #[arg(long, conflicts_with = "http")]
    stdio: bool,
    /// The upstream behind an address.
    #[arg(long, value_name = "URL")]
    to: Option<Uri>,
    /// The upstream as a command.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(args: ProxyArgs) -> Result<()> {
    match (args.http, args.to, args.command) {
        (Some(address), Some(to), command) if command.is_empty() => http::serve(address, http::Upstream::at(&to)),
        (Some(address), None, command) if !command.is_empty() => http::serve_child(address, &command),
        (None, None, command) if args.stdio && !command.is_empty() => stdio::serve(&command),
        _ => bail!("it forwards `--http ADDR --to URL`, `--http ADDR -- COMMAND` or `--stdio -- COMMAND`"),
    }
}
