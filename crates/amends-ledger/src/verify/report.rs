//! What verifying a ledger found.

use amends_core::SessionId;

/// How many faults are told one by one; the rest are counted.
pub const FAULTS_MAX: usize = 1_000;

/// What verifying a ledger found. Without faults it is consistent; that it is complete takes an anchor outside of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many sessions were read.
    pub sessions: u64,
    /// How many events were read.
    pub events: u64,
    /// How many sessions were decided again, and came out as they are recorded.
    pub decided: u64,
    /// How many sessions cannot be decided again, since their rules or their first events are gone.
    pub undecidable: u64,
    /// How many sessions an older program decided otherwise than this one would. They follow from themselves all the same.
    pub older: u64,
    /// How many entries the log has.
    pub logged: u64,
    /// How many checkpoints in the ledger were looked at.
    pub checkpoints: u64,
    /// What the anchor proves, where there is one and its key is known.
    pub proven: Option<Proven>,
    /// What is wrong, at most [`FAULTS_MAX`] of it.
    pub faults: Vec<Fault>,
    /// How many more there are at least.
    pub left_off: u64,
}

/// What an anchor proves of a ledger: nothing that its last checkpoint covers was changed or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proven {
    /// How many entries of the log its last checkpoint covers.
    pub size: u64,
    /// How many events that checkpoint covers.
    pub events: u64,
    /// How many events came after it, and could be cut off without being missed.
    pub beyond: u64,
}

impl Verified {
    /// Whether nothing is wrong with what is there.
    pub const fn is_consistent(&self) -> bool {
        self.faults.is_empty()
    }

    /// How many faults there are at least.
    pub const fn fault_count(&self) -> u64 {
        self.faults.len() as u64 + self.left_off
    }

    /// Adds faults.
    pub(super) fn add(&mut self, faults: impl IntoIterator<Item = Fault>) {
        for fault in faults {
            if self.faults.len() < FAULTS_MAX {
                self.faults.push(fault);
            } else {
                self.left_off += 1;
            }
        }
    }
}

/// A place where what is stored cannot be what was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What kind of fault it is.
    pub kind: FaultKind,
    /// The session, where it is about one.
    pub session: Option<SessionId>,
    /// The event, where it is about one.
    pub seq: Option<u64>,
    /// The same in words.
    pub words: String,
}

impl Fault {
    /// A fault of that kind.
    pub(crate) fn of(kind: FaultKind, session: Option<&SessionId>, seq: Option<u64>, words: String) -> Self {
        Self { kind, session: session.cloned(), seq, words }
    }
}

/// The kinds of fault that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// An event does not follow from the one before it: it, or the link beside it, was changed.
    Edited,
    /// Events are gone between two that are there.
    Missing,
    /// An event stands in another one's place.
    Reordered,
    /// Events are gone from the end.
    TailCut,
    /// Events are there, and their session is not.
    SessionMissing,
    /// A session is in the log, and nothing of it is there.
    SessionRemoved,
    /// An event cannot be read.
    Unreadable,
    /// The events are whole, and the session's own row names another end.
    HeadMismatch,
    /// The first event opens another session, or none.
    NotTheSession,
    /// What stands beside an event for looking it up is not what the event says.
    Columns,
    /// The chain is whole, and it is not the one that was logged.
    Rewritten,
    /// The rules would not have decided so.
    Illegal,
    /// Rules are not those whose digest they are kept under.
    RulesChanged,
    /// The log is not the one that was signed, or contradicts itself.
    LogEdited,
    /// The log is shorter than a checkpoint says.
    LogCut,
    /// A session's row says that it is logged further, or less far, than the log says.
    LoggedMismatch,
    /// A checkpoint is not signed with the key, is another ledger's, or cannot be read.
    Checkpoint,
}

impl FaultKind {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edited => "edited",
            Self::Missing => "missing",
            Self::Reordered => "reordered",
            Self::TailCut => "tail_cut",
            Self::SessionMissing => "session_missing",
            Self::SessionRemoved => "session_removed",
            Self::Unreadable => "unreadable",
            Self::HeadMismatch => "head_mismatch",
            Self::NotTheSession => "not_the_session",
            Self::Columns => "columns",
            Self::Rewritten => "rewritten",
            Self::Illegal => "illegal",
            Self::RulesChanged => "rules_changed",
            Self::LogEdited => "log_edited",
            Self::LogCut => "log_cut",
            Self::LoggedMismatch => "logged_mismatch",
            Self::Checkpoint => "checkpoint",
        }
    }
}
