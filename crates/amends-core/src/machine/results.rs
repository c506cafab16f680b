//! What an action gives, as far as that is known before it is done.

use serde_json::{Value, json};

use super::held::{Held, Values};
use super::inputs::requires;
use super::possible::{ends, typed, values};
use super::{Action, Does};
use crate::expression::Path;

/// What stands for all that the end of a path into `result` can be, for whoever compares it with those; nothing where that is not
/// known. An action may be passed over, and then there is no result.
pub(super) fn given(path: &Path, with: &[Value], action: &Action, held: &Held<'_>) -> Option<Values> {
    let (of, names) = path.fields.split_first()?;
    let mut given: Values = match (&action.does, of.as_str(), names) {
        (Does::Machine(run), "state", []) => {
            held.others.get(run)?.terminal.iter().map(|state| Some(json!(state))).collect()
        }
        (Does::Machine(run), "fields", [first, rest @ ..]) => {
            let left = Held::of(held.others.get(run)?, held.others).at_the_end(first)?;
            ends(&left, rest)
        }
        (Does::Allowed(allowed), "fields", [first, rest @ ..]) => {
            let completion = allowed.completion.as_ref()?;
            let (schema, _) = typed(Some(completion), names);
            // What may be left out and is, is null.
            let null = (rest.is_empty() && !requires(completion, first)).then_some(Some(Value::Null));
            values(schema, with).into_iter().map(Some).chain(null).collect()
        }
        _ => return None,
    };
    if !given.contains(&None) {
        given.push(None);
    }
    Some(given)
}
