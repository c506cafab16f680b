//! What changes in a call on its way to the upstream.

use amends_core::contract::{KeyPlace, Place};

use super::{ANSWER, DEADLINE, DIALECT, HOLD, KEY, SESSION, ToolCall};
use crate::object::{Object, quoted};
use crate::splice::Splice;

/// What becomes of the progress token on the way to the upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProgressToken {
    /// It stays as it is.
    #[default]
    Keep,
    /// It is taken out.
    Remove,
    /// This one, as JSON, goes in its place.
    Replace(String),
}

/// What changes in a call on its way to the upstream.
#[derive(Clone, Debug, Default)]
pub struct Edits<'a> {
    /// The tool's name over there, if it is another.
    pub name: Option<&'a str>,
    /// What becomes of the progress token.
    pub progress_token: ProgressToken,
    /// The idempotency key and where it goes. A header is the transport's to write, and changes nothing here.
    pub key: Option<(&'a KeyPlace, &'a str)>,
    /// Members of `_meta` to set, as names and JSON: a version, a client's info.
    pub meta: &'a [(&'a str, &'a str)],
    /// Members of `_meta` to take out.
    pub without_meta: &'a [&'a str],
}

impl ToolCall<'_> {
    /// The params for the upstream: what is ours or the agent's with us alone is taken out, the edits are made, and all other
    /// bytes stay as they are.
    pub fn outgoing(&self, edits: &Edits<'_>) -> String {
        let mut splice = Splice::new(self.params);
        let done = "`parse` found the params, the arguments and `_meta` to be objects";
        if let Some(name) = edits.name {
            splice.replace(self.name_raw.get(), quoted(name)).expect(done);
        }
        let mut set: Vec<(&str, String)> =
            edits.meta.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        match edits.key {
            Some((KeyPlace { place: Place::Argument(argument), .. }, key)) => match self.arguments {
                Some(arguments) => splice.set_member(arguments.get(), argument, quoted(key)).expect(done),
                None => {
                    let arguments = format!("{{{}:{}}}", quoted(argument), quoted(key));
                    splice.set_member(self.params, "arguments", arguments).expect(done);
                }
            },
            Some((KeyPlace { place: Place::Meta(field), .. }, key)) => set.push((field, quoted(key))),
            Some((KeyPlace { place: Place::Header(_), .. }, _)) | None => {}
        }
        if let ProgressToken::Replace(token) = &edits.progress_token {
            set.push(("progressToken", token.clone()));
        }
        match self.meta {
            Some(meta) => {
                let known = Object::parse(meta.get()).expect(done);
                let mut gone = vec![KEY, SESSION, DEADLINE, DIALECT, HOLD, ANSWER];
                gone.extend(edits.without_meta);
                if edits.progress_token == ProgressToken::Remove {
                    gone.push("progressToken");
                }
                for name in gone.into_iter().filter(|name| known.get(name).is_some()) {
                    splice.remove_member(meta.get(), name).expect(done);
                }
                for (name, value) in set {
                    splice.set_member(meta.get(), name, value).expect(done);
                }
            }
            None if set.is_empty() => {}
            None => {
                // Where a name is set twice, the last counts; both would leave the choice to the upstream's reader.
                let last = |n: usize, name: &str| !set[n + 1..].iter().any(|(later, _)| *later == name);
                let members = set.iter().enumerate().filter(|(n, (name, _))| last(*n, name));
                let members: Vec<_> = members.map(|(_, (name, value))| format!("{}:{value}", quoted(name))).collect();
                splice.set_member(self.params, "_meta", format!("{{{}}}", members.join(","))).expect(done);
            }
        }
        splice.finish()
    }
}

/// The params of a request with the milliseconds that are left for it in their `_meta`, just before it leaves.
pub fn with_deadline(params: &str, left_ms: u64) -> String {
    let mut splice = Splice::new(params);
    let meta = Object::parse(params).and_then(|params| params.get("_meta"));
    let set = match meta.filter(|meta| Object::parse(meta.get()).is_some()) {
        Some(meta) => splice.set_member(meta.get(), DEADLINE, left_ms.to_string()),
        None => splice.set_member(params, "_meta", format!("{{{}:{left_ms}}}", quoted(DEADLINE))),
    };
    match set {
        Ok(()) => splice.finish(),
        Err(_) => params.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn only_what_is_edited_changes_on_the_way_out() {
        let raw = raw(
            r#"{ "x":[1.0], "name": "shop__pay", "arguments": {"n": 1e0}, "_meta":{"amends/key":"k", "t":null,"progressToken":9}}"#,
        );
        let call = ToolCall::parse(Some(&raw)).unwrap();
        let place = KeyPlace { place: Place::Argument("key".into()), window_ms: 1, durable: false };
        let edits = Edits {
            name: Some("pay"),
            progress_token: ProgressToken::Replace("\"p1\"".into()),
            key: Some((&place, "e\"1")),
            ..Edits::default()
        };
        assert_eq!(
            call.outgoing(&edits),
            r#"{ "x":[1.0], "name": "pay", "arguments": {"n": 1e0,"key":"e\"1"}, "_meta":{"t":null,"progressToken":"p1"}}"#
        );
        assert_eq!(
            call.outgoing(&Edits { progress_token: ProgressToken::Remove, ..Edits::default() }),
            r#"{ "x":[1.0], "name": "shop__pay", "arguments": {"n": 1e0}, "_meta":{"t":null}}"#
        );
    }

    #[test]
    fn what_is_missing_is_made_for_a_key() {
        let raw = raw(r#"{"name":"a"}"#);
        let call = ToolCall::parse(Some(&raw)).unwrap();
        assert_eq!(call.outgoing(&Edits::default()), r#"{"name":"a"}"#);
        let sent = |place| {
            let place = KeyPlace { place, window_ms: 1, durable: false };
            call.outgoing(&Edits { key: Some((&place, "k")), ..Edits::default() })
        };
        assert_eq!(sent(Place::Argument("i".into())), r#"{"name":"a","arguments":{"i":"k"}}"#);
        assert_eq!(sent(Place::Meta("x/key".into())), r#"{"name":"a","_meta":{"x/key":"k"}}"#);
        assert_eq!(sent(Place::Header("Idempotency-Key".into())), r#"{"name":"a"}"#);
    }

    #[test]
    fn a_member_that_is_set_twice_goes_out_once() {
        let raw = raw(r#"{"name":"a"}"#);
        let call = ToolCall::parse(Some(&raw)).unwrap();
        let place = KeyPlace { place: Place::Meta("progressToken".into()), window_ms: 1, durable: false };
        let edits = Edits {
            key: Some((&place, "k")),
            progress_token: ProgressToken::Replace("7".into()),
            meta: &[("a", "1"), ("progressToken", "0")],
            ..Edits::default()
        };
        assert_eq!(call.outgoing(&edits), r#"{"name":"a","_meta":{"a":1,"progressToken":7}}"#);
    }

    #[test]
    fn the_time_that_is_left_goes_into_meta_and_nothing_else_changes() {
        for (params, stamped) in [
            (r#"{"name":"a", "n":1.0}"#, r#"{"name":"a", "n":1.0,"_meta":{"amends/deadline":70}}"#),
            (r#"{"_meta":{ "t":1e0}}"#, r#"{"_meta":{ "t":1e0,"amends/deadline":70}}"#),
            (r#"{"_meta":{"amends/deadline":9,"t":1}}"#, r#"{"_meta":{"amends/deadline":70,"t":1}}"#),
            (r"{}", r#"{"_meta":{"amends/deadline":70}}"#),
        ] {
            assert_eq!(with_deadline(params, 70), stamped);
        }
    }
}
