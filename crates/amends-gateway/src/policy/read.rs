//! From the texts of policies to what can be evaluated.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use amends_core::Principal;
use amends_core::gates::Approval;
use amends_core::nearest::nearest;
use cedar_policy::ffi::DetailedError;
use cedar_policy::{Authorizer, Effect, Policy, PolicyId, PolicySet};

use super::{Names, Policies, name_of};
use crate::config::ConfigError;

/// How long a text of policies may be.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// The annotations that mean something.
const KNOWN: [&str; 5] = ["approval", "id", "persons", "reason", "requester"];

/// A text of policies, and where it is from.
#[derive(Clone, Debug)]
pub struct PolicyText {
    /// The file, or what stands for it.
    pub origin: String,
    /// What it says.
    pub text: String,
    /// The file, where it is one.
    pub file: Option<PathBuf>,
    /// The policies in it, in their order.
    pub ids: Vec<String>,
}

impl PolicyText {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        Ok(Self { file: Some(path.to_owned()), ..Self::of(&path.display().to_string(), text) })
    }

    /// A text that is no file.
    pub fn of(origin: &str, text: String) -> Self {
        Self { origin: origin.to_owned(), text, file: None, ids: Vec::new() }
    }

    /// The line and the column of a byte.
    pub fn place(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }

    /// What is wrong with it, and where.
    fn wrong(&self, at: Option<usize>, reason: &str) -> ConfigError {
        let (line, column) = self.place(at.unwrap_or_default());
        let reason = if at.is_some() { format!("column {column}: {reason}") } else { reason.to_owned() };
        ConfigError::Malformed { origin: self.origin.clone(), line, reason }
    }
}

impl Policies {
    /// Reads policies. Those that have no `@id` are named after their text and their place in it.
    pub fn read(mut texts: Vec<PolicyText>, groups: BTreeMap<Principal, Vec<String>>) -> Result<Self, ConfigError> {
        let mut set = PolicySet::new();
        let mut approvals = HashMap::new();
        for text in &mut texts {
            for (n, policy) in parsed(text)?.into_iter().enumerate() {
                let begins = begins(&text.text, &policy);
                let wrong = |reason: &str| text.wrong(begins, reason);
                let name = Path::new(&text.origin).file_name().map(|name| name.to_string_lossy().into_owned());
                let usual = || format!("{}#{}", name.as_deref().unwrap_or(&text.origin), n + 1);
                let id = policy.annotation("id").map_or_else(usual, str::to_owned);
                if id.is_empty() {
                    return Err(wrong("`@id` names the policy, and this one has no letters"));
                }
                if let Some(approval) = approval(&id, &policy).map_err(|reason| wrong(&reason))? {
                    approvals.insert(id.clone(), approval);
                }
                let named = policy.new_id(PolicyId::new(&id));
                set.add(named).map_err(|_| wrong(&format!("there are two policies `{id}`")))?;
                text.ids.push(id);
            }
        }
        Ok(Self { set, approvals, texts, groups, names: Names::new(), authorizer: Authorizer::new() })
    }
}

/// The policies of a text, in their order.
fn parsed(text: &PolicyText) -> Result<Vec<Policy>, ConfigError> {
    if text.text.len() > TEXT_BYTES_MAX {
        return Err(text.wrong(None, &format!("policies have at most {TEXT_BYTES_MAX} bytes")));
    }
    let set = PolicySet::from_str(&text.text).map_err(|errors| {
        let told = DetailedError::from(&errors);
        text.wrong(at(&told), &words(&told))
    })?;
    if set.num_of_templates() > 0 {
        return Err(text.wrong(None, "a template permits nothing by itself; write the policies out"));
    }
    let mut policies: Vec<Policy> = set.policies().cloned().collect();
    // They are numbered as they are written.
    policies.sort_by_key(|policy| name_of(policy.id()).trim_start_matches("policy").parse().unwrap_or(usize::MAX));
    Ok(policies)
}

/// Where a policy begins, as far as that can be told.
fn begins(text: &str, policy: &Policy) -> Option<usize> {
    text.find(policy.to_cedar()?.trim())
}

/// Where something is wrong.
pub(super) fn at(told: &DetailedError) -> Option<usize> {
    told.source_locations.first().map(|label| label.loc.start).or_else(|| told.related.iter().find_map(at))
}

/// What is wrong, and what may help.
pub(super) fn words(told: &DetailedError) -> String {
    let help = told.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
    format!("{}{help}", told.message)
}

/// Whose approval a permit wants.
fn approval(id: &str, policy: &Policy) -> Result<Option<Approval>, String> {
    for (name, _) in policy.annotations() {
        let near = nearest(name, KNOWN);
        if let Some(near) = near.first().filter(|near| near.as_str() != name && !KNOWN.contains(&name)) {
            return Err(format!("`@{name}` means nothing; did you mean `@{near}`?"));
        }
    }
    let Some(queue) = policy.annotation("approval") else {
        let idle = ["persons", "requester"].into_iter().find(|name| policy.annotation(name).is_some());
        return idle
            .map_or(Ok(None), |name| Err(format!("`@{name}` says how an `@approval` is given, and there is none")));
    };
    if policy.effect() == Effect::Forbid {
        return Err("`@approval` stands on a `permit`; what is forbidden, nobody can approve".to_owned());
    }
    if queue.is_empty() {
        return Err("`@approval` names the queue on which people are asked".to_owned());
    }
    let persons = match policy.annotation("persons") {
        None | Some("1") => 1,
        Some("2") => 2,
        Some(other) => return Err(format!("`@persons` is \"1\" or \"2\", not \"{other}\"")),
    };
    let requester_may = match policy.annotation("requester") {
        None | Some("may_not") => false,
        Some("may") => true,
        Some(other) => return Err(format!("`@requester` is \"may\" or \"may_not\", not \"{other}\"")),
    };
    Ok(Some(Approval { queue: queue.to_owned(), persons, policy: id.to_owned(), requester_may, form: None }))
}
