//! What a look at a declaration finds.

use std::fmt;

use crate::registry::Code;

/// Something about a machine's declaration that is wrong, or that its author should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub weight: Weight,
    /// What it is called in the registry.
    pub code: Code,
    /// Where, from the machine down: `["actions", "pay", "guard"]`.
    pub at: Vec<String>,
    /// Where in that, as far as it has parts of its own: `["1", "when"]` for the condition of the second target.
    pub within: Vec<String>,
    /// What is found.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The machine is not served.
    Error,
    /// It is served, and may surprise.
    Warning,
}

impl Finding {
    /// Something that is wrong there.
    pub fn error(at: &[&str], message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(Weight::Error, at, message, fix)
    }

    /// Something there that is served, and may surprise.
    pub fn warning(at: &[&str], message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(Weight::Warning, at, message, fix)
    }

    /// The same under another code of the registry than that of a declaration that does not say what it must.
    pub(super) const fn coded(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// The same of what is within its place.
    pub(super) fn within(mut self, parts: &[String]) -> Self {
        self.within = parts.to_vec();
        self
    }

    /// Its place in a configuration, as far as it is known: `machines.order.actions.pay.to.1.when`, where its place begins with the
    /// machine's name.
    pub fn key(&self) -> String {
        ["machines"]
            .into_iter()
            .chain(self.at.iter().chain(&self.within).map(String::as_str))
            .collect::<Vec<_>>()
            .join(".")
    }

    /// The same of a part: its place begins with that part's name.
    pub fn of(mut self, part: &str) -> Self {
        self.at.insert(0, part.to_owned());
        self
    }

    /// The action that it is about, in a place that begins with the machine's name.
    pub fn action(&self) -> Option<&str> {
        let part = self.at.get(1).is_some_and(|part| part == "actions");
        self.at.get(2).filter(|_| part).map(String::as_str)
    }

    /// Whether it may only follow from those of the same machines: one of the same action, or any where it is about the whole
    /// machine.
    pub fn may_follow(&self, from: &[Self]) -> bool {
        let same = |other: &&Self| other.at.first() == self.at.first();
        from.iter().filter(same).any(|other| self.action().is_none() || other.action() == self.action())
    }

    /// Whether it is about the same part as one of those, or about what is in it.
    pub fn is_where(&self, others: &[Self]) -> bool {
        others.iter().any(|other| self.at.starts_with(&other.at))
    }

    fn new(weight: Weight, at: &[&str], message: impl Into<String>, fix: impl Into<String>) -> Self {
        let at = at.iter().map(|part| (*part).to_owned()).collect();
        let (code, within) = (Code::ConfigSchemaViolation, Vec::new());
        Self { weight, code, at, within, message: message.into(), fix: fix.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.at.join("."), self.message, self.fix)
    }
}
