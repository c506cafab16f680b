//! What a session knows, and how each event changes it.

mod call;
mod clock;
mod deed;
mod fit;
mod moving;
mod question;
mod walk;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::approval::Scope;
use crate::attempt::Report;
use crate::call::{Received, Rules};
use crate::certainty::Certainty;
use crate::claim::ClaimState;
use crate::dispatcher::TraceError;
use crate::dispatcher::cancel::CancelReason;
use crate::dispatcher::ending::claims_end;
use crate::dispatcher::retire::RetireReason;
use crate::event::{Decider, Event, Fact};
use crate::failure::Failure;
use crate::gates::Approval;
use crate::id::{CallId, Digest, InteractionId, Principal, SessionId, ToolName};
use crate::inquiry::Unanswered;
use crate::interaction::Subject;
use crate::outcome::Outcome;
use crate::registry::Code;
use crate::reversal::Redeems;
use crate::time::Timestamp;

pub(super) use call::{AttemptEnd, AttemptState, CallState, InquiryState, Phase};
pub(super) use deed::Unwound;
pub(super) use moving::{Budget, LegEnd, LegState, MoveState, Told};
pub(super) use question::Question;
pub(super) use walk::{KEYED_MS, REPEATED_MS, WalkState};

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
    /// The calls that ended without anybody knowing whether they undid what they should.
    pub(super) redeeming: BTreeMap<CallId, Redeeming>,
    pub(super) questions: BTreeMap<InteractionId, Question>,
    /// The questions about what happened to which a person said that it did not.
    pub(super) refuted: VecDeque<Question>,
    /// The tools for which a person said yes for the whole session, each with who had to.
    pub(super) allowed: Vec<(ToolName, Approval)>,
    /// Its way through a machine.
    pub(super) walk: Option<WalkState>,
    /// Whether it is over for good.
    pub(super) retired: bool,
    /// What its calls have cost.
    pub(super) spent_milli: u64,
}

/// An ended call whose delivery still matters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ended {
    pub(super) received: Received,
    /// Whether its claims are given up when the answer is known to have arrived.
    pub(super) complete: bool,
}

/// A call that may have undone something.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Redeeming {
    pub(super) redeems: Redeems,
    /// Its attempts in doubt.
    pub(super) doubts: Vec<u32>,
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
            redeeming: BTreeMap::new(),
            questions: BTreeMap::new(),
            refuted: VecDeque::new(),
            allowed: Vec::new(),
            walk: None,
            retired: false,
            spent_milli: 0,
        }
    }

    pub(super) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(super) fn opening(&self, decider: Decider) -> Fact {
        Fact::SessionOpened {
            session: self.id.clone(),
            seed: self.seed,
            principal: self.principal.clone(),
            door: self.door.clone(),
            tenant: self.principal.tenant(),
            decider,
        }
    }

    /// What its last event says once the others are dropped.
    pub(super) fn retirement(&self, reason: RetireReason) -> Fact {
        Fact::SessionRetired {
            session: self.id.clone(),
            principal: self.principal.clone(),
            door: self.door.clone(),
            events: self.seq,
            reason,
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
        let moves = |of: &CallId| self.open_move().is_some_and(|open| open.taking.id == *of);
        let legal = match &event.fact {
            Fact::SessionOpened { .. } => event.seq == 1,
            Fact::SessionRetired { events, .. } => event.seq.checked_sub(1) == Some(*events) && !self.is_busy(),
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
            Fact::InquiryMade { attempt, .. } | Fact::WorkNamed { attempt, .. } => {
                self.attempt(&attempt.call, attempt.n).is_some_and(|attempt| attempt.end.is_none())
            }
            Fact::InquiryOpened { attempt, inquiry, held, .. } => {
                let of = self.attempt(&attempt.call, attempt.n).is_some_and(|state| state.end.is_none() == *held);
                of && self.calls.get(&attempt.call).is_some_and(|call| call.next_inquiry() == *inquiry)
            }
            Fact::InputsGiven { call, inquiry, .. } | Fact::InquiryWithdrawn { call, inquiry } => {
                self.is_asking(call, *inquiry)
            }
            Fact::InquiryClosed { call, inquiry, why } => match why {
                Unanswered::Refused => self.calls.get(call).is_some_and(|call| call.next_inquiry() == *inquiry),
                Unanswered::Lapsed | Unanswered::Withdrawn | Unanswered::Done | Unanswered::Declined => {
                    self.is_asking(call, *inquiry)
                }
            },
            Fact::CallRefused { call, .. }
            | Fact::WaitBegan { call, .. }
            | Fact::DoubtSettled { call, .. }
            | Fact::CallEnded { call, .. }
            | Fact::EvidenceCompared { call, .. }
            | Fact::ReversalMinted { call, .. } => known(call),
            Fact::CallApproved { call, .. } => {
                self.calls.get(call).is_some_and(|call| call.approval.is_some() && !call.approved)
            }
            Fact::InterimAnswered { call } | Fact::CancelRequested { call, .. } => known(call) || moves(call),
            Fact::InteractionOpened { interaction } => {
                let of = known(&interaction.call)
                    || moves(&interaction.call)
                    || self.unwinds(&interaction.call)
                    || self.refuted.iter().any(|said| said.interaction.call == interaction.call);
                of && !self.questions.contains_key(&interaction.id)
            }
            Fact::WalkBegan { beginning } => self.walk.is_none() && WalkState::can_begin(beginning),
            Fact::WalkMigrated { definition, .. } => self.walk.as_ref().is_some_and(|walk| walk.fits(definition)),
            Fact::MoveReceived { .. } => self.walk.is_some(),
            Fact::MoveRefused { .. } | Fact::MoveJoined { .. } | Fact::WalkReset { .. } | Fact::WalkAborted { .. } => {
                self.walk.is_some()
            }
            Fact::WalkUnwound { of, .. } => self.unwinds(of),
            Fact::MoveWeighed { of, .. } | Fact::MoveWaits { of, .. } | Fact::MoveEnded { of, .. } => moves(of),
            Fact::MoveMade { of, action, to, enters, moves: made, .. } => {
                let walk = self.walk.as_ref();
                moves(of)
                    && walk.is_some_and(|walk| {
                        *made == walk.moves.saturating_add(1) && walk.leads(action, to, enters.as_ref())
                    })
            }
            Fact::InteractionAnswered { interaction, .. }
            | Fact::InteractionLapsed { interaction, .. }
            | Fact::InteractionWithdrawn { interaction } => self.questions.contains_key(interaction),
            Fact::AnswerDelivered { .. }
            | Fact::DoubtResolved { .. }
            | Fact::ReversalArmed { .. }
            | Fact::ReversalVoided { .. }
            | Fact::ReversalRefused { .. }
            | Fact::ReversalRedeemed { .. }
            | Fact::LateResult { .. }
            | Fact::Ticked { .. }
            | Fact::Resumed { .. }
            | Fact::SchemaDrifted { .. }
            | Fact::SchemaApproved { .. }
            | Fact::Ignored { .. }
            | Fact::SuppressedError { .. } => true,
        };
        if !legal || self.retired || event.at < self.now {
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
        if let Some(walk) = &mut self.walk {
            walk.apply(&event.fact, at);
        }
        match &event.fact {
            Fact::WalkBegan { beginning } => self.walk = WalkState::begin(beginning, at),
            Fact::CallReceived { received, gates } => {
                if let (Some(walk), Some(leg)) = (&mut self.walk, &received.leg) {
                    walk.leg_begins(leg, &received.call, received.reads);
                }
                // A repeat is the call that it repeats, and that was counted; one that spends a yes is a call of its own.
                let counts = received.repeat_of.as_ref().is_none_or(|held| held.state == ClaimState::Granted);
                let cost = gates.cost.filter(|_| counts);
                let ruling = gates.ruling.clone();
                let call = CallState { cost, ruling, ..CallState::new(received, gates, rules, at) };
                self.calls.insert(received.call.clone(), call);
            }
            Fact::CallRefused { call, refusal } => {
                self.calls.remove(call);
                let (outcome, certainty, code) = (Outcome::Refused, Certainty::NotSent, Some(refusal.code));
                let (granted, refused, doubts) = (false, Some(refusal.kind), Vec::new());
                self.leg_ends(call, LegEnd { outcome, certainty, code, refused, granted, doubts, told: None });
            }
            Fact::AttemptStarted { attempt, purpose, deadline, send_by, run, item, .. } => {
                if let Some(call) = self.calls.get_mut(&attempt.call) {
                    self.spent_milli = self.spent_milli.saturating_add(call.unbegun_cost().unwrap_or_default());
                    call.attempts.push(AttemptState {
                        n: attempt.n,
                        purpose: *purpose,
                        started: at,
                        deadline: *deadline,
                        send_by: *send_by,
                        run: *run,
                        item: *item,
                        end: None,
                    });
                    call.phase = Phase::Attempting(attempt.n);
                }
            }
            Fact::AttemptEnded { attempt, report, .. } => {
                if let (Some(call), Some(inquiry)) = (self.calls.get_mut(&attempt.call), &report.inquiry) {
                    call.wait_as_said(inquiry);
                }
                if let (Some(call), Some(basis)) = (self.calls.get_mut(&attempt.call), &report.granted) {
                    call.spends(attempt.n, basis, at);
                }
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
                if let Some(state) = self.calls.get_mut(call) {
                    state.answered = true;
                    let asks = state.holds_its_move_up();
                    if let Some(walk) = &mut self.walk {
                        walk.leg_lingers(call, asks);
                    }
                }
            }
            Fact::CallEnded { call, replayed, outcome, certainty, granted, lasts, .. } => {
                let done = self.walk.as_mut().zip(self.calls.get(call)).filter(|_| !*replayed);
                done.into_iter().for_each(|(walk, it)| walk.deeds.add(&it.received, *outcome, *certainty, *lasts, at));
                let code = self.calls.get(call).and_then(CallState::last_failed);
                let refused = self.calls.get(call).and_then(CallState::recorded).and_then(|end| end.refused);
                let (outcome, certainty, granted) = (*outcome, *certainty, *granted);
                let doubts = self.calls.get(call).map(CallState::doubted).unwrap_or_default();
                let doubtful = self.calls.get(call).filter(|_| certainty == Certainty::InDoubt);
                let told = doubtful.and_then(CallState::told_of_doubt).map(Box::new);
                let redeems = self.calls.get(call).and_then(|state| state.received.redeems.clone());
                if let Some(redeems) = redeems.filter(|_| certainty == Certainty::InDoubt) {
                    self.redeeming.insert(call.clone(), Redeeming { redeems, doubts: doubts.clone() });
                    if self.redeeming.len() > ENDED_MAX {
                        self.redeeming.pop_first();
                    }
                }
                self.leg_ends(call, LegEnd { outcome, certainty, code, refused, granted, doubts, told });
                if let Some(state) = self.calls.remove(call)
                    && !state.received.claims.is_empty()
                    && !replayed
                {
                    // An error that hides a write that was done is no answer to somebody who tries again on errors.
                    let told = match outcome {
                        Outcome::Succeeded | Outcome::SucceededAfterCompensation => true,
                        Outcome::Deprecated
                        | Outcome::Escalated
                        | Outcome::Reversed
                        | Outcome::Exhausted
                        | Outcome::Cancelled
                        | Outcome::Refused
                        | Outcome::Unresolved => certainty != Certainty::Processed,
                    };
                    let complete = told && state.rules.is_some() && claims_end(&state) == Some(ClaimState::Complete);
                    self.ended.insert(call.clone(), Ended { received: state.received, complete });
                    if self.ended.len() > ENDED_MAX {
                        self.ended.pop_first();
                    }
                }
            }
            Fact::CallApproved { call, scope, .. } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.approved = true;
                    if let (Scope::Session, Some(approval)) = (scope, &call.approval) {
                        self.allowed.push((call.received.tool.clone(), (**approval).clone()));
                    }
                }
            }
            Fact::EvidenceCompared { call, changed } => {
                if let Some(call) = self.calls.get_mut(call) {
                    call.compared += 1;
                    call.changed.clone_from(changed);
                }
            }
            Fact::InteractionOpened { interaction } => self.open_question(interaction),
            Fact::InteractionAnswered { interaction, answer, .. } => {
                self.note_yes(interaction, answer);
                self.note_refuted(interaction, answer);
                self.close_question(interaction, at, true);
            }
            Fact::InteractionLapsed { interaction, .. } => self.close_question(interaction, at, false),
            Fact::InteractionWithdrawn { interaction } => {
                let withdrawn = self.questions.remove(interaction);
                // Who is asked whether something may be done holds the walk up until the question is taken back.
                let asked = withdrawn.as_ref().filter(|question| {
                    matches!(question.interaction.subject, Subject::Move | Subject::Call | Subject::SignIn)
                });
                if let (Some(question), Some(walk)) = (asked, &mut self.walk) {
                    walk.people_had(question.interaction.opened, at);
                }
                let of = withdrawn.filter(|question| question.interaction.subject == Subject::SignIn);
                if let Some(call) = of.and_then(|question| self.calls.get_mut(&question.interaction.call)) {
                    call.signing_in = false;
                }
            }
            Fact::InquiryMade { attempt, inquiry, .. } => {
                self.calls.get_mut(&attempt.call).into_iter().for_each(|call| call.wait_as_said(inquiry));
            }
            Fact::InquiryOpened { attempt, inquiry, held, due, way } => {
                if let Some(call) = self.calls.get_mut(&attempt.call) {
                    let (n, attempt, held) = (*inquiry, attempt.n, *held);
                    call.inquiries.push(InquiryState { n, attempt, held, way: *way, due: *due, ended: None });
                    call.paused.get_or_insert(at);
                    if !held {
                        call.phase = Phase::Inquiring;
                    }
                }
            }
            Fact::InputsGiven { call, inquiry, .. } => {
                self.close_inquiry(call, *inquiry, at);
                if let Some(call) = self.calls.get_mut(call) {
                    call.unanswered = false;
                    // Whoever gives them is there.
                    call.cancel = call.cancel.filter(|reason| reason.is_wish());
                }
            }
            Fact::InquiryWithdrawn { call, inquiry } => self.close_inquiry(call, *inquiry, at),
            Fact::InquiryClosed { call, inquiry, why } => {
                if *why != Unanswered::Refused {
                    self.close_inquiry(call, *inquiry, at);
                }
                if let Some(call) = self.calls.get_mut(call) {
                    if *why == Unanswered::Refused {
                        call.refuse_inquiry(*inquiry, at);
                    }
                    call.unanswered = *why == Unanswered::Lapsed;
                }
            }
            Fact::ReversalRedeemed { call, of, .. } => {
                self.redeeming.remove(call);
                if let Some(call) = self.calls.get_mut(of).filter(|_| call == of) {
                    call.undone = true;
                }
            }
            Fact::CancelRequested { call, reason } => {
                if let Some(call) = self.calls.get_mut(call)
                    && !call.cancel.is_some_and(CancelReason::is_wish)
                {
                    call.cancel = Some(*reason);
                }
            }
            Fact::AnswerDelivered { call } => {
                self.ended.remove(call);
            }
            Fact::Resumed { gates, .. } => {
                for call in self.calls.values_mut() {
                    call.resumed = Some(at);
                    call.key_age_lost |= gates.clock_behind;
                }
            }
            Fact::DoubtResolved { call, certainty, .. } => {
                self.refuted.retain(|said| said.interaction.call != *call || certainty.nothing_happened());
            }
            Fact::SessionRetired { .. } => {
                self.retired = true;
                self.ended.clear();
            }
            Fact::SessionOpened { .. }
            | Fact::WorkNamed { .. }
            | Fact::Ticked { .. }
            | Fact::LateResult { .. }
            | Fact::ReversalMinted { .. }
            | Fact::ReversalArmed { .. }
            | Fact::ReversalVoided { .. }
            | Fact::ReversalRefused { .. }
            | Fact::SchemaDrifted { .. }
            | Fact::SchemaApproved { .. }
            | Fact::WalkMigrated { .. }
            | Fact::MoveReceived { .. }
            | Fact::MoveRefused { .. }
            | Fact::MoveJoined { .. }
            | Fact::MoveWeighed { .. }
            | Fact::MoveWaits { .. }
            | Fact::MoveMade { .. }
            | Fact::MoveEnded { .. }
            | Fact::WalkReset { .. }
            | Fact::WalkAborted { .. }
            | Fact::WalkUnwound { .. }
            | Fact::Ignored { .. }
            | Fact::SuppressedError { .. } => {}
        }
    }

    /// The move that is being made.
    pub(super) fn open_move(&self) -> Option<&MoveState> {
        self.walk.as_ref()?.open.as_ref()
    }

    /// Whether that is the move with which the walk was given up.
    pub(super) fn unwinds(&self, of: &CallId) -> bool {
        self.walk.as_ref().is_some_and(|walk| walk.aborted_by.as_ref() == Some(of))
    }

    /// Whether anything is open in it.
    pub(super) fn is_busy(&self) -> bool {
        let unwinding = self.walk.as_ref().is_some_and(|walk| walk.unwinding);
        !self.calls.is_empty() || !self.questions.is_empty() || self.open_move().is_some() || unwinding
    }

    fn leg_ends(&mut self, call: &CallId, end: LegEnd) {
        if let Some(walk) = &mut self.walk {
            walk.leg_ends(call, end);
        }
    }

    /// An inquiry is over: the clock of its call goes on, and that of the move that the call is made for.
    fn close_inquiry(&mut self, id: &CallId, inquiry: u32, at: Timestamp) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let before = call.deadline;
        call.close_inquiry(inquiry, at);
        let took_ms = call.deadline.since_ms(before);
        if let Some(walk) = &mut self.walk {
            walk.agent_took(id, took_ms, at);
        }
    }

    fn is_asking(&self, call: &CallId, inquiry: u32) -> bool {
        self.calls.get(call).is_some_and(|call| call.open_inquiries().any(|open| open.n == inquiry))
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
