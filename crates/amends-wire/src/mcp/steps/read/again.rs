//! Arguments that were not taken, to be given again: what was right of them, and the names of the others.

use std::collections::HashSet;

use amends_core::failure::bounded;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::sound::unsound;
use super::{Given, TEMPLATE_BYTES_MAX, Wanted};
use crate::object::{Object, is_null};
use crate::schema::NO_SUCH_FIELD;

/// How many members a template says, and how many it asks for.
const MEMBERS_MAX: usize = 64;

impl Given<'_> {
    /// What was right of the arguments, and what is still to be given. What was meant and is left out would make another wish of
    /// it: a member that is not known is to be given under the name it is near to, else as inputs where there were none.
    pub(super) fn again(&self, wanted: &Wanted) -> (Map<String, Value>, Vec<String>) {
        let (mut args, mut missing) = (Map::new(), Vec::new());
        let unsound = self.unsound.as_ref().map(|(n, _)| *n);
        // What is within the inputs is told below.
        let faults = self.faults.iter().enumerate().filter(|(n, fault)| !fault.field.is_empty() && Some(*n) != unsound);
        for (_, fault) in faults {
            let field = match fault.expected.as_str() {
                NO_SUCH_FIELD => fault.nearest.first().filter(|near| !self.has(near)).cloned(),
                _ => Some(fault.field.clone()),
            };
            let inputs = matches!(wanted, Wanted::Step { .. }) && fault.nearest.is_empty() && !self.has("inputs");
            missing.extend(field.or_else(|| (inputs && self.known.is_some()).then(|| "inputs".to_owned())));
        }
        let is_wrong = |name: &str| {
            let within =
                |field: &str| field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            self.faults.iter().any(|fault| within(&fault.field))
        };
        if let Some((_, text)) = &self.unsound {
            let (sound, again) = sound_members(text);
            if self.known.is_some() {
                missing.extend(again.into_iter().map(|name| format!("inputs.{name}")));
                let large = text.len() > TEMPLATE_BYTES_MAX;
                missing.extend(large.then(|| "inputs".to_owned()));
                args.extend((!sound.is_empty() && !large).then(|| ("inputs".to_owned(), Value::Object(sound))));
            } else {
                missing.extend(again);
            }
        }
        let repeated = self.object.as_ref().map(Object::repeated).unwrap_or_default();
        for member in self.object.iter().flat_map(Object::members) {
            let (name, raw) = (member.name(), member.value);
            let known = self.known.is_none_or(|known| known.contains(&&*name));
            if !known || is_null(raw) || is_wrong(&name) {
                continue;
            }
            if repeated.contains(&name) {
                missing.push(name.into_owned());
                continue;
            }
            let value = match wanted {
                Wanted::Step { inputs, .. } if self.known.is_some() && name == "inputs" => {
                    Ok(Value::Object(inputs.value.clone()))
                }
                // What a reader would make something else of is to be said again, which it is told above.
                _ if self.known.is_none() && unsound_in(raw) => continue,
                _ => serde_json::from_str(raw.get()),
            };
            match value {
                Ok(value) if raw.get().len() <= TEMPLATE_BYTES_MAX && args.len() < MEMBERS_MAX => {
                    drop(args.insert(name.into_owned(), value))
                }
                _ => missing.push(name.into_owned()),
            }
        }
        let mut told = HashSet::new();
        missing.retain(|name| told.insert(name.clone()));
        missing.truncate(MEMBERS_MAX);
        (args, missing)
    }
}

fn unsound_in(raw: &RawValue) -> bool {
    unsound(raw.get()).is_some()
}

/// The members of an object that every reader reads alike, and the names of the others.
fn sound_members(text: &str) -> (Map<String, Value>, Vec<String>) {
    let (mut sound, mut others) = (Map::new(), Vec::new());
    let Some(object) = Object::parse(text) else { return (sound, others) };
    let repeated = object.repeated();
    for member in object.members() {
        let name = member.name();
        let value = Some(member.value).filter(|raw| !repeated.contains(&name) && !unsound_in(raw));
        match value.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
            Some(value) => drop(sound.insert(name.into_owned(), value)),
            None => others.push(bounded(&name)),
        }
    }
    (sound, others)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Tool, read, read_action};
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn what_is_right_beside_something_unsound_is_kept_and_the_rest_is_to_be_said_as_a_whole() {
        let template = |tools: bool, text: &str| {
            let read = match tools {
                true => read_action("pay", "order", "pay", None, Some(&raw(text))),
                false => read(Tool::Step, "step", Some(&raw(text))),
            };
            let template = read.unwrap_err().recovery.unwrap().template.unwrap();
            (Value::Object(template.args), template.missing)
        };
        let kept = json!({ "action": "a", "inputs": { "order": "o" }, "session": "ses_1" });
        for inputs in [
            r#"{"order":"o","n":1,"n":2}"#,
            r#"{"order":"o","n":18446744073709551616}"#,
            r#"{"order":"o","n":[{"q":1,"q":2}]}"#,
            r#""{\"order\":\"o\",\"n\":1,\"n\":2}""#,
        ] {
            let told = template(false, &format!(r#"{{"action":"a","inputs":{inputs},"session":"ses_1"}}"#));
            assert_eq!(told, (kept.clone(), vec!["inputs.n".to_owned()]), "{inputs}");
        }
        let two = template(false, r#"{"action":"a","inputs":{"m":1,"m":2,"n":18446744073709551616}}"#);
        assert_eq!(two, (json!({ "action": "a" }), vec!["inputs.m".to_owned(), "inputs.n".to_owned()]));
        let own = template(true, r#"{"order":"o","n":[{"q":1,"q":2}],"m":18446744073709551616}"#);
        assert_eq!(own, (json!({ "order": "o" }), vec!["n".to_owned(), "m".to_owned()]));
        let twice = template(false, r#"{"action":"a","action":"b","session":"x","session":"y"}"#);
        assert_eq!(twice, (json!({}), vec!["action".to_owned(), "session".to_owned()]));
    }

    #[test]
    fn very_many_names_are_looked_at_once_each() {
        let many = |n: usize| (0..n).map(|n| format!("\"a{n}\":1")).collect::<Vec<_>>().join(",");
        // Were each held against all others, this would take minutes.
        let text = format!(r#"{{"action":"a",{},"a7":1}}"#, many(150_000));
        let refusal = read(Tool::Step, "step", Some(&raw(&text))).unwrap_err();
        assert!(refusal.details.len() < 16, "{}", refusal.details.len());
        let refusal = read_action("pay", "order", "pay", None, Some(&raw(&text))).unwrap_err();
        let template = refusal.recovery.unwrap().template.unwrap();
        assert!(template.args.len() <= MEMBERS_MAX && template.missing.len() <= MEMBERS_MAX);
    }
}
