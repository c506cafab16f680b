//! Questions to people: who is asked, who answered first, and when a question is over.

use amends_core::interaction::InteractionKind;
use amends_core::{Interaction, PersonAnswer, SessionId, Tenant, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// How long a question is kept after it was closed.
pub(crate) const CLOSED_KEPT_MS: u64 = 30 * 24 * 60 * 60 * 1_000;

/// Why a question is over for its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// The session has acted on a person's answer.
    Answered,
    /// Nobody answered in time, and the default counted.
    Lapsed,
    /// It no longer matters.
    Withdrawn,
}

/// Which questions are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueFilter {
    /// Those of one queue; those of all queues where none is named.
    pub queue: Option<String>,
    /// Those of one tenant; those of all tenants, and of none, where none is named.
    pub tenant: Option<Tenant>,
    /// Also those that were answered or closed, while they are kept.
    pub all: bool,
}

/// A question as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    /// The question.
    pub interaction: Interaction,
    /// Where it stands.
    pub state: QueueState,
    /// The first answer, if there is one.
    pub answer: Option<PersonAnswer>,
}

/// Where a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueState {
    /// It waits for a person.
    Open,
    /// A person answered, and the session has not acted on it yet.
    Answered,
    /// It is over for its session.
    Closed(Closing),
}

/// How far a question is on its way to an address of the operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posting {
    /// This node posts it, and nobody else before that time.
    Begun {
        /// Until when.
        until: Timestamp,
    },
    /// It was taken there.
    Done,
}

/// What became of a person's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerFate {
    /// It is the first, and it counts.
    Taken,
    /// Another came first.
    Late {
        /// The answer that counts.
        choice: String,
        /// Who gave it.
        by: String,
        /// When.
        at: Timestamp,
    },
    /// The question is over.
    Closed(Closing),
    /// There is no such question, or it is no longer kept.
    Unknown,
    /// That name may not say yes to it: it called, or it said yes before.
    Barred,
    /// It is none of the answers that can be given.
    NotAnOption {
        /// Those that can.
        options: Vec<String>,
    },
}

/// A question as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InteractionRow {
    pub(crate) interaction: Interaction,
    pub(crate) answer: Option<PersonAnswer>,
    /// Why it is over, and since when.
    pub(crate) closed: Option<(Closing, Timestamp)>,
}

impl InteractionRow {
    pub(crate) fn state(&self) -> QueueState {
        match (self.closed, &self.answer) {
            (Some((closing, _)), _) => QueueState::Closed(closing),
            (None, Some(_)) => QueueState::Answered,
            (None, None) => QueueState::Open,
        }
    }

    pub(crate) fn entry(self) -> QueueEntry {
        QueueEntry { state: self.state(), interaction: self.interaction, answer: self.answer }
    }
}

/// Whether a question of that session may be closed so. One that was answered does not lapse: whoever answered was told that
/// the answer counts.
pub(crate) fn may_close(row: Option<&InteractionRow>, session: &SessionId, closing: Closing) -> Result<(), Error> {
    match row {
        Some(InteractionRow { interaction, answer: Some(answer), closed: None })
            if closing == Closing::Lapsed && interaction.session == *session =>
        {
            Err(Error::Answered { interaction: interaction.id.clone(), answer: Box::new(answer.clone()) })
        }
        _ => Ok(()),
    }
}

/// What becomes of an answer to a question that stands there. Only one that is taken may be stored.
pub(crate) fn fate(row: Option<&InteractionRow>, answer: &PersonAnswer) -> AnswerFate {
    let Some(row) = row else {
        return AnswerFate::Unknown;
    };
    match (row.closed, &row.answer) {
        // The default counted, or nothing did, even if somebody answered a moment before.
        (Some((closing @ (Closing::Lapsed | Closing::Withdrawn), _)), _) => AnswerFate::Closed(closing),
        (_, Some(first)) => AnswerFate::Late { choice: first.choice.clone(), by: first.by.clone(), at: first.at },
        (Some((Closing::Answered, _)), None) => AnswerFate::Closed(Closing::Answered),
        (None, None) if !row.interaction.admits(&answer.by, &answer.choice) => AnswerFate::Barred,
        (None, None) if is_option(&row.interaction, &answer.choice) => AnswerFate::Taken,
        (None, None) => AnswerFate::NotAnOption { options: row.interaction.options.clone() },
    }
}

/// Whether that can be answered. A question without options that asks for a free answer takes any.
fn is_option(interaction: &Interaction, choice: &str) -> bool {
    let is_free = interaction.kind == InteractionKind::Ask && interaction.options.is_empty();
    is_free || interaction.options.iter().any(|option| option == choice)
}
