//! Asking a person, and what becomes of a question nobody answers.

use crate::dispatcher::Dispatcher;
use crate::dispatcher::wording;
use crate::effect::Effect;
use crate::event::Fact;
use crate::id::{CallId, InteractionId};
use crate::interaction::{Interaction, InteractionKind, Subject, choice};
use crate::limits::QUESTIONS_MAX;
use crate::outcome::Outcome;
use crate::refusal::RefusalKind;
use crate::time::Timestamp;

impl Dispatcher {
    /// Opens a question about a call. The same notice is not given twice while the first is open.
    pub(super) fn ask(&mut self, now: Timestamp, id: &CallId, subject: Subject, queue: &str) {
        let Some(call) = self.state.calls.get(id) else {
            return;
        };
        let (kind, options, default): (_, &[&str], _) = match subject {
            Subject::Doubt => (InteractionKind::Select, &[choice::HAPPENED, choice::DID_NOT_HAPPEN], choice::UNKNOWN),
            Subject::Resend => (InteractionKind::Approve, &[choice::APPROVE, choice::DENY], choice::DENY),
            Subject::Notice => (InteractionKind::Confirm, &[choice::SEEN], choice::SEEN),
            Subject::Move | Subject::Call => (InteractionKind::Approve, &[choice::APPROVE, choice::DENY], choice::DENY),
        };
        let interaction = Interaction {
            id: self.question_id(id, subject),
            session: self.state.id.clone(),
            call: id.clone(),
            tool: call.received.tool.clone(),
            principal: call.received.principal.clone(),
            queue: queue.to_owned(),
            kind,
            subject,
            question: wording::question(call, subject),
            view: call.received.view.clone(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            default: default.to_owned(),
            opened: now,
            due: now + call.contract().answer_within_ms.max(1),
            arrives_by: (subject == Subject::Doubt).then(|| call.arrives_by()),
            grounds: None,
            gives: None,
        };
        if self.state.questions.contains_key(&interaction.id) || self.state.questions.len() >= QUESTIONS_MAX {
            return;
        }
        self.emit(now, Fact::InteractionOpened { interaction: Box::new(interaction.clone()) });
        self.step.effects.push(Effect::Ask(Box::new(interaction)));
    }

    /// Whether another question can be opened.
    pub(super) fn can_ask(&self) -> bool {
        self.state.questions.len() < QUESTIONS_MAX
    }

    /// Nobody answered in time: the default counts. What is in doubt stays so, and can still be answered.
    pub(super) fn lapse(&mut self, now: Timestamp, id: &InteractionId) {
        let Some(question) = self.state.questions.get(id) else {
            return;
        };
        let (subject, call) = (question.interaction.subject, question.interaction.call.clone());
        let default = question.interaction.default.clone();
        self.emit(now, Fact::InteractionLapsed { interaction: id.clone(), default });
        match subject {
            Subject::Doubt => {}
            Subject::Resend => {
                self.step.effects.push(Effect::Withdraw(id.clone()));
                self.end_failed(now, &call, Outcome::Escalated);
            }
            Subject::Notice => self.step.effects.push(Effect::Withdraw(id.clone())),
            Subject::Move => {
                self.step.effects.push(Effect::Withdraw(id.clone()));
                self.deny_move(now, &call, RefusalKind::ApprovalExpired);
            }
            Subject::Call => {
                self.step.effects.push(Effect::Withdraw(id.clone()));
                self.say_no(now, &call, RefusalKind::ApprovalExpired);
            }
        }
    }

    /// Takes back the questions that only made sense while the call was open.
    pub(super) fn withdraw(&mut self, now: Timestamp, call: &CallId) {
        let of = |question: &super::state::Question| {
            let open = matches!(question.interaction.subject, Subject::Resend | Subject::Call);
            open && question.interaction.call == *call
        };
        let open: Vec<InteractionId> =
            self.state.questions.iter().filter(|(_, question)| of(question)).map(|(id, _)| id.clone()).collect();
        for id in open {
            self.emit(now, Fact::InteractionWithdrawn { interaction: id.clone() });
            self.step.effects.push(Effect::Withdraw(id));
        }
    }

    /// A question's id: as hard to guess as the call's. Equal notices have equal ids, so that the queue holds one of them.
    fn question_id(&self, id: &CallId, subject: Subject) -> InteractionId {
        let Some(call) = self.state.calls.get(id) else {
            return InteractionId::new("int_");
        };
        let received = &call.received;
        if subject == Subject::Notice {
            let mut hash = 0xcbf2_9ce4_8422_2325_u64;
            for byte in received.tool.as_str().bytes().chain([0]).chain(received.principal.as_str().bytes()) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            let arguments: String = received.arguments.digest.as_str().chars().take(24).collect();
            return InteractionId::new(format!("int_{hash:016x}{arguments}"));
        }
        let name = id.as_str().strip_prefix("call_").unwrap_or(id.as_str());
        InteractionId::new(format!("int_{name}_{}", call.attempts.len()))
    }
}
