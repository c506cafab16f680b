//! What a walk's expressions speak of and its trace does not hold: the fields of every machine it is in, and what each action
//! that waits for another machine was given.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Machine, Machines, Scope};
use crate::expression::ExpressionError;
use crate::id::{ActionName, StateName};
use crate::walk::Frame;

/// The fields of a walk, one level for each of its frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Course {
    levels: Vec<Level>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Level {
    fields: Value,
    /// What the action of the level below was given that waits for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waits: Option<Known>,
}

/// What is known of an action that is being taken, beside the fields. What is not known is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    /// What the agent gave.
    pub inputs: Value,
    /// What the calls of its setup gave, by their names.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub setup: Value,
    /// What it gave.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub result: Value,
}

/// What a move leaves to the moves after it. Recorded beside the trace, it gives the fields back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// The fields that are written.
    pub fields: Map<String, Value>,
    /// Where it enters another machine: what the action was given that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Known>,
}

impl Known {
    /// The same with those fields, for expressions.
    pub fn over<'a>(&'a self, state: &'a Value) -> Scope<'a> {
        Scope { state, inputs: &self.inputs, setup: &self.setup, result: &self.result }
    }
}

impl Course {
    /// The beginning of a walk, with what it is given beside the machine's own fields.
    pub fn begin(machine: &Machine, given: Map<String, Value>) -> Self {
        Self { levels: vec![Level::of(machine, given, None)] }
    }

    /// The fields of the machine it is in.
    pub fn fields(&self) -> &Value {
        self.levels.last().map_or(&Value::Null, |level| &level.fields)
    }

    /// The fields of every machine it is in, the one it began in first.
    pub fn levels(&self) -> impl Iterator<Item = &Value> {
        self.levels.iter().map(|level| &level.fields)
    }

    /// Where an action leads by what it gave: the innermost state first, and one more for each machine that it ends. Also what
    /// that writes.
    pub fn leads(
        &self,
        machines: &Machines,
        frames: &[Frame],
        action: &ActionName,
        known: &Known,
    ) -> Result<(Vec<StateName>, Written), Lost> {
        let mut to = Vec::new();
        let (mut action, mut known) = (action.clone(), known.clone());
        for (frame, level) in frames.iter().zip(&self.levels).rev() {
            let machine = machines.get(&frame.machine).ok_or(Lost::Nowhere)?;
            let (_, taken) = machine.action(action.as_str()).ok_or(Lost::Nowhere)?;
            let (state, fields) = taken.leads(known.over(&level.fields))?;
            to.push(state.clone());
            let via = frame.via.as_ref().filter(|_| machine.is_terminal(state));
            let (Some(via), Some(waits)) = (via, &level.waits) else {
                return Ok((to, Written { fields, waits: None }));
            };
            let mut left = level.fields.clone();
            extend(&mut left, fields);
            action = via.clone();
            known = Known { result: json!({ "state": state, "fields": left }), ..waits.clone() };
        }
        Err(Lost::Nowhere)
    }

    /// What an action leaves that enters another machine.
    pub fn enters(&self, machine: &Machine, action: &ActionName, known: &Known) -> Result<Written, Lost> {
        let (_, taken) = machine.action(action.as_str()).ok_or(Lost::Nowhere)?;
        let fields = taken.given(known.over(self.fields()))?;
        Ok(Written { fields, waits: Some(Known { result: Value::Null, ..known.clone() }) })
    }

    /// Goes on by a move that led to that many states.
    pub fn arrive(&mut self, states: usize, written: Written) {
        let left = self.levels.len().saturating_sub(states.saturating_sub(1)).max(1);
        self.levels.truncate(left);
        if let Some(level) = self.levels.last_mut() {
            extend(&mut level.fields, written.fields);
        }
    }

    /// Goes on by a move that entered that machine.
    pub fn enter(&mut self, machine: &Machine, written: Written) {
        self.levels.push(Level::of(machine, written.fields, Some(written.waits.unwrap_or_default())));
    }
}

/// Why it cannot be said where an action leads.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// An expression gives no answer.
    #[error(transparent)]
    Unclear(#[from] ExpressionError),
    /// The walk is not where its machines know their way.
    #[error("the machine has no such action")]
    Nowhere,
}

impl Level {
    fn of(machine: &Machine, given: Map<String, Value>, waits: Option<Known>) -> Self {
        let mut fields = Value::Object(machine.begin().fields);
        extend(&mut fields, given);
        Self { fields, waits }
    }
}

fn extend(fields: &mut Value, more: Map<String, Value>) {
    match fields {
        Value::Object(fields) => fields.extend(more),
        other => *other = Value::Object(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{ActionSpec, MachineSpec};

    fn frame(machine: &str, state: &str, via: Option<&str>) -> Frame {
        let via = via.map(ActionName::new);
        Frame { machine: machine.into(), state: state.into(), moves: 0, taken: Default::default(), via }
    }

    #[test]
    fn a_machine_that_ends_gives_its_fields_to_the_one_that_waits_for_it() {
        let refund = MachineSpec::new("asked")
            .terminal(["done"])
            .field("order", Value::Null)
            .action("pay_back", ActionSpec::new(["asked"], "done").writes("sum", "inputs.sum"));
        let order = MachineSpec::new("sold").terminal(["back"]).action(
            "take_back",
            ActionSpec::new(["sold"], "back")
                .machine("refund")
                .arg("order", "inputs.order")
                .writes("note", "inputs.order + ': ' + string(result.fields.sum) + ' ' + result.state"),
        );
        let machines = Machines::read(&[("order".into(), order), ("refund".into(), refund)].into()).unwrap();
        let get = |name: &str| machines.get(&name.into()).unwrap();
        let mut course = Course::begin(get("order"), Map::new());
        let known = |inputs: Value| Known { inputs, ..Known::default() };

        let entered = course.enters(get("order"), &"take_back".into(), &known(json!({ "order": "o1" }))).unwrap();
        let entered: Written = serde_json::from_value(serde_json::to_value(entered).unwrap()).unwrap();
        course.enter(get("refund"), entered);
        assert_eq!(course.fields(), &json!({ "order": "o1" }));

        let frames = [frame("order", "sold", None), frame("refund", "asked", Some("take_back"))];
        let (to, written) = course.leads(&machines, &frames, &"pay_back".into(), &known(json!({ "sum": 3 }))).unwrap();
        assert_eq!(to, ["done".into(), "back".into()]);
        course.arrive(to.len(), written);
        assert_eq!(course.fields(), &json!({ "note": "o1: 3 done" }));
        assert!(course.leads(&machines, &frames[..1], &"pay_back".into(), &Known::default()).is_err());
    }
}
