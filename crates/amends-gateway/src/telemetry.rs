//! Traces for OpenTelemetry: a span for each call and each attempt, made from the facts of recorded steps, and the context in
//! which the upstreams' own spans belong. It never holds a call up.

mod context;
mod export;
mod protobuf;
mod span;
mod story;
mod target;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use amends_core::{AttemptId, Event, Fact, SessionId};
use hyper::HeaderMap;
use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use tokio::sync::{mpsc, oneshot};

use crate::metrics::Exports;
use crate::upstream::Request;
use context::{COMPANIONS, Context, TRACEPARENT, sound};
use export::Parcel;
pub(crate) use span::Span;
pub(crate) use story::Story;
use target::Target;

/// How many spans may wait to be exported. Those beyond are dropped and counted.
const QUEUE_MAX: usize = 4096;
/// How long the end of the process waits for the last spans.
const FLUSH_WITHIN: Duration = Duration::from_secs(3);

tokio::task_local! {
    /// What the headers of the request that is being handled say of its trace.
    static NAMED: Named;
}

/// Whether and where spans are exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// The address that spans are posted to.
    pub traces: Option<String>,
    /// The only certificate authority that is believed, where it is not the system's.
    pub ca: Option<PathBuf>,
}

impl TelemetryConfig {
    /// What the configuration says, and where it says nothing, what the environment does.
    fn settled(&self) -> Option<Uri> {
        let said = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if said("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return None;
        }
        let from_environment = || {
            let whole = said("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
            whole.or_else(|| said("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| traces_address(&base)))
        };
        let address = self.traces.clone().or_else(from_environment)?;
        match address.parse::<Uri>() {
            Ok(uri) if matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some() => Some(uri),
            _ => {
                tracing::warn!("spans are not exported: `{address}` is not an `http://` or `https://` address");
                None
            }
        }
    }
}

/// The address that spans are posted to, below the one of a collector.
pub fn traces_address(base: &str) -> String {
    format!("{}/v1/traces", base.trim_end_matches('/'))
}

/// Exports spans.
#[derive(Debug)]
pub(crate) struct Telemetry {
    queue: mpsc::Sender<Parcel>,
    exports: Exports,
}

impl Telemetry {
    /// Begins to export, where that is asked for.
    pub(crate) fn start(config: &TelemetryConfig, exports: Exports) -> Option<Self> {
        let certificate = || std::env::var_os("OTEL_EXPORTER_OTLP_CERTIFICATE").filter(|path| !path.is_empty());
        let ca = config.ca.clone().or_else(|| certificate().map(PathBuf::from));
        let target = match Target::new(config.settled()?, headers(), ca) {
            Ok(target) => target,
            Err(error) => {
                tracing::warn!(%error, "spans are not exported");
                return None;
            }
        };
        let service = std::env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty());
        let (queue, parcels) = mpsc::channel(QUEUE_MAX);
        let service = service.unwrap_or_else(|| "amends".to_owned());
        tokio::spawn(export::export(target, service, parcels, exports.clone()));
        Some(Self { queue, exports })
    }

    /// Hands a span over. One that finds no room is dropped.
    pub(crate) fn tell(&self, span: Span) {
        if self.queue.try_send(Parcel::Span(Box::new(span))).is_err() {
            self.exports.count("dropped", 1);
        }
    }

    /// Waits until what was handed over has gone, for a moment.
    pub(crate) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        let asked = async {
            if self.queue.send(Parcel::Flush(done)).await.is_ok() {
                let _ = flushed.await;
            }
        };
        if tokio::time::timeout(FLUSH_WITHIN, asked).await.is_err() {
            tracing::warn!("the last spans took too long and were left");
        }
    }

    /// The story of a call that was just received.
    pub(crate) fn begin(&self, session: &SessionId, params: &str, event: &Event) -> Option<Story> {
        Story::of(session, params, event)
    }

    /// Takes what happened into its call's story; gives the span that is complete by it, and whether the story is over.
    pub(crate) fn go_on(&self, story: &mut Story, event: &Event) -> (Option<Span>, bool) {
        let over = matches!(event.fact, Fact::CallEnded { .. } | Fact::CallRefused { .. });
        (story.take(event), over)
    }

    /// Makes an attempt the parent of whatever its upstream does for it. `params` are those of its call.
    pub(crate) fn stamp(&self, attempt: &AttemptId, params: &str, request: &mut Request) {
        let context = Context::of(params, &attempt.call);
        let mut told = vec![(TRACEPARENT, context.traceparent(attempt))];
        // They belong to the agent's trace, and go no further than it does.
        if context.parent.is_some() {
            told.extend(context::companions(params));
        }
        request.params = request.params.take().map(|params| context::with_meta(&params, &told));
        request.headers.extend(told.into_iter().map(|(name, text)| (name.to_owned(), text)));
    }

    /// The parameters of a call with what the headers of its request say of its trace, where the parameters name none.
    pub(crate) fn with_headers(&self, params: &str) -> Option<String> {
        let Named(said) = NAMED.try_with(Clone::clone).ok()?;
        if context::meta(params).is_some_and(|meta| meta.get(TRACEPARENT).is_some()) {
            return None;
        }
        let members: Vec<(&str, String)> = said.iter().map(|(name, text)| (*name, text.clone())).collect();
        Some(context::with_meta(params, &members))
    }
}

/// What the headers of a request say of the trace it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Named(Arc<[(&'static str, String)]>);

impl Named {
    /// What those headers say; nothing where they name no trace.
    pub(crate) fn by(headers: &HeaderMap) -> Option<Self> {
        let said = |name: &'static str| Some((name, headers.get(name)?.to_str().ok()?.to_owned()));
        let parent = said(TRACEPARENT).filter(|(_, parent)| context::parse(parent).is_some())?;
        let companions = COMPANIONS.into_iter().filter_map(said).filter(|(_, text)| sound(text));
        Some(Self([parent].into_iter().chain(companions).collect()))
    }

    /// What they say, by its name in `_meta`.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// Handles the request within that trace.
    pub(crate) async fn scope<T>(self, handling: impl Future<Output = T>) -> T {
        NAMED.scope(self, handling).await
    }
}

/// The headers that the environment asks for: `name=value`, separated by commas. They may be secrets, so no file has them.
fn headers() -> Vec<(HeaderName, HeaderValue)> {
    let written = std::env::var("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let mut value: HeaderValue = value.trim().parse().ok()?;
        value.set_sensitive(true);
        Some((name.trim().parse().ok()?, value))
    };
    written.split(',').filter_map(pair).collect()
}
