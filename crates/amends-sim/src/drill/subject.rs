//! The tool that is drilled, and what is assumed of its upstream.

use std::sync::Arc;

use amends_core::{Contract, Rules, ToolName, UpstreamName};
use amends_wire::mcp::TranslateRule;

/// A tool with everything that governs it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its served name.
    pub tool: ToolName,
    /// Where it lives.
    pub upstream: UpstreamName,
    /// Its contract and playbook.
    pub rules: Arc<Rules>,
    /// The same of the tool that undoes it, where one does.
    pub undo: Option<Arc<Rules>>,
    /// The upstream's own words.
    pub translate: Vec<TranslateRule>,
    /// Whether the upstream is our own process, whose restarts we see.
    pub restarts_seen: bool,
}

/// A way in which an upstream is not what its contract says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assume {
    /// A keyed tool's upstream takes the key and forgets it.
    UpstreamForgetsKeys,
    /// The end state of an idempotent tool adds up with each request.
    RepeatsAddUp,
    /// A read has an effect.
    ReadsWrite,
    /// The status never shows that it happened.
    StatusLies,
    /// What was sent takes effect later than `settles_within`.
    SettlesLate,
    /// A status of `rejects_before_effect` is answered although it was done.
    RejectsAfterEffect,
}

impl Assume {
    /// Every assumption.
    pub const ALL: [Self; 6] = [
        Self::UpstreamForgetsKeys,
        Self::RepeatsAddUp,
        Self::ReadsWrite,
        Self::StatusLies,
        Self::SettlesLate,
        Self::RejectsAfterEffect,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UpstreamForgetsKeys => "upstream-forgets-keys",
            Self::RepeatsAddUp => "repeats-add-up",
            Self::ReadsWrite => "reads-write",
            Self::StatusLies => "status-lies",
            Self::SettlesLate => "settles-late",
            Self::RejectsAfterEffect => "rejects-after-effect",
        }
    }

    /// The assumption of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|assume| assume.name() == name)
    }
}

/// What happens beside the call that meets a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// Nothing: one agent with one wish.
    Alone,
    /// The write is done, and its token is redeemed: the faults meet the undoing.
    Undoing,
    /// Another agent writes something else to the same object, so long after the first asked.
    Beside {
        /// After how many milliseconds.
        after_ms: u64,
    },
}

impl Scene {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Undoing => "undoing",
            Self::Beside { .. } => "beside",
        }
    }
}

impl Subject {
    /// The scenes in which it is drilled beside the one where it is alone, each with the contract that the faults meet.
    pub fn scenes(&self) -> Vec<(Scene, &Contract)> {
        let undoing = self.undo.iter().map(|undo| (Scene::Undoing, &undo.contract));
        let writes = self.contract().object.is_some() && !self.contract().effect.is_read();
        // While the first is in flight, and long after it should be over.
        let beside = [30, 60_000].into_iter().filter(|_| writes);
        undoing.chain(beside.map(|after_ms| (Scene::Beside { after_ms }, self.contract()))).collect()
    }

    /// Its contract.
    pub fn contract(&self) -> &Contract {
        &self.rules.contract
    }

    /// Whether something is read before the first send.
    pub fn reads_first(&self) -> bool {
        self.contract().needs_baseline() || !self.contract().evidence.is_empty()
    }
}
