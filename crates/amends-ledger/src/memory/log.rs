//! The log of session heads in memory, and sessions as they are stored.

use std::ops::Bound;

use amends_core::{Event, SessionId};

use super::data::{Data, Session};
use crate::chain::Link;
use crate::error::Error;
use crate::log::{LogEntry, StoredCheckpoint};
use crate::row::{StoredRecord, StoredSession, StoredTip};

impl Data {
    pub(super) fn unlogged(&self, limit: usize) -> Vec<LogEntry> {
        let behind = self.sessions.iter().filter(|(_, row)| row.events.len() as u64 > row.logged);
        let entry = |(session, row): (&SessionId, &Session)| LogEntry {
            session: session.clone(),
            seq: row.events.len() as u64,
            head: row.head,
        };
        behind.map(entry).take(limit).collect()
    }

    pub(super) fn extend_log(
        &mut self,
        expected: u64,
        entries: Vec<LogEntry>,
        checkpoint: StoredCheckpoint,
    ) -> Result<bool, Error> {
        if self.log.len() as u64 != expected {
            return Ok(false);
        }
        if checkpoint.size != expected + entries.len() as u64 {
            return Err(Error::Corrupt { reason: "a checkpoint does not cover the log that it is kept with".into() });
        }
        for entry in &entries {
            if let Some(row) = self.sessions.get_mut(&entry.session) {
                row.logged = row.logged.max(entry.seq);
            }
        }
        self.log.extend(entries);
        self.checkpoints.push(checkpoint);
        Ok(true)
    }

    pub(super) fn stored(&self, after: Option<&SessionId>, limit: usize) -> Result<Vec<StoredSession>, Error> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.sessions.range::<SessionId, _>((from, Bound::Unbounded)).take(limit);
        rows.map(|(session, row)| row.stored(session)).collect()
    }
}

impl Session {
    fn stored(&self, session: &SessionId) -> Result<StoredSession, Error> {
        let tip = StoredTip {
            principal: self.principal.clone(),
            door: self.door.clone(),
            seq: self.seq(),
            head: self.head.bytes().to_vec(),
            cut: self.cut(),
            cut_link: self.cut.map(|(_, link)| link.bytes().to_vec()),
            logged: self.logged,
        };
        let records = self.events.iter().zip(self.cut() + 1..).map(|((body, hash), seq)| record(seq, body, *hash));
        Ok(StoredSession { session: session.clone(), tip: Some(tip), records: records.collect::<Result<_, _>>()? })
    }
}

fn record(seq: u64, body: &str, hash: Link) -> Result<StoredRecord, Error> {
    let event: Event = serde_json::from_str(body)
        .map_err(|error| Error::Corrupt { reason: format!("event {seq} cannot be read: {error}") })?;
    Ok(StoredRecord {
        seq,
        at: event.at.ms(),
        kind: event.fact.name().to_owned(),
        call: event.fact.call().map(ToString::to_string),
        body: body.as_bytes().to_vec(),
        hash: hash.bytes().to_vec(),
    })
}
