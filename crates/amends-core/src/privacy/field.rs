//! Fields that an operator declared as private.

use serde_json::Value;
use thiserror::Error;

use super::category::Category;

/// The mask of a field of which only is known that it is private.
const PRIVATE: &str = "[redacted:private]";

/// How many parts a path has at most.
const PARTS_MAX: usize = 16;

/// A field that an operator declared as private: `args.card`, `result.owner.ssn`, `args.items.*.note`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    of: Of,
    parts: Vec<String>,
    category: Option<Category>,
}

/// What a path begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Args,
    Result,
}

/// Why a path is not one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum FieldError {
    /// It does not begin with what it is a field of.
    #[error("`{0}` begins with neither `args.` nor `result.`")]
    NoRoot(String),
    /// It has an empty part, or too many of them.
    #[error("`{0}` is not a path of 1 to 16 names with points between them")]
    NoPath(String),
}

impl Field {
    /// Reads a path. A part `*` stands for every item of a list and every member of an object.
    pub fn parse(path: &str, category: Option<Category>) -> Result<Self, FieldError> {
        let (of, rest) = match path.split_once('.') {
            Some(("args", rest)) => (Of::Args, rest),
            Some(("result", rest)) => (Of::Result, rest),
            _ => return Err(FieldError::NoRoot(path.to_owned())),
        };
        let parts: Vec<String> = rest.split('.').map(str::to_owned).collect();
        if parts.len() > PARTS_MAX || parts.iter().any(String::is_empty) {
            return Err(FieldError::NoPath(path.to_owned()));
        }
        Ok(Self { of, parts, category })
    }

    /// Whether it is a field of the arguments.
    pub(super) fn is_of_args(&self) -> bool {
        self.of == Of::Args
    }

    /// Whether it is a field of the result.
    pub(super) fn is_of_result(&self) -> bool {
        self.of == Of::Result
    }

    /// What it holds, where that was said.
    pub fn category(&self) -> Option<Category> {
        self.category
    }

    /// Whether it is a field of what agents send.
    pub fn is_sent(&self) -> bool {
        self.is_of_args()
    }

    /// What stands in its place.
    pub(super) fn mask(&self) -> &'static str {
        self.category.map_or(PRIVATE, Category::mask)
    }

    /// Whether a dotted path, as a fault in the arguments names it, leads to it or into it.
    pub(super) fn covers(&self, path: &str) -> bool {
        let mut found = path.split('.');
        let is_part = |part: &String| found.next().is_some_and(|name| part == "*" || part == name);
        self.parts.iter().all(is_part)
    }

    /// Its values in a document.
    pub(super) fn values<'a>(&self, document: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![document];
        for part in &self.parts {
            found = found.into_iter().flat_map(|value| step(value, part)).collect();
        }
        found
    }

    /// Masks its values in a document.
    pub(super) fn mask_in(&self, document: &mut Value) {
        mask_at(document, &self.parts, self.mask());
    }
}

fn step<'a>(value: &'a Value, part: &str) -> Vec<&'a Value> {
    match value {
        Value::Object(members) if part == "*" => members.values().collect(),
        Value::Object(members) => members.get(part).into_iter().collect(),
        Value::Array(items) if part == "*" => items.iter().collect(),
        Value::Array(items) => part.parse::<usize>().ok().and_then(|at| items.get(at)).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn mask_at(value: &mut Value, parts: &[String], mask: &str) {
    let Some((part, rest)) = parts.split_first() else {
        *value = Value::String(mask.to_owned());
        return;
    };
    match value {
        Value::Object(members) if part == "*" => members.values_mut().for_each(|value| mask_at(value, rest, mask)),
        Value::Object(members) => members.get_mut(part).into_iter().for_each(|value| mask_at(value, rest, mask)),
        Value::Array(items) if part == "*" => items.iter_mut().for_each(|value| mask_at(value, rest, mask)),
        Value::Array(items) => {
            let item = part.parse::<usize>().ok().and_then(|at| items.get_mut(at));
            item.into_iter().for_each(|value| mask_at(value, rest, mask));
        }
        _ => {}
    }
}
