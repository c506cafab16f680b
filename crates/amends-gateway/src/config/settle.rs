//! From what was written to what it means.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use amends_core::contract::{AnswerShape, Contract, KeyPlace, Place, Reading, Reverse, StatusReader};
use amends_core::expression::Expression;
use amends_core::limits::{ANSWER_WITHIN_MS, EVIDENCE_MAX, EXPRESSION_BYTES_MAX, FOLLOW_UPS_MAX, INPUT_WITHIN_MS};
use amends_core::nearest::nearest;
use amends_core::restraint::{BreakerRules, BudgetRules};
use amends_core::{Code, EffectKind, UpstreamName};
use amends_wire::mcp::TranslateRule;

use super::question::Questions;
use super::spec::{
    AnswerSpec, KeySpec, ReadingSpec, ReverseSpec, Spec, StatusSpec, TelemetrySpec, ToolSpec, TranslateSpec,
    UpstreamSpec,
};
use super::{
    A2aConfig, Access, Allowlists, AuthConfig, Config, ConfigError, ConsoleConfig, CostConfig, LedgerConfig, Limits,
    PiiConfig, PrivacyConfig, Reach, Span, ToolConfig, UpstreamConfig,
};
use super::{PeopleConfig, machine, needs, people, reach, restraint};
use crate::pin::PinMode;
use crate::router::Patterns;
use crate::telemetry::{TelemetryConfig, traces_address};

const TIMEOUT: Duration = Duration::from_secs(10);
const DEADLINE: Duration = Duration::from_secs(50);
/// An agent takes longer than a tool.
const AGENT_TIMEOUT: Duration = Duration::from_secs(120);
const AGENT_DEADLINE: Duration = Duration::from_secs(300);
const REPEAT_WINDOW: Duration = Duration::from_secs(10 * 60);
/// For how long what a person answered is given again, where it may not have led to anything.
const ANSWERED_KEPT: Duration = Duration::from_secs(24 * 60 * 60);
const WALK_IDLE: Duration = Duration::from_secs(60);
const CONCURRENCY: usize = 256;
const QUEUE: usize = 1024;
/// A prefix leaves room for the name behind it.
const PREFIX_MAX: usize = 40;
const REVERSE_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);
const KEY_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);

/// Settles a configuration: every key gets its value, every rule is checked.
pub fn settle(spec: Spec) -> Result<Config, ConfigError> {
    let mut upstreams = BTreeMap::new();
    for (name, upstream) in &spec.upstreams {
        upstreams.insert(UpstreamName::new(name.as_str()), self::upstream(name, upstream)?);
    }
    let repeat_window = spec.repeats.window.map_or(REPEAT_WINDOW, |span| span.0);
    let retry = Arc::new(spec.retry.layer());
    let privacy = PrivacyConfig::settle(&spec.privacy, &spec.tools)?;
    let pii = PiiConfig::settle(&spec.pii, &spec.privacy, &spec.tools)?;
    let cost = CostConfig::settle(&spec.limits.cost, &spec.tools)?;
    let questions = Questions::settle(spec.questions, &spec.tools, &upstreams)?;
    upstreams.extend(questions.upstream);
    let mut tools = BTreeMap::new();
    let mut evidence_tools = BTreeSet::new();
    let mut needed = BTreeMap::new();
    for (name, tool) in spec.tools.into_iter().chain(questions.tools) {
        let config = ToolConfig { spec: tool, shared: retry.clone(), release: None };
        // Checked here against any upstream at all, so that a mistake is found before the tool is ever listed.
        let contract = config.contract(&name, &anywhere(), repeat_window)?;
        config.playbook(&name, &contract)?;
        needed.insert(name.clone(), needs::of(&contract));
        evidence_tools.extend(contract.evidence.into_iter().map(|reading| reading.tool));
        tools.insert(name, config);
    }
    needs::check(&needed, &tools)?;
    let http = spec.listen.http.as_deref().unwrap_or("127.0.0.1:7070");
    let machines = machine::settle(spec.machines, |tool| machine::facts(&tools, &upstreams, tool.as_str()))?;
    let config = Config {
        ledger: LedgerConfig::settle(spec.ledger)?,
        http: http.parse().map_err(|_| invalid("listen.http", format!("`{http}` is not an address and port")))?,
        hosts: spec.listen.hosts,
        metrics: spec.listen.metrics,
        auth: AuthConfig::settle(spec.auth)?,
        dialect: spec.listen.dialect,
        upstreams,
        tools,
        evidence_tools,
        machine_digests: machine::digests(&machines),
        machines,
        retry,
        release: None,
        repeat_window,
        limits: Limits {
            body_bytes: spec.limits.body_bytes.unwrap_or(4 << 20),
            depth: spec.limits.depth.unwrap_or(64),
            answer_bytes: spec.limits.answer_bytes.unwrap_or(32 << 20),
            calls: spec.limits.calls.unwrap_or(4096),
            tenant_calls: spec.limits.tenant_calls,
            rate: spec.limits.rate.as_ref().map(|rate| restraint::rate("limits.rate", rate)).transpose()?,
            session_rate: spec
                .limits
                .session_rate
                .as_ref()
                .map(|rate| restraint::rate("limits.session_rate", rate))
                .transpose()?,
            walk_idle: spec.limits.walk_idle.map_or(WALK_IDLE, |span| span.0),
        },
        people: PeopleConfig::settle(&spec.people, spec.queues)?,
        privacy,
        pii,
        policies: spec.policy.settle(&spec.principals)?,
        allowlists: Allowlists::settle(&spec.principals)?,
        cost,
        telemetry: telemetry(&spec.telemetry)?,
        console: ConsoleConfig::settle(spec.console)?,
        a2a: A2aConfig::settle(spec.a2a)?,
        agui: spec.agui,
    };
    config.undeclared_playbook("", &Contract::undeclared(0, 0, 0))?;
    machine::fit(&config)?;
    Ok(config)
}

/// The contract of a tool at an upstream.
pub(super) fn contract(
    tool: &str,
    spec: &ToolSpec,
    upstream: &UpstreamConfig,
    repeat_window: Duration,
) -> Result<Contract, ConfigError> {
    let key = |part: &str| format!("tools.{tool}.{part}");
    let effect = spec.effect.or_else(|| upstream.promised(tool)).unwrap_or_default();
    let agent = matches!(upstream.reach, Reach::A2a { .. });
    let place = spec.key.as_ref().map(|spec| key_place(&key("key"), spec)).transpose()?;
    if effect == EffectKind::Keyed && place.is_none() {
        return Err(invalid(&key("key"), "a keyed tool says where its key goes: `key = { argument = … }`".into()));
    }
    if effect == EffectKind::Read && spec.reverse.is_some() {
        return Err(invalid(&key("reverse"), "a read has no effect that could be undone".into()));
    }
    if effect == EffectKind::Read && spec.status.is_some() {
        return Err(invalid(&key("status"), "a read has no effect whose status could be read".into()));
    }
    if spec.if_match && spec.evidence.is_empty() {
        return Err(invalid(&key("if_match"), "needs `evidence`: the read whose `ETag` is sent".into()));
    }
    Ok(Contract {
        effect,
        declared: true,
        key: place.filter(|_| effect == EffectKind::Keyed),
        status: match &spec.status {
            Some(status) => Some(self::status(&key("status"), status)?),
            None => upstream.status_reader(tool).filter(|_| effect != EffectKind::Read),
        },
        // That an agent's task did not end well proves nothing, however long one waits.
        settles_within_ms: spec.settles_within.filter(|_| spec.status.is_some() || !agent).map(|span| ms(span.0)),
        object: spec.object.as_deref().map(|text| expression(&key("object"), text)).transpose()?,
        timeout_ms: ms(some_time(&key("timeout"), spec.timeout, upstream.timeout)?),
        deadline_ms: ms(some_time(&key("deadline"), spec.deadline, upstream.deadline)?),
        // What a person answered is kept until it has led somewhere.
        repeat_window_ms: if spec.question.is_some() { ms(ANSWERED_KEPT) } else { ms(repeat_window) },
        rejects_before_effect: spec
            .rejects_before_effect
            .clone()
            .unwrap_or_else(|| upstream.rejects_before_effect.clone()),
        evidence: evidence(&key("evidence"), &spec.evidence)?,
        if_match: spec.if_match,
        reverse: spec.reverse.as_ref().map(|reverse| self::reverse(&key("reverse"), reverse)).transpose()?,
        queue: spec.queue.clone(),
        approval: spec
            .approval
            .as_ref()
            .map(|approval| people::approval(&key("approval"), approval))
            .transpose()?
            .map(Box::new)
            .or_else(|| spec.question.clone()),
        answer_within_ms: spec.answer_within.map_or(ANSWER_WITHIN_MS, |span| ms(span.0)),
        input_within_ms: spec.input_within.map_or(INPUT_WITHIN_MS, |span| ms(span.0)),
        answer: answer(&key("answer"), &spec.answer)?,
    })
}

fn evidence(key: &str, readings: &[ReadingSpec]) -> Result<Vec<Reading>, ConfigError> {
    if readings.len() > EVIDENCE_MAX {
        return Err(invalid(key, format!("a call may rest on {EVIDENCE_MAX} reads at most")));
    }
    let reading = |spec: &ReadingSpec| Ok(Reading { tool: spec.tool.clone(), args: arguments(key, &spec.args)? });
    readings.iter().map(reading).collect()
}

fn reverse(key: &str, spec: &ReverseSpec) -> Result<Reverse, ConfigError> {
    let Span(within) = spec.within.unwrap_or(Span(REVERSE_WITHIN));
    Ok(Reverse { tool: spec.tool.clone(), args: arguments(key, &spec.args)?, within_ms: ms(within) })
}

fn arguments(key: &str, args: &BTreeMap<String, String>) -> Result<BTreeMap<String, Expression>, ConfigError> {
    args.iter().map(|(name, text)| Ok((name.clone(), expression(key, text)?))).collect()
}

fn answer(key: &str, spec: &AnswerSpec) -> Result<AnswerShape, ConfigError> {
    let part = |name: &str, text: &Option<String>| {
        let key = format!("{key}.{name}");
        text.as_deref().map(|text| expression(&key, text)).transpose()
    };
    if spec.follow_up.len() > FOLLOW_UPS_MAX || spec.follow_up.iter().any(String::is_empty) {
        return Err(invalid(&format!("{key}.follow_up"), "names one to three tools".into()));
    }
    Ok(AnswerShape {
        rows: part("rows", &spec.rows)?,
        truncated: part("truncated", &spec.truncated)?,
        errors: part("errors", &spec.errors)?,
        stale: part("stale", &spec.stale)?,
        confidence: part("confidence", &spec.confidence)?,
        provenance: part("provenance", &spec.provenance)?,
        follow_up: spec.follow_up.clone(),
    })
}

fn upstream(name: &str, spec: &UpstreamSpec) -> Result<UpstreamConfig, ConfigError> {
    let key = |part: &str| format!("upstreams.{name}.{part}");
    let sound = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(sound) {
        return Err(invalid(&format!("upstreams.{name}"), "a name is made of `A-Za-z0-9_-`".into()));
    }
    let reach = reach::settle(name, spec)?;
    let translate: Result<Vec<_>, _> =
        spec.translate.iter().map(|rule| self::translate(&key("translate"), rule)).collect();
    let agent = matches!(reach, Reach::A2a { .. });
    Ok(UpstreamConfig {
        prefix: prefix(&key("prefix"), name, spec)?,
        patterns: patterns(&key, spec)?,
        trust_hints: spec.trust_hints.unwrap_or(matches!(reach, Reach::OpenApi(_))),
        reach,
        timeout: some_time(&key("timeout"), spec.timeout, if agent { AGENT_TIMEOUT } else { TIMEOUT })?,
        deadline: some_time(&key("deadline"), spec.deadline, if agent { AGENT_DEADLINE } else { DEADLINE })?,
        rejects_before_effect: spec.rejects_before_effect.clone(),
        translate: translate?,
        concurrency: spec.concurrency.unwrap_or(CONCURRENCY).max(1),
        queue: spec.queue.unwrap_or(QUEUE),
        breaker: restraint::breaker(&key("breaker"), &spec.breaker)?,
        retry_budget: restraint::budget(&key("retry_budget"), &spec.retry_budget)?,
        pin: spec.pin,
    })
}

fn prefix(key: &str, name: &str, spec: &UpstreamSpec) -> Result<String, ConfigError> {
    let Some(prefix) = &spec.prefix else { return Ok(format!("{name}__")) };
    let sound = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if prefix.len() > PREFIX_MAX || !prefix.chars().all(sound) {
        return Err(invalid(key, format!("a prefix is made of at most {PREFIX_MAX} of `A-Za-z0-9_-`")));
    }
    Ok(prefix.clone())
}

fn patterns(key: &impl Fn(&str) -> String, spec: &UpstreamSpec) -> Result<Patterns, ConfigError> {
    for (part, patterns) in [("expose", &spec.expose), ("hide", &spec.hide)] {
        if patterns.iter().any(String::is_empty) {
            return Err(invalid(&key(part), "names tools, or patterns with `*`".into()));
        }
    }
    Ok(Patterns { expose: spec.expose.clone(), hide: spec.hide.clone() })
}

/// An upstream of which nothing was declared.
pub(super) fn anywhere() -> UpstreamConfig {
    UpstreamConfig {
        reach: Reach::Http { url: String::new(), access: Access::default() },
        prefix: String::new(),
        patterns: Patterns::default(),
        trust_hints: false,
        timeout: TIMEOUT,
        deadline: DEADLINE,
        rejects_before_effect: Vec::new(),
        translate: Vec::new(),
        concurrency: CONCURRENCY,
        queue: QUEUE,
        breaker: BreakerRules::default(),
        retry_budget: BudgetRules::default(),
        pin: PinMode::default(),
    }
}

fn telemetry(spec: &TelemetrySpec) -> Result<TelemetryConfig, ConfigError> {
    let ca = spec.ca.clone();
    let Some(otlp) = &spec.otlp else { return Ok(TelemetryConfig { traces: None, ca }) };
    if !otlp.starts_with("http://") && !otlp.starts_with("https://") {
        return Err(invalid("telemetry.otlp", format!("`{otlp}` is not an `http://` or `https://` address")));
    }
    Ok(TelemetryConfig { traces: Some(traces_address(otlp)), ca })
}

fn translate(key: &str, spec: &TranslateSpec) -> Result<TranslateRule, ConfigError> {
    let code = Code::parse(&spec.failure).ok_or_else(|| {
        let near = nearest(&spec.failure, Code::ALL.map(Code::as_str));
        let hint = near.first().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        invalid(key, format!("`{}` is not a failure code{hint}", spec.failure))
    })?;
    Ok(TranslateRule { when: expression(key, &spec.when)?, code })
}

fn key_place(key: &str, spec: &KeySpec) -> Result<KeyPlace, ConfigError> {
    let place = match (&spec.argument, &spec.header, &spec.meta) {
        (Some(argument), None, None) => Place::Argument(argument.clone()),
        (None, Some(header), None) => Place::Header(header.clone()),
        (None, None, Some(meta)) => Place::Meta(meta.clone()),
        _ => {
            return Err(invalid(key, "needs one of `argument`, `header` or `meta`".into()));
        }
    };
    let Span(window) = spec.window.unwrap_or(Span(KEY_WINDOW));
    Ok(KeyPlace { place, window_ms: ms(window), durable: spec.durable })
}

fn status(key: &str, spec: &StatusSpec) -> Result<StatusReader, ConfigError> {
    let args = arguments(key, &spec.args)?;
    let by_key = args.values().any(|argument| argument.mentions("key") || argument.mentions("work"));
    Ok(StatusReader { tool: spec.tool.clone(), args, happened: expression(key, &spec.happened)?, by_key })
}

/// How long something may take. No time at all would be over before it began.
fn some_time(key: &str, span: Option<Span>, default: Duration) -> Result<Duration, ConfigError> {
    match span {
        Some(Span(Duration::ZERO)) => Err(invalid(key, "must be longer than no time at all".into())),
        Some(Span(time)) => Ok(time),
        None => Ok(default),
    }
}

pub(super) fn expression(key: &str, text: &str) -> Result<Expression, ConfigError> {
    if text.len() > EXPRESSION_BYTES_MAX {
        return Err(invalid(key, format!("an expression has at most {EXPRESSION_BYTES_MAX} bytes")));
    }
    Expression::parse(text).map_err(|error| invalid(key, error.to_string()))
}

pub(super) fn invalid(key: &str, reason: String) -> ConfigError {
    ConfigError::Invalid { key: key.to_owned(), reason }
}

pub(super) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(text: &str) -> Result<Config, ConfigError> {
        settle(Spec::parse(text, "test")?)
    }

    #[test]
    fn a_status_is_by_key_only_if_its_arguments_name_the_key() {
        let text = r#"
            [tools.refund]
            effect = "write"
            status = { tool = "get_refund", args = { key = "key" }, happened = "result.found" }
            [tools.charge]
            effect = "write"
            status = { tool = "get_charge", args = { order = "args.order" }, happened = "result.found" }
        "#;
        let config = settled(text).unwrap();
        let by_key =
            |tool: &str| config.tools[tool].contract(tool, &anywhere(), REPEAT_WINDOW).unwrap().status.unwrap().by_key;
        assert!(by_key("refund"));
        assert!(!by_key("charge"));
    }

    #[test]
    fn an_expression_that_would_use_the_stack_up_is_refused() {
        let sum = |terms: usize| format!("[tools.a]\nobject = \"{}\"", vec!["1"; terms].join("+"));
        assert!(settled(&sum(512)).is_ok());
        let refused = settled(&sum(20_000)).unwrap_err().to_string();
        assert_eq!(refused, "`tools.a.object`: an expression has at most 1024 bytes");
    }

    #[test]
    fn mistakes_are_refused_with_the_key_they_are_in() {
        for (text, says) in [
            ("[tools.a]\neffect = \"keyed\"", "tools.a.key"),
            ("[ledger]\nurl = \"mysql:x\"", "ledger.url"),
            ("[upstreams.a]\nurl = \"ftp://x\"", "upstreams.a.url"),
            ("[upstreams.a]\nurl = \"http://x\"\ntimeout = \"0s\"", "upstreams.a.timeout"),
            ("[tools.a]\ndeadline = \"0ms\"", "tools.a.deadline"),
            ("[upstreams.a]\nurl = \"http://x\"\nprefix = \"a.\"", "upstreams.a.prefix"),
            ("[upstreams.a]\nurl = \"http://x\"\nhide = [\"\"]", "upstreams.a.hide"),
            ("[upstreams.a]\ncommand = [\"x\"]\nenv_pass = [\"A=B\"]", "upstreams.a.env_pass"),
            ("[upstreams.a]\nurl = \"http://x\"\ncwd = \"/\"", "upstreams.a.cwd"),
            ("[upstreams.a]\n", "needs one of `command`, `url`, `openapi` and `a2a`"),
            ("[tools.a]\nobject = \"args.(\"", "tools.a.object"),
            ("[upstreams.a]\nurl = \"http://x\"\nbreaker = { failures = 0 }", "upstreams.a.breaker.failures"),
            (
                "[upstreams.a]\nurl = \"http://x\"\nbreaker = { cool_down = \"2m\" }",
                "upstreams.a.breaker.cool_down_max",
            ),
            ("[upstreams.a]\nurl = \"http://x\"\nretry_budget = { tokens = 0 }", "upstreams.a.retry_budget.tokens"),
            ("[upstreams.a]\nurl = \"http://x\"\nretry_budget = { per_success = -1.0 }", "retry_budget.per_success"),
            ("[limits]\nrate = { per_second = 0.0 }", "limits.rate.per_second"),
            ("[tools.a.answer]\nrows = \"result.(\"", "tools.a.answer.rows"),
            ("[tools.a.answer]\nfollow_up = [\"b\", \"c\", \"d\", \"e\"]", "tools.a.answer.follow_up"),
            ("[tools.a.playbook.in_doubt]\ncompensation = \"retry_with_backoff\"", "tools.a.playbook"),
        ] {
            let refused = settled(text).unwrap_err().to_string();
            assert!(refused.contains(says), "{refused}");
        }
    }
}
