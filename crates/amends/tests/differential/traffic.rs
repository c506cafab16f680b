//! The requests of `tests/differential/traffic.txt`.

use crate::support::root;

/// What a stateless request must carry.
const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"differential","version":"1.0"}"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

impl Era {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

/// One request as it is sent, without its id.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) params: String,
}

impl Asked {
    pub(crate) fn new(method: &str, params: &str) -> Self {
        Self { method: method.to_owned(), params: params.to_owned() }
    }

    pub(crate) fn message(&self, id: u64) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{}","params":{}}}"#, self.method, self.params)
    }
}

/// The first words of a client of that era.
pub(crate) fn greeting(era: Era) -> Asked {
    match era {
        Era::Legacy => Asked::new(
            "initialize",
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"differential","version":"1.0"},"x":1.0}"#,
        ),
        Era::Modern => Asked::new("server/discover", &format!(r#"{{"x":1.0,"_meta":{{{META}}}}}"#)),
    }
}

/// What a client of that era asks for, in order.
pub(crate) fn traffic(era: Era) -> Vec<Asked> {
    let text = std::fs::read_to_string(root().join("tests/differential/traffic.txt")).expect("the traffic");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parts = lines.map(|line| line.splitn(3, ' ').collect::<Vec<_>>());
    let ours = parts.filter(|parts| parts[0] == "both" || parts[0] == era.name());
    ours.map(|parts| Asked::new(parts[1], &filled(parts[2], era))).collect()
}

fn filled(params: &str, era: Era) -> String {
    let (alone, after, whole) = match era {
        Era::Legacy => (String::new(), String::new(), String::new()),
        Era::Modern => (META.to_owned(), format!(",{META}"), format!(r#","_meta":{{{META}}}"#)),
    };
    params.replace("%META%", &alone).replace("%,META%", &after).replace("%,_META%", &whole)
}
