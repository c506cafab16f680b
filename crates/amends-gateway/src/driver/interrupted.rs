//! Calls that are not followed to their end here: what their agents are told, and who goes on with them.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use amends_core::envelope::Interruption;
use amends_core::{CallId, Certainty, Dispatcher, Envelope, RefusalKind};
use amends_ledger::{Error, Trace};
use amends_wire::mcp::Receipt;
use futures_util::FutureExt;
use tokio::sync::mpsc;

use super::CallHandle;
use super::answer::{Answered, Form, Rendered};
use super::session::{Live, Mail, Session};
use super::walk::told;
use crate::gateway::{Driven, Gateway};
use crate::mint;
use crate::witness::Witness;

/// What becomes of a session whose driver fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterFailure {
    /// It is taken up again from the ledger, once.
    TakenUp,
    /// It was: what failed twice would fail for ever.
    Left,
}

/// Drives a session in a task of its own, which begins with `begins`. A failure of ours in it ends only this session, and is logged.
pub(super) fn drive(
    mut session: Session,
    inbox: mpsc::UnboundedReceiver<Mail>,
    used: bool,
    driven: Driven,
    after: AfterFailure,
    begins: impl FnOnce(&mut Session) + Send + 'static,
) {
    let (gateway, id) = (session.gateway.clone(), session.id.clone());
    tokio::spawn(async move {
        let work = async move {
            begins(&mut session);
            session.run(inbox, used).await;
        };
        // Whatever it held is dropped with it: nothing of it is looked at again.
        let ended = AssertUnwindSafe(work).catch_unwind().await;
        drop(driven);
        if ended.is_err() {
            failed(&gateway, &id, after);
        }
    });
}

fn failed(gateway: &Arc<Gateway>, id: &amends_core::SessionId, after: AfterFailure) {
    tracing::error!(session = %id, "the driver of a session failed; what is open in it is settled from the ledger");
    if after == AfterFailure::TakenUp {
        gateway.gives_up(id);
    }
}

impl CallHandle {
    /// The answer of a call whose driver failed before it gave one.
    pub fn broken(&self) -> Answered {
        let certainty = if self.harmless { Certainty::NotProcessed } else { Certainty::InDoubt };
        let envelope = Envelope::interrupted(&self.requested, Interruption::Failed, certainty);
        Answered {
            rendered: Rendered {
                form: Form::Envelope { envelope: Box::new(envelope), payload: None },
                replayed: false,
            },
            receipt: None,
            last: false,
            delivery: None,
            declares_output: false,
        }
    }
}

impl Session {
    /// Nobody can drive this session here any more. Whoever still uses it goes on in a new one.
    pub(super) fn give_up(&mut self, by: Interruption, cause: &Error) {
        tracing::error!(session = %self.id, %cause, code = by.code().as_str(), "the session is given up");
        let doubtful = self.doubtful_moves();
        let open: Vec<_> = self.live.keys().cloned().collect();
        for call in open {
            self.answer_unrecorded(&call, by);
        }
        let moves: Vec<_> = self.walking.iter().flat_map(|walking| walking.moves.keys().cloned()).collect();
        for of in moves {
            match (by, doubtful.contains(&of)) {
                (Interruption::LeaseLost, false) => self.refuse_move(&of, &told::elsewhere()),
                (_, true) => self.interrupt_move(&of, by, Certainty::InDoubt),
                (_, false) => self.interrupt_move(&of, by, Certainty::NotSent),
            }
        }
        // A walk has one session: whoever goes on with it takes that one up.
        self.resting |= self.walking.take().is_some();
        self.turns.clear();
        self.witness = Witness::default();
        match by {
            Interruption::LedgerAway => self.gateway.gives_up(&self.id),
            Interruption::LeaseLost | Interruption::ResumeMismatch | Interruption::Failed => {
                self.gateway.leaves(&self.id);
            }
        }
        self.id = mint::session();
        self.epoch = 1;
        self.recorded = 0;
        self.dispatcher = Dispatcher::open(self.id.clone(), self.seed, self.principal.clone(), &self.door);
    }

    /// The moves for which something was sent that may have changed something.
    fn doubtful_moves(&self) -> HashSet<CallId> {
        let begun = self.walking.iter().flat_map(|walking| &walking.moves);
        let begun = begun.filter(|(_, live)| !live.results.is_empty()).map(|(of, _)| of.clone());
        let sent = self.live.values().filter(|live| live.sent && !live.rules.contract.effect.is_read());
        begun.chain(sent.filter_map(|live| Some(live.leg.as_ref()?.of.clone()))).collect()
    }

    fn interrupt_move(&mut self, of: &CallId, by: Interruption, certainty: Certainty) {
        let Some(live) = self.walking.as_mut().and_then(|walking| walking.moves.remove(of)) else { return };
        let envelope = Envelope::interrupted(live.action.as_str(), by, certainty);
        let form = Form::Envelope { envelope: Box::new(envelope), payload: None };
        for answer in live.answer.into_iter().chain(live.also) {
            // Whoever asked may be gone.
            let _ = answer.send(told::answered(Rendered { form: form.clone(), replayed: false }));
        }
    }

    /// Tells whoever waits for a call that it is not followed to its end here.
    pub(super) fn answer_unrecorded(&mut self, call: &CallId, by: Interruption) {
        let Some(mut live) = self.live.remove(call) else {
            return;
        };
        let certainty = known(&live, by);
        let tool = live.tool.as_ref().map_or("", |tool| tool.name.as_str());
        let Some(door) = live.answer.take() else { return };
        let envelope = Box::new(Envelope::interrupted(tool, by, certainty));
        let rendered = Rendered { form: Form::Envelope { envelope, payload: None }, replayed: false };
        let unrecorded = (by == Interruption::LedgerAway).then_some(RefusalKind::StoreUnavailable);
        // Whoever asked may be gone.
        let _ = door.send(Answered {
            rendered,
            receipt: Some(Receipt {
                trace: self.id.to_string(),
                sequence: None,
                hash: None,
                checkpoint: self.gateway.newest_checkpoint(),
                unrecorded,
            }),
            last: certainty.nothing_happened(),
            delivery: None,
            declares_output: live.tool.as_ref().is_some_and(|tool| tool.output.is_some()),
        });
    }

    /// Whether what the ledger holds goes on from what was recorded of this session.
    pub(super) fn goes_on_from(&self, trace: Option<&Trace>) -> bool {
        let held = trace.map_or(0, |trace| trace.cut + trace.events.len() as u64);
        held >= self.recorded
    }
}

/// What is known of a call that this node no longer follows.
fn known(live: &Live, by: Interruption) -> Certainty {
    let reads = live.rules.contract.effect.is_read();
    match by {
        // Its intent may be recorded, and whoever has the session goes on with it.
        Interruption::LeaseLost if !reads => Certainty::InDoubt,
        _ if !live.sent => Certainty::NotSent,
        _ if reads => Certainty::NotProcessed,
        _ => Certainty::InDoubt,
    }
}
