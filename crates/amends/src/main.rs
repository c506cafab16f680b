//! The `amends` binary: reads the command line and starts what it names.

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "amends", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The demo shop: an MCP server whose tools fail on cue.
    Shop(amends::shop::ShopArgs),
}

#[tokio::main]
async fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Shop(args) => amends::shop::run(args).await,
    }
}
