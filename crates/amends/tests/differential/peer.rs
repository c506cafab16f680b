//! A client that shows every message as it came, over stdio or HTTP.

use std::io::Read;

use crate::pipe::{Pipe, head};
use crate::support::http;
use crate::traffic::{Asked, Era, greeting};

/// Somebody who is spoken to in one era.
pub(crate) struct Peer {
    line: Line,
    era: Era,
    next: u64,
}

enum Line {
    Stdio(Box<Pipe>),
    Http { address: String, session: Option<String> },
}

impl Peer {
    /// Speaks to a process over its standard input and output.
    pub(crate) fn stdio(pipe: Pipe, era: Era) -> Self {
        Self { line: Line::Stdio(Box::new(pipe)), era, next: 1 }
    }

    /// Posts to `/mcp` at that address.
    pub(crate) fn http(address: &str, era: Era) -> Self {
        let address = address.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        Self { line: Line::Http { address, session: None }, era, next: 1 }
    }

    /// The greeting's answer.
    pub(crate) fn greet(&mut self) -> Vec<String> {
        let said = self.ask(&greeting(self.era));
        if self.era == Era::Legacy {
            let line = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            match &mut self.line {
                Line::Stdio(pipe) => pipe.line(line),
                Line::Http { .. } => drop(self.post(line, None)),
            }
        }
        said
    }

    /// Everything that came because of a request, in order; the answer is the last of it.
    pub(crate) fn ask(&mut self, asked: &Asked) -> Vec<String> {
        let id = self.next;
        self.next += 1;
        let message = asked.message(id);
        match &mut self.line {
            Line::Stdio(pipe) => {
                pipe.others.clear();
                pipe.line(&message);
                let answer = pipe.answer(id);
                let mut said = std::mem::take(&mut pipe.others);
                said.push(answer);
                said
            }
            Line::Http { .. } => self.post(&message, Some(asked)),
        }
    }

    fn post(&mut self, message: &str, asked: Option<&Asked>) -> Vec<String> {
        let Line::Http { address, session } = &mut self.line else {
            panic!("it is not spoken to over HTTP");
        };
        let mut headers = Vec::new();
        if asked.is_none_or(|asked| asked.method != "initialize") {
            headers.push(("mcp-protocol-version", self.era.version().to_owned()));
        }
        if let Some(session) = session {
            headers.push(("mcp-session-id", session.clone()));
        }
        if let Some(asked) = asked.filter(|_| self.era == Era::Modern) {
            headers.push(("mcp-method", asked.method.clone()));
            headers.extend(subject(asked).map(|subject| ("mcp-name", subject)));
        }
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut answer = Vec::new();
        let mut stream = http::send(address, "/mcp", &headers, message.as_bytes());
        stream.read_to_end(&mut answer).expect("an answer");
        let body = String::from_utf8(http::parse(&answer).1).expect("UTF-8");
        if let Some(given) = header(&answer, "mcp-session-id") {
            *session = Some(given);
        }
        if header(&answer, "content-type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
            return body
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .map(|data| data.trim().to_owned())
                .collect();
        }
        if body.is_empty() { Vec::new() } else { vec![body] }
    }
}

/// What a request is about, for its header.
fn subject(asked: &Asked) -> Option<String> {
    let params: serde_json::Value = serde_json::from_str(&asked.params).expect("JSON");
    let field = match asked.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    params[field].as_str().map(str::to_owned)
}

fn header(answer: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(answer);
    let (head, _) = text.split_once("\r\n\r\n")?;
    let found =
        head.lines().filter_map(|line| line.split_once(':')).find(|(given, _)| given.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim().to_owned())
}

/// A message taken apart, so that the order in which its own members are written does not count.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) id: Option<String>,
    pub(crate) method: Option<String>,
    /// The parameters, the result or the error, as they were written.
    pub(crate) body: Option<String>,
}

impl Said {
    pub(crate) fn read(message: &str) -> Self {
        let parts = head(message);
        let error = crate::undo::value(message, "error").map(|error| {
            // An error is written anew, in our order and with our spelling of its text; its data keep their bytes.
            let part = |name| crate::undo::value(error, name).unwrap_or("(none)");
            let text: String = serde_json::from_str(part("message")).expect("a text");
            format!("code {} message {text:?} data {}", part("code"), part("data"))
        });
        let body = parts.result.or(parts.params).map(|body| body.get().to_owned()).or(error);
        Self { id: parts.id.map(|id| id.get().to_owned()), method: parts.method, body }
    }
}
