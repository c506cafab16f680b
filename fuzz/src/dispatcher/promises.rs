//! What every step keeps, as far as one session can see it.

use std::collections::{BTreeMap, BTreeSet};

use amends_core::{
    AttemptId, CallId, Certainty, ClaimChange, Effect, EffectKind, Fact, Purpose, RefusalKind, Status, Step,
};

use crate::dispatcher::inputs::World;

/// What is known of the calls so far.
#[derive(Debug, Default)]
pub(super) struct Promises {
    open: BTreeMap<CallId, EffectKind>,
    /// Attempts to act of which nobody knows that they did nothing.
    doubts: BTreeSet<AttemptId>,
}

impl Promises {
    /// Checks one step: at most once, one end, no effect without its event, and envelopes that can be read.
    pub(super) fn check(&mut self, step: &Step, world: &World) {
        let mut started = BTreeSet::new();
        let mut asked = BTreeSet::new();
        let mut ended = BTreeSet::new();
        let mut interim = BTreeSet::new();
        let mut inquired = BTreeSet::new();
        let mut moved = BTreeSet::new();
        for event in &step.events {
            match &event.fact {
                Fact::CallReceived { received, .. } => {
                    let rules = world.rules_of()(&received.rules).expect("the world knows its rules");
                    self.open.insert(received.call.clone(), rules.contract.effect);
                }
                Fact::AttemptStarted { attempt, purpose, .. } => {
                    started.insert(attempt.clone());
                    if *purpose == Purpose::Act {
                        self.at_most_once(attempt);
                        self.doubts.insert(attempt.clone());
                    }
                }
                Fact::AttemptEnded { attempt, report, .. } if report.certainty != Certainty::InDoubt => {
                    self.doubts.remove(attempt);
                }
                Fact::DoubtSettled { call, certainty: Certainty::NotProcessed, .. } => {
                    self.doubts.retain(|doubt| doubt.call != *call);
                }
                Fact::InterimAnswered { call } => drop(interim.insert(call.clone())),
                Fact::CallEnded { call, .. } | Fact::CallRefused { call, .. } => {
                    assert!(self.open.remove(call).is_some(), "{call} ended although it was not open");
                    self.doubts.retain(|doubt| doubt.call != *call);
                    ended.insert(call.clone());
                }
                Fact::InquiryOpened { attempt, inquiry, .. } => {
                    inquired.insert((attempt.call.clone(), *inquiry));
                }
                Fact::InteractionOpened { interaction } => {
                    asked.insert(interaction.id.clone());
                }
                // Not every agent of a move is told: some were before.
                Fact::MoveRefused { of, .. }
                | Fact::MoveJoined { of, .. }
                | Fact::MoveEnded { of, .. }
                | Fact::WalkReset { of, .. } => drop(moved.insert(of.clone())),
                // A person settled a call that had ended: its answer is written anew.
                Fact::DoubtResolved { call, certainty: Certainty::Processed, .. } => {
                    ended.insert(call.clone());
                }
                _ => {}
            }
        }
        for effect in &step.effects {
            match effect {
                Effect::Send(attempt) => assert!(started.remove(&attempt.id), "{} has no event", attempt.id),
                Effect::Reply(reply) => {
                    let found = if reply.last {
                        ended.remove(&reply.call) || moved.remove(&reply.call)
                    } else {
                        interim.remove(&reply.call)
                    };
                    assert!(found, "an answer to {} without its event", reply.call);
                    readable(&reply.answer);
                }
                Effect::Ask(interaction) => {
                    assert!(asked.remove(&interaction.id), "{} has no event", interaction.id);
                }
                Effect::Inquire(asking) => {
                    assert!(inquired.remove(&(asking.attempt.call.clone(), asking.inquiry)), "{asking:?} has no event");
                }
                Effect::Abort(_) | Effect::Withdraw(_) | Effect::Tell(_) | Effect::Retract { .. } => {}
                Effect::Begin(_) | Effect::Weigh { .. } | Effect::Join { .. } | Effect::Unwind { .. } => {}
            }
        }
        assert!(ended.is_empty() && interim.is_empty(), "no answer for {ended:?} {interim:?}");
        assert!(inquired.is_empty(), "recorded and never asked of the agent: {inquired:?}");
        assert!(asked.is_empty(), "recorded and never asked: {asked:?}");
        assert!(started.is_empty(), "recorded and never sent: {started:?}");
        assert!(step.claims.is_empty() || !step.events.is_empty(), "claims change without an event");
        for change in &step.claims {
            if let ClaimChange::Take { call, .. } = change {
                assert!(self.open.contains_key(call), "{call} takes a claim without being open");
            }
        }
    }

    /// A plain write is not sent again while an earlier attempt may have happened.
    fn at_most_once(&self, attempt: &AttemptId) {
        let write = self.open.get(&attempt.call) == Some(&EffectKind::Write);
        let doubt = self.doubts.iter().find(|doubt| doubt.call == attempt.call);
        assert!(!write || doubt.is_none(), "{attempt} is sent although {doubt:?} may have happened");
    }
}

/// An answer is an envelope that can be read, and nothing in doubt is called safe where it is not.
fn readable(answer: &amends_core::Answer) {
    let envelope = match answer {
        amends_core::Answer::Forward { envelope, .. } | amends_core::Answer::Envelope(envelope) => envelope,
        amends_core::Answer::Recorded { .. } | amends_core::Answer::Asked { .. } => return,
    };
    crate::envelope::check(envelope, None);
    if let Some(error) = envelope.error() {
        assert!(!error.retryable || error.safe_to_repeat, "{error:?}");
        let refused = envelope.status() == Status::Refused;
        assert!(!refused || RefusalKind::ALL.iter().any(|kind| kind.as_str() == error.kind), "{error:?}");
    }
}
