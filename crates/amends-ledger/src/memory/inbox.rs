//! The inbox in memory.

use amends_core::{SessionId, Timestamp};
use serde_json::Value;

use super::data::Data;
use crate::letter::{Letter, LetterId, LetterState, REPLIED_KEPT_MS};
use crate::node::Node;

/// A letter in the inbox.
#[derive(Debug)]
pub(super) struct Posted {
    letter: Letter,
    /// The node that took it last.
    taker: Option<String>,
    reply: Option<(Value, Timestamp)>,
}

impl Posted {
    pub(super) fn state(&self) -> LetterState {
        LetterState { taken: self.taker.is_some(), reply: self.reply.as_ref().map(|(body, _)| body.clone()) }
    }

    /// Whether it is about that session, and was replied to.
    pub(super) fn is_done_about(&self, session: &SessionId) -> bool {
        self.reply.is_some() && self.letter.session.as_ref() == Some(session)
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.reply.as_ref().is_some_and(|(_, at)| *at + REPLIED_KEPT_MS <= now)
    }
}

impl Data {
    pub(super) fn post(&mut self, letter: Letter) -> LetterId {
        self.last_letter += 1;
        let id = LetterId(self.last_letter);
        self.letters.insert(id, Posted { letter, taker: None, reply: None });
        id
    }

    pub(super) fn collect(
        &mut self,
        node: &Node,
        places: &[String],
        now: Timestamp,
        limit: usize,
    ) -> Vec<(LetterId, Letter)> {
        let is_ours = |letter: &Letter| letter.place.as_ref().is_none_or(|place| places.contains(place));
        let is_free = |taker: &Option<String>| match taker {
            Some(taker) => *taker != node.id && !self.lives(taker, now),
            None => true,
        };
        let waiting = self.letters.iter().filter(|(_, posted)| posted.reply.is_none() && is_ours(&posted.letter));
        let free = waiting.filter(|(_, posted)| is_free(&posted.taker));
        let taken: Vec<_> = free.take(limit).map(|(id, posted)| (*id, posted.letter.clone())).collect();
        for (id, _) in &taken {
            self.letters.entry(*id).and_modify(|posted| posted.taker = Some(node.id.clone()));
        }
        taken
    }

    pub(super) fn reply_letter(&mut self, id: LetterId, body: Value, now: Timestamp) -> bool {
        let Some(posted) = self.letters.get_mut(&id).filter(|posted| posted.reply.is_none()) else {
            return false;
        };
        posted.reply = Some((body, now));
        true
    }
}
