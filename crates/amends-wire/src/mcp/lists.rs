//! The four lists of MCP: tools, prompts, resources and templates of resources.

use serde_json::value::RawValue;

use crate::object::{Object, is_object, quoted};
use crate::splice::Splice;

/// Which list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// What can be called.
    Tools,
    /// What a user can pick to say.
    Prompts,
    /// What can be read.
    Resources,
    /// The forms of addresses that can be read.
    Templates,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The list that a method asks for.
    pub fn of_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The method that asks for it.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The member of the result that holds it.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The member of an entry that it is known by.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// The capability of a server that has such a list.
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// The notification that says that it changed.
    pub const fn changed(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources | Self::Templates => "notifications/resources/list_changed",
        }
    }
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// The entries that can be read.
    pub entries: Vec<Entry>,
    /// How many cannot: they are not objects, or have nothing to be known by.
    pub unreadable: usize,
    /// Where the next page starts.
    pub next_cursor: Option<String>,
    /// For how many milliseconds it may be kept, where it says so.
    pub ttl_ms: Option<u64>,
}

/// An entry of a list.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it is known by: its name, its address, or the form of its addresses.
    pub key: String,
    /// All of it, byte for byte.
    pub raw: Box<RawValue>,
}

impl Page {
    /// Reads the result that holds a list; nothing if there is none in it.
    pub fn parse(kind: Kind, result: &str) -> Option<Self> {
        let object = Object::parse(result)?;
        let raws: Vec<&RawValue> = serde_json::from_str(object.get(kind.member())?.get()).ok()?;
        let read = |raw: &&RawValue| {
            let key = Object::parse(raw.get())?.string(kind.key()).filter(|key| !key.is_empty())?.into_owned();
            Some(Entry { key, raw: (*raw).to_owned() })
        };
        let entries: Vec<_> = raws.iter().filter_map(read).collect();
        Some(Self {
            unreadable: raws.len() - entries.len(),
            entries,
            next_cursor: object.string("nextCursor").map(|cursor| cursor.into_owned()),
            ttl_ms: object.get("ttlMs").and_then(|ttl| ttl.get().parse().ok()),
        })
    }
}

/// An entry known by something else; all other bytes stay as they are.
pub fn renamed(kind: Kind, raw: &RawValue, key: &str) -> String {
    let mut splice = Splice::new(raw.get());
    if is_object(raw) {
        let _ = splice.set_member(raw.get(), kind.key(), quoted(key));
    }
    splice.finish()
}

/// An entry with one more member in its `_meta`; all other bytes stay as they are.
pub fn with_meta(entry: &str, name: &str, value: &str) -> String {
    let mut splice = Splice::new(entry);
    let meta = Object::parse(entry).and_then(|object| object.get("_meta")).filter(|meta| is_object(meta));
    let set = match meta {
        Some(meta) => splice.set_member(meta.get(), name, value),
        None => splice.set_member(entry, "_meta", format!("{{{}:{value}}}", quoted(name))),
    };
    match set {
        Ok(()) => splice.finish(),
        Err(_) => entry.to_owned(),
    }
}

/// A result of our own that holds a list: entries as they are, and where the next page starts.
pub fn list<'a>(kind: Kind, entries: impl IntoIterator<Item = &'a str>, next_cursor: Option<&str>) -> String {
    let mut out = format!("{{\"{}\":[", kind.member());
    for (n, entry) in entries.into_iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        out.push_str(entry);
    }
    out.push(']');
    if let Some(cursor) = next_cursor {
        out.push_str(",\"nextCursor\":");
        out.push_str(&quoted(cursor));
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_list_is_read_by_its_own_words_and_written_back_as_it_was() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_method(kind.method()), Some(kind));
            let entry = format!(r#"{{ "x":1.0,"{}":"a\u0062","_meta":{{"m":1}} }}"#, kind.key());
            let text = format!(r#"{{"{}":[{entry},7,{{}}],"nextCursor":"c","ttlMs":5}}"#, kind.member());
            let page = Page::parse(kind, &text).unwrap();
            assert_eq!((page.entries.len(), page.unreadable, page.ttl_ms), (1, 2, Some(5)));
            assert_eq!((page.entries[0].key.as_str(), page.entries[0].raw.get()), ("ab", entry.as_str()));
            let again = list(kind, [entry.as_str()], page.next_cursor.as_deref());
            assert_eq!(Page::parse(kind, &again).unwrap().next_cursor.as_deref(), Some("c"));
            let other = renamed(kind, &page.entries[0].raw, "s__ab");
            assert_eq!(other, entry.replace(r#""a\u0062""#, r#""s__ab""#));
            let marked = with_meta(&other, "amends/x", "true");
            assert!(marked.contains(r#""_meta":{"m":1,"amends/x":true}"#), "{marked}");
        }
        assert_eq!(with_meta("{}", "a", "1"), r#"{"_meta":{"a":1}}"#);
        assert_eq!(with_meta("7", "a", "1"), "7");
    }

    #[test]
    fn what_is_no_list_is_nothing() {
        for text in ["", "{}", "[]", r#"{"prompts":{}}"#, r#"{"prompts":null}"#, r#"{"tools":[]}"#] {
            assert!(Page::parse(Kind::Prompts, text).is_none(), "{text}");
        }
    }
}
