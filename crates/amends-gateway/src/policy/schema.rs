//! The Cedar schema of the tools, and what a validator says of policies by it.

use std::collections::BTreeSet;

use amends_core::contract::EffectKind;
use amends_core::nearest::nearest;
use cedar_policy::ffi::DetailedError;
use cedar_policy::{PolicyId, Schema, ValidationMode, Validator};

use super::read::{at, words};
use super::shape::{Shape, quoted};
use super::{GROUPS, Policies, action_name, groups_of, name_of};

/// A tool as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTool {
    /// Its served name.
    pub name: String,
    /// What it does.
    pub effect: EffectKind,
    /// What it takes.
    pub shape: Shape,
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The policy cannot do what it says.
    Problem,
    /// It may surprise.
    Warning,
}

/// What is wrong with a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// The policy.
    pub policy: String,
    /// The text it is in.
    pub origin: String,
    /// Where in it.
    pub line: usize,
    /// Where in the line.
    pub column: usize,
    /// What is wrong, and what may help.
    pub says: String,
}

/// The Cedar schema of those tools.
pub fn schema(tools: &[KnownTool]) -> String {
    let mut text = String::from(
        "entity Tenant;\nentity Group;\nentity Upstream;\n\
         entity Principal in [Tenant, Group] = { name: String, groups: Set<String> };\n\
         entity Tool in [Upstream] = { name: String, upstream: String, effect: String, reversible: Bool, declared: Bool };\n\
         type Step = { machine: String, action: String, state: String };\n\n",
    );
    text.push_str(&format!("action {};\n", GROUPS.map(quoted).join(", ")));
    for tool in tools {
        let groups = groups_of(tool.effect).map(quoted).join(", ");
        text.push_str(&format!(
            "\naction {} in [{groups}] appliesTo {{\n  principal: [Principal],\n  resource: [Tool],\n  context: {{\n    \
             args: {},\n    session: String,\n    door: String,\n    scopes: Set<String>,\n    now: datetime,\n    hour: Long,\n    weekday: String,\n    \
             step?: Step,\n  }},\n}};\n",
            quoted(&action_name(&tool.name)),
            tool.shape.written()
        ));
    }
    text
}

impl Policies {
    /// What a validator says of them, by what is known of the tools. Where there may be others than those, a name that is not among
    /// them may still be right.
    pub fn validate(&self, tools: &[KnownTool], all: bool) -> Vec<Finding> {
        let mut found = self.strangers(tools, all);
        let written = schema(tools);
        let schema = match Schema::from_cedarschema_str(&written) {
            Ok((schema, _)) => schema,
            Err(error) => {
                // What a tool says of itself is from outside; a schema of it that Cedar does not take is no policy's fault.
                let says = format!("nothing was checked: the tools give a schema that Cedar does not take: {error}");
                found.push(self.finding(Level::Warning, "", None, says));
                return found;
            }
        };
        let result = Validator::new(schema).validate(&self.set, ValidationMode::Strict);
        let vague = tools.iter().any(|tool| !tool.shape.is_known());
        for error in result.validation_errors() {
            let policy = error.policy_id();
            let told = DetailedError::from(error);
            // A tool of which nobody knows what it takes cannot be held against a policy.
            let level = if vague && self.reads_arguments(policy) { Level::Warning } else { Level::Problem };
            if self.is_stranger(&found, policy) {
                continue;
            }
            found.push(self.finding(level, name_of(policy), at(&told), plain(&words(&told))));
        }
        for warning in result.validation_warnings() {
            let policy = warning.policy_id();
            let told = DetailedError::from(warning);
            let unsure = vague && self.reads_arguments(policy);
            if !unsure && !self.is_stranger(&found, policy) {
                found.push(self.finding(Level::Warning, name_of(policy), at(&told), plain(&words(&told))));
            }
        }
        found.sort_by(|a, b| (&a.origin, a.line, a.column).cmp(&(&b.origin, b.line, b.column)));
        found.dedup();
        found
    }

    /// The tools that policies name and that are not there, with the nearest that are.
    fn strangers(&self, tools: &[KnownTool], all: bool) -> Vec<Finding> {
        let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let actions: BTreeSet<String> = tools.iter().map(|tool| action_name(&tool.name)).collect();
        let mut found = Vec::new();
        for policy in self.set.policies() {
            for named in policy.entity_literals() {
                let (kind, name) = (named.type_name().to_string(), AsRef::<str>::as_ref(named.id()).to_owned());
                let known = match kind.as_str() {
                    "Tool" => names.contains(name.as_str()),
                    "Action" => actions.contains(&name) || GROUPS.contains(&name.as_str()),
                    _ => true,
                };
                if known {
                    continue;
                }
                let near = nearest(&name, names.iter().copied().chain(GROUPS.into_iter().filter(|_| kind == "Action")));
                let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                let id = name_of(policy.id());
                let at = self.text_of(id).and_then(|text| {
                    let from = policy.to_cedar().and_then(|policy| text.text.find(policy.trim())).unwrap_or_default();
                    text.text.get(from..)?.find(&quoted(&name)).map(|at| from + at)
                });
                let level = if all { Level::Problem } else { Level::Warning };
                found.push(self.finding(level, id, at, format!("there is no tool `{name}`{hint}")));
            }
        }
        found
    }

    /// Whether it was said of that policy already that it names a tool which is not there.
    fn is_stranger(&self, found: &[Finding], policy: &PolicyId) -> bool {
        found.iter().any(|finding| finding.policy == name_of(policy) && finding.says.starts_with("there is no tool"))
    }

    fn reads_arguments(&self, policy: &PolicyId) -> bool {
        let text = self.set.policy(policy).and_then(|policy| policy.to_cedar());
        text.is_some_and(|text| text.contains("args"))
    }

    fn text_of(&self, policy: &str) -> Option<&super::PolicyText> {
        self.texts.iter().find(|text| text.ids.iter().any(|id| id == policy))
    }

    fn finding(&self, level: Level, policy: &str, at: Option<usize>, says: String) -> Finding {
        let text = self.text_of(policy);
        let (line, column) = text.map_or((1, 1), |text| text.place(at.unwrap_or_default()));
        let origin = text.map_or_else(|| "policy".to_owned(), |text| text.origin.clone());
        Finding { level, policy: policy.to_owned(), origin, line, column, says }
    }
}

/// A validator's words without the policy's id, which is said beside them.
fn plain(words: &str) -> String {
    words
        .split_once("`, ")
        .filter(|(before, _)| before.starts_with("for policy `"))
        .map_or(words, |(_, rest)| rest)
        .to_owned()
}
