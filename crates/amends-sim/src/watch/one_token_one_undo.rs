//! One token, one undoing: after the write's result, in time, and never twice.

use amends_core::refusal::{Refusal, RefusalKind};
use amends_core::{AttemptId, CallId, Certainty, Digest, EffectKind, Event, Fact, Outcome, Purpose, Timestamp};

use crate::tokens::token_of;
use crate::upstream::{Book, Done};
use crate::watch::{Verdicts, Watch};

/// A token, as the durable events tell.
#[derive(Debug, Default)]
pub(crate) struct TokenView {
    armed_until: Option<Timestamp>,
    void: bool,
    /// The call that redeems it, after those it goes on with.
    redeeming: Vec<CallId>,
    redeemed: bool,
    undoings: u32,
}

impl Watch {
    /// An undoing that really happens: the write happened before, somebody redeems its token, and it is the first.
    pub(crate) fn one_token_one_undo(&mut self, done: &Done, book: &Book) -> Verdicts {
        let Some(undone) = &done.undoes else {
            return Ok(());
        };
        let broken = |what: &str| Err(self.broken("one_token_one_undo", Some(undone.clone()), what.into()));
        if !book.has(&self.effect_key(undone)) {
            return broken("it is undone and was never done");
        }
        let Some(token) = self.tokens.get(&token_of(undone)) else {
            return broken("it is undone and has no token");
        };
        if token.void || token.armed_until.is_none() {
            return broken("it is undone with a token that does not count");
        }
        if !token.redeeming.contains(&done.call) {
            return broken("it is undone by a call that does not redeem its token");
        }
        let repeatable = self.tools[done.tool].effect() == EffectKind::Idempotent;
        if token.undoings > 0 && !repeatable {
            return broken("it is undone twice");
        }
        if let Some(token) = self.tokens.get_mut(&token_of(undone)) {
            token.undoings += 1;
        }
        Ok(())
    }

    /// A token moves as it should: minted right before its write's intent, armed when that is known to be done, void when
    /// it is not, spent when it is undone.
    pub(crate) fn token_moves(&mut self, event: &Event, next: Option<&Event>, book: &Book) -> Verdicts {
        let (Fact::ReversalMinted { call, token }
        | Fact::ReversalArmed { call, token, .. }
        | Fact::ReversalVoided { call, token }
        | Fact::ReversalRedeemed { call, token, .. }) = &event.fact
        else {
            return Ok(());
        };
        let Some(view) = self.calls.get(call) else {
            return Ok(());
        };
        let broken = |what: &str| Err(self.broken("one_token_one_undo", Some(call.clone()), what.into()));
        let row = self.tokens.get(token);
        let moved = row.is_some_and(|row| row.armed_until.is_some() || row.void || row.redeemed);
        match &event.fact {
            Fact::ReversalMinted { .. } => {
                let sends = |next: &Event| matches!(&next.fact, Fact::AttemptStarted { attempt, purpose: Purpose::Act, .. } if attempt.call == *call);
                if row.is_some() || view.acts().next().is_some() || !next.is_some_and(sends) {
                    return broken("its token is not minted with its first intent");
                }
                self.tokens.insert(token.clone(), TokenView::default());
            }
            Fact::ReversalArmed { until, .. } => {
                if row.is_none() || moved || !view.was_done() {
                    return broken("its token is armed, and it is not known to be done, or was armed before");
                }
                let until = Some(*until);
                self.token(token, |row| row.armed_until = until);
            }
            Fact::ReversalVoided { .. } => {
                // A call that a person was asked about may never have been sent: then it has no token.
                if moved {
                    return broken("its token is voided, and counted");
                }
                self.token(token, |row| row.void = true);
            }
            Fact::ReversalRedeemed { of, .. } => {
                let done = book.done().iter().any(|done| done.undoes.as_ref() == Some(of));
                // What comes late may have been undone by one whose place another has taken since.
                let redeems = |row: &TokenView| match view.done_late {
                    true => row.redeeming.contains(call),
                    false => row.redeeming.last() == Some(call),
                };
                if !row.is_some_and(redeems) || !done {
                    return broken("a token is spent, and nothing was undone with it");
                }
                self.token(token, |row| row.redeemed = true);
            }
            _ => {}
        }
        Ok(())
    }

    /// A reversible write is not sent without its token; an undoing begins only with a token that counts, and not again
    /// while an earlier one may have happened.
    pub(crate) fn redeems_what_counts(&mut self, attempt: &AttemptId, purpose: Purpose, at: Timestamp) -> Verdicts {
        let Some(view) = self.calls.get(&attempt.call) else {
            return Ok(());
        };
        let broken = |what: String| Err(self.broken("one_token_one_undo", Some(attempt.call.clone()), what));
        let own = view.received.reversal.as_ref();
        if purpose == Purpose::Act && own.is_some_and(|own| !self.tokens.contains_key(own)) {
            return broken(format!("{attempt} is sent before its token is minted"));
        }
        let nothing = |undoing: &crate::watch::view::AttemptView| {
            undoing.end.as_ref().is_some_and(|end| end.certainty.nothing_happened())
        };
        if purpose == Purpose::Reverse && !view.undoings().all(nothing) {
            return broken(format!("{attempt} undoes what an earlier attempt may have undone"));
        }
        let begins = purpose != Purpose::Join && attempt.n == 1;
        let token = match (&view.received.redeems, purpose) {
            (_, Purpose::Reverse) => own,
            (Some(redeems), _) if begins => Some(&redeems.token),
            _ => None,
        };
        let Some(token) = token.cloned() else {
            return Ok(());
        };
        let Some(row) = self.tokens.get(&token) else {
            return broken(format!("{attempt} redeems a token that was never minted"));
        };
        let Some(until) = row.armed_until.filter(|_| !row.void && !row.redeemed) else {
            return broken(format!("{attempt} redeems a token that does not count: {row:?}"));
        };
        let taken_over = |by: &CallId| {
            let held = view.received.repeat_of.as_ref();
            held.is_some_and(|held| held.call == *by && held.effect_key == view.received.effect_key)
        };
        match row.redeeming.last() {
            Some(by) if *by == attempt.call => return Ok(()),
            Some(by) if taken_over(by) => {}
            Some(by) => return broken(format!("{attempt} redeems a token that {by} redeems")),
            None if at >= until => return broken(format!("{attempt} redeems a token whose time is over")),
            None => {}
        }
        let by = attempt.call.clone();
        self.token(&token, |row| row.redeeming.push(by));
        Ok(())
    }

    /// What a call ends as says what becomes of the token it redeems.
    pub(crate) fn settles_its_token(&mut self, event: &Event) -> Verdicts {
        let (call, certainty, outcome) = match &event.fact {
            Fact::CallEnded { call, certainty, outcome, replayed: false, .. } => (call, *certainty, Some(*outcome)),
            Fact::DoubtResolved { call, certainty, .. } => (call, *certainty, None),
            _ => return Ok(()),
        };
        let Some(view) = self.calls.get(call) else {
            return Ok(());
        };
        let last = view.undoings().last();
        if last.is_some() && outcome != Some(Outcome::Reversed) && outcome.is_some() && !view.not_undone {
            let what = "it was not undone, and nobody said so".into();
            return Err(self.broken("one_token_one_undo", Some(call.clone()), what));
        }
        let own = last.and_then(|undoing| undoing.end.as_ref()).map(|end| end.certainty);
        let token = match (&view.received.redeems, own) {
            (_, Some(own)) if outcome.is_some() => view.received.reversal.clone().filter(|_| own.nothing_happened()),
            (Some(redeems), _) => Some(redeems.token.clone()).filter(|_| certainty.nothing_happened()),
            _ => None,
        };
        if let Some(token) = token {
            let by = call.clone();
            self.token(&token, |row| {
                if row.redeeming.last() == Some(&by) {
                    row.redeeming.clear();
                }
            });
        }
        // A token is never armed while its write is in doubt.
        let armed = view_token(self, call).is_some_and(|row| row.armed_until.is_some());
        if certainty == Certainty::InDoubt && armed {
            let what = "it is in doubt, and its token is armed".into();
            return Err(self.broken("one_token_one_undo", Some(call.clone()), what));
        }
        Ok(())
    }

    /// A redemption that is refused is said to be.
    pub(crate) fn refusal_is_said(&self, call: &CallId, refusal: &Refusal) -> Verdicts {
        let said = self.calls.get(call).is_some_and(|view| view.not_undone);
        if refusal.kind == RefusalKind::ReversalRefused && !said {
            let what = "its redemption is refused, and no event says so".into();
            return Err(self.broken("one_token_one_undo", Some(call.clone()), what));
        }
        Ok(())
    }

    fn token(&mut self, token: &Digest, change: impl FnOnce(&mut TokenView)) {
        if let Some(row) = self.tokens.get_mut(token) {
            change(row);
        }
    }
}

fn view_token<'a>(watch: &'a Watch, call: &CallId) -> Option<&'a TokenView> {
    watch.tokens.get(watch.calls.get(call)?.received.reversal.as_ref()?)
}
