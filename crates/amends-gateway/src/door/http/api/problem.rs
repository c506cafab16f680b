//! What is answered instead of what was asked for, as problem details.

use amends_ledger::Error;
use hyper::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::json;

use super::super::body::Body;
use super::super::respond;

/// What is answered instead of what was asked for.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    /// Its stable name.
    pub(crate) code: &'static str,
    /// What is wrong, in a sentence.
    pub(crate) detail: String,
    /// The parameter or field it is about.
    pub(crate) field: Option<String>,
    allow: Option<String>,
}

impl Problem {
    pub(crate) fn of(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), field: None, allow: None }
    }

    /// There is no such thing, or nobody may know of it.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::of(StatusCode::NOT_FOUND, "not_found", format!("there is no such {what}"))
    }

    /// A parameter or field makes no sense.
    pub(crate) fn field(name: &str, detail: impl Into<String>) -> Self {
        Self { field: Some(name.to_owned()), ..Self::of(StatusCode::BAD_REQUEST, "invalid_field", detail) }
    }

    /// The path takes other methods.
    pub(crate) fn method(allowed: &str) -> Self {
        let detail = format!("this takes {allowed}");
        Self {
            allow: Some(allowed.to_owned()),
            ..Self::of(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        }
    }

    /// Nobody is signed in.
    pub(crate) fn nobody() -> Self {
        let detail = "sign in at the console, or show a token as `Authorization: Bearer …`";
        Self::of(StatusCode::UNAUTHORIZED, "unauthenticated", detail)
    }

    /// Somebody is signed in who may not.
    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::of(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    /// Something that takes long is going on already.
    pub(crate) fn busy() -> Self {
        Self::of(StatusCode::TOO_MANY_REQUESTS, "busy", "something that takes long is going on; try again in a moment")
    }

    /// The answer for a program.
    pub(crate) fn response(&self) -> Response<Body> {
        let mut body = json!({
            "type": format!("urn:amends:problem:{}", self.code),
            "title": self.status.canonical_reason().unwrap_or("problem"),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Some(field) = &self.field {
            body["field"] = json!(field);
        }
        let mut response = respond(self.status, "application/problem+json", body.to_string());
        self.mark(&mut response);
        response
    }

    /// Adds what belongs in the headers, whatever the body.
    pub(crate) fn mark(&self, response: &mut Response<Body>) {
        let headers = response.headers_mut();
        if let Some(allow) = self.allow.as_deref().and_then(|allow| HeaderValue::from_str(allow).ok()) {
            headers.insert(ALLOW, allow);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("2"));
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        tracing::warn!(%error, "the console cannot read the ledger");
        Self::of(StatusCode::SERVICE_UNAVAILABLE, "ledger_unavailable", error.to_string())
    }
}
