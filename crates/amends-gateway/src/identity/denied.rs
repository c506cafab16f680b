//! Why somebody is not let in, and what they are told of it.

use thiserror::Error;

use crate::config::AuthConfig;

/// Why somebody is not let in. Nothing of a token is in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Denied {
    /// Nothing was shown.
    #[error("a token is needed, as `Authorization: Bearer …`")]
    Missing,
    /// What was shown does not count.
    #[error("the token does not count: {0}")]
    Token(&'static str),
    /// What was shown is not good for this.
    #[error("the token lacks the scope `{0}`")]
    Scope(String),
    /// What was shown is no person's.
    #[error("the token is for no person: it has no role")]
    Role,
    /// A token was put where everybody reads it.
    #[error("a token belongs in the header `Authorization`, never in an address; consider this one known to others")]
    InAddress,
    /// Whether it counts cannot be told now.
    #[error("it cannot be told now whether the token counts; try again later")]
    Unavailable,
}

impl Denied {
    /// The status of the answer.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Missing | Self::Token(_) => 401,
            Self::Scope(_) | Self::Role => 403,
            Self::InAddress => 400,
            Self::Unavailable => 503,
        }
    }

    /// The code of RFC 6750, where it has one.
    pub const fn code(&self) -> Option<&'static str> {
        match self {
            Self::Token(_) => Some("invalid_token"),
            Self::Scope(_) | Self::Role => Some("insufficient_scope"),
            Self::InAddress => Some("invalid_request"),
            Self::Missing | Self::Unavailable => None,
        }
    }

    /// The challenge of the answer: what is wrong, and where a token can be had.
    pub fn challenge(&self, auth: &AuthConfig) -> Option<String> {
        if matches!(self, Self::Unavailable) {
            return None;
        }
        let mut parts = Vec::new();
        if let Some(code) = self.code() {
            parts.push(format!("error=\"{code}\""));
            parts.push(format!("error_description=\"{}\"", quoted(&self.to_string())));
        }
        let scope = match (self, &auth.oauth) {
            (Self::Scope(scope), _) => Some(scope.as_str()),
            (Self::Missing, Some(oauth)) => oauth.scopes.call.as_deref(),
            _ => None,
        };
        parts.extend(scope.map(|scope| format!("scope=\"{}\"", quoted(scope))));
        let metadata = auth.oauth.as_ref().map(|oauth| format!("resource_metadata=\"{}\"", oauth.metadata_url()));
        parts.extend(metadata);
        Some(if parts.is_empty() { "Bearer".to_owned() } else { format!("Bearer {}", parts.join(", ")) })
    }
}

/// A text that can stand between quotes in a header.
fn quoted(text: &str) -> String {
    text.chars().map(|c| if c == '"' || c == '\\' || !(' '..='~').contains(&c) { '\'' } else { c }).collect()
}
