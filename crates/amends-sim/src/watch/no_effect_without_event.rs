//! No effect without its event in the same step, and no such event without its effect.

use amends_core::{AttemptId, Effect, Fact, ReversalChange, Step};

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
                        Fact::MoveEnded { of, .. }
                        | Fact::MoveRefused { of, .. }
                        | Fact::MoveJoined { of, .. }
                        | Fact::WalkReset { of, .. } => reply.last && *of == reply.call,
                        _ => false,
                    };
                    (facts().any(said), &reply.call)
                }
                Effect::Ask(asked) => {
                    let opened = |fact: &Fact| matches!(fact, Fact::InteractionOpened { interaction } if interaction.id == asked.id);
                    (facts().any(opened), &asked.call)
                }
                Effect::Inquire(asking) => {
                    let opened = |fact: &Fact| matches!(fact, Fact::InquiryOpened { attempt, inquiry, .. } if *attempt == asking.attempt && *inquiry == asking.inquiry);
                    (facts().any(opened), &asking.attempt.call)
                }
                Effect::Tell(telling) => {
                    let said = |fact: &Fact| match fact {
                        Fact::InputsGiven { call, inquiry, .. } => {
                            telling.unanswered.is_none() && *call == telling.attempt.call && *inquiry == telling.inquiry
                        }
                        Fact::InquiryClosed { call, inquiry, .. } => {
                            *call == telling.attempt.call && *inquiry == telling.inquiry
                        }
                        Fact::InquiryMade { attempt, .. } => *attempt == telling.attempt,
                        _ => false,
                    };
                    (facts().any(said), &telling.attempt.call)
                }
                // They touch nothing outside.
                Effect::Begin(_) | Effect::Weigh { .. } => continue,
                Effect::Join { of, .. } => {
                    (facts().any(|fact| matches!(fact, Fact::MoveJoined { of: joined, .. } if joined == of)), of)
                }
                Effect::Unwind { of, .. } => {
                    let begins = |fact: &Fact| match fact {
                        Fact::WalkAborted { of: given_up } => given_up == of,
                        // Whoever takes it up begins again.
                        Fact::Resumed { .. } => true,
                        _ => false,
                    };
                    (facts().any(begins), of)
                }
                Effect::Retract { call: of, inquiry: n } => {
                    let over = |fact: &Fact| match fact {
                        Fact::InquiryClosed { call, inquiry, .. } | Fact::InquiryWithdrawn { call, inquiry } => {
                            call == of && inquiry == n
                        }
                        _ => false,
                    };
                    (facts().any(over), of)
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
        self.no_token_without_event(step)?;
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
                Fact::InquiryOpened { attempt, inquiry, .. } => step
                    .effects
                    .iter()
                    .any(|e| matches!(e, Effect::Inquire(a) if a.attempt == *attempt && a.inquiry == *inquiry)),
                Fact::InquiryWithdrawn { call, inquiry } => step
                    .effects
                    .iter()
                    .any(|e| matches!(e, Effect::Retract { call: of, inquiry: n } if of == call && n == inquiry)),
                Fact::InquiryMade { attempt, .. } => step.effects.iter().any(|e| match e {
                    Effect::Inquire(asking) => asking.attempt == *attempt,
                    Effect::Tell(telling) => telling.attempt == *attempt,
                    _ => false,
                }),
                Fact::ReversalMinted { token, .. } => {
                    changes(step, |c| matches!(c, ReversalChange::Mint { token: t, .. } if t == token))
                }
                Fact::ReversalArmed { token, .. } => {
                    changes(step, |c| matches!(c, ReversalChange::Arm { token: t, .. } if t == token))
                }
                Fact::ReversalVoided { token, .. } => {
                    changes(step, |c| matches!(c, ReversalChange::Void { token: t } if t == token))
                }
                Fact::ReversalRedeemed { token, .. } => {
                    changes(step, |c| matches!(c, ReversalChange::Spend { token: t, .. } if t == token))
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

    /// Every change of a token has its event in the same step.
    fn no_token_without_event(&self, step: &Step) -> Verdicts {
        let facts = || step.events.iter().map(|event| &event.fact);
        for change in &step.reversals {
            let justified = match change {
                ReversalChange::Mint { token, .. } => {
                    facts().any(|fact| matches!(fact, Fact::ReversalMinted { token: t, .. } if t == token))
                }
                ReversalChange::Arm { token, .. } => {
                    facts().any(|fact| matches!(fact, Fact::ReversalArmed { token: t, .. } if t == token))
                }
                ReversalChange::Void { token } => {
                    facts().any(|fact| matches!(fact, Fact::ReversalVoided { token: t, .. } if t == token))
                }
                ReversalChange::Spend { token, .. } => {
                    facts().any(|fact| matches!(fact, Fact::ReversalRedeemed { token: t, .. } if t == token))
                }
                ReversalChange::Redeem { by, .. } => facts().any(|fact| started(fact).is_some_and(|a| a.call == *by)),
                ReversalChange::Rearm { by, .. } => facts().any(|fact| match fact {
                    Fact::CallEnded { call, .. } | Fact::DoubtResolved { call, .. } => call == by,
                    _ => false,
                }),
            };
            if !justified {
                let what = format!("nothing in its step justifies {change:?}");
                return Err(self.broken("no_effect_without_event", None, what));
            }
        }
        Ok(())
    }
}

fn changes(step: &Step, is: impl Fn(&ReversalChange) -> bool) -> bool {
    step.reversals.iter().any(is)
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
