//! Sessions that go, and sessions that come whole from another ledger, in memory.

use amends_core::{SessionId, Timestamp};

use super::data::{Data, Session};
use crate::row::SessionRow;
use crate::whole::Whole;

impl Data {
    pub(super) fn sessions_after(
        &self,
        since: Timestamp,
        after: Option<&(Timestamp, SessionId)>,
        limit: usize,
    ) -> Vec<SessionRow> {
        let comes_after = |row: &SessionRow| {
            after.is_none_or(|(opened, id)| (row.opened, &row.session) > (*opened, id)) && row.opened >= since
        };
        let mut rows: Vec<_> = self.sessions.iter().map(|(id, row)| row.listed(id)).filter(comes_after).collect();
        rows.sort_by(|a, b| (a.opened, &a.session).cmp(&(b.opened, &b.session)));
        rows.truncate(limit);
        rows
    }

    /// Drops the payloads of a session. Claims stay: they hold digests only, and a repeat that found none would be sent
    /// once more.
    pub(super) fn drop_payloads(&mut self, session: &SessionId) {
        let calls = &self.calls;
        let theirs = |call: &amends_core::CallId| calls.get(call) == Some(session);
        self.answers.retain(|call, _| !theirs(call));
        self.arguments.retain(|call, _| !theirs(call));
        self.fields.retain(|(owner, _), _| owner != session);
        self.interactions.retain(|_, row| row.interaction.session != *session);
        self.letters.retain(|_, posted| !posted.is_done_about(session));
        for (_, row) in self.reversals.values_mut().filter(|(_, row)| row.session == *session) {
            row.undo = None;
        }
    }

    pub(super) fn import(&mut self, whole: Whole) -> bool {
        let id = whole.row.session.clone();
        if self.sessions.contains_key(&id) {
            return false;
        }
        for (event, _) in whole.events.iter().filter(|(event, _)| event.received) {
            if let Some(call) = &event.call {
                self.calls.entry(call.clone()).or_insert_with(|| id.clone());
            }
        }
        self.sessions.insert(id, Session::imported(whole));
        true
    }
}
