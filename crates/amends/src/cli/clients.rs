//! The configurations of MCP clients: which servers they name, and where such files usually are.

mod jsonc;
mod places;
mod secret;
mod shape;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

pub(super) use places::{Found, usual};
pub(super) use secret::{looks_secret, referred};

/// The largest file that is read as a client's configuration.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// How many servers of a file are looked at.
const SERVERS_MAX: usize = 256;

/// What a client's configuration says of its servers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ClientFile {
    /// Its servers, in the order of their names.
    pub(super) servers: Vec<Server>,
    /// Entries that are no server for us, each with the reason.
    pub(super) skipped: Vec<(String, String)>,
}

/// A server that a client's configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// What the client calls it.
    pub(super) name: String,
    /// How the client reaches it.
    pub(super) reach: ServerReach,
    /// Whether the client reaches it through `amends wrap`.
    pub(super) wrapped: bool,
    /// What is worth saying about it.
    pub(super) notes: Vec<String>,
}

/// How a client reaches a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerReach {
    /// It starts a command.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// What the client adds to its environment.
        env: BTreeMap<String, String>,
        /// The folder it is started in, where the client says so.
        cwd: Option<String>,
    },
    /// It posts to an address.
    Url {
        /// The address.
        url: String,
        /// The headers it sends along.
        headers: BTreeMap<String, String>,
    },
}

impl ClientFile {
    /// Reads a file: JSON with or without comments, or TOML where its name ends so.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let unreadable = || format!("cannot read `{}`", path.display());
        let size = std::fs::metadata(path).with_context(unreadable)?.len();
        if size > FILE_BYTES_MAX {
            bail!("`{}` has {size} bytes, which is too much for a client's configuration", path.display());
        }
        let text = std::fs::read_to_string(path).with_context(unreadable)?;
        let is_toml = path.extension().is_some_and(|extension| extension == "toml");
        let file = Self::parse(&text, is_toml).with_context(|| format!("`{}` is not understood", path.display()))?;
        Ok(file)
    }

    fn parse(text: &str, is_toml: bool) -> Result<Self> {
        let text = text.trim_start_matches('\u{feff}');
        let value: serde_json::Value =
            if is_toml { toml::from_str(text)? } else { serde_json::from_str(&jsonc::plain(text))? };
        let mut file = Self::default();
        for (name, entry) in shape::entries(&value).into_iter().take(SERVERS_MAX) {
            match shape::server(&name, entry) {
                Ok(server) => file.servers.push(server.unwrapped()),
                Err(reason) => file.skipped.push((name, reason)),
            }
        }
        file.servers.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(file)
    }
}

impl Server {
    /// The server behind `amends wrap`, where that is how the client starts it.
    fn unwrapped(mut self) -> Self {
        let ServerReach::Command { command, .. } = &mut self.reach else { return self };
        let is_ours = command.first().is_some_and(|program| is_amends(program));
        if !is_ours || command.get(1).map(String::as_str) != Some("wrap") {
            return self;
        }
        if let Some(at) = command.iter().position(|word| word == "--").filter(|at| at + 1 < command.len()) {
            command.drain(..=at);
            self.wrapped = true;
        }
        self
    }

    /// Whether the client reaches it through us: by `amends wrap`, or by the address of our door.
    pub(super) fn is_through_us(&self, door: &str) -> bool {
        match &self.reach {
            ServerReach::Command { command, .. } => {
                self.wrapped || command.first().is_some_and(|program| is_amends(program))
            }
            ServerReach::Url { url, .. } => is_door(url, door),
        }
    }
}

/// Whether a program is this one, by its name.
fn is_amends(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name == "amends" || name.eq_ignore_ascii_case("amends.exe")
}

/// Whether an address leads to our MCP door, which listens at that address and port.
fn is_door(url: &str, door: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let local = |host: &str| host.replacen("localhost", "127.0.0.1", 1).replacen("0.0.0.0", "127.0.0.1", 1);
    local(host) == local(door) && path.trim_end_matches('/') == "mcp"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(file: &ClientFile) -> Vec<&str> {
        file.servers.iter().map(|server| server.name.as_str()).collect()
    }

    fn command<'a>(file: &'a ClientFile, name: &str) -> &'a [String] {
        let server = file.servers.iter().find(|server| server.name == name).expect("the server");
        match &server.reach {
            ServerReach::Command { command, .. } => command,
            ServerReach::Url { url, .. } => panic!("{url}"),
        }
    }

    #[test]
    fn every_known_shape_is_understood() {
        let desktop = r#"{"mcpServers": {"a": {"command": "npx", "args": ["-y", "s"], "env": {"N": 1, "X": null}}}}"#;
        let file = ClientFile::parse(desktop, false).unwrap();
        assert_eq!(command(&file, "a"), ["npx", "-y", "s"]);
        let code = "{ // servers\n \"servers\": {\"b\": {\"type\": \"http\", \"url\": \"http://h/mcp\",}, /* no */},}";
        assert_eq!(names(&ClientFile::parse(code, false).unwrap()), ["b"]);
        let settings = r#"{"mcp": {"servers": {"c": {"command": "x"}}}, "theme": "dark"}"#;
        assert_eq!(names(&ClientFile::parse(settings, false).unwrap()), ["c"]);
        let zed = r#"{"context_servers": {
            "new": {"source": "custom", "command": "x", "args": ["1"]},
            "old": {"command": {"path": "y", "args": ["2"], "env": {"A": "b"}}},
            "far": {"url": "https://h/mcp"},
            "ext": {"settings": {}}}}"#;
        let file = ClientFile::parse(zed, false).unwrap();
        assert_eq!(names(&file), ["far", "new", "old"]);
        assert_eq!(command(&file, "old"), ["y", "2"]);
        assert_eq!(file.skipped[0].0, "ext");
        let windsurf = r#"{"mcpServers": {"d": {"serverUrl": "https://h/mcp"}, "e": {"httpUrl": "http://h/e"}}}"#;
        assert_eq!(names(&ClientFile::parse(windsurf, false).unwrap()), ["d", "e"]);
        let codex =
            "[mcp_servers.f]\ncommand = \"z\"\nargs = [\"3\"]\n[mcp_servers.g]\nurl = \"http://h\"\nenabled = false\n";
        let file = ClientFile::parse(codex, true).unwrap();
        assert_eq!((command(&file, "f"), file.skipped.len()), (&["z".to_owned(), "3".into()][..], 1));
        let claude =
            r#"{"mcpServers": {"h": {"command": "x"}}, "projects": {"/p": {"mcpServers": {"i": {"command": "y"}}}}}"#;
        assert_eq!(names(&ClientFile::parse(claude, false).unwrap()), ["h", "i"]);
        let open = r#"{"mcp": {"j": {"type": "local", "command": ["x", "1"], "environment": {"A": "b"}}}}"#;
        assert_eq!(command(&ClientFile::parse(open, false).unwrap(), "j"), ["x", "1"]);
    }

    #[test]
    fn what_is_no_configuration_is_said_to_be_none() {
        for text in ["", "[]", "7", "{\"mcpServers\": [1]}", "{}"] {
            assert!(
                ClientFile::parse(text, false).is_err() || ClientFile::parse(text, false).unwrap().servers.is_empty()
            );
        }
        let odd = r#"{"mcpServers": {"a": 1, "b": {}, "c": {"command": ""}, "d": {"command": "x", "args": "y"}}}"#;
        assert_eq!(ClientFile::parse(odd, false).unwrap().skipped.len(), 4);
    }

    #[test]
    fn a_wrapped_server_is_seen_through() {
        let text = r#"{"mcpServers": {
            "a": {"command": "/opt/amends", "args": ["wrap", "--config", "f", "--", "npx", "s"]},
            "b": {"url": "http://localhost:7070/mcp"}, "c": {"url": "http://localhost:7070/other"}}}"#;
        let file = ClientFile::parse(text, false).unwrap();
        assert_eq!(command(&file, "a"), ["npx", "s"]);
        let through: Vec<bool> = file.servers.iter().map(|server| server.is_through_us("127.0.0.1:7070")).collect();
        assert_eq!(through, [true, true, false]);
    }
}
