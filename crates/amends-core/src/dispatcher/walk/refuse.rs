//! Our No to a wish, as far as the order of moves can say it.

use super::Settles;
use crate::dispatcher::state::{LegState, WalkState};
use crate::failure::bounded;
use crate::gates::Gates;
use crate::id::{ActionName, MachineName};
use crate::machine::No;
use crate::recovery::Recovery;
use crate::refusal::{ArgumentFault, Refusal, RefusalKind};
use crate::registry::Code;
use crate::time::Timestamp;
use crate::walk::Taking;

impl WalkState {
    /// Why that wish is not granted; nothing where it is. A move in doubt holds the others up while somebody settles it; once
    /// nobody does any more, the same wish may go on with it, by the keys of its calls, and the walk may begin again.
    pub(super) fn no(&self, taking: &Taking, gates: &Gates, now: Timestamp, settling: &Settles) -> Option<Refusal> {
        // A machine that is declared otherwise by now is not told about as it was, and whoever asks too often hears of nothing else.
        let first = |refusal: &&Refusal| matches!(refusal.kind, RefusalKind::SchemaDrift | RefusalKind::RateLimited);
        if let Some(refusal) = gates.refusal.as_deref().filter(first) {
            return Some(refusal.clone());
        }
        let (machine, _) = self.top();
        let action = taking.action.as_str();
        let known = machine.action(action);
        if !taking.reset && known.is_none() {
            let Err(No::Unknown { nearest }) = machine.find(&self.position(), action, None) else { return None };
            let known: Vec<&str> = machine.actions().map(|(name, _)| name.as_str()).collect();
            let shown: String = action.chars().take(64).collect();
            let hint = nearest.first().map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            let outer = self.outer(action).map(|outer| {
                let waits = format!("which goes on when `{}` is over", machine.name());
                format!("`{shown}` is an action of `{outer}`, {waits}")
            });
            let what = outer.unwrap_or_else(|| format!("there is no action `{shown}`{hint}"));
            let message = format!("{what}; there are `{}`", known.join("`, `"));
            let recovery = Some(Recovery { fuzzy_matches: nearest, ..Recovery::default() });
            return Some(Refusal { recovery, ..Refusal::of(RefusalKind::UnknownAction, message) });
        }
        if let Some(seq) = taking.expect_seq.filter(|seq| *seq != self.moves) {
            let made = match self.moves {
                1 => "1 move was made".to_owned(),
                moves => format!("{moves} moves were made"),
            };
            let message = format!("the machine is elsewhere by now: {made}, not {seq}; look again");
            let details = vec![ArgumentFault {
                field: "expect_seq".into(),
                expected: self.moves.to_string(),
                got: Some(seq.to_string()),
                nearest: Vec::new(),
            }];
            return Some(Refusal { details, ..Refusal::of(RefusalKind::StaleState, message) });
        }
        if let Some(open) = &self.open {
            let asked = (open.question.is_some() && !open.approved) || open.legs.iter().any(LegState::is_asked);
            let waits = match asked {
                true => format!("a person is asked whether `{}` may be done", open.taking.action),
                false => format!("`{}` is being done", open.taking.action),
            };
            let message = format!("{waits}; nothing else can be done until that is over");
            // A person takes the time that a person takes.
            return Some(busy(message, (!asked).then_some(1_000)));
        }
        if let Some(past) = &self.unsettled {
            let its = &past.taking.action;
            let same = past.taking.fingerprint == taking.fingerprint;
            if past.in_doubt() && *settling != Settles::Nobody {
                let (who, after_ms) = match settling {
                    Settles::Person(_) => (", and a person is asked whether it did", None),
                    Settles::Calls | Settles::Nobody => (", and that is being found out", Some(5_000)),
                };
                let also = not_again(&past.done_alone());
                let message =
                    format!("`{its}` may have happened{who}; nothing else can be done until that is known{also}");
                return Some(busy(message, after_ms));
            }
            if past.in_doubt() && !same && !taking.reset {
                let message = format!(
                    "`{its}` may have happened, and nobody finds out any more; take it again with the same inputs, which \
                     does nothing twice, let a person say what became of it where one was asked, or reset the \
                     walk"
                );
                return Some(busy(message, None));
            }
            if !past.in_doubt() && !same && !taking.reset {
                let message = match &past.unclear {
                    Some(why) => format!(
                        "`{its}` was done, and its machine cannot tell what follows from it: {}; nothing else can be done \
                         until the machine is mended, or the walk is reset, which undoes nothing",
                        bounded(why)
                    ),
                    None => format!(
                        "`{its}` was done, and nobody was told; take it again with the same inputs to go on from there, \
                         which does nothing twice"
                    ),
                };
                return Some(busy(message, None));
            }
        }
        if self.unwinding {
            let message = "what was done in this walk is being undone; nothing else can be done until that is over";
            return Some(busy(message.to_owned(), Some(1_000)));
        }
        if taking.reset {
            return gates.refusal.as_deref().cloned();
        }
        if let Some(given_up) = self.given_up() {
            let message = format!("the walk was given up: {}; reset it to begin again", given_up.words());
            return Some(Refusal::of(RefusalKind::InvalidTransition, message));
        }
        if let Err(no) = machine.find(&self.position(), action, None) {
            return Some(self.structural(&taking.action, no));
        }
        // What goes on with a move that began in time is not too late.
        if let Some((_, slow)) = self.ends().filter(|(ends, _)| *ends <= now && self.unsettled.is_none()) {
            let most = slow.bounds().time_ms_max.unwrap_or_default();
            let who = if slow.name() == &self.root { "the walk".to_owned() } else { format!("`{}`", slow.name()) };
            let message = format!("{who} has gone on for the {most} ms that it may take; reset it to begin again");
            return Some(Refusal::of(RefusalKind::InvalidTransition, message));
        }
        let ends_stage = known.is_some_and(|(_, action)| machine.ends_stage(action));
        if let Some((name, most)) = self.out_of_steps().filter(|_| !ends_stage && self.unsettled.is_none()) {
            let message = format!(
                "`{action}` cannot be taken: `steps` of `{name}`, in which `{}` runs, is bounded to {most}; reset the walk \
                 to begin again",
                machine.name()
            );
            return Some(Refusal::of(RefusalKind::InvalidTransition, message));
        }
        let named = (machine.name().clone(), taking.action.clone());
        if let Some(until) = self.later.get(&named).filter(|until| **until > now) {
            let done: Vec<&str> = self.halves.get(&named).into_iter().flatten().map(String::as_str).collect();
            let also = not_again(&done);
            let message = format!("`{action}` failed for now, and can be taken again later{also}");
            let mut refusal = Refusal::of(RefusalKind::RetryLater, message);
            refusal.retry_after_ms = Some(until.since_ms(now));
            refusal.recovery = Some(Recovery { not_before: Some(until.ms()), ..Recovery::default() });
            return Some(refusal);
        }
        if let Some(refusal) = gates.refusal.as_deref() {
            return Some(refusal.clone());
        }
        let denied = self.denied.as_ref().filter(|(fingerprint, _)| *fingerprint == taking.fingerprint);
        denied.map(|(_, kind)| not_allowed(*kind, action))
    }

    /// The machine that waits for the one it is in, and has that action.
    fn outer(&self, action: &str) -> Option<&MachineName> {
        let outer = self.frames.iter().rev().skip(1).map(|frame| &frame.machine);
        outer.into_iter().find(|name| self.machines.get(name).is_some_and(|machine| machine.action(action).is_some()))
    }

    fn structural(&self, action: &ActionName, no: No) -> Refusal {
        let (_, frame) = self.top();
        let state = &frame.state;
        let message = match no {
            No::Over => format!("the machine is over, in `{state}`; reset it to begin again"),
            No::NotFromHere => format!("`{action}` does not lead away from `{state}`"),
            No::Exhausted { bound, most } => {
                // What is bounded of all actions together says nothing of how often this one was taken.
                let again = if frame.taken.contains_key(action) { " again" } else { "" };
                format!("`{action}` cannot be taken{again}: `{bound}` is bounded to {most}")
            }
            No::Unknown { .. } | No::Stale { .. } | No::Guarded { .. } => {
                format!("`{action}` cannot be taken in `{state}`")
            }
        };
        Refusal::of(RefusalKind::InvalidTransition, message)
    }
}

/// A person did not allow that, or nobody said anything in time.
pub(super) fn not_allowed(kind: RefusalKind, action: &str) -> Refusal {
    let message = match kind {
        RefusalKind::ApprovalDenied => format!("a person said no to `{action}`; that is final, nothing was sent"),
        _ => format!("nobody said yes to `{action}` in time; nothing was sent"),
    };
    Refusal::of(kind, message)
}

/// That what was done of a move beside what was not is not done again; nothing where nothing was.
pub(super) fn not_again(done: &[&str]) -> String {
    match done {
        [] => String::new(),
        done => format!("; `{}` was done, and is not done again where the same is taken again", done.join("`, `")),
    }
}

fn busy(message: String, retry_after_ms: Option<u64>) -> Refusal {
    Refusal { code: Code::ResourceBusy, retry_after_ms, ..Refusal::of(RefusalKind::InFlight, message) }
}
