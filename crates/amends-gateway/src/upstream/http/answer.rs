//! Reading an answer: JSON, a stream of events, or something else.

use amends_wire::message::Message;
use amends_wire::rate_limit::wait_seconds;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};

use super::Listening;
use super::pool::{Pool, Sent};
use crate::clock;
use crate::upstream::exchange::{Aside, Fault, Progress, Reply, RpcFault};
use crate::upstream::questions::CANCELLED;
use crate::upstream::sse::Events;

/// How much of a body that is no answer is kept.
const STRANGE_BODY_MAX: usize = 16 * 1024;

/// The notifications that are about the request on whose stream they come, beside progress.
const OF_REQUESTS: [&str; 2] = ["notifications/message", "notifications/elicitation/complete"];

/// What was read.
pub(super) enum Read {
    /// The answer, or why there is none.
    Reply(Reply),
    /// A stream that ended before the answer.
    Cut(Cut),
}

/// Where a stream ended.
pub(super) struct Cut {
    /// The last event that had an id; without one nobody can go on after it.
    pub(super) last_id: Option<String>,
    /// How long the endpoint wants to be left alone.
    pub(super) retry_ms: Option<u64>,
}

impl From<Reply> for Read {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

/// Reads the answer to a request, handing over what is said on the way.
pub(super) async fn read(
    mut sent: Sent,
    ticket: u64,
    asides: Option<&Listening>,
    bytes_max: usize,
    pool: &Pool,
) -> Read {
    let header = |name| sent.response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let status = sent.response.status();
    let content_type = header(CONTENT_TYPE);
    let named = |name: &str| sent.response.headers().get(name).and_then(|value| value.to_str().ok());
    // What it says outright outranks what its limits let one conclude.
    let limited = || wait_seconds(named, clock::now().ms()).map(|seconds| seconds.to_string());
    let retry_after = header(RETRY_AFTER).or_else(limited);
    let is = |kind: &str| content_type.as_deref().is_some_and(|it| it.trim_start().starts_with(kind));
    if status.is_success() && is("text/event-stream") {
        return stream(sent, ticket, asides, bytes_max).await;
    }
    let bytes_max = if status.is_success() || is("application/json") { bytes_max } else { STRANGE_BODY_MAX };
    let body = match collect(&mut sent, bytes_max).await {
        Ok(body) => body,
        Err(fault) => return Reply::Fault(fault).into(),
    };
    pool.keep(sent.connection);
    if let Some(Heard::Answer(reply)) = std::str::from_utf8(&body).ok().map(|text| hear(text, ticket)) {
        return reply.into();
    }
    let start = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(STRANGE_BODY_MAX)]).into_owned();
    if status.is_success() {
        return Reply::Fault(Fault::Unreadable { start: start(&body) }).into();
    }
    let body = start(&body);
    Reply::Fault(Fault::HttpStatus { status: status.as_u16(), retry_after, content_type, body }).into()
}

async fn collect(sent: &mut Sent, bytes_max: usize) -> Result<Bytes, Fault> {
    let mut body: Vec<u8> = Vec::new();
    while let Some(frame) = sent.response.body_mut().frame().await {
        let frame = frame.map_err(|_| Fault::Lost)?;
        if let Some(data) = frame.data_ref() {
            if body.len() + data.len() > bytes_max {
                return Err(Fault::TooLarge);
            }
            body.extend_from_slice(data);
        }
    }
    Ok(body.into())
}

async fn stream(mut sent: Sent, ticket: u64, asides: Option<&Listening>, bytes_max: usize) -> Read {
    let mut events = Events::default();
    loop {
        let frame = match sent.response.body_mut().frame().await {
            Some(Ok(frame)) => frame,
            Some(Err(_)) | None => {
                return Read::Cut(Cut { last_id: events.last_id().map(str::to_owned), retry_ms: events.retry_ms() });
            }
        };
        let Some(data) = frame.data_ref() else {
            continue;
        };
        for event in events.feed(data) {
            let Ok(text) = std::str::from_utf8(&event) else {
                continue;
            };
            match hear(text, ticket) {
                Heard::Answer(reply) => return reply.into(),
                Heard::Withdrawal(params) => {
                    if let Some(listening) = asides {
                        listening.shared.questions.take_back(params.as_deref());
                    }
                }
                Heard::News { method, params } => {
                    if let Some(listening) = asides {
                        listening.shared.news.hear(&method, params.as_deref());
                    }
                }
                Heard::Aside(aside) => {
                    if let Some(listening) = asides {
                        // Nobody hears it any more once the request is given up.
                        let _ = listening.asides.to.send(aside);
                    }
                }
                Heard::Question { id, method, params } => {
                    if let Some(listening) = asides {
                        listening.ask(id, method, params);
                    }
                }
                Heard::Other => {}
            }
        }
        if events.waiting() > bytes_max {
            return Reply::Fault(Fault::TooLarge).into();
        }
    }
}

enum Heard {
    Answer(Reply),
    Aside(Aside),
    /// What is no more about this request than about any other.
    News {
        method: String,
        params: Option<String>,
    },
    Withdrawal(Option<String>),
    Question {
        id: String,
        method: String,
        params: Option<String>,
    },
    Other,
}

fn hear(text: &str, ticket: u64) -> Heard {
    let ours = |id: &str| id.parse() == Ok(ticket);
    match Message::parse(text) {
        Ok(Message::Success { id, result }) if ours(id.get()) => {
            Heard::Answer(Reply::Result(result.get().to_owned().into()))
        }
        Ok(Message::Failure { id, error }) if id.is_none_or(|id| ours(id.get())) => {
            Heard::Answer(Reply::Error(RpcFault {
                code: error.code,
                message: error.message.into_owned(),
                data: error.data.map(|data| data.get().to_owned()),
            }))
        }
        Ok(Message::Notification { method, params: Some(params) }) if method == "notifications/progress" => {
            Heard::Aside(Aside::Progress(Progress(params.get().to_owned())))
        }
        Ok(Message::Notification { method, params }) if method == CANCELLED => {
            Heard::Withdrawal(params.map(|params| params.get().to_owned()))
        }
        Ok(Message::Notification { method, params }) if !OF_REQUESTS.contains(&&*method) => {
            Heard::News { method: method.into_owned(), params: params.map(|params| params.get().to_owned()) }
        }
        Ok(Message::Notification { method, .. }) => {
            Heard::Aside(Aside::Notification { method: method.into_owned(), line: text.to_owned() })
        }
        Ok(Message::Request { id, method, params }) => Heard::Question {
            id: id.get().to_owned(),
            method: method.into_owned(),
            params: params.map(|params| params.get().to_owned()),
        },
        _ => Heard::Other,
    }
}
