//! The questions to people that are open.

use super::{CallState, Phase, Session};
use crate::claim::Claim;
use crate::dispatcher::Deadline;
use crate::id::{Digest, InteractionId};
use crate::interaction::{Interaction, PersonAnswer, Subject, choice};
use crate::reversal::Redeems;
use crate::time::Timestamp;

/// Of how many calls it is remembered that a person said that they did not happen.
const REFUTED_MAX: usize = 64;

/// A question that is open, and what hangs on its answer.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct Question {
    pub(in crate::dispatcher) interaction: Interaction,
    pub(in crate::dispatcher) claims: Vec<Claim>,
    /// The token of the call it is about.
    pub(in crate::dispatcher) reversal: Option<Digest>,
    pub(in crate::dispatcher) redeems: Option<Redeems>,
    /// Its time is over, and an answer still helps.
    pub(in crate::dispatcher) overdue: bool,
    /// The attempts of its call that are in doubt.
    pub(in crate::dispatcher) doubts: Vec<u32>,
}

impl Question {
    pub(in crate::dispatcher) fn deadline(&self) -> Option<Deadline> {
        let call = self.interaction.call.clone();
        (!self.overdue).then_some(Deadline { at: self.interaction.due, call, reason: "a person's answer is due" })
    }
}

impl Session {
    /// A question is put, and something may hang on it.
    pub(super) fn open_question(&mut self, interaction: &Interaction) {
        let unwinds = self.unwinds(&interaction.call);
        let open = self.walk.as_mut().and_then(|walk| walk.open.as_mut());
        let open = open.filter(|open| open.taking.id == interaction.call);
        // What is told of a call that is over, people only have to take notice of.
        let over = interaction.subject == Subject::Notice && !self.calls.contains_key(&interaction.call);
        if unwinds || over || open.is_some() {
            if let Some(open) = open.filter(|_| interaction.subject == Subject::Move) {
                open.question = Some(interaction.id.clone());
                open.told_at = open.hold_ms.map(|hold_ms| interaction.opened + hold_ms);
            }
            let (claims, reversal, redeems) = (Vec::new(), None, None);
            let interaction = interaction.clone();
            let question = Question { interaction, claims, reversal, redeems, overdue: false, doubts: Vec::new() };
            self.questions.insert(question.interaction.id.clone(), question);
            return;
        }
        let Some(call) = self.calls.get_mut(&interaction.call) else {
            return;
        };
        call.asked = Some(interaction.id.clone());
        match interaction.subject {
            Subject::Resend => {
                // A move waits for that as it waits for any other yes.
                let of_a_move = call.received.leg.is_some() && !call.answered;
                call.told_at = of_a_move.then(|| interaction.opened + call.patience.hold_ms).or(call.told_at);
                call.phase = Phase::Asking;
            }
            Subject::Call => {
                let told_at = call.told_at.unwrap_or(interaction.opened + call.patience.hold_ms);
                call.told_at = Some(told_at);
                call.phase = Phase::Approving;
            }
            Subject::SignIn => {
                let told_at = call.told_at.unwrap_or(interaction.opened + call.patience.hold_ms);
                call.told_at = Some(told_at);
                call.signing_in = true;
                // An upstream that waits goes on with the same attempt.
                if call.paused.is_none() {
                    call.phase = Phase::Approving;
                }
            }
            Subject::Doubt | Subject::Notice | Subject::Move => {}
        }
        let question = Question {
            interaction: interaction.clone(),
            claims: call.received.claims.clone(),
            reversal: call.received.reversal.clone(),
            redeems: call.received.redeems.clone(),
            overdue: false,
            doubts: call.doubted(),
        };
        self.questions.insert(interaction.id.clone(), question);
    }

    /// Remembers who said yes to a call.
    pub(super) fn note_yes(&mut self, id: &InteractionId, answer: &PersonAnswer) {
        let Some(question) = self.questions.get(id).filter(|question| question.interaction.subject == Subject::Call)
        else {
            return;
        };
        let said_yes = question.interaction.is_yes(&answer.choice);
        if let Some(call) = self.calls.get_mut(&question.interaction.call).filter(|_| said_yes) {
            call.said_yes.push(answer.clone());
        }
    }

    /// Remembers what a person says did not happen: its own result may still come, and say that it did.
    pub(super) fn note_refuted(&mut self, id: &InteractionId, answer: &PersonAnswer) {
        let doubt = |question: &&Question| question.interaction.subject == Subject::Doubt;
        let said = self.questions.get(id).filter(doubt).filter(|_| answer.choice == choice::DID_NOT_HAPPEN);
        self.refuted.extend(said.cloned());
        if self.refuted.len() > REFUTED_MAX {
            self.refuted.pop_front();
        }
    }

    /// A question is answered, or its time is over. What is in doubt stays so without an answer, and can still get one.
    pub(super) fn close_question(&mut self, id: &InteractionId, at: Timestamp, answered: bool) {
        let doubt = |question: &Question| question.interaction.subject == Subject::Doubt;
        if let Some(question) = self.questions.get_mut(id).filter(|question| !answered && doubt(question)) {
            question.overdue = true;
            return;
        }
        let Some(question) = self.questions.remove(id) else {
            return;
        };
        let signs_in = question.interaction.subject == Subject::SignIn;
        let held = self.calls.get(&question.interaction.call).is_some_and(|call| signs_in && call.paused.is_some());
        if let Some(call) = self.calls.get_mut(&question.interaction.call).filter(|_| signs_in) {
            call.signing_in = false;
        }
        if held {
            // The clock stands for the upstream's question, and goes on with that.
            return;
        }
        let took_ms = at.since_ms(question.interaction.opened);
        // Nobody waits for a notice.
        if let Some(walk) = self.walk.as_mut().filter(|_| question.interaction.subject != Subject::Notice) {
            walk.person_took(id, &question.interaction.call, question.interaction.opened, at);
        }
        if matches!(question.interaction.subject, Subject::Call | Subject::SignIn)
            && let Some(call) = self.calls.get_mut(&question.interaction.call)
        {
            call.phase = Phase::Received;
        }
        // People's time is not the tool's time.
        let counts = |call: &&mut CallState| !call.answered || call.patience.goes_on;
        if let Some(call) = self.calls.get_mut(&question.interaction.call).filter(counts) {
            call.deadline = call.deadline + took_ms;
        }
    }
}
