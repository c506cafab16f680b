//! Everything that is measured, running at once: the echoes, the bare proxies, and Amends in each of its places.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::Measure;
use crate::caller::{self, Target};
use crate::commit::Commits;
use crate::cpu;
use crate::proxy::child::Child;
use crate::subject::Subject;

const READY_LOOKS: usize = 200;
const READY_EVERY: Duration = Duration::from_millis(50);

/// The way a call goes: what its agent speaks, and what its upstream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    HttpToHttp,
    HttpToStdio,
    StdioToStdio,
}

/// What stands between the agent and the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    Proxy,
    Rmcp,
    FastMcp,
    AmendsRead,
    AmendsWrite,
}

/// One thing to measure.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) route: Route,
    pub(crate) way: Way,
    pub(crate) target: Target,
    /// The process whose time is counted.
    pub(crate) subject: u32,
    /// The echo behind it; the same process where the call goes direct.
    pub(crate) echo: u32,
}

/// The processes and their folder. Dropping it ends them and removes the ledgers.
#[derive(Debug)]
pub(crate) struct House {
    _subjects: Vec<Subject>,
    folder: TempDir,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::HttpToHttp => "HTTP to HTTP",
            Self::HttpToStdio => "HTTP to stdio",
            Self::StdioToStdio => "stdio to stdio",
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Direct => "direct",
            Self::Proxy => "bare proxy",
            Self::Rmcp => "rmcp proxy",
            Self::FastMcp => "FastMCP proxy",
            Self::AmendsRead => "Amends, read",
            Self::AmendsWrite => "Amends, write",
        })
    }
}

impl Way {
    /// The tool that is called.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Direct | Self::Proxy | Self::Rmcp | Self::FastMcp | Self::AmendsRead => "echo_read",
            Self::AmendsWrite => "echo_write",
        }
    }
}

impl House {
    /// Starts everything and waits until it answers.
    pub(crate) async fn build(measure: &Measure) -> Result<(Self, Vec<Variant>)> {
        let own = std::env::current_exe()?;
        let beside = own.parent().context("this binary is in no folder")?;
        let amends = match &measure.amends {
            Some(amends) => amends.clone(),
            None => build_amends(beside)?,
        };
        let within = measure.folder.as_deref().unwrap_or(beside);
        let folder = tempfile::Builder::new().prefix("amends-bench-").tempdir_in(within)?;
        let own_text = own.to_str().context("this binary's path is not UTF-8")?;
        let at = ["--http", "127.0.0.1:0"];

        let mut variants = Vec::new();
        let http = |subject: &Subject| Target::Http { address: subject.address.clone(), stateless: measure.stateless };
        let echo = Subject::start(&own, &["echo", at[0], at[1]])?;
        let to = format!("http://{}/mcp", echo.address);
        let mut add = |route, way, target, subject, echo| variants.push(Variant { route, way, target, subject, echo });

        let proxy = Subject::start(&own, &["proxy", at[0], at[1], "--to", &to])?;
        let config = config(folder.path(), "http-http", &format!("[upstreams.echo]\nprefix = \"\"\nurl = \"{to}\"\n"))?;
        let serve = Subject::start(&amends, &["serve", "--config", &config])?;
        let route = Route::HttpToHttp;
        add(route, Way::Direct, http(&echo), echo.id(), echo.id());
        add(route, Way::Proxy, http(&proxy), proxy.id(), echo.id());
        let others = foreign(&measure.gateways, &to)?;
        for (way, other) in &others {
            add(route, *way, http(other), other.id(), echo.id());
        }
        add(route, Way::AmendsRead, http(&serve), serve.id(), echo.id());
        add(route, Way::AmendsWrite, http(&serve), serve.id(), echo.id());

        let proxy_child = Subject::start(&own, &["proxy", at[0], at[1], "--", own_text, "echo", "--stdio"])?;
        let upstream = format!("[upstreams.echo]\nprefix = \"\"\ncommand = [{own_text:?}, \"echo\", \"--stdio\"]\n");
        let config_child = self::config(folder.path(), "http-stdio", &upstream)?;
        let serve_child = Subject::start(&amends, &["serve", "--config", &config_child])?;
        let route = Route::HttpToStdio;
        let (behind_proxy, behind_serve) = (echo_of(proxy_child.id()).await?, echo_of(serve_child.id()).await?);
        add(route, Way::Proxy, http(&proxy_child), proxy_child.id(), behind_proxy);
        add(route, Way::AmendsRead, http(&serve_child), serve_child.id(), behind_serve);
        add(route, Way::AmendsWrite, http(&serve_child), serve_child.id(), behind_serve);

        let amends_text = amends.to_str().context("the path of Amends is not UTF-8")?;
        let config_wrap = self::config(folder.path(), "wrap", "")?;
        let direct = pipe(&[own_text, "echo", "--stdio"]).await?;
        let bare = pipe(&[own_text, "proxy", "--stdio", "--", own_text, "echo", "--stdio"]).await?;
        let wrap = pipe(&[amends_text, "wrap", "--config", &config_wrap, "--", own_text, "echo", "--stdio"]).await?;
        let route = Route::StdioToStdio;
        let id = |child: &Child| child.id().context("it ended at once");
        let (direct_id, bare_id, wrap_id) = (id(&direct)?, id(&bare)?, id(&wrap)?);
        let (behind_bare, behind_wrap) = (echo_of(bare_id).await?, echo_of(wrap_id).await?);
        add(route, Way::Direct, Target::Stdio(direct), direct_id, direct_id);
        add(route, Way::Proxy, Target::Stdio(bare), bare_id, behind_bare);
        add(route, Way::AmendsRead, Target::Stdio(Arc::clone(&wrap)), wrap_id, behind_wrap);
        add(route, Way::AmendsWrite, Target::Stdio(wrap), wrap_id, behind_wrap);

        if let Some(only) = &measure.only {
            variants.retain(|variant| format!("{}: {}", variant.route, variant.way).contains(only.as_str()));
            ensure!(!variants.is_empty(), "no variant's name contains `{only}`");
        }
        for variant in &variants {
            ready(variant).await?;
        }
        let mut subjects = vec![echo, proxy, serve, proxy_child, serve_child];
        subjects.extend(others.into_iter().map(|(_, other)| other));
        Ok((Self { _subjects: subjects, folder }, variants))
    }

    /// A ledger on the same disk, to measure commits alone.
    pub(crate) fn commits(&self) -> Result<Commits> {
        Commits::open(self.folder.path())
    }
}

/// Starts the proxies of others that `bench/gateways/setup.sh` has installed in that folder.
fn foreign(gateways: &Path, to: &str) -> Result<Vec<(Way, Subject)>> {
    let mut started = Vec::new();
    let rmcp = gateways.join("rmcp/bin/rmcp-proxy");
    let fastmcp = gateways.join("fastmcp/bin/python");
    if rmcp.exists() {
        started.push((Way::Rmcp, Subject::start(&rmcp, &[to])?));
    }
    if fastmcp.exists() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/gateways/fastmcp_proxy.py");
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
        started.push((Way::FastMcp, Subject::start(&fastmcp, &[script, to, &port])?));
    }
    if started.len() < 2 {
        eprintln!("not all proxies of others are in `{}`; bench/gateways/setup.sh installs them", gateways.display());
    }
    Ok(started)
}

/// Starts a command whose pipes the callers share.
async fn pipe(command: &[&str]) -> Result<Arc<Child>> {
    let command: Vec<String> = command.iter().map(|part| (*part).to_owned()).collect();
    let child = Child::start(&command)?;
    caller::greet(&child).await?;
    Ok(Arc::new(child))
}

/// Writes a configuration with a ledger of its own.
fn config(folder: &Path, name: &str, upstream: &str) -> Result<String> {
    let ledger = folder.join(format!("{name}.db"));
    let file = folder.join(format!("{name}.toml"));
    let text = format!(
        "[ledger]\nurl = \"sqlite:{}\"\n\n[listen]\nhttp = \"127.0.0.1:0\"\n\n{upstream}\n\
         [tools.echo_read]\neffect = \"read\"\n\n[tools.echo_write]\neffect = \"write\"\n",
        ledger.display()
    );
    std::fs::write(&file, text)?;
    file.into_os_string().into_string().map_err(|path| anyhow::anyhow!("{path:?} is not UTF-8"))
}

/// The echo that a process has started, once it has.
async fn echo_of(pid: u32) -> Result<u32> {
    for _ in 0..READY_LOOKS {
        if let Some(echo) = cpu::children(pid).into_iter().find(|child| cpu::is_called(*child, "echo")) {
            return Ok(echo);
        }
        tokio::time::sleep(READY_EVERY).await;
    }
    bail!("process {pid} has started no echo")
}

/// Waits until a variant answers.
async fn ready(variant: &Variant) -> Result<()> {
    let tool = variant.way.tool();
    let mut last = None;
    for _ in 0..READY_LOOKS {
        let answered = async { variant.target.connect(tool).await?.call(tool).await };
        match answered.await {
            Ok(()) => return Ok(()),
            Err(error) => last = Some(error),
        }
        tokio::time::sleep(READY_EVERY).await;
    }
    let last = last.unwrap_or_else(|| anyhow::anyhow!("it was never asked"));
    Err(last.context(format!("`{}: {}` does not answer", variant.route, variant.way)))
}

/// Builds the binary of Amends beside this one. Where that fails, the one that is there is measured.
pub(crate) fn build_amends(beside: &Path) -> Result<PathBuf> {
    let amends = beside.join(format!("amends{}", std::env::consts::EXE_SUFFIX));
    let target = beside.parent().context("this binary is in no target folder")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--package", "amends", "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    match built {
        Ok(status) if status.success() => {}
        _ if amends.exists() => eprintln!("amends could not be built; measuring `{}` as it is", amends.display()),
        _ => bail!("amends could not be built; name a binary with --amends"),
    }
    Ok(amends)
}
