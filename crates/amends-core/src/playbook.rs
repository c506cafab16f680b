//! The playbook: verdict to compensation, per tool, with forbidden pairs.

mod error;
mod forbidden;
mod jitter;
mod release;
mod retry;
mod rule;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use error::{PlaybookError, RefusedSection};
pub use jitter::Jitter;
pub use release::Release;
pub use retry::{Backoff, RetryLayer, RetryPolicy};
pub use rule::{Rule, RuleSpec};

use crate::compensation::Compensation;
use crate::contract::Contract;
use crate::nearest::nearest;
use crate::registry::{Class, Code};
use crate::verdict::Verdict;
use retry::Scope;
use rule::{default_compensation, default_exception};

/// A playbook that has a rule for every verdict, no forbidden pair, and no rule that never ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Playbook {
    rules: BTreeMap<Verdict, Rule>,
    /// The codes whose rule differs from the rest of their verdict.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    codes: BTreeMap<Code, Rule>,
    /// The release it was settled with, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    release: Option<Release>,
}

/// Where a rule comes from, the nearest last: each outranks those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The table we ship.
    Default,
    /// `[retry.class.NAME]`
    Class,
    /// `[retry.verdict.NAME]`
    Verdict,
    /// `[tools.NAME.retry]`
    ToolRetry,
    /// `[tools.NAME.retry.class.NAME]`
    ToolClass,
    /// `[tools.NAME.retry.verdict.NAME]`
    ToolVerdict,
    /// `[tools.NAME.playbook.VERDICT]`
    Tool,
}

impl Origin {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Class => "class",
            Self::Verdict => "verdict",
            Self::ToolRetry => "tool_retry",
            Self::ToolClass => "tool_class",
            Self::ToolVerdict => "tool_verdict",
            Self::Tool => "tool",
        }
    }

    /// The section of the configuration that a rule for that verdict and code stands in; nothing for the table we ship.
    pub fn section(self, tool: &str, verdict: Verdict, code: Code) -> Option<String> {
        match self {
            Self::Tool | Self::ToolVerdict | Self::Verdict => self.path(tool, verdict.as_str()),
            Self::Default | Self::Class | Self::ToolRetry | Self::ToolClass => self.path(tool, code.class().as_str()),
        }
    }

    fn path(self, tool: &str, name: &str) -> Option<String> {
        match self {
            Self::Default => None,
            Self::Class => Some(format!("retry.class.{name}")),
            Self::Verdict => Some(format!("retry.verdict.{name}")),
            Self::ToolRetry => Some(format!("tools.{tool}.retry")),
            Self::ToolClass => Some(format!("tools.{tool}.retry.class.{name}")),
            Self::ToolVerdict => Some(format!("tools.{tool}.retry.verdict.{name}")),
            Self::Tool => Some(format!("tools.{tool}.playbook.{name}")),
        }
    }
}

/// Rules as an operator writes them, by the verdict's name.
pub type PlaybookSpec = BTreeMap<String, RuleSpec>;

/// What an operator wrote that bears on one tool's playbook.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// The tool's served name.
    pub tool: &'a str,
    /// The policies of the whole file.
    pub shared: &'a RetryLayer,
    /// The tool's own policies.
    pub own: &'a RetryLayer,
    /// The tool's own rules.
    pub rules: &'a PlaybookSpec,
}

impl Default for Playbook {
    fn default() -> Self {
        let rule = |compensation| Rule { compensation, origin: Origin::Default };
        let of_code = |code| Some((code, rule(default_exception(code)?)));
        Self {
            rules: Verdict::ALL.into_iter().map(|verdict| (verdict, rule(default_compensation(verdict)))).collect(),
            codes: Code::ALL.into_iter().filter_map(of_code).collect(),
            release: None,
        }
    }
}

impl Playbook {
    /// The default playbook with an operator's rules for one tool laid over it.
    pub fn parse(spec: &PlaybookSpec, contract: &Contract) -> Result<Self, PlaybookError> {
        let none = RetryLayer::default();
        let layers = Layers { tool: "", shared: &none, own: &none, rules: spec };
        Self::layered(layers, contract).map_err(|refused| refused.reason)
    }

    /// The default playbook with everything laid over it that an operator wrote, the nearest last.
    pub fn layered(layers: Layers<'_>, contract: &Contract) -> Result<Self, RefusedSection> {
        Self::default().amended(layers, contract)
    }

    /// This playbook with more laid over it. What stands in a nearer place than what is laid stays as it is.
    pub fn amended(&self, layers: Layers<'_>, contract: &Contract) -> Result<Self, RefusedSection> {
        let mut playbook = self.clone();
        let Layers { tool, shared, own, rules } = layers;
        // A policy of the whole file is for plain writes too, so it is held to what may be done with those.
        let anything = Contract::undeclared(0, 0, 0);
        for (name, policy) in &shared.class {
            playbook.lay(policy, class(name).map(Scope::Class), Origin::Class, (tool, name), &anything)?;
        }
        for (name, policy) in &shared.verdict {
            playbook.lay(policy, verdict(name).map(Scope::Verdict), Origin::Verdict, (tool, name), &anything)?;
        }
        if let Some(policy) = &own.whole {
            playbook.lay(policy, Ok(Scope::Whole), Origin::ToolRetry, (tool, ""), contract)?;
        }
        for (name, policy) in &own.class {
            playbook.lay(policy, class(name).map(Scope::Class), Origin::ToolClass, (tool, name), contract)?;
        }
        for (name, policy) in &own.verdict {
            playbook.lay(policy, verdict(name).map(Scope::OwnVerdict), Origin::ToolVerdict, (tool, name), contract)?;
        }
        for (name, spec) in rules {
            playbook.replace(name, spec, contract).map_err(|reason| refused(Origin::Tool, (tool, name), reason))?;
        }
        Ok(playbook)
    }

    fn lay(
        &mut self,
        policy: &RetryPolicy,
        scope: Result<Scope, PlaybookError>,
        origin: Origin,
        place: (&str, &str),
        contract: &Contract,
    ) -> Result<(), RefusedSection> {
        let codes = scope.and_then(|scope| {
            policy.check(scope, contract)?;
            policy.codes(scope)
        });
        for code in codes.map_err(|reason| refused(origin, place, reason))? {
            let verdict = code.verdict();
            let before = self.rule(verdict, code);
            if before.origin > origin {
                continue;
            }
            let compensation = match (policy.sends_again(), before.compensation.sends_again()) {
                (true, _) => policy.sending(verdict),
                (false, true) => Compensation::Surface,
                // It was not going to be sent again; what is done instead stays.
                (false, false) => continue,
            };
            self.codes.insert(code, Rule { compensation, origin });
        }
        Ok(())
    }

    fn replace(&mut self, name: &str, spec: &RuleSpec, contract: &Contract) -> Result<(), PlaybookError> {
        let verdict = verdict(name)?;
        let compensation = spec.compensation(verdict)?;
        forbidden::allowed(verdict, &compensation, contract)?;
        self.codes.retain(|code, _| code.verdict() != verdict);
        self.rules.insert(verdict, Rule { compensation, origin: Origin::Tool });
        Ok(())
    }

    /// The same, as part of a release.
    #[must_use]
    pub fn released(self, release: Option<Release>) -> Self {
        Self { release, ..self }
    }

    /// The release it was settled with.
    pub fn release(&self) -> Option<&Release> {
        self.release.as_ref()
    }

    /// The rule for an attempt that failed with that code and was judged so.
    pub fn rule(&self, verdict: Verdict, code: Code) -> &Rule {
        // Doubt outranks the code: what it would be judged otherwise has no say.
        let own = self.codes.get(&code).filter(|_| code.verdict() == verdict);
        own.unwrap_or(&self.rules[&verdict])
    }
}

fn refused(origin: Origin, (tool, name): (&str, &str), reason: PlaybookError) -> RefusedSection {
    RefusedSection { section: origin.path(tool, name).unwrap_or_default(), reason }
}

fn verdict(name: &str) -> Result<Verdict, PlaybookError> {
    Verdict::ALL.into_iter().find(|verdict| verdict.as_str() == name).ok_or_else(|| PlaybookError::UnknownVerdict {
        name: name.to_owned(),
        nearest: nearest(name, Verdict::ALL.map(Verdict::as_str)),
    })
}

fn class(name: &str) -> Result<Class, PlaybookError> {
    let all = || Code::ALL.into_iter().map(Code::class);
    all().find(|class| class.as_str() == name).ok_or_else(|| {
        let mut names: Vec<&str> = all().map(Class::as_str).collect();
        names.dedup();
        PlaybookError::UnknownClass { name: name.to_owned(), nearest: nearest(name, names) }
    })
}

#[cfg(test)]
mod tests;
