//! Why a guard does not hold.

use serde_json::Value;

use super::Action;
use crate::expression::Expression;
use crate::limits::GUARD_VALUES_MAX;

/// Why a guard does not hold: the part of it that is at fault, and what it speaks of.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmet {
    /// The first of the parts that it joins with `&&` which does not hold, those before that speak of the fields alone; all of it
    /// where there is only one.
    pub part: String,
    /// Whether that is all of it.
    pub whole: bool,
    /// What that part speaks of, by its name; nothing for what is not there.
    pub values: Vec<(String, Option<Value>)>,
    /// Whether that part speaks of the inputs, so that others may make it hold.
    pub over_inputs: bool,
}

impl Action {
    /// Why its guard does not hold over those fields and inputs; nothing where it does.
    pub fn unmet(&self, state: &Value, inputs: &Value) -> Option<Unmet> {
        let guard = self.guard.as_ref()?;
        let asked = |part: &Expression| part.evaluate(&[("state", state), ("inputs", inputs)]).ok();
        if asked(guard) == Some(Value::Bool(true)) {
            return None;
        }
        let parts = guard.conjuncts();
        let whole = parts.len() == 1;
        let parts: Vec<Expression> = parts.into_iter().filter_map(|part| Expression::parse(part).ok()).collect();
        let answers: Vec<Option<Value>> = parts.iter().map(asked).collect();
        // What is plainly false says more than what gives no answer, most of all where no inputs would help.
        let is_false = |at: &usize| answers[*at] == Some(Value::Bool(false));
        let alone = (0..parts.len()).filter(is_false).find(|at| !parts[*at].mentions("inputs"));
        let at = alone
            .or_else(|| (0..parts.len()).find(is_false))
            .or_else(|| answers.iter().position(|answer| *answer != Some(Value::Bool(true))));
        let part = at.map_or(guard, |at| &parts[at]);
        let value = |path: &crate::expression::Path| {
            let of = if path.variable == "state" { state } else { inputs };
            path.find(of).cloned()
        };
        let mut values: Vec<(String, Option<Value>)> = Vec::new();
        for path in part.paths().iter().filter(|path| !path.fields.is_empty()) {
            let name = path.to_string();
            // What is spoken of twice is told once.
            if values.len() < GUARD_VALUES_MAX && values.iter().all(|(told, _)| *told != name) {
                values.push((name, value(path)));
            }
        }
        Some(Unmet { part: part.source().to_owned(), whole, values, over_inputs: part.mentions("inputs") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{ActionSpec, Machine, MachineSpec};
    use serde_json::json;

    fn unmet(guard: &str, state: Value, inputs: Value) -> Option<(String, bool, Value)> {
        let act = ActionSpec::new(["a"], "b").guard(guard);
        let fields = ["total", "open", "order"].map(|field| (field.to_owned(), Value::Null));
        let spec = MachineSpec { fields: fields.into_iter().collect(), ..MachineSpec::new("a").terminal(["b"]) };
        let machine = Machine::read("m", &spec.action("act", act)).unwrap();
        let unmet = machine.action("act").unwrap().1.unmet(&state, &inputs)?;
        Some((unmet.part, unmet.whole, json!(unmet.values)))
    }

    #[test]
    fn the_part_that_is_false_is_named_with_what_it_speaks_of() {
        let guard = "state.open && inputs.amount <= state.total && inputs.memo != ''";
        let state = json!({ "open": true, "total": 100 });
        let no = unmet(guard, state.clone(), json!({ "amount": 500, "memo": "" })).unwrap();
        let values = json!([["inputs.amount", 500], ["state.total", 100]]);
        assert_eq!(no, ("inputs.amount <= state.total".to_owned(), false, values));
        let lacks = unmet(guard, state.clone(), json!({ "amount": 5 })).unwrap();
        assert_eq!(lacks, ("inputs.memo != ''".to_owned(), false, json!([["inputs.memo", null]])));
        assert_eq!(unmet(guard, state, json!({ "amount": 5, "memo": "x" })), None);
        let alone = unmet("state.order.sum > 3", json!({ "order": { "sum": 1 } }), json!({})).unwrap();
        assert_eq!(alone, ("state.order.sum > 3".to_owned(), true, json!([["state.order.sum", 1]])));
        let twice = unmet("!has(inputs.n) || inputs.n < 9", json!({}), json!({ "n": 9 })).unwrap();
        assert_eq!(twice.2, json!([["inputs.n", 9]]), "what is spoken of more than once is told once");
    }

    #[test]
    fn what_is_false_comes_before_what_gives_no_answer() {
        let no = unmet("inputs.a > 1 && state.open", json!({ "open": false }), json!({})).unwrap();
        assert_eq!(no.0, "state.open");
    }

    #[test]
    fn an_action_that_the_fields_alone_forbid_is_not_offered_whatever_its_inputs_may_be() {
        for (guard, offered) in [
            ("inputs.a > 1 && state.open", false),
            ("inputs.a > 1 || state.open", true),
            ("inputs.a > state.total && !state.open", true),
        ] {
            let act = ActionSpec::new(["a"], "b").guard(guard);
            let fields = [("total".to_owned(), json!(3)), ("open".to_owned(), json!(false))];
            let spec = MachineSpec { fields: fields.into_iter().collect(), ..MachineSpec::new("a").terminal(["b"]) };
            let spec =
                spec.action("act", act).action("open", ActionSpec::new(["a"], "a").writes("open", "true").times(2));
            let machine = Machine::read("m", &spec).unwrap();
            let begun = machine.begin();
            let legal: Vec<&str> = machine.moves(&begun).iter().map(|legal| legal.name.as_str()).collect();
            assert_eq!(legal.contains(&"act"), offered, "{guard}: {legal:?}");
            let unmet = machine.action("act").unwrap().1.unmet(&json!(begun.fields), &json!({ "a": 0 })).unwrap();
            assert_eq!(unmet.over_inputs, offered, "{guard}");
        }
    }
}
