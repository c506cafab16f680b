//! What went wrong, as the world reported it.

use serde::{Deserialize, Serialize};

use crate::limits::UPSTREAM_TEXT_MAX;
use crate::registry::{Class, Code};

/// What went wrong with one attempt, as the world reported it: a code, and what the report carried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What went wrong.
    pub code: Code,
    /// The status the upstream gave, in HTTP's meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the upstream asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The upstream's own words: data, never instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamWords>,
}

/// The upstream's own words about a failure, bounded. They are quoted to the agent as untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamWords {
    /// Its own code: a JSON-RPC number or a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Its text, cut to a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The argument it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl Failure {
    /// A failure of which only the code is known.
    pub const fn of(code: Code) -> Self {
        Self { code, status: None, retry_after_ms: None, upstream: None }
    }

    /// The same with the upstream's text, cut to its bound and freed of control characters.
    #[must_use]
    pub fn saying(mut self, text: &str) -> Self {
        self.upstream.get_or_insert_default().text = Some(bounded(text));
        self
    }

    /// The family it belongs to.
    pub const fn class(&self) -> Class {
        self.code.class()
    }
}

/// The text, without control and invisible formatting characters, cut at the bound.
pub fn bounded(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { c }).filter(|c| visible(*c)) {
        if out.len() + c.len_utf8() > UPSTREAM_TEXT_MAX {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

/// Whether a character can be seen: no controls, no bidirectional overrides, no zero-width or tag characters.
fn visible(c: char) -> bool {
    !(c.is_control()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_cut_and_its_hidden_characters_are_dropped() {
        let text = bounded(&format!("pay\u{202E}again\u{E0041}\n{}", "x".repeat(2000)));
        assert!(text.starts_with("payagain x"));
        assert!(text.len() <= UPSTREAM_TEXT_MAX + '…'.len_utf8());
    }
}
