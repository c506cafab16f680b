//! The answer to `tools/list`: what an upstream says of its tools.

use serde_json::value::RawValue;

use crate::object::{Object, is_null, is_object, quoted};
use crate::splice::Splice;

/// A page of an upstream's tools.
#[derive(Clone, Debug)]
pub struct ToolList {
    /// The tools that can be read.
    pub tools: Vec<ToolListing>,
    /// How many entries could not be read: they have no name, or are not objects.
    pub unreadable: usize,
    /// Where the next page starts.
    pub next_cursor: Option<String>,
}

/// A tool as its upstream lists it.
#[derive(Clone, Debug)]
pub struct ToolListing {
    /// Its name over there.
    pub name: String,
    /// All of it, byte for byte.
    pub raw: Box<RawValue>,
    /// What it takes.
    pub input_schema: Option<Box<RawValue>>,
    /// What it gives.
    pub output_schema: Option<Box<RawValue>>,
    /// What it says of itself, which nobody vouches for.
    pub annotations: Hints,
}

/// What a tool says of its own effect. These are hints, and count only where the operator trusts the upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// The same arguments lead to the same end state.
    pub idempotent: Option<bool>,
    /// It can destroy something.
    pub destructive: Option<bool>,
}

impl ToolList {
    /// Reads the result of a `tools/list`; nothing if there is no list in it.
    pub fn parse(result: &str) -> Option<Self> {
        let object = Object::parse(result)?;
        let entries: Vec<&RawValue> = serde_json::from_str(object.get("tools")?.get()).ok()?;
        let tools: Vec<_> = entries.iter().filter_map(|raw| ToolListing::parse(raw)).collect();
        Some(Self {
            unreadable: entries.len() - tools.len(),
            tools,
            next_cursor: object.string("nextCursor").map(|cursor| cursor.into_owned()),
        })
    }
}

impl ToolListing {
    /// Reads one entry; nothing if it has no name.
    pub fn parse(raw: &RawValue) -> Option<Self> {
        let object = Object::parse(raw.get())?;
        let schema = |name| object.get(name).filter(|schema| !is_null(schema)).map(ToOwned::to_owned);
        let annotations = object.get("annotations").and_then(|hints| Object::parse(hints.get()));
        let hint = |name| serde_json::from_str(annotations.as_ref()?.get(name)?.get()).ok();
        Some(Self {
            name: object.string("name").filter(|name| !name.is_empty())?.into_owned(),
            raw: raw.to_owned(),
            input_schema: schema("inputSchema"),
            output_schema: schema("outputSchema"),
            annotations: Hints {
                read_only: hint("readOnlyHint"),
                idempotent: hint("idempotentHint"),
                destructive: hint("destructiveHint"),
            },
        })
    }
}

/// A tool's entry under another name; all other bytes stay as they are.
pub fn rename(raw: &RawValue, name: &str) -> String {
    let mut splice = Splice::new(raw.get());
    if is_object(raw) {
        let _ = splice.set_member(raw.get(), "name", quoted(name));
    }
    splice.finish()
}

/// The result of an upstream's `tools/list` with one more entry; all other bytes stay as they are.
pub fn with_entry(result: &str, entry: &str) -> String {
    let mut splice = Splice::new(result);
    if let Some(tools) = Object::parse(result).and_then(|object| object.get("tools").map(RawValue::get))
        && tools.ends_with(']')
    {
        let head = tools[..tools.len() - 1].trim_end();
        let comma = if head.ends_with('[') { "" } else { "," };
        let _ = splice.replace(tools, format!("{head}{comma}{entry}]"));
    }
    splice.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_keeps_its_bytes_and_tells_its_hints() {
        let text = r#"{"tools":[{"description":"x", "name":"pay","inputSchema":{"type":"object"},"x-a":1.0,
            "annotations":{"readOnlyHint":true,"idempotentHint":"yes"}},{"title":"no name"},7],"nextCursor":"c"}"#;
        let list = ToolList::parse(text).unwrap();
        assert_eq!((list.tools.len(), list.unreadable, list.next_cursor.as_deref()), (1, 2, Some("c")));
        let tool = &list.tools[0];
        assert_eq!(tool.annotations, Hints { read_only: Some(true), idempotent: None, destructive: None });
        assert_eq!(tool.input_schema.as_ref().unwrap().get(), r#"{"type":"object"}"#);
        assert!(tool.output_schema.is_none());
        let renamed = rename(&tool.raw, "shop__pay");
        assert_eq!(renamed, tool.raw.get().replace("\"pay\"", "\"shop__pay\""));
        let more = with_entry(text, "{\"name\":\"undo\"}");
        assert_eq!(more, text.replace("},7]", "},7,{\"name\":\"undo\"}]"));
        assert_eq!(with_entry("{\"tools\":[ ]}", "{}"), "{\"tools\":[{}]}");
    }

    #[test]
    fn what_is_no_list_is_nothing() {
        for text in ["", "{}", "[]", r#"{"tools":{}}"#, r#"{"tools":null}"#] {
            assert!(ToolList::parse(text).is_none(), "{text}");
        }
        assert!(ToolList::parse(r#"{"tools":[]}"#).unwrap().tools.is_empty());
    }
}
