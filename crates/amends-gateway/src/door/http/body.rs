//! Bodies: what comes in is bounded, what goes out is whole or a stream of events.

use std::any::Any;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use amends_wire::scan::{Scanned, Scanner};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::sync::mpsc;

/// How much of a body that is too large is read and thrown away, so that its sender hears our answer.
const DRAIN_BYTES: usize = 1 << 30;
const DRAIN_TIME: Duration = Duration::from_secs(30);

/// How many events may wait to be written.
const EVENTS_MAX: usize = 16;

/// A response's body.
#[derive(Debug)]
pub(super) struct Body(Inner);

#[derive(Debug)]
enum Inner {
    Whole(Option<Bytes>),
    /// And what is kept until it was read to its end, or nobody reads it.
    Events(mpsc::Receiver<Bytes>, Option<Box<dyn Any + Send + Sync>>),
}

impl Body {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self(Inner::Whole(Some(bytes)))
    }

    /// A stream that ends when its sender is gone.
    pub(super) fn events() -> (mpsc::Sender<Bytes>, Self) {
        let (sender, receiver) = mpsc::channel(EVENTS_MAX);
        (sender, Self(Inner::Events(receiver, None)))
    }

    /// The same, and it keeps that until a stream was read to its end, or nobody reads it.
    pub(super) fn keeping(mut self, kept: impl Any + Send + Sync) -> Self {
        if let Inner::Events(_, place) = &mut self.0 {
            *place = Some(Box::new(kept));
        }
        self
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Events(events, _) => {
                events.poll_recv(context).map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Inner::Events(..) => SizeHint::default(),
        }
    }
}

/// A request's body that was read.
#[derive(Debug)]
pub(super) enum Read {
    Text(String),
    Bad {
        why: Bad,
        /// What can be told of it all the same.
        scanned: Box<Scanned>,
    },
    /// The agent is gone.
    Gone,
}

/// What can be wrong with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    TooLarge,
    TooDeep,
    NotUtf8,
}

/// Reads a body within bounds. What is too large is scanned for its id on the way to its end.
pub(super) async fn read(mut body: Incoming, bytes_max: usize, depth_max: usize) -> Read {
    let mut kept: Vec<u8> = Vec::new();
    let mut scanner = Scanner::new(depth_max);
    let (mut deep, mut seen) = (false, 0usize);
    let began = tokio::time::Instant::now();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Read::Gone };
        let Some(data) = frame.data_ref() else {
            continue;
        };
        deep |= scanner.feed(data).is_err();
        seen += data.len();
        if seen <= bytes_max {
            kept.extend_from_slice(data);
        } else {
            kept = Vec::new();
            if seen > DRAIN_BYTES || began.elapsed() > DRAIN_TIME {
                break;
            }
        }
    }
    let bad = |scanner: Scanner, why| Read::Bad { why, scanned: Box::new(scanner.finish()) };
    if seen > bytes_max {
        return bad(scanner, Bad::TooLarge);
    }
    if deep {
        return bad(scanner, Bad::TooDeep);
    }
    match String::from_utf8(kept) {
        Ok(text) => Read::Text(text),
        Err(_) => bad(scanner, Bad::NotUtf8),
    }
}
