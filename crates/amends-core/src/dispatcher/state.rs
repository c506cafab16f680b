//! What a session knows, and how each event changes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attempt::{Purpose, Report};
use crate::call::{Received, Rules};
use crate::certainty::Certainty;
use crate::claim::ClaimState;
use crate::contract::{Contract, EffectKind};
use crate::dispatcher::cancel::CancelReason;
use crate::dispatcher::ending::claims_end;
use crate::dispatcher::{Deadline, TraceError};
use crate::event::{Event, Fact};
use crate::failure::Failure;
use crate::id::{CallId, Digest, Principal, SessionId};
use crate::registry::Code;
use crate::time::Timestamp;
use crate::verdict::Verdict;

/// How many ended calls are remembered for the news of their delivery.
const ENDED_MAX: usize = 1024;

/// What a session knows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) seed: u64,
    principal: Principal,
    door: String,
    pub(super) seq: u64,
    pub(super) now: Timestamp,
    pub(super) calls: BTreeMap<CallId, CallState>,
    pub(super) ended: BTreeMap<CallId, Ended>,
}

/// An open call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CallState {
    pub(super) received: Received,
    /// Missing only while a trace is folded past calls that end within it.
    rules: Option<Arc<Rules>>,
    pub(super) at: Timestamp,
    pub(super) attempts: Vec<AttemptState>,
    pub(super) phase: Phase,
    /// The agent has its answer, though the call is not over.
    pub(super) answered: bool,
    pub(super) cancel: Option<CancelReason>,
    /// What is known of the effect of the call whose key it goes on with, which ended in doubt.
    pub(super) inherited: Option<Certainty>,
}

/// What an open call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing yet: it was just received.
    Received,
    /// The attempt of that number.
    Attempting(u32),
    /// The time of its next attempt.
    Waiting { until: Timestamp, next: Purpose },
}

/// One attempt of an open call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AttemptState {
    pub(super) n: u32,
    pub(super) purpose: Purpose,
    pub(super) started: Timestamp,
    pub(super) deadline: Timestamp,
    pub(super) send_by: Timestamp,
    pub(super) run: Option<u64>,
    pub(super) end: Option<AttemptEnd>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AttemptEnd {
    pub(super) at: Timestamp,
    pub(super) report: Report,
    /// What is known by now, which a later status read may have settled.
    pub(super) certainty: Certainty,
    pub(super) verdict: Option<Verdict>,
}

/// An ended call whose delivery still matters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ended {
    pub(super) received: Received,
    /// Whether its claims are given up when the answer is known to have arrived.
    pub(super) complete: bool,
}

impl Session {
    pub(super) fn new(id: SessionId, seed: u64, principal: Principal, door: &str) -> Self {
        Self {
            id,
            seed,
            principal,
            door: door.to_owned(),
            seq: 0,
            now: Timestamp::default(),
            calls: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    pub(super) fn opening(&self) -> Fact {
        Fact::SessionOpened {
            session: self.id.clone(),
            seed: self.seed,
            principal: self.principal.clone(),
            door: self.door.clone(),
        }
    }

    /// Applies a stored event, refusing what cannot follow.
    pub(super) fn fold(
        &mut self,
        event: &Event,
        rules: &impl Fn(&Digest) -> Option<Arc<Rules>>,
    ) -> Result<(), TraceError> {
        let illegal = TraceError::Illegal { seq: event.seq, name: event.fact.name() };
        let known = |call: &CallId| self.calls.contains_key(call);
        let legal = match &event.fact {
            Fact::SessionOpened { .. } => event.seq == 1,
            Fact::CallReceived { received, .. } => !known(&received.call),
            Fact::AttemptStarted { attempt, .. } => {
                self.calls.get(&attempt.call).is_some_and(|call| call.attempts.len() + 1 == attempt.n as usize)
            }
            Fact::AttemptEnded { attempt, .. }
            | Fact::AttemptTimedOut { attempt, .. }
            | Fact::AttemptOrphaned { attempt, .. } => {
                self.attempt(&attempt.call, attempt.n).is_some_and(|attempt| attempt.end.is_none())
            }
            Fact::FailureJudged { attempt, .. } => {
                self.attempt(&attempt.call, attempt.n).is_some_and(|attempt| attempt.end.is_some())
            }
            Fact::CallRefused { call, .. }
            | Fact::WaitBegan { call, .. }
            | Fact::DoubtSettled { call, .. }
            | Fact::InterimAnswered { call }
            | Fact::CallEnded { call, .. }
            | Fact::CancelRequested { call, .. } => known(call),
            Fact::AnswerDelivered { .. }
            | Fact::LateResult { .. }
            | Fact::Ticked { .. }
            | Fact::Resumed { .. }
            | Fact::Ignored { .. }
            | Fact::SuppressedError { .. } => true,
        };
        if !legal || event.at < self.now {
            return Err(illegal);
        }
        let found = match &event.fact {
            Fact::CallReceived { received, .. } => rules(&received.rules),
            _ => None,
        };
        self.apply(event, found);
        Ok(())
    }

    /// Refuses a folded session that has an open call without its rules.
    pub(super) fn forget_ended_rules(&self) -> Result<(), TraceError> {
        match self.calls.iter().find(|(_, call)| call.rules.is_none()) {
            Some((id, call)) => Err(TraceError::RulesMissing { call: id.clone(), hash: call.received.rules.clone() }),
            None => Ok(()),
        }
    }

    /// Applies an event. It must follow from those before it.
    pub(super) fn apply(&mut self, event: &Event, rules: Option<Arc<Rules>>) {
        self.seq = event.seq;
        self.now = event.at;
        let at = event.at;
        match &event.fact {
            Fact::CallReceived { received, .. } => {
                self.calls.insert(received.call.clone(), CallState::new(received, rules, at));
            }
            Fact::CallRefused { call, .. } => {
                self.calls.remove(call);
            }
            Fact::AttemptStarted { attempt, purpose, deadline, send_by, run, .. } => {
                if let Some(call) = self.calls.get_mut(&attempt.call) {
                    call.attempts.push(AttemptState {
                        n: attempt.n,
                        purpose: *purpose,
                        started: at,
                        deadline: *deadline,
                        send_by: *send_by,
                        run: *run,
                        end: None,
                    });
                    call.phase = Phase::Attempting(attempt.n);
                }
            }
            Fact::AttemptEnded { attempt, report, .. } => {
                self.end_attempt(&attempt.call, attempt.n, at, (**report).clone());
            }
            Fact::AttemptTimedOut { attempt, certainty } => {
                let report = Report::silent(Failure::of(Code::NetworkTimeout), *certainty);
                self.end_attempt(&attempt.call, attempt.n, at, report);
            }
            Fact::AttemptOrphaned { attempt, certainty } => {
                let report = Report::silent(Failure::of(Code::ConnectionLost), *certainty);
                self.end_attempt(&attempt.call, attempt.n, at, report);
            }
            Fact::FailureJudged { attempt, verdict, .. } => {
                if let Some(end) = self.attempt_mut(&attempt.call, attempt.n).and_then(|a| a.end.as_mut()) {
                    end.verdict = Some(*verdict);
                }
            }
            Fact::WaitBegan { call, until, next } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.phase = Phase::Waiting { until: *until, next: *next };
                }
            }
            Fact::DoubtSettled { call, certainty, .. } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.settle(*certainty);
                }
            }
            Fact::InterimAnswered { call } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.answered = true;
                }
            }
            Fact::CallEnded { call, replayed, .. } => {
                if let Some(state) = self.calls.remove(call)
                    && !state.received.claims.is_empty()
                    && !replayed
                {
                    let complete = state.rules.is_some() && claims_end(&state) == Some(ClaimState::Complete);
                    self.ended.insert(call.clone(), Ended { received: state.received, complete });
                    if self.ended.len() > ENDED_MAX {
                        self.ended.pop_first();
                    }
                }
            }
            Fact::CancelRequested { call, reason } => {
                if let Some(call) = self.calls.get_mut(call)
                    && call.cancel != Some(CancelReason::Asked)
                {
                    call.cancel = Some(*reason);
                }
            }
            Fact::AnswerDelivered { call } => {
                self.ended.remove(call);
            }
            Fact::SessionOpened { .. }
            | Fact::Ticked { .. }
            | Fact::Resumed { .. }
            | Fact::LateResult { .. }
            | Fact::Ignored { .. }
            | Fact::SuppressedError { .. } => {}
        }
    }

    pub(super) fn attempt(&self, call: &CallId, n: u32) -> Option<&AttemptState> {
        self.calls.get(call)?.attempts.get((n as usize).checked_sub(1)?)
    }

    fn attempt_mut(&mut self, call: &CallId, n: u32) -> Option<&mut AttemptState> {
        self.calls.get_mut(call)?.attempts.get_mut((n as usize).checked_sub(1)?)
    }

    fn end_attempt(&mut self, call: &CallId, n: u32, at: Timestamp, report: Report) {
        if let Some(attempt) = self.attempt_mut(call, n) {
            let certainty = report.certainty;
            attempt.end = Some(AttemptEnd { at, report, certainty, verdict: None });
        }
    }
}

impl CallState {
    fn new(received: &Received, rules: Option<Arc<Rules>>, at: Timestamp) -> Self {
        // Only a call that goes on with the holder's key has the holder's key.
        let taken_over = received
            .repeat_of
            .as_ref()
            .is_some_and(|held| held.state == ClaimState::InDoubt && held.effect_key == received.effect_key);
        Self {
            received: received.clone(),
            rules,
            at,
            attempts: Vec::new(),
            phase: Phase::Received,
            answered: false,
            cancel: None,
            inherited: taken_over.then_some(Certainty::InDoubt),
        }
    }

    pub(super) fn rules(&self) -> &Rules {
        self.rules.as_ref().expect("`restore` refuses a trace in which an open call has no rules")
    }

    pub(super) fn contract(&self) -> &Contract {
        &self.rules().contract
    }

    pub(super) fn effect(&self) -> EffectKind {
        self.contract().effect
    }

    /// The attempts that did, or may have done, what the agent asked for.
    pub(super) fn acts(&self) -> impl DoubleEndedIterator<Item = &AttemptState> {
        self.attempts.iter().filter(|attempt| attempt.purpose == Purpose::Act)
    }

    /// The attempts that may have had an effect nobody knows of. A read has none.
    pub(super) fn doubts(&self) -> impl Iterator<Item = &AttemptState> {
        let read = self.effect().is_read();
        self.acts()
            .filter(move |attempt| !read && attempt.end.as_ref().is_none_or(|end| end.certainty == Certainty::InDoubt))
    }

    pub(super) fn in_doubt(&self) -> bool {
        self.inherits_doubt() || self.doubts().next().is_some()
    }

    /// Whether the call whose key it goes on with may have done it.
    pub(super) fn inherits_doubt(&self) -> bool {
        self.inherited == Some(Certainty::InDoubt)
    }

    /// Whether it did something to the world, or may have.
    pub(super) fn may_have_acted(&self) -> bool {
        !self.effect().is_read() && !self.certainty().nothing_happened()
    }

    /// Whether the upstream itself ended every attempt in doubt, with an error that proves nothing.
    pub(super) fn doubts_were_answered(&self) -> bool {
        let answered = |doubt: &AttemptState| doubt.end.as_ref().is_some_and(|end| end.report.answered);
        self.doubts().next().is_some() && self.doubts().all(answered)
    }

    /// What is known of the call's effect, over all its attempts.
    pub(super) fn certainty(&self) -> Certainty {
        let of = |attempt: &AttemptState| attempt.end.as_ref().map_or(Certainty::InDoubt, |end| end.certainty);
        let done = self.acts().any(|attempt| of(attempt) == Certainty::Processed);
        if done || self.inherited == Some(Certainty::Processed) {
            Certainty::Processed
        } else if self.in_doubt() {
            Certainty::InDoubt
        } else if self.acts().all(|attempt| of(attempt) == Certainty::NotSent) {
            Certainty::NotSent
        } else {
            Certainty::NotProcessed
        }
    }

    /// The last attempt to act, and how it ended.
    pub(super) fn last_act(&self) -> Option<(&AttemptState, &AttemptEnd)> {
        self.acts().rev().find_map(|attempt| attempt.end.as_ref().map(|end| (attempt, end)))
    }

    /// When none of the attempts in doubt can take effect any more.
    pub(super) fn quiet_at(&self) -> Option<Timestamp> {
        let settles = self.contract().settles_within_ms?;
        let last = self.doubts().map(|attempt| match &attempt.end {
            // An orphan was perhaps sent by a process that only stalled, as late as its send deadline.
            Some(end) if end.report.answered => end.at.min(attempt.send_by),
            Some(_) | None => attempt.send_by,
        });
        // Whatever the call before this one sent had left when it ended, before this one arrived.
        let inherited = self.inherits_doubt().then_some(self.at);
        last.chain(inherited).max().map(|at| at + settles)
    }

    pub(super) fn deadline(&self) -> Option<Deadline> {
        let call = || self.received.call.clone();
        let own = match self.phase {
            Phase::Received => return None,
            Phase::Attempting(n) => {
                let attempt = self.attempts.get((n as usize).checked_sub(1)?)?;
                Deadline { at: attempt.deadline, call: call(), reason: "an attempt's answer is due" }
            }
            Phase::Waiting { until, .. } => Deadline { at: until, call: call(), reason: "the next attempt is due" },
        };
        if !self.answered && self.received.deadline < own.at {
            return Some(Deadline { at: self.received.deadline, call: call(), reason: "the agent's answer is due" });
        }
        Some(own)
    }

    fn settle(&mut self, certainty: Certainty) {
        if self.inherits_doubt() {
            self.inherited = Some(certainty);
        }
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.purpose == Purpose::Act) {
            if let Some(end) = attempt.end.as_mut().filter(|end| end.certainty == Certainty::InDoubt) {
                end.certainty = certainty;
            }
        }
    }
}
