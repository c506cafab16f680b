//! What a trace knows of the world: when each attempt was answered and how, and what people said.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::attempt::{Payload, Purpose, Report};
use crate::event::{Event, Fact};
use crate::gates::Gates;
use crate::id::{AttemptId, CallId, InteractionId};
use crate::inquiry::Inquiry;
use crate::interaction::{PersonAnswer, Subject};
use crate::time::Timestamp;

/// Why a trace cannot be decided again at all.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NotComparable {
    /// Its first events are gone.
    #[error("its first events are no longer kept")]
    Cut,
    /// There is nothing in it.
    #[error("it has no events")]
    Empty,
}

/// Whether a trace is whole, so that it can be decided again.
pub fn whole(events: &[Event]) -> Result<(), NotComparable> {
    match events.first() {
        None => Err(NotComparable::Empty),
        Some(Event { seq: 1, fact: Fact::SessionOpened { .. }, .. }) => Ok(()),
        Some(_) => Err(NotComparable::Cut),
    }
}

/// An attempt as it went.
#[derive(Clone, Debug)]
pub(super) struct Went {
    pub(super) n: u32,
    pub(super) purpose: Purpose,
    pub(super) started: Timestamp,
    /// Its answer, in time or late, and when it came.
    pub(super) answer: Option<(Timestamp, Report)>,
    /// Until when it is known that nothing came.
    pub(super) silent_until: Timestamp,
}

/// A question as it went.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) call: CallId,
    pub(super) subject: Subject,
    pub(super) opened: Timestamp,
    pub(super) answer: Option<(Timestamp, PersonAnswer)>,
    /// Until when it is known that nobody answered.
    pub(super) silent_until: Timestamp,
}

/// An inquiry as it went.
#[derive(Clone, Debug)]
pub(super) struct Inquired {
    pub(super) opened: Timestamp,
    pub(super) given: Option<(Timestamp, Payload)>,
    /// When its upstream took it back.
    pub(super) withdrawn: Option<Timestamp>,
}

/// What a trace knows of the world.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    attempts: BTreeMap<CallId, Vec<Went>>,
    questions: Vec<(InteractionId, Asked)>,
    inquiries: BTreeMap<(CallId, u32), Inquired>,
    made: Vec<(AttemptId, Timestamp, Inquiry)>,
    ends: BTreeMap<CallId, Timestamp>,
    deliveries: BTreeMap<CallId, Timestamp>,
    gates: Vec<(Timestamp, Gates)>,
}

impl Record {
    pub(super) fn of(events: &[Event]) -> Self {
        let mut record = Self::default();
        for event in events {
            record.take(event);
        }
        let last = events.last().map_or_else(Timestamp::default, |event| event.at);
        let open = record.attempts.values_mut().flatten().filter(|went| went.answer.is_none());
        for went in open.filter(|went| went.silent_until == Timestamp::MAX) {
            went.silent_until = last;
        }
        let open = record.questions.iter_mut().filter(|(_, asked)| asked.silent_until == Timestamp::MAX);
        for (_, asked) in open {
            asked.silent_until = last;
        }
        record
    }

    fn take(&mut self, event: &Event) {
        let at = event.at;
        match &event.fact {
            Fact::AttemptStarted { attempt, purpose, .. } => {
                let n = attempt.n;
                let went = Went { n, purpose: *purpose, started: at, answer: None, silent_until: Timestamp::MAX };
                self.attempts.entry(attempt.call.clone()).or_default().push(went);
            }
            Fact::AttemptEnded { attempt, report, .. } | Fact::LateResult { attempt, report } => {
                if let Some(went) = self.went_mut(attempt) {
                    went.answer.get_or_insert_with(|| (at, (**report).clone()));
                }
            }
            Fact::AttemptTimedOut { attempt, .. } | Fact::AttemptOrphaned { attempt, .. } => {
                if let Some(went) = self.went_mut(attempt) {
                    went.silent_until = at;
                }
            }
            Fact::InteractionOpened { interaction } => {
                let (call, subject) = (interaction.call.clone(), interaction.subject);
                let asked = Asked { call, subject, opened: at, answer: None, silent_until: Timestamp::MAX };
                self.questions.push((interaction.id.clone(), asked));
            }
            Fact::InteractionAnswered { interaction, answer, .. } => {
                if let Some(asked) = self.asked_mut(interaction) {
                    asked.answer = Some((at, (**answer).clone()));
                }
            }
            Fact::InteractionLapsed { interaction, .. } | Fact::InteractionWithdrawn { interaction } => {
                if let Some(asked) = self.asked_mut(interaction) {
                    asked.silent_until = at;
                }
            }
            Fact::InquiryMade { attempt, inquiry, .. } => self.made.push((attempt.clone(), at, (**inquiry).clone())),
            Fact::InquiryOpened { attempt, inquiry, .. } => {
                self.inquiries
                    .insert((attempt.call.clone(), *inquiry), Inquired { opened: at, given: None, withdrawn: None });
            }
            Fact::InputsGiven { call, inquiry, inputs, .. } => {
                if let Some(inquired) = self.inquiries.get_mut(&(call.clone(), *inquiry)) {
                    inquired.given = Some((at, inputs.clone()));
                }
            }
            Fact::InquiryWithdrawn { call, inquiry } => {
                if let Some(inquired) = self.inquiries.get_mut(&(call.clone(), *inquiry)) {
                    inquired.withdrawn = Some(at);
                }
            }
            Fact::CallEnded { call, .. } | Fact::CallRefused { call, .. } => {
                self.ends.insert(call.clone(), at);
            }
            Fact::AnswerDelivered { call } => {
                self.deliveries.insert(call.clone(), at);
            }
            _ => {}
        }
        if let Fact::CallReceived { gates, .. }
        | Fact::AttemptEnded { gates, .. }
        | Fact::InteractionAnswered { gates, .. }
        | Fact::InquiryMade { gates, .. }
        | Fact::InputsGiven { gates, .. }
        | Fact::Ticked { gates }
        | Fact::Resumed { gates, .. } = &event.fact
        {
            self.gates.push((at, Gates { refusal: None, ..gates.clone() }));
        }
    }

    fn went_mut(&mut self, attempt: &AttemptId) -> Option<&mut Went> {
        self.attempts.get_mut(&attempt.call)?.get_mut((attempt.n as usize).checked_sub(1)?)
    }

    fn asked_mut(&mut self, id: &InteractionId) -> Option<&mut Asked> {
        self.questions.iter_mut().rev().find(|(known, _)| known == id).map(|(_, asked)| asked)
    }

    /// The attempt of that number.
    pub(super) fn went(&self, attempt: &AttemptId) -> Option<&Went> {
        self.attempts.get(&attempt.call)?.get((attempt.n as usize).checked_sub(1)?)
    }

    /// The call's attempt for that purpose that had so many of the same before it.
    pub(super) fn nth(&self, call: &CallId, purpose: Purpose, before: usize) -> Option<&Went> {
        self.attempts.get(call)?.iter().filter(|went| went.purpose == purpose).nth(before)
    }

    /// The question of that id, as it went last.
    pub(super) fn question(&self, id: &InteractionId) -> Option<&Asked> {
        self.questions.iter().rev().find(|(known, _)| known == id).map(|(_, asked)| asked)
    }

    /// The call's question about that which had so many of the same before it.
    pub(super) fn nth_question(&self, call: &CallId, subject: Subject, before: usize) -> Option<&Asked> {
        let of = |(_, asked): &&(InteractionId, Asked)| asked.call == *call && asked.subject == subject;
        self.questions.iter().filter(of).nth(before).map(|(_, asked)| asked)
    }

    /// What the upstream asked while it worked on that attempt, and when.
    pub(super) fn made(&self, attempt: &AttemptId) -> impl Iterator<Item = (Timestamp, &Inquiry)> {
        self.made.iter().filter(move |(of, ..)| of == attempt).map(|(_, at, inquiry)| (*at, inquiry))
    }

    /// The inquiry of that number.
    pub(super) fn inquiry(&self, call: &CallId, n: u32) -> Option<&Inquired> {
        self.inquiries.get(&(call.clone(), n))
    }

    /// Whether the call is over in the record.
    pub(super) fn ended(&self, call: &CallId) -> bool {
        self.ends.contains_key(call)
    }

    /// How long after its end a call's answer was known to have arrived.
    pub(super) fn delivered_after_ms(&self, call: &CallId) -> Option<u64> {
        Some(self.deliveries.get(call)?.since_ms(*self.ends.get(call)?))
    }

    /// What lived outside the session, as it was last seen.
    pub(super) fn gates(&self, at: Timestamp) -> Gates {
        let seen = self.gates.iter().rev().find(|(seen, _)| *seen <= at).or_else(|| self.gates.first());
        seen.map(|(_, gates)| gates.clone()).unwrap_or_default()
    }
}
