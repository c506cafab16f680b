//! Where spans go.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// How long a collector may take for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How much of its answer is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// A collector of spans.
#[derive(Debug)]
pub(super) struct Target {
    uri: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    client: Client<HttpConnector, Full<Bytes>>,
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
    pub(super) fn new(uri: Uri, headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        Self { uri, headers, client: Client::builder(TokioExecutor::new()).build_http() }
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
        *request.uri_mut() = self.uri.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        for (name, value) in &self.headers {
            request.headers_mut().insert(name.clone(), value.clone());
        }
        let Ok(response) = self.client.request(request).await else { return Fate::Later(None) };
        let (parts, body) = response.into_parts();
        // Read to its end, so that the connection can be used again.
        let _ = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
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
