//! Problem details: what the shop says when it does not do what was asked.

use serde::Serialize;

/// A problem in the shape of RFC 9457, with a code and, where apt, the seconds to wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after: Option<u64>,
}

impl Problem {
    pub(crate) fn new(status: u16, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem { kind: "about:blank", title: title(status), status, code, detail: detail.into(), retry_after: None }
    }

    /// Something the agent named that the shop does not have.
    pub(crate) fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(404, "not_found", detail)
    }

    /// An argument that is missing, unknown or of the wrong kind.
    pub(crate) fn invalid_argument(field: &str, complaint: &str) -> Problem {
        Problem::new(422, "invalid_argument", format!("`{field}` {complaint}"))
    }

    pub(crate) fn retry_after(mut self, seconds: u64) -> Problem {
        self.retry_after = Some(seconds);
        self
    }

    /// The problem as a sentence for a reader.
    pub(crate) fn sentence(&self) -> String {
        let wait = match self.retry_after {
            Some(seconds) => format!("; retry after {seconds} s"),
            None => String::new(),
        };
        format!("{} {} ({}): {}{wait}", self.status, self.title, self.code, self.detail)
    }
}

fn title(status: u16) -> &'static str {
    match status {
        403 => "Forbidden",
        404 => "Not Found",
        409 => "Conflict",
        412 => "Precondition Failed",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}
