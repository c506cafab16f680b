//! A session is taken up after a crash, or by another node.

use crate::attempt::Purpose;
use crate::certainty::Certainty;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::cancel::CancelReason;
use crate::dispatcher::state::Phase;
use crate::effect::Effect;
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId};
use crate::time::Timestamp;

impl Dispatcher {
    /// Judges what the crash left behind. The agents of these calls are gone with the connection they came by; what may
    /// have happened is settled all the same, so that their repeats find an answer.
    pub(super) fn resume(&mut self, now: Timestamp, gates: &Gates) {
        self.emit(now, Fact::Resumed { decider: self.decider, gates: gates.clone() });
        let open: Vec<CallId> = self.state.calls.keys().cloned().collect();
        for id in open {
            self.emit(now, Fact::CancelRequested { call: id.clone(), reason: CancelReason::Disconnected });
            self.resume_call(now, gates, &id);
        }
        // Tokens are redeemed once, so that beginning again does no harm.
        let given_up = self.state.walk.as_ref().filter(|walk| walk.unwinding);
        if let Some((of, since)) = given_up.and_then(|walk| Some((walk.aborted_by.clone()?, walk.since()))) {
            self.step.effects.push(Effect::Unwind { of, since });
        }
    }

    fn resume_call(&mut self, now: Timestamp, gates: &Gates, id: &CallId) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if call.phase == Phase::Inquiring && self.awaits_return(id) {
            // It waits for an agent that comes back, by whichever node.
            return;
        }
        if call.phase == Phase::Approving {
            // Whoever is asked is still asked.
            return;
        }
        // Whoever was asked over a line is gone with it, and the upstream that waits has lost us.
        self.withdraw_inquiries(now, id);
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let attempting = match call.phase {
            Phase::Attempting(n) => self.state.attempt(id, n).filter(|attempt| attempt.end.is_none()),
            Phase::Received | Phase::Waiting { .. } | Phase::Asking | Phase::Inquiring | Phase::Approving => None,
        };
        let Some((n, purpose)) = attempting.map(|attempt| (attempt.n, attempt.purpose)) else {
            if !call.may_have_acted() || call.phase == Phase::Inquiring {
                self.end_cancelled(now, id);
            }
            return;
        };
        let attempt = AttemptId { call: id.clone(), n };
        let certainty = Certainty::InDoubt;
        self.emit(now, Fact::AttemptOrphaned { attempt: attempt.clone(), certainty });
        let reads = self.state.calls.get(id).is_some_and(|call| call.effect().is_read());
        match purpose {
            Purpose::Act if !reads => self.compensate(now, gates, &attempt),
            Purpose::Status => self.status_read(now, gates, &attempt),
            Purpose::Reverse => self.reverse_failed(now, &attempt),
            Purpose::Act | Purpose::Baseline | Purpose::Join | Purpose::Evidence => self.end_cancelled(now, id),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::attempt::{Payload, Report};
    use crate::call::{Call, Rules};
    use crate::contract::{Contract, EffectKind, KeyPlace, Place, StatusReader};
    use crate::dispatcher::Input;
    use crate::dispatcher::redecide::redecide;
    use crate::event::Event;
    use crate::expression::Expression;
    use crate::playbook::{Playbook, PlaybookSpec};

    const BEGAN: u64 = 10_000_000_000;
    const TIMEOUT_MS: u64 = 5_000;
    const SETTLES_MS: u64 = 30_000;
    const WINDOW_MS: u64 = 3_600_000;

    fn rules(effect: EffectKind) -> Arc<Rules> {
        let status = StatusReader {
            tool: "get_charge".into(),
            args: Default::default(),
            happened: Expression::parse("result.found").unwrap(),
            by_key: true,
        };
        let key = KeyPlace { place: Place::Argument("key".into()), window_ms: WINDOW_MS, durable: true };
        let keyed = effect == EffectKind::Keyed;
        let contract = Contract {
            effect,
            declared: true,
            status: (!keyed).then_some(status),
            settles_within_ms: Some(SETTLES_MS),
            key: keyed.then_some(key),
            ..Contract::undeclared(TIMEOUT_MS, 600_000, 600_000)
        };
        Arc::new(Rules { playbook: Playbook::parse(&PlaybookSpec::default(), &contract).unwrap(), contract })
    }

    /// What a node does in its own time, and the trace it leaves.
    struct Node {
        dispatcher: Dispatcher,
        trace: Vec<Event>,
    }

    impl Node {
        /// A write that is sent when the call arrives, and is not answered.
        fn sends(rules: &Arc<Rules>) -> Self {
            let call = Call {
                id: "c".into(),
                tool: "charge".into(),
                upstream: "shop".into(),
                rules: rules.clone(),
                rules_hash: "rules".into(),
                arguments: Payload { digest: "a".into(), size: 2 },
                principal: "local".into(),
                deadline: Timestamp::from_ms(BEGAN) + rules.contract.deadline_ms,
                key: None,
                claims: Vec::new(),
                effect_key: "k".into(),
                repeat_of: None,
                evidence: Vec::new(),
                reversal: None,
                redeems: None,
                view: None,
                leg: None,
            };
            let dispatcher = Dispatcher::open("s".into(), 7, "local".into(), "mcp");
            let mut node = Self { dispatcher, trace: Vec::new() };
            assert_eq!(node.take(BEGAN, &Gates::default(), Input::Call(Box::new(call))), [Purpose::Act]);
            node
        }

        /// Takes an input, and gives what is sent.
        fn take(&mut self, now: u64, gates: &Gates, input: Input) -> Vec<Purpose> {
            let step = self.dispatcher.handle(Timestamp::from_ms(now), gates, input);
            self.trace.extend(step.events);
            let sent = step.effects.iter().filter_map(|effect| match effect {
                Effect::Send(attempt) => Some(attempt.purpose),
                _ => None,
            });
            sent.collect()
        }

        /// The same session in the hands of another process, whose clock shows that time.
        fn taken_up(self, now: u64, behind: bool, rules: &Arc<Rules>) -> (Self, Vec<Purpose>) {
            let dispatcher = Dispatcher::restore(&self.trace, |_| Some(rules.clone())).unwrap();
            let mut node = Self { dispatcher, ..self };
            let gates = Gates { clock_behind: behind, ..Gates::default() };
            let sent = node.take(now, &gates, Input::Resume);
            (node, sent)
        }

        fn last_attempt(&self) -> AttemptId {
            let started = self.trace.iter().rev().find_map(|event| match &event.fact {
                Fact::AttemptStarted { attempt, .. } => Some(attempt.clone()),
                _ => None,
            });
            started.unwrap()
        }
    }

    /// How long after it took the session up, by its own clock, a node takes a no for an answer: from then on the write's repeat
    /// would be sent. The status says no each time.
    fn settled_after(taken_up_at: u64, ended_before: bool) -> u64 {
        let rules = rules(EffectKind::Write);
        let mut node = Node::sends(&rules);
        if ended_before {
            let due = node.dispatcher.deadline().unwrap().at.ms();
            node.take(due, &Gates::default(), Input::Tick);
        }
        // Inside a session time never runs backwards; the driver lets it go on from the last event.
        let behind = node.trace.last().unwrap().at.ms().saturating_sub(taken_up_at);
        let began = taken_up_at + behind;
        let (mut node, mut sent) = node.taken_up(began, behind > 0, &rules);
        let mut now = began;
        for _ in 0..32 {
            let no =
                |event: &Event| matches!(event.fact, Fact::DoubtSettled { certainty: Certainty::NotProcessed, .. });
            if node.trace.iter().any(no) {
                assert_eq!(redecide(&node.trace, |_| Some(rules.clone())), Ok(None));
                return now - began;
            }
            let input = if sent.contains(&Purpose::Status) {
                now += 1;
                let report = Report { happened: Some(false), ..Report::success(None) };
                Input::Result { attempt: node.last_attempt(), report: Box::new(report) }
            } else {
                now = now.max(node.dispatcher.deadline().expect("it is not over").at.ms());
                Input::Tick
            };
            sent = node.take(now, &Gates::default(), input);
        }
        panic!("it was never settled: {:#?}", node.trace);
    }

    #[test]
    fn whatever_two_clocks_show_a_no_counts_only_once_nothing_can_arrive_by_the_clock_of_whoever_asks() {
        for skew_ms in [0_i64, 1, 40, 900, 30_000, 3_600_000, 90_000_000, -1, -2_000, -30_000, -7_200_000] {
            let at = BEGAN.saturating_add_signed(2_000 + skew_ms);
            let open = settled_after(at, false);
            assert!(open >= TIMEOUT_MS + SETTLES_MS, "{skew_ms}: settled after {open} ms");
            let ended = settled_after(at + TIMEOUT_MS, true);
            assert!(ended >= SETTLES_MS, "{skew_ms}: settled after {ended} ms");
        }
    }

    #[test]
    fn a_key_is_not_used_again_when_nobody_knows_how_long_ago_it_was_first_sent() {
        let rules = rules(EffectKind::Keyed);
        for behind in [false, true] {
            let (mut node, mut sent) = Node::sends(&rules).taken_up(BEGAN + 2_000, behind, &rules);
            while sent.is_empty() && node.dispatcher.open_calls() > 0 {
                let due = node.dispatcher.deadline().unwrap().at.ms();
                sent = node.take(due, &Gates::default(), Input::Tick);
            }
            assert_eq!(sent == [Purpose::Act], !behind, "{:#?}", node.trace);
        }
    }
}
