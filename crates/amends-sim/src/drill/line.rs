//! The line between the gateway and the world: what is sent, what is joined, what is told.

use amends_core::{Answer, Attempt, AttemptId, CallId, Input, Purpose, Reply, Report, SessionId};
use amends_ledger::Ledger as _;
use amends_wire::mcp::classify::Signal;

use super::agent::{is_other, is_undoing};
use super::fault::Fault;
use super::promise::{Judged, Promise, broken};
use super::stage::{Happening, Stage, TRANSIT_MS};
use super::told::Told;
use super::upstream::{ANSWER_MS, Request};
use crate::world::record;

/// How often a driver looks whether a joined call has ended.
const POLL_MS: u64 = 150;

impl Stage<'_> {
    /// Sends an attempt, or waits for the call that it joins.
    pub(super) fn send(&mut self, session: &SessionId, attempt: Attempt) -> Judged {
        if attempt.purpose == Purpose::Join {
            let Some(held) = attempt.holder else {
                return broken(Promise::OneEnd, "a join does not say whom it waits for");
            };
            self.joins.insert(attempt.id.clone(), held.call.clone());
            return self.poll(session, attempt.id, held.call);
        }
        if self.fires(&attempt.id, Fault::KillAfterIntent) {
            self.kill();
            return Ok(());
        }
        if self.now >= attempt.send_by.ms() {
            // The dispatcher's own tick ends it.
            return Ok(());
        }
        let (fault, _) = self.fault(&attempt.id);
        let request = Request {
            effect_key: self.judge.effect_key(&attempt.id.call),
            deadline: self.judge.deadline(&attempt.id.call),
            undoes: is_undoing(&attempt.id.call),
            attempt: attempt.id,
            purpose: attempt.purpose,
            session: session.clone(),
            fault,
            run: self.upstream.run,
            life: self.life,
        };
        let other_run = attempt.run.is_some_and(|run| run != self.upstream.seen_run());
        if other_run || fault == Fault::Refused {
            let report = self.upstream.signal(&request, Signal::ConnectRefused);
            self.later(ANSWER_MS, Happening::Answer(Box::new(request), report));
            return Ok(());
        }
        if self.is_drilled(&request.attempt.call) {
            match request.purpose {
                Purpose::Act => self.sends += 1,
                _ => self.reads += 1,
            }
        }
        if fault == Fault::CancelBefore {
            self.cancel(&request, 1);
        }
        self.later(TRANSIT_MS, Happening::Arrive(Box::new(request)));
        Ok(())
    }

    /// Gives an answer to the agent, if it still waits for it.
    pub(super) fn reply(&mut self, session: &SessionId, reply: &Reply) -> Judged {
        let of_call: Vec<AttemptId> = self.slots.keys().filter(|attempt| attempt.call == reply.call).cloned().collect();
        if of_call.iter().any(|attempt| self.fires(attempt, Fault::KillBeforeReply)) {
            self.kill();
            return Ok(());
        }
        if is_other(&reply.call) {
            let told = self.told(reply);
            self.note(|| format!("the other agent: hears `{}`, {:?}", told.outcome, told.certainty));
            self.other.push(told);
            return Ok(());
        }
        if self.agent.call.as_ref().is_none_or(|(call, _)| *call != reply.call) {
            return Ok(());
        }
        if of_call.iter().any(|attempt| self.fires(attempt, Fault::AnswerLost)) {
            self.note(|| "agent: loses its connection before the answer".into());
            self.cut(100);
            return Ok(());
        }
        let told = self.told(reply);
        self.hears(&reply.call, session, told)
    }

    pub(super) fn told(&self, reply: &Reply) -> Told {
        match &reply.answer {
            Answer::Forward { envelope, .. } | Answer::Envelope(envelope) => Told::of(envelope),
            Answer::Asked { .. } => Told::unrecorded(),
            Answer::Recorded { attempt } => {
                let holder = self.joins.get(attempt).and_then(|holder| self.answers.get(holder));
                Told { replayed: true, ..holder.cloned().unwrap_or_else(Told::unrecorded) }
            }
        }
    }

    /// Looks whether a joined call has ended; its recorded answer is then the answer of the join.
    pub(super) fn poll(&mut self, session: &SessionId, attempt: AttemptId, holder: CallId) -> Judged {
        let open = self.drivers.get(session).is_some_and(|driver| driver.dispatcher.is_open(&attempt.call));
        if !open {
            return Ok(());
        }
        if let Some(Ok(Some(answer))) = record::now(self.ledger.answer(&holder)) {
            let mut report = Report::success(None);
            report.certainty = answer.certainty;
            report.recorded = Some(amends_core::attempt::Recorded {
                outcome: answer.outcome,
                certainty: answer.certainty,
                code: None,
                refused: None,
            });
            return self.turn(session, Input::Result { attempt, report: Box::new(report) });
        }
        self.later(POLL_MS, Happening::Poll(self.life, session.clone(), attempt, holder));
        Ok(())
    }
}
