//! The command line: one module for each command.

mod check;
mod checkpoint;
mod clients;
mod demo;
mod doctor;
mod drill;
mod export;
mod finding;
mod forget;
mod golden;
mod grants;
mod guard;
mod import;
mod init;
mod key;
mod ledger;
mod live;
mod machine;
mod manual;
mod outcome;
pub(crate) use outcome::print;
mod policy;
mod propose;
mod prove;
mod queue;
mod release;
mod reload;
mod remote;
mod replay;
mod reverse;
mod schema;
mod sessions;
mod shutdown;
mod stamp;
mod tools;
mod trace;
mod up;
pub(crate) use up::follow;
mod verify;
mod walk;
mod whatif;
mod wrap;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

pub use guard::stands_guard;

const EXAMPLES: &str = "\
Examples:
  amends up --demo                        a gateway, a shop that fails on cue, a ledger: all on 127.0.0.1:7070
  amends wrap -- npx some-mcp-server      the same server, with judged tool calls
  amends init -- npx some-mcp-server      a configuration to begin with, from what a server offers
  amends init --openapi shop.yaml         a configuration for an HTTP API
  amends check --config amends.toml       what a configuration means, and what it leaves open
  amends doctor                           what could go wrong on this machine
  amends machine graph order              a machine of the configuration, drawn
  amends machine test *.scenario.toml     whether walks through machines go as they are written
  amends policy test refunds.cases.toml   whether policies decide calls as it is written
  amends drill --config amends.toml       what each tool would do about every fault
  amends sessions                         what happened lately
  amends trace call_abc…                  one call's whole life
  amends walk ses_abc…                    where a walk through a machine is, and what may be done next
  amends replay call_abc…                 why it went so, and whether it would again
  amends whatif --playbook rules.toml     what changed rules would have done last week
  amends tools                            what each tool is pinned to, and which changed since
  amends queue                            what a person is asked
  amends answer int_abc… happened         say what became of a call in doubt
  amends answer int_abc… approve          let a call be sent that waits for a yes
  amends grants                           what people said yes to beforehand
  amends reverse rev_abc…                 undo a write with its token
  amends verify --anchor FILE             prove that nothing was changed, removed or cut off
  amends prove call_abc…                  a proof of one call that holds without the ledger
  amends export --output all.jsonl        every session, for another ledger
  amends forget ses_abc… --yes            drop what is known of a session

Exit codes: 0 it went well, 1 something is wrong with what was looked at, 2 the command could not do its work.";

/// Amends stands between an AI agent and its tools: every call gets one typed outcome, and a write never happens twice
/// because of us.
#[derive(Debug, Parser)]
#[command(name = "amends", version, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway with an embedded ledger; --demo adds a shop that fails on cue.
    Up(up::UpArgs),
    /// Run the gateway as a configuration file says.
    Serve(up::ServeArgs),
    /// Wrap one stdio MCP server; this is what goes into an MCP client's configuration.
    Wrap(wrap::WrapArgs),
    /// Write a configuration to begin with, from servers that run or that a client knows, or from the document of an HTTP API.
    Init(init::InitArgs),
    /// Validate a configuration and explain what it means.
    Check(check::CheckArgs),
    /// Look for trouble: the port, the upstreams, the clock, the disk, the ledger, the clients. It changes nothing.
    Doctor(doctor::DoctorArgs),
    /// Run every declared tool against every fault in a simulation, and say which promises would break.
    Drill(drill::DrillArgs),
    /// List the newest sessions.
    Sessions(sessions::SessionsArgs),
    /// Show where a walk through a machine is and what was done in it; follow one, or compare two.
    Walk(walk::WalkArgs),
    /// List the tools that were seen and what they are pinned to; show or approve what one became.
    Tools(tools::ToolsArgs),
    /// Draw machines, check them, and tell scenarios of them with faked tools.
    Machine(machine::MachineArgs),
    /// Print the schema that policies are checked by, and put cases to them.
    Policy(policy::PolicyArgs),
    /// Show a session's or a call's timeline.
    Trace(trace::TraceArgs),
    /// Decide a recorded session or call again, and compare.
    Replay(replay::ReplayArgs),
    /// Say what changed rules would have done to what happened.
    #[command(name = "whatif")]
    WhatIf(whatif::WhatIfArgs),
    /// Keep recorded calls as goldens, and tell them again.
    Golden(golden::GoldenArgs),
    /// Propose changed rules, with all that is needed to judge them.
    Propose(propose::ProposeArgs),
    /// Release proposed rules as a version.
    Release(release::ReleaseArgs),
    /// List the questions that wait for a person.
    Queue(queue::QueueArgs),
    /// Answer one of them; the first answer counts.
    Answer(queue::AnswerArgs),
    /// List what people said yes to beforehand, and take it back.
    Grants(grants::GrantsArgs),
    /// Undo a write with its token.
    Reverse(reverse::ReverseArgs),
    /// Undo a session's writes, newest first.
    Unwind(reverse::UnwindArgs),
    /// Recompute every chain, decide every session again, and compare both with what was signed.
    ///
    /// Exits with 0 where nothing is wrong, 1 where something is, and 2 where it could not look.
    Verify(verify::VerifyArgs),
    /// Write sessions as lines for another ledger, or their calls as a table.
    Export(export::ExportArgs),
    /// Take in the sessions of an export, with their chains as they were.
    Import(import::ImportArgs),
    /// Drop the events of a session for good.
    Forget(forget::ForgetArgs),
    /// Sign what the ledger has become, and print the checkpoint.
    Checkpoint(checkpoint::CheckpointArgs),
    /// Prove that an event is in the ledger as it was signed, or check such a proof without the ledger.
    Prove(prove::ProveArgs),
    /// Print the JSON Schema of the envelope, or the registry of codes.
    Schema(schema::SchemaArgs),
    /// Print what completes these commands in a shell.
    Completions(manual::CompletionsArgs),
    /// Print the manual page, or write one for each command.
    Man(manual::ManArgs),
    /// The demo shop: an MCP server whose tools fail on cue.
    #[command(hide = true)]
    Shop(crate::shop::ShopArgs),
}

/// Does what the command line says.
pub async fn run(cli: Cli) -> Result<ExitCode> {
    match cli.command {
        Command::Up(args) => up::up(args).await,
        Command::Serve(args) => up::serve(args).await,
        Command::Wrap(args) => wrap::wrap(args).await,
        Command::Init(args) => init::init(args).await,
        Command::Check(args) => check::check(args).await,
        Command::Doctor(args) => doctor::doctor(args).await,
        Command::Drill(args) => drill::drill(args).await,
        Command::Sessions(args) => sessions::sessions(args).await,
        Command::Walk(args) => walk::walk(args).await,
        Command::Tools(args) => tools::tools(args).await,
        Command::Machine(args) => machine::machine(&args),
        Command::Policy(args) => policy::policy(args).await,
        Command::Trace(args) => trace::trace(args).await,
        Command::Replay(args) => replay::replay(args).await,
        Command::WhatIf(args) => whatif::whatif(args).await,
        Command::Golden(args) => golden::golden(args).await,
        Command::Propose(args) => propose::propose(args).await,
        Command::Release(args) => release::release(&args),
        Command::Queue(args) => queue::queue(args).await,
        Command::Answer(args) => queue::answer(args).await,
        Command::Grants(args) => grants::grants(args).await,
        Command::Reverse(args) => reverse::reverse(args).await,
        Command::Unwind(args) => reverse::unwind(args).await,
        Command::Verify(args) => verify::verify(args).await,
        Command::Export(args) => export::export(args).await,
        Command::Import(args) => import::import(args).await,
        Command::Forget(args) => forget::forget(args).await,
        Command::Checkpoint(args) => checkpoint::checkpoint(args).await,
        Command::Prove(args) => prove::prove(args).await,
        Command::Schema(args) => schema::schema(args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
        Command::Shop(args) => crate::shop::run(args).await.map(|()| ExitCode::SUCCESS),
    }
}
