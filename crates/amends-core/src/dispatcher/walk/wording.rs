//! What the agent of a move is told that was not made.

use super::Settles;
use super::next::End;
use super::refuse::not_again;
use crate::certainty::Certainty;
use crate::dispatcher::cancel::CancelReason;
use crate::dispatcher::state::MoveState;
use crate::envelope::Trouble;
use crate::failure::bounded;
use crate::outcome::Outcome;
use crate::recovery::Recovery;
use crate::refusal::RefusalKind;
use crate::registry::{Code, WhoMustAct};
use crate::time::Timestamp;
use crate::verdict::Verdict;
use crate::walk::GivenUp;

/// What follows from the end of a move.
pub(super) struct Known {
    pub(super) outcome: Outcome,
    /// When it can be taken again.
    pub(super) not_before: Option<Timestamp>,
    /// What was told of the call that failed.
    pub(super) quoted: Option<Trouble>,
    /// What becomes of the walk, where that is given up.
    pub(super) given_up: Option<GivenUp>,
    /// Who finds out what it did, where nobody knows.
    pub(super) settles: Settles,
}

/// What went wrong with a move. What failed below keeps its class and its code.
pub(super) fn trouble(open: &MoveState, end: &End, known: Known, now: Timestamp) -> Trouble {
    let Known { outcome, not_before, quoted, given_up, settles } = known;
    let asked = match &settles {
        Settles::Person(asked) => Some(asked.clone()),
        Settles::Calls | Settles::Nobody => None,
    };
    let action = &open.taking.action;
    let certainty = open.certainty();
    let below = quoted.as_ref().map(|trouble| trouble.message.as_str());
    let (kind, code, what) = match end {
        End::Cancelled | End::Granted => {
            let code = open.cancel.map_or(Code::ToolCancelled, CancelReason::code);
            (code.kind(), code, format!("`{action}` was stopped"))
        }
        // Its call had no more time than the move, and was given up first.
        End::Failed { code: Some(code @ (Code::NetworkTimeout | Code::ExecutionTimeout)), .. }
            if now >= open.deadline =>
        {
            (RefusalKind::ActionTimeout.as_str(), *code, open.out_of_time())
        }
        End::Failed { leg, code } => {
            let code = code.or(quoted.as_ref().map(|trouble| trouble.code)).unwrap_or(Code::ActionError);
            let name = open.legs.get(*leg).map_or("", |leg| leg.name.as_str());
            let which = if name == "act" { String::new() } else { format!(" in `{name}`") };
            let refused = open.legs.get(*leg).and_then(|leg| leg.end.as_ref()?.refused);
            let means = refused.map_or_else(|| code.means_upstream(), RefusalKind::means);
            let words = below.map_or_else(|| means.trim_end_matches('.').to_owned(), first_clause);
            (RefusalKind::ActionError.as_str(), code, format!("`{action}` failed{which}: {words}"))
        }
        End::TimedOut { .. } => {
            (RefusalKind::ActionTimeout.as_str(), RefusalKind::ActionTimeout.code(), open.out_of_time())
        }
        End::NotWell => {
            (RefusalKind::ActionError.as_str(), Code::ActionError, format!("`{action}` did not do what it should"))
        }
        End::Unclear { why } if open.wrote() => {
            let message =
                format!("`{action}` was done, and its machine cannot tell what follows from it: {}", bounded(why));
            (RefusalKind::ActionError.as_str(), Code::OutputMalformed, message)
        }
        End::Unclear { why } => {
            let message = format!("`{action}` cannot be judged: {}", bounded(why));
            (RefusalKind::ActionError.as_str(), Code::OutputMalformed, message)
        }
    };
    let also = not_again(&open.done_alone());
    let doubtful = open.doubtful().filter(|_| certainty == Certainty::InDoubt);
    let consequence = match certainty {
        Certainty::InDoubt if settles == Settles::Nobody => {
            "; it may have happened, and nobody finds out any more: take it again with the same inputs, which does nothing twice, let a person say what became of it where one was asked, or reset the walk".to_owned()
        }
        Certainty::InDoubt if asked.is_some() => {
            "; it may have happened, and a person is asked whether it did: the machine stays where it is, and nothing else can be done in it until that is known".to_owned()
        }
        Certainty::InDoubt => {
            "; it may have happened and is being settled: the machine stays where it is, and nothing else can be done in it until then".to_owned()
        }
        Certainty::Processed if outcome == Outcome::Unresolved && !matches!(end, End::Unclear { .. }) => {
            "; it was done all the same: take it again with the same inputs, which does nothing twice, and the machine goes on from it".to_owned()
        }
        Certainty::Processed if outcome == Outcome::Unresolved => {
            "; do not do it again: nothing else can be done in this walk until the machine is mended or the walk is reset, which undoes nothing".to_owned()
        }
        Certainty::Processed if !open.wrote() => "; nothing was changed".to_owned(),
        Certainty::Processed if !also.is_empty() => String::new(),
        Certainty::Processed => "; it was done".to_owned(),
        Certainty::NotProcessed => "; nothing was done".to_owned(),
        Certainty::NotSent => "; nothing was sent".to_owned(),
    };
    let where_it_is = match &given_up {
        _ if certainty == Certainty::InDoubt => String::new(),
        Some(given_up) => format!(", and the walk is given up: {}", given_up.words()),
        None if certainty == Certainty::Processed && outcome == Outcome::Unresolved => String::new(),
        None => ", and the machine stays where it is".to_owned(),
    };
    // What only read may always be read again.
    let safe = certainty.nothing_happened() || (certainty == Certainty::Processed && !open.wrote());
    let mut trouble = Trouble {
        kind,
        code,
        verdict: match end {
            End::Cancelled => Some(Verdict::Cancelled),
            _ => quoted.as_ref().and_then(|trouble| trouble.verdict).or_else(|| doubtful?.verdict),
        },
        requested: action.to_string(),
        message: format!("{what}{consequence}{also}{where_it_is}"),
        certainty,
        retryable: safe && code.retryable() && given_up.is_none(),
        safe_to_repeat: safe,
        who_must_act: match outcome {
            Outcome::Unresolved if certainty == Certainty::InDoubt => match settles {
                Settles::Person(_) => WhoMustAct::Person,
                Settles::Calls => WhoMustAct::Nobody,
                Settles::Nobody => WhoMustAct::Agent,
            },
            _ if matches!(end, End::Unclear { .. }) => WhoMustAct::Operator,
            Outcome::Unresolved => WhoMustAct::Agent,
            _ => quoted.as_ref().map_or(code.who_must_act(), |trouble| trouble.who_must_act),
        },
        retry_after_ms: quoted.as_ref().and_then(|trouble| trouble.retry_after_ms),
        details: quoted.as_ref().map(|trouble| trouble.details.clone()).unwrap_or_default(),
        recovery: Some(Recovery::default()),
        upstream: match &quoted {
            Some(trouble) => trouble.upstream.clone(),
            None => doubtful.and_then(|told| Trouble::quote(&told.failure)),
        },
        upstream_result: None,
        item: None,
        changed: quoted.as_ref().map(|trouble| trouble.changed.clone()).unwrap_or_default(),
        interaction: asked.or_else(|| quoted.as_ref()?.interaction.clone()),
        timeout_ms: (kind == RefusalKind::ActionTimeout.as_str()).then_some(open.budget.ms),
        advice: None,
    };
    if let Some(until) = not_before {
        trouble.kind = RefusalKind::RetryLater.as_str();
        trouble.retry_after_ms = Some(until.since_ms(now));
        trouble.retryable = safe;
        trouble.recovery.get_or_insert_default().not_before = Some(until.ms());
    }
    trouble
}

/// What happened below, without what follows from it: that is said of the move as a whole.
fn first_clause(message: &str) -> String {
    message.split("; ").next().unwrap_or(message).to_owned()
}
