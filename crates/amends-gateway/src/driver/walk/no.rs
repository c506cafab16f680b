//! Our No to a wish, as far as its inputs and the fields say it. What a trace may not show is not quoted in it.

use amends_core::failure::bounded;
use amends_core::id::{ActionName, MachineName};
use amends_core::machine::{Guarded, Unmet, unfit};
use amends_core::recovery::NextCall;
use amends_core::{Recovery, Refusal, RefusalKind};
use amends_wire::Schema;
use amends_wire::mcp::steps::{Given, Names, Retake, Tool, View, mended, unguarded};
use serde_json::{Map, Value, json};

use super::super::session::Session;

/// How many characters of a value are told.
const TOLD_CHARS_MAX: usize = 60;

impl Session {
    /// The refusal of inputs that do not fit, with the same action and those that do. What its guard has something against is to
    /// be said anew as well.
    pub(super) fn unfit(
        &self,
        schema: &Schema,
        inputs: &Value,
        at: (&MachineName, &ActionName),
        names: &Names,
        unmet: Option<&Unmet>,
    ) -> Refusal {
        let mut faults = schema.check(inputs);
        let private = self.private(at.1, inputs);
        let own = |field: &str| field.split('.').next().unwrap_or_default().to_owned();
        for fault in faults.iter_mut().filter(|fault| private.contains_key(&own(&fault.field))) {
            fault.got = None;
        }
        let mut withheld = private;
        let paths = unmet.iter().flat_map(|unmet| &unmet.values).filter_map(|(path, _)| path.strip_prefix("inputs."));
        for name in paths.map(own) {
            withheld.extend(inputs.get(&name).map(|value| (name.clone(), value.clone())));
        }
        let recovery = mended(schema, inputs, &withheld, &self.id, at, names);
        Refusal { recovery, ..unfit(at.1, faults) }
    }

    /// The refusal of an action of another machine than the walk is in. Which of the two was meant is not for us to guess: the one of
    /// that name here is not offered.
    pub(super) fn of_another(&self, name: &ActionName, of: &MachineName, at: &MachineName) -> Refusal {
        let message = format!("this is the `{name}` of `{}`, and the walk is in `{at}`", bounded(of.as_str()));
        let listing = self.gateway.catalogue.now();
        let args = Map::from_iter([("session".to_owned(), json!(self.id)), ("what".to_owned(), json!("next"))]);
        let call = listing.machines().names().own(Tool::Walk).map(|tool| NextCall { tool: tool.to_owned(), args });
        let recovery = Some(Recovery { call, ..Recovery::default() });
        Refusal { recovery, ..Refusal::of(RefusalKind::InvalidTransition, message) }
    }

    /// The refusal of an action whose guard does not hold: which part of it, over which values, and the same action with the
    /// inputs that this part does not speak of.
    pub(super) fn guarded(
        &self,
        retake: &Retake<'_>,
        inputs: &Map<String, Value>,
        guarded: &Guarded,
        holds: impl Fn(&Value) -> bool,
    ) -> Refusal {
        let name = &ActionName::new(retake.action);
        let private = self.private(name, &Value::Object(inputs.clone()));
        let unmet = guarded.unmet.iter().flat_map(|unmet| &unmet.values);
        let paths: Vec<&str> = unmet.map(|(path, _)| path.as_str()).collect();
        // Where no inputs help, another action is the way on.
        let helps = guarded.over_inputs();
        let recovery = helps.then(|| unguarded(retake, inputs, &private, &paths, holds)).flatten();
        Refusal { recovery, ..guarded.refusal(name, |path, value| self.told(name, path, value)) }
    }

    /// What an agent gave, as far as it may be said again. What is private for an action that it may have meant is private.
    pub(super) fn may_say(&self, action: &ActionName, inputs: &Value, view: &View) -> Given {
        let next = view.next.iter().map(|next| ActionName::new(next.action.as_str()));
        let private: Vec<Map<String, Value>> =
            next.chain([action.clone()]).map(|action| self.private(&action, inputs)).collect();
        let mut given = Given::default();
        for (name, value) in inputs.as_object().into_iter().flatten() {
            match private.iter().any(|private| private.contains_key(name)) {
                true => given.withheld.push(name.clone()),
                false => drop(given.inputs.insert(name.clone(), value.clone())),
            }
        }
        given
    }

    /// A value that a guard speaks of, in a few characters and with what is private masked; nothing for what is not there.
    fn told(&self, action: &ActionName, path: &str, value: Option<&Value>) -> Option<String> {
        let value = value?;
        let config = self.gateway.config();
        let mask = config.privacy.of(action.as_str());
        if !mask.shows_arguments() {
            return Some("not shown".to_owned());
        }
        // Masks know private fields by their paths within the fields or the inputs.
        let mut names: Vec<&str> = path.split('.').skip(1).collect();
        let mut document = value.clone();
        while let Some(name) = names.pop() {
            document = Value::Object(Map::from_iter([(name.to_owned(), document)]));
        }
        let mut masked = mask.masked(&document);
        if let Value::Object(fields) = &mut masked {
            config.pii.shared().hide(fields);
        }
        let found = path.split('.').skip(1).try_fold(&masked, |value, name| value.get(name));
        let shown = bounded(&found.unwrap_or(&masked).to_string());
        Some(match shown.char_indices().nth(TOLD_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &shown[..end]),
            None => shown,
        })
    }

    /// The inputs that a trace may not show as they are.
    fn private(&self, action: &ActionName, inputs: &Value) -> Map<String, Value> {
        let config = self.gateway.config();
        let mask = config.privacy.of(action.as_str());
        let masked = mask.masked(inputs);
        let given = inputs.as_object().into_iter().flatten();
        let differs = |name: &str, value: &Value| !mask.shows_arguments() || masked.get(name) != Some(value);
        given.filter(|(name, value)| differs(name, value)).map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}
