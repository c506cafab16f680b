//! The queue of questions, as the ledger keeps it: the first answer counts, and waits there for whoever drives the session.

use std::collections::{BTreeMap, BTreeSet};

use amends_core::interaction::{Interaction, PersonAnswer, Subject};
use amends_core::{Event, Fact, InteractionId, SessionId, Timestamp};

use crate::flaw::Flaw;

/// The queue of questions.
#[derive(Debug, Default)]
pub struct Queue {
    rows: BTreeMap<Place, Row>,
}

/// Where a question is found. Equal notices of different sessions have equal ids.
pub type Place = (SessionId, InteractionId);

#[derive(Debug)]
struct Row {
    interaction: Interaction,
    answer: Option<PersonAnswer>,
    lapsed: bool,
    over: bool,
}

impl Queue {
    /// Takes what a durable step says of questions, and gives those it opened.
    pub fn apply(&mut self, session: &SessionId, events: &[Event]) -> Vec<Interaction> {
        let mut opened = Vec::new();
        for event in events {
            match &event.fact {
                Fact::InteractionOpened { interaction } => {
                    let place = (session.clone(), interaction.id.clone());
                    let interaction = (**interaction).clone();
                    opened.push(interaction.clone());
                    self.rows.insert(place, Row { interaction, answer: None, lapsed: false, over: false });
                }
                Fact::InteractionAnswered { interaction, .. } | Fact::InteractionWithdrawn { interaction } => {
                    self.change(session, interaction, |row| row.over = true);
                }
                Fact::InteractionLapsed { interaction, .. } => self.change(session, interaction, |row| {
                    row.lapsed = true;
                    row.over |= row.interaction.subject != Subject::Doubt;
                }),
                _ => {}
            }
        }
        opened
    }

    /// A person answers. Says whether that answer counts: it is the first, and one of the options.
    pub fn give(&mut self, place: &Place, answer: PersonAnswer, flaw: Option<Flaw>) -> bool {
        let Some(row) = self.rows.get_mut(place).filter(|row| !row.over) else {
            return false;
        };
        let first = row.answer.is_none() || flaw == Some(Flaw::LateAnswerWins);
        let admitted = row.interaction.admits(&answer.by, &answer.choice);
        if !first || !admitted || !row.interaction.options.contains(&answer.choice) {
            return false;
        }
        row.answer = Some(answer);
        true
    }

    /// Whether a question can still be answered.
    pub fn is_open(&self, place: &Place) -> bool {
        self.rows.get(place).is_some_and(|row| !row.over)
    }

    /// The answer that counts, until its question is over.
    pub fn answer(&self, place: &Place) -> Option<&PersonAnswer> {
        self.rows.get(place).filter(|row| !row.over)?.answer.as_ref()
    }

    /// Every answer that waits to be taken.
    pub fn answered(&self) -> Vec<Place> {
        let waits = |row: &Row| !row.over && row.answer.is_some();
        self.rows.iter().filter(|(_, row)| waits(row)).map(|(place, _)| place.clone()).collect()
    }

    /// The sessions with a question whose time is over and whose default does not count yet.
    pub fn due(&self, now: Timestamp) -> Vec<SessionId> {
        let due = |row: &Row| !row.over && !row.lapsed && row.interaction.due <= now;
        self.rows.iter().filter(|(_, row)| due(row)).map(|((session, _), _)| session.clone()).collect()
    }

    /// Whether an answer or a default is still to come.
    pub fn waits(&self) -> bool {
        self.rows.values().any(|row| !row.over && (!row.lapsed || row.answer.is_some()))
    }

    /// Loses the questions of those sessions: a planted flaw.
    pub fn forget(&mut self, sessions: &BTreeSet<SessionId>) {
        self.rows.retain(|(session, _), _| !sessions.contains(session));
    }

    fn change(&mut self, session: &SessionId, id: &InteractionId, change: impl FnOnce(&mut Row)) {
        if let Some(row) = self.rows.get_mut(&(session.clone(), id.clone())) {
            change(row);
        }
    }
}
