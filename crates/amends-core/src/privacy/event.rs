//! Masking what an event says in words.

use crate::attempt::{Report, Suppressed};
use crate::call::{CallKey, Received};
use crate::event::{Event, Fact};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::id::ToolName;
use crate::interaction::{Interaction, PersonAnswer};
use crate::refusal::{ArgumentFault, Refusal};
use crate::walk::Weighed;

use super::{Field, Mask, Quoted};

impl Mask {
    /// Masks what an event says in words of an agent, an upstream or a person, before it is recorded. Each text is
    /// masked by itself and as a whole, so that what was copied from one event into another stays a copy.
    pub fn event(&self, event: &mut Event, quoted: &[Quoted]) {
        let words = Words { mask: self, quoted };
        match &mut event.fact {
            Fact::CallReceived { received, gates } => words.received(received, gates),
            Fact::CallRefused { refusal, .. } => words.refusal(refusal),
            Fact::ReversalRefused { reason, .. } => words.text(reason),
            Fact::AttemptEnded { report, gates, .. } => {
                words.report(report);
                words.gates(gates);
            }
            Fact::LateResult { report, .. } => words.report(report),
            Fact::InteractionOpened { interaction } => words.interaction(interaction),
            Fact::InteractionAnswered { answer, gates, .. } => {
                words.answer(answer);
                words.gates(gates);
            }
            Fact::MoveReceived { taking, gates } => {
                if let Some(CallKey(key)) = &mut taking.key {
                    words.text(key);
                }
                words.gates(gates);
            }
            Fact::MoveRefused { refusal, .. } => words.refusal(refusal),
            Fact::MoveWeighed { weighed: Weighed::Unclear { why }, .. } => words.text(why),
            Fact::Ignored { why } => words.text(why),
            Fact::SuppressedError { doing, reason } => {
                words.text(doing);
                words.text(reason);
            }
            Fact::InquiryMade { gates, .. }
            | Fact::InputsGiven { gates, .. }
            | Fact::Ticked { gates }
            | Fact::Resumed { gates, .. } => words.gates(gates),
            Fact::SchemaApproved { by, .. } => words.text(by),
            Fact::SessionOpened { .. }
            | Fact::SchemaDrifted { .. }
            | Fact::SessionRetired { .. }
            | Fact::AttemptStarted { .. }
            | Fact::AttemptTimedOut { .. }
            | Fact::AttemptOrphaned { .. }
            | Fact::FailureJudged { .. }
            | Fact::WaitBegan { .. }
            | Fact::DoubtSettled { .. }
            | Fact::InterimAnswered { .. }
            | Fact::CallEnded { .. }
            | Fact::CallApproved { .. }
            | Fact::EvidenceCompared { .. }
            | Fact::InteractionLapsed { .. }
            | Fact::InteractionWithdrawn { .. }
            | Fact::InquiryOpened { .. }
            | Fact::InquiryWithdrawn { .. }
            | Fact::WorkNamed { .. }
            | Fact::InquiryClosed { .. }
            | Fact::DoubtResolved { .. }
            | Fact::ReversalMinted { .. }
            | Fact::ReversalArmed { .. }
            | Fact::ReversalVoided { .. }
            | Fact::ReversalRedeemed { .. }
            | Fact::CancelRequested { .. }
            | Fact::WalkBegan { .. }
            | Fact::WalkMigrated { .. }
            | Fact::MoveJoined { .. }
            | Fact::MoveWeighed { .. }
            | Fact::MoveWaits { .. }
            | Fact::MoveMade { .. }
            | Fact::MoveEnded { .. }
            | Fact::WalkReset { .. }
            | Fact::WalkAborted { .. }
            | Fact::WalkUnwound { .. }
            | Fact::AnswerDelivered { .. } => {}
        }
    }

    /// Whether that fact has words that may quote a call's arguments or result.
    pub const fn reads(&self, fact: &Fact) -> bool {
        matches!(
            fact,
            Fact::CallReceived { .. }
                | Fact::CallRefused { .. }
                | Fact::ReversalRefused { .. }
                | Fact::AttemptEnded { .. }
                | Fact::LateResult { .. }
                | Fact::InteractionOpened { .. }
                | Fact::MoveReceived { .. }
                | Fact::MoveRefused { .. }
                | Fact::MoveWeighed { .. }
                | Fact::Ignored { .. }
                | Fact::SuppressedError { .. }
        )
    }

    /// Masks what a question shows of a call's arguments. `quoted` is what the call itself was masked with, so that the copy stays
    /// one. The question is in words of ours, and names nothing but tools and upstreams, which keep their names.
    pub fn interaction(&self, interaction: &mut Interaction, quoted: &[Quoted]) {
        Words { mask: self, quoted }.interaction(interaction);
    }

    /// Masks what a person added to an answer. The choice is one of ours.
    pub fn answer(&self, answer: &mut PersonAnswer) {
        Words { mask: self, quoted: &[] }.answer(answer);
    }

    /// What stands for the value that a fault in the arguments is about, where that is a declared field's.
    fn declared(&self, fault: &ArgumentFault) -> Option<&'static str> {
        let covers = |field: &&Field| field.is_of_args() && field.covers(&fault.field);
        self.fields.iter().find(covers).map(Field::mask)
    }
}

/// A mask at work on the texts of one call.
struct Words<'a> {
    mask: &'a Mask,
    quoted: &'a [Quoted],
}

impl Words<'_> {
    fn text(&self, text: &mut String) {
        if !self.quoted.is_empty() || self.mask.finds(text) {
            *text = self.mask.text_without(text, self.quoted);
        }
    }

    fn some(&self, text: &mut Option<String>) {
        text.iter_mut().for_each(|text| self.text(text));
    }

    fn received(&self, received: &mut Received, gates: &mut Gates) {
        if gates.refusal.is_some() {
            // A name that was refused may be anything the agent wrote. A tool that is called keeps its name, by which
            // it is found again after a crash.
            received.tool = self.tool(&received.tool);
        }
        if let Some(CallKey(key)) = &mut received.key {
            self.text(key);
        }
        self.some(&mut received.view);
        self.gates(gates);
    }

    fn tool(&self, tool: &ToolName) -> ToolName {
        ToolName::new(self.mask.text_without(tool.as_str(), self.quoted))
    }

    fn gates(&self, gates: &mut Gates) {
        if let Some(refusal) = &mut gates.refusal {
            self.refusal(refusal);
        }
        // A ruling is in words of the operator's, and is masked before it is handed in: the question about it quotes it.
    }

    fn refusal(&self, refusal: &mut Refusal) {
        self.text(&mut refusal.message);
        self.some(&mut refusal.suggested_rewrite);
        self.some(&mut refusal.widening_hint);
        for fault in &mut refusal.details {
            if let (Some(mask), Some(got)) = (self.mask.declared(fault), &mut fault.got) {
                mask.clone_into(got);
            }
            self.text(&mut fault.field);
            self.text(&mut fault.expected);
            self.some(&mut fault.got);
            fault.nearest.iter_mut().for_each(|text| self.text(text));
        }
        if let Some(recovery) = &mut refusal.recovery {
            // What the agent is advised to send is made of what it sent.
            let call = recovery.call.as_mut().map(|call| &mut call.args);
            let template = recovery.template.as_mut().map(|template| &mut template.args);
            for arguments in call.into_iter().chain(template) {
                self.mask.arguments(arguments, self.quoted);
            }
            recovery.fuzzy_matches.iter_mut().for_each(|text| self.text(text));
        }
    }

    fn report(&self, report: &mut Report) {
        if let Some(failure) = &mut report.failure {
            self.failure(failure);
        }
        if let Some(shape) = &mut report.shape {
            for error in &mut shape.errors {
                self.text(&mut error.item);
                self.failure(&mut error.failure);
            }
            shape.provenance.iter_mut().for_each(|provenance| self.text(&mut provenance.source));
        }
        for Suppressed { doing, reason } in &mut report.suppressed {
            self.text(doing);
            self.text(reason);
        }
    }

    fn failure(&self, failure: &mut Failure) {
        if let Some(words) = &mut failure.upstream {
            self.some(&mut words.code);
            self.some(&mut words.text);
            self.some(&mut words.field);
        }
    }

    fn interaction(&self, interaction: &mut Interaction) {
        self.some(&mut interaction.view);
    }

    fn answer(&self, answer: &mut PersonAnswer) {
        // Who answered is a name like a principal's: masked, two persons would be one.
        self.some(&mut answer.note);
    }
}
