//! Planted flaws of a dispatcher that does the wrong thing and records what a sound one would: it is misled about what it hears, and
//! what it heard is put back into its record; or it does once more what it did before. Only what it does gives it away.

use std::collections::BTreeMap;

use amends_core::envelope::{Body, Data};
use amends_core::interaction::PersonAnswer;
use amends_core::{
    Answer, CallId, Certainty, Code, Effect, Envelope, Fact, Input, Outcome, Reply, ReversalChange, SessionId, Step,
};

use crate::flaw::Flaw;

/// What a misled dispatcher remembers.
#[derive(Debug, Default)]
pub(crate) struct Misled {
    /// What the first answer to a question, or to an inquiry, led to.
    acted: BTreeMap<String, Vec<Effect>>,
    /// How each call failed first.
    failed: BTreeMap<CallId, (Code, Certainty)>,
    /// Tokens that should have been minted with their intents.
    unminted: BTreeMap<CallId, ReversalChange>,
}

impl Misled {
    /// What a flawed dispatcher takes an input for; nothing where it takes it for what it is.
    pub(super) fn takes_for(&self, flaw: Option<Flaw>, input: &Input) -> Option<Input> {
        match (flaw?, input) {
            (Flaw::RequesterApproves, Input::Answer { interaction, answer }) if answer.by == "agent" => {
                let answer = Box::new(PersonAnswer { by: "ops".into(), ..(**answer).clone() });
                Some(Input::Answer { interaction: interaction.clone(), answer })
            }
            (Flaw::JudgeOnce, Input::Result { attempt, report }) => {
                let (code, certainty) = *self.failed.get(&attempt.call)?;
                let mut report = report.clone();
                report.failure.as_mut()?.code = code;
                report.certainty = certainty;
                Some(Input::Result { attempt: attempt.clone(), report })
            }
            _ => None,
        }
    }

    /// Makes of a step what a flawed dispatcher does and records. `input` is what really came.
    pub(super) fn behave(&mut self, flaw: Option<Flaw>, session: &SessionId, input: &Input, step: &mut Step) {
        match flaw {
            Some(Flaw::RequesterApproves | Flaw::JudgeOnce) => self.put_back(input, step),
            Some(Flaw::AnswerTwice | Flaw::InputsTwice) => self.act_again(flaw, session, input, step),
            Some(Flaw::LateResultCounts) => answer_late(input, step),
            Some(Flaw::MintLate) => self.mint_late(step),
            _ => {}
        }
    }

    fn put_back(&mut self, input: &Input, step: &mut Step) {
        for event in &mut step.events {
            match (&mut event.fact, input) {
                (Fact::InteractionAnswered { answer, .. }, Input::Answer { answer: given, .. }) => {
                    answer.clone_from(given);
                }
                (Fact::AttemptEnded { attempt, report, .. }, Input::Result { report: given, .. }) => {
                    report.clone_from(given);
                    if let Some(failure) = &given.failure {
                        let first = (failure.code, given.certainty);
                        self.failed.entry(attempt.call.clone()).or_insert(first);
                    }
                }
                _ => {}
            }
        }
    }

    /// Does once more what the first answer led to, and says that the second one is ignored.
    fn act_again(&mut self, flaw: Option<Flaw>, session: &SessionId, input: &Input, step: &mut Step) {
        let what = match (flaw, input) {
            (Some(Flaw::AnswerTwice), Input::Answer { interaction, .. }) => format!("{session} {interaction}"),
            (Some(Flaw::InputsTwice), Input::Inputs { call, inquiry, .. }) => format!("{call} {inquiry}"),
            _ => return,
        };
        let sends = |effect: &&Effect| matches!(effect, Effect::Send(_));
        if step.events.iter().any(|event| matches!(event.fact, Fact::Ignored { .. })) {
            step.effects.extend(self.acted.get(&what).cloned().unwrap_or_default());
        } else {
            self.acted.insert(what, step.effects.iter().filter(sends).cloned().collect());
        }
    }

    /// Mints a token only with the result that arms it.
    fn mint_late(&mut self, step: &mut Step) {
        for event in &mut step.events {
            if matches!(event.fact, Fact::ReversalMinted { .. }) {
                event.fact = Fact::Ignored { why: "it is minted later".into() };
            }
        }
        let mut left = Vec::new();
        for change in std::mem::take(&mut step.reversals) {
            if let ReversalChange::Mint { call, .. } = &change {
                self.unminted.insert(call.clone(), change);
                continue;
            }
            if let ReversalChange::Arm { token, .. } = &change {
                let its =
                    |mint: &ReversalChange| matches!(mint, ReversalChange::Mint { token: its, .. } if its == token);
                let call = self.unminted.iter().find(|(_, mint)| its(mint)).map(|(call, _)| call.clone());
                left.extend(call.and_then(|call| self.unminted.remove(&call)));
            }
            left.push(change);
        }
        step.reversals = left;
    }
}

/// Tells an agent of a result that came after the end of its call, though it has its answer.
fn answer_late(input: &Input, step: &mut Step) {
    let Input::Result { attempt, report } = input else { return };
    let late = step.events.iter().any(|event| matches!(event.fact, Fact::LateResult { .. }));
    if late && report.failure.is_none() {
        let (outcome, data) = (Outcome::SucceededAfterCompensation, Data::Value(serde_json::Value::Null));
        let answer = Answer::Envelope(Envelope::of(Body::Success { outcome, data }));
        step.effects.push(Effect::Reply(Box::new(Reply { call: attempt.call.clone(), answer, last: true })));
    }
}
