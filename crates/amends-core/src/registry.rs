//! The registry: one table of every failure code, from which everything else is generated.
//!
//! From it come the enums here, the envelope's schema, `docs/codes`, and the types for Python and TypeScript.

mod door;
mod field;
mod json;
mod meaning;
mod refusal;
mod table;

use serde::{Deserialize, Serialize};

pub use door::{A2a, AgUi, Mcp};
pub use field::Field;
pub use json::json;
pub use meaning::Meaning;
pub use table::Code;

/// The eight families of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Class {
    /// What was declared is not well formed.
    Validation,
    /// The way to the upstream, or the upstream as a whole, is troubled for now.
    ProviderTransient,
    /// The upstream cannot do what is needed.
    ProviderCapability,
    /// The tool is troubled for now.
    ToolTransient,
    /// The tool answered, and asking again in the same way is pointless.
    ToolTerminal,
    /// Our own sessions and their store.
    Session,
    /// Somebody stopped it.
    Cancellation,
    /// What we host ourselves.
    ExtensionHost,
}

/// Whose move it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhoMustAct {
    /// The model that called.
    Agent,
    /// Whoever runs the gateway or the upstream.
    Operator,
    /// A person who can decide.
    Person,
    /// Nobody: it is over, or goes on by itself.
    Nobody,
}

impl Class {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::Validation,
        Self::ProviderTransient,
        Self::ProviderCapability,
        Self::ToolTransient,
        Self::ToolTerminal,
        Self::Session,
        Self::Cancellation,
        Self::ExtensionHost,
    ];

    /// What its codes have in common, in a sentence.
    pub const fn means(self) -> &'static str {
        match self {
            Self::Validation => "What was declared is not well formed.",
            Self::ProviderTransient => "The way to the upstream, or the upstream as a whole, is troubled for now.",
            Self::ProviderCapability => "The upstream cannot do what is needed.",
            Self::ToolTransient => "The tool is troubled for now.",
            Self::ToolTerminal => "The tool answered, and asking again in the same way is pointless.",
            Self::Session => "Our own sessions and their store.",
            Self::Cancellation => "Somebody stopped it.",
            Self::ExtensionHost => "What we host ourselves.",
        }
    }

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "Validation",
            Self::ProviderTransient => "ProviderTransient",
            Self::ProviderCapability => "ProviderCapability",
            Self::ToolTransient => "ToolTransient",
            Self::ToolTerminal => "ToolTerminal",
            Self::Session => "Session",
            Self::Cancellation => "Cancellation",
            Self::ExtensionHost => "ExtensionHost",
        }
    }
}

impl WhoMustAct {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Agent, Self::Operator, Self::Person, Self::Nobody];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Operator => "operator",
            Self::Person => "person",
            Self::Nobody => "nobody",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_its_code_in_snake_case() {
        for code in Code::ALL {
            let mut snake = String::new();
            let mut before = '_';
            for c in code.as_str().chars() {
                let starts = c.is_ascii_uppercase() || (c.is_ascii_digit() && !before.is_ascii_digit());
                if starts && !snake.is_empty() {
                    snake.push('_');
                }
                snake.push(c.to_ascii_lowercase());
                before = c;
            }
            assert_eq!(snake, code.kind());
        }
    }

    #[test]
    fn a_name_is_read_back() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(code));
        }
    }
}
