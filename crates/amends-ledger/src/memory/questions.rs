//! Questions to people in memory, and the sessions that have one to act on.

use std::collections::BTreeSet;

use amends_core::{Interaction, InteractionId, PersonAnswer, SessionId, Timestamp};

use super::data::{Data, Session};
use crate::interactions::{AnswerFate, Closing, InteractionRow, Posting, QueueEntry, QueueFilter, QueueState, fate};
use crate::node::Node;

impl Data {
    pub(super) fn ask_and_close(
        &mut self,
        session: &SessionId,
        asks: Vec<Interaction>,
        closes: &[(InteractionId, Closing)],
        at: Timestamp,
    ) {
        for interaction in asks {
            let row = InteractionRow { interaction, answer: None, closed: None };
            self.interactions.entry(row.interaction.id.clone()).or_insert(row);
        }
        for (id, closing) in closes {
            let row = self.interactions.get_mut(id).filter(|row| row.interaction.session == *session);
            if let Some(row) = row.filter(|row| row.closed.is_none()) {
                row.closed = Some((*closing, at));
            }
        }
    }

    pub(super) fn queue(&self, filter: &QueueFilter, limit: usize) -> Vec<QueueEntry> {
        let wanted = |row: &&InteractionRow| {
            let on_queue = filter.queue.as_ref().is_none_or(|queue| row.interaction.queue == *queue);
            let theirs = filter.tenant.is_none() || row.interaction.principal.tenant() == filter.tenant;
            on_queue && theirs && (filter.all || row.state() == QueueState::Open)
        };
        let mut rows: Vec<_> = self.interactions.values().filter(wanted).collect();
        rows.sort_by_key(|row| row.interaction.due);
        rows.into_iter().take(limit).cloned().map(InteractionRow::entry).collect()
    }

    pub(super) fn answer_interaction(&mut self, id: &InteractionId, answer: PersonAnswer) -> AnswerFate {
        let row = self.interactions.get_mut(id);
        let fate = fate(row.as_deref(), &answer);
        if let (AnswerFate::Taken, Some(row)) = (&fate, row) {
            row.answer = Some(answer);
        }
        fate
    }

    pub(super) fn posting(&mut self, node: &Node, id: &InteractionId, posting: Posting, now: Timestamp) -> bool {
        if self.interactions.get(id).is_none_or(|row| row.closed.is_some()) {
            return false;
        }
        let free = match self.postings.get(id) {
            Some(Some((by, until))) => *by == node.id || *until <= now || posting == Posting::Done,
            Some(None) => false,
            None => true,
        };
        if free {
            let kept = match posting {
                Posting::Begun { until } => Some((node.id.clone(), until)),
                Posting::Done => None,
            };
            self.postings.insert(id.clone(), kept);
        }
        free
    }

    pub(super) fn answered(&self, limit: usize) -> Vec<(SessionId, InteractionId, PersonAnswer)> {
        let unclosed = self.interactions.values().filter(|row| row.closed.is_none());
        let mut answered: Vec<_> = unclosed
            .filter_map(|row| {
                let answer = row.answer.clone()?;
                Some((row.interaction.session.clone(), row.interaction.id.clone(), answer))
            })
            .collect();
        answered.sort_by_key(|(_, _, answer)| answer.at);
        answered.truncate(limit);
        answered
    }

    pub(super) fn orphans(&self, node: &Node, now: Timestamp, limit: usize) -> Vec<SessionId> {
        let answered = self.asking(|row| row.state() == QueueState::Answered);
        let has_work = |session: &SessionId, row: &Session| {
            row.open.calls > 0 || row.open.due.is_some_and(|due| due <= now) || answered.contains(session)
        };
        let working = self.sessions.iter().filter(|(session, row)| has_work(session, row));
        let orphans = working.filter(|(_, row)| row.owner != node.id && !self.lives(&row.owner, now));
        orphans.take(limit).map(|(session, _)| session.clone()).collect()
    }

    pub(super) fn due(&self, node: &Node, now: Timestamp, limit: usize) -> Vec<SessionId> {
        let asking = self.asking(|row| match row.state() {
            QueueState::Answered => true,
            QueueState::Open => row.interaction.due <= now,
            QueueState::Closed(_) => false,
        });
        let rows = asking.into_iter().filter_map(|session| Some((session, self.sessions.get(session)?)));
        let due = rows.filter(|(_, row)| row.open.calls == 0 && self.may_take(node, row, now));
        due.take(limit).map(|(session, _)| session.clone()).collect()
    }

    /// The sessions that have such a question.
    fn asking(&self, such: impl Fn(&InteractionRow) -> bool) -> BTreeSet<&SessionId> {
        self.interactions.values().filter(|row| such(row)).map(|row| &row.interaction.session).collect()
    }
}
