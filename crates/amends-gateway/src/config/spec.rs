//! The configuration as it is written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use amends_core::machine::MachineSpec;
use amends_core::playbook::PlaybookSpec;
use amends_core::{Approval, EffectKind};
use amends_wire::mcp::Dialect;
use serde::Deserialize;

use super::account::SignInSpec;
use super::misread::{Misread, misread};
use super::release::PlaybookSectionSpec;
use super::retry::{SharedRetrySpec, ToolRetrySpec};
use super::unmeant::unmeant;
use super::{
    A2aSpec, ApprovalSpec, AuthSpec, ConfigError, CostSpec, CredentialSpec, FieldSpec, KeySource, OidcSpec, PeopleSpec,
    PiiSpec, PolicySpec, PrincipalSpec, PrivacySpec, QuestionSpec, QueueSpec, Source, Span, ToolCostSpec, machine,
};
use crate::pin::PinMode;

/// A configuration file as it is written. Every key may be left out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spec {
    /// Where what happened is kept.
    pub ledger: LedgerSpec,
    /// Where we listen.
    pub listen: ListenSpec,
    /// Whom the doors let in.
    pub auth: AuthSpec,
    /// Whom we call.
    pub upstreams: BTreeMap<String, UpstreamSpec>,
    /// What the operator declares of tools, by their served names.
    pub tools: BTreeMap<String, ToolSpec>,
    /// The machines that are served.
    pub machines: BTreeMap<String, MachineSpec>,
    /// How often failures are sent again, for every tool that says nothing nearer.
    pub retry: SharedRetrySpec,
    /// Which released rules are laid over these.
    pub playbook: PlaybookSectionSpec,
    /// How repeats are recognised.
    pub repeats: RepeatSpec,
    /// The bounds of what we take.
    pub limits: LimitSpec,
    /// How people are asked.
    pub people: PeopleSpec,
    /// The queues on which people find what they are asked, by their names.
    pub queues: BTreeMap<String, QueueSpec>,
    /// What people are asked for, by names of their own.
    pub questions: BTreeMap<String, QuestionSpec>,
    /// What is masked before it is recorded.
    pub privacy: PrivacySpec,
    /// What may not pass between agents and tools.
    pub pii: PiiSpec,
    /// The policies that decide each call.
    pub policy: PolicySpec,
    /// What is said of principals, by their names.
    pub principals: BTreeMap<String, PrincipalSpec>,
    /// Where traces for OpenTelemetry go.
    pub telemetry: TelemetrySpec,
    /// The pages at `/` and the API behind them.
    pub console: ConsoleSpec,
    /// What is served to agents that speak A2A.
    pub a2a: A2aSpec,
    /// The AG-UI door.
    pub agui: AguiSpec,
}

/// `[ledger]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LedgerSpec {
    /// `sqlite:FILE`, `postgres://…`, or `memory:` for tests. The default is `sqlite:amends.db`.
    pub url: Option<String>,
    /// `async` (the default): a read may be answered before it is recorded. `sync`: never.
    pub reads: Option<ReadsSpec>,
    /// The key that signs checkpoints: `{ file = "…" }` or `{ env = "…" }`. For SQLite the default is a file beside it.
    pub signing_key: Option<KeySource>,
    /// The key that seals payloads: `{ file = "…" }` or `{ env = "…" }`. For SQLite the default is a file beside it.
    pub sealing_key: Option<KeySource>,
    /// `refuse` (the default): where there is a sealing key, a payload that is not sealed is not taken. `take`: it is, for as long as
    /// payloads from before the key are kept.
    pub unsealed: Option<UnsealedSpec>,
    /// The file that checkpoints are appended to. For SQLite the default is a file beside it.
    pub anchor: Option<PathBuf>,
    /// How often a checkpoint is signed while something happens. The default is `60s`.
    pub checkpoint_every: Option<Span>,
    /// After which time without anything new a session's events are dropped. The default is never.
    pub retention: Option<Span>,
}

/// What becomes of a payload that is not sealed although there is a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnsealedSpec {
    /// It is not taken.
    Refuse,
    /// It is taken.
    Take,
}

/// When reads are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadsSpec {
    /// Within a bounded lag.
    Async,
    /// Before the answer.
    Sync,
}

/// `[telemetry]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetrySpec {
    /// The address of an OTLP collector over HTTP, such as `http://127.0.0.1:4318`. The default is
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` of the environment; where that is not set either, nothing is exported.
    pub otlp: Option<String>,
    /// The file of the only certificate authority that is believed, for an address with `https://`. The default is
    /// `OTEL_EXPORTER_OTLP_CERTIFICATE` of the environment, else whom the system believes.
    pub ca: Option<PathBuf>,
}

/// `[console]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsoleSpec {
    /// Whether there are pages at `/` and an API at `/api`. The default is `true`.
    pub enabled: Option<bool>,
    /// The token of an operator, and from where it is read: `{ env = "…" }` or `{ file = "…" }`. Without one, a link to sign in
    /// with is printed at the start.
    pub token: Option<KeySource>,
    /// The folder that proposals are written to. The default is `amends-proposals`.
    pub proposals: Option<PathBuf>,
    /// The issuer at which people sign in.
    pub oidc: Option<OidcSpec>,
}

/// `[agui]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AguiSpec {
    /// What becomes of a run whose client is gone: `cancel` (the default) stops it, as if the client had said so; `detach` stops reads
    /// and what was not sent, and lets a write go on.
    pub on_disconnect: OnDisconnect,
}

/// What becomes of a run whose client is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// It is stopped, down to the upstream's own cancel.
    #[default]
    Cancel,
    /// Reads and what was not sent are stopped; a write goes on, and its repeat finds the answer.
    Detach,
}

/// `[listen]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListenSpec {
    /// The address of the HTTP doors. The default is `127.0.0.1:7070`.
    pub http: Option<String>,
    /// Further names by which the doors may be addressed, for the checks of `Host` and `Origin`.
    pub hosts: Vec<String>,
    /// The token that whoever reads `/metrics` must show, and from where it is read: `{ env = "…" }` or `{ file = "…" }`. Without
    /// one, only whoever is on the same machine may read it.
    pub metrics: Option<KeySource>,
    /// The words in which our own answers are given: `amends` (the default), `schemabrain` or `theodosia`.
    pub dialect: Dialect,
}

/// `[upstreams.NAME]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpstreamSpec {
    /// The command of a stdio MCP server.
    pub command: Option<Vec<String>>,
    /// The endpoint of an MCP server over HTTP.
    pub url: Option<String>,
    /// The document of an HTTP API, OpenAPI 3.0 or 3.1: a file, as JSON or YAML.
    pub openapi: Option<PathBuf>,
    /// The address of an agent that speaks A2A, or of its card.
    pub a2a: Option<String>,
    /// What the API's paths begin with, where the document does not say or says otherwise.
    pub base_url: Option<String>,
    /// The headers of every request over HTTP, each read from where it is kept: `{ env = "…" }` or `{ file = "…" }`.
    pub headers: BTreeMap<String, CredentialSpec>,
    /// The account that a person signs in to, by whose token the upstream believes us.
    pub sign_in: Option<SignInSpec>,
    /// The credentials of the document's security schemes, by the schemes' names.
    pub credentials: BTreeMap<String, CredentialSpec>,
    /// The file of the only certificate authority that is believed. The default is whom the system believes.
    pub ca: Option<PathBuf>,
    /// The header in which an HTTP API is told how many milliseconds are left.
    pub deadline_header: Option<String>,
    /// What is added to the command's environment.
    pub env: BTreeMap<String, String>,
    /// The variables of our own environment that the command gets, beside those that every program needs.
    pub env_pass: Vec<String>,
    /// The folder the command is started in. The default is the one we were started in.
    pub cwd: Option<PathBuf>,
    /// What its tools' names begin with. The default is its name and two underscores.
    pub prefix: Option<String>,
    /// Which of its tools are served, by their names over there; `*` stands for anything. The default is all of them.
    pub expose: Vec<String>,
    /// Which of them are not.
    pub hide: Vec<String>,
    /// Whether its own hints about its tools count. The default is `false`; for an HTTP API, whose hints are its methods, `true`.
    pub trust_hints: Option<bool>,
    /// How long one attempt may take. The default is `10s`.
    pub timeout: Option<Span>,
    /// How long an agent waits, over all attempts. The default is `50s`.
    pub deadline: Option<Span>,
    /// The statuses whose word is taken that nothing was done.
    pub rejects_before_effect: Vec<u16>,
    /// Its own words for what we know; the first that matches counts.
    pub translate: Vec<TranslateSpec>,
    /// How many calls it may have at once. The default is 256.
    pub concurrency: Option<usize>,
    /// How many more calls may wait for it: for their turn, or for their next attempt. The default is 1024.
    pub queue: Option<usize>,
    /// When it is not called for a while.
    pub breaker: BreakerSpec,
    /// How many retries it may cause.
    pub retry_budget: BudgetSpec,
    /// What is done about a tool that is no longer what it was when it was first seen: `warn` (the default) or `refuse`.
    pub pin: PinMode,
}

/// `breaker = { failures = …, cool_down = …, cool_down_max = … }`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerSpec {
    /// How many failures in a row open it, 1 to 32. The default is 5.
    pub failures: Option<u32>,
    /// How long it stays open at first. The default is `5s`.
    pub cool_down: Option<Span>,
    /// How long it stays open at most. The default is `60s`.
    pub cool_down_max: Option<Span>,
}

/// `retry_budget = { tokens = …, per_success = … }`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSpec {
    /// How many tokens there are, 1 to 1000. Nothing is sent again unless more than half is left. The default is 10.
    pub tokens: Option<u32>,
    /// What a success gives back; a failure takes one. The default is 0.1.
    pub per_success: Option<f64>,
}

/// `[[upstreams.NAME.translate]]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TranslateSpec {
    /// A CEL expression over `result`, `raw`, `error` and `http`.
    pub when: String,
    /// The failure code it means.
    pub failure: String,
}

/// `[tools.NAME]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSpec {
    /// `read`, `idempotent`, `keyed` or `write`.
    pub effect: Option<EffectKind>,
    /// Where the idempotency key goes.
    pub key: Option<KeySpec>,
    /// The read tool that tells whether the effect happened.
    pub status: Option<StatusSpec>,
    /// How long a request that was sent can still take effect.
    pub settles_within: Option<Span>,
    /// A CEL expression that names what is written.
    pub object: Option<String>,
    /// How long one attempt may take.
    pub timeout: Option<Span>,
    /// How long an agent waits, over all attempts.
    pub deadline: Option<Span>,
    /// The statuses whose word is taken that nothing was done.
    pub rejects_before_effect: Option<Vec<u16>>,
    /// What is done about each verdict, where it differs from the default.
    pub playbook: Option<PlaybookSpec>,
    /// What its answers look like.
    pub answer: AnswerSpec,
    /// How often its failures are sent again.
    pub retry: ToolRetrySpec,
    /// The tool that undoes it.
    pub reverse: Option<ReverseSpec>,
    /// The reads its calls depend on.
    pub evidence: Vec<ReadingSpec>,
    /// Whether it is sent with the `ETag` of the first of those reads as its `If-Match`.
    pub if_match: bool,
    /// The queue its questions go to. The default is `default`.
    pub queue: Option<String>,
    /// Who must say yes before it is called: a queue, or `{ queue = …, persons = … }`. The default is nobody.
    pub approval: Option<ApprovalSpec>,
    /// The questions that people answer before it is called: names of `[questions]`. What they answer goes into its arguments.
    pub ask: Vec<String>,
    /// What a person is asked for, where the tool is a question itself.
    #[serde(skip)]
    pub question: Option<Box<Approval>>,
    /// How long a person has for an answer. The default is `24h`.
    pub answer_within: Option<Span>,
    /// How long an agent has for what the upstream asks of it. The default is `5m`.
    pub input_within: Option<Span>,
    /// Its private fields, beside those of `[privacy]`: `args.card`, `result.owner`.
    pub private: Vec<FieldSpec>,
    /// The categories of private data that it may be sent: `payment_card`, `credential`.
    pub takes: Vec<String>,
    /// The categories of private data that agents may get from it.
    pub gives: Vec<String>,
    /// What a call costs: a number, or a CEL expression over `args`. The default is nothing.
    pub cost: Option<ToolCostSpec>,
}

/// `reverse = { tool = …, args = …, within = … }`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReverseSpec {
    /// The tool, by its served name.
    pub tool: String,
    /// Its arguments: CEL expressions over `args` and `result`.
    #[serde(default)]
    pub args: BTreeMap<String, String>,
    /// For how long after its result the write can be undone. The default is `24h`.
    pub within: Option<Span>,
}

/// `evidence = [{ tool = …, args = … }]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadingSpec {
    /// The read tool, by its served name.
    pub tool: String,
    /// Its arguments: CEL expressions over `args`.
    #[serde(default)]
    pub args: BTreeMap<String, String>,
}

/// `key = { argument = …, window = … }`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeySpec {
    /// The argument it goes into.
    pub argument: Option<String>,
    /// The HTTP header it goes into.
    pub header: Option<String>,
    /// The field of `_meta` it goes into.
    pub meta: Option<String>,
    /// For how long the upstream remembers it. The default is `24h`.
    pub window: Option<Span>,
    /// Whether the upstream remembers it across its own restart.
    pub durable: bool,
}

/// `status = { tool = …, args = …, happened = … }`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusSpec {
    /// The read tool, by its served name.
    pub tool: String,
    /// Its arguments: CEL expressions over `args` and `key`.
    #[serde(default)]
    pub args: BTreeMap<String, String>,
    /// A CEL expression over `result` and `args` that says whether the effect happened.
    pub happened: String,
}

/// `[tools.NAME.answer]`: CEL expressions over `result` and `args`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerSpec {
    /// The list of rows, or their number; none of them makes the answer `empty`.
    pub rows: Option<String>,
    /// Whether the answer was cut; that makes it `partial`.
    pub truncated: Option<String>,
    /// The list of items that failed; any makes the answer `partial`.
    pub errors: Option<String>,
    /// Whether the answer is older than it should be; that makes it `degraded`.
    pub stale: Option<String>,
    /// How sure the tool is, from 0 to 1.
    pub confidence: Option<String>,
    /// Where the answer comes from: a list of names, or of objects with a `source`.
    pub provenance: Option<String>,
    /// One to three tools worth calling next.
    pub follow_up: Vec<String>,
}

/// `[repeats]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RepeatSpec {
    /// For how long an answer that may not have arrived is given again. The default is `10m`.
    pub window: Option<Span>,
}

/// `[limits]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSpec {
    /// The largest message an agent may send, in bytes. The default is 4 MiB.
    pub body_bytes: Option<usize>,
    /// How deep its JSON may nest. The default is 64.
    pub depth: Option<usize>,
    /// The largest message an upstream may send, in bytes. The default is 32 MiB.
    pub answer_bytes: Option<usize>,
    /// How many calls may be open at once. The default is 4096.
    pub calls: Option<usize>,
    /// How many of them may be one tenant's. There is no limit of its own by default.
    pub tenant_calls: Option<usize>,
    /// How often one principal may call. There is no limit by default.
    pub rate: Option<RateSpec>,
    /// How often may be called in one session. There is no limit by default.
    pub session_rate: Option<RateSpec>,
    /// How long a walk in which nothing goes on is kept in memory. The default is `60s`.
    pub walk_idle: Option<Span>,
    /// What calls may cost together.
    pub cost: CostSpec,
}

/// `rate = { per_second = …, burst = … }`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateSpec {
    /// Calls a second.
    pub per_second: f64,
    /// How many may come at once. The default is one second's worth.
    pub burst: Option<u64>,
}

impl Spec {
    /// Reads a configuration. `origin` stands for the file in what is said about it.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ConfigError> {
        let (mistakes, spec) = match toml::from_str::<Self>(text) {
            Ok(spec) => (unmeant(text), Some(spec)),
            Err(error) => misread(text, error),
        };
        match spec {
            Some(spec) if mistakes.is_empty() => Ok(spec),
            spec => {
                let wrong = spec.and_then(|spec| machine::beside(spec.machines, &mistakes));
                let wrong = wrong.map(|wrong| wrong.placed(&Source::of(text.to_owned(), origin)));
                Err(ConfigError::Misread(Misread::of(origin, mistakes).beside(wrong)))
            }
        }
    }

    /// The files that upstreams and doors name are beside the configuration, unless they say where they are.
    pub(super) fn look_beside(&mut self, folder: &Path) {
        if let Some(KeySource::File(file)) = &mut self.listen.metrics {
            *file = folder.join(&*file);
        }
        self.auth.look_beside(folder);
        self.console.look_beside(folder);
        if let Some(file) = &mut self.telemetry.ca {
            *file = folder.join(&*file);
        }
        self.policy.look_beside(folder);
        for upstream in self.upstreams.values_mut() {
            let credentials = upstream.headers.values_mut().chain(upstream.credentials.values_mut());
            let files = credentials.filter_map(|credential| credential.file.as_mut());
            for file in files.chain(&mut upstream.openapi).chain(&mut upstream.ca) {
                *file = folder.join(&*file);
            }
            if let Some(sign_in) = &mut upstream.sign_in {
                sign_in.look_beside(folder);
            }
        }
    }
}

/// Reads what is written, with the line of a mistake.
pub(super) fn parse<T: serde::de::DeserializeOwned>(text: &str, origin: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| ConfigError::Misread(Misread::of(origin, misread::<T>(text, error).0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_the_nearest_known_one() {
        let text = "[ledger]\nurl = \"memory:\"\n\n[tools.pay]\nefect = \"write\"\n";
        let refused = Spec::parse(text, "amends.toml").unwrap_err();
        assert_eq!(refused.to_string(), "amends.toml:5: unknown key `efect`; did you mean `effect`?");
    }
}
