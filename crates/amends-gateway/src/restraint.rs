//! What this process knows of its upstreams' troubles, and of how often it was called. It is kept in memory: each process learns
//! it anew, and does not share it with others over the same ledger.

mod room;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use amends_core::gates::OpenBreaker;
use amends_core::restraint::{Breaker, BreakerRules, Bucket, Budget, BudgetRules, Errand, Rate, Sign};
use amends_core::{Code, EffectKind, Gates, Principal, Report, Timestamp, ToolName, UpstreamName};
use tokio::sync::Notify;

use crate::clock;
use crate::gateway::Gateway;
use crate::listing;
use crate::upstream::Upstream;
pub use room::{Occupied, Room};

/// How many principals are remembered before those who have not called for a while are forgotten.
const PRINCIPALS_MAX: usize = 10_000;
/// The shortest time between two looks at a breaker.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// One upstream's retry budget and breakers.
#[derive(Debug)]
pub struct Restraint {
    held: Mutex<Held>,
    opened: Notify,
}

/// What is known of an upstream's troubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Whether its breaker is open.
    pub open: bool,
    /// How many of its tools have an open breaker of their own.
    pub tools_open: usize,
    /// What is left of its retry budget, in thousandths of a token.
    pub budget_milli: u32,
}

#[derive(Debug)]
struct Held {
    rules: BreakerRules,
    budget: Budget,
    breaker: Breaker,
    /// The tools that failed lately.
    tools: BTreeMap<ToolName, Breaker>,
}

impl Restraint {
    /// A full budget and closed breakers.
    pub fn new(budget: BudgetRules, rules: BreakerRules) -> Self {
        let held = Held { rules, budget: Budget::new(budget), breaker: Breaker::new(rules), tools: BTreeMap::new() };
        Self { held: Mutex::new(held), opened: Notify::new() }
    }

    /// Lets a call of that tool pass, or says when it is worth coming back. A read may find out whether the upstream is back; a
    /// write waits for that, and finds out only about its own tool.
    pub fn pass(&self, now: Timestamp, tool: &ToolName, effect: EffectKind, within_ms: u64) -> Result<(), Timestamp> {
        let mut held = self.held();
        let probe = Errand::Probe { within_ms };
        let mut breaker = held.breaker.clone();
        breaker.pass(now, if effect.is_read() { probe } else { Errand::Other })?;
        if let Some(of_tool) = held.tools.get_mut(tool) {
            of_tool.pass(now, probe)?;
        }
        held.breaker = breaker;
        Ok(())
    }

    /// Takes in what came of an attempt at that tool.
    pub fn record(&self, now: Timestamp, tool: &ToolName, report: &Report) {
        self.take_in(now, tool, Sign::of(report), report.failure.as_ref().map(|failure| failure.code));
    }

    /// Takes in that an attempt at that tool was not answered in time.
    pub fn record_timeout(&self, now: Timestamp, tool: &ToolName) {
        self.take_in(now, tool, Sign::Down, Some(Code::NetworkTimeout));
    }

    /// Takes in what came of listing the tools: a read of our own, so that an answer closes the upstream's breaker.
    pub fn record_listing(&self, now: Timestamp, sign: Sign) {
        let mut held = self.held();
        match sign {
            Sign::Up => held.breaker.close(),
            Sign::Down | Sign::Nothing => held.breaker.record(now, sign, None),
        }
        self.tell(&held, now);
    }

    /// Adds to the gates what holds a call of that tool back.
    pub fn sample(&self, now: Timestamp, upstream: &UpstreamName, tool: &ToolName, gates: &mut Gates) {
        let held = self.held();
        if !held.budget.allows() {
            gates.spent.insert(upstream.clone());
        }
        let of_tool = held.tools.get(tool).and_then(|breaker| breaker.open_until(now)).map(|until| (Some(tool), until));
        let of_all = held.breaker.open_until(now).map(|until| (None, until));
        for (tool, until) in of_tool.into_iter().chain(of_all) {
            let open = OpenBreaker { upstream: upstream.clone(), tool: tool.cloned(), until };
            if !gates.breakers.contains(&open) {
                gates.breakers.push(open);
            }
        }
    }

    /// What is known of its troubles.
    pub fn trouble(&self, now: Timestamp) -> Trouble {
        let held = self.held();
        Trouble {
            open: held.breaker.open_until(now).is_some(),
            tools_open: held.tools.values().filter(|breaker| breaker.open_until(now).is_some()).count(),
            budget_milli: held.budget.left_milli(),
        }
    }

    fn take_in(&self, now: Timestamp, tool: &ToolName, sign: Sign, code: Option<Code>) {
        let mut held = self.held();
        held.budget.record(sign);
        // That nobody is there is nothing the tool can do about.
        let unreachable = code == Some(Code::ConnectRefused);
        held.breaker.record(now, sign, Some(tool).filter(|_| !unreachable));
        let of_tool = if unreachable { Sign::Nothing } else { sign };
        let rules = held.rules;
        if of_tool == Sign::Down {
            held.tools.entry(tool.clone()).or_insert_with(|| Breaker::new(rules)).record(now, of_tool, None);
        } else if let Some(breaker) = held.tools.get_mut(tool) {
            breaker.record(now, of_tool, None);
            if breaker.is_blank() {
                held.tools.remove(tool);
            }
        }
        self.tell(&held, now);
    }

    fn tell(&self, held: &Held, now: Timestamp) {
        if held.breaker.open_until(now).is_some() {
            self.opened.notify_one();
        }
    }

    /// Until when the upstream is left alone, where it is.
    pub fn open_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.held().breaker.open_until(now)
    }

    fn probe_at(&self) -> Option<Timestamp> {
        self.held().breaker.probe_at()
    }

    fn may_probe(&self, now: Timestamp, within: Duration) -> bool {
        let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        self.held().breaker.pass(now, Errand::Probe { within_ms }).is_ok()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds out whether an upstream is back whenever its breaker is half open and no agent's read did: where all its tools write,
/// nobody else would.
pub async fn look_after(gateway: Weak<Gateway>, upstream: Arc<Upstream>) {
    let restraint = &upstream.restraint;
    loop {
        // It may have been open before somebody looked after it.
        if restraint.probe_at().is_none() {
            restraint.opened.notified().await;
        }
        let was_open = restraint.probe_at().is_some();
        while let Some(at) = restraint.probe_at() {
            tokio::time::sleep(clock::until(at).max(LOOK_EVERY)).await;
            if gateway.strong_count() == 0 {
                return;
            }
            let within = upstream.config.timeout.min(listing::LIST_TIMEOUT);
            if restraint.may_probe(clock::now(), within) {
                let sign = listing::probe(&upstream, within).await;
                restraint.record_listing(clock::now(), sign);
            }
        }
        if was_open {
            tracing::info!(upstream = %upstream.name, "it answers again");
        }
    }
}

/// How often each principal called lately.
#[derive(Debug, Default)]
pub struct Rates {
    buckets: Mutex<HashMap<Principal, Bucket>>,
}

impl Rates {
    /// Counts a call of that principal, who may call at that rate by now, or says in how many milliseconds it may come.
    pub fn take(&self, principal: &Principal, rate: Option<Rate>, now: Timestamp) -> Result<(), u64> {
        let Some(rate) = rate else { return Ok(()) };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(principal) {
            bucket.go_on_at(rate, now);
            return bucket.take(now);
        }
        if buckets.len() >= PRINCIPALS_MAX {
            buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        buckets.entry(principal.clone()).or_insert_with(|| Bucket::new(rate, now)).take(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use amends_core::{Certainty, Failure};

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    fn down(restraint: &Restraint, tool: &str, code: Code) {
        restraint.record(at(0), &ToolName::new(tool), &Report::silent(Failure::of(code), Certainty::InDoubt));
    }

    fn restraint() -> Restraint {
        Restraint::new(BudgetRules::default(), BreakerRules::default())
    }

    fn passes(restraint: &Restraint, now: u64, tool: &str, effect: EffectKind) -> bool {
        restraint.pass(at(now), &ToolName::new(tool), effect, 1000).is_ok()
    }

    #[test]
    fn a_tool_that_always_fails_is_held_back_alone() {
        let restraint = restraint();
        (0..10).for_each(|_| down(&restraint, "bad", Code::Provider5xx));
        assert!(!passes(&restraint, 0, "bad", EffectKind::Read));
        assert!(passes(&restraint, 0, "good", EffectKind::Write));
        assert!(passes(&restraint, 5_000, "bad", EffectKind::Write), "one call finds out about its own tool");
        assert!(!passes(&restraint, 5_000, "bad", EffectKind::Write));
    }

    #[test]
    fn an_upstream_that_is_not_there_is_held_back_until_a_read_was_answered() {
        let restraint = restraint();
        (0..5).for_each(|_| down(&restraint, "pay", Code::ConnectRefused));
        assert!(!passes(&restraint, 0, "look", EffectKind::Read));
        assert!(!passes(&restraint, 5_000, "pay", EffectKind::Write), "a write is no probe");
        assert!(passes(&restraint, 5_000, "look", EffectKind::Read));
        assert!(!passes(&restraint, 5_000, "look", EffectKind::Read), "one probe at a time");
        restraint.record(at(5_100), &ToolName::new("look"), &Report::success(None));
        assert!(passes(&restraint, 5_100, "pay", EffectKind::Write));
    }

    #[test]
    fn a_list_that_is_answered_closes_the_breaker() {
        let restraint = restraint();
        (0..5).for_each(|_| down(&restraint, "pay", Code::ConnectRefused));
        restraint.record_listing(at(1), Sign::Up);
        assert!(passes(&restraint, 1, "pay", EffectKind::Write));
    }

    #[test]
    fn the_gates_say_what_holds_a_call_back() {
        let restraint = restraint();
        let (upstream, bad, good) = (UpstreamName::new("shop"), ToolName::new("bad"), ToolName::new("good"));
        let sampled = |tool: &ToolName| {
            let mut gates = Gates::default();
            restraint.sample(at(0), &upstream, tool, &mut gates);
            gates
        };
        assert!(sampled(&bad).is_open());
        (0..5).for_each(|_| down(&restraint, "bad", Code::Provider5xx));
        assert_eq!(sampled(&bad).breaker_until(&upstream, &bad), Some(at(5_000)));
        assert_eq!(sampled(&good).breaker_until(&upstream, &good), None);
        assert!(sampled(&good).spent.contains(&upstream), "the budget is the upstream's");
    }

    #[test]
    fn each_principal_has_a_rate_of_its_own() {
        let rates = Rates::default();
        let rate = Some(Rate { per_second_milli: 1000, burst: 1 });
        let (one, other) = (Principal::from("one"), Principal::from("other"));
        assert_eq!(rates.take(&one, rate, at(0)), Ok(()));
        assert_eq!(rates.take(&one, rate, at(0)), Err(1000));
        assert_eq!(rates.take(&other, rate, at(0)), Ok(()));
        assert_eq!(rates.take(&one, None, at(0)), Ok(()));
        let faster = Some(Rate { per_second_milli: 4000, burst: 1 });
        assert_eq!(rates.take(&one, faster, at(0)), Err(250), "another rate counts at once");
    }
}
