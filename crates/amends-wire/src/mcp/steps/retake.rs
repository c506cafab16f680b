//! A move that was not made, to be taken again: its call, with what is right of the inputs and the names of the others.

use amends_core::id::{ActionName, MachineName};
use amends_core::nearest::nearest;
use amends_core::recovery::{NextCall, Template};
use amends_core::{Recovery, SessionId};
use serde_json::{Map, Value};

use super::names::{Names, Tool};
use super::read::{SESSION, TEMPLATE_BYTES_MAX, extras};
use super::view::Given;
use crate::Schema;
use crate::schema::Mended;

/// An action that can be taken again in a walk.
#[derive(Clone, Copy, Debug)]
pub struct Retake<'a> {
    /// The walk; nothing where it has not begun.
    pub session: &'a SessionId,
    /// The machine it is in.
    pub machine: &'a MachineName,
    /// The action.
    pub action: &'a str,
    /// The JSON Schema of its inputs.
    pub schema: Option<&'a Value>,
    /// The names of our tools.
    pub names: &'a Names,
}

impl Retake<'_> {
    fn own(&self) -> Option<&str> {
        self.names.action(self.machine, self.action)
    }

    fn tool(&self) -> Option<String> {
        self.own().or_else(|| self.names.own(Tool::Step)).map(str::to_owned)
    }

    /// The arguments of its tool that give it those inputs.
    fn args(&self, inputs: Map<String, Value>) -> Map<String, Value> {
        let (mut args, mut handle) = (inputs, SESSION);
        if self.own().is_some() {
            handle = extras(self.schema).0;
        } else {
            let inputs = std::mem::take(&mut args);
            args.insert("action".to_owned(), Value::String(self.action.to_owned()));
            if !inputs.is_empty() {
                args.insert("inputs".to_owned(), Value::Object(inputs));
            }
        }
        if !self.session.as_str().is_empty() {
            args.insert(handle.to_owned(), Value::String(self.session.to_string()));
        }
        args
    }

    fn call(&self, inputs: Map<String, Value>) -> Option<NextCall> {
        Some(NextCall { tool: self.tool()?, args: self.args(inputs) })
    }

    /// Its call with those inputs, and the names of what is still to be said. What is large is to be said again.
    fn template(&self, inputs: Map<String, Value>, mut missing: Vec<String>) -> Option<Template> {
        let mut inputs = inputs;
        if is_large(&inputs) {
            missing.extend(std::mem::take(&mut inputs).into_iter().map(|(name, _)| name));
        }
        let mut paths: Vec<String> = Vec::new();
        for name in missing {
            let path = if self.own().is_some() { name } else { format!("inputs.{name}") };
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        Some(Template { tool: self.tool()?, args: self.args(inputs), missing: paths })
    }

    /// The same with nothing of the inputs: they are to be said as a whole.
    fn anew(&self, schema: Option<&Schema>) -> Option<Template> {
        if self.own().is_some() {
            return self.template(Map::new(), schema.map(Schema::to_be_said).unwrap_or_default());
        }
        Some(Template { tool: self.tool()?, args: self.args(Map::new()), missing: vec!["inputs".to_owned()] })
    }

    /// Its call with nothing of what was given, which is to be said anew, and whatever else it knows; nothing where no other inputs
    /// make another call of it.
    pub(super) fn otherwise(&self, given: Option<&Given>) -> Option<Template> {
        let schema = self.schema.and_then(|schema| Schema::from_value(schema.clone()).ok());
        let known = schema.iter().flat_map(Schema::known).map(str::to_owned);
        let Given { inputs, withheld } = given.cloned().unwrap_or_default();
        let unsaid: Vec<String> = inputs.into_iter().map(|(name, _)| name).chain(withheld).chain(known).collect();
        if unsaid.is_empty() { None } else { self.template(Map::new(), unsaid) }
    }

    /// Its call with what fits it of what was given. What was given to quite another action fits only where it is declared.
    pub(super) fn fitting(&self, given: Option<&Given>, meant: bool) -> Option<Template> {
        let schema = self.schema.and_then(|schema| Schema::from_value(schema.clone()).ok());
        let Given { inputs, withheld } = given.cloned().unwrap_or_default();
        let Some(schema) = schema else {
            return match meant {
                true => self.template(inputs, withheld),
                false => self.template(Map::new(), Vec::new()),
            };
        };
        let known = schema.known();
        let fits = |name: &str| meant || known.contains(&name);
        let inputs: Map<String, Value> = inputs.into_iter().filter(|(name, _)| fits(name)).collect();
        let whole = Value::Object(inputs.clone());
        let (inputs, mut missing) = match schema.fits(&whole) {
            Some(false) => {
                let mended = schema.mended(&whole);
                if mended.whole {
                    return self.anew(Some(&schema));
                }
                (mended.args, mended.missing)
            }
            Some(true) | None => (inputs, Vec::new()),
        };
        missing.extend(withheld.into_iter().filter(|name| fits(name)));
        self.template(inputs, missing)
    }
}

/// The way on after inputs that do not fit: the same action with those that do, and the names of the others. An input that was
/// meant and is left out would make another move of it, so that every one that was not understood is to be said again. So is one
/// that is private, since a refusal is recorded.
pub fn mended(
    schema: &Schema,
    inputs: &Value,
    private: &Map<String, Value>,
    session: &SessionId,
    (machine, action): (&MachineName, &ActionName),
    names: &Names,
) -> Option<Recovery> {
    let retake = Retake { session, machine, action: action.as_str(), schema: Some(schema.source()), names };
    let Mended { complete, args, mut missing, whole, fuzzy_matches } = schema.mended(inputs);
    let mut recovery = Recovery { fuzzy_matches, ..Recovery::default() };
    if complete && private.is_empty() && !is_large(&args) {
        recovery.call = retake.call(args);
        return recovery.call.is_some().then_some(recovery);
    }
    let most = schema.source()["maxProperties"].as_u64().and_then(|most| usize::try_from(most).ok());
    let unsaid = missing.iter().filter(|path| !args.contains_key(path.split('.').next().unwrap_or_default()));
    // With what is missing there would be too many: which to leave out is for the agent to say.
    if whole || most.is_some_and(|most| args.len() + unsaid.count() > most) {
        recovery.template = retake.anew(Some(schema));
        return recovery.template.is_some().then_some(recovery);
    }
    let known = schema.known();
    let unsaid = |name: &&str| !args.contains_key(*name);
    let near = recovery.fuzzy_matches.iter().map(String::as_str).filter(|name| known.contains(name));
    missing.extend(near.filter(unsaid).map(str::to_owned));
    if missing.is_empty() && !complete {
        missing = known.into_iter().filter(unsaid).map(str::to_owned).collect();
    }
    let (again, args): (Map<_, _>, Map<_, _>) =
        args.into_iter().partition(|(name, value)| private.get(name) == Some(value));
    missing.extend(again.into_iter().map(|(name, _)| name));
    recovery.template = retake.template(args, missing);
    recovery.template.is_some().then_some(recovery)
}

/// The way on after a guard that does not hold: the same action, with the inputs that the guard has nothing against. `unmet` are
/// the paths that the part speaks of which does not hold, and `holds` says whether it would with others.
pub fn unguarded(
    retake: &Retake<'_>,
    inputs: &Map<String, Value>,
    private: &Map<String, Value>,
    unmet: &[&str],
    holds: impl Fn(&Value) -> bool,
) -> Option<Recovery> {
    let schema = retake.schema.and_then(|schema| Schema::from_value(schema.clone()).ok());
    let known = schema.as_ref().map(Schema::known).unwrap_or_default();
    let asked: Vec<&str> = unmet.iter().filter_map(|path| path.strip_prefix("inputs.")).collect();
    let top = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
    let mut rest = inputs.clone();
    let mut renamed = inputs.clone();
    // A name that nobody knows may be one that the guard misses.
    for name in asked.iter().map(|path| top(path)).filter(|name| !inputs.contains_key(name)) {
        let strange = inputs.keys().filter(|given| !known.contains(&given.as_str()));
        let strange: Vec<&String> = strange.filter(|given| !nearest(given, [name.as_str()]).is_empty()).collect();
        if let [misspelt] = strange.as_slice() {
            rest.remove(*misspelt);
            renamed.remove(*misspelt).into_iter().for_each(|value| drop(renamed.insert(name.clone(), value)));
        }
    }
    if renamed != *inputs && private.is_empty() && !is_large(&renamed) {
        let whole = Value::Object(renamed.clone());
        if schema.as_ref().is_none_or(|schema| schema.is_valid(&whole)) && holds(&whole) {
            return Some(Recovery { call: Some(retake.call(renamed)?), ..Recovery::default() });
        }
    }
    if asked.is_empty() {
        return Some(Recovery { template: Some(retake.anew(schema.as_ref())?), ..Recovery::default() });
    }
    let mut missing: Vec<String> = Vec::new();
    for path in asked {
        let names: Vec<&str> = path.split('.').collect();
        let (last, parents) = (names[names.len() - 1], &names[..names.len() - 1]);
        let mut fields = Some(&mut rest);
        for parent in parents {
            fields = fields.and_then(|fields| fields.get_mut(*parent)?.as_object_mut());
        }
        fields.map(|fields| fields.remove(last));
        missing.push(path.to_owned());
    }
    let (again, rest): (Map<_, _>, Map<_, _>) = rest.into_iter().partition(|(name, _)| private.contains_key(name));
    missing.extend(again.into_iter().map(|(name, _)| name));
    Some(Recovery { template: Some(retake.template(rest, missing)?), ..Recovery::default() })
}

fn is_large(inputs: &Map<String, Value>) -> bool {
    Value::Object(inputs.clone()).to_string().len() > TEMPLATE_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn recovery(inputs: Value, tools: bool) -> Value {
        let schema = json!({
            "type": "object", "additionalProperties": false,
            "properties": { "amount": { "type": "integer" }, "memo": { "type": "string" }, "fast": {} },
        });
        let schema = Schema::from_value(schema).unwrap();
        let (machine, action) = (MachineName::new("m"), ActionName::new("pay"));
        let own = if tools { vec![(machine.clone(), action.clone())] } else { Vec::new() };
        let names = Names::assign(&Tool::ALL, &own, |_| false);
        let private = Map::from_iter([("memo".to_owned(), json!("secret"))]);
        let private = if inputs["memo"] == "secret" { private } else { Map::new() };
        let mended = mended(&schema, &inputs, &private, &SessionId::new("ses_1"), (&machine, &action), &names);
        serde_json::to_value(mended.unwrap()).unwrap()
    }

    #[test]
    fn what_is_right_of_the_inputs_is_kept_and_what_is_not_is_to_be_said_again() {
        let wrong = json!({ "amount": "five", "memo": "for ann" });
        let args = json!({ "action": "pay", "inputs": { "memo": "for ann" }, "session": "ses_1" });
        let step = json!({ "tool": "step", "args": args, "missing": ["inputs.amount"] });
        assert_eq!(recovery(wrong.clone(), false), json!({ "template": step }));
        let own = json!({ "tool": "pay", "args": { "memo": "for ann", "session": "ses_1" }, "missing": ["amount"] });
        assert_eq!(recovery(wrong, true), json!({ "template": own }));
    }

    #[test]
    fn an_input_that_is_not_known_is_never_just_left_out() {
        let near = recovery(json!({ "ammount": 5 }), false);
        assert_eq!(near["call"]["args"]["inputs"], json!({ "amount": 5 }), "{near}");
        let both = recovery(json!({ "ammount": 5, "memo": 7 }), false);
        assert_eq!(both["template"]["missing"], json!(["inputs.memo", "inputs.amount"]), "{both}");
        let far = recovery(json!({ "quantity": 5, "memo": "x" }), false);
        assert_eq!(far["template"]["args"]["inputs"], json!({ "memo": "x" }), "{far}");
        assert_eq!(far["template"]["missing"], json!(["inputs.amount", "inputs.fast"]), "{far}");
        let huge = recovery(json!({ "amount": "five", "memo": "x".repeat(TEMPLATE_BYTES_MAX) }), true);
        assert_eq!(huge["template"]["args"], json!({ "session": "ses_1" }));
        assert_eq!(huge["template"]["missing"], json!(["amount", "memo"]));
        let private = recovery(json!({ "amount": "five", "memo": "secret" }), true);
        assert_eq!(private["template"]["missing"], json!(["amount", "memo"]), "it is recorded: {private}");
        assert!(!private.to_string().contains("secret"), "{private}");
    }

    #[test]
    fn where_what_is_missing_makes_too_many_all_are_to_be_said() {
        let schema = json!({
            "type": "object", "maxProperties": 2, "dependentRequired": { "a": ["b"] },
            "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        });
        let schema = Schema::from_value(schema).unwrap();
        let (machine, action) = (MachineName::new("m"), ActionName::new("pay"));
        let names = Names::assign(&Tool::ALL, &[], |_| false);
        let missing = |inputs: Value| {
            let way =
                mended(&schema, &inputs, &Map::new(), &SessionId::new("ses_1"), (&machine, &action), &names).unwrap();
            way.template.unwrap().missing
        };
        assert_eq!(missing(json!({ "a": "1", "more": 1 })), ["inputs"]);
        assert_eq!(missing(json!({ "a": "1" })), ["inputs.b"]);
    }

    const ITEM: &str =
        r#"{ "type": "object", "properties": { "item": { "type": "string" }, "amount": { "type": "integer" } } }"#;

    /// Two ways to take the action `pay`: by its own tool, and by the tool for all.
    fn retaken(tools: bool, then: impl Fn(&Retake<'_>) -> Option<Value>) -> Value {
        let (machine, session, schema) =
            (MachineName::new("m"), SessionId::new("ses_1"), serde_json::from_str(ITEM).unwrap());
        let own = if tools { vec![(machine.clone(), ActionName::new("pay"))] } else { Vec::new() };
        let names = Names::assign(&Tool::ALL, &own, |_| false);
        let retake =
            Retake { session: &session, machine: &machine, action: "pay", schema: Some(&schema), names: &names };
        then(&retake).unwrap()
    }

    fn guarded(inputs: &Value, private: &[&str], unmet: &[&str]) -> Value {
        let inputs = inputs.as_object().unwrap();
        let private = inputs.clone().into_iter().filter(|(name, _)| private.contains(&name.as_str())).collect();
        let holds = |inputs: &Value| inputs["amount"].as_i64().is_some_and(|amount| amount < 10);
        retaken(false, |retake| serde_json::to_value(unguarded(retake, inputs, &private, unmet, holds)?).ok())
    }

    #[test]
    fn after_a_guard_what_it_speaks_of_is_to_be_said_and_the_rest_is_kept() {
        let no = guarded(&json!({ "item": "tea", "amount": 50 }), &[], &["inputs.amount", "state.most"]);
        let args = json!({ "action": "pay", "inputs": { "item": "tea" }, "session": "ses_1" });
        assert_eq!(no, json!({ "template": { "tool": "step", "args": args, "missing": ["inputs.amount"] } }));
        let lacks = guarded(&json!({ "item": "tea" }), &["item"], &["inputs.amount"]);
        assert_eq!(lacks["template"]["missing"], json!(["inputs.amount", "inputs.item"]), "{lacks}");
        let all = guarded(&json!({ "item": "tea" }), &[], &[]);
        assert_eq!(all["template"]["missing"], json!(["inputs"]), "{all}");
        let deep = guarded(&json!({ "item": { "a": 1, "b": 2 } }), &[], &["inputs.item.a"]);
        assert_eq!(deep["template"]["args"]["inputs"], json!({ "item": { "b": 2 } }), "{deep}");
    }

    #[test]
    fn a_misspelt_input_that_a_guard_misses_is_given_under_its_name() {
        let call = guarded(&json!({ "item": "tea", "ammount": 5 }), &[], &["inputs.amount"]);
        assert_eq!(call["call"]["args"]["inputs"], json!({ "item": "tea", "amount": 5 }), "{call}");
        let vain = guarded(&json!({ "item": "tea", "ammount": 50 }), &[], &["inputs.amount"]);
        assert_eq!(vain["template"]["args"]["inputs"], json!({ "item": "tea" }), "it would not hold: {vain}");
        assert_eq!(vain["template"]["missing"], json!(["inputs.amount"]), "{vain}");
    }

    #[test]
    fn what_failed_for_what_it_was_given_is_to_be_said_otherwise_or_not_at_all() {
        let given = Given { inputs: Map::from_iter([("more".to_owned(), json!(1))]), withheld: vec!["item".into()] };
        for (tools, args, missing) in [
            (false, json!({ "action": "pay", "session": "ses_1" }), ["inputs.more", "inputs.item", "inputs.amount"]),
            (true, json!({ "session": "ses_1" }), ["more", "item", "amount"]),
        ] {
            let other = retaken(tools, |retake| serde_json::to_value(retake.otherwise(Some(&given))?).ok());
            assert_eq!((&other["args"], &other["missing"]), (&args, &json!(missing)), "{other}");
        }
        let (machine, session) = (MachineName::new("m"), SessionId::new("ses_1"));
        let names = Names::assign(&Tool::ALL, &[], |_| false);
        let bare = Retake { session: &session, machine: &machine, action: "pay", schema: None, names: &names };
        assert_eq!(bare.otherwise(Some(&Given::default())), None, "it would be the same call");
    }

    #[test]
    fn an_action_that_was_meant_is_given_what_fits_it() {
        let given =
            |inputs: Value| Given { inputs: inputs.as_object().cloned().unwrap(), withheld: vec!["pin".into()] };
        let fit = |inputs: Value, meant: bool| {
            retaken(true, |retake| serde_json::to_value(retake.fitting(Some(&given(inputs.clone())), meant)?).ok())
        };
        let meant = fit(json!({ "item": "tea", "amount": "x", "more": 1 }), true);
        assert_eq!(meant["args"], json!({ "item": "tea", "more": 1, "session": "ses_1" }), "{meant}");
        assert_eq!(meant["missing"], json!(["amount", "pin"]), "{meant}");
        let other = fit(json!({ "item": "tea", "more": 1 }), false);
        assert_eq!((&other["args"], &other["missing"]), (&json!({ "item": "tea", "session": "ses_1" }), &json!([])));
    }
}
