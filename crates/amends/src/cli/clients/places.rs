//! Where clients usually keep their configurations.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::ClientFile;

/// A client's configuration that is there.
#[derive(Debug)]
pub(in crate::cli) struct Found {
    /// The client.
    pub(in crate::cli) client: &'static str,
    /// The file.
    pub(in crate::cli) path: PathBuf,
    /// What it says, or why that is not known.
    pub(in crate::cli) file: Result<ClientFile>,
}

/// Files in a person's home, and files in a project.
const AT_HOME: [(&str, &str); 14] = [
    ("Claude Desktop", ".config/Claude/claude_desktop_config.json"),
    ("Claude Desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
    ("Claude Desktop", "AppData/Roaming/Claude/claude_desktop_config.json"),
    ("Claude Code", ".claude.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("VS Code", ".config/Code/User/mcp.json"),
    ("VS Code", "Library/Application Support/Code/User/mcp.json"),
    ("VS Code", "AppData/Roaming/Code/User/mcp.json"),
    ("Copilot", ".copilot/mcp-config.json"),
    ("Zed", ".config/zed/settings.json"),
    ("Windsurf", ".codeium/windsurf/mcp_config.json"),
    ("Codex", ".codex/config.toml"),
    ("Gemini CLI", ".gemini/settings.json"),
    ("opencode", ".config/opencode/opencode.json"),
];
const IN_A_PROJECT: [(&str, &str); 6] = [
    ("Claude Code", ".mcp.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("VS Code", ".vscode/mcp.json"),
    ("Zed", ".zed/settings.json"),
    ("Codex", ".codex/config.toml"),
    ("Gemini CLI", ".gemini/settings.json"),
];

/// The configurations that are in the usual places, as they are seen from a folder.
pub(in crate::cli) fn usual(home: Option<&Path>, folder: &Path) -> Vec<Found> {
    let at_home = home.into_iter().flat_map(|home| AT_HOME.map(|(client, path)| (client, home.join(path))));
    let here = IN_A_PROJECT.map(|(client, path)| (client, folder.join(path)));
    let mut found: Vec<Found> = Vec::new();
    for (client, path) in at_home.chain(here) {
        let same = |known: &Found| known.path.canonicalize().ok() == path.canonicalize().ok();
        if path.is_file() && !found.iter().any(same) {
            found.push(Found { client, file: ClientFile::read(&path), path });
        }
    }
    found
}
