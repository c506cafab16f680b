//! What can happen in a world, and in which order.

use std::cmp::Ordering;

use amends_core::{
    AttemptId, CallId, Effect, Held, Input, Interaction, PersonAnswer, Report, SessionId, ToolName, Way,
};

use crate::driver::Justified;
use crate::queue::Place;
use crate::upstream::Request;

/// Something that will happen.
#[derive(Debug)]
pub(crate) enum Happening {
    /// An agent asks for something.
    Ask(usize),
    /// An agent loses its connection.
    Disconnect(usize, SessionId),
    /// An agent wants a call stopped.
    Stop(CallId, SessionId),
    /// Something reaches a node, in one of its lives.
    Node(usize, u32, News),
    /// A request reaches its upstream.
    Arrive(Box<Request>),
    /// A request takes effect late.
    Effect(Box<Request>, bool),
    /// A machine's node dies.
    Crash(usize),
    /// A machine starts a new node.
    Start(usize),
    /// A machine stands still for that long.
    Stall(usize, u64),
    /// The ledger is out of a node's reach, or loses its answers, for that long.
    Away(usize, u64, bool),
    /// It is back.
    Back(usize, u32),
    /// An upstream dies by itself.
    Perish(usize),
    /// Something that calls are based on changes.
    Change(ToolName),
    /// A person looks at a question.
    Look(Box<Interaction>),
    /// A second person answers a question.
    Second(Place, Box<PersonAnswer>),
    /// An operator unwinds a session.
    Unwind(SessionId),
    /// Whoever undoes what was done in a walk looks how far that is: with which move it was given up, which calls it is about,
    /// and how often to look again.
    Undoing(usize, SessionId, CallId, Vec<CallId>, u32),
    /// An agent takes an action.
    Stride(usize),
    /// An agent takes its move for lost.
    Weary(usize, CallId),
    /// An agent wants its move stopped, or is gone.
    Halt(CallId, SessionId, bool),
    /// An upstream waits no longer for what it asked.
    Tired(AttemptId),
    /// An agent answers what an upstream asked.
    Give(SessionId, CallId, u32, Way),
}

/// Something that reaches a node.
#[derive(Debug)]
pub(crate) enum News {
    /// An input for a session.
    Input(SessionId, Box<Input>),
    /// The step of that ticket goes to the ledger.
    Append(SessionId, u64),
    /// A step is durable: its effects may begin.
    Durable(SessionId, Box<Justified>),
    /// One effect is performed.
    Perform(SessionId, Box<Effect>, Option<u64>, u64),
    /// The timer of a session.
    Timer(SessionId),
    /// An answer, or a broken line.
    Answer(SessionId, AttemptId, Box<Report>),
    /// Time to see whether a joined call has ended.
    Poll(SessionId, AttemptId, Box<Held>),
    /// Time to ask the ledger what became of a step.
    Ask(SessionId),
    /// Time to say that it lives, and to look for orphans.
    Beat,
}

impl Happening {
    pub(crate) const fn is_beat(&self) -> bool {
        matches!(self, Self::Node(_, _, News::Beat))
    }
}

/// A happening and its time. Those of the same time keep their order.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) at: u64,
    pub(crate) order: u64,
    pub(crate) what: Happening,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap gives the greatest first; the earliest is wanted.
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}
