//! `amends init`: a configuration to begin with, from servers that run or that a client knows.

mod api;
mod mapping;
mod name;
mod next;
mod page;
mod proposal;
mod server;
mod toml_text;
mod tool;
mod words;

#[cfg(test)]
mod tests;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use amends_core::UpstreamName;
use amends_gateway::Config;
use amends_gateway::config::{Reach, Source as Text};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use super::clients::{ClientFile, ServerReach, referred};
use super::live::{self, Seen};
use super::outcome::print;
use api::Described;
use page::Part;
use server::Source;

const EXAMPLES: &str = "\
Examples:
  amends init -- npx -y some-mcp-server                start it, ask for its tools, write amends.toml
  amends init --url http://127.0.0.1:9000/mcp          the same for a server over HTTP
  amends init --client ~/.cursor/mcp.json              every server that a client knows, in one file
  amends init --client .vscode/mcp.json --out -        print it instead
  amends init --openapi shop.yaml                      the operations of an HTTP API, alone or beside servers

Servers are started and asked for their tools; no tool is called. What is proposed comes from their names, schemas and
hints. Nothing of it lets a write be sent twice: such lines are commented out, with the question to answer.
Values that look like secrets are not copied: the file names the variables that hold them.

Exit codes: 0 it was written, 1 it was written and a server did not answer, 2 nothing was written.";

/// The flags of `amends init`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct InitArgs {
    /// An MCP server over HTTP.
    #[arg(long, value_name = "URL")]
    url: Vec<String>,
    /// A client's configuration: JSON with `mcpServers`, `servers` or `context_servers`, or TOML with `mcp_servers`.
    #[arg(long, value_name = "FILE")]
    client: Vec<PathBuf>,
    /// The document of an HTTP API: OpenAPI 3.0 or 3.1, as JSON or YAML.
    #[arg(long, value_name = "FILE")]
    openapi: Vec<PathBuf>,
    /// Of the client's servers only this one.
    #[arg(long, value_name = "NAME", requires = "client")]
    only: Vec<String>,
    /// The upstream's name, where there is one server.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// A variable of the environment that the command needs.
    #[arg(long, value_name = "VARIABLE", requires = "command")]
    pass: Vec<String>,
    /// The file to write; `-` prints it.
    #[arg(long, value_name = "FILE", default_value = "amends.toml")]
    out: PathBuf,
    /// Write over a file that is there.
    #[arg(long)]
    force: bool,
    /// Take the servers' own word (`readOnlyHint`, `idempotentHint`) for what their tools do.
    #[arg(long)]
    trust_hints: bool,
    /// Do not start or ask the servers; no tool is then proposed.
    #[arg(long)]
    no_start: bool,
    /// How many seconds a server may take until it has listed its tools.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    /// A server's command and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) async fn init(args: InitArgs) -> Result<ExitCode> {
    let out = Some(args.out.as_path()).filter(|out| *out != Path::new("-"));
    if let Some(out) = out
        && out.exists()
        && !args.force
    {
        bail!("`{}` is there already; --force writes over it, --out names another file", out.display());
    }
    if let Some(name) = &args.name {
        ensure!(name::sound(name) == *name, "a name is made of at most 24 of `A-Za-z0-9_-`, and `{name}` is not");
    }
    let (sources, apis) = sources(&args)?;
    let described = apis.iter().map(|api| api.text(out)).collect::<Result<Vec<String>>>()?.join("\n");
    if sources.is_empty() {
        return of_apis(&described, out, args.force);
    }
    let alone = sources.len() == 1 && apis.is_empty();
    let mut parts: Vec<Part> = sources.into_iter().map(part).collect();
    for part in &mut parts {
        part.unfit = Text::of(part.section(alone), "its section").settle().err().map(|error| error.to_string());
    }
    if !args.no_start {
        look(&mut parts, alone, Duration::from_secs(args.wait)).await?;
    }
    let (text, tally) = page::page(&parts, alone, args.trust_hints);
    Text::of(text.clone(), "the proposed file").settle().context("this is a mistake of ours; nothing was written")?;
    let text = if apis.is_empty() { text } else { format!("{text}\n{described}") };
    match out {
        None => print(text.trim_end())?,
        Some(out) => write(out, &text, args.force)?,
    }
    eprint!("{}", next::words(out, &parts, &apis, tally));
    let silent = parts.iter().any(|part| part.unfit.is_some() || matches!(part.seen, Some(Seen::Down(_))));
    Ok(if silent { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn of_apis(text: &str, out: Option<&Path>, force: bool) -> Result<ExitCode> {
    match out {
        None => print(text.trim_end())?,
        Some(out) => {
            write(out, text, force)?;
            eprintln!("{} is written; `amends check --config {}` says what it means", out.display(), out.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The servers and the APIs that are meant, each under a name of its own.
fn sources(args: &InitArgs) -> Result<(Vec<Source>, Vec<Described>)> {
    let name = args.name.as_deref();
    let mut sources = Vec::new();
    if !args.command.is_empty() {
        sources.push(Source::typed(name, &args.command, &args.pass));
    }
    sources.extend(args.url.iter().map(|url| Source::at(name, url)));
    for file in &args.client {
        let known = ClientFile::read(file)?;
        for (skipped, reason) in &known.skipped {
            eprintln!("amends: `{skipped}` in {} is left out: {reason}", file.display());
        }
        let wanted = |server: &super::clients::Server| args.only.is_empty() || args.only.contains(&server.name);
        for server in known.servers.into_iter().filter(wanted) {
            if matches!(server.reach, ServerReach::Url { .. }) && server.is_through_us("127.0.0.1:7070") {
                eprintln!("amends: `{}` in {} is left out: it is our own door", server.name, file.display());
                continue;
            }
            sources.push(Source::of_client(server, file));
        }
    }
    let mut apis: Vec<Described> = args.openapi.iter().map(|document| Described::by(document, name)).collect();
    let count = sources.len() + apis.len();
    ensure!(count > 0, "there is no server to write a configuration for; see `amends init --help`");
    ensure!(name.is_none() || count == 1, "--name is for one server, and there are {count}");
    let names = sources.iter_mut().map(|source| &mut source.name).chain(apis.iter_mut().map(|api| &mut api.name));
    name::distinct(&mut names.collect::<Vec<_>>());
    Ok((sources, apis))
}

fn part(source: Source) -> Part {
    Part { written: source.write(), source, unfit: None, seen: None }
}

/// Starts or greets every server that can be an upstream, and asks for its tools.
async fn look(parts: &mut [Part], alone: bool, patience: Duration) -> Result<()> {
    let fit = parts.iter().filter(|part| part.unfit.is_none());
    let sections: String = fit.map(|part| part.section(alone)).collect();
    let mut config = Text::of(sections, "the upstreams").settle()?;
    for part in parts.iter() {
        equip(&mut config, &part.source);
    }
    let mut seen = live::look(config, patience).await?;
    for part in parts {
        part.seen = seen.remove(&part.source.name);
    }
    Ok(())
}

/// Gives a server, while it is looked at, what its client would give it. None of that is written.
fn equip(config: &mut Config, source: &Source) {
    let ServerReach::Command { command: whole, env: theirs, .. } = &source.reach else { return };
    let Some(upstream) = config.upstreams.get_mut(&UpstreamName::new(source.name.as_str())) else { return };
    if let Reach::Stdio { command, env, inherit_env, .. } = &mut upstream.reach {
        command.clone_from(whole);
        *inherit_env = source.typed;
        for (name, value) in theirs {
            let value = match referred(value) {
                Some(variable) => variable.and_then(|variable| std::env::var(variable).ok()),
                None => Some(value.clone()),
            };
            env.extend(value.map(|value| (name.clone(), value)));
        }
    }
}

fn write(out: &Path, text: &str, force: bool) -> Result<()> {
    let refused = || format!("cannot write `{}`", out.display());
    let mut options = OpenOptions::new();
    options.write(true);
    let options = if force { options.create(true).truncate(true) } else { options.create_new(true) };
    options.open(out).and_then(|mut file| file.write_all(text.as_bytes())).with_context(refused)
}
