//! Where a walk is after a step, and what became of that.

use amends_core::dispatcher::walk::Standing;
use amends_core::id::MachineName;
use amends_core::machine::Position;
use amends_core::{CallId, Envelope};
use serde_json::Value;

use super::expect::{Became, No};
use super::telling::Telling;

impl Telling<'_> {
    pub(super) fn became(&self, id: &CallId, envelope: Option<&Envelope>) -> Became {
        let no = match envelope {
            Some(envelope) => envelope.error().map(|error| No {
                kind: error.kind.to_owned(),
                message: error.message.clone(),
                fields: error.details.iter().map(|fault| fault.field.clone()).collect(),
                guard: self.guard.clone(),
            }),
            None => Some(No { kind: "none".into(), message: "there was no answer".into(), ..No::default() }),
        };
        // A repeat gets what the first gave.
        let first = self.joins.get(id).unwrap_or(id);
        let result = if no.is_none() { self.results.get(first).cloned().unwrap_or_default() } else { Value::Null };
        let state = self.dispatcher.walk().and_then(|walk| walk.frames.last().map(|frame| frame.state.to_string()));
        Became {
            state: state.unwrap_or_default(),
            fields: self.course.fields().clone(),
            next: self.next(),
            result,
            calls: self.called.clone(),
            no,
        }
    }

    /// What may be done next.
    fn next(&self) -> Vec<String> {
        let Some(walk) = self.dispatcher.walk() else { return Vec::new() };
        match walk.standing {
            Standing::Done(action) | Standing::Unknown(action) => return vec![action.to_string()],
            Standing::Open(_) | Standing::InDoubt(_) | Standing::Unclear(_) => return Vec::new(),
            Standing::Free if walk.over => return Vec::new(),
            Standing::Free => {}
        }
        let Some((_, at)) = self.position() else { return Vec::new() };
        walk.moves(&at, self.now).into_iter().map(|next| next.name.to_string()).collect()
    }

    /// The machine it is in, and where.
    pub(super) fn position(&self) -> Option<(MachineName, Position)> {
        let walk = self.dispatcher.walk()?;
        let frame = walk.frames.last()?;
        let fields = self.course.fields().as_object().cloned().unwrap_or_default();
        let at = Position { state: frame.state.clone(), fields, seq: frame.moves, taken: frame.taken.clone() };
        Some((frame.machine.clone(), at))
    }
}
