//! The agent at a stdio door: what it asked for, and what it is asked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amends_core::Refusal;
use amends_core::dispatcher::cancel::CancelReason;
use amends_wire::mcp::{ClientTraits, Era, ToolCall, ToolList, era, tools};
use amends_wire::message;
use amends_wire::object::Object;
use amends_wire::splice::Splice;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};

use super::writer::Out;
use crate::config::Limits;
use crate::door::mcp::{ProgressRelay, render, render_protocol_error, reverse_entry};
use crate::driver::{SessionHandle, Wish};
use crate::gateway::Gateway;
use crate::listing;
use crate::pin;
use crate::upstream::{Reply, Request, Unasked, Upstream};

/// How long something that is not a tool call may take.
const ASK_TIMEOUT: Duration = Duration::from_secs(300);

/// The agent at a stdio door.
#[derive(Debug)]
pub(super) struct Agent {
    gateway: Arc<Gateway>,
    upstream: Arc<Upstream>,
    session: SessionHandle,
    out: mpsc::Sender<Out>,
    state: Mutex<State>,
    settled: Notify,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// What can still be stopped, by the agent's id for it.
    running: HashMap<String, oneshot::Sender<CancelReason>>,
    /// What the upstream asked the agent, by our id for it.
    asked: HashMap<String, Asked>,
    client: Option<String>,
    era: Option<Era>,
    listed: bool,
}

/// A question of the upstream to the agent.
#[derive(Debug)]
struct Asked {
    /// The upstream's own id for it.
    id: String,
    /// The run of the upstream that asked; a later one knows nothing of it.
    run: Option<u64>,
}

impl Agent {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        upstream: Arc<Upstream>,
        session: SessionHandle,
        out: mpsc::Sender<Out>,
    ) -> Self {
        let (state, settled, next) = (Mutex::default(), Notify::new(), AtomicU64::new(1));
        Self { gateway, upstream, session, out, state, settled, next }
    }

    pub(super) fn limits(&self) -> Limits {
        self.gateway.config.limits
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, line: String) {
        // Nobody takes lines any more once the agent has closed its end.
        let _ = self.out.send(Out { line, delivery: None }).await;
    }

    fn traits(&self) -> ClientTraits {
        let state = self.state();
        ClientTraits::of(state.era.unwrap_or(Era::Legacy), state.client.as_deref())
    }

    /// A tool call: judged and recorded.
    pub(super) fn call(self: Arc<Self>, id: String, params: Option<String>) {
        let params = params.unwrap_or_else(|| "{}".into());
        let (stop, stopped) = oneshot::channel();
        self.state().running.insert(id.clone(), stop);
        tokio::spawn(async move {
            self.list_first(&params).await;
            self.called(&id, &params, stopped).await;
            self.state().running.remove(&id);
            self.settled.notify_waiters();
        });
    }

    async fn called(&self, id: &str, params: &str, mut stopped: oneshot::Receiver<CancelReason>) {
        let raw: Option<&RawValue> = serde_json::from_str(params).ok();
        let parsed = ToolCall::parse(raw);
        let mut relay = None;
        let mut dialect = self.gateway.config.dialect;
        let (progress_to, mut progress) = mpsc::unbounded_channel();
        let handle = match &parsed {
            Ok(call) => {
                let meta = call.meta().ok();
                if let Some(version) = meta.as_ref().and_then(|meta| meta.protocol_version.as_deref()) {
                    let mut state = self.state();
                    state.era = Some(Era::of_version(version));
                    state.client = meta.as_ref().and_then(|meta| meta.client_name.clone()).or(state.client.take());
                }
                dialect = meta.as_ref().and_then(|meta| meta.dialect).unwrap_or(dialect);
                relay =
                    meta.and_then(|meta| meta.progress_token.map(|token| ProgressRelay::new(token.get().to_owned())));
                let sink = relay.is_some().then_some(progress_to);
                self.session.call(Wish::Call { params, call }, sink)
            }
            Err(error) => self.session.call(super::unread(error.refusal()), None),
        };
        let mut handle = handle;
        let mut cancelled = false;
        loop {
            tokio::select! {
                biased;
                Some(reported) = progress.recv(), if relay.is_some() => {
                    self.report(relay.as_mut(), &reported).await;
                }
                answer = &mut handle.answer => {
                    while let Ok(reported) = progress.try_recv() {
                        self.report(relay.as_mut(), &reported).await;
                    }
                    self.upstream.caught_up().await;
                    // A cancelled request gets no answer in MCP; its repeat finds it.
                    if let Ok(answered) = answer && !cancelled {
                        let line = render(id, &answered, self.traits().speaking(dialect));
                        let delivery = answered.delivery.map(|delivery| delivery.keeping(&self.session));
                        let _ = self.out.send(Out { line, delivery }).await;
                    }
                    return;
                }
                reason = &mut stopped, if !cancelled => {
                    cancelled = true;
                    handle.cancel(reason.unwrap_or(CancelReason::Disconnected));
                }
            }
        }
    }

    async fn report(&self, relay: Option<&mut ProgressRelay>, progress: &crate::upstream::Progress) {
        if let Some(line) = relay.and_then(|relay| relay.notification(progress)) {
            self.write(line).await;
        }
    }

    /// Anything that is not a tool call: passed through as it is.
    pub(super) fn ask(self: Arc<Self>, id: String, method: String, params: Option<String>) {
        let (stop, stopped) = oneshot::channel();
        self.state().running.insert(id.clone(), stop);
        let ticket = self.upstream.ticket();
        if method == "initialize" {
            self.greeted(params.as_deref());
        }
        let (progress_to, progress) = mpsc::unbounded_channel();
        let token = params.as_deref().and_then(progress_token);
        let cursor = params.as_deref().and_then(Object::parse).is_some_and(|params| params.get("cursor").is_some());
        let first_page = !cursor;
        let sent = match (&params, &token) {
            (Some(params), Some(_)) => Some(with_token(params, ticket)),
            _ => params,
        };
        let request = Request {
            method: method.clone(),
            subject: None,
            params: sent,
            headers: Vec::new(),
            progress: token.is_some().then_some(progress_to),
            send_by: Instant::now() + ASK_TIMEOUT,
            run: None,
        };
        let exchange = self.upstream.send(ticket, request);
        tokio::spawn(async move {
            let reply = self.asked(exchange, stopped, token.map(ProgressRelay::new), progress).await;
            if let Some(mut reply) = reply {
                if let (Reply::Result(result), "tools/list") = (&mut reply, method.as_str()) {
                    let text = String::from_utf8_lossy(result).into_owned();
                    if self.listed(&text, first_page).await
                        && let Some(entry) = reverse_entry(&self.gateway.catalogue.now())
                    {
                        *result = tools::with_entry(&text, &entry).into();
                    }
                }
                self.upstream.caught_up().await;
                self.write(passed(&id, reply, &method)).await;
            }
            self.state().running.remove(&id);
            self.settled.notify_waiters();
        });
    }

    async fn asked(
        &self,
        mut exchange: crate::upstream::Exchange,
        mut stopped: oneshot::Receiver<CancelReason>,
        mut relay: Option<ProgressRelay>,
        mut progress: mpsc::UnboundedReceiver<crate::upstream::Progress>,
    ) -> Option<Reply> {
        loop {
            tokio::select! {
                biased;
                Some(reported) = progress.recv(), if relay.is_some() => self.report(relay.as_mut(), &reported).await,
                reply = exchange.reply() => {
                    while let Ok(reported) = progress.try_recv() {
                        self.report(relay.as_mut(), &reported).await;
                    }
                    return Some(reply);
                }
                _ = &mut stopped => {
                    exchange.abort();
                    return None;
                }
            }
        }
    }

    /// Says no to a message that could not be read, and records that.
    pub(super) fn refuse(self: &Arc<Self>, id: Option<String>, code: i64, refusal: Refusal) {
        let agent = self.clone();
        tokio::spawn(async move {
            let handle = agent.session.call(super::unread(refusal), None);
            if let Ok(answered) = handle.answer.await {
                agent.write(render_protocol_error(id.as_deref(), code, &answered)).await;
            }
        });
    }

    /// The agent wants something stopped.
    pub(super) fn cancelled(&self, params: Option<&str>, line: &str) {
        let id = params.and_then(|params| Object::parse(params)?.get("requestId").map(|id| id.get().to_owned()));
        let stop = id.and_then(|id| self.state().running.remove(&id));
        match stop {
            Some(stop) => drop(stop.send(CancelReason::Asked)),
            None => tracing::debug!(line, "a cancel of what is over"),
        }
    }

    /// A notification of the agent: passed through.
    pub(super) fn tell(&self, line: String) {
        self.upstream.tell(message::one_line(&line).into_owned());
    }

    /// The agent answered what the upstream had asked.
    pub(super) fn answered(&self, id: &str, line: &str) {
        let Some(asked) = self.state().asked.remove(id).filter(|asked| asked.run == self.upstream.run()) else {
            return;
        };
        let mut splice = Splice::new(line);
        if splice.set_member(line, "id", asked.id).is_ok() {
            self.tell(splice.finish());
        }
    }

    /// What the upstream said of its own accord: passed on.
    pub(super) async fn pass_on(&self, unasked: Unasked) {
        match unasked {
            Unasked::Notification { method, line } => {
                let line = match method.as_str() {
                    "notifications/tools/list_changed" => {
                        self.state().listed = false;
                        line
                    }
                    "notifications/cancelled" => self.taken_back(&line).unwrap_or(line),
                    _ => line,
                };
                self.write(line).await;
            }
            Unasked::Request { id, method, params } => {
                let ours = format!("\"amends-{}\"", self.next.fetch_add(1, Ordering::Relaxed));
                self.state().asked.insert(ours.clone(), Asked { id, run: self.upstream.run() });
                self.write(message::request(&ours, &method, params.as_deref())).await;
            }
        }
        self.upstream.passed_on();
    }

    /// The upstream takes a question back: the same, with the id by which the agent knows the question.
    fn taken_back(&self, line: &str) -> Option<String> {
        let params = Object::parse(line)?.get("params")?;
        let theirs = Object::parse(params.get())?.get("requestId")?;
        let ours = {
            let mut state = self.state();
            let run = self.upstream.run();
            let same = |asked: &Asked| asked.id == theirs.get() && asked.run == run;
            let ours = state.asked.iter().find(|(_, asked)| same(asked)).map(|(ours, _)| ours.clone())?;
            state.asked.remove(&ours);
            ours
        };
        let mut splice = Splice::new(line);
        splice.set_member(params.get(), "requestId", ours).ok()?;
        Some(splice.finish())
    }

    /// Stops everything that can be stopped.
    pub(super) fn stop_all(&self, reason: CancelReason) {
        let running = std::mem::take(&mut self.state().running);
        for (id, stop) in running {
            let _ = stop.send(reason);
            // Still running until its task says otherwise.
            self.state().running.insert(id, oneshot::channel().0);
        }
    }

    /// Waits until nothing runs any more.
    pub(super) async fn settled(&self) {
        loop {
            let settled = self.settled.notified();
            if self.state().running.is_empty() {
                return;
            }
            settled.await;
        }
    }

    fn greeted(&self, params: Option<&str>) {
        let name = params
            .and_then(Object::parse)
            .and_then(|params| Object::parse(params.get("clientInfo")?.get())?.string("name").map(|n| n.into_owned()));
        let mut state = self.state();
        state.client = name;
        state.era = Some(Era::Legacy);
        state.listed = false;
    }

    /// Takes a page of tools to heart; says whether it is the last one.
    async fn listed(&self, result: &str, first: bool) -> bool {
        let Some(list) = ToolList::parse(result).filter(|list| list.next_cursor.is_none()) else { return false };
        // A first page that is the whole list saves asking for it ourselves.
        if first {
            match pin::take_in(&self.gateway, &self.upstream, &list.tools).await {
                Ok(()) => self.state().listed = true,
                Err(error) => {
                    tracing::warn!(%error, "the wrapped server's tools cannot be compared with what is pinned")
                }
            }
        }
        true
    }

    /// Asks for the tools before the first call, where the agent did not.
    async fn list_first(&self, params: &str) {
        if self.state().listed {
            return;
        }
        let meta = Object::parse(params).and_then(|params| params.get("_meta").map(|meta| meta.get().to_owned()));
        let modern = meta.filter(|meta| meta.contains(era::PROTOCOL_VERSION)).map(|meta| {
            let mut splice = Splice::new(&meta);
            let _ = splice.remove_member(&meta, "progressToken");
            splice.finish()
        });
        match listing::refresh(&self.gateway, &self.upstream, modern.as_deref()).await {
            Ok(()) => self.state().listed = true,
            Err(error) => tracing::warn!(%error, "the wrapped server's tools are not known"),
        }
    }
}

fn progress_token(params: &str) -> Option<String> {
    let meta = Object::parse(params)?.get("_meta")?;
    Object::parse(meta.get())?.get("progressToken").map(|token| token.get().to_owned())
}

fn with_token(params: &str, ticket: u64) -> String {
    let mut splice = Splice::new(params);
    if let Some(meta) = Object::parse(params).and_then(|params| params.get("_meta")) {
        let _ = splice.set_member(meta.get(), "progressToken", ticket.to_string());
    }
    splice.finish()
}

fn passed(id: &str, reply: Reply, method: &str) -> String {
    match reply {
        Reply::Result(result) => message::success(id, &String::from_utf8_lossy(&result)),
        Reply::Error(error) => message::failure(Some(id), error.code, &error.message, error.data.as_deref()),
        Reply::Fault(fault) => {
            let text = format!("the wrapped server did not answer `{method}`: {fault}");
            message::failure(Some(id), message::INTERNAL_ERROR, &text, None)
        }
    }
}
