//! Whether what a machine gives its tools is what they take.

use serde_json::Value;

use super::inputs::{closed_properties, is_of};
use super::{Finding, Machine, ToolUse};
use crate::expression::Expression;
use crate::id::{ActionName, ToolName};
use crate::nearest::nearest;

impl Machine {
    /// What does not fit the schemas of the tools it calls. `schema` is what a tool takes from its callers; nothing where
    /// that is not known.
    pub fn misfits(&self, schema: impl Fn(&ToolName) -> Option<Value>) -> Vec<Finding> {
        let mut found = Vec::new();
        for (name, action) in &self.actions {
            let acts = action.does.tools().map(|used| ("args", used));
            let setup = action.stage.setup.iter().map(|(_, used)| ("setup", used));
            let exit = action.stage.exit.iter().map(|(_, used)| ("exit", used));
            for (part, used) in acts.chain(setup).chain(exit).filter(|(_, used)| !used.whole) {
                if let Some(schema) = schema(&used.tool) {
                    misfits(name, part, used, &schema, &mut found);
                }
            }
        }
        found
    }
}

fn misfits(name: &ActionName, part: &str, used: &ToolUse, schema: &Value, found: &mut Vec<Finding>) {
    let tool = &used.tool;
    let mut wrong = |message: String, fix: String| {
        found.push(Finding::error(&["actions", name.as_str(), part], message, fix));
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(known) = closed_properties(Some(schema)) {
        for argument in used.args.keys().filter(|argument| !known.contains(&argument.as_str())) {
            let fix = match nearest(argument, known.iter().copied()).first() {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => "it takes none".to_owned(),
                None => format!("it takes `{}`", known.join("`, `")),
            };
            wrong(format!("`{tool}` takes no `{argument}`"), fix);
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    for lacking in required.filter(|required| !used.args.contains_key(*required)) {
        wrong(
            format!("`{tool}` requires `{lacking}`"),
            format!("give it: `args = {{ {lacking} = \"inputs.{lacking}\" }}`"),
        );
    }
    for (argument, expression) in &used.args {
        let Some(property) = properties.and_then(|all| all.get(argument)) else { continue };
        if let Some((value, wanted)) =
            always(expression).and_then(|value| unfit(&value, property).map(|it| (value, it)))
        {
            wrong(format!("`{argument}` is always `{value}`, and `{tool}` takes {wanted}"), "give it another".into());
        }
    }
}

/// The value of an expression that speaks of nothing.
fn always(expression: &Expression) -> Option<Value> {
    expression.variables().is_empty().then(|| expression.evaluate(&[]).ok()).flatten()
}

/// What a property takes, if that value is not it.
fn unfit(value: &Value, property: &Value) -> Option<String> {
    if let Some(choices) = property.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        return Some(format!("one of `{}`", choices.join("`, `")));
    }
    let kind = property.get("type").and_then(Value::as_str)?;
    (!is_of(value, kind)).then(|| format!("a value of type `{kind}`"))
}
