//! Where spans go.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, StatusCode, Uri};

use crate::config::Access;
use crate::upstream::http::pool::{Departure, Pool, Sent};
use crate::upstream::http::{TlsError, pool as connections};

/// How long a collector may take for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How much of its answer is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A collector of spans.
#[derive(Debug)]
pub(super) struct Target {
    uri: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    pool: Pool,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Taken,
    /// It may be taken later, after that wait where one was asked for.
    Later(Option<Duration>),
    /// It will never be taken.
    Refused,
}

impl Target {
    pub(super) fn new(
        uri: Uri,
        headers: Vec<(HeaderName, HeaderValue)>,
        ca: Option<PathBuf>,
    ) -> Result<Self, TlsError> {
        let pool = connections(&uri, &Access { ca, ..Access::default() })?;
        Ok(Self { uri, headers, pool })
    }

    pub(super) async fn post(&self, body: Bytes) -> Fate {
        match tokio::time::timeout(ANSWER_WITHIN, self.exchange(body)).await {
            Ok(fate) => fate,
            Err(_) => Fate::Later(None),
        }
    }

    async fn exchange(&self, body: Bytes) -> Fate {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse().unwrap_or_default();
        let host = self.uri.authority().and_then(|it| HeaderValue::from_str(it.as_str()).ok());
        request.headers_mut().extend(host.map(|host| (HOST, host)));
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        for (name, value) in &self.headers {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        let sent = self.pool.send(request, Instant::now() + ANSWER_WITHIN, &Departure::default()).await;
        let Ok(Sent { response, connection }) = sent else { return Fate::Later(None) };
        let (parts, body) = response.into_parts();
        // Read to its end, so that the connection can be used again.
        if Limited::new(body, ANSWER_BYTES_MAX).collect().await.is_ok() {
            self.pool.keep(connection);
        }
        match parts.status {
            status if status.is_success() => Fate::Taken,
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let asked = parts.headers.get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.parse().ok());
                Fate::Later(asked.map(Duration::from_secs))
            }
            _ => Fate::Refused,
        }
    }
}
