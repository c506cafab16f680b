//! Somebody must say yes before a call is sent.
//!
//! What was approved is what runs, once: a yes is bound to the call's arguments and to what was read for it, and it is spent
//! by the call that runs. A yes that comes when nobody waits any more is left for the next equal call.

use crate::approval::{Scope, Yes};
use crate::certainty::Certainty;
use crate::claim::{self, ClaimChange, ClaimKind, ClaimState};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::reconcile::still_in_flight;
use crate::dispatcher::state::CallState;
use crate::effect::{Answer, Effect};
use crate::envelope::{Body, Envelope, Trouble};
use crate::event::Fact;
use crate::gates::{Approval, Gates, Headless};
use crate::id::{CallId, InteractionId};
use crate::interaction::{Form, Grounds, Interaction, InteractionKind, Read, Subject, choice};
use crate::limits::{ATTEMPT_MS_MIN, PERSONS_MAX};
use crate::outcome::Outcome;
use crate::refusal::{Refusal, RefusalKind};
use crate::registry::Code;
use crate::time::Timestamp;

/// How long an agent that was told to come back had better wait.
pub(super) const COME_BACK_MS: u64 = 60 * 1000;

impl Dispatcher {
    /// Goes on with a call that needs a yes: somebody gave it already, or a person is asked.
    pub(super) fn seek_yes(&mut self, now: Timestamp, gates: &Gates, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let Some(approval) = call.approval.as_deref() else {
            return;
        };
        if let Some((yes, of)) = self.given(call, approval) {
            return self.approve(now, gates, id, yes, Scope::Once, None, of);
        }
        match call.patience.headless.map(|said| if approval.form.is_some() { Headless::Deny } else { said }) {
            Some(Headless::Approve) => return self.approve(now, gates, id, Yes::Headless, Scope::Once, None, None),
            Some(Headless::Deny) => {
                let words = format!(
                    "`{}` needs a person's yes, and nobody is there to be asked; nothing was sent",
                    call.received.tool
                );
                return self.turn_away(now, id, Refusal::of(RefusalKind::ApprovalDenied, words));
            }
            None => {}
        }
        if !self.can_ask() {
            let refusal = Refusal::of(RefusalKind::RateLimited, "too many questions are open; nothing was sent");
            return self.turn_away(now, id, Refusal { retry_after_ms: Some(COME_BACK_MS), ..refusal });
        }
        self.ask_for_call(now, id);
        let told_at_once = |call: &CallState| call.patience.hold_ms == 0;
        if self.state.calls.get(id).is_some_and(told_at_once) {
            self.answer_interim(now, id);
        }
    }

    /// A yes that was given before, and the call to which it was.
    fn given(&self, call: &CallState, approval: &Approval) -> Option<(Yes, Option<CallId>)> {
        let held = call.received.repeat_of.as_ref();
        if call.grant.as_ref().is_some_and(|basis| *basis == call.basis()) {
            return Some((Yes::Grant, held.map(|held| held.call.clone())));
        }
        let standing = held.filter(|held| held.state == ClaimState::Granted && held.is_standing());
        if let Some(held) = standing.filter(|held| held.effect_key == terms(approval)) {
            return Some((Yes::Arguments, Some(held.call.clone())));
        }
        let allowed = |(tool, terms): &(_, Approval)| *tool == call.received.tool && terms == approval;
        self.state.allowed.iter().any(allowed).then_some((Yes::Session, None))
    }

    /// Asks the next person whether a call is sent.
    fn ask_for_call(&mut self, now: Timestamp, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let Some(approval) = call.approval.as_deref() else {
            return;
        };
        let received = &call.received;
        let mut barred: Vec<String> = call.said_yes.iter().map(|answer| answer.by.clone()).collect();
        if !approval.requester_may {
            barred.push(received.principal.to_string());
        }
        let said_yes = call.said_yes.len() as u8;
        let persons = approval.persons.clamp(1, PERSONS_MAX);
        let more = match said_yes {
            0 => String::new(),
            _ => format!(" Said yes so far: {said_yes} of {persons}."),
        };
        let (kind, options) = answers(approval.form.as_deref(), !received.claims.is_empty());
        let question = match &approval.form {
            Some(form) => form.message.clone(),
            None => format!("may `{}` be called for `{}`?{more}", received.tool, received.principal),
        };
        let read = |(tool, hash): (&_, &_)| Read { tool: Clone::clone(tool), hash: Clone::clone(hash), view: None };
        let within_ms = call.answer_within_ms();
        let interaction = Interaction {
            id: question_id(id, call.said_yes.len()),
            session: self.state.id.clone(),
            call: id.clone(),
            tool: received.tool.clone(),
            principal: received.principal.clone(),
            queue: approval.queue.clone(),
            kind,
            subject: Subject::Call,
            question,
            view: received.view.clone(),
            options,
            default: choice::DENY.to_owned(),
            opened: now,
            due: now + within_ms.max(1),
            arrives_by: None,
            gives: None,
            grounds: Some(Box::new(Grounds {
                arguments: received.arguments.digest.clone(),
                evidence: call.read_last().map(read).collect(),
                persons,
                said_yes,
                barred,
                policy: approval.policy.clone(),
                form: approval.form.clone(),
                sign_in: None,
            })),
        };
        let names = names(call);
        self.emit(now, Fact::InteractionOpened { interaction: Box::new(interaction.clone()) });
        self.step.effects.push(Effect::Ask(Box::new(interaction)));
        for name in names {
            let (call, state) = (id.clone(), ClaimState::Awaiting);
            self.step.claims.push(ClaimChange::Settle { name, call, state, until: None });
        }
    }

    /// A person said yes. Where more of them must, the next one is asked.
    pub(super) fn said_yes(&mut self, now: Timestamp, gates: &Gates, id: &CallId, interaction: InteractionId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let persons = call.approval.as_ref().map_or(1, |approval| approval.persons.clamp(1, PERSONS_MAX));
        if call.said_yes.len() < usize::from(persons) {
            return self.ask_for_call(now, id);
        }
        // It is good for as little as the most careful of them said.
        let scope = call.said_yes.iter().map(|answer| scope(&answer.choice)).min().unwrap_or_default();
        self.approve(now, gates, id, Yes::Person, scope, Some(interaction), None);
    }

    #[expect(clippy::too_many_arguments, reason = "it is one fact, and what it leads to")]
    fn approve(
        &mut self,
        now: Timestamp,
        gates: &Gates,
        id: &CallId,
        yes: Yes,
        scope: Scope,
        interaction: Option<InteractionId>,
        of: Option<CallId>,
    ) {
        self.emit(now, Fact::CallApproved { call: id.clone(), yes, scope, interaction, of });
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if let (Scope::Arguments, Some(standing), Some(approval)) =
            (scope, claim::standing(&call.received.claims), &call.approval)
        {
            let (name, basis) = (standing.name.clone(), terms(approval));
            let (holder, effect_key) = (id.clone(), String::new());
            let take = ClaimChange::Take { claim: standing, call: holder.clone(), effect_key, since: now, over: None };
            self.step.claims.push(take);
            self.step.claims.push(ClaimChange::Grant { name, call: holder, basis, until: None });
        }
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        // What was let through when the call came may not be by now.
        let asked = yes == Yes::Person;
        let breaker = gates.breaker_until(&call.received.upstream, &call.received.tool).filter(|_| asked);
        let refusal = if asked && call.is_left() && !call.patience.goes_on {
            Some(approved(call))
        } else if let Some(refusal) = gates.refusal.as_deref().filter(|_| asked) {
            Some(refusal.clone())
        } else if let Some(until) = breaker {
            let words = format!(
                "a person said yes to `{}`, and `{}` failed too often and is left alone for a while; nothing was sent",
                call.received.tool, call.received.upstream
            );
            let retry_after_ms = Some(until.since_ms(now));
            Some(Refusal { retry_after_ms, ..Refusal::of(RefusalKind::BreakerOpen, words) })
        } else if now + ATTEMPT_MS_MIN > call.deadline {
            Some(approved(call))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return self.grant(now, id, &refusal);
        }
        if asked {
            for name in names(call) {
                let (call, state) = (id.clone(), ClaimState::InFlight);
                self.step.claims.push(ClaimChange::Settle { name, call, state, until: None });
            }
        }
        self.take_claims(now, id, |kind| kind == ClaimKind::Object);
        let next = self.next_purpose(id);
        self.start(now, gates, id, next, None);
    }

    /// The call ends without being sent, and the yes to it is left for the next equal one.
    pub(super) fn grant(&mut self, now: Timestamp, id: &CallId, refusal: &Refusal) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let error = Box::new(Trouble::refused(call.received.tool.as_str(), refusal));
        let (basis, until) = (call.basis(), Some(now + call.patience.granted_for_ms));
        // One yes is spent by one name: two calls that each found one would both be sent.
        let keyed = call.received.claims.iter().any(|claim| claim.kind == ClaimKind::Key);
        for claim in call.received.claims.iter().filter(|claim| claim.kind != ClaimKind::Object) {
            let (name, call) = (claim.name.clone(), id.clone());
            self.step.claims.push(match keyed && claim.kind != ClaimKind::Key {
                true => ClaimChange::Release { name, call },
                false => ClaimChange::Grant { name, call, basis: basis.clone(), until },
            });
        }
        self.settle_tokens(now, id);
        self.emit(
            now,
            Fact::CallEnded {
                call: id.clone(),
                outcome: Outcome::Escalated,
                certainty: Certainty::NotSent,
                attempt: None,
                replayed: false,
                granted: true,
                lasts: false,
            },
        );
        self.reply(id.clone(), Answer::Envelope(Envelope::of(Body::Refused { error })), true);
    }

    /// A person said no, or nobody said anything in time.
    pub(super) fn say_no(&mut self, now: Timestamp, id: &CallId, kind: RefusalKind) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let tool = &call.received.tool;
        let asks = call.approval.as_ref().is_some_and(|approval| approval.form.is_some());
        let words = match kind {
            RefusalKind::ApprovalDenied if asks => {
                format!("a person does not want to answer what `{tool}` asks; that is final, nothing was sent")
            }
            _ if asks => format!("nobody answered what `{tool}` asks in time; nothing was sent"),
            RefusalKind::ApprovalDenied => format!("a person said no to `{tool}`; that is final, nothing was sent"),
            _ => format!("nobody said yes to `{tool}` in time; nothing was sent"),
        };
        self.turn_away(now, id, Refusal::of(kind, words));
    }

    /// Refuses a call that holds its claims. An agent that was told to come back hears it then.
    pub(super) fn turn_away(&mut self, now: Timestamp, id: &CallId, refusal: Refusal) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let heard_by = call.is_left().then(|| now + call.contract().repeat_window_ms);
        for name in names(call) {
            let call = id.clone();
            self.step.claims.push(match heard_by {
                Some(until) => ClaimChange::Settle { name, call, state: ClaimState::Complete, until: Some(until) },
                None => ClaimChange::Release { name, call },
            });
        }
        self.withdraw(now, id);
        self.settle_tokens(now, id);
        self.refuse(now, id.clone(), refusal);
    }

    /// A person said yes to the call that this one joined, when nobody waited for that: it goes on in its place.
    pub(super) fn succeed_joined(&mut self, now: Timestamp, gates: &Gates, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if call.cancel.is_some() {
            return self.end_cancelled(now, id);
        }
        let asks = call.needs_yes();
        self.take_claims(now, id, |kind| !(asks && kind == ClaimKind::Object));
        let next = self.next_purpose(id);
        self.start(now, gates, id, next, None);
    }

    /// A repeat waits no longer for the call that it repeats.
    pub(super) fn leave_join(&mut self, now: Timestamp, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let held = call.received.repeat_of.as_ref().filter(|held| held.state == ClaimState::Awaiting);
        let Some(asked) = held.map(|held| question_id(&held.call, 0)) else {
            return self.refuse(now, id.clone(), still_in_flight());
        };
        let refusal = waiting(call, now);
        let mut error = Trouble::refused(call.received.tool.as_str(), &refusal);
        error.interaction = Some(asked);
        error.retryable = false;
        self.emit(now, Fact::CallRefused { call: id.clone(), refusal: Box::new(refusal) });
        self.reply(id.clone(), Answer::Envelope(Envelope::of(Body::Refused { error: Box::new(error) })), true);
    }
}

/// What an agent is told whose call waits for a person. The call is not over.
pub(super) fn awaiting(call: &CallState, now: Timestamp) -> Envelope {
    let mut error = Trouble::refused(call.received.tool.as_str(), &waiting(call, now));
    error.interaction.clone_from(&call.asked);
    error.retryable = false;
    if call.paused.is_some() {
        // Its upstream has it, and waits for whoever signs in.
        error.certainty = call.certainty();
        error.safe_to_repeat = call.safe_to_repeat();
    }
    Envelope::of(Body::Error { outcome: None, error: Box::new(error) })
}

fn waiting(call: &CallState, now: Timestamp) -> Refusal {
    let tool = &call.received.tool;
    let what = match call.approval.as_ref().is_some_and(|approval| approval.form.is_some()) {
        _ if call.signing_in => format!("to sign in, so that `{tool}` can go on"),
        true => format!("what `{tool}` wants to know, and nothing was sent"),
        false => format!("whether `{tool}` may be called, and nothing was sent"),
    };
    let words = format!("a person is asked {what}: tell the user, and do not call again in this turn");
    let mut refusal = Refusal::of(RefusalKind::AwaitingPerson, words);
    refusal.recovery.get_or_insert_default().not_before = Some((now + COME_BACK_MS).ms());
    refusal
}

/// What an agent is told, if it is there, whose call was approved too late to be sent.
fn approved(call: &CallState) -> Refusal {
    let words = format!("a person said yes to `{0}`, and nothing was sent yet: call `{0}` again", call.received.tool);
    Refusal { code: Code::ExecutionTimeout, ..Refusal::of(RefusalKind::RetryLater, words) }
}

/// The names under which an equal call finds this one.
pub(super) fn names(call: &CallState) -> Vec<crate::id::Digest> {
    let named = |claim: &&claim::Claim| claim.kind != ClaimKind::Object;
    call.received.claims.iter().filter(named).map(|claim| claim.name.clone()).collect()
}

/// On which terms a yes for good was given: where others are asked, or more of them, it does not count.
fn terms(approval: &Approval) -> String {
    format!("{} {}", approval.persons, approval.queue)
}

/// What kind of question it is, and which answers it takes.
fn answers(form: Option<&Form>, is_claimed: bool) -> (InteractionKind, Vec<String>) {
    let (kind, words): (_, Vec<&str>) = match form {
        Some(form) if form.choices.is_empty() => (InteractionKind::Ask, vec![choice::ANSWER]),
        Some(form) => (InteractionKind::Select, form.choices.iter().map(String::as_str).collect()),
        None if is_claimed => {
            (InteractionKind::Approve, vec![choice::APPROVE, choice::APPROVE_SESSION, choice::APPROVE_ARGUMENTS])
        }
        None => (InteractionKind::Approve, vec![choice::APPROVE, choice::APPROVE_SESSION]),
    };
    (kind, words.into_iter().chain([choice::DENY]).map(str::to_owned).collect())
}

fn scope(choice: &str) -> Scope {
    match choice {
        choice::APPROVE_SESSION => Scope::Session,
        choice::APPROVE_ARGUMENTS => Scope::Arguments,
        _ => Scope::Once,
    }
}

/// The id of the question about a call to which so many have said yes: as hard to guess as the call's.
pub(super) fn question_id(id: &CallId, said_yes: usize) -> InteractionId {
    let name = id.as_str().strip_prefix("call_").unwrap_or(id.as_str());
    match said_yes {
        0 => InteractionId::new(format!("int_{name}_yes")),
        n => InteractionId::new(format!("int_{name}_yes{}", n + 1)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::attempt::{Payload, Purpose, Report};
    use crate::call::{Call, Rules};
    use crate::claim::{Claim, Held};
    use crate::contract::Contract;
    use crate::dispatcher::cancel::CancelReason;
    use crate::dispatcher::redecide::redecide;
    use crate::dispatcher::{Input, Step};
    use crate::event::Event;
    use crate::interaction::PersonAnswer;
    use crate::playbook::Playbook;

    fn rules() -> Arc<Rules> {
        let contract = Contract { declared: true, ..Contract::undeclared(5_000, 50_000, 600_000) };
        Arc::new(Rules { contract, playbook: Playbook::default() })
    }

    /// A session whose calls need a yes, and its trace.
    struct World {
        dispatcher: Dispatcher,
        trace: Vec<Event>,
        now: u64,
        approval: Approval,
    }

    impl World {
        fn new(persons: u8) -> Self {
            let dispatcher = Dispatcher::open("s".into(), 7, "agent".into(), "mcp");
            let approval =
                Approval { queue: "ops".into(), persons, policy: String::new(), requester_may: false, form: None };
            Self { dispatcher, trace: Vec::new(), now: 1_000_000, approval }
        }

        fn put(&mut self, input: Input) -> Step {
            self.now += 1_000;
            let approval = matches!(input, Input::Call(_)).then(|| Box::new(self.approval.clone()));
            let gates = Gates { approval, ..Gates::default() };
            let step = self.dispatcher.handle(Timestamp::from_ms(self.now), &gates, input);
            self.trace.extend(step.events.iter().cloned());
            step
        }

        fn call(&mut self, id: &str, repeat_of: Option<Held>) -> Step {
            let claim = Claim { name: "n".into(), fingerprint: "f".into(), kind: ClaimKind::Arguments };
            let call = Call {
                id: id.into(),
                tool: "pay".into(),
                upstream: "shop".into(),
                rules: rules(),
                rules_hash: "rules".into(),
                arguments: Payload { digest: "f".into(), size: 2 },
                principal: "agent".into(),
                deadline: Timestamp::from_ms(self.now) + 50_000,
                key: None,
                claims: vec![claim],
                effect_key: format!("key of {id}"),
                repeat_of,
                evidence: Vec::new(),
                reversal: None,
                redeems: None,
                view: None,
                leg: None,
            };
            self.put(Input::Call(Box::new(call)))
        }

        fn says(&mut self, id: &str, choice: &str, by: &str) -> Step {
            let at = Timestamp::from_ms(self.now);
            let answer = PersonAnswer { choice: choice.into(), by: by.into(), note: None, at, content: None };
            self.put(Input::Answer { interaction: id.into(), answer: Box::new(answer) })
        }

        /// The same session in the hands of another process.
        fn taken_up(mut self) -> Self {
            self.dispatcher = Dispatcher::restore(&self.trace, |_| Some(rules())).unwrap();
            let _ = self.put(Input::Resume);
            self
        }

        fn decided_again(&self) {
            assert_eq!(redecide(&self.trace, |_| Some(rules())), Ok(None));
            let restored = Dispatcher::restore(&self.trace, |_| Some(rules()));
            assert_eq!(restored.as_ref(), Ok(&self.dispatcher));
        }
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

    fn granted(step: &Step) -> bool {
        step.events.iter().any(|event| matches!(event.fact, Fact::CallEnded { granted: true, .. }))
    }

    fn held(state: ClaimState) -> Held {
        Held {
            name: "n".into(),
            session: "another".into(),
            call: "c0".into(),
            state,
            fingerprint: "f".into(),
            effect_key: String::new(),
            since: Timestamp::from_ms(1),
        }
    }

    #[test]
    fn each_of_the_persons_counts_once_and_the_requester_never() {
        let mut world = World::new(2);
        assert_eq!(sends(&world.call("c1", None)), 0);
        for by in ["agent", "ada"] {
            assert_eq!(sends(&world.says("int_c1_yes", choice::APPROVE, by)), 0);
        }
        // The first question is over, and the second does not take the first one's name.
        assert_eq!(sends(&world.says("int_c1_yes", choice::APPROVE, "bob")), 0);
        assert_eq!(sends(&world.says("int_c1_yes2", choice::APPROVE, "ada")), 0);
        assert_eq!(sends(&world.says("int_c1_yes2", choice::APPROVE, "bob")), 1);
        world.decided_again();
    }

    #[test]
    fn a_no_of_the_second_denies_and_a_later_yes_changes_nothing() {
        let mut world = World::new(2);
        let _ = world.call("c1", None);
        let _ = world.says("int_c1_yes", choice::APPROVE, "ada");
        assert_eq!(refused(&world.says("int_c1_yes2", choice::DENY, "bob")), Some(RefusalKind::ApprovalDenied));
        assert_eq!(sends(&world.says("int_c1_yes2", choice::APPROVE, "cleo")), 0);
        world.decided_again();
    }

    #[test]
    fn wherever_the_process_dies_the_wait_goes_on_and_nothing_is_sent_for_nobody() {
        for dies_after in 0..3 {
            let mut world = World::new(2);
            let _ = world.call("c1", None);
            let mut last = Step::default();
            for (n, (id, by)) in [("int_c1_yes", "ada"), ("int_c1_yes2", "bob")].into_iter().enumerate() {
                if n == dies_after {
                    world = world.taken_up();
                }
                last = world.says(id, choice::APPROVE, by);
            }
            let died = dies_after < 2;
            assert_eq!((granted(&last), sends(&last)), (died, usize::from(!died)), "{dies_after}");
            world.decided_again();
        }
    }

    #[test]
    fn a_grant_is_spent_without_asking_and_a_wish_to_stop_withdraws_the_question() {
        let mut world = World::new(1);
        let spends = world.call("c1", Some(held(ClaimState::Granted)));
        assert_eq!(sends(&spends), 1);
        let over = spends
            .claims
            .iter()
            .any(|change| matches!(change, ClaimChange::Take { over: Some(call), .. } if call.as_str() == "c0"));
        assert!(over, "{:?}", spends.claims);
        let _ = world.call("c2", None);
        let stopped = world.put(Input::Cancel { call: "c2".into(), reason: CancelReason::Asked });
        assert!(stopped.effects.iter().any(|effect| matches!(effect, Effect::Withdraw(_))), "{stopped:?}");
        assert_eq!(sends(&world.says("int_c2_yes", choice::APPROVE, "ada")), 0);
        world.decided_again();
    }

    #[test]
    fn a_call_that_joined_one_that_is_left_goes_on_in_its_place() {
        let mut world = World::new(1);
        let joins = world.call("c1", Some(held(ClaimState::Awaiting)));
        assert_eq!(sends(&joins), 0);
        let report = Report { certainty: Certainty::NotSent, granted: Some(String::new()), ..Report::success(None) };
        let attempt = crate::id::AttemptId { call: "c1".into(), n: 1 };
        let spends = world.put(Input::Result { attempt, report: Box::new(report) });
        assert_eq!(sends(&spends), 1, "{spends:?}");
        world.decided_again();
    }

    #[test]
    fn a_yes_for_the_session_is_for_its_tool_and_for_those_who_had_to_say_it() {
        let mut world = World::new(1);
        let _ = world.call("c1", None);
        assert_eq!(sends(&world.says("int_c1_yes", choice::APPROVE_SESSION, "ada")), 1);
        assert_eq!(sends(&world.call("c2", None)), 1);
        world.approval.persons = 2;
        assert_eq!(sends(&world.call("c3", None)), 0);
        world.decided_again();
    }
}
