//! The tally: what the agents believe, against what the book says.

use std::time::Duration;

use super::agent::Ending;
use super::book::Book;
use super::told::Belief;
use super::wish::Wish;

/// What happened to the calls of one contender.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) calls: usize,
    /// The effect happened more than once.
    pub(crate) doubled: usize,
    /// Of those, the ones whose agent had been told, in a field, not to repeat the call.
    pub(crate) doubled_against_advice: usize,
    /// The agent was told that it was done, and nothing happened.
    pub(crate) lost_as_done: usize,
    /// The agent was told that it failed, without a doubt, and it happened.
    pub(crate) done_as_failed: usize,
    pub(crate) untyped: usize,
    /// Requests that served nothing.
    pub(crate) needless: usize,
    pub(crate) people: usize,
    pub(crate) succeeded: usize,
    /// Everything the shop was asked.
    pub(crate) requests: usize,
    pub(crate) took: Duration,
    /// The faults behind the wishes that went wrong, for whoever looks into it.
    pub(crate) wrong: Vec<String>,
}

impl Tally {
    /// Compares each ending with the book.
    pub(crate) fn of(wishes: &[Wish], endings: &[Ending], book: &Book, took: Duration) -> Self {
        let mut tally = Self { calls: wishes.len(), requests: book.requests, took, ..Self::default() };
        for (wish, ending) in wishes.iter().zip(endings) {
            let truth = book.truths.get(&wish.name);
            let effects = truth.map_or(0, |truth| truth.effects.len());
            let told = &ending.told;
            let lost = wish.tool.is_write() && told.belief == Belief::Done && effects == 0;
            let hidden = told.belief == Belief::NotDone && effects > 0;
            tally.doubled += usize::from(effects > 1);
            tally.doubled_against_advice += usize::from(effects > 1 && ending.against_advice);
            tally.lost_as_done += usize::from(lost);
            tally.done_as_failed += usize::from(hidden);
            tally.untyped += usize::from(!told.typed);
            tally.needless += truth.map_or(0, |truth| truth.needless());
            tally.people += usize::from(told.person);
            tally.succeeded += usize::from(told.success);
            if effects > 1 || lost || hidden {
                let fault =
                    wish.fault.as_ref().map_or_else(|| "no fault".to_owned(), |fault| fault.attempts.join(", "));
                let what = if effects > 1 {
                    "twice"
                } else if lost {
                    "lost"
                } else {
                    "hidden"
                };
                tally.wrong.push(format!("{what}: {} ({fault})", wish.tool.name()));
            }
        }
        tally
    }

    /// Which faults went wrong, and how often.
    pub(crate) fn wrong_by_fault(&self) -> Vec<(String, usize)> {
        let mut counted = std::collections::BTreeMap::new();
        for wrong in &self.wrong {
            *counted.entry(wrong.clone()).or_insert(0) += 1;
        }
        counted.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::book::Truth;
    use super::super::told::{Reply, Told, Words};
    use super::super::wish::wishes;
    use super::*;

    /// What is counted when a plain agent hears `answer` and the shop did it so many times.
    fn counted(answer: serde_json::Value, effects: usize) -> Tally {
        let wish = wishes(1, 50).into_iter().find(|wish| wish.tool.is_write()).expect("fifty wishes hold a write");
        let truth = Truth { requests: vec![(1, None)], effects: vec![1; effects] };
        let book = Book { truths: [(wish.name.clone(), truth)].into(), requests: 1 };
        let told = Told::read(&Reply::Message(answer), Words::Shop);
        Tally::of(&[wish], &[Ending { told, against_advice: false }], &book, Duration::ZERO)
    }

    #[test]
    fn what_the_agent_believes_is_held_against_the_book() {
        let success = || json!({"result": {"content": []}});
        let failure = || json!({"result": {"content": [], "isError": true}});
        let counts = |tally: Tally| (tally.doubled, tally.lost_as_done, tally.done_as_failed, tally.untyped);
        assert_eq!(counts(counted(success(), 1)), (0, 0, 0, 0));
        assert_eq!(counts(counted(success(), 0)), (0, 1, 0, 0));
        assert_eq!(counts(counted(success(), 2)), (1, 0, 0, 0));
        assert_eq!(counts(counted(failure(), 0)), (0, 0, 0, 1));
        assert_eq!(counts(counted(failure(), 1)), (0, 0, 1, 1));
    }
}
