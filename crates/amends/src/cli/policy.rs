//! `amends policy`: the schema that policies are checked by, and cases that say what they decide.

pub(super) mod known;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use amends_gateway::config::Source;
use amends_gateway::policy::schema;
use anyhow::Result;
use clap::{Args, Subcommand};

use super::outcome::print;

const EXAMPLES: &str = "\
Examples:
  amends policy schema --config amends.toml            the Cedar schema of the declared tools, for an editor or a validator
  amends policy schema --config amends.toml --live     the same with what each tool takes, as its upstream lists it
  amends policy test refunds.cases.toml                whether the policies decide as it is written
  amends check --config amends.toml --live             whether the policies fit the tools, with the line and the column

Exit codes: 0 all is well, 1 a case is decided otherwise than written, 2 a file could not be read.";

/// The flags of `amends policy`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Print the Cedar schema of the tools.
    Schema(SchemaArgs),
    /// Put cases to the policies, and compare.
    Test(TestArgs),
}

#[derive(Debug, Args)]
struct SchemaArgs {
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = "amends.toml")]
    config: PathBuf,
    /// Start the upstreams and ask for their tools. No tool is called.
    #[arg(long)]
    live: bool,
    /// With --live: how many seconds an upstream may take until it has listed its tools.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
}

#[derive(Debug, Args)]
struct TestArgs {
    /// The files with cases.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Start the upstreams and ask for their tools. No tool is called.
    #[arg(long)]
    live: bool,
    /// With --live: how many seconds an upstream may take until it has listed its tools.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
}

pub(super) async fn policy(args: PolicyArgs) -> Result<ExitCode> {
    match args.command {
        PolicyCommand::Schema(args) => {
            let config = Source::read(&args.config)?.settle_wrap()?;
            let tools = known::tools(&config, args.live.then_some(args.wait)).await?;
            print(schema(&tools).trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
        PolicyCommand::Test(args) => test::test(&args).await,
    }
}
