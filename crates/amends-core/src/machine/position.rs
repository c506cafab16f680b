//! Where a machine is, what may be done there, and where that leads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Action, Machine, Target};
use crate::expression::{Expression, ExpressionError};
use crate::id::{ActionName, StateName};
use crate::nearest::nearest;

/// Where a machine is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// Its state.
    pub state: StateName,
    /// Its fields.
    pub fields: Map<String, Value>,
    /// How many moves led here.
    pub seq: u64,
    /// How often each action was taken.
    pub taken: BTreeMap<ActionName, u32>,
}

/// A legal move.
#[derive(Clone, Debug, PartialEq)]
pub struct Move<'a> {
    /// Its name.
    pub name: &'a ActionName,
    /// What it takes and does.
    pub action: &'a Action,
}

/// Why an action is not taken.
#[derive(Clone, Debug, PartialEq)]
pub enum No {
    /// The machine has no such action.
    Unknown {
        /// The nearest it has.
        nearest: Vec<String>,
    },
    /// The machine is elsewhere than the agent thinks.
    Stale {
        /// How many moves led to where it is.
        seq: u64,
    },
    /// It is over.
    Over,
    /// The action does not lead away from here.
    NotFromHere,
    /// Its guard does not hold.
    Guarded {
        /// The guard.
        guard: String,
        /// Why it gave no answer, where it gave none.
        reason: Option<String>,
    },
    /// A bound is reached.
    Exhausted {
        /// Which: `steps`, which are `turns` in a stage, `loops` or `times`.
        bound: &'static str,
        /// How far it reaches.
        most: u32,
    },
}

impl Machine {
    /// Where it begins.
    pub fn begin(&self) -> Position {
        Position { state: self.initial.clone(), fields: self.fields.clone(), seq: 0, taken: BTreeMap::new() }
    }

    /// What may be done there. An action whose guard depends on the inputs is among it.
    pub fn moves(&self, at: &Position) -> Vec<Move<'_>> {
        let all = self.actions.iter().map(|(name, action)| Move { name, action });
        all.filter(|it| self.allows(&at.state, at.seq, &at.taken, it).is_ok() && it.action.may_hold(at)).collect()
    }

    /// The action of that name, if it may be taken there as far as can be said without its inputs.
    pub fn find(&self, at: &Position, name: &str, expect_seq: Option<u64>) -> Result<Move<'_>, No> {
        let Some((name, action)) = self.action(name) else {
            return Err(No::Unknown { nearest: nearest(name, self.actions.keys().map(ActionName::as_str)) });
        };
        let found = Move { name, action };
        match expect_seq {
            Some(seq) if seq != at.seq => Err(No::Stale { seq: at.seq }),
            _ => self.allows(&at.state, at.seq, &at.taken, &found).map(|()| found),
        }
    }

    /// Whether it may be taken in that state after so many moves, as far as can be said without fields and inputs.
    pub fn allows(
        &self,
        state: &StateName,
        moves: u64,
        taken: &BTreeMap<ActionName, u32>,
        it: &Move<'_>,
    ) -> Result<(), No> {
        if self.is_terminal(state) {
            return Err(No::Over);
        }
        if !it.action.from.contains(state) {
            return Err(No::NotFromHere);
        }
        let taken = taken.get(it.name).copied().unwrap_or(0);
        let steps = u32::try_from(moves).unwrap_or(u32::MAX);
        let in_all = if self.is_stage() { "turns" } else { "steps" };
        let bounds = [
            ("times", taken, it.action.times_max),
            ("loops", taken, self.bounds.loops_max),
            (in_all, steps, self.bounds.steps_max.filter(|_| !self.ends_stage(it.action))),
        ];
        match bounds.into_iter().find_map(|(bound, is, most)| most.filter(|most| is >= *most).map(|most| (bound, most)))
        {
            Some((bound, most)) => Err(No::Exhausted { bound, most }),
            None => Ok(()),
        }
    }
}

impl Action {
    /// Whether its guard holds. One that gives no answer does not.
    pub fn admits(&self, at: &Position, inputs: &Value) -> Result<(), No> {
        let Some(guard) = &self.guard else {
            return Ok(());
        };
        let no = |reason| Err(No::Guarded { guard: guard.source().to_owned(), reason });
        match guard.evaluate(&[("state", &at.state_value()), ("inputs", inputs)]) {
            Ok(Value::Bool(true)) => Ok(()),
            Ok(Value::Bool(false)) => no(None),
            Ok(_) => no(Some("it is neither true nor false".into())),
            Err(error) => no(Some(error.to_string())),
        }
    }

    /// Whether its guard holds as far as it does not speak of the inputs.
    fn may_hold(&self, at: &Position) -> bool {
        if !self.guard.as_ref().is_some_and(|guard| guard.mentions("inputs")) {
            return self.admits(at, &Value::Null).is_ok();
        }
        if self.guard_over_fields.is_empty() {
            return true;
        }
        let state = at.state_value();
        let holds = |part: &Expression| matches!(part.evaluate(&[("state", &state)]), Ok(Value::Bool(true)));
        self.guard_over_fields.iter().all(holds)
    }

    /// Where it leads, with what it gave. An expression that gives no answer leads nowhere.
    pub fn arrive(
        &self,
        name: &ActionName,
        at: &Position,
        inputs: &Value,
        result: &Value,
    ) -> Result<Position, ExpressionError> {
        let before = at.state_value();
        let ask = |expression: &Expression| {
            expression.evaluate(&[("state", &before), ("inputs", inputs), ("result", result)])
        };
        let mut fields = at.fields.clone();
        for (field, expression) in &self.writes {
            fields.insert(field.clone(), ask(expression)?);
        }
        if let Value::Object(inputs) = inputs
            && self.keeps_inputs
        {
            fields.extend(inputs.clone());
        }
        let mut taken = at.taken.clone();
        *taken.entry(name.clone()).or_default() += 1;
        Ok(Position { state: self.to.chosen(ask)?.clone(), fields, seq: at.seq + 1, taken })
    }
}

impl Target {
    pub(super) fn chosen(
        &self,
        ask: impl Fn(&Expression) -> Result<Value, ExpressionError>,
    ) -> Result<&StateName, ExpressionError> {
        let branches = match self {
            Self::One(state) => return Ok(state),
            Self::Choice(branches) => branches,
        };
        for branch in branches {
            match &branch.when {
                Some(when) if ask(when)? != Value::Bool(true) => {}
                _ => return Ok(&branch.state),
            }
        }
        // `Machine::read` takes no choice without a last target that always holds.
        Ok(&branches.last().expect("a choice has a last target").state)
    }
}

impl Position {
    /// Its fields as expressions see them, under `state`.
    fn state_value(&self) -> Value {
        Value::Object(self.fields.clone())
    }
}
