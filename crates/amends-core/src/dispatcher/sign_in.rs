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
                sign_in.upstream, received.tool
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
            gives: None,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::attempt::{Payload, Purpose, Report};
    use crate::call::{Call, Rules};
    use crate::certainty::Certainty;
    use crate::claim::Claim;
    use crate::contract::Contract;
    use crate::dispatcher::redecide::redecide;
    use crate::dispatcher::{Input, Step};
    use crate::event::Event;
    use crate::gates::{Approval, Patience};
    use crate::inquiry::Inquiry;
    use crate::interaction::PersonAnswer;
    use crate::playbook::Playbook;

    fn rules() -> Arc<Rules> {
        let contract = Contract { declared: true, ..Contract::undeclared(5_000, 50_000, 600_000) };
        Arc::new(Rules { contract, playbook: Playbook::default() })
    }

    /// A session in which a write is made whose upstream wants somebody to sign in.
    struct World {
        dispatcher: Dispatcher,
        trace: Vec<Event>,
        now: u64,
    }

    impl World {
        fn new(approval: bool) -> Self {
            let dispatcher = Dispatcher::open("s".into(), 7, "agent".into(), "mcp");
            let mut world = Self { dispatcher, trace: Vec::new(), now: 1_000_000 };
            let claims = [("n", ClaimKind::Arguments), ("o", ClaimKind::Object)];
            let claims = claims.map(|(name, kind)| Claim { name: name.into(), fingerprint: "f".into(), kind });
            let call = Call {
                id: "c".into(),
                tool: "pay".into(),
                upstream: "shop".into(),
                rules: rules(),
                rules_hash: "rules".into(),
                arguments: Payload { digest: "f".into(), size: 2 },
                principal: "agent".into(),
                deadline: Timestamp::from_ms(world.now) + 50_000,
                key: None,
                claims: claims.to_vec(),
                effect_key: "key".into(),
                repeat_of: None,
                evidence: Vec::new(),
                reversal: None,
                redeems: None,
                view: None,
                leg: None,
            };
            let approval = approval.then(|| {
                let (queue, policy) = ("ops".to_owned(), String::new());
                Box::new(Approval { queue, persons: 1, policy, requester_may: false, form: None })
            });
            let gates = Gates { approval, ..Gates::default() };
            let _ = world.put_with(&gates, Input::Call(Box::new(call)));
            world
        }

        fn put_with(&mut self, gates: &Gates, input: Input) -> Step {
            self.now += 1_000;
            let step = self.dispatcher.handle(Timestamp::from_ms(self.now), gates, input);
            self.trace.extend(step.events.iter().cloned());
            step
        }

        fn put(&mut self, input: Input) -> Step {
            self.put_with(&Gates::default(), input)
        }

        /// The attempt of that number was not sent: somebody has to sign in.
        fn unsigned(&mut self, n: u32) -> Step {
            let report = Report { certainty: Certainty::NotSent, ..Report::asking(Box::new(inquiry())) };
            self.put(Input::Result { attempt: AttemptId { call: "c".into(), n }, report: Box::new(report) })
        }

        fn says(&mut self, choice: &str) -> Step {
            let asked = self.trace.iter().rev().find_map(|event| match &event.fact {
                Fact::InteractionOpened { interaction } => Some(interaction.id.clone()),
                _ => None,
            });
            let at = Timestamp::from_ms(self.now);
            let answer = PersonAnswer { choice: choice.into(), by: "ada".into(), note: None, at, content: None };
            self.put(Input::Answer { interaction: asked.expect("a question"), answer: Box::new(answer) })
        }

        fn decided_again(&self) {
            assert_eq!(redecide(&self.trace, |_| Some(rules())), Ok(None));
            let restored = Dispatcher::restore(&self.trace, |_| Some(rules()));
            assert_eq!(restored.as_ref(), Ok(&self.dispatcher));
        }
    }

    fn inquiry() -> Inquiry {
        let patience = Patience::default();
        let sign_in = SignIn {
            upstream: "shop".into(),
            queue: "ops".into(),
            by_code: true,
            until: None,
            requester_may: false,
            patience,
        };
        Inquiry { sign_in: Some(Box::new(sign_in)), ..Inquiry::of(Vec::new(), Way::Person) }
    }

    fn sends(step: &Step) -> usize {
        step.effects.iter().filter(|effect| matches!(effect, Effect::Send(it) if it.purpose == Purpose::Act)).count()
    }

    fn refused(step: &Step) -> Option<RefusalKind> {
        step.events.iter().find_map(|event| match &event.fact {
            Fact::CallRefused { refusal, .. } => Some(refusal.kind),
            _ => None,
        })
    }

    fn asked(step: &Step) -> Option<InteractionKind> {
        step.events.iter().find_map(|event| match &event.fact {
            Fact::InteractionOpened { interaction } => Some(interaction.kind),
            _ => None,
        })
    }

    #[test]
    fn what_was_not_sent_is_sent_once_somebody_signed_in_and_what_it_writes_is_free_meanwhile() {
        let mut world = World::new(false);
        let waits = world.unsigned(1);
        assert_eq!((asked(&waits), sends(&waits)), (Some(InteractionKind::AuthDeviceCode), 0));
        let freed = |change: &ClaimChange| matches!(change, ClaimChange::Release { name, .. } if name.as_str() == "o");
        assert!(waits.claims.iter().any(freed), "{:?}", waits.claims);
        world.now += 3_600_000;
        let goes_on = world.says(choice::DONE);
        assert_eq!(sends(&goes_on), 1, "the work clock stood: {goes_on:?}");
        let taken =
            |change: &ClaimChange| matches!(change, ClaimChange::Take { claim, .. } if claim.name.as_str() == "o");
        assert!(goes_on.claims.iter().any(taken), "{:?}", goes_on.claims);
        // A token that is not taken either is asked for under another name.
        assert!(asked(&world.unsigned(2)).is_some());
        assert_eq!(sends(&world.says(choice::DONE)), 1);
        world.decided_again();
    }

    #[test]
    fn a_no_and_nobody_in_time_end_the_call_and_nothing_is_sent() {
        let mut world = World::new(false);
        let _ = world.unsigned(1);
        assert_eq!(refused(&world.says(choice::DENY)), Some(RefusalKind::ApprovalDenied));
        world.decided_again();
        let mut world = World::new(false);
        let _ = world.unsigned(1);
        world.now += 25 * 3_600_000;
        let late = world.put(Input::Tick);
        assert_eq!((refused(&late), sends(&late)), (Some(RefusalKind::ApprovalExpired), 0));
        world.decided_again();
    }

    #[test]
    fn the_agent_is_told_after_a_while_and_its_next_equal_call_goes_on() {
        let mut world = World::new(false);
        let _ = world.unsigned(1);
        world.now += 20_000;
        let told = world.put(Input::Tick);
        assert!(told.events.iter().any(|event| matches!(event.fact, Fact::InterimAnswered { .. })), "{told:?}");
        let later = world.says(choice::DONE);
        assert_eq!(sends(&later), 0);
        let granted = |event: &Event| matches!(event.fact, Fact::CallEnded { granted: true, .. });
        assert!(later.events.iter().any(granted), "{later:?}");
        world.decided_again();
    }

    #[test]
    fn signing_in_is_no_yes() {
        let mut world = World::new(true);
        // The yes comes first where nothing was read before.
        assert_eq!(sends(&world.says(choice::APPROVE)), 1);
        let _ = world.unsigned(1);
        assert_eq!(sends(&world.says(choice::DONE)), 1);
        world.decided_again();
    }

    #[test]
    fn an_upstream_that_waits_is_told_what_became_of_its_question() {
        for (said, told) in [(choice::DONE, Unanswered::Done), (choice::DENY, Unanswered::Declined)] {
            let mut world = World::new(false);
            let attempt = AttemptId { call: "c".into(), n: 1 };
            let waits = world.put(Input::Inquiry { attempt: attempt.clone(), inquiry: Box::new(inquiry()) });
            assert!(asked(&waits).is_some() && waits.claims.is_empty(), "{waits:?}");
            world.now += 60_000;
            let answered = world.says(said);
            let tells = |effect: &Effect| matches!(effect, Effect::Tell(telling) if telling.unanswered == Some(told));
            assert!(answered.effects.iter().any(tells), "{answered:?}");
            let done = world.put(Input::Result { attempt, report: Box::new(Report::success(None)) });
            assert!(done.events.iter().any(|event| matches!(event.fact, Fact::CallEnded { .. })), "{done:?}");
            world.decided_again();
        }
    }

    #[test]
    fn a_wait_for_whoever_signs_in_goes_on_after_a_crash_and_an_upstream_that_waited_is_gone() {
        let mut world = World::new(false);
        let _ = world.unsigned(1);
        world.dispatcher = Dispatcher::restore(&world.trace, |_| Some(rules())).unwrap();
        let resumed = world.put(Input::Resume);
        assert_eq!((sends(&resumed), refused(&resumed)), (0, None));
        let later = world.says(choice::DONE);
        assert_eq!(sends(&later), 0, "its agent is gone");
        world.decided_again();
        let mut world = World::new(false);
        let attempt = AttemptId { call: "c".into(), n: 1 };
        let _ = world.put(Input::Inquiry { attempt, inquiry: Box::new(inquiry()) });
        world.dispatcher = Dispatcher::restore(&world.trace, |_| Some(rules())).unwrap();
        let resumed = world.put(Input::Resume);
        let withdrawn = |event: &Event| matches!(event.fact, Fact::InteractionWithdrawn { .. });
        assert!(resumed.events.iter().any(withdrawn), "{resumed:?}");
        world.decided_again();
    }
}
