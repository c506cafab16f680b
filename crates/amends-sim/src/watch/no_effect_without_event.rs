//! No effect without its event in the same step, and no such event without its effect.

use amends_core::{AttemptId, Effect, Fact, Step};

use crate::watch::{Verdicts, Watch};

impl Watch {
    /// Every effect has the event that justifies it in the same step, and every event that promises one has it.
    pub(crate) fn no_effect_without_event(&self, step: &Step) -> Verdicts {
        let facts = || step.events.iter().map(|event| &event.fact);
        for effect in &step.effects {
            let (justified, call) = match effect {
                Effect::Send(attempt) => (facts().any(|fact| started(fact) == Some(&attempt.id)), &attempt.id.call),
                Effect::Abort(attempt) => (facts().any(|fact| stops(fact, attempt)), &attempt.call),
                Effect::Reply(reply) => {
                    let said = |fact: &Fact| match fact {
                        Fact::CallEnded { call, .. } | Fact::CallRefused { call, .. } => {
                            reply.last && *call == reply.call
                        }
                        Fact::InterimAnswered { call } => !reply.last && *call == reply.call,
                        Fact::DoubtResolved { call, .. } => reply.last && *call == reply.call,
                        _ => false,
                    };
                    (facts().any(said), &reply.call)
                }
                Effect::Ask(asked) => {
                    let opened = |fact: &Fact| matches!(fact, Fact::InteractionOpened { interaction } if interaction.id == asked.id);
                    (facts().any(opened), &asked.call)
                }
                Effect::Withdraw(id) => {
                    let over = |fact: &Fact| match fact {
                        Fact::InteractionWithdrawn { interaction } | Fact::InteractionLapsed { interaction, .. } => {
                            interaction == id
                        }
                        _ => false,
                    };
                    let justified = facts().any(over);
                    if !justified {
                        let what = format!("nothing in its step justifies {effect:?}");
                        return Err(self.broken("no_effect_without_event", None, what));
                    }
                    continue;
                }
            };
            if !justified {
                let what = format!("nothing in its step justifies {effect:?}");
                return Err(self.broken("no_effect_without_event", Some(call.clone()), what));
            }
        }
        for fact in facts() {
            let acted = match fact {
                Fact::AttemptStarted { attempt, .. } => {
                    step.effects.iter().any(|effect| matches!(effect, Effect::Send(sent) if sent.id == *attempt))
                }
                Fact::CallEnded { call, .. } | Fact::CallRefused { call, .. } => {
                    step.effects.iter().any(|e| matches!(e, Effect::Reply(r) if r.call == *call && r.last))
                }
                Fact::InterimAnswered { call } => {
                    step.effects.iter().any(|e| matches!(e, Effect::Reply(r) if r.call == *call && !r.last))
                }
                Fact::InteractionOpened { interaction } => {
                    step.effects.iter().any(|e| matches!(e, Effect::Ask(asked) if asked.id == interaction.id))
                }
                _ => true,
            };
            if !acted {
                let what = format!("nothing in its step acts on {fact:?}");
                return Err(self.broken("no_effect_without_event", fact.call().cloned(), what));
            }
        }
        Ok(())
    }
}

fn started(fact: &Fact) -> Option<&AttemptId> {
    match fact {
        Fact::AttemptStarted { attempt, .. } => Some(attempt),
        _ => None,
    }
}

/// Whether an event is a reason to stop waiting for an attempt.
fn stops(fact: &Fact, attempt: &AttemptId) -> bool {
    match fact {
        Fact::AttemptTimedOut { attempt: over, .. } => over == attempt,
        Fact::CancelRequested { call, .. }
        | Fact::DoubtSettled { call, .. }
        | Fact::CallEnded { call, .. }
        | Fact::CallRefused { call, .. } => *call == attempt.call,
        _ => false,
    }
}
