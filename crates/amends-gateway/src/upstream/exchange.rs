//! One request to an upstream and what came of it.

use std::fmt;
use std::time::Instant;

use amends_core::SessionId;
use amends_wire::a2a::State;
use amends_wire::mcp::classify::Signal;
use amends_wire::message;
use bytes::Bytes;
use tokio::sync::oneshot;

use super::asides::AsideSender;

/// A request to be sent.
#[derive(Debug)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// What the method is about, for `Mcp-Name`.
    pub subject: Option<String>,
    /// Its parameters, as they are to be written.
    pub params: Option<String>,
    /// Further HTTP headers.
    pub headers: Vec<(String, String)>,
    /// Where goes what the upstream says before its answer.
    pub asides: Option<Asides>,
    /// When its first byte must have left, or nothing is sent.
    pub send_by: Instant,
    /// The only run of the upstream it may go to, where it may not go to any.
    pub run: Option<u64>,
}

/// The parameters of a progress notification, as they were written.
#[derive(Clone, Debug)]
pub struct Progress(pub String);

/// Where goes what an upstream says on account of a request before its answer, in its order.
#[derive(Clone, Debug)]
pub struct Asides {
    /// Where to.
    pub to: AsideSender,
    /// Whose request it is, where questions to its agent are taken. On a line that several requests share, a question is
    /// brought to an agent only if all of them are its own.
    pub whose: Option<SessionId>,
    /// Whether its agent is on a line and can be asked as the work goes on. An endpoint that has both eras is then spoken to in
    /// the one in which it can ask so.
    pub on_line: bool,
}

/// Whose agent a question is for that does not say on account of which request it is asked.
#[derive(Debug)]
pub(super) enum Whose {
    /// No call is in flight that takes questions.
    Nobody,
    /// Calls of several agents are in flight, and nothing tells which of them is meant.
    Several,
    /// One agent's.
    One(Asides),
}

impl Whose {
    /// Whose it is, if those requests are in flight.
    pub(super) fn of<'a>(requests: impl Iterator<Item = (u64, &'a Asides)>) -> Self {
        let mut newest: Option<(u64, &Asides)> = None;
        for (ticket, asides) in requests.filter(|(_, asides)| asides.whose.is_some()) {
            match newest {
                Some((_, other)) if other.whose != asides.whose => return Self::Several,
                Some((other, _)) if other > ticket => {}
                _ => newest = Some((ticket, asides)),
            }
        }
        newest.map_or(Self::Nobody, |(_, asides)| Self::One(asides.clone()))
    }
}

/// What an upstream says on account of a request, before its answer.
#[derive(Debug)]
pub enum Aside {
    /// How far it is.
    Progress(Progress),
    /// Another notification: its method, and the whole message.
    Notification {
        /// Its method.
        method: String,
        /// The whole message.
        line: String,
    },
    /// A question to the agent. The upstream waits for what it is told.
    Question(Asking),
    /// What it does has a name from now on, by which it can be asked about.
    Named(String),
}

/// A question that waits for an answer.
#[derive(Debug)]
pub struct Asking {
    /// Its method.
    pub method: String,
    /// Its parameters, as they were written.
    pub params: Option<String>,
    /// Where the answer goes. Dropped, nobody will say anything.
    pub answer: oneshot::Sender<Said>,
    /// Completes when whoever asked takes the question back, with the reason it gave; an error means that it never will.
    pub withdrawn: oneshot::Receiver<Option<String>>,
}

/// What whoever asked a question is told.
#[derive(Clone, Debug)]
pub struct Said {
    /// The result, as it was written, or an error.
    pub answer: Result<String, RpcFault>,
    /// When its first byte must have left, or nothing is sent.
    pub send_by: Instant,
}

impl Said {
    /// The message that says it, as the answer to the question of that id.
    pub fn message(&self, id: &str) -> String {
        match &self.answer {
            Ok(result) => message::success(id, result),
            Err(error) => message::failure(Some(id), error.code, &error.message, error.data.as_deref()),
        }
    }
}

/// What came of a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A result, as it was written.
    Result(Bytes),
    /// A JSON-RPC error.
    Error(RpcFault),
    /// Neither.
    Fault(Fault),
}

impl Reply {
    /// Whether it says that what was shown is not believed.
    pub fn is_unauthorized(&self) -> bool {
        matches!(
            self,
            Self::Fault(Fault::HttpStatus { status: 401, .. } | Fault::Refused(HttpAnswer { status: 401, .. }))
        )
    }
}

/// A JSON-RPC error as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcFault {
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: String,
    /// Its data, as they were written.
    pub data: Option<String>,
}

/// What happened to a request that was not answered in the protocol's own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The upstream could not be reached.
    ConnectRefused,
    /// A connection came about, and nothing could be sent on it: there was no TLS, or no greeting.
    Handshake {
        /// Why.
        reason: String,
    },
    /// It is our child, and does not start.
    Unstartable {
        /// Why.
        reason: String,
    },
    /// No byte of it left us.
    NotWritten,
    /// The line broke, or the process died, after the first byte.
    Lost,
    /// The answer is larger than we take.
    TooLarge,
    /// The answer is not in the protocol.
    Unreadable {
        /// How it begins.
        start: String,
    },
    /// An HTTP status instead of an answer.
    HttpStatus {
        /// The status.
        status: u16,
        /// Its `Retry-After`.
        retry_after: Option<String>,
        /// Its body's type.
        content_type: Option<String>,
        /// Its body, bounded.
        body: String,
    },
    /// An HTTP API's answer that is no success.
    Refused(HttpAnswer),
    /// What an A2A agent said that is no result.
    Agent(AgentFault),
    /// The upstream has forgotten our session with it.
    SessionGone,
    /// The upstream refused the message with the status 400, perhaps because it has forgotten our session with it.
    SessionPerhapsGone {
        /// Its body, bounded.
        body: String,
    },
}

/// What an A2A agent said that is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentFault {
    /// Its task did not end well, or cannot go on.
    Ended {
        /// Where it is; nothing where its word for that is not known here.
        state: Option<State>,
        /// The task as the result of a tool.
        result: String,
    },
    /// An error of the protocol.
    Error(RpcFault),
}

/// An HTTP API's answer, as far as it says what became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// Its headers, by their names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body, bounded.
    pub body: String,
}

impl Fault {
    /// What it is to whoever judges failures.
    pub fn signal(&self) -> Signal<'_> {
        match self {
            Self::ConnectRefused => Signal::ConnectRefused,
            Self::Handshake { reason } => Signal::Handshake { reason },
            Self::Unstartable { reason } => Signal::Unstartable { reason },
            Self::NotWritten => Signal::NotWritten,
            Self::Lost => Signal::Lost,
            Self::TooLarge => Signal::TooLarge,
            Self::Unreadable { start } => Signal::Unreadable { text_start: start },
            Self::HttpStatus { status, retry_after, content_type, body } => Signal::HttpStatus {
                status: *status,
                retry_after: retry_after.as_deref(),
                content_type: content_type.as_deref(),
                body,
            },
            Self::Refused(answer) => Signal::HttpStatus {
                status: answer.status,
                retry_after: answer.header("retry-after"),
                content_type: answer.header("content-type"),
                body: &answer.body,
            },
            // Whoever judges it looks at what was said; that something was is all that is left here.
            Self::Agent(_) => Signal::Lost,
            Self::SessionGone => Signal::SessionGone,
            Self::SessionPerhapsGone { body } => Signal::SessionPerhapsGone { body },
        }
    }
}

impl HttpAnswer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectRefused => f.write_str("it cannot be reached"),
            Self::Handshake { reason } | Self::Unstartable { reason } => f.write_str(reason),
            Self::NotWritten => f.write_str("nothing was sent"),
            Self::Lost => f.write_str("the connection broke before its answer"),
            Self::TooLarge => f.write_str("its answer is too large"),
            Self::Unreadable { .. } => f.write_str("its answer is not in the protocol"),
            Self::HttpStatus { status, .. } | Self::Refused(HttpAnswer { status, .. }) => {
                write!(f, "it answered with HTTP status {status}")
            }
            Self::Agent(AgentFault::Ended { .. }) => f.write_str("its task did not end well"),
            Self::Agent(AgentFault::Error(error)) => write!(f, "it answered with error {}", error.code),
            Self::SessionGone => f.write_str("it has forgotten its session with us"),
            Self::SessionPerhapsGone { .. } => {
                f.write_str("it refused the message, or has forgotten its session with us")
            }
        }
    }
}

/// A request on its way.
#[derive(Debug)]
pub struct Exchange {
    reply: oneshot::Receiver<Reply>,
    abort: Option<oneshot::Sender<()>>,
}

/// The end of an exchange at which the upstream reports.
#[derive(Debug)]
pub struct ExchangeEnd {
    /// Where the reply goes.
    pub reply: oneshot::Sender<Reply>,
    /// Completes when the request should be cancelled; an error means that nobody can cancel it any more.
    pub abort: oneshot::Receiver<()>,
}

impl Exchange {
    /// An exchange and the end at which it is reported.
    pub fn channel() -> (Self, ExchangeEnd) {
        let (reply_in, reply) = oneshot::channel();
        let (abort, abort_out) = oneshot::channel();
        (Self { reply, abort: Some(abort) }, ExchangeEnd { reply: reply_in, abort: abort_out })
    }

    /// Asks the upstream to stop. The reply may still come.
    pub fn abort(&mut self) {
        if let Some(abort) = self.abort.take() {
            // The upstream has answered or died in the meantime if nobody listens.
            let _ = abort.send(());
        }
    }

    /// Waits for what comes of it.
    pub async fn reply(&mut self) -> Reply {
        (&mut self.reply).await.unwrap_or(Reply::Fault(Fault::Lost))
    }
}
