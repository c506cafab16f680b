//! What a label says.

use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{PoisonError, RwLock};

use amends_core::{ToolName, UpstreamName};
use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

/// How many tools have a label of their own. Upstreams name their tools, and may never stop finding names.
const TOOLS_MAX: usize = 1000;

/// What a label says: one of our own words, or the name of something that is served.
#[derive(Clone)]
pub(crate) enum Word {
    Fixed(&'static str),
    Tool(ToolName),
    Upstream(UpstreamName),
}

impl Word {
    /// For what is named by an agent and served by nobody.
    pub(crate) const UNKNOWN: Self = Self::Fixed("unknown");
    /// For tools beyond those that have a label of their own.
    const OTHER: Self = Self::Fixed("other");

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Fixed(word) => word,
            Self::Tool(name) => name.as_str(),
            Self::Upstream(name) => name.as_str(),
        }
    }
}

impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Word {}

impl Hash for Word {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl EncodeLabelValue for Word {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.as_str(), encoder)
    }
}

/// The tools that have a label of their own.
#[derive(Debug, Default)]
pub(super) struct Tools(RwLock<HashSet<ToolName>>);

impl Tools {
    /// The label of a tool that is served.
    pub(super) fn label(&self, tool: &ToolName) -> Word {
        if self.0.read().unwrap_or_else(PoisonError::into_inner).contains(tool) {
            return Word::Tool(tool.clone());
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= TOOLS_MAX && !known.contains(tool) {
            return Word::OTHER;
        }
        known.insert(tool.clone());
        Word::Tool(tool.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_bound_to_the_tools_that_have_a_label() {
        let tools = Tools::default();
        for n in 0..TOOLS_MAX + 10 {
            tools.label(&ToolName::new(format!("tool_{n}")));
        }
        assert_eq!(tools.label(&ToolName::new("one_more")), Word::OTHER);
        assert_eq!(tools.label(&ToolName::new("tool_7")).as_str(), "tool_7");
    }
}
