//! What is counted, for `GET /metrics`. Counters come from the facts of recorded steps, so that they agree with the ledger.

mod sample;
mod word;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use amends_core::{ToolName, UpstreamName};
use sample::Gauges;
pub(crate) use word::Word;

/// What [`Metrics::text`] is written in.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The upper ends of the buckets, in seconds: a commit takes milliseconds, a call with all its waits a minute and more.
const SECONDS: [f64; 16] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// Names and what they say.
pub(crate) type Labels<const N: usize> = [(&'static str, Word); N];
/// A counter for each combination of labels.
pub(crate) type Count<const N: usize> = Family<Labels<N>, Counter>;
/// A histogram for each combination of labels.
pub(crate) type Time<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// What this process has counted since it started.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    tools: word::Tools,
    gauges: Gauges,
    pub(crate) events: Count<1>,
    pub(crate) calls: Count<2>,
    pub(crate) ended: Count<3>,
    pub(crate) replayed: Count<1>,
    pub(crate) refusals: Count<1>,
    pub(crate) started: Count<2>,
    pub(crate) attempts: Count<4>,
    pub(crate) failures: Count<3>,
    pub(crate) verdicts: Count<1>,
    pub(crate) compensations: Count<1>,
    pub(crate) retries: Count<1>,
    pub(crate) held_back: Count<1>,
    pub(crate) waits: Count<1>,
    pub(crate) questions: Count<1>,
    pub(crate) doubts: Count<2>,
    pub(crate) reversals: Count<1>,
    pub(crate) late: Count<1>,
    drifts: Count<2>,
    exports: Count<1>,
    pub(crate) call_time: Time<1>,
    pub(crate) attempt_time: Time<2>,
    pub(crate) commit_time: Histogram,
}

/// Counts what becomes of spans.
#[derive(Clone, Debug)]
pub(crate) struct Exports(Count<1>);

impl Exports {
    pub(crate) fn count(&self, became: &'static str, spans: u64) {
        self.0.get_or_create(&[("became", Word::Fixed(became))]).inc_by(spans);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("amends");
        let time: fn() -> Histogram = || Histogram::new(SECONDS);
        let metrics = Self {
            gauges: Gauges::new(&mut registry),
            tools: word::Tools::default(),
            events: Family::default(),
            calls: Family::default(),
            ended: Family::default(),
            replayed: Family::default(),
            refusals: Family::default(),
            started: Family::default(),
            attempts: Family::default(),
            failures: Family::default(),
            verdicts: Family::default(),
            compensations: Family::default(),
            retries: Family::default(),
            held_back: Family::default(),
            waits: Family::default(),
            questions: Family::default(),
            doubts: Family::default(),
            reversals: Family::default(),
            late: Family::default(),
            drifts: Family::default(),
            exports: Family::default(),
            call_time: Family::new_with_constructor(time),
            attempt_time: Family::new_with_constructor(time),
            commit_time: time(),
            registry,
        };
        metrics.registered()
    }
}

impl Metrics {
    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("events", "Events recorded, by their name", self.events.clone());
        registry.register("calls", "Calls received", self.calls.clone());
        registry.register("calls_ended", "Calls that are over, by how they ended", self.ended.clone());
        registry.register("calls_replayed", "Calls that got the answer of an earlier one", self.replayed.clone());
        registry.register("refusals", "Calls we said no to before anything was sent", self.refusals.clone());
        registry.register("attempts_started", "Attempts that may have been sent", self.started.clone());
        registry.register("attempts_ended", "Attempts that are over, by what is known of them", self.attempts.clone());
        registry.register("failures", "Failed attempts, by who said so and what went wrong", self.failures.clone());
        registry.register("verdicts", "Judgements of failed attempts", self.verdicts.clone());
        registry.register("compensations", "What was done about them", self.compensations.clone());
        registry.register(
            "retries",
            "Further sends, and further tries of moves, that were decided",
            self.retries.clone(),
        );
        registry.register("held_back", "Further sends that were not made, and why", self.held_back.clone());
        registry.register("waits", "Waits before a next attempt, by what it is for", self.waits.clone());
        registry.register("questions", "Questions to people, by what became of them", self.questions.clone());
        registry.register("doubts_settled", "Doubts that were settled, and by whom", self.doubts.clone());
        registry.register("reversals", "What became of reversal tokens", self.reversals.clone());
        registry.register("late_results", "Results that came after their attempt was over", self.late.clone());
        let help = "Tools that were found to be no longer what they were pinned to";
        registry.register("schema_drifts", help, self.drifts.clone());
        let help = "Spans, by what became of them: exported, dropped for want of room, lost on the way";
        registry.register("spans", help, self.exports.clone());
        let seconds = || Unit::Seconds;
        registry.register_with_unit("call", "From a call's arrival to its end", seconds(), self.call_time.clone());
        registry.register_with_unit(
            "attempt",
            "From an attempt's start to its end",
            seconds(),
            self.attempt_time.clone(),
        );
        let help = "From handing a step to the ledger until it is durable, where somebody waits for it";
        registry.register_with_unit("ledger_commit", help, seconds(), self.commit_time.clone());
        self
    }

    /// The label of a tool: its name where it is served somewhere.
    pub(crate) fn tool(&self, tool: &ToolName, upstream: &UpstreamName) -> Word {
        if upstream.as_str().is_empty() { Word::UNKNOWN } else { self.tools.label(tool) }
    }

    /// The label of an upstream.
    pub(crate) fn upstream(upstream: &UpstreamName) -> Word {
        if upstream.as_str().is_empty() { Word::UNKNOWN } else { Word::Upstream(upstream.clone()) }
    }

    /// Counts an event of a step that was recorded beside the driver.
    pub(crate) fn event(&self, name: &'static str) {
        self.events.get_or_create(&[("event", Word::Fixed(name))]).inc();
    }

    /// Who counts what becomes of spans.
    pub(crate) fn exports(&self) -> Exports {
        Exports(self.exports.clone())
    }

    /// Counts a tool that is no longer what it was pinned to.
    pub(crate) fn drifted(&self, tool: &ToolName, upstream: &UpstreamName) {
        let labels = [("tool", self.tool(tool, upstream)), ("upstream", Self::upstream(upstream))];
        self.drifts.get_or_create(&labels).inc();
    }

    /// Everything, in the text format of OpenMetrics, with what is sampled as it is now.
    pub async fn text(&self, gateway: &crate::Gateway) -> String {
        self.gauges.sample(gateway).await;
        let mut text = String::new();
        // A `String` takes whatever is written to it.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
