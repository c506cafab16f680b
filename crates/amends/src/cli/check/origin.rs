//! Where each value of a configuration comes from.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toml::de::{DeTable, DeValue};

/// The keys that are written in a file, each with its line.
#[derive(Debug, Default)]
pub(super) struct Keys(BTreeMap<Vec<String>, usize>);

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Nobody wrote it down.
    Default,
    /// It stands in the section of its own tool or upstream.
    Own(usize),
    /// It stands in the section of the tool's upstream.
    Upstream(usize),
}

impl Keys {
    /// The keys of a text that is known to be TOML; none where it is not.
    pub(super) fn of(text: &str) -> Self {
        let mut keys = Self::default();
        let mut ends: Vec<usize> =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        ends.push(usize::MAX);
        if let Ok(document) = DeTable::parse(text) {
            keys.add(document.get_ref(), &mut Vec::new(), &ends);
        }
        keys
    }

    fn add(&mut self, table: &DeTable<'_>, path: &mut Vec<String>, ends: &[usize]) {
        for (name, value) in table {
            path.push(name.get_ref().to_string());
            let line = ends.partition_point(|end| *end < name.span().start) + 1;
            self.0.insert(path.clone(), line);
            if let DeValue::Table(inner) = value.get_ref() {
                self.add(inner, path, ends);
            }
            path.pop();
        }
    }

    fn line(&self, path: [&str; 3]) -> Option<usize> {
        self.0.get(path.map(str::to_owned).as_slice()).copied()
    }

    /// Where a tool's value comes from. Only a few are taken over from its upstream.
    pub(super) fn of_tool(&self, tool: &str, upstream: Option<&str>, key: &str) -> Origin {
        let inherited = ["timeout", "deadline", "rejects_before_effect"].contains(&key);
        let above = || upstream.filter(|_| inherited).and_then(|name| self.line(["upstreams", name, key]));
        match (self.line(["tools", tool, key]), above()) {
            (Some(line), _) => Origin::Own(line),
            (None, Some(line)) => Origin::Upstream(line),
            (None, None) => Origin::Default,
        }
    }

    /// Where an upstream's value comes from.
    pub(super) fn of_upstream(&self, upstream: &str, key: &str) -> Origin {
        self.line(["upstreams", upstream, key]).map_or(Origin::Default, Origin::Own)
    }

    /// Where `[repeats] window` and the like come from.
    pub(super) fn of_section(&self, section: &str, key: &str) -> Origin {
        self.0.get([section.to_owned(), key.to_owned()].as_slice()).map_or(Origin::Default, |line| Origin::Own(*line))
    }
}

impl Origin {
    /// The same in brackets, behind the value.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Default => "(default)".to_owned(),
            Self::Own(line) => format!("(line {line})"),
            Self::Upstream(line) => format!("(its upstream's, line {line})"),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Default => json!({ "from": "default" }),
            Self::Own(line) => json!({ "from": "own", "line": line }),
            Self::Upstream(line) => json!({ "from": "upstream", "line": line }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_place_is_told_with_its_line() {
        let keys = Keys::of(
            "[upstreams.a]\ntimeout = \"1s\"\nqueue = 3\n\n[tools.\"a.b\"]\ndeadline = \"2s\"\n[repeats]\nwindow = \"1m\"\n",
        );
        assert_eq!(keys.of_tool("a.b", Some("a"), "timeout"), Origin::Upstream(2));
        assert_eq!(keys.of_tool("a.b", Some("a"), "deadline"), Origin::Own(6));
        assert_eq!(keys.of_tool("a.b", Some("a"), "queue"), Origin::Default, "the upstream's queue is another thing");
        assert_eq!(keys.of_tool("other", None, "timeout"), Origin::Default);
        assert_eq!(keys.of_upstream("a", "queue"), Origin::Own(3));
        assert_eq!(keys.of_section("repeats", "window"), Origin::Own(8));
    }
}
