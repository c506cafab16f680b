//! What was found, and what to do about it.

use serde_json::{Value, json};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// Worth a look.
    Warn,
    /// It will not work, or not keep what we promise.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    /// What it is about: `port`, `upstream shop`, `ledger`, …
    pub(super) about: String,
    /// How it is.
    pub(super) level: Level,
    /// What was found, in a sentence.
    pub(super) words: String,
    /// What to do about it.
    pub(super) advice: Option<String>,
}

impl Level {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }

    const fn colour(self) -> &'static str {
        match self {
            Self::Ok => "32",
            Self::Warn => "33",
            Self::Bad => "31",
        }
    }
}

impl Finding {
    pub(super) fn ok(about: &str, words: impl Into<String>) -> Self {
        Self { about: about.to_owned(), level: Level::Ok, words: words.into(), advice: None }
    }

    pub(super) fn warn(about: &str, words: impl Into<String>, advice: &str) -> Self {
        Self { about: about.to_owned(), level: Level::Warn, words: words.into(), advice: Some(advice.to_owned()) }
    }

    pub(super) fn bad(about: &str, words: impl Into<String>, advice: &str) -> Self {
        Self { about: about.to_owned(), level: Level::Bad, words: words.into(), advice: Some(advice.to_owned()) }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "about": self.about, "level": self.level.as_str(), "words": self.words, "advice": self.advice })
    }

    /// One or two lines for people.
    pub(super) fn line(&self, coloured: bool) -> String {
        let level = match coloured {
            true => format!("\u{1b}[{}m{:<4}\u{1b}[0m", self.level.colour(), self.level.as_str()),
            false => format!("{:<4}", self.level.as_str()),
        };
        let mut text = format!("{level}  {:<18} {}", visible(&self.about), visible(&self.words));
        if let Some(advice) = &self.advice {
            text.push_str(&format!("\n{:26}{}", "→ ", visible(advice)));
        }
        text
    }
}

/// A text on one line of a terminal, whoever wrote it.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
