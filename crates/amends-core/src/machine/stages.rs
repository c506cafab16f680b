//! A stage in which the agent itself calls tools, as a machine of its own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Map;

use super::inputs::requires;
use super::{Action, Allowed, Bounds, Does, Drift, Machine, Mode, Stage, Target, ToolUse};
use crate::expression::Expression;
use crate::id::{ActionName, MachineName, StateName};

/// The action that ends a stage.
pub(super) const COMPLETE: &str = "complete";
const ACTING: &str = "acting";
const DONE: &str = "done";

impl Machine {
    /// The machine of a stage in which the agent itself calls tools; nothing for any other action. It is named
    /// `MACHINE.ACTION`. Each allowed tool is an action of it, and `complete` ends it.
    pub fn stage(&self, action: &ActionName) -> Option<Self> {
        let Does::Allowed(allowed) = &self.actions.get(action)?.does else {
            return None;
        };
        let tools = allowed.tools.iter().map(|tool| {
            let does = Does::Tool(ToolUse { tool: tool.clone(), args: BTreeMap::new(), whole: true });
            (ActionName::new(tool.as_str()), plain(ACTING, does))
        });
        let actions = tools.chain([(ActionName::new(COMPLETE), allowed.complete())]).collect();
        Some(Self {
            name: stage_name(&self.name, action),
            description: self.actions[action].description.clone(),
            initial: StateName::new(ACTING),
            terminal: BTreeSet::from([StateName::new(DONE)]),
            mode: Mode::Step,
            drift: Drift::Keep,
            schema: None,
            fields: Map::new(),
            bounds: Bounds { steps_max: allowed.turns_max, ..Bounds::default() },
            actions,
        })
    }

    /// Whether it is the machine of a stage.
    pub fn is_stage(&self) -> bool {
        // The name of a declared machine has no dot in it.
        self.name.as_str().contains('.')
    }

    /// Whether the action ends it, wherever it leads. The bound of a stage's steps is for its tools: its end is always free.
    pub(crate) fn ends_stage(&self, action: &Action) -> bool {
        self.is_stage() && action.to.states().all(|state| self.is_terminal(state))
    }
}

/// The name of the machine of a stage.
pub(super) fn stage_name(machine: &MachineName, action: &ActionName) -> MachineName {
    MachineName::new(format!("{machine}.{action}"))
}

impl Allowed {
    /// What the agent says when it is done: that becomes the fields. What it may leave out and does is null.
    fn complete(&self) -> Action {
        let properties = self.completion.as_ref().and_then(|schema| schema.get("properties")?.as_object());
        let optional = properties.into_iter().flatten().filter_map(|(name, _)| {
            let required = self.completion.as_ref().is_some_and(|schema| requires(schema, name));
            (!required).then(|| Some((name.clone(), Expression::parse("null").ok()?))).flatten()
        });
        let input = self.completion.clone();
        Action { input, writes: optional.collect(), keeps_inputs: true, ..plain(DONE, Does::Nothing) }
    }
}

fn plain(to: &str, does: Does) -> Action {
    Action {
        description: None,
        from: BTreeSet::from([StateName::new(ACTING)]),
        to: Target::One(StateName::new(to)),
        does,
        args: BTreeMap::new(),
        input: None,
        guard: None,
        guard_over_fields: Vec::new(),
        timeout_ms: None,
        writes: BTreeMap::new(),
        keeps_inputs: false,
        reversible: None,
        queue: None,
        times_max: None,
        stage: Stage::default(),
    }
}
