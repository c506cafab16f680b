//! Our No to a wish, as far as its inputs and the fields say it. What a trace may not show is not quoted in it.

use amends_core::failure::bounded;
use amends_core::id::{ActionName, MachineName};
use amends_core::machine::Unmet;
use amends_core::recovery::NextCall;
use amends_core::refusal::ArgumentFault;
use amends_core::{Recovery, Refusal, RefusalKind};
use amends_wire::Schema;
use amends_wire::mcp::steps::{Given, Names, Retake, Tool, View, mended, unguarded};
use serde_json::{Map, Value, json};

use super::super::session::Session;

/// How many characters of a value are told.
const TOLD_CHARS_MAX: usize = 60;

/// One No of two: to inputs that do not fit, and to what a guard does not allow over them. Where no inputs help, that comes first.
pub(super) fn both(unfit: Refusal, guarded: Refusal) -> Refusal {
    let (first, second) = if guarded.recovery.is_some() { (unfit, guarded) } else { (guarded, unfit) };
    let message = format!("{}; and {}", first.message, second.message);
    let details = first.details.iter().chain(&second.details).cloned().collect();
    Refusal { message, details, ..first }
}

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
        let first = faults.first().map(|fault| {
            let field = if fault.field.is_empty() { "the inputs".to_owned() } else { format!("`{}`", fault.field) };
            format!(": {field}: expected {}", fault.expected)
        });
        let message = format!("`{}` does not take these inputs{}", at.1, first.unwrap_or_default());
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
        Refusal { details: faults, recovery, ..Refusal::of(RefusalKind::ValidationFailed, message) }
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
        guard: &str,
        reason: Option<&str>,
        unmet: Option<Unmet>,
        holds: impl Fn(&Value) -> bool,
    ) -> Refusal {
        let name = &ActionName::new(retake.action);
        let private = self.private(name, &Value::Object(inputs.clone()));
        let paths: Vec<&str> = unmet.iter().flat_map(|unmet| &unmet.values).map(|(path, _)| path.as_str()).collect();
        // No inputs make hold what the fields alone decide: another action is the way on.
        let helps = unmet.as_ref().is_none_or(|unmet| unmet.over_inputs);
        let recovery = helps.then(|| unguarded(retake, inputs, &private, &paths, holds)).flatten();
        let mut message = format!("`{name}` is not allowed now: its guard `{guard}` does not hold");
        let mut details = Vec::new();
        if let Some(unmet) = unmet {
            if !unmet.whole {
                message.push_str(&format!(": not `{}`", unmet.part));
            }
            let told: Vec<(String, Option<String>)> = unmet
                .values
                .iter()
                .map(|(path, value)| (path.clone(), self.told(name, path, value.as_ref())))
                .collect();
            let words: Vec<String> = told
                .iter()
                .map(|(path, value)| match value {
                    Some(value) => format!("`{path}` is {value}"),
                    None => format!("`{path}` is not there"),
                })
                .collect();
            if reason.is_none() && !words.is_empty() {
                message.push_str(&format!(" ({})", words.join(", ")));
            }
            let expected = format!("`{}` to hold", unmet.part);
            details.extend(told.into_iter().map(|(field, got)| ArgumentFault {
                field,
                expected: expected.clone(),
                got,
                nearest: Vec::new(),
            }));
        }
        if let Some(reason) = reason {
            message.push_str(&format!(" ({})", bounded(reason)));
        }
        Refusal { details, recovery, ..Refusal::of(RefusalKind::InvalidTransition, message) }
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
