//! A step that was not recorded: the session goes back to what is, and takes its inputs again.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::envelope::Interruption;
use amends_core::{
    AttemptId, Call, CallId, Certainty, ClaimState, Code, Dispatcher, Failure, Gates, Held, Input, PersonAnswer, Report,
};
use amends_ledger::{Error, Trace};

use super::session::{Mail, Session};
use super::turn::Turn;
use super::walk::told;
use super::{post, redeem};
use crate::clock;
use crate::witness::Witness;

/// The waits for a ledger that is away.
const STORE_LADDER: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(6)];

impl Session {
    /// Restores the session from the ledger and hands in again what was not durable. A call whose claim is held comes
    /// back as the repeat of its holder.
    pub(super) async fn recover(&mut self, first: Turn, cause: Error) {
        let mut failed: VecDeque<Turn> = std::mem::take(&mut self.turns);
        failed.push_front(first);
        tracing::debug!(session = %self.id, %cause, steps = failed.len(), "a step was not recorded");
        // A handle may follow from what a walk began with: another process that opened it first drives it, and no lease is ours.
        let opened_elsewhere = matches!(cause, Error::Conflict { expected: 0, .. });
        if opened_elsewhere || matches!(cause, Error::Fenced { .. }) {
            self.hand_on(&failed);
            return self.give_up(Interruption::LeaseLost, &cause);
        }
        if let Error::Held(held) = &cause
            && let Some(Turn { input, gates, .. }) = failed.front_mut()
            && !matches!(input, Input::Call(_))
        {
            self.lose_yes(held, input, gates);
        }
        if let Error::Held(held) = &cause
            && let Some(Turn { input: Input::Call(call), .. }) = failed.front_mut()
        {
            if self.may_be_answered(held, call) {
                self.come_back(failed.pop_front(), held.call.clone());
            } else {
                call.repeat_of = Some((**held).clone());
            }
        }
        let mut late = None;
        if let Error::Answered { interaction, answer } = &cause
            && let Some(Turn { input, gates, .. }) = failed.front_mut()
        {
            // A person was quicker than the result of what they were asked about.
            late = matches!(input, Input::Result { .. }).then(|| (input.clone(), gates.clone()));
            let bare = PersonAnswer { content: None, ..(**answer).clone() };
            let answer = post::opened(&self.gateway, interaction, (**answer).clone()).await.unwrap_or(bare);
            *input = Input::Answer { interaction: interaction.clone(), answer: Box::new(answer) };
        }
        if let Error::Spent { .. } = &cause
            && let Some(Turn { input: Input::Call(call), gates, .. }) = failed.front_mut()
        {
            call.redeems = None;
            gates.refusal = Some(redeem::spent());
        }
        if let Error::Unavailable { .. } = cause {
            self.gateway.recording.store(false, Ordering::Relaxed);
        }
        let away = matches!(cause, Error::Unavailable { .. } | Error::Corrupt { .. });
        let refused = if away { self.refuse_unsent(&mut failed) } else { Vec::new() };
        let Some(trace) = self.read_back(away).await else {
            return self.give_up(Interruption::LedgerAway, &cause);
        };
        if let Err(by) = self.restore(trace.as_ref()) {
            return self.give_up(by, &cause);
        }
        match self.restore_walk(trace.as_ref()).await {
            Ok(()) => {}
            Err(Error::Corrupt { .. }) => return self.give_up(Interruption::ResumeMismatch, &cause),
            Err(_) => return self.give_up(Interruption::LedgerAway, &cause),
        }
        let durable = self.dispatcher.seq();
        for call in refused {
            if !self.dispatcher.is_open(&call) {
                continue;
            }
            // Its intent was recorded after all, though nothing was sent and its agent was told so.
            self.take(Input::Cancel { call: call.clone(), reason: CancelReason::Disconnected }, Gates::default());
            let report = Report::silent(Failure::of(Code::StoreUnavailable), Certainty::NotSent);
            let attempt = AttemptId { call, n: 1 };
            self.take(Input::Result { attempt, report: Box::new(report) }, Gates::default());
        }
        for mut turn in failed {
            // A commit that broke off may have been one.
            if away && turn.last_seq <= durable {
                self.finish(&mut turn);
                continue;
            }
            let leg = match &turn.input {
                Input::Call(call) if call.leg.is_some() => Some(call.id.clone()),
                _ => None,
            };
            self.take(turn.input, turn.gates);
            // Its move may have made it anew.
            if let Some(leg) = leg.filter(|leg| !self.dispatcher.knows(leg)) {
                self.live.remove(&leg);
            }
        }
        if let Some((input, gates)) = late {
            self.take(input, gates);
        }
    }

    /// Whether the agent may have read the holder's answer before it made this call, though that is not on the ledger yet.
    fn may_be_answered(&self, held: &Held, call: &Call) -> bool {
        let made = self.live.get(&call.id).and_then(|live| live.made);
        held.state == ClaimState::Complete
            && made.is_some_and(|made| self.gateway.deliveries.may_precede(&held.call, made))
    }

    /// Hands a call in once more when it is known whether the holder's answer arrived. Nothing was sent for it.
    fn come_back(&mut self, turn: Option<Turn>, holder: CallId) {
        let Some(Turn { input: Input::Call(mut call), gates, .. }) = turn else { return };
        // It comes in by this process's time once more.
        call.deadline = call.deadline - self.ahead_ms;
        let Some(mut live) = self.live.remove(&call.id) else { return };
        live.made = None;
        let (mail, deliveries) = (self.mail.clone(), self.gateway.deliveries.clone());
        tokio::spawn(async move {
            // Known or not by then, the call is handed in again.
            let _ = tokio::time::timeout(clock::until(call.deadline), deliveries.settled(&holder)).await;
            // An agent that left in the meantime wants nothing to be sent.
            if live.answer.as_ref().is_some_and(|answer| !answer.is_closed()) {
                let _ = mail.send(Mail::Call { call, gates: Box::new(gates), live: Box::new(live) });
            }
        });
    }

    async fn read_back(&self, away: bool) -> Option<Option<Trace>> {
        let waits = STORE_LADDER.iter().map(Some).chain([None]);
        for wait in waits {
            match self.gateway.ledger.trace(&self.id).await {
                Ok(trace) if !away => return Some(trace),
                // Reading may work where writing does not: only a heartbeat shows that the ledger records again.
                Ok(trace) => {
                    if self.gateway.ledger.heartbeat(clock::now()).await.is_ok() {
                        return Some(trace);
                    }
                }
                Err(error) => tracing::warn!(%error, "the ledger is away"),
            }
            tokio::time::sleep(*wait?).await;
        }
        None
    }

    fn restore(&mut self, trace: Option<&Trace>) -> Result<(), Interruption> {
        if !self.goes_on_from(trace) {
            tracing::error!(session = %self.id, "the ledger no longer holds what was recorded of the session");
            return Err(Interruption::ResumeMismatch);
        }
        let Some(trace) = trace else {
            self.dispatcher = Dispatcher::open(self.id.clone(), self.seed, self.principal.clone(), &self.door);
            self.witness = Witness::default();
            return Ok(());
        };
        if trace.epoch != self.epoch {
            tracing::error!(session = %self.id, "another node drives the session now");
            return Err(Interruption::LeaseLost);
        }
        let rules = &self.rules;
        match Dispatcher::restore(trace.events.iter().map(|stored| &stored.event), |hash| rules.get(hash).cloned()) {
            Ok(dispatcher) => {
                self.dispatcher = dispatcher;
                let params = |call: &CallId| self.live.get(call).map(|live| &*live.params);
                self.witness = Witness::of_trace(&self.gateway, trace, params);
                Ok(())
            }
            Err(error) => {
                tracing::error!(session = %self.id, %error, "the trace cannot be folded");
                Err(Interruption::ResumeMismatch)
            }
        }
    }

    /// New calls whose intent was not recorded were never sent: they are refused at once. So are moves, with their calls.
    fn refuse_unsent(&mut self, failed: &mut VecDeque<Turn>) -> Vec<CallId> {
        let mut refused = Vec::new();
        let mut moves = Vec::new();
        failed.retain(|turn| match &turn.input {
            Input::Call(call) if call.leg.is_none() => {
                refused.push(call.id.clone());
                false
            }
            Input::Call(call) => !call.leg.as_ref().is_some_and(|leg| moves.contains(&leg.of)),
            Input::Move(taking) => {
                moves.push(taking.id.clone());
                false
            }
            Input::Weighed { of, .. } => !moves.contains(of),
            _ => true,
        });
        for call in &refused {
            self.answer_unrecorded(call, Interruption::LedgerAway);
        }
        for of in &moves {
            self.refuse_move(of, &told::unrecordable());
        }
        refused
    }
}
