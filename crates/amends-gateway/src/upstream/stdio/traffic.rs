//! What goes to a child and what is expected back.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use crate::clock::Awake;
use crate::upstream::exchange::{Aside, Asides, Fault, Reply, Whose};

/// How many messages may wait to be written.
const QUEUE_MAX: usize = 1024;

/// A message on its way to the child.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The request it is, if it is one.
    pub(super) ticket: Option<u64>,
    /// The message.
    pub(super) line: String,
    /// When its first byte must have left.
    pub(super) send_by: Option<Instant>,
    /// The only run of the child it may go to, where it may not go to any.
    pub(super) run: Option<u64>,
}

/// What goes to a child and what is expected back.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    queue: Option<mpsc::Sender<Outgoing>>,
    run: Option<u64>,
    expected: HashMap<u64, Expected>,
    greeting: Option<String>,
}

#[derive(Debug)]
struct Expected {
    reply: oneshot::Sender<Reply>,
    asides: Option<Asides>,
    written: bool,
    awake: Awake,
    /// The agent's greeting, if it is one.
    greeting: Option<String>,
}

impl Traffic {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the way to a new child.
    pub(super) fn open(&self) -> mpsc::Receiver<Outgoing> {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let mut inner = self.lock();
        inner.queue = Some(sender);
        inner.run = None;
        receiver
    }

    /// Names the run of the child that is there now.
    pub(super) fn name_run(&self, run: u64) {
        self.lock().run = Some(run);
    }

    /// Closes the way: the child is dead. What had been written is lost, what had not never left.
    pub(super) fn close(&self) {
        let expected = {
            let mut inner = self.lock();
            inner.queue = None;
            std::mem::take(&mut inner.expected)
        };
        for (_, expected) in expected {
            let fault = if expected.written { Fault::Lost } else { Fault::ConnectRefused };
            let _ = expected.reply.send(Reply::Fault(fault));
        }
    }

    /// Queues a message, or gives it back where there is no child, another run of it, or no room.
    pub(super) fn write(&self, out: Outgoing) -> Result<(), Outgoing> {
        let inner = self.lock();
        if out.run.is_some() && out.run != inner.run {
            return Err(out);
        }
        match &inner.queue {
            Some(queue) => queue.try_send(out).map_err(|error| match error {
                mpsc::error::TrySendError::Full(out) | mpsc::error::TrySendError::Closed(out) => out,
            }),
            None => Err(out),
        }
    }

    /// Expects an answer.
    pub(super) fn expect(&self, ticket: u64, reply: oneshot::Sender<Reply>, asides: Option<Asides>) {
        let expected = Expected { reply, asides, written: false, awake: Awake::now(), greeting: None };
        self.lock().expected.insert(ticket, expected);
    }

    /// Says that a request is the agent's greeting. Once it is taken, it is kept, to be said again after a restart.
    pub(super) fn is_greeting(&self, ticket: u64, params: String) {
        if let Some(expected) = self.lock().expected.get_mut(&ticket) {
            expected.greeting = Some(params);
        }
    }

    /// Says that the first byte of a request is about to leave. No if it is too late for that, or nobody waits.
    pub(super) fn may_write(&self, ticket: u64, send_by: Option<Instant>) -> bool {
        let slept = self.lock().expected.get(&ticket).is_some_and(|expected| !expected.awake.still());
        if send_by.is_some_and(|at| slept || at < Instant::now()) {
            self.answer(ticket, Reply::Fault(Fault::NotWritten));
            return false;
        }
        match self.lock().expected.get_mut(&ticket) {
            Some(expected) => {
                expected.written = true;
                true
            }
            None => false,
        }
    }

    /// Stops a request: one that has not left never will. It says whether the child has to be told.
    pub(super) fn stop(&self, ticket: u64) -> bool {
        let unsent = {
            let mut inner = self.lock();
            if inner.expected.get(&ticket).is_some_and(|expected| expected.written) {
                return true;
            }
            inner.expected.remove(&ticket)
        };
        if let Some(expected) = unsent {
            let _ = expected.reply.send(Reply::Fault(Fault::NotWritten));
        }
        false
    }

    /// Hands over an answer. One that nobody expects is dropped.
    pub(super) fn answer(&self, ticket: u64, reply: Reply) {
        let expected = {
            let mut inner = self.lock();
            let mut expected = inner.expected.remove(&ticket);
            let greeting = expected.as_mut().and_then(|expected| expected.greeting.take());
            if let (Some(greeting), Reply::Result(_)) = (greeting, &reply) {
                inner.greeting = Some(greeting);
            }
            expected
        };
        if let Some(expected) = expected {
            // Whoever asked may have stopped waiting.
            let _ = expected.reply.send(reply);
        }
    }

    /// Hands over what is said on account of a request, in the order it came.
    pub(super) fn aside(&self, ticket: u64, aside: Aside) {
        if let Some(asides) = self.lock().expected.get(&ticket).and_then(|expected| expected.asides.as_ref()) {
            let _ = asides.to.send(aside);
        }
    }

    /// Whose agent a question on the line is for, which does not say on account of which request it is asked.
    pub(super) fn whose_question(&self) -> Whose {
        let inner = self.lock();
        let written = inner.expected.iter().filter(|(_, expected)| expected.written);
        Whose::of(written.filter_map(|(ticket, expected)| Some((*ticket, expected.asides.as_ref()?))))
    }

    /// Which run of the child is there now.
    pub(super) fn run(&self) -> Option<u64> {
        self.lock().run
    }

    /// The agent's greeting, once an earlier life of the child took it.
    pub(super) fn greeting(&self) -> Option<String> {
        self.lock().greeting.clone()
    }
}
