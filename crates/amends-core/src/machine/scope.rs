//! What an action's expressions say of what is known. They are evaluated beside the dispatcher, which sees their answers.

use serde_json::{Map, Value};

use super::{Action, ToolUse};
use crate::expression::{Expression, ExpressionError};
use crate::id::StateName;

/// What the expressions of an action speak of. What is not known yet, or does not exist, is null.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The machine's fields.
    pub state: &'a Value,
    /// What the agent gave.
    pub inputs: &'a Value,
    /// What the calls of the setup gave, by their names.
    pub setup: &'a Value,
    /// What the action gave.
    pub result: &'a Value,
}

/// What a gate or an assert says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// `'proceed'` or `'ok'`.
    GoOn,
    /// `'retry'`
    Retry,
    /// `'skip'`
    Skip,
    /// `'fail'`
    Fail,
}

impl Scope<'_> {
    /// What an expression gives.
    pub fn ask(&self, expression: &Expression) -> Result<Value, ExpressionError> {
        let Self { state, inputs, setup, result } = self;
        expression.evaluate(&[("state", state), ("inputs", inputs), ("setup", setup), ("result", result)])
    }

    fn members<'e>(
        &self,
        expressions: impl IntoIterator<Item = (&'e String, &'e Expression)>,
    ) -> Result<Map<String, Value>, ExpressionError> {
        expressions.into_iter().map(|(name, expression)| Ok((name.clone(), self.ask(expression)?))).collect()
    }

    fn said(&self, expression: Option<&Expression>) -> Result<Said, ExpressionError> {
        let Some(expression) = expression else { return Ok(Said::GoOn) };
        let said = self.ask(expression)?;
        Ok(match said.as_str() {
            Some("proceed" | "ok") => Said::GoOn,
            Some("retry") => Said::Retry,
            Some("skip") => Said::Skip,
            Some("fail") => Said::Fail,
            Some(_) | None => {
                let (expression, reason) = (expression.source().to_owned(), format!("`{said}` is no word for it"));
                return Err(ExpressionError::NoAnswer { expression, reason });
            }
        })
    }
}

impl ToolUse {
    /// The tool's arguments.
    pub fn arguments(&self, scope: Scope<'_>) -> Result<Map<String, Value>, ExpressionError> {
        match scope.inputs {
            Value::Object(inputs) if self.whole => Ok(inputs.clone()),
            _ => scope.members(&self.args),
        }
    }
}

impl Action {
    /// What the function is given, or the fields that the other machine begins with beside its own.
    pub fn given(&self, scope: Scope<'_>) -> Result<Map<String, Value>, ExpressionError> {
        scope.members(&self.args)
    }

    /// Whether to act. Without a gate, it is acted.
    pub fn gated(&self, scope: Scope<'_>) -> Result<Said, ExpressionError> {
        scope.said(self.stage.gate.as_ref())
    }

    /// Whether it was well done. Without an assert, it was.
    pub fn asserted(&self, scope: Scope<'_>) -> Result<Said, ExpressionError> {
        scope.said(self.stage.assert.as_ref())
    }

    /// Where it leads, and what it writes into the fields.
    pub fn leads(&self, scope: Scope<'_>) -> Result<(&StateName, Map<String, Value>), ExpressionError> {
        let mut written = scope.members(&self.writes)?;
        if let Value::Object(inputs) = scope.inputs
            && self.keeps_inputs
        {
            written.extend(inputs.clone());
        }
        Ok((self.to.chosen(|when| scope.ask(when))?, written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{ActionSpec, Machine, MachineSpec};
    use serde_json::json;

    #[test]
    fn an_action_is_weighed_over_what_is_known() {
        let act = ActionSpec {
            setup: vec![crate::machine::LegSpec { tool: "get".into(), ..Default::default() }],
            gate: Some("setup.get.open ? 'proceed' : 'skip'".into()),
            assert: Some("result.word".into()),
            args: [("id".to_owned(), "inputs.id".to_owned())].into(),
            writes: [("seen".to_owned(), "result == null ? 0 : setup.get.seen + 1".to_owned())].into(),
            tool: Some("put".into()),
            ..ActionSpec::new(["a"], "b")
        };
        let machine = Machine::read("m", &MachineSpec::new("a").terminal(["b"]).action("act", act)).unwrap();
        let (_, act) = machine.action("act").unwrap();
        let (inputs, setup) = (json!({ "id": 7 }), json!({ "get": { "open": true, "seen": 1 } }));
        let none = Value::Null;
        let scope = Scope { state: &json!({}), inputs: &inputs, setup: &setup, result: &none };
        assert_eq!(act.gated(scope).unwrap(), Said::GoOn);
        let put = act.does.tools().next().unwrap();
        assert_eq!(Value::Object(put.arguments(scope).unwrap()), json!({ "id": 7 }));
        assert_eq!(act.leads(scope).unwrap(), (&"b".into(), json!({ "seen": 0 }).as_object().unwrap().clone()));
        let said = |word: Value| act.asserted(Scope { result: &json!({ "word": word }), ..scope });
        assert_eq!(said(json!("retry")).unwrap(), Said::Retry);
        assert_eq!(said(json!("ok")).unwrap(), Said::GoOn);
        assert!(said(json!("perhaps")).unwrap_err().to_string().contains("is no word for it"));
        assert!(said(json!(true)).is_err() && act.asserted(scope).is_err());
        let shut = json!({ "get": { "open": false } });
        assert_eq!(act.gated(Scope { setup: &shut, ..scope }).unwrap(), Said::Skip);
    }
}
