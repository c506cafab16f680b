//! One session: it takes one input at a time and says what happened and what to do.
//!
//! State changes in one function, `emit`, which records an event and applies it. So folding a trace always
//! gives the live state, and an effect always has its event in the same step.

pub mod cancel;

mod admit;
mod answer;
mod approve;
mod ask;
mod compensate;
mod delivery;
mod ending;
mod evidence;
mod inputs;
mod inquire;
mod reconcile;
pub mod redecide;
mod result;
mod resume;
pub mod retire;
mod reverse;
mod shaping;
mod sign_in;
mod start;
mod state;
mod tick;
pub mod walk;
mod wording;

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::attempt::{Payload, Report};
use crate::call::{Call, Rules};
use crate::claim::ClaimChange;
use crate::drift::Drift;
use crate::effect::Effect;
use crate::event::{Decider, Event, Fact, VERSION};
use crate::gates::Gates;
use crate::id::MachineName;
use crate::id::{AttemptId, CallId, Digest, InteractionId, Principal, SessionId};
use crate::inquiry::Inquiry;
use crate::interaction::PersonAnswer;
use crate::machine::MachineSpec;
use crate::reversal::ReversalChange;
use crate::time::Timestamp;
use crate::walk::{Beginning, Taking, Weighed};
use cancel::CancelReason;
use retire::RetireReason;
use state::Session;

/// One thing that arrives.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A call.
    Call(Box<Call>),
    /// What came of an attempt.
    Result {
        /// Which one.
        attempt: AttemptId,
        /// What came of it.
        report: Box<Report>,
    },
    /// A person answered a question.
    Answer {
        /// Which one.
        interaction: InteractionId,
        /// The answer.
        answer: Box<PersonAnswer>,
    },
    /// The upstream asks something of the agent while it works on an attempt.
    Inquiry {
        /// Which attempt.
        attempt: AttemptId,
        /// What it asks.
        inquiry: Box<Inquiry>,
    },
    /// The agent answered what an upstream asked.
    Inputs {
        /// Whose call it is.
        call: CallId,
        /// The inquiry's number in the call.
        inquiry: u32,
        /// The digest and size of what it gave.
        inputs: Payload,
    },
    /// The upstream takes back what it asked while it works.
    Withdrawal {
        /// Whose call it is.
        call: CallId,
        /// The inquiry's number in the call.
        inquiry: u32,
    },
    /// The upstream gave what it does for an attempt a name.
    Name {
        /// Which attempt.
        attempt: AttemptId,
        /// The name.
        name: String,
    },
    /// Somebody wants a call stopped.
    Cancel {
        /// Which one.
        call: CallId,
        /// Why.
        reason: CancelReason,
    },
    /// The answer of a call is known to have arrived.
    Delivery {
        /// Which one.
        call: CallId,
    },
    /// A deadline passed.
    Tick,
    /// The session was taken up after a crash, or by another node.
    Resume,
    /// A tool is no longer what it was pinned to.
    Drift(Box<Drift>),
    /// Somebody approved what a tool became.
    Approval {
        /// What it was and what it is.
        drift: Box<Drift>,
        /// Who.
        by: String,
    },
    /// A walk through a machine begins. The session has no other.
    Begin(Box<Beginning>),
    /// The walk goes on under another declaration of its machine.
    Migrate {
        /// The machine as it is declared now, and every other that it uses.
        definition: BTreeMap<MachineName, MachineSpec>,
        /// The digest of all of that.
        hash: Digest,
    },
    /// An agent wants an action taken.
    Move(Box<Taking>),
    /// What was evaluated of a move.
    Weighed {
        /// The move.
        of: CallId,
        /// What it said.
        weighed: Weighed,
    },
    /// What was done in a walk that was given up is undone, as far as it could be.
    Unwound {
        /// The move that failed.
        of: CallId,
        /// How many calls were undone.
        undone: u32,
        /// The calls that were not, as far as is known.
        failed: Vec<CallId>,
        /// Those of them whose undoing is in doubt.
        doubtful: Vec<CallId>,
    },
    /// The session is over for good, and its events are dropped.
    Retire {
        /// Why.
        reason: RetireReason,
    },
}

/// What one input led to: the events, what must be true together with them, and what to do once they are durable.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a step that is dropped was never taken"]
pub struct Step {
    /// What happened.
    pub events: Vec<Event>,
    /// What happens to the claims, in the same transaction.
    pub claims: Vec<ClaimChange>,
    /// What happens to the tokens, in the same transaction.
    pub reversals: Vec<ReversalChange>,
    /// What to do, once the events are durable.
    pub effects: Vec<Effect>,
}

/// When the dispatcher wants a tick, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When.
    pub at: Timestamp,
    /// Whose call it is.
    pub call: CallId,
    /// Why.
    pub reason: &'static str,
}

/// A session: its open calls, and what became of the others.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    state: Session,
    step: Step,
    /// The name under which it decides: another than its own only while a trace is decided again.
    decider: Decider,
}

/// Why a trace cannot be folded.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TraceError {
    /// It does not begin with the opening of a session.
    #[error("the trace does not begin with the opening of a session")]
    NoBeginning,
    /// Its session was retired, and what led to it is gone.
    #[error("the session was retired, so it is not decidable again")]
    Retired,
    /// Its events are not numbered one after the other.
    #[error("event {found} stands where event {expected} should be")]
    Gap {
        /// What should be there.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// It was written by a newer version.
    #[error("event {seq} has the shape of version {version}, which this version cannot read")]
    Newer {
        /// Which event.
        seq: u64,
        /// Its version.
        version: u32,
    },
    /// It was decided by a newer program.
    #[error("event {seq} begins what a newer program decided, which this one cannot decide again")]
    NewerDecider {
        /// Which event.
        seq: u64,
    },
    /// An open call names rules that are not there.
    #[error("the rules `{hash}` of call `{call}` are missing")]
    RulesMissing {
        /// The call.
        call: CallId,
        /// The digest of its rules.
        hash: Digest,
    },
    /// An event speaks of what cannot be.
    #[error("event {seq} (`{name}`) does not follow from those before it")]
    Illegal {
        /// Which event.
        seq: u64,
        /// Its name.
        name: &'static str,
    },
}

impl Dispatcher {
    /// Begins a session. Its opening is recorded with the first input.
    pub fn open(session: SessionId, seed: u64, principal: Principal, door: &str) -> Self {
        Self { state: Session::new(session, seed, principal, door), step: Step::default(), decider: Decider::THIS }
    }

    /// Folds a trace into the session it led to. Only open calls need their rules.
    pub fn restore<'a>(
        events: impl IntoIterator<Item = &'a Event>,
        rules: impl Fn(&Digest) -> Option<Arc<Rules>>,
    ) -> Result<Self, TraceError> {
        let mut events = events.into_iter().peekable();
        let first = events.peek().ok_or(TraceError::NoBeginning)?;
        let mut dispatcher = match &first.fact {
            Fact::SessionOpened { session, seed, principal, door, .. } => {
                Self::open(session.clone(), *seed, principal.clone(), door)
            }
            Fact::SessionRetired { session, principal, door, events: dropped, .. } => {
                let mut closed = Self::open(session.clone(), 0, principal.clone(), door);
                closed.state.seq = *dropped;
                closed
            }
            _ => return Err(TraceError::NoBeginning),
        };
        for event in events {
            if event.v > VERSION {
                return Err(TraceError::Newer { seq: event.seq, version: event.v });
            }
            let expected = dispatcher.state.seq.saturating_add(1);
            if event.seq != expected {
                return Err(TraceError::Gap { expected, found: event.seq });
            }
            dispatcher.state.fold(event, &rules)?;
        }
        dispatcher.state.forget_ended_rules()?;
        Ok(dispatcher)
    }

    /// Takes one input. It never fails: what makes no sense becomes an `Ignored` event that says why.
    pub fn handle(&mut self, now: Timestamp, gates: &Gates, input: Input) -> Step {
        // Time never runs backwards inside a session, whatever the clock outside does.
        let now = now.max(self.state.now);
        if self.state.retired {
            // Nothing follows the event that says that the others are gone.
            return Step::default();
        }
        if self.state.seq == 0 {
            if input == Input::Tick {
                // Nothing is due in a session that has not begun.
                return Step::default();
            }
            self.emit(now, self.state.opening(self.decider));
        }
        match input {
            Input::Call(call) => self.admit(now, gates, *call),
            Input::Result { attempt, report } => self.result(now, gates, attempt, report),
            Input::Answer { interaction, answer } => self.answer(now, gates, interaction, answer),
            Input::Inquiry { attempt, inquiry } => self.inquiry(now, gates, attempt, inquiry),
            Input::Inputs { call, inquiry, inputs } => self.inputs(now, gates, call, inquiry, inputs),
            Input::Withdrawal { call, inquiry } => self.withdrawal(now, call, inquiry),
            Input::Name { attempt, name } => self.named(now, attempt, name),
            Input::Cancel { call, reason } => self.cancel(now, call, reason),
            Input::Delivery { call } => self.delivery(now, call),
            Input::Tick => self.tick(now, gates),
            Input::Resume => self.resume(now, gates),
            Input::Drift(drift) => self.emit(now, Fact::SchemaDrifted { drift: *drift }),
            Input::Approval { drift, by } => self.emit(now, Fact::SchemaApproved { drift: *drift, by }),
            Input::Begin(beginning) => self.begin(now, beginning),
            Input::Migrate { definition, hash } => self.migrate(now, definition, hash),
            Input::Move(taking) => self.take(now, gates, *taking),
            Input::Weighed { of, weighed } => self.weighed(now, &of, weighed),
            Input::Unwound { of, undone, failed, doubtful } => self.unwound(now, of, undone, failed, doubtful),
            Input::Retire { reason } => self.retire(now, reason),
        }
        // What left no input behind cannot be decided again, so nothing follows from it; what is due meanwhile waits for its tick.
        if self.step.events.iter().any(|event| !event.fact.is_remark()) {
            self.walk_on(now);
        }
        std::mem::take(&mut self.step)
    }

    /// When a tick is wanted, and why. It is derived from the state, so it survives a restart.
    pub fn deadline(&self) -> Option<Deadline> {
        let calls = self.state.calls.values().filter_map(state::CallState::deadline);
        let questions = self.state.questions.values().filter_map(state::Question::deadline);
        let walk = self.state.walk.as_ref().and_then(state::WalkState::deadline);
        calls.chain(questions).chain(walk).min_by_key(|deadline| deadline.at)
    }

    /// The sequence of the last event.
    pub fn seq(&self) -> u64 {
        self.state.seq
    }

    /// How many calls are open; a move that is being made counts, and so does an unwinding.
    pub fn open_calls(&self) -> usize {
        let unwinding = self.state.walk.as_ref().is_some_and(|walk| walk.unwinding);
        self.state.calls.len() + usize::from(self.state.open_move().is_some()) + usize::from(unwinding)
    }

    /// How many questions are open.
    pub fn open_questions(&self) -> usize {
        self.state.questions.len()
    }

    /// Whether the session is over for good. Nothing can be called in it.
    pub fn is_retired(&self) -> bool {
        self.state.retired
    }

    /// Whether that call is open.
    pub fn is_open(&self, call: &CallId) -> bool {
        self.state.calls.contains_key(call) || self.state.open_move().is_some_and(|open| open.taking.id == *call)
    }

    /// Whether that inquiry of that call waits for the agent's answer.
    pub fn is_asking(&self, call: &CallId, inquiry: u32) -> bool {
        self.state.calls.get(call).is_some_and(|call| call.open_inquiries().any(|open| open.n == inquiry))
    }

    /// The number that the next inquiry of that call will have, while it is open.
    pub fn next_inquiry(&self, call: &CallId) -> Option<u32> {
        self.state.calls.get(call).map(state::CallState::next_inquiry)
    }

    /// Whether that call is open or its delivery still matters.
    pub fn knows(&self, call: &CallId) -> bool {
        let moved = self.state.walk.as_ref().is_some_and(|walk| walk.recent.iter().any(|made| made.id == *call));
        self.is_open(call) || self.state.ended.contains_key(call) || moved
    }

    /// Whether every open call only reads, so that nothing durable hangs on it.
    pub fn only_reads(&self) -> bool {
        let reads = |call: &state::CallState| call.effect().is_read() && call.received.claims.is_empty();
        self.state.walk.is_none() && self.state.calls.values().all(reads)
    }

    /// The open calls, each with where it lives.
    pub fn calls(&self) -> impl Iterator<Item = (&CallId, &crate::call::Received)> {
        self.state.calls.iter().map(|(id, call)| (id, &call.received))
    }

    /// Records an event and applies it: the only place where the state changes.
    fn emit(&mut self, now: Timestamp, fact: Fact) {
        let event = Event { v: VERSION, seq: self.state.seq + 1, at: now, fact };
        self.state.apply(&event, None);
        self.step.events.push(event);
    }

    /// Records a call's arrival and applies it with the rules that came with it.
    fn emit_call(&mut self, now: Timestamp, fact: Fact, rules: Arc<Rules>) {
        let event = Event { v: VERSION, seq: self.state.seq + 1, at: now, fact };
        self.state.apply(&event, Some(rules));
        self.step.events.push(event);
    }

    fn ignore(&mut self, now: Timestamp, why: String) {
        self.emit(now, Fact::Ignored { why });
    }
}

impl PartialEq for Dispatcher {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state
    }
}
