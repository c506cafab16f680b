//! The configuration: what was written, and what it means.

mod settle;
mod span;
pub mod spec;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use amends_core::contract::Contract;
use amends_core::playbook::{PlaybookError, PlaybookSpec};
use amends_core::{Playbook, UpstreamName};
use amends_wire::mcp::TranslateRule;
use thiserror::Error;

pub use settle::settle;
pub use span::Span;
pub use spec::Spec;

/// A configuration in which every key has its value and every rule is allowed.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the ledger is.
    pub ledger: LedgerPlace,
    /// Whether the file says so, rather than the default.
    pub ledger_named: bool,
    /// Whether a read may be answered before it is recorded.
    pub async_reads: bool,
    /// Where the doors listen.
    pub http: SocketAddr,
    /// The names by which the doors may be addressed, beside the loopback ones.
    pub hosts: Vec<String>,
    /// The upstreams, by name.
    pub upstreams: BTreeMap<UpstreamName, UpstreamConfig>,
    /// What was declared of tools, by their served names.
    pub tools: BTreeMap<String, ToolConfig>,
    /// The tools that other calls are based on.
    pub evidence_tools: BTreeSet<String>,
    /// For how long an answer that may not have arrived is given again.
    pub repeat_window: Duration,
    /// The bounds.
    pub limits: Limits,
}

/// Where a ledger is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerPlace {
    /// In this process, for tests.
    Memory,
    /// In a file.
    Sqlite(PathBuf),
}

/// One upstream.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// How it is reached.
    pub reach: Reach,
    /// What its tools' names begin with.
    pub prefix: String,
    /// Whether its own hints about its tools count.
    pub trust_hints: bool,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// How long an agent waits, over all attempts.
    pub deadline: Duration,
    /// The statuses whose word is taken that nothing was done.
    pub rejects_before_effect: Vec<u16>,
    /// Its own words for what we know.
    pub translate: Vec<TranslateRule>,
    /// How many calls it may have at once.
    pub concurrency: usize,
}

/// How an upstream is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A child process that speaks MCP on its standard input and output.
    Stdio {
        /// The command and its arguments.
        command: Vec<String>,
        /// What is added to its environment.
        env: BTreeMap<String, String>,
        /// Whether it gets our whole environment.
        inherit_env: bool,
    },
    /// An MCP server over HTTP.
    Http {
        /// Its endpoint.
        url: String,
    },
}

/// What was declared of one tool. It becomes a contract once the tool's upstream is known.
#[derive(Clone, Debug)]
pub struct ToolConfig {
    spec: spec::ToolSpec,
}

/// The bounds of what the doors take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest message an agent may send.
    pub body_bytes: usize,
    /// How deep its JSON may nest.
    pub depth: usize,
    /// The largest message an upstream may send.
    pub answer_bytes: usize,
    /// How many calls may be open at once.
    pub calls: usize,
}

/// Why a configuration was not taken.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read `{path}`")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not what it should be.
    #[error("{origin}:{line}: {reason}")]
    Malformed {
        /// The file, or what stands for it.
        origin: String,
        /// The line.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A value makes no sense.
    #[error("`{key}`: {reason}")]
    Invalid {
        /// The key.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A playbook was refused.
    #[error("`tools.{tool}.playbook`")]
    Playbook {
        /// The tool.
        tool: String,
        /// Why.
        source: PlaybookError,
    },
}

impl Config {
    /// Reads and settles a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        settle(Spec::parse(&text, &path.display().to_string())?)
    }

    /// Reads the configuration of a wrapped server, whose command is given elsewhere.
    pub fn load_wrap(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        let mut spec = Spec::parse(&text, &path.display().to_string())?;
        if let Some(wrapped) = spec.upstreams.get_mut("wrapped") {
            wrapped.command.get_or_insert_with(|| vec!["wrapped".into()]);
        }
        settle(spec)
    }

    /// The configuration without a file: one person, one machine.
    pub fn without_file() -> Self {
        settle(Spec::default()).expect("the defaults settle")
    }
}

impl UpstreamConfig {
    /// An upstream of which nothing was declared.
    pub fn undeclared() -> Self {
        settle::anywhere()
    }
}

impl ToolConfig {
    /// The contract of this tool at that upstream.
    pub fn contract(&self, tool: &str, upstream: &UpstreamConfig, repeat: Duration) -> Result<Contract, ConfigError> {
        settle::contract(tool, &self.spec, upstream, repeat)
    }

    /// The playbook of this tool, its own rules laid over the default.
    pub fn playbook(&self, tool: &str, contract: &Contract) -> Result<Playbook, ConfigError> {
        Playbook::parse(self.spec.playbook.as_ref().unwrap_or(&PlaybookSpec::new()), contract)
            .map_err(|source| ConfigError::Playbook { tool: tool.to_owned(), source })
    }
}
