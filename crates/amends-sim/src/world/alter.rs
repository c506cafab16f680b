//! Planted flaws that look like those of a dispatcher: what it hears or what it decides is altered on the way.

use amends_core::interaction::Subject;
use amends_core::{
    AttemptId, CallId, Certainty, ClaimChange, Code, Digest, Dispatcher, Event, Fact, Failure, Outcome, Purpose,
    RefusalKind, Report, ReversalChange, Step, Yes,
};

use crate::flaw::Flaw;
use crate::world::World;

impl World {
    /// Alters what a dispatcher hears of an attempt, so that it does what a dispatcher with that flaw would do.
    pub(super) fn mishear(&self, attempt: &AttemptId, report: &mut Report) {
        let Some(flaw) = self.flaw else {
            return;
        };
        let purpose = self.sent.get(attempt).map(|request| request.purpose);
        match flaw {
            Flaw::EvidenceIgnored if purpose == Some(Purpose::Evidence) => {
                if let Some(payload) = &mut report.payload {
                    let named = self.watch.named_evidence(attempt);
                    payload.digest = named.unwrap_or_else(|| Digest::new("as it was"));
                }
            }
            Flaw::ResendStale if purpose == Some(Purpose::Act) && self.watch.twice_stale(attempt) => {
                *report = Report::answered(Failure::of(Code::ConnectRefused), Certainty::NotSent, None);
            }
            Flaw::QuestionAsSuccess if report.inquiry.is_some() => *report = Report::success(None),
            Flaw::RetryInDoubt if purpose == Some(Purpose::Act) && report.certainty == Certainty::InDoubt => {
                report.certainty = Certainty::NotProcessed;
            }
            _ => {}
        }
    }
}

/// Alters what a step says of a walk, which stands where the history led.
pub(super) fn astray(flaw: Option<Flaw>, history: &[Event], step: &mut Step) {
    let Some(flaw) = flaw else {
        return;
    };
    for event in &mut step.events {
        let made = match (flaw, &event.fact) {
            (Flaw::MoveUnacted, Fact::MoveEnded { of, outcome, granted: false, .. })
                if !matches!(outcome, Outcome::Succeeded | Outcome::SucceededAfterCompensation) =>
            {
                made(history, of)
            }
            (Flaw::LateMoves, Fact::LateResult { .. } | Fact::DoubtResolved { .. }) => {
                let ended = history.iter().rev().find_map(|event| match &event.fact {
                    Fact::MoveEnded { of, certainty: Certainty::InDoubt, .. } => Some(of),
                    _ => None,
                });
                ended.and_then(|of| made(history, of))
            }
            (Flaw::MoveBeside, Fact::MoveRefused { refusal, .. }) if refusal.kind == RefusalKind::InFlight => {
                Some(Fact::Ignored { why: "it is begun all the same".into() })
            }
            (Flaw::EndMisnamed, Fact::MoveEnded { outcome: Outcome::Succeeded, .. }) => {
                let mut fact = event.fact.clone();
                if let Fact::MoveEnded { outcome, .. } = &mut fact {
                    *outcome = Outcome::SucceededAfterCompensation;
                }
                Some(fact)
            }
            (Flaw::LeadsAstray, Fact::MoveMade { .. }) => {
                let mut fact = event.fact.clone();
                if let Fact::MoveMade { to, .. } = &mut fact {
                    to.iter_mut().for_each(|state| *state = "elsewhere".into());
                }
                Some(fact)
            }
            _ => None,
        };
        if let Some(made) = made {
            event.fact = made;
        }
    }
}

/// A move as if it had been made, to where the action leads first.
fn made(history: &[Event], of: &CallId) -> Option<Fact> {
    let taking = history.iter().find_map(|event| match &event.fact {
        Fact::MoveReceived { taking, .. } if taking.id == *of => Some(taking),
        _ => None,
    })?;
    let walk = Dispatcher::restore(history, crate::catalog::rules).ok()?;
    let look = walk.walk()?;
    let frame = look.frames.last()?;
    let (_, action) = look.machines.get(&frame.machine)?.action(taking.action.as_str())?;
    Some(Fact::MoveMade {
        of: of.clone(),
        action: taking.action.clone(),
        moves: look.moves + 1,
        from: frame.state.clone(),
        to: action.to.states().take(1).cloned().collect(),
        enters: None,
        fields: taking.inputs.clone(),
    })
}

/// Alters a step. The number of its events stays, so that the next one still follows.
pub(super) fn alter(flaw: Option<Flaw>, step: &mut Step) {
    match flaw {
        Some(Flaw::GrantKept) => {
            let spends = |event: &Event| matches!(event.fact, Fact::CallApproved { yes: Yes::Grant, .. });
            if step.events.iter().any(spends) {
                step.claims.retain(|change| !matches!(change, ClaimChange::Take { over: Some(_), .. }));
            }
        }
        Some(Flaw::DefaultApprove) => {
            for event in &mut step.events {
                if let Fact::InteractionLapsed { default, .. } = &mut event.fact
                    && default == "deny"
                {
                    *default = "approve".into();
                }
            }
        }
        Some(Flaw::NeverSpent) => {
            for change in &mut step.reversals {
                if let ReversalChange::Spend { token, by } = change {
                    *change = ReversalChange::Rearm { token: token.clone(), by: by.clone() };
                }
            }
        }
        // Nobody hears of a question that is not recorded.
        Some(Flaw::NobodyAsked) => {
            for event in &mut step.events {
                let asks = |fact: &Fact| matches!(fact, Fact::InteractionOpened { interaction } if interaction.subject == Subject::Doubt);
                if asks(&event.fact) {
                    event.fact = Fact::Ignored { why: "nobody is asked".into() };
                }
            }
        }
        _ => {}
    }
}
