//! Beginning an attempt.

use crate::attempt::{Attempt, Purpose};
use crate::claim::{ClaimState, Held};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::approve::question_id;
use crate::dispatcher::state::CallState;
use crate::effect::Effect;
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId, InteractionId, ToolName};
use crate::reversal::ReversalChange;
use crate::time::Timestamp;

impl Dispatcher {
    /// Records an attempt and asks for it to be sent. For a write that acts, the record is the intent.
    pub(super) fn start(&mut self, now: Timestamp, gates: &Gates, id: &CallId, purpose: Purpose, holder: Option<Held>) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        if matches!(purpose, Purpose::Act | Purpose::Baseline) && call.needs_yes() {
            return self.seek_yes(now, gates, id);
        }
        let contract = call.contract();
        let attempt = AttemptId { call: id.clone(), n: call.attempts.len() as u32 + 1 };
        let item = call.next_evidence().filter(|_| purpose == Purpose::Evidence);
        let minted = call.received.reversal.clone().filter(|_| purpose == Purpose::Act && call.acts().next().is_none());
        let tool = match (purpose, &contract.status) {
            (Purpose::Baseline | Purpose::Status, Some(status)) => ToolName::new(status.tool.as_str()),
            (Purpose::Evidence, _) => item
                .and_then(|item| call.received.evidence.get(item as usize))
                .map_or_else(|| call.received.tool.clone(), |evidence| evidence.tool.clone()),
            (Purpose::Reverse, _) => contract
                .reverse
                .as_ref()
                .map_or_else(|| call.received.tool.clone(), |reverse| ToolName::new(reverse.tool.as_str())),
            _ => call.received.tool.clone(),
        };
        let deadline = match purpose {
            Purpose::Join if awaits(holder.as_ref().or(call.received.repeat_of.as_ref())) => {
                now + call.patience.hold_ms
            }
            Purpose::Join => call.deadline,
            // A status read may outlive the agent's patience, and so may an undoing: settling goes on after it.
            Purpose::Status | Purpose::Reverse => now + contract.timeout_ms,
            Purpose::Act | Purpose::Baseline | Purpose::Evidence => (now + contract.timeout_ms).min(call.deadline),
        };
        let by_status = contract.status.as_ref().is_some_and(|status| status.by_key);
        let effect_key = (contract.key.is_some() || by_status).then(|| call.received.effect_key.clone());
        let said = said(call).filter(|_| purpose == Purpose::Act);
        let upstream = call.received.upstream.clone();
        let holder = holder.or_else(|| call.received.repeat_of.clone()).filter(|_| purpose == Purpose::Join);
        // A first send may go to any run; one in doubt only to the run that remembers its key.
        let pinned = gates.run(&upstream).filter(|_| purpose == Purpose::Act && call.in_doubt());
        if let Some(token) = minted {
            self.emit(now, Fact::ReversalMinted { call: id.clone(), token: token.clone() });
            self.step.reversals.push(ReversalChange::Mint { token, call: id.clone() });
        }
        self.emit(
            now,
            Fact::AttemptStarted {
                attempt: attempt.clone(),
                purpose,
                tool: tool.clone(),
                item,
                deadline,
                send_by: deadline,
                run: gates.run(&upstream).filter(|_| purpose == Purpose::Act),
            },
        );
        self.step.effects.push(Effect::Send(Box::new(Attempt {
            id: attempt,
            purpose,
            tool,
            upstream,
            effect_key,
            deadline,
            send_by: deadline,
            run: pinned,
            holder,
            item,
            said,
        })));
    }
}

/// The question whose answer a call gives: its own, or that of the call whose grant it spends.
fn said(call: &CallState) -> Option<InteractionId> {
    call.approval.as_ref()?.form.as_ref()?;
    let held = || call.received.repeat_of.as_ref().map(|held| question_id(&held.call, 0));
    call.asked.clone().or_else(held)
}

/// Whether the call that is joined waits for a person.
fn awaits(holder: Option<&Held>) -> bool {
    holder.is_some_and(|held| held.state == ClaimState::Awaiting)
}
