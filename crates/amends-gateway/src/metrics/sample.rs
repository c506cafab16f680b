//! What is not counted but looked at, whenever somebody asks for it.

use std::sync::atomic::Ordering;

use amends_ledger::QueueFilter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Labels, Metrics};
use crate::Gateway;
use crate::clock;
use crate::upstream::{Health, Upstream};

/// How many open questions are counted at most.
const QUESTIONS_MAX: usize = 1000;

type Level = Family<Labels<1>, Gauge>;

/// What is looked at.
#[derive(Debug)]
pub(super) struct Gauges {
    calls_open: Gauge,
    sessions_driven: Gauge,
    questions_open: Gauge,
    ledger_records: Gauge,
    upstream_up: Level,
    upstream_calls: Level,
    upstream_waiting: Level,
    breaker_open: Level,
    tool_breakers_open: Level,
    retry_budget: Family<Labels<1>, Gauge<f64, std::sync::atomic::AtomicU64>>,
}

impl Gauges {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let gauges = Self {
            calls_open: Gauge::default(),
            sessions_driven: Gauge::default(),
            questions_open: Gauge::default(),
            ledger_records: Gauge::default(),
            upstream_up: Family::default(),
            upstream_calls: Family::default(),
            upstream_waiting: Family::default(),
            breaker_open: Family::default(),
            tool_breakers_open: Family::default(),
            retry_budget: Family::default(),
        };
        registry.register("calls_open", "Calls that are open here", gauges.calls_open.clone());
        registry.register("sessions_driven", "Sessions that are driven here", gauges.sessions_driven.clone());
        let help = "Questions to people that are open in the ledger, counted up to 1000";
        registry.register("questions_open", help, gauges.questions_open.clone());
        registry.register("ledger_records", "1 while the ledger records", gauges.ledger_records.clone());
        registry.register("upstream_up", "1 while it is greeted and answers", gauges.upstream_up.clone());
        registry.register("upstream_calls", "Attempts it has right now", gauges.upstream_calls.clone());
        let help = "Open calls that wait for it: for their turn, or for their next attempt";
        registry.register("upstream_waiting", help, gauges.upstream_waiting.clone());
        registry.register("breaker_open", "1 while it is left alone", gauges.breaker_open.clone());
        let help = "Tools of it that are left alone by themselves";
        registry.register("tool_breakers_open", help, gauges.tool_breakers_open.clone());
        let help = "Tokens left of its retry budget; nothing is sent again unless more than half is left";
        registry.register("retry_budget", help, gauges.retry_budget.clone());
        gauges
    }

    pub(super) async fn sample(&self, gateway: &Gateway) {
        self.calls_open.set(level(gateway.room.open()));
        self.sessions_driven.set(level(gateway.sessions_driven()));
        self.ledger_records.set(i64::from(gateway.recording.load(Ordering::Relaxed)));
        // The last count stands while the ledger is away.
        if let Ok(questions) = gateway.ledger.queue(&QueueFilter::default(), QUESTIONS_MAX).await {
            self.questions_open.set(level(questions.len()));
        }
        for upstream in gateway.upstreams().values() {
            self.look_at(upstream);
        }
    }

    fn look_at(&self, upstream: &Upstream) {
        let labels = [("upstream", Metrics::upstream(&upstream.name))];
        let up = matches!(upstream.state(), Health::Ready { .. });
        self.upstream_up.get_or_create(&labels).set(i64::from(up));
        let at_once = upstream.config.concurrency;
        let sent = at_once.saturating_sub(upstream.permits.available_permits());
        let places = at_once.saturating_add(upstream.config.queue);
        let taken = places.saturating_sub(upstream.places.available_permits());
        self.upstream_calls.get_or_create(&labels).set(level(sent));
        self.upstream_waiting.get_or_create(&labels).set(level(taken.saturating_sub(sent)));
        let trouble = upstream.restraint.trouble(clock::now());
        self.breaker_open.get_or_create(&labels).set(i64::from(trouble.open));
        self.tool_breakers_open.get_or_create(&labels).set(level(trouble.tools_open));
        self.retry_budget.get_or_create(&labels).set(f64::from(trouble.budget_milli) / 1000.0);
    }
}

fn level(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
