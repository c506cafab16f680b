//! Somebody has to sign in before a call can go on: an upstream sends us to an address, or wants to be shown what only a person
//! can get.
//!
//! Nothing was done by then, or the upstream waits. A call of which nothing was done waits as one that needs a yes does; signing
//! in is no yes, and where one is needed it is asked for afterwards.

use crate::claim::{ClaimChange, ClaimKind, ClaimState};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::approve::{names, question_id};
use crate::dispatcher::state::CallState;
use crate::effect::Effect;
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId, InteractionId};
use crate::inquiry::{SignIn, Unanswered, Way};
use crate::interaction::{Grounds, Interaction, InteractionKind, Subject, choice};
use crate::limits::{ATTEMPT_MS_MIN, INQUIRIES_MAX};
use crate::refusal::{Refusal, RefusalKind};
use crate::registry::Code;
use crate::time::Timestamp;

impl Dispatcher {
    /// Asks a person to sign in, in the place of the agent.
    pub(super) fn ask_to_sign_in(&mut self, now: Timestamp, attempt: &AttemptId, sign_in: &SignIn) {
        let id = &attempt.call;
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let held = call.paused.is_some();
        let asked = |attempt: &&super::state::AttemptState| {
            let report = attempt.end.as_ref().map(|end| &end.report);
            report.and_then(|report| report.inquiry.as_ref()).is_some_and(|inquiry| inquiry.sign_in.is_some())
        };
        let often = call.attempts.iter().filter(asked).count();
        if call.patience.headless.is_some() || !self.can_ask() || often > INQUIRIES_MAX {
            return self.not_signed_in(now, id, RefusalKind::ApprovalDenied);
        }
        let received = &call.received;
        let barred = (!sign_in.requester_may).then(|| received.principal.to_string());
        let due = now + call.answer_within_ms().max(1);
        let interaction = Interaction {
            id: sign_in_id(call, often),
            session: self.state.id.clone(),
            call: id.clone(),
            tool: received.tool.clone(),
            principal: received.principal.clone(),
            queue: sign_in.queue.clone(),
            kind: if sign_in.by_code { InteractionKind::AuthDeviceCode } else { InteractionKind::AuthUrl },
            subject: Subject::SignIn,
            question: format!(
                "somebody has to sign in for `{}`, so that `{}` can go on",
                received.upstream, received.tool
            ),
            view: received.view.clone(),
            options: [choice::DONE, choice::DENY].map(str::to_owned).to_vec(),
            default: choice::DENY.to_owned(),
            opened: now,
            due: sign_in.until.map_or(due, |until| until.min(due)),
            arrives_by: None,
            grounds: Some(Box::new(Grounds {
                arguments: received.arguments.digest.clone(),
                evidence: Vec::new(),
                persons: 1,
                said_yes: 0,
                barred: barred.into_iter().collect(),
                policy: String::new(),
                form: None,
                sign_in: None,
            })),
        };
        let told_at_once = call.patience.hold_ms == 0 && !call.is_left();
        let (names, object) = (names(call), object(call));
        self.emit(now, Fact::InteractionOpened { interaction: Box::new(interaction.clone()) });
        self.step.effects.push(Effect::Ask(Box::new(interaction)));
        if !held {
            // An equal call waits with this one, and what it would write is free for others.
            for name in names {
                let (call, state) = (id.clone(), ClaimState::Awaiting);
                self.step.claims.push(ClaimChange::Settle { name, call, state, until: None });
            }
            for name in object {
                self.step.claims.push(ClaimChange::Release { name, call: id.clone() });
            }
        }
        if told_at_once {
            self.answer_interim(now, id);
        }
    }

    /// Somebody signed in: the upstream that waits is told, or the call is sent.
    pub(super) fn signed_in(&mut self, now: Timestamp, gates: &Gates, id: &CallId) {
        if self.tell_for_person(now, id, Unanswered::Done) {
            return;
        }
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let left = call.is_left() && !call.patience.goes_on;
        let refusal = match gates.refusal.as_deref() {
            Some(refusal) if !left => Some(refusal.clone()),
            _ if left || now + ATTEMPT_MS_MIN > call.deadline => Some(come_back(call)),
            _ => None,
        };
        if let Some(refusal) = refusal {
            if !call.needs_yes() {
                return self.grant(now, id, &refusal);
            }
            let released = names(call).into_iter().map(|name| ClaimChange::Release { name, call: id.clone() });
            self.step.claims.extend(released.collect::<Vec<_>>());
            self.settle_tokens(now, id);
            return self.refuse(now, id.clone(), refusal);
        }
        for name in names(call) {
            let (call, state) = (id.clone(), ClaimState::InFlight);
            self.step.claims.push(ClaimChange::Settle { name, call, state, until: None });
        }
        if !self.state.calls.get(id).is_some_and(CallState::needs_yes) {
            self.take_claims(now, id, |kind| kind == ClaimKind::Object);
        }
        let next = self.next_purpose(id);
        self.start(now, gates, id, next, None);
    }

    /// Nobody signs in: somebody said so, or nobody did in time.
    pub(super) fn not_signed_in(&mut self, now: Timestamp, id: &CallId, kind: RefusalKind) {
        let why = match kind {
            RefusalKind::ApprovalExpired => Unanswered::Lapsed,
            _ => Unanswered::Declined,
        };
        if self.tell_for_person(now, id, why) {
            return;
        }
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let upstream = &call.received.upstream;
        let words = match kind {
            RefusalKind::ApprovalExpired => format!("nobody signed in for `{upstream}` in time; nothing was done"),
            _ => format!("nobody signs in for `{upstream}`; that is final, nothing was done"),
        };
        self.turn_away(now, id, Refusal::of(kind, words));
    }

    /// Tells an upstream that waits what became of its question to a person. `false` where none does.
    fn tell_for_person(&mut self, now: Timestamp, id: &CallId, why: Unanswered) -> bool {
        let open = self.state.calls.get(id).and_then(|call| call.open_inquiries().find(|open| open.way == Way::Person));
        let Some((inquiry, n)) = open.map(|open| (open.n, open.attempt)) else {
            return false;
        };
        self.emit(now, Fact::InquiryClosed { call: id.clone(), inquiry, why });
        self.tell(&AttemptId { call: id.clone(), n }, inquiry, Some(why));
        true
    }

    /// Takes back that somebody should sign in.
    pub(super) fn withdraw_sign_in(&mut self, now: Timestamp, call: &CallId) {
        let of = |question: &super::state::Question| {
            question.interaction.subject == Subject::SignIn && question.interaction.call == *call
        };
        let open: Vec<InteractionId> =
            self.state.questions.iter().filter(|(_, question)| of(question)).map(|(id, _)| id.clone()).collect();
        for id in open {
            self.emit(now, Fact::InteractionWithdrawn { interaction: id.clone() });
            self.step.effects.push(Effect::Withdraw(id));
        }
    }
}

/// What an agent is told, if it is there, whose call cannot go on any more though somebody signed in.
fn come_back(call: &CallState) -> Refusal {
    let words = format!(
        "somebody signed in for `{}`, and nothing was done yet: call `{}` again",
        call.received.upstream, call.received.tool
    );
    Refusal { code: Code::ExecutionTimeout, ..Refusal::of(RefusalKind::RetryLater, words) }
}

/// The name of what the call would write, where it holds that.
fn object(call: &CallState) -> Vec<crate::id::Digest> {
    let held = |claim: &&crate::claim::Claim| claim.kind == ClaimKind::Object && !call.needs_yes();
    call.received.claims.iter().filter(held).map(|claim| claim.name.clone()).collect()
}

/// The id of the question: as hard to guess as the call's. A repeat knows that of a call that needs no yes.
fn sign_in_id(call: &CallState, often: usize) -> InteractionId {
    let id = &call.received.call;
    let first = question_id(id, 0);
    match (call.approval.is_some(), often + call.inquiries.len()) {
        (false, 0 | 1) => first,
        (_, n) => InteractionId::new(format!("{first}_in{n}")),
    }
}
