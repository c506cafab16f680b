//! A call arrives: it is refused, joined to the call it repeats, or begun.

use crate::attempt::Purpose;
use crate::call::Call;
use crate::claim::{self, Claim, ClaimChange, ClaimKind, ClaimState, Held};
use crate::contract::{Contract, EffectKind, KeyPlace};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::state::CallState;
use crate::event::Fact;
use crate::gates::{Gates, UNSEEN_RUN, thousandths};
use crate::id::CallId;
use crate::interaction::Subject;
use crate::limits::{ATTEMPT_MS_MIN, KEY_MARGIN_MS, OPEN_CALLS_MAX};
use crate::refusal::{Refusal, RefusalKind};
use crate::registry::Code;
use crate::reversal::ReversalChange;
use crate::time::Timestamp;
use crate::walk::Part;

/// What a repeat does about the call it repeats.
enum Repeat {
    /// It is no repeat at all: the key was used for something else.
    Another,
    /// It waits for the holder's answer.
    Join,
    /// It goes on with the holder's key, since the upstream honours it.
    TakeOver,
    /// It would go on with the holder's key, and the upstream no longer honours that: nothing is sent, a person is asked.
    TooLate,
    /// It is no repeat: a person said yes to such a call, and it needs no other.
    Allowed,
    /// It is no repeat: another write to the same object is on its way or in doubt.
    Busy,
}

impl Dispatcher {
    /// Takes those of a call's claims, from the call that it goes on with where it does.
    pub(super) fn take_claims(&mut self, now: Timestamp, id: &CallId, which: impl Fn(ClaimKind) -> bool) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let over = call.over();
        let doubted = over.filter(|held| matches!(held.state, ClaimState::InDoubt | ClaimState::Resumable));
        let since = doubted.map_or(now, |held| held.since);
        let take = |claim: &Claim| ClaimChange::Take {
            claim: claim.clone(),
            call: id.clone(),
            effect_key: call.received.effect_key.clone(),
            since,
            over: over.map(|held| held.call.clone()),
        };
        let taken: Vec<ClaimChange> = call.received.claims.iter().filter(|claim| which(claim.kind)).map(take).collect();
        self.step.claims.extend(taken);
    }

    pub(super) fn admit(&mut self, now: Timestamp, gates: &Gates, mut call: Call) {
        if self.state.calls.contains_key(&call.id) {
            return self.ignore(now, format!("the call `{}` is open already", call.id));
        }
        if call.leg.as_ref().is_some_and(|leg| !self.awaits(now, leg)) {
            return self.ignore(now, format!("no move wants the call `{}`", call.id));
        }
        let repeat = call.repeat_of.clone().map(|held| (plan(now, gates, &call, &held), held));
        if let Some((Repeat::TakeOver | Repeat::TooLate, held)) = &repeat {
            call.effect_key.clone_from(&held.effect_key);
        }
        if call.leg.as_ref().is_some_and(|leg| leg.part == Part::Exit) {
            // What cleared up stays cleared up when its walk is given up.
            call.reversal = None;
        }
        let full = self.state.calls.len() >= OPEN_CALLS_MAX;
        let id = call.id.clone();
        let received = Box::new(call.received());
        self.emit_call(now, Fact::CallReceived { received, gates: gates.clone() }, call.rules.clone());

        let held_back = gates.refusal.as_ref().is_some_and(|refusal| refusal.kind == RefusalKind::BreakerOpen);
        // What is joined sends nothing, so that no breaker is in its way.
        let joins = held_back && matches!(repeat, Some((Repeat::Join, _)));
        if let Some(refusal) = gates.refusal.as_ref().filter(|_| !joins) {
            if held_back && repeat.is_none() {
                self.unless_held(&call);
            }
            if refusal.kind == RefusalKind::PolicyBlocked {
                // A person may change the policy; nobody waves the call through.
                self.ask(now, &id, Subject::Notice, POLICY_REVIEW);
            }
            return self.refuse(now, id, (**refusal).clone());
        }
        if full {
            let mut refusal =
                Refusal::of(RefusalKind::RateLimited, format!("this session has {OPEN_CALLS_MAX} open calls"));
            refusal.retry_after_ms = Some(1000);
            return self.refuse(now, id, refusal);
        }
        if now + ATTEMPT_MS_MIN > call.deadline {
            let message = "there is no time left for this call, and nothing was sent";
            let refusal = Refusal { code: Code::ExecutionTimeout, ..Refusal::of(RefusalKind::RetryLater, message) };
            return self.refuse(now, id, refusal);
        }
        let over = match repeat {
            Some((Repeat::Another, _)) => {
                let message = "this `amends/key` was used before with other arguments; send a fresh one";
                return self.refuse(now, id, Refusal::of(RefusalKind::Duplicate, message));
            }
            Some((Repeat::Join, held)) => {
                return self.start(now, gates, &id, Purpose::Join, Some(held));
            }
            Some((Repeat::Busy, held)) => return self.refuse(now, id, busy(&held)),
            Some((plan @ (Repeat::TakeOver | Repeat::TooLate | Repeat::Allowed), _)) => Some(plan),
            None => None,
        };
        if matches!(over, None | Some(Repeat::Allowed))
            && let Some(refusal) = self.too_dear(&id)
        {
            if over.is_none() {
                self.unless_held(&call);
            }
            return self.refuse(now, id, refusal);
        }
        let too_late = matches!(over, Some(Repeat::TooLate));
        if over.is_none()
            && gates.approval.is_some()
            && let Some(standing) = claim::standing(&call.claims)
        {
            self.step.claims.push(ClaimChange::Absent { name: standing.name });
        }
        // While a person is asked, what the call would write is free for others.
        let asks = !too_late && self.state.calls.get(&id).is_some_and(CallState::needs_yes);
        self.take_claims(now, &id, |kind| !(asks && kind == ClaimKind::Object));
        if let Some(redeems) = call.redeems {
            let over = self.state.calls.get(&id).and_then(|call| Some(call.over()?.call.clone()));
            self.step.reversals.push(ReversalChange::Redeem { token: redeems.token, by: id.clone(), over });
        }
        if too_late {
            return self.end_in_doubt(now, &id);
        }
        let first = self.next_purpose(&id);
        self.start(now, gates, &id, first, None);
    }

    /// A repeat costs nothing and sends nothing: where somebody holds what a call would take, it is not refused and comes back as one.
    fn unless_held(&mut self, call: &Call) {
        let names = call.claims.iter().filter(|claim| matches!(claim.kind, ClaimKind::Key | ClaimKind::Arguments));
        let absent = names.map(|claim| ClaimChange::Absent { name: claim.name.clone() });
        self.step.claims.extend(absent);
    }

    /// The refusal of a call that would cost more than is left for its principal today, or for its session. What was received and
    /// not begun counts as well.
    fn too_dear(&self, id: &CallId) -> Option<Refusal> {
        let call = self.state.calls.get(id)?;
        let cost = call.cost?;
        if let Some(left) = cost.day_left_milli {
            let (tool, cost, left) = (&call.received.tool, thousandths(cost.milli), thousandths(left));
            let message = format!("`{tool}` would cost {cost}, and {left} is left for today; nothing was sent");
            return Some(Refusal::of(RefusalKind::CostCapExceeded, message));
        }
        let most = cost.session_max_milli?;
        let waiting = self.state.calls.values().filter(|other| other.received.call != *id);
        let promised = waiting.filter_map(CallState::unbegun_cost).fold(self.state.spent_milli, u64::saturating_add);
        let left = most.saturating_sub(promised);
        (cost.milli > left).then(|| {
            let (tool, cost, left) = (&call.received.tool, thousandths(cost.milli), thousandths(left));
            let message = format!("`{tool}` would cost {cost}, and this session has {left} left; nothing was sent");
            Refusal::of(RefusalKind::CostCapExceeded, message)
        })
    }
}

/// The queue on which people find what policies deny.
const POLICY_REVIEW: &str = "policy_review";

fn plan(now: Timestamp, gates: &Gates, call: &Call, held: &Held) -> Repeat {
    let by_key = call.claims.iter().any(|claim| claim.kind == ClaimKind::Key && claim.name == held.name);
    if by_key && call.claims.iter().any(|claim| claim.fingerprint != held.fingerprint) {
        return Repeat::Another;
    }
    if held.state == ClaimState::Granted {
        return Repeat::Allowed;
    }
    let contract = &call.rules.contract;
    let resumable = match (held.state, contract.effect) {
        (ClaimState::InDoubt | ClaimState::Resumable, EffectKind::Idempotent) => Some(Repeat::TakeOver),
        (ClaimState::Resumable, EffectKind::Keyed) => {
            let holds = key_holds(contract, held.since, None, gates.run(&call.upstream), now);
            Some(if holds { Repeat::TakeOver } else { Repeat::TooLate })
        }
        _ => None,
    };
    if call.claims.iter().any(|claim| claim.kind == ClaimKind::Object && claim.name == held.name) {
        let same = call.claims.iter().any(|claim| claim.fingerprint == held.fingerprint);
        return resumable.filter(|_| same).unwrap_or(Repeat::Busy);
    }
    resumable.unwrap_or(Repeat::Join)
}

/// The refusal of a write to an object that another write holds.
fn busy(held: &Held) -> Refusal {
    let (message, retry_after_ms) = match held.state {
        ClaimState::InFlight => {
            let message = "another write to the same object is on its way; nothing was sent, come back when it is over";
            (message, Some(1_000))
        }
        ClaimState::InDoubt
        | ClaimState::Resumable
        | ClaimState::Complete
        | ClaimState::Awaiting
        | ClaimState::Granted => {
            let message = "an earlier write to the same object may have happened and is not settled yet; nothing was \
                           sent, and nothing will be until it is";
            (message, None)
        }
    };
    Refusal { code: Code::ResourceBusy, retry_after_ms, ..Refusal::of(RefusalKind::InFlight, message) }
}

/// For how long after it was first sent a key may be sent again; nothing where a request outlives it.
pub(super) fn key_usable_ms(contract: &Contract, key: &KeyPlace) -> Option<u64> {
    key.window_ms.checked_sub(contract.request_life_ms())?.checked_sub(KEY_MARGIN_MS)
}

/// Whether the upstream still honours a key that was first sent at that time, to that run of it.
pub(super) fn key_holds(
    contract: &Contract,
    since: Timestamp,
    sent_to: Option<u64>,
    run: Option<u64>,
    now: Timestamp,
) -> bool {
    let Some(key) = &contract.key else {
        return false;
    };
    let usable_ms = key_usable_ms(contract, key).unwrap_or_default();
    let same_run = run == Some(UNSEEN_RUN) || (run.is_some() && run == sent_to);
    // A key that was first sent in the future was sent by another clock: nobody knows how long ago that was.
    let by_this_clock = since.since_ms(now) < KEY_MARGIN_MS;
    by_this_clock && now.since_ms(since) < usable_ms && (key.durable || same_run)
}
