//! The book: every effect that really happened, and what can be read.

use std::collections::BTreeMap;

use amends_core::{CallId, Digest, ToolName};

use crate::upstream::Request;

/// One effect that really happened.
#[derive(Clone, Debug)]
pub struct Done {
    /// The key minted for it, whether or not the upstream was told.
    pub effect_key: String,
    /// The call whose attempt caused it.
    pub call: CallId,
    /// The number of that attempt.
    pub n: u32,
    /// The wish that call came from.
    pub wish: u64,
    /// The tool.
    pub tool: usize,
    /// When.
    pub at: u64,
    /// When its request was sent.
    pub sent: u64,
    /// The call whose write it undoes.
    pub undoes: Option<CallId>,
}

/// Every effect that really happened, in order, and the facts that calls are based on.
#[derive(Debug, Default)]
pub struct Book {
    done: Vec<Done>,
    by_arguments: BTreeMap<(usize, u64), u64>,
    facts: BTreeMap<ToolName, u64>,
}

impl Book {
    pub(super) fn record(&mut self, now: u64, request: &Request) {
        *self.by_arguments.entry((request.tool, request.args)).or_default() += 1;
        self.done.push(Done {
            effect_key: request.effect_key.clone(),
            call: request.attempt.call.clone(),
            n: request.attempt.n,
            wish: request.wish,
            tool: request.tool,
            at: now,
            sent: request.sent,
            undoes: request.undoes.clone(),
        });
    }

    /// Something that calls are based on changes.
    pub fn change(&mut self, fact: &ToolName) {
        *self.facts.entry(fact.clone()).or_default() += 1;
    }

    /// The hash of what that reads now.
    pub fn fact(&self, fact: &ToolName) -> Digest {
        let version = self.facts.get(fact).copied().unwrap_or_default();
        Digest::new(format!("{fact}-{version}"))
    }

    /// Every effect so far.
    pub fn done(&self) -> &[Done] {
        &self.done
    }

    /// Whether an effect with that key happened.
    pub fn has(&self, effect_key: &str) -> bool {
        self.done.iter().any(|done| done.effect_key == effect_key)
    }

    /// How often that tool took effect with those arguments.
    pub fn count(&self, tool: usize, args: u64) -> u64 {
        self.by_arguments.get(&(tool, args)).copied().unwrap_or_default()
    }
}
