//! What is judged beside the dispatcher before an action is taken, and before a tool is called: whether the inputs fit, whether the
//! guard holds, and whether the arguments fit.

use std::collections::{BTreeSet, HashMap};

use amends_core::machine::{Action, Machine, Machines, unfit};
use amends_core::nearest::nearest;
use amends_core::{Gates, Refusal, ToolName};
use amends_wire::Schema;
use serde_json::Value;

use super::spec::{StepSpec, ToolSpec};
use super::telling::Telling;
use super::{Scenario, ScenarioError};

impl Telling<'_> {
    pub(super) fn gates(&mut self, step: &StepSpec, inputs: &Value) -> Gates {
        self.guard = None;
        let refusal = step.action.as_deref().and_then(|action| self.refusal(action, inputs));
        Gates { refusal: refusal.map(Box::new), ..Gates::default() }
    }

    fn refusal(&mut self, name: &str, inputs: &Value) -> Option<Refusal> {
        let (machine, at) = self.position()?;
        let machines = self.machines.clone();
        let (name, action) = machines.get(&machine)?.action(name)?;
        let schema = action.input.as_ref().and_then(|schema| Schema::from_value(schema.clone()).ok());
        let faults = schema.map(|schema| schema.check(inputs)).filter(|faults| !faults.is_empty());
        let unfit = faults.map(|faults| unfit(name, faults));
        let guarded = action.guarded(&at, inputs).filter(|guarded| guarded.counts(unfit.is_some()));
        self.guard = guarded.as_ref().map(|guarded| guarded.guard.clone());
        // Nothing of a scenario is private.
        let Some(guarded) = guarded else { return unfit };
        let no = guarded.refusal(name, |_, value| Some(value?.to_string()));
        Some(match unfit {
            Some(unfit) => guarded.beside(unfit, no),
            None => no,
        })
    }

    /// The refusal of arguments that a tool does not take, as far as the scenario says what it takes.
    pub(super) fn not_taken(&self, tool: &ToolName, args: &Value) -> Option<Refusal> {
        let schema = self.takes.get(tool)?;
        schema.refusal(tool.as_str(), args)
    }
}

/// What the arguments of tools are checked with. A tool that no machine calls is none that was meant.
pub(super) fn takes(scenario: &Scenario, machines: &Machines) -> Result<HashMap<ToolName, Schema>, ScenarioError> {
    let actions = || machines.all().flat_map(Machine::actions).map(|(_, action)| action);
    let known: BTreeSet<&str> = actions().flat_map(Action::tools).map(ToolName::as_str).collect();
    if let Some(tool) = scenario.tools.keys().find(|tool| !known.contains(tool.as_str())) {
        let near = nearest(tool, known).into_iter().next();
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        return Err(ScenarioError::Uncalled { tool: tool.clone(), hint });
    }
    // A schema that cannot be used was a mistake when the scenario was read.
    let schema = |(name, tool): (&String, &ToolSpec)| Some((ToolName::new(name.as_str()), tool.schema()?.ok()?));
    Ok(scenario.tools.iter().filter_map(schema).collect())
}
