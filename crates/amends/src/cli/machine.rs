//! `amends machine`: draw a machine, check it, and tell scenarios of it.

mod check;
mod graph;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  amends machine graph order --config amends.toml            in lines of text
  amends machine graph order --config amends.toml --svg      as a picture; also --mermaid and --dot
  amends machine check amends.toml                           what is wrong with its machines, and what may surprise
  amends machine test refund.scenario.toml                   whether a walk goes as it is written

Exit codes: 0 all is well (warnings or not), 1 something is wrong with a machine or goes otherwise than written, 2 a file could
not be read.";

/// The flags of `amends machine`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct MachineArgs {
    #[command(subcommand)]
    command: MachineCommand,
}

#[derive(Debug, Subcommand)]
enum MachineCommand {
    /// Draw a machine.
    Graph(GraphArgs),
    /// Say what is wrong with the machines of a configuration, and what about them may surprise.
    Check(CheckArgs),
    /// Tell scenarios with faked tools, and compare.
    Test(TestArgs),
}

#[derive(Debug, Args)]
struct GraphArgs {
    /// The machine; that of a stage in which agents call tools is named `MACHINE.ACTION`. Without it, all that are declared.
    name: Option<String>,
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = "amends.toml")]
    config: PathBuf,
    /// As a Mermaid state diagram.
    #[arg(long, conflicts_with_all = ["dot", "svg"])]
    mermaid: bool,
    /// In the language of Graphviz.
    #[arg(long, conflicts_with = "svg")]
    dot: bool,
    /// As a picture.
    #[arg(long)]
    svg: bool,
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// The configuration file.
    file: PathBuf,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct TestArgs {
    /// The scenario files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn machine(args: &MachineArgs) -> Result<ExitCode> {
    match &args.command {
        MachineCommand::Graph(args) => graph::graph(args),
        MachineCommand::Check(args) => check::check(args),
        MachineCommand::Test(args) => test::test(args),
    }
}
