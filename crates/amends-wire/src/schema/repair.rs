//! Arguments that do not fit: put right where the nearest name leaves no choice, else with what is right of them.

use amends_core::limits::NEAREST_MAX;
use serde_json::{Map, Value};

use super::Schema;
use super::fault::{Complaint, What, dotted};

/// How often what is left of arguments is looked at again: what is taken out may make something else wrong.
const ROUNDS_MAX: usize = 8;

/// What becomes of arguments that do not fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mended {
    /// Whether they fit as they are here.
    pub complete: bool,
    /// What is right of them.
    pub args: Map<String, Value>,
    /// The paths that must still be filled in.
    pub missing: Vec<String>,
    /// Whether they do not fit as a whole, so that all of them are to be said again.
    pub whole: bool,
    /// The nearest names of fields that there are not.
    pub fuzzy_matches: Vec<String>,
}

/// The way on from arguments that do not fit.
pub(super) fn mended(schema: &Schema, value: &Value) -> Mended {
    let complaints = schema.complaints(value);
    if let Some(args) = repaired(schema, value, &complaints) {
        return Mended { complete: true, args, ..Mended::default() };
    }
    let mut mended = Mended { args: value.as_object().cloned().unwrap_or_default(), ..Mended::default() };
    let mut complaints = complaints;
    for _ in 0..ROUNDS_MAX {
        for complaint in &complaints {
            mended.leave_out(schema, complaint);
        }
        if mended.whole {
            break;
        }
        complaints = schema.complaints(&Value::Object(mended.args.clone()));
        // What is missing is said to be; what has too few fields gets those.
        let says = |complaint: &Complaint| !matches!(complaint.what, What::Missing | What::TooFew);
        if !complaints.iter().any(says) {
            complaints.iter().for_each(|complaint| mended.leave_out(schema, complaint));
            mended.fuzzy_matches.truncate(NEAREST_MAX);
            return mended;
        }
    }
    Mended { whole: true, ..Mended::default() }
}

impl Mended {
    /// Takes out what is complained of, and says what is to be given instead.
    fn leave_out(&mut self, schema: &Schema, complaint: &Complaint) {
        let Complaint { at, what, said } = complaint;
        match what {
            What::Missing => self.misses(dotted(at)),
            What::TooFew if at.is_empty() => {
                let unsaid: Vec<String> = schema.known().into_iter().map(str::to_owned).collect();
                let unsaid: Vec<String> = unsaid.into_iter().filter(|name| !self.args.contains_key(name)).collect();
                self.whole |= unsaid.is_empty();
                unsaid.into_iter().for_each(|name| self.misses(name));
            }
            What::Misnamed { known } => {
                let Some((name, parent)) = at.split_last() else { return };
                let Some(fields) = within(&mut self.args, parent) else { return };
                fields.remove(name);
                let unsaid = |name: &&String| !fields.contains_key(*name);
                let near: Vec<String> = said.nearest.iter().filter(unsaid).cloned().collect();
                if parent.is_empty() {
                    for near in &said.nearest {
                        if !self.fuzzy_matches.contains(near) {
                            self.fuzzy_matches.push(near.clone());
                        }
                    }
                    return;
                }
                // What was meant there is to be said under another name.
                let meant = if near.is_empty() { known.iter().filter(unsaid).cloned().collect() } else { near };
                if meant.is_empty() {
                    self.take_out(parent);
                }
                let path = |name: &String| dotted(&[parent, std::slice::from_ref(name)].concat());
                meant.iter().for_each(|name| self.misses(path(name)));
            }
            What::Wrong | What::TooFew => self.take_out(at),
        }
    }

    /// Takes out what stands there, or the nearest thing around it that can be taken out: an item of a list cannot.
    fn take_out(&mut self, at: &[String]) {
        for end in (1..=at.len()).rev() {
            let (name, parent) = (&at[end - 1], &at[..end - 1]);
            if let Some(fields) = within(&mut self.args, parent) {
                fields.remove(name);
                return self.misses(dotted(&at[..end]));
            }
        }
        self.whole = true;
    }

    fn misses(&mut self, path: String) {
        let said =
            |missing: &String| path.strip_prefix(missing).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if !self.missing.iter().any(said) {
            let within = format!("{path}.");
            self.missing.retain(|missing| !missing.starts_with(&within));
            self.missing.push(path);
        }
    }
}

/// The object at that place.
fn within<'a>(args: &'a mut Map<String, Value>, at: &[String]) -> Option<&'a mut Map<String, Value>> {
    let Some((first, rest)) = at.split_first() else { return Some(args) };
    rest.iter().try_fold(args.get_mut(first)?, |value, name| member(value, name))?.as_object_mut()
}

/// The arguments with every misspelt field and option replaced by the one name that is near; nothing where that does not
/// make them valid. Whatever else is wrong with them is the agent's to put right.
fn repaired(schema: &Schema, value: &Value, complaints: &[Complaint]) -> Option<Map<String, Value>> {
    if complaints.is_empty() {
        return None;
    }
    let mut args = value.as_object()?.clone();
    // A missing field may be one that is only misspelt: whether it still is shows in the end.
    let unmissed = complaints.iter().filter(|complaint| complaint.what != What::Missing);
    for Complaint { at, what, said } in unmissed {
        let [near] = said.nearest.as_slice() else { return None };
        let (name, parent) = at.split_last()?;
        if let What::Misnamed { .. } = what {
            let fields = within(&mut args, parent).filter(|fields| !fields.contains_key(near))?;
            let moved = fields.remove(name)?;
            fields.insert(near.clone(), moved);
        } else {
            let (first, rest) = at.split_first()?;
            *rest.iter().try_fold(args.get_mut(first)?, |value, name| member(value, name))? =
                Value::String(near.clone());
        }
    }
    schema.is_valid(&Value::Object(args.clone())).then_some(args)
}

fn member<'a>(value: &'a mut Value, name: &String) -> Option<&'a mut Value> {
    match value {
        Value::Object(fields) => fields.get_mut(name),
        Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::schema::Schema;

    fn call(given: &Value) -> Option<Value> {
        let schema = Schema::from_value(json!({
            "type": "object", "additionalProperties": false, "required": ["order", "currency"],
            "properties": {
                "order": {"type": "string"}, "amount": {"type": "number"},
                "currency": {"enum": ["EUR", "USD", "GBP"]},
                "lines": {"type": "array", "items": {"type": "object", "additionalProperties": false,
                    "properties": {"quantity": {"type": "integer"}}}},
            },
        }))
        .unwrap();
        let recovery = schema.recovery("pay", given);
        assert_ne!(recovery.call.is_some(), recovery.template.is_some(), "one of them, never both");
        let call = recovery.call?;
        assert!(schema.is_valid(&Value::Object(call.args.clone())));
        Some(Value::Object(call.args))
    }

    #[test]
    fn names_that_are_nearly_right_make_a_complete_call() {
        let given = json!({"ordr": "o1", "currency": "EURO", "lines": [{"quantty": 2}]});
        assert_eq!(call(&given), Some(json!({"order": "o1", "currency": "EUR", "lines": [{"quantity": 2}]})));
    }

    #[test]
    fn nothing_is_guessed_beyond_names() {
        for given in [
            json!({"order": "o1"}),
            json!({"order": 5, "currency": "EUR"}),
            json!({"order": "o1", "currency": "XYZ"}),
            json!({"order": "o1", "currency": "EUR", "quite_another": 1}),
            json!({"order": "o1", "ordr": "o2", "currency": "EUR"}),
        ] {
            assert_eq!(call(&given), None, "{given}");
        }
    }

    /// The way on from arguments, and whether what is right of them is right as far as it goes.
    fn way(schema: Value, given: &Value) -> (Value, Vec<String>, bool) {
        let schema = Schema::from_value(schema).unwrap();
        let mended = schema.mended(given);
        assert!(!mended.complete, "{given}");
        let left = schema.check(&Value::Object(mended.args.clone()));
        let fine = left.iter().all(|fault| fault.expected == "present" || fault.expected.starts_with("at least"));
        assert!(fine || mended.whole, "{left:?}");
        (Value::Object(mended.args), mended.missing, mended.whole)
    }

    #[test]
    fn what_does_not_fit_as_a_whole_is_to_be_said_again_as_a_whole() {
        let three = json!({"a": 1, "b": 2, "c": 3});
        assert_eq!(way(json!({"maxProperties": 2}), &three), (json!({}), vec![], true));
        assert_eq!(way(json!({"not": {"required": ["a", "b"]}}), &three), (json!({}), vec![], true));
        let inner = json!({"properties": {"in": {"maxProperties": 2}}});
        assert_eq!(way(inner, &json!({"in": three, "x": 1})), (json!({"x": 1}), vec!["in".to_owned()], false));
        let few = json!({"minProperties": 1, "properties": {"a": {}, "b": {}}});
        assert_eq!(way(few, &json!({})), (json!({}), vec!["a".to_owned(), "b".to_owned()], false));
        let template =
            Schema::from_value(json!({"maxProperties": 1, "required": ["a"]})).unwrap().recovery("t", &three);
        assert_eq!(template.template.unwrap().missing, ["a"], "what must be there is named");
    }

    #[test]
    fn a_name_that_cannot_be_there_is_taken_out_whatever_it_is_made_of() {
        let closed = json!({"properties": {"a": {}}, "additionalProperties": false});
        assert_eq!(way(closed, &json!({"a": 1, "x.y": 2})), (json!({"a": 1}), vec![], false));
        let names = json!({"propertyNames": {"pattern": "^[a-z]+$"}});
        assert_eq!(way(names, &json!({"ok": 1, "N.O": 2})), (json!({"ok": 1}), vec![], false));
        let few = Schema::from_value(json!({"propertyNames": {"enum": ["amount", "memo"]}})).unwrap();
        let faults = few.check(&json!({"ammount": 1}));
        assert_eq!(
            (faults[0].field.as_str(), faults[0].expected.as_str()),
            ("ammount", "as a name one of `amount`, `memo`")
        );
        assert!(few.mended(&json!({"ammount": 1})).complete);
    }

    #[test]
    fn what_is_wrong_within_a_list_is_named_and_the_rest_is_kept() {
        let schema = json!({"properties": {"lines": {"type": "array", "items": {
            "type": "object", "additionalProperties": false, "required": ["name"],
            "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}}}}});
        let given = json!({"lines": [{"name": "x", "count": "two"}, {"count": 1}]});
        let right = json!({"lines": [{"name": "x"}, {"count": 1}]});
        let missing = vec!["lines.0.count".to_owned(), "lines.1.name".to_owned()];
        assert_eq!(way(schema.clone(), &given), (right, missing, false));
        let unknown = json!({"lines": [{"name": "x", "hue": 1}]});
        let right = json!({"lines": [{"name": "x"}]});
        assert_eq!(way(schema.clone(), &unknown), (right, vec!["lines.0.count".to_owned()], false));
        let full = json!({"lines": [{"name": "x", "count": 1, "hue": 1}]});
        assert_eq!(
            way(schema.clone(), &full),
            (json!({}), vec!["lines".to_owned()], false),
            "it is to be said otherwise"
        );
        let item = json!({"lines": [{"name": "x"}, 5]});
        assert_eq!(way(schema, &item), (json!({}), vec!["lines".to_owned()], false));
    }
}
