//! Asking a gateway that runs, rather than its ledger: over its admin API.

use std::time::Duration;

use amends_core::{Event, Interaction, PersonAnswer, SessionId, Timestamp};
use amends_ledger::{Closing, QueueEntry, QueueState, SessionRow, StoredEvent, Trace};
use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use clap::Args;
use http_body_util::Full;
use hyper::{Method, Request, StatusCode, Uri};
use serde_json::Value;

use super::ledger::LedgerArgs;

/// The largest answer that is read.
const ANSWER_MAX: usize = 64 << 20;
/// How long it may take: a page of a long ledger, or what is verified.
const WITHIN: Duration = Duration::from_secs(150);

/// Which gateway to ask.
#[derive(Clone, Debug, Args)]
pub(super) struct RemoteArgs {
    /// Ask the gateway that runs there, such as http://127.0.0.1:7070, rather than a ledger; AMENDS_TOKEN holds the token to
    /// show. The default is AMENDS_URL, where no ledger is named.
    #[arg(long, value_name = "URL", conflicts_with_all = ["ledger", "config"])]
    url: Option<String>,
}

/// A gateway that runs.
#[derive(Debug)]
pub(super) struct Remote {
    /// Scheme and host.
    base: Uri,
    token: String,
}

impl RemoteArgs {
    /// The gateway to ask; nothing where a ledger is to be read.
    pub(super) fn named(&self, ledger: &LedgerArgs) -> Result<Option<Remote>> {
        let set = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
        let url = match &self.url {
            Some(url) => Some(url.clone()),
            None if ledger.is_named() => None,
            None => set("AMENDS_URL"),
        };
        let Some(url) = url else { return Ok(None) };
        let sound = |base: &Uri| {
            let spoken = matches!(base.scheme_str(), Some("http" | "https"));
            spoken && base.authority().is_some() && matches!(base.path(), "" | "/") && base.query().is_none()
        };
        let base = url.parse::<Uri>().ok().filter(sound);
        let base =
            base.ok_or_else(|| anyhow!("`{url}` is not the address of a gateway such as `http://127.0.0.1:7070`"))?;
        let token = set("AMENDS_TOKEN")
            .context("AMENDS_TOKEN is not set: it holds the token that `[console] token` of the gateway names")?;
        Ok(Some(Remote { base, token }))
    }
}

impl Remote {
    /// What the API says there.
    pub(super) async fn get(&self, path: &str) -> Result<Value> {
        let (status, said) = self.ask(Method::GET, path, None).await?;
        if status.is_success() { Ok(said) } else { Err(refused(status, &said)) }
    }

    /// Posts something, and gives what came of it where that is not a mistake of ours.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<(StatusCode, Value)> {
        let (status, said) = self.ask(Method::POST, path, Some(body)).await?;
        if status.is_success() || status == StatusCode::CONFLICT {
            Ok((status, said))
        } else {
            Err(refused(status, &said))
        }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<(StatusCode, Value)> {
        let authority = self.base.authority().map(ToString::to_string).unwrap_or_default();
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &authority)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(text)))?;
        let asked = amends_gateway::upstream::http::ask(&self.base, request, WITHIN, ANSWER_MAX).await;
        let (status, body) = asked.map_err(|why| anyhow!("no gateway answers at `{authority}`: {why}"))?;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    /// The newest sessions first.
    pub(super) async fn sessions(&self, limit: usize) -> Result<Vec<SessionRow>> {
        let mut rows = Vec::new();
        let mut after = String::new();
        while rows.len() < limit {
            let at_once = (limit - rows.len()).min(200);
            let page = self.get(&format!("/api/sessions?limit={at_once}{after}")).await?;
            rows.extend(page["items"].as_array().into_iter().flatten().map(row));
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        Ok(rows)
    }

    /// The trace of a session, or of the session of a call.
    pub(super) async fn trace(&self, id: &str) -> Result<Trace> {
        let session = match id.starts_with("call_") {
            true => self.get(&format!("/api/calls/{}", encoded(id))).await?["session"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            false => id.to_owned(),
        };
        let mut trace =
            Trace { session: SessionId::new(session.as_str()), epoch: 0, cut: 0, cut_link: None, events: Vec::new() };
        loop {
            let from = trace.events.last().map_or(1, |last| last.event.seq + 1);
            let page = self.get(&format!("/api/sessions/{}?from={from}&limit=2000", encoded(&session))).await?;
            trace.cut = page["cut"].as_u64().unwrap_or(0);
            let events = page["events"].as_array().cloned().unwrap_or_default();
            for event in &events {
                let hash = event["hash"].as_str().unwrap_or_default().into();
                let event: Event = serde_json::from_value(event.clone())
                    .context("an event cannot be read; the gateway may be newer")?;
                trace.events.push(StoredEvent { event, hash });
            }
            if events.is_empty() || trace.events.last().map(|last| last.event.seq) >= page["last"].as_u64() {
                return Ok(trace);
            }
        }
    }

    /// What people are asked.
    pub(super) async fn queue(&self, queue: Option<&str>, all: bool, limit: usize) -> Result<Vec<QueueEntry>> {
        let queue = queue.map(|queue| format!("&queue={}", encoded(queue))).unwrap_or_default();
        let page = self.get(&format!("/api/interactions?all={all}&limit={}{queue}", limit.clamp(1, 200))).await?;
        page["items"].as_array().into_iter().flatten().map(entry).collect()
    }
}

fn refused(status: StatusCode, said: &Value) -> anyhow::Error {
    match said["detail"].as_str() {
        Some(detail) => anyhow!("the gateway says: {detail}"),
        None => anyhow!("the gateway answers with the status {status}"),
    }
}

fn row(said: &Value) -> SessionRow {
    let text = |name: &str| said[name].as_str().unwrap_or_default();
    let number = |name: &str| said[name].as_u64().unwrap_or(0);
    SessionRow {
        session: text("session").into(),
        principal: text("principal").into(),
        door: text("door").to_owned(),
        opened: Timestamp::from_ms(number("opened")),
        updated: Timestamp::from_ms(number("updated")),
        events: number("events"),
        cut: u64::from(said["retired"] == true),
        open_calls: u32::try_from(number("open_calls")).unwrap_or(u32::MAX),
        machine: said["machine"].as_str().map(str::to_owned),
    }
}

fn entry(said: &Value) -> Result<QueueEntry> {
    let interaction: Interaction = serde_json::from_value(said.clone()).context("a question cannot be read")?;
    let answer: Option<PersonAnswer> = match &said["answer"] {
        Value::Null => None,
        answer => Some(serde_json::from_value(answer.clone()).context("an answer cannot be read")?),
    };
    let state = match said["state"].as_str() {
        Some("open") => QueueState::Open,
        Some("answered") => QueueState::Answered,
        Some("settled") => QueueState::Closed(Closing::Answered),
        Some("lapsed") => QueueState::Closed(Closing::Lapsed),
        Some("withdrawn") => QueueState::Closed(Closing::Withdrawn),
        other => bail!("a question is in the state {other:?}, which is not known here"),
    };
    Ok(QueueEntry { interaction, state, answer })
}

/// A name as a part of an address.
pub(super) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
