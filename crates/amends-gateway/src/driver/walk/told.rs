//! What the agents of moves are told.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use amends_core::effect::{Answer, Reply};
use amends_core::envelope::{Body, Data, DegradationReason, Trouble};
use amends_core::{CallId, Envelope, Outcome, Refusal, RefusalKind};
use amends_ledger::Appended;
use amends_wire::mcp::Receipt;
use amends_wire::mcp::steps::Names;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::Delivery;
use super::super::answer::{Answered, Form, MoveTold, Rendered, recorded};
use super::super::session::Session;
use super::LiveMove;
use crate::walks::view::Moved;

impl Session {
    /// The answer of a move; nothing where it is none.
    pub(in crate::driver) fn render_move(&self, reply: &Reply) -> Option<Rendered> {
        let live = self.walking.as_ref()?.moves.get(&reply.call)?;
        let Answer::Envelope(envelope) = &reply.answer else { return None };
        Some(self.moved(live, envelope))
    }

    fn moved(&self, live: &LiveMove, envelope: &Envelope) -> Rendered {
        let form = match self.view() {
            Some(view) => {
                let result = self.may_leave(live.gave.clone());
                // What was given is said again only where it was not taken.
                let given = envelope.error().map(|_| self.may_say(&live.action, &live.inputs, &view));
                let moved = Moved { result, given, ..Moved::at(live.action.as_str(), view) };
                Form::Moved(Box::new(MoveTold::of(envelope.clone(), moved, self.names())))
            }
            None => Form::Envelope { envelope: Box::new(envelope.clone()), payload: None },
        };
        Rendered { form, replayed: false }
    }

    /// The names of our tools, with the actions of the walk's own machines: they may be declared otherwise by now.
    fn names(&self) -> Arc<Names> {
        let names = self.gateway.catalogue.now().machines().names().clone();
        match self.dispatcher.walk() {
            Some(look) if self.gateway.config().machine_digests.get(look.root) != Some(look.hash) => {
                Arc::new(Names::clone(&names).knowing(look.machines.all()))
            }
            _ => names,
        }
    }

    /// What a move gave, with what an agent must not see masked.
    fn may_leave(&self, gave: Option<Box<RawValue>>) -> Option<Box<RawValue>> {
        let config = self.gateway.config();
        let masked = config.pii.shared().results.masked(gave.as_ref()?.get(), || None);
        masked.and_then(|(masked, _)| RawValue::from_string(masked).ok()).or(gave)
    }

    /// Tells whoever waits for a move.
    pub(in crate::driver) fn reply_move(&mut self, reply: &Reply, rendered: Rendered, appended: Option<&Appended>) {
        let receipt = self.receipt(appended);
        let Some(live) = self.walking.as_mut().and_then(|walking| walking.moves.get_mut(&reply.call)) else { return };
        let delivery = (reply.last && !rendered.replayed).then(|| Delivery {
            call: reply.call.clone(),
            mail: self.mail.clone(),
            deliveries: self.gateway.deliveries.clone(),
            leaving: None,
            with: Vec::new(),
            user: None,
        });
        for door in std::mem::take(&mut live.also) {
            let (rendered, receipt) = (Rendered { replayed: true, ..rendered.clone() }, Some(receipt.clone()));
            // Whoever asked may be gone.
            let _ = door.send(Answered { rendered, receipt, last: reply.last, delivery: None, declares_output: false });
        }
        if let Some(door) = live.answer.take() {
            let (last, receipt) = (reply.last, Some(receipt));
            // Whoever asked may be gone; the answer then waits in the ledger for the repeat.
            let _ = door.send(Answered { rendered, receipt, last, delivery, declares_output: false });
        }
        if reply.last && !self.dispatcher.is_open(&reply.call) {
            if let Some(walking) = &mut self.walking {
                walking.moves.remove(&reply.call);
            }
            self.gateway.answered.notify_waiters();
        }
    }

    /// A wish that repeats another one waits for its answer, or gets the recorded one.
    pub(super) fn join_move(&mut self, of: &CallId, first: CallId) {
        let Some(walking) = &mut self.walking else { return };
        let Some(repeat) = walking.moves.remove(of) else { return };
        let Some(answer) = repeat.answer else { return };
        if let Some(live) = walking.moves.get_mut(&first) {
            live.also.push(answer);
            if live.subject.is_none() {
                (live.subject, live.listener) = (repeat.subject, repeat.listener);
            }
            return self.bring_again(&first);
        }
        let ledger = self.gateway.ledger.clone();
        let receipt = self.receipt(None);
        // What was said of it may not be kept; where the walk is now is known in any case.
        let outcome = Outcome::Succeeded;
        let body = match repeat.reset {
            // Nothing was made since, so that this is all there was to say.
            true => Body::Success { outcome, data: Data::Value(Value::Null) },
            false => Body::Degraded { outcome, data: None, reason: DegradationReason::AnswerNotKept },
        };
        let envelope = Envelope { replayed: true, ..Envelope::of(body) };
        let now = match self.view() {
            Some(view) => {
                let moved = Moved::at(repeat.action.as_str(), view);
                Form::Moved(Box::new(MoveTold::of(envelope, moved, self.names())))
            }
            None => Form::Envelope { envelope: Box::new(envelope), payload: None },
        };
        tokio::spawn(async move {
            let stored = ledger.answer(&first).await.ok().flatten();
            let rendered = match stored {
                Some(stored) => recorded(&stored, None),
                None => Rendered { form: now, replayed: true },
            };
            // Whoever asked may be gone.
            let _ = answer.send(Answered {
                rendered,
                receipt: Some(receipt),
                last: true,
                delivery: None,
                declares_output: false,
            });
        });
    }

    pub(in crate::driver) fn receipt(&self, appended: Option<&Appended>) -> Receipt {
        Receipt {
            trace: self.id.to_string(),
            sequence: appended.map(|appended| appended.seq),
            hash: appended.map(|appended| appended.head.to_string()),
            checkpoint: self.gateway.newest_checkpoint(),
            unrecorded: (appended.is_none() && !self.gateway.recording.load(Ordering::Relaxed))
                .then_some(RefusalKind::StoreUnavailable),
        }
    }
}

/// The refusal of a wish whose walk is driven by another node by now.
pub(crate) fn elsewhere() -> Refusal {
    let refusal =
        Refusal::of(RefusalKind::InFlight, "the walk changed hands in this moment; nothing was done, ask again");
    Refusal { retry_after_ms: Some(200), ..refusal }
}

/// The refusal of a wish while nothing can be recorded.
pub(in crate::driver) fn unrecordable() -> Refusal {
    let refusal = Refusal::of(RefusalKind::StoreUnavailable, "the ledger cannot record, so nothing is done");
    Refusal { retry_after_ms: Some(5000), ..refusal }
}

/// A refusal that no walk could record.
pub(crate) fn refused(action: &str, refusal: &Refusal) -> Rendered {
    let error = Box::new(Trouble::refused(action, refusal));
    Rendered {
        form: Form::Envelope { envelope: Box::new(Envelope::of(Body::Refused { error })), payload: None },
        replayed: false,
    }
}

/// The same of a move: where nobody knows where its walk is, nothing may be done in it now.
pub(crate) fn refused_move(action: &str, refusal: &Refusal) -> Rendered {
    let mut refused = refused(action, refusal);
    if let Form::Envelope { envelope, .. } = &mut refused.form {
        envelope.valid_next_actions = Some(Vec::new());
    }
    refused
}

/// So that what is answered at once is told like all else.
pub(crate) fn answered(rendered: Rendered) -> Answered {
    Answered { rendered, receipt: None, last: true, delivery: None, declares_output: false }
}

/// A form for a walk as it is, where nothing was taken.
pub(crate) fn seen(
    action: &str,
    result: Option<Box<RawValue>>,
    envelope: Envelope,
    view: crate::walks::view::View,
    names: Arc<Names>,
) -> Rendered {
    let moved = Moved { result, ..Moved::at(action, view) };
    Rendered { form: Form::Moved(Box::new(MoveTold::of(envelope, moved, names))), replayed: false }
}
