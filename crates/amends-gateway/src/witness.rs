//! The witness sees every step of a session, and tells what it saw once the step is recorded. Whatever is counted comes from
//! the facts themselves, so that it agrees with the ledger.

use std::collections::HashMap;
use std::time::Instant;

use amends_core::attempt::Purpose;
use amends_core::event::Fact;
use amends_core::walk::Part;
use amends_core::{AttemptId, CallId, Certainty, Compensation, Event, Report, SessionId, Timestamp};
use amends_ledger::Trace;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use crate::gateway::Gateway;
use crate::live;
use crate::metrics::{Count, Labels, Metrics, Time, Word};
use crate::telemetry::{Span, Story};

/// What the witness of one session remembers of its open calls.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    calls: HashMap<CallId, Watched>,
    /// Where the newest call of the open move went.
    moving: Option<Word>,
    /// Those of which a span will be made.
    stories: HashMap<CallId, Story>,
}

#[derive(Debug)]
struct Watched {
    tool: Word,
    upstream: Word,
    received: Timestamp,
    attempts: HashMap<u32, Begun>,
}

#[derive(Debug)]
struct Begun {
    purpose: Purpose,
    upstream: Word,
    at: Timestamp,
}

/// What was seen of one step, to be told once it is recorded.
#[derive(Debug)]
pub(crate) struct Seen {
    marks: Vec<Mark>,
    spans: Vec<Span>,
    /// The walk that is not as it was.
    moved: Option<SessionId>,
    /// What is told to whoever watches.
    shown: Vec<live::Seen>,
    handed_in: Instant,
}

#[derive(Debug)]
enum Mark {
    Count(Counter),
    Time(Histogram, f64),
}

impl Seen {
    /// The step is recorded.
    pub(crate) fn recorded(self, gateway: &Gateway) {
        if let Some(telemetry) = &gateway.telemetry {
            self.spans.into_iter().for_each(|span| telemetry.tell(span));
        }
        if let Some(session) = &self.moved {
            gateway.hub.moved(session);
        }
        gateway.live.tell(self.shown);
        for mark in self.marks {
            match mark {
                Mark::Count(counter) => {
                    counter.inc();
                }
                Mark::Time(histogram, seconds) => histogram.observe(seconds),
            }
        }
    }

    /// The step is durable, and somebody waited for it.
    pub(crate) fn waited_for(&self, metrics: &Metrics) {
        metrics.commit_time.observe(self.handed_in.elapsed().as_secs_f64());
    }
}

/// Whether a walk is not as it was after that.
fn moves(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::MoveMade { .. }
            | Fact::MoveEnded { .. }
            | Fact::WalkReset { .. }
            | Fact::WalkAborted { .. }
            | Fact::WalkMigrated { .. }
    )
}

impl Witness {
    /// Sees a step that is about to be recorded. `params` are those of a call that is open.
    pub(crate) fn see<'p>(
        &mut self,
        gateway: &Gateway,
        session: &SessionId,
        events: &[Event],
        params: impl Fn(&CallId) -> Option<&'p str>,
    ) -> Seen {
        let mut sight = Sight { gateway, marks: Vec::with_capacity(2 * events.len()) };
        let mut spans = Vec::new();
        for event in events {
            self.look(&mut sight, event);
            spans.extend(self.listen(gateway, session, event, &params));
        }
        let moved = events.iter().any(|event| moves(&event.fact)).then(|| session.clone());
        let shown = match gateway.live.is_wanted() {
            true => events.iter().map(|event| live::Seen::of(session, event)).collect(),
            false => Vec::new(),
        };
        Seen { marks: sight.marks, spans, moved, shown, handed_in: Instant::now() }
    }

    /// The witness of a session that is taken up. What is on the ledger was told by whoever recorded it; here it is only
    /// remembered.
    pub(crate) fn of_trace<'p>(gateway: &Gateway, trace: &Trace, params: impl Fn(&CallId) -> Option<&'p str>) -> Self {
        let mut witness = Self::default();
        for stored in &trace.events {
            let seen = witness.see(gateway, &trace.session, std::slice::from_ref(&stored.event), &params);
            drop(seen);
        }
        witness
    }

    /// Makes spans of what happened, where somebody wants them.
    fn listen<'p>(
        &mut self,
        gateway: &Gateway,
        session: &SessionId,
        event: &Event,
        params: &impl Fn(&CallId) -> Option<&'p str>,
    ) -> Option<Span> {
        let (telemetry, call) = (gateway.telemetry.as_ref()?, event.fact.call()?);
        if matches!(event.fact, Fact::CallReceived { .. }) {
            let story = telemetry.begin(session, params(call).unwrap_or("{}"), event)?;
            self.stories.insert(call.clone(), story);
            return None;
        }
        let (span, over) = telemetry.go_on(self.stories.get_mut(call)?, event);
        if over {
            self.stories.remove(call);
        }
        span
    }

    /// Every fact is counted by its name; many say more.
    fn look(&mut self, sight: &mut Sight<'_>, event: &Event) {
        let metrics = &sight.gateway.metrics;
        sight.count(&metrics.events, [("event", Word::Fixed(event.fact.name()))]);
        match &event.fact {
            Fact::CallReceived { received, .. } => {
                let tool = metrics.tool(&received.tool, &received.upstream);
                let upstream = Metrics::upstream(&received.upstream);
                sight.count(&metrics.calls, [("tool", tool.clone()), ("upstream", upstream.clone())]);
                if received.leg.as_ref().is_some_and(|leg| leg.part != Part::Exit) {
                    self.moving = Some(upstream.clone());
                }
                let watched = Watched { tool, upstream, received: event.at, attempts: HashMap::new() };
                self.calls.insert(received.call.clone(), watched);
            }
            Fact::CallRefused { call, refusal } => {
                sight.count(&metrics.refusals, [("kind", Word::Fixed(refusal.kind.as_str()))]);
                self.ended(sight, call, "refused", event.at);
            }
            Fact::CallEnded { call, outcome, replayed, .. } => {
                if *replayed {
                    sight.count(&metrics.replayed, [("outcome", Word::Fixed(outcome.as_str()))]);
                }
                self.ended(sight, call, outcome.as_str(), event.at);
            }
            Fact::AttemptStarted { attempt, purpose, tool, .. } => {
                let Some(call) = self.calls.get_mut(&attempt.call) else { return };
                let upstream = match purpose {
                    Purpose::Act | Purpose::Join => call.upstream.clone(),
                    // What reads a status or undoes a call may live elsewhere.
                    Purpose::Baseline | Purpose::Status | Purpose::Evidence | Purpose::Reverse => {
                        let found =
                            sight.gateway.catalogue.now().find(tool.as_str()).map(|tool| tool.upstream.name.clone());
                        found.map_or_else(|| call.upstream.clone(), |name| Metrics::upstream(&name))
                    }
                };
                let labels = [("upstream", upstream.clone()), ("purpose", Word::Fixed(purpose.as_str()))];
                sight.count(&metrics.started, labels);
                call.attempts.insert(attempt.n, Begun { purpose: *purpose, upstream, at: event.at });
            }
            Fact::AttemptEnded { attempt, report, .. } => {
                let upstream = self.attempt_ended(sight, attempt, report.certainty, "ended", event.at);
                if let Some(failure) = &report.failure {
                    let code = Word::Fixed(failure.code.as_str());
                    let labels = [("upstream", upstream), ("said", Word::Fixed(said(report))), ("code", code)];
                    sight.count(&metrics.failures, labels);
                }
            }
            Fact::AttemptTimedOut { attempt, certainty } => {
                self.attempt_ended(sight, attempt, *certainty, "timed_out", event.at);
            }
            Fact::AttemptOrphaned { attempt, certainty } => {
                self.attempt_ended(sight, attempt, *certainty, "orphaned", event.at);
            }
            Fact::FailureJudged { attempt, verdict, compensation, retry, held_back, .. } => {
                sight.count(&metrics.verdicts, [("verdict", Word::Fixed(verdict.as_str()))]);
                sight.count(&metrics.compensations, [("compensation", compensation_word(compensation))]);
                if retry.is_some() {
                    sight.count(&metrics.retries, [("upstream", self.upstream_of(attempt))]);
                }
                if let Some(by) = held_back {
                    sight.count(&metrics.held_back, [("by", Word::Fixed(by.as_str()))]);
                }
            }
            Fact::MoveWaits { .. } => {
                let upstream = self.moving.clone().unwrap_or(Word::UNKNOWN);
                sight.count(&metrics.retries, [("upstream", upstream)]);
            }
            Fact::MoveEnded { .. } => self.moving = None,
            Fact::WaitBegan { next, .. } => sight.count(&metrics.waits, [("next", Word::Fixed(next.as_str()))]),
            Fact::DoubtSettled { certainty, .. } => sight.settled("upstream", *certainty),
            Fact::DoubtResolved { certainty, by: None, .. } => sight.settled("person", *certainty),
            Fact::DoubtResolved { certainty, by: Some(_), .. } => sight.settled("upstream", *certainty),
            Fact::InteractionOpened { .. } => sight.question("opened"),
            Fact::InteractionAnswered { .. } => sight.question("answered"),
            Fact::InteractionLapsed { .. } => sight.question("lapsed"),
            Fact::InteractionWithdrawn { .. } => sight.question("withdrawn"),
            Fact::ReversalMinted { .. } => sight.reversal("minted"),
            Fact::ReversalArmed { .. } => sight.reversal("armed"),
            Fact::ReversalVoided { .. } => sight.reversal("voided"),
            Fact::ReversalRefused { .. } => sight.reversal("refused"),
            Fact::ReversalRedeemed { .. } => sight.reversal("redeemed"),
            Fact::LateResult { report, .. } => {
                sight.count(&metrics.late, [("certainty", Word::Fixed(report.certainty.as_str()))]);
            }
            _ => {}
        }
    }

    fn ended(&mut self, sight: &mut Sight<'_>, call: &CallId, outcome: &'static str, at: Timestamp) {
        let Some(call) = self.calls.remove(call) else { return };
        let metrics = &sight.gateway.metrics;
        sight.time(&metrics.call_time, [("upstream", call.upstream.clone())], at.since_ms(call.received));
        let labels = [("tool", call.tool), ("upstream", call.upstream), ("outcome", Word::Fixed(outcome))];
        sight.count(&metrics.ended, labels);
    }

    /// Counts the end of an attempt, and says where it had gone.
    fn attempt_ended(
        &mut self,
        sight: &mut Sight<'_>,
        attempt: &AttemptId,
        certainty: Certainty,
        end: &'static str,
        at: Timestamp,
    ) -> Word {
        let begun = self.calls.get_mut(&attempt.call).and_then(|call| call.attempts.remove(&attempt.n));
        let Some(Begun { purpose, upstream, at: started }) = begun else { return Word::UNKNOWN };
        let metrics = &sight.gateway.metrics;
        let of_purpose = ("purpose", Word::Fixed(purpose.as_str()));
        // A join waits for another call, not for an upstream; after a crash nobody knows when it ended.
        if purpose != Purpose::Join && end != "orphaned" {
            let labels = [("upstream", upstream.clone()), of_purpose.clone()];
            sight.time(&metrics.attempt_time, labels, at.since_ms(started));
        }
        let certainty = ("certainty", Word::Fixed(certainty.as_str()));
        let labels = [("upstream", upstream.clone()), of_purpose, certainty, ("end", Word::Fixed(end))];
        sight.count(&metrics.attempts, labels);
        upstream
    }

    fn upstream_of(&self, attempt: &AttemptId) -> Word {
        self.calls.get(&attempt.call).map_or(Word::UNKNOWN, |call| call.upstream.clone())
    }
}

/// What is made of one step.
struct Sight<'a> {
    gateway: &'a Gateway,
    marks: Vec<Mark>,
}

impl Sight<'_> {
    fn count<const N: usize>(&mut self, family: &Count<N>, labels: Labels<N>) {
        self.marks.push(Mark::Count(family.get_or_create_owned(&labels)));
    }

    fn time<const N: usize>(&mut self, family: &Time<N>, labels: Labels<N>, ms: u64) {
        let seconds = ms as f64 / 1000.0;
        self.marks.push(Mark::Time(family.get_or_create_owned(&labels), seconds));
    }

    fn settled(&mut self, by: &'static str, certainty: Certainty) {
        let metrics = &self.gateway.metrics;
        let labels = [("by", Word::Fixed(by)), ("certainty", Word::Fixed(certainty.as_str()))];
        self.count(&metrics.doubts, labels);
    }

    fn question(&mut self, became: &'static str) {
        let metrics = &self.gateway.metrics;
        self.count(&metrics.questions, [("became", Word::Fixed(became))]);
    }

    fn reversal(&mut self, became: &'static str) {
        let metrics = &self.gateway.metrics;
        self.count(&metrics.reversals, [("became", Word::Fixed(became))]);
    }
}

/// Who said that an attempt failed: the tool in a result of its own, the protocol around it, or nobody.
fn said(report: &Report) -> &'static str {
    match (report.answered, &report.payload) {
        (true, Some(_)) => "tool_error",
        (true, None) => "protocol_error",
        (false, _) => "no_answer",
    }
}

/// A trace may have been written by another version, with words of its own.
fn compensation_word(word: &str) -> Word {
    Compensation::WORDS.into_iter().find(|known| *known == word).map_or(Word::UNKNOWN, Word::Fixed)
}
