//! The event stream of one call: its progress, then its answer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

use super::super::desk::Caller;
use super::{Hangup, Work};

/// A response body that does the call's work while it is read, so that a reader who leaves stops it.
pub(super) struct Events {
    first: Option<String>,
    news: mpsc::Receiver<String>,
    /// None once the work is done.
    work: Option<Work>,
    /// How the stream ends, once that is known and not yet sent.
    last: Option<Result<String, Hangup>>,
    caller: Caller,
}

impl Events {
    /// A stream that begins with a message that has already arrived.
    pub(super) fn new(first: String, news: mpsc::Receiver<String>, work: Work, caller: Caller) -> Events {
        Events { first: Some(first), news, work: Some(work), last: None, caller }
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Hangup;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Hangup>>> {
        let events = self.get_mut();
        if let Some(first) = events.first.take() {
            return Poll::Ready(Some(Ok(event(&first))));
        }
        loop {
            // Progress goes before the answer, even when both are there.
            if let Poll::Ready(Some(message)) = events.news.poll_recv(context) {
                return Poll::Ready(Some(Ok(event(&message))));
            }
            let Some(work) = &mut events.work else {
                let last = events.last.take();
                return Poll::Ready(last.map(|last| last.map(|line| event(&line))));
            };
            let answer = ready!(work.as_mut().poll(context));
            events.work = None;
            events.last = Some(events.caller.line(answer).ok_or(Hangup));
        }
    }
}

fn event(message: &str) -> Frame<Bytes> {
    Frame::data(Bytes::from(format!("event: message\ndata: {message}\n\n")))
}
