//! Goldens: stories whose ends are written down, told again to see whether they still end so.
//!
//! A golden is one TOML file: what governs a tool, what arrives and when, and in its last table, `[expected]`, the trace and
//! the answers that follow. Those in `fixtures/scenarios` were written by hand; [`of_call`] makes one of a recorded call.

mod recorded;
mod says;
mod story;
mod telling;

use std::sync::Arc;

use amends_core::{Rules, ToolName, UpstreamName};
use thiserror::Error;

pub use recorded::of_call;
use story::Story;

const EXPECTED: &str = "\n[expected]\n";

/// A story whose end is written down.
#[derive(Debug)]
pub struct Golden {
    story: Story,
    head: String,
}

/// Why a golden cannot be told.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GoldenError {
    /// It is not what it should be.
    #[error("{reason}")]
    Malformed {
        /// What is wrong with it, with its place.
        reason: String,
    },
    /// Something in it makes no sense.
    #[error("{what}")]
    Senseless {
        /// What.
        what: String,
    },
}

impl Golden {
    /// Reads a golden.
    pub fn read(text: &str) -> Result<Self, GoldenError> {
        let story: Story =
            toml::from_str(text).map_err(|error| GoldenError::Malformed { reason: error.to_string() })?;
        let head = text.split(EXPECTED).next().unwrap_or_default().trim_end().to_owned();
        Ok(Self { story, head })
    }

    /// What it shows, in a sentence.
    pub fn story(&self) -> &str {
        &self.story.story
    }

    /// The recorded tool and upstream it is about; nothing for a story that was written by hand.
    pub fn tool(&self) -> Option<(&ToolName, &UpstreamName)> {
        let received = self.story.inputs.iter().find_map(|input| input.received.as_ref())?;
        Some((&received.tool, &received.upstream))
    }

    /// The rules it was written with.
    pub fn rules(&self) -> Result<Arc<Rules>, GoldenError> {
        self.story.rules()
    }

    /// The end that is written down.
    pub fn expected(&self) -> Option<&str> {
        self.story.expected.as_ref().map(|expected| expected.trace.as_str())
    }

    /// Tells it under those rules, and gives the trace.
    pub fn tell(&self, rules: &Arc<Rules>) -> Result<String, GoldenError> {
        telling::tell(&self.story, rules)
    }

    /// Its text with that end written down.
    pub fn with_end(&self, told: &str) -> String {
        format!("{}\n{EXPECTED}trace = '''\n{told}'''\n", self.head)
    }
}

/// The lines in which two traces first differ, with a few before them; nothing where they are the same.
pub fn difference(expected: &str, told: &str) -> Option<String> {
    const BEFORE: usize = 3;
    const SHOWN: usize = 4;
    let (was, is): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), told.lines().collect());
    if was == is {
        return None;
    }
    let same = was.iter().zip(&is).take_while(|(was, is)| was == is).count();
    let mut lines = vec![format!("line {} of its trace:", same + 1)];
    lines.extend(was[same.saturating_sub(BEFORE)..same].iter().map(|line| format!("    {line}")));
    lines.extend(was[same..].iter().take(SHOWN).map(|line| format!("  - {line}")));
    lines.extend(is[same..].iter().take(SHOWN).map(|line| format!("  + {line}")));
    Some(lines.join("\n"))
}
