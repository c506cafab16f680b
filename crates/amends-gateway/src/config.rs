//! The configuration: what was written, and what it means.

mod a2a;
mod access;
mod account;
mod auth;
mod console;
mod cost;
mod fragment;
mod ledger;
mod machine;
mod misread;
mod needs;
mod people;
mod pii;
mod policy;
mod privacy;
mod question;
mod reach;
mod release;
mod restraint;
mod retry;
mod seal;
mod settle;
mod source;

pub mod spec;
mod unmeant;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use amends_core::contract::{Contract, StatusReader};
use amends_core::expression::Expression;
use amends_core::id::MachineName;
use amends_core::machine::Machines;
use amends_core::playbook::{Layers, PlaybookSpec, RefusedSection, Release, RetryLayer};
use amends_core::restraint::{BreakerRules, BudgetRules, Rate};
use amends_core::{Code, Digest, EffectKind, Playbook, Rules, UpstreamName};
use amends_wire::a2a::agent::LOOK;
use amends_wire::mcp::{Dialect, TranslateRule};
use thiserror::Error;

use crate::pin::PinMode;
use crate::policy::Policies;
use crate::router::Patterns;
use crate::telemetry::TelemetryConfig;
use crate::upstream::functions::Functions;
use crate::upstream::openapi::{Api, DocumentError};

pub use a2a::{A2aConfig, A2aSpec, TextReply, TextRule, TextSpec};
pub use access::{Access, CredentialConfig, CredentialSpec};
pub use account::{AccountConfig, By, SignInSpec};
pub use amends_core::span::Span;
pub(crate) use auth::is_here;
pub use auth::{AuthConfig, AuthSpec, OAuthConfig, OAuthSpec, ScopeSpec, TokenConfig, TokenSpec};
pub use console::{ConsoleConfig, OidcConfig, OidcSpec};
pub use cost::{CostConfig, CostSpec, ToolCostSpec};
pub use fragment::Fragment;
pub use ledger::{KeySource, LedgerConfig, LedgerPlace};
pub use machine::WrongMachines;
pub use misread::{Misread, Mistake};
pub use people::{ApprovalSpec, PeopleConfig, PeopleSpec, QueueConfig, QueueSpec, WebhookConfig};
pub(crate) use pii::withheld;
pub use pii::{ArgumentsRule, PiiConfig, PiiSpec, ResultsRule, Sieves};
pub use policy::{Allowlists, PolicySpec, PrincipalSpec};
pub use privacy::{FieldSpec, PrivacyConfig, PrivacySpec};
pub use question::{PEOPLE, QuestionSpec, SIGN_IN};
pub use release::Released;
pub use settle::settle;
pub use source::Source;
pub use spec::{AguiSpec, OnDisconnect, Spec};

/// A configuration in which every key has its value and every rule is allowed.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where what happened is kept.
    pub ledger: LedgerConfig,
    /// Where the doors listen.
    pub http: SocketAddr,
    /// The names by which the doors may be addressed, beside the loopback ones.
    pub hosts: Vec<String>,
    /// Where the token is that whoever reads the metrics must show; without one, only this machine reads them.
    pub metrics: Option<KeySource>,
    /// Whom the doors let in.
    pub auth: AuthConfig,
    /// The words in which our own answers are given, where a call does not say.
    pub dialect: Dialect,
    /// The upstreams, by name.
    pub upstreams: BTreeMap<UpstreamName, UpstreamConfig>,
    /// What was declared of tools, by their served names.
    pub tools: BTreeMap<String, ToolConfig>,
    /// The tools that other calls are based on.
    pub evidence_tools: BTreeSet<String>,
    /// The machines that are served, and what they use.
    pub machines: Machines,
    /// The digest of each of them, with all it uses.
    pub machine_digests: BTreeMap<MachineName, Digest>,
    /// The retry policies of the tools that have none of their own.
    pub retry: Arc<RetryLayer>,
    /// The released rules that are laid over the file's.
    pub release: Option<Released>,
    /// For how long an answer that may not have arrived is given again.
    pub repeat_window: Duration,
    /// The bounds.
    pub limits: Limits,
    /// How people are asked.
    pub people: PeopleConfig,
    /// What is masked before it is recorded.
    pub privacy: PrivacyConfig,
    /// What may not pass between agents and tools.
    pub pii: PiiConfig,
    /// The policies that decide each call; without any, every call is permitted.
    pub policies: Option<Arc<Policies>>,
    /// The tools that principals are limited to.
    pub allowlists: Allowlists,
    /// What calls cost, and how much may be spent.
    pub cost: CostConfig,
    /// Whether and where spans are exported.
    pub telemetry: TelemetryConfig,
    /// The pages at `/` and the API behind them.
    pub console: ConsoleConfig,
    /// What is served to agents that speak A2A.
    pub a2a: A2aConfig,
    /// The AG-UI door.
    pub agui: AguiSpec,
}

/// One upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamConfig {
    /// How it is reached.
    pub reach: Reach,
    /// What its tools' names begin with.
    pub prefix: String,
    /// Which of its tools are served.
    pub patterns: Patterns,
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
    /// How many more calls may wait for it.
    pub queue: usize,
    /// When its breakers open, and for how long.
    pub breaker: BreakerRules,
    /// How many retries it may cause.
    pub retry_budget: BudgetRules,
    /// What is done about a tool of it that is no longer what it was pinned to.
    pub pin: PinMode,
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
        /// The variables of ours that it gets beside those that every program needs.
        env_pass: Vec<String>,
        /// The folder it is started in, where that is not ours.
        cwd: Option<PathBuf>,
        /// Whether it gets our whole environment.
        inherit_env: bool,
    },
    /// An MCP server over HTTP.
    Http {
        /// Its endpoint.
        url: String,
        /// How it is spoken to.
        access: Access,
    },
    /// An HTTP API that a document describes.
    OpenApi(Box<ApiConfig>),
    /// An agent that speaks A2A.
    A2a {
        /// Its address, or that of its card.
        url: String,
        /// How it is spoken to.
        access: Access,
    },
    /// Rust functions in this process, which no file can declare.
    Functions(Functions),
}

/// An HTTP API that a document describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiConfig {
    /// What it offers.
    pub api: Arc<Api>,
    /// What its paths begin with: scheme, host and path.
    pub base_url: String,
    /// How it is spoken to.
    pub access: Access,
    /// The credentials of its security schemes, by the schemes' names.
    pub credentials: BTreeMap<String, CredentialConfig>,
    /// The header in which it is told how many milliseconds are left.
    pub deadline_header: Option<String>,
}

/// What was declared of one tool. It becomes a contract once the tool's upstream is known.
#[derive(Clone, Debug)]
pub struct ToolConfig {
    spec: spec::ToolSpec,
    shared: Arc<RetryLayer>,
    release: Option<Release>,
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
    /// How many of them may be one tenant's.
    pub tenant_calls: Option<usize>,
    /// How often one principal may call.
    pub rate: Option<Rate>,
    /// How often may be called in one session.
    pub session_rate: Option<Rate>,
    /// How long a walk in which nothing goes on is kept in memory, before it is only on the ledger.
    pub walk_idle: Duration,
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
    /// Some of it cannot be read.
    #[error(transparent)]
    Misread(Misread),
    /// A value makes no sense.
    #[error("`{key}`: {reason}")]
    Invalid {
        /// The key.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A document that describes an API was not taken.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A rule of a playbook, or a retry policy, was refused.
    #[error(transparent)]
    Playbook(#[from] RefusedSection),
    /// Machines were refused.
    #[error(transparent)]
    Machines(WrongMachines),
    /// Tools need each other in a circle.
    #[error("{}`{key}`: `{tool}` would need itself by way of `{}`", at(.place), .path.join("`, `"))]
    Cycle {
        /// The file, or what stands for it, and the line, where they are known.
        place: Option<(String, usize)>,
        /// The key that closes the circle.
        key: String,
        /// The tool.
        tool: String,
        /// The tools by way of which it would need itself.
        path: Vec<String>,
    },
}

fn at(place: &Option<(String, usize)>) -> String {
    place.as_ref().map(|(origin, line)| format!("{origin}:{line}: ")).unwrap_or_default()
}

impl ConfigError {
    /// What it is called in the registry.
    pub fn code(&self) -> Code {
        match self {
            Self::Cycle { .. } => Code::DependencyCycle,
            Self::Machines(wrong) => {
                wrong.errors().next().map_or(Code::ConfigSchemaViolation, |(_, finding)| finding.code)
            }
            Self::Unreadable { .. }
            | Self::Malformed { .. }
            | Self::Misread(_)
            | Self::Invalid { .. }
            | Self::Document(_)
            | Self::Playbook(_) => Code::ConfigSchemaViolation,
        }
    }

    /// The line it is about, where that is known.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Malformed { line, .. } => Some(*line),
            Self::Misread(misread) => misread.mistakes().first().map(|mistake| mistake.line),
            Self::Cycle { place, .. } => place.as_ref().map(|(_, line)| *line),
            Self::Machines(wrong) => wrong.errors().find_map(|(line, _)| line),
            Self::Unreadable { .. } | Self::Invalid { .. } | Self::Document(_) | Self::Playbook(_) => None,
        }
    }

    /// The key it is about, where it is about one.
    pub(super) fn key(&self) -> Option<String> {
        match self {
            Self::Invalid { key, .. } => Some(key.clone()),
            Self::Playbook(refused) => Some(refused.key()),
            Self::Cycle { key, .. } => Some(key.clone()),
            Self::Unreadable { .. }
            | Self::Malformed { .. }
            | Self::Misread(_)
            | Self::Document(_)
            | Self::Machines(_) => None,
        }
    }
}

impl Config {
    /// Reads and settles a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Source::read(path)?.settle()
    }

    /// Reads the configuration of a wrapped server, whose command is given elsewhere.
    pub fn load_wrap(path: &Path) -> Result<Self, ConfigError> {
        Source::read(path)?.settle_wrap()
    }

    /// The configuration without a file: one person, one machine.
    pub fn without_file() -> Self {
        settle(Spec::default()).expect("the defaults settle")
    }

    /// Whether a link to sign in at the console with is printed: there is no other way in.
    pub fn has_console_link(&self) -> bool {
        self.console.has_link() && !self.auth.is_asked_for()
    }

    /// The questions that people answer before the tool of that served name is called.
    pub fn asks(&self, tool: &str) -> &[String] {
        self.tools.get(tool).map_or(&[], |declared| &declared.spec.ask)
    }

    /// The playbook of a tool of which nothing was declared.
    pub fn undeclared_playbook(&self, tool: &str, contract: &Contract) -> Result<Playbook, ConfigError> {
        let (own, rules) = (RetryLayer::default(), PlaybookSpec::new());
        let playbook = Playbook::layered(Layers { tool, shared: &self.retry, own: &own, rules: &rules }, contract)?;
        Ok(playbook.released(self.release.as_ref().map(|released| released.release.clone())))
    }

    /// What governs the tool of that served name at that upstream. `hinted` is the effect that the upstream's own hints name;
    /// it counts where nobody declared the tool and the operator trusts the upstream.
    pub fn rules(&self, tool: &str, upstream: &UpstreamConfig, hinted: EffectKind) -> Result<Rules, ConfigError> {
        if let Some(declared) = self.tools.get(tool) {
            let contract = declared.contract(tool, upstream, self.repeat_window)?;
            let playbook = declared.playbook(tool, &contract)?;
            return Ok(Rules { contract, playbook });
        }
        let ms = settle::ms;
        let mut contract = Contract::undeclared(ms(upstream.timeout), ms(upstream.deadline), ms(self.repeat_window));
        contract.rejects_before_effect.clone_from(&upstream.rejects_before_effect);
        if upstream.trust_hints {
            contract.effect = hinted;
        }
        if let Some(reader) = upstream.status_reader(tool).filter(|_| contract.effect != EffectKind::Read) {
            contract.status = Some(reader);
        } else if upstream.is_look(tool) {
            contract.effect = EffectKind::Read;
        }
        let playbook = self.undeclared_playbook(tool, &contract)?;
        Ok(Rules { contract, playbook })
    }

    /// The same under released rules, which were laid over what was written before it was settled.
    fn released(mut self, release: Option<Released>) -> Self {
        for tool in self.tools.values_mut() {
            tool.release = release.as_ref().map(|released| released.release.clone());
        }
        Self { release, ..self }
    }
}

impl UpstreamConfig {
    /// An upstream of which nothing was declared.
    pub fn undeclared() -> Self {
        settle::anywhere()
    }

    /// Whether the tool of that served name is the one by which an agent's tasks are looked at.
    fn is_look(&self, tool: &str) -> bool {
        matches!(self.reach, Reach::A2a { .. }) && tool.strip_prefix(&self.prefix) == Some(LOOK)
    }

    /// What tells whether a call happened, where the upstream names its work: an agent's task is looked at.
    fn status_reader(&self, tool: &str) -> Option<StatusReader> {
        if !matches!(self.reach, Reach::A2a { .. }) || self.is_look(tool) {
            return None;
        }
        let expression = |text: &str| Expression::parse(text).expect("it is an expression");
        let args = BTreeMap::from([("id".to_owned(), expression("work")), ("wait".to_owned(), expression("true"))]);
        let happened = expression("has(result.happened) ? result.happened : null");
        Some(StatusReader { tool: format!("{}{LOOK}", self.prefix), args, happened, by_key: true })
    }

    /// What the document of an API promises of the tool of that served name, by its method, where its word counts; what we know
    /// of a tool of our own.
    pub fn promised(&self, tool: &str) -> Option<EffectKind> {
        if self.is_look(tool) {
            return Some(EffectKind::Read);
        }
        let Reach::OpenApi(config) = &self.reach else { return None };
        let operation = tool.strip_prefix(&self.prefix).filter(|_| self.trust_hints)?;
        config.api.effect(operation)
    }
}

impl ToolConfig {
    /// The contract of this tool at that upstream.
    pub fn contract(&self, tool: &str, upstream: &UpstreamConfig, repeat: Duration) -> Result<Contract, ConfigError> {
        settle::contract(tool, &self.spec, upstream, repeat)
    }

    /// What was written of it.
    pub fn spec(&self) -> &spec::ToolSpec {
        &self.spec
    }

    /// The playbook of this tool, its own rules and policies laid over the shared ones and the default.
    pub fn playbook(&self, tool: &str, contract: &Contract) -> Result<Playbook, ConfigError> {
        let own = self.spec.retry.layer();
        let none = PlaybookSpec::new();
        let rules = self.spec.playbook.as_ref().unwrap_or(&none);
        let playbook = Playbook::layered(Layers { tool, shared: &self.shared, own: &own, rules }, contract)?;
        Ok(playbook.released(self.release.clone()))
    }
}
