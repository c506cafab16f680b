//! One step as it is recorded.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use amends_core::{
    CallId, Certainty, ClaimChange, Digest, Event, Interaction, InteractionId, Outcome, ReversalChange, Rules,
    SessionId, Timestamp,
};
use bytes::Bytes;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::interactions::Closing;
use crate::reversals::StoredUndo;

/// One step as it is recorded: its events, and everything that must be true together with them.
#[derive(Clone, Debug)]
pub struct Append {
    /// The session.
    pub session: SessionId,
    /// The epoch of the lease under which it was decided.
    pub epoch: u64,
    /// The sequence of the session's last event before this step; 0 opens a session, with epoch 1, owned by this node.
    pub expected_seq: u64,
    /// The events, numbered from `expected_seq + 1`.
    pub events: Vec<Event>,
    /// What happens to the claims.
    pub claims: Vec<ClaimChange>,
    /// Answers to keep for repeats.
    pub answers: Vec<StoredAnswer>,
    /// Arguments to keep while their call is open.
    pub arguments: Vec<StoredArguments>,
    /// What this step writes into the walk's fields. A number that is there already is written anew.
    pub fields: Vec<StoredFields>,
    /// The machine that the session walks from here on; nothing leaves it as it was.
    pub machine: Option<String>,
    /// Calls whose arguments are no longer needed.
    pub forget: Vec<CallId>,
    /// Rules that the events name, by digest. Stored once.
    pub rules: Vec<(Digest, Arc<Rules>)>,
    /// Questions of this session to people. One that is there already stays as it is.
    pub asks: Vec<Interaction>,
    /// Questions of this session that are over, and why. One that is over already, or is not known, is left alone. One that
    /// lapses and was answered fails the whole step.
    pub closes: Vec<(InteractionId, Closing)>,
    /// What happens to the reversal tokens. A token that cannot be redeemed fails the whole step.
    pub reversals: Vec<ReversalChange>,
    /// How the writes are undone whose tokens this step arms.
    pub undo: Vec<StoredUndo>,
    /// Whether everything before this step's last event is dropped, which says that it was. Payloads go with it. Only for
    /// a session with nothing open.
    pub retires: bool,
    /// What is left open in the session after this step.
    pub open: OpenWork,
}

impl Append {
    /// A step with these events and nothing beside them, that leaves nothing open.
    pub fn of(session: SessionId, epoch: u64, expected_seq: u64, events: Vec<Event>) -> Self {
        Self {
            session,
            epoch,
            expected_seq,
            events,
            claims: Vec::new(),
            answers: Vec::new(),
            arguments: Vec::new(),
            fields: Vec::new(),
            machine: None,
            forget: Vec::new(),
            rules: Vec::new(),
            asks: Vec::new(),
            closes: Vec::new(),
            reversals: Vec::new(),
            undo: Vec::new(),
            retires: false,
            open: OpenWork::default(),
        }
    }
}

/// What is left open in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenWork {
    /// How many calls are open.
    pub calls: u32,
    /// When the next deadline is, a call's or a question's.
    pub due: Option<Timestamp>,
}

/// The answer of a call that ended, as it will be given to its repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The call.
    pub call: CallId,
    /// How it ended.
    pub outcome: Outcome,
    /// What is known of its effect.
    pub certainty: Certainty,
    /// Whether the bytes are the upstream's own result or an envelope.
    pub form: Form,
    /// The bytes.
    pub body: Bytes,
    /// Until when it is kept.
    pub until: Timestamp,
}

/// What the bytes of a stored answer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The upstream's own result, untouched.
    Forward,
    /// An envelope.
    Envelope,
    /// What the agent is asked while the call waits for it; nothing in it once it was answered. It is not the call's end.
    Asked,
}

/// The arguments of an open call, so that another node can send it again where that is safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredArguments {
    /// The call.
    pub call: CallId,
    /// The request's parameters as the agent sent them.
    pub body: Bytes,
}

/// What one move of a walk wrote into its fields, so that another node can go on from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFields {
    /// The number of the move; 0 for the fields that the walk began with.
    pub seq: u64,
    /// The members that were written, as a JSON object.
    pub body: Bytes,
}

/// A step that is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The sequence of its last event.
    pub seq: u64,
    /// The head of the session's chain after it, in hexadecimal.
    pub head: Digest,
}

/// Waits until a step is durable, or says why it will not be.
#[derive(Debug)]
pub struct Commit(oneshot::Receiver<Result<Appended, Error>>);

impl Commit {
    /// A commit, and the end at which the store reports it.
    pub fn channel() -> (oneshot::Sender<Result<Appended, Error>>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self(receiver))
    }

    /// A commit whose fate is known already.
    pub fn ready(fate: Result<Appended, Error>) -> Self {
        let (sender, commit) = Self::channel();
        drop(sender.send(fate));
        commit
    }
}

impl Future for Commit {
    type Output = Result<Appended, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|fate| fate.unwrap_or_else(|_| Err(Error::writer_stopped())))
    }
}
