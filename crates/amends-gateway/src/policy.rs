//! Policies decide each call: Cedar, compiled when the configuration is read, evaluated once when a call is admitted.
//!
//! The principal is who calls, the resource is the tool, and so is the action: an action of its own for each tool lets a policy be
//! checked against what that tool takes. Nothing is permitted that no policy permits, and whatever cannot be evaluated is denied.

mod moment;
mod number;
mod read;
mod schema;
mod shape;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use amends_core::contract::EffectKind;
use amends_core::failure::bounded;
use amends_core::gates::{Approval, Ruling};
use amends_core::{Principal, Timestamp};
use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, EntityId, EntityTypeName, EntityUid, PolicyId, PolicySet, Request,
    RestrictedExpression,
};
use serde_json::Value;

pub use moment::Moment;
pub use read::PolicyText;
pub use schema::{Finding, KnownTool, Level, schema};
pub use shape::Shape;

/// The actions that stand for many: every call, those that only read, and those that may change something.
const GROUPS: [&str; 3] = ["call", "read", "write"];

/// Policies that were read and can be evaluated.
#[derive(Debug)]
pub struct Policies {
    set: PolicySet,
    /// The permits that want somebody's approval, by their ids.
    approvals: HashMap<String, Approval>,
    texts: Vec<PolicyText>,
    /// The groups of principals.
    groups: BTreeMap<Principal, Vec<String>>,
    names: Names,
    authorizer: Authorizer,
}

/// What a policy is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Who calls.
    pub principal: &'a Principal,
    /// Whose they are, where there are tenants.
    pub tenant: Option<&'a str>,
    /// What is called.
    pub tool: ToolFacts<'a>,
    /// Its arguments.
    pub arguments: &'a Value,
    /// From where.
    pub origin: Origin<'a>,
    /// What the token is good for that was shown, in its issuer's words.
    pub scopes: &'a BTreeSet<String>,
    /// When.
    pub now: Timestamp,
}

/// What a policy knows of a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolFacts<'a> {
    /// Its served name.
    pub name: &'a str,
    /// Where it lives.
    pub upstream: &'a str,
    /// What it does.
    pub effect: EffectKind,
    /// Whether it can be undone.
    pub reversible: bool,
    /// Whether an operator declared it.
    pub declared: bool,
    /// What it takes.
    pub shape: &'a Shape,
}

/// From where a call comes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin<'a> {
    /// The session.
    pub session: &'a str,
    /// The door.
    pub door: &'a str,
    /// The move it is made for.
    pub step: Option<Step<'a>>,
}

/// The move of a machine that a call is made for.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The machine.
    pub machine: &'a str,
    /// The action.
    pub action: &'a str,
    /// The state it is taken in.
    pub state: &'a str,
}

/// What the policies say of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It may be sent.
    Permitted {
        /// By which policies.
        by: Vec<String>,
    },
    /// It may be sent once somebody said yes.
    Approval(Box<Approval>),
    /// It may not.
    Denied(Box<Ruling>),
}

/// The types of entities, read once.
#[derive(Debug)]
struct Names {
    principal: EntityTypeName,
    tenant: EntityTypeName,
    group: EntityTypeName,
    tool: EntityTypeName,
    upstream: EntityTypeName,
    action: EntityTypeName,
}

impl Policies {
    /// What they say of a call. It does not fail: what cannot be evaluated is denied.
    pub fn decide(&self, asked: &Asked<'_>) -> Decided {
        let (request, entities) = match self.request(asked) {
            Ok(asked) => asked,
            Err(error) => {
                let reasons = vec![bounded(&format!("the call cannot be put to the policies: {error}"))];
                return Decided::Denied(Box::new(Ruling { policies: Vec::new(), reasons }));
            }
        };
        let response = self.authorizer.is_authorized(&request, &self.set, &entities);
        // Cedar passes over a policy that it cannot evaluate. Had that been one that forbids, the call would go through.
        let errors: Vec<String> = response.diagnostics().errors().map(|error| bounded(&error.to_string())).collect();
        let mut by: Vec<String> = response.diagnostics().reason().map(|id| name_of(id).to_owned()).collect();
        by.sort();
        if !errors.is_empty() || response.decision() == Decision::Deny {
            let own = by.iter().filter_map(|id| self.annotation(id, "reason"));
            let reasons = own.map(str::to_owned).chain(errors).collect();
            let policies = if response.decision() == Decision::Deny { by } else { self.unevaluated(&response) };
            return Decided::Denied(Box::new(Ruling { policies, reasons }));
        }
        let wanted = by.iter().filter_map(|id| self.approvals.get(id)).cloned();
        match wanted.reduce(stricter) {
            Some(approval) => Decided::Approval(Box::new(approval)),
            None => Decided::Permitted { by },
        }
    }

    /// The texts they were read from.
    pub fn texts(&self) -> &[PolicyText] {
        &self.texts
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.set.num_of_policies()
    }

    /// Their ids.
    pub fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.set.policies().map(|policy| name_of(policy.id()).to_owned()).collect();
        ids.sort();
        ids
    }

    fn unevaluated(&self, response: &cedar_policy::Response) -> Vec<String> {
        let failed = response.diagnostics().errors().map(|error| match error {
            cedar_policy::AuthorizationError::PolicyEvaluationError(error) => name_of(error.policy_id()).to_owned(),
        });
        failed.collect()
    }

    fn annotation(&self, id: &str, key: &str) -> Option<&str> {
        self.set.annotation(&PolicyId::new(id), key)
    }

    fn request(&self, asked: &Asked<'_>) -> Result<(Request, Entities), String> {
        let Asked { principal, tenant, tool, arguments, origin, scopes, now } = asked;
        let names = &self.names;
        let groups = self.groups.get(*principal).map(Vec::as_slice).unwrap_or_default();
        let who = uid(&names.principal, principal.as_str());
        let attributes = HashMap::from([
            ("name".to_owned(), string(principal.as_str())),
            ("groups".to_owned(), RestrictedExpression::new_set(groups.iter().map(|group| string(group)))),
        ]);
        let of = groups.iter().map(|group| uid(&names.group, group));
        let of: HashSet<_> = of.chain(tenant.map(|tenant| uid(&names.tenant, tenant))).collect();
        let said = |error: &dyn std::error::Error| error.to_string();
        let who_it_is = Entity::new(who.clone(), attributes, of).map_err(|error| said(&error))?;

        let what = uid(&names.tool, tool.name);
        let attributes = HashMap::from([
            ("name".to_owned(), string(tool.name)),
            ("upstream".to_owned(), string(tool.upstream)),
            ("effect".to_owned(), string(tool.effect.as_str())),
            ("reversible".to_owned(), RestrictedExpression::new_bool(tool.reversible)),
            ("declared".to_owned(), RestrictedExpression::new_bool(tool.declared)),
        ]);
        let at = HashSet::from([uid(&names.upstream, tool.upstream)]);
        let what_it_is = Entity::new(what.clone(), attributes, at).map_err(|error| said(&error))?;

        let action = uid(&names.action, &action_name(tool.name));
        let stands_for = groups_of(tool.effect).map(|group| uid(&names.action, group));
        let action_it_is = Entity::new_no_attrs(action.clone(), stands_for.into_iter().collect());

        let moment = Moment::of(*now);
        let mut context = vec![
            ("args".to_owned(), tool.shape.arguments(arguments)?),
            ("session".to_owned(), string(origin.session)),
            ("door".to_owned(), string(origin.door)),
            ("scopes".to_owned(), RestrictedExpression::new_set(scopes.iter().map(|scope| string(scope)))),
            ("now".to_owned(), RestrictedExpression::new_datetime(&moment.text)),
            ("hour".to_owned(), RestrictedExpression::new_long(moment.hour)),
            ("weekday".to_owned(), string(moment.weekday)),
        ];
        if let Some(step) = origin.step {
            let fields = [("machine", step.machine), ("action", step.action), ("state", step.state)];
            let fields = fields.map(|(name, value)| (name.to_owned(), string(value)));
            context.push(("step".to_owned(), RestrictedExpression::new_record(fields).map_err(|error| said(&error))?));
        }
        let context = Context::from_pairs(context).map_err(|error| said(&error))?;
        let request = Request::new(who, action, what, context, None).map_err(|error| said(&error))?;
        let entities = Entities::from_entities([who_it_is, what_it_is, action_it_is], None);
        Ok((request, entities.map_err(|error| said(&error))?))
    }
}

impl Names {
    fn new() -> Self {
        let name = |text: &str| text.parse().expect("the names are in this file, and tested");
        Self {
            principal: name("Principal"),
            tenant: name("Tenant"),
            group: name("Group"),
            tool: name("Tool"),
            upstream: name("Upstream"),
            action: name("Action"),
        }
    }
}

/// The action that a tool's calls are. A tool that is named like one of the groups stands aside.
fn action_name(tool: &str) -> String {
    if GROUPS.contains(&tool) { format!("tool:{tool}") } else { tool.to_owned() }
}

fn groups_of(effect: EffectKind) -> [&'static str; 2] {
    ["call", if effect.is_read() { "read" } else { "write" }]
}

/// The stricter of two approvals: more persons, nobody's own, and the queue of whichever asks for more of that.
pub(crate) fn stricter(one: Approval, other: Approval) -> Approval {
    let weight = |approval: &Approval| (approval.persons, !approval.requester_may);
    let (persons, requester_may) = (one.persons.max(other.persons), one.requester_may && other.requester_may);
    let form = one.form.clone().or_else(|| other.form.clone());
    let strict = if weight(&other) > weight(&one) { other } else { one };
    Approval { persons, requester_may, form, ..strict }
}

/// The id of a policy as a text.
fn name_of(id: &PolicyId) -> &str {
    id.as_ref()
}

fn uid(kind: &EntityTypeName, name: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(name))
}

fn string(text: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(text.to_owned())
}

#[cfg(test)]
mod tests;
