//! Edits of a JSON text that leave all other bytes as they are.

use std::ops::Range;

use thiserror::Error;

use crate::object::{Object, quoted};

/// A set of edits of one JSON text. Whatever no edit names keeps its bytes: order, spacing, spelling of numbers.
///
/// Parts are named by slices of the text itself, such as a `RawValue` borrowed from it. Where two edits overlap, the one
/// that starts first counts.
#[derive(Debug)]
pub struct Splice<'a> {
    text: &'a str,
    replaced: Vec<(Range<usize>, String)>,
    objects: Vec<ObjectEdit>,
}

#[derive(Debug)]
struct ObjectEdit {
    range: Range<usize>,
    /// What becomes of each name: a new value, or nothing.
    changes: Vec<(String, Option<String>)>,
}

/// Why an edit cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SpliceError {
    /// The slice does not lie in the text.
    #[error("the part does not belong to the text")]
    NotAPart,
    /// The part is not a JSON object.
    #[error("the part is not an object")]
    NotAnObject,
}

impl<'a> Splice<'a> {
    /// Starts with a text and no edits.
    ///
    /// ```
    /// use amends_wire::Splice;
    ///
    /// let text = r#"{ "n": 1.0, "old": 2 }"#;
    /// let mut splice = Splice::new(text);
    /// splice.set_member(text, "key", "\"k\"")?;
    /// splice.remove_member(text, "old")?;
    /// assert_eq!(splice.finish(), r#"{ "n": 1.0,"key":"k" }"#);
    /// # Ok::<(), amends_wire::SpliceError>(())
    /// ```
    pub const fn new(text: &'a str) -> Self {
        Self { text, replaced: Vec::new(), objects: Vec::new() }
    }

    /// Puts other text in place of a part.
    pub fn replace(&mut self, part: &str, with: impl Into<String>) -> Result<(), SpliceError> {
        let range = self.locate(part)?;
        self.replaced.push((range, with.into()));
        Ok(())
    }

    /// Gives a member of an object that value: wherever the name stands at its top level, else as a new last member.
    pub fn set_member(&mut self, object: &str, name: &str, value: impl Into<String>) -> Result<(), SpliceError> {
        self.change(object, name, Some(value.into()))
    }

    /// Takes a member out of an object, wherever the name stands at its top level.
    pub fn remove_member(&mut self, object: &str, name: &str) -> Result<(), SpliceError> {
        self.change(object, name, None)
    }

    /// The text with all edits made.
    pub fn finish(self) -> String {
        let mut edits = self.replaced;
        for object in &self.objects {
            object.edits(self.text, &mut edits);
        }
        edits.sort_by_key(|(range, _)| (range.start, range.end));
        let mut out = String::with_capacity(self.text.len() + edits.iter().map(|(_, with)| with.len()).sum::<usize>());
        let mut at = 0;
        for (range, with) in edits {
            if range.start < at {
                continue;
            }
            out.push_str(&self.text[at..range.start]);
            out.push_str(&with);
            at = range.end;
        }
        out.push_str(&self.text[at..]);
        out
    }

    fn change(&mut self, object: &str, name: &str, value: Option<String>) -> Result<(), SpliceError> {
        let range = self.locate(object)?;
        if Object::parse(object).is_none() {
            return Err(SpliceError::NotAnObject);
        }
        let change = (name.to_owned(), value);
        match self.objects.iter_mut().find(|known| known.range == range) {
            Some(known) => {
                known.changes.retain(|(other, _)| *other != change.0);
                known.changes.push(change);
            }
            None => self.objects.push(ObjectEdit { range, changes: vec![change] }),
        }
        Ok(())
    }

    fn locate(&self, part: &str) -> Result<Range<usize>, SpliceError> {
        offset(self.text, part).ok_or(SpliceError::NotAPart)
    }
}

impl ObjectEdit {
    /// The edits of the text that these changes come to.
    fn edits(&self, text: &str, edits: &mut Vec<(Range<usize>, String)>) {
        let Some(object) = Object::parse(&text[self.range.clone()]) else {
            return;
        };
        let spans: Vec<(Range<usize>, Range<usize>)> = object
            .members()
            .iter()
            .filter_map(|member| Some((offset(text, member.key.get())?, offset(text, member.value.get())?)))
            .collect();
        let names: Vec<_> = object.members().iter().map(|member| member.name()).collect();
        let mut survivors = false;
        for (n, name) in names.iter().enumerate() {
            let (key, value) = &spans[n];
            match self.changes.iter().find(|(changed, _)| changed == name) {
                None => survivors = true,
                Some((_, Some(with))) => {
                    survivors = true;
                    edits.push((value.clone(), with.clone()));
                }
                // The comma goes with it: the one before if something stays before it, else the one after.
                Some((_, None)) if survivors => edits.push((spans[n - 1].1.end..value.end, String::new())),
                Some((_, None)) => {
                    let end = spans.get(n + 1).map_or(value.end, |(next, _)| next.start);
                    edits.push((key.start..end, String::new()));
                }
            }
        }
        let mut added = String::new();
        for (name, value) in &self.changes {
            if let (Some(value), false) = (value, names.iter().any(|known| known == name)) {
                if survivors || !added.is_empty() {
                    added.push(',');
                }
                added.push_str(&quoted(name));
                added.push(':');
                added.push_str(value);
            }
        }
        if !added.is_empty() {
            let brace = self.range.start + text[self.range.clone()].find('{').map_or(0, |at| at + 1);
            let at = spans.last().map_or(brace, |(_, value)| value.end);
            edits.push((at..at, added));
        }
    }
}

/// Where a slice of a text lies in it.
fn offset(text: &str, part: &str) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (end <= text.len()).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, removed: &[&str], set: &[(&str, &str)]) -> String {
        let mut splice = Splice::new(text);
        for name in removed {
            splice.remove_member(text, name).unwrap();
        }
        for (name, value) in set {
            splice.set_member(text, name, *value).unwrap();
        }
        let out = splice.finish();
        serde_json::from_str::<serde_json::Value>(&out).unwrap_or_else(|error| panic!("{out}: {error}"));
        out
    }

    #[test]
    fn members_are_removed_with_their_commas() {
        let text = r#"{ "a": 1, "b": 2.0 , "c" : 3 }"#;
        assert_eq!(edited(text, &["a"], &[]), r#"{ "b": 2.0 , "c" : 3 }"#);
        assert_eq!(edited(text, &["b"], &[]), r#"{ "a": 1 , "c" : 3 }"#);
        assert_eq!(edited(text, &["c"], &[]), r#"{ "a": 1, "b": 2.0 }"#);
        assert_eq!(edited(text, &["a", "c"], &[]), r#"{ "b": 2.0 }"#);
        assert_eq!(edited(text, &["a", "b", "c"], &[]), "{  }");
        assert_eq!(edited(text, &["d"], &[]), text);
    }

    #[test]
    fn every_mix_of_removing_setting_and_adding_is_valid_json() {
        let text = r#"{"a":1,"b":2,"c":3}"#;
        for mask in 0..27_u32 {
            let fate = |n: u32| mask / 3_u32.pow(n) % 3;
            let pick =
                |kind| ["a", "b", "c"].into_iter().zip(0..).filter(move |(_, n)| fate(*n) == kind).map(|(x, _)| x);
            let removed: Vec<_> = pick(1).collect();
            let mut set: Vec<_> = pick(2).map(|name| (name, "[9]")).collect();
            set.push(("x", "0"));
            set.push(("y", "{}"));
            let value: serde_json::Value = serde_json::from_str(&edited(text, &removed, &set)).unwrap();
            assert_eq!(value.as_object().unwrap().len(), 3 - removed.len() + 2);
        }
    }

    #[test]
    fn a_repeated_name_is_changed_wherever_it_stands() {
        assert_eq!(edited(r#"{"a":1,"a":2}"#, &[], &[("a", "3")]), r#"{"a":3,"a":3}"#);
        assert_eq!(edited(r#"{"a":1,"b":0,"\u0061":2}"#, &["a"], &[]), r#"{"b":0}"#);
        assert_eq!(edited("{}", &[], &[("a", "1"), ("b", "2")]), r#"{"a":1,"b":2}"#);
    }

    #[test]
    fn nested_edits_stand_beside_each_other_and_foreign_parts_are_refused() {
        let text = r#"{"name":"a","_meta":{"t":1,"k":"x"}}"#;
        let object = Object::parse(text).unwrap();
        let meta = object.get("_meta").unwrap().get();
        let mut splice = Splice::new(text);
        splice.replace(object.get("name").unwrap().get(), "\"b\"").unwrap();
        splice.remove_member(meta, "k").unwrap();
        splice.set_member(text, "z", "0").unwrap();
        assert_eq!(splice.replace("elsewhere", ""), Err(SpliceError::NotAPart));
        assert_eq!(splice.remove_member(object.get("name").unwrap().get(), "k"), Err(SpliceError::NotAnObject));
        assert_eq!(splice.finish(), r#"{"name":"b","_meta":{"t":1},"z":0}"#);
    }
}
