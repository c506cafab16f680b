//! The demo shop: an MCP server whose tools fail on cue and whose book counts what really happened.
//!
//! A tool call becomes a `job::Job` when its arguments are checked, and a `visit::Visit` when it is
//! written into the book. The `script::Script` says which failure the visit meets, the
//! `clerk::Clerk` does the work or fails at it, and the `desk::Desk` speaks MCP around it, over
//! standard input and output or over HTTP.

mod answer;
mod book;
mod catalog;
mod clerk;
mod demo;
mod desk;
mod era;
pub(crate) mod fault;
mod http;
mod job;
mod problem;
mod progress;
mod rpc;
mod script;
mod statement;
mod stdio;
mod tool;
mod visit;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};

pub use demo::demo_faults;

use book::Book;
use clerk::Clerk;
use desk::Desk;
use script::Script;

/// What `amends shop` was asked to do.
#[derive(Debug, Args)]
pub struct ShopArgs {
    /// The SQLite file that remembers every request and every effect.
    #[arg(long, value_name = "FILE", default_value = "amends-shop.db", global = true)]
    book: PathBuf,

    /// A TOML file that says which requests fail, and how.
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,

    /// The failures of one tool in order, such as `charge_card=lose_response,ok`; `TOOL@ORDER=…` limits them to one order.
    #[arg(long = "fault", value_name = "TOOL=KIND[,KIND…]")]
    fault: Vec<String>,

    /// Fail the way the demo needs it, with order ids as cues.
    #[arg(long)]
    demo: bool,

    /// Listen for Streamable HTTP at `/mcp` on this address instead of standard input; port 0 picks a free one.
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,

    /// Answer error faults with HTTP statuses and problem details instead of tool results.
    #[arg(long, requires = "http")]
    http_faults: bool,

    /// How long `late` and `late_effect` take unless their fault says otherwise.
    #[arg(long, value_name = "N", default_value_t = 1500)]
    late_ms: u64,

    #[command(subcommand)]
    command: Option<ShopCommand>,
}

#[derive(Debug, Subcommand)]
enum ShopCommand {
    /// Print what the book holds: effects counted per tool, then every row.
    Book {
        /// Print JSON instead of text.
        #[arg(long)]
        json: bool,
    },
}

/// Serves the shop until the agent leaves, or prints its book.
pub async fn run(args: ShopArgs) -> Result<()> {
    if let Some(ShopCommand::Book { json }) = args.command {
        ensure!(args.book.exists(), "there is no book at `{}`", args.book.display());
        return statement::print(&open(&args.book)?, json);
    }
    let clerk = Clerk::new(open(&args.book)?, script(&args)?, Duration::from_millis(args.late_ms));
    let desk = Desk::new(Arc::new(clerk));
    match args.http {
        Some(address) => http::serve(desk, address, args.http_faults).await,
        None => stdio::serve(desk).await,
    }
}

fn open(path: &std::path::Path) -> Result<Book> {
    Book::open(path).with_context(|| format!("opening the book `{}`", path.display()))
}

/// The first matching fault wins, so the most deliberate source comes first: flags, file, demo.
fn script(args: &ShopArgs) -> Result<Script> {
    let mut script = Script::default();
    for flag in &args.fault {
        script.add_flag(flag).with_context(|| format!("reading `--fault {flag}`"))?;
    }
    if let Some(path) = &args.faults {
        let reading = || format!("reading the faults in `{}`", path.display());
        let text = std::fs::read_to_string(path).with_context(reading)?;
        script.add_toml(&text).with_context(reading)?;
    }
    if args.demo {
        script.add_toml(demo_faults()).context("reading the demo's faults")?;
    }
    Ok(script)
}
