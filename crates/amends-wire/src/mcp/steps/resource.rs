//! What of a walk can be read, and where.

use serde_json::json;

/// The scheme of our own addresses.
const SCHEME: &str = "amends://";
/// How many characters the handle of a walk has at most in an address.
const HANDLE_CHARS_MAX: usize = 128;

/// What of a walk can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// What may be done now.
    Next,
    /// What was done.
    History,
    /// The state and its fields.
    State,
    /// The machine as a picture, with where the walk is.
    Graph,
    /// The same as a Mermaid diagram.
    GraphMermaid,
    /// The same in the language of Graphviz.
    GraphDot,
    /// Every recorded event.
    Trace,
}

impl What {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Next, Self::History, Self::State, Self::Graph, Self::GraphMermaid, Self::GraphDot, Self::Trace];

    /// Its name in addresses and arguments.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::History => "history",
            Self::State => "state",
            Self::Graph => "graph",
            Self::GraphMermaid => "graph.mmd",
            Self::GraphDot => "graph.dot",
            Self::Trace => "trace",
        }
    }

    /// The one of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|what| what.as_str() == name)
    }

    /// The type of what is read.
    pub const fn mime_type(self) -> &'static str {
        match self {
            Self::Next | Self::History | Self::State | Self::Trace => "application/json",
            Self::Graph => "image/svg+xml",
            Self::GraphMermaid => "text/plain",
            Self::GraphDot => "text/vnd.graphviz",
        }
    }

    /// Whether a move may change it, so that one can ask to hear of that.
    pub const fn tells_of_changes(self) -> bool {
        matches!(self, Self::Next | Self::State)
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Next => "What may be done now, and the input schema of each",
            Self::History => "The moves that were made and refused, oldest first",
            Self::State => "The state, its fields, and how many moves led there",
            Self::Graph => "The machine as a picture, with where the walk is and what was taken",
            Self::GraphMermaid => "The machine as a Mermaid diagram",
            Self::GraphDot => "The machine in the language of Graphviz",
            Self::Trace => "Every recorded event of the walk",
        }
    }
}

/// An address of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The walk; without one, that of the connection.
    pub session: Option<String>,
    /// What of it.
    pub what: What,
}

impl Address {
    /// Whether an address is ours to answer, whether or not there is anything.
    pub fn is_ours(uri: &str) -> bool {
        uri.get(..SCHEME.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
    }

    /// Reads an address; nothing if there can be nothing.
    ///
    /// ```
    /// use amends_wire::mcp::steps::{Address, What};
    ///
    /// let address = Address::parse("amends://ses_1/graph.mmd").unwrap();
    /// assert_eq!((address.session.as_deref(), address.what), (Some("ses_1"), What::GraphMermaid));
    /// assert_eq!(address.to_string(), "amends://ses_1/graph.mmd");
    /// assert!(Address::parse("amends://../../etc/next").is_none());
    /// ```
    pub fn parse(uri: &str) -> Option<Self> {
        if !Self::is_ours(uri) {
            return None;
        }
        let (session, what) = match uri[SCHEME.len()..].split_once('/') {
            Some((session, what)) => (Some(session), what),
            None => (None, &uri[SCHEME.len()..]),
        };
        let sound = |session: &str| {
            (1..=HANDLE_CHARS_MAX).contains(&session.len())
                && session.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        if session.is_some_and(|session| !sound(session)) {
            return None;
        }
        Some(Self { session: session.map(str::to_owned), what: What::parse(what)? })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.session {
            Some(session) => write!(f, "{SCHEME}{session}/{}", self.what.as_str()),
            None => write!(f, "{SCHEME}{}", self.what.as_str()),
        }
    }
}

/// The entry of `resources/list` for what of the connection's own walk can be read: its address and itself.
pub fn resource(what: What) -> (String, String) {
    let uri = Address { session: None, what }.to_string();
    let entry = json!({
        "uri": uri, "name": what.as_str(), "description": format!("{}, of this connection's walk.", what.words()),
        "mimeType": what.mime_type(),
    });
    (uri, entry.to_string())
}

/// The entry of `resources/templates/list` for what of any walk can be read: its form and itself.
pub fn template(what: What) -> (String, String) {
    let form = format!("{SCHEME}{{session}}/{}", what.as_str());
    let entry = json!({
        "uriTemplate": form, "name": format!("walk {}", what.as_str()),
        "description": format!("{}, of the walk that an answer named in `session`.", what.words()),
        "mimeType": what.mime_type(),
    });
    (form, entry.to_string())
}

/// The result of `resources/read` that holds that text.
pub fn content(uri: &str, what: What, text: &str) -> String {
    json!({ "contents": [{ "uri": uri, "mimeType": what.mime_type(), "text": text }] }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_back_and_odd_ones_lead_nowhere() {
        for what in What::ALL {
            let uri = resource(what).0;
            assert_eq!(Address::parse(&uri), Some(Address { session: None, what }));
            let of_walk = template(what).0.replace("{session}", "ses_a-1");
            assert_eq!(Address::parse(&of_walk).unwrap().to_string(), of_walk);
        }
        for odd in [
            "amends:next",
            "amends://",
            "amends:///next",
            "amends://a b/next",
            "amends://x/y/next",
            "amends://nexts",
            "amends://%2e%2e/next",
            "other://next",
            "",
            "ämends://",
            &format!("amends://{}/next", "x".repeat(200)),
        ] {
            assert_eq!(Address::parse(odd), None, "{odd}");
        }
        assert!(Address::is_ours("AMENDS://whatever") && !Address::is_ours("amend"));
    }
}
