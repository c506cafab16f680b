//! A write never happens twice because of us.

use amends_core::limits::KEY_MARGIN_MS;
use amends_core::{AttemptId, CallId, Certainty, EffectKind, Event, Fact, Purpose, Timestamp};

use crate::upstream::{Book, Done};
use crate::watch::view::CallView;
use crate::watch::{Verdicts, Watch};

impl Watch {
    /// What an agent wished for once, however often it asked, takes effect at most once.
    pub(crate) fn at_most_once(&mut self, done: &Done) -> Verdicts {
        let effect = self.tools[done.tool].effect();
        if matches!(effect, EffectKind::Read | EffectKind::Idempotent) {
            return Ok(());
        }
        self.credited.insert(done.effect_key.clone(), done.wish);
        self.count(&done.call, done.wish)
    }

    /// What was undone counts no more: wishing for it once more is another wish.
    pub(crate) fn uncount(&mut self, undone: &CallId) {
        let wish = self.credited.remove(&self.effect_key(undone));
        if let Some(count) = wish.and_then(|wish| self.wishes.get_mut(&wish)) {
            *count -= 1;
        }
    }

    /// Calls that nothing but their arguments name cannot be told apart: an effect counts for the wish whose agent is
    /// known to have been told of it, though another one caused it.
    pub(crate) fn credit(&mut self, call: &CallId) -> Verdicts {
        let view = self.calls.get(call).filter(|view| view.inherited);
        let Some((key, wish)) = view.map(|view| view.received.effect_key.clone()).zip(self.asked.get(call).copied())
        else {
            return Ok(());
        };
        let Some(credited) = self.credited.get_mut(&key).filter(|credited| **credited != wish) else {
            return Ok(());
        };
        if let Some(count) = self.wishes.get_mut(credited) {
            *count -= 1;
        }
        *credited = wish;
        self.count(call, wish)
    }

    fn count(&mut self, call: &CallId, wish: u64) -> Verdicts {
        let count = self.wishes.entry(wish).or_default();
        *count += 1;
        if *count > 1 {
            let what = format!("wish {wish} took effect {count} times");
            return Err(self.broken("at_most_once", Some(call.clone()), what));
        }
        Ok(())
    }

    /// A write in doubt is not sent again, and a key is sent again only while the upstream still knows it.
    pub(crate) fn no_blind_resend(&self, attempt: &AttemptId, purpose: Purpose, event: &Event) -> Verdicts {
        let Some(view) = self.calls.get(&attempt.call) else {
            return Ok(());
        };
        let doubted = view.doubts().next().is_some() || view.inherits_doubt;
        if purpose != Purpose::Act || !doubted {
            return Ok(());
        }
        let run = match &event.fact {
            Fact::AttemptStarted { run, .. } => *run,
            _ => None,
        };
        let blind = match view.effect() {
            EffectKind::Read | EffectKind::Idempotent => false,
            EffectKind::Write => true,
            EffectKind::Keyed => !key_is_known(view, event.at, run),
        };
        if blind {
            let what = format!("{attempt} is sent although an earlier one is in doubt");
            return Err(self.broken("at_most_once", Some(attempt.call.clone()), what));
        }
        Ok(())
    }

    /// A doubt is settled with a no only by a status read that began when nothing sent could still arrive; and a yes is
    /// the truth.
    pub(crate) fn settled_by_proof(&self, event: &Event, book: &Book) -> Verdicts {
        let Fact::DoubtSettled { call, certainty, by } = &event.fact else {
            return Ok(());
        };
        let Some(view) = self.calls.get(call) else {
            return Ok(());
        };
        let broken = |what: &str| Err(self.broken("at_most_once", Some(call.clone()), what.into()));
        let happened = book.has(&view.received.effect_key);
        if *certainty == Certainty::Processed {
            return if happened { Ok(()) } else { broken("a doubt is settled with a yes, and it did not happen") };
        }
        if happened {
            return broken("a doubt is settled with a no, and it happened");
        }
        let read = view.attempts.get(by.n as usize - 1);
        let Some(read) = read.filter(|read| read.purpose == Purpose::Status) else {
            return broken("a doubt is settled with a no, and not by a status read");
        };
        let declared = view.tool.contract().settles_within_ms;
        let waited = |n: usize| {
            let held = view.inquiries.values().filter(|inquiry| inquiry.held_by == Some(n as u32 + 1));
            held.map(|inquiry| inquiry.due).max()
        };
        let acts = view.attempts.iter().enumerate().filter(|(_, attempt)| attempt.purpose == Purpose::Act);
        let doubts = acts.filter(|(_, act)| act.end.as_ref().is_none_or(|end| end.certainty == Certainty::InDoubt));
        let last = doubts.map(|(n, doubt)| match &doubt.end {
            Some(end) if end.report.answered => end.at.min(doubt.send_by),
            Some(_) | None => waited(n).map_or(doubt.send_by, |due| due.max(doubt.send_by)),
        });
        let inherited = view.inherits_doubt.then_some(view.at);
        let quiet = last.chain(inherited).max().zip(declared);
        match quiet {
            Some((last, settles)) if read.started >= last + settles => Ok(()),
            Some(_) | None => broken("a doubt is settled with a no before it is quiet"),
        }
    }
}

fn key_is_known(view: &CallView, at: Timestamp, run: Option<u64>) -> bool {
    let contract = view.tool.contract();
    let Some(key) = &contract.key else {
        return false;
    };
    let held = view.received.repeat_of.as_ref();
    let since = held.map_or(view.at, |held| held.since);
    let usable_ms = key.window_ms.saturating_sub(contract.request_life_ms() + KEY_MARGIN_MS);
    let same_run = |sent: Option<u64>| run.is_some() && (run == Some(0) || run == sent);
    let runs = view.doubts().all(|doubt| same_run(doubt.run));
    at.since_ms(since) < usable_ms && (key.durable || runs)
}
