//! The clients of this machine, and which of their servers they reach through us.

use std::net::SocketAddr;
use std::path::Path;

use super::finding::Finding;
use crate::cli::clients::{Found, usual};

pub(super) fn look(address: SocketAddr, folder: &Path) -> Vec<Finding> {
    let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE")).map(std::path::PathBuf::from);
    let found = usual(home.as_deref(), folder);
    if found.is_empty() {
        return vec![Finding::ok("clients", "no client's configuration is in the usual places")];
    }
    found.iter().map(|found| one(found, address)).collect()
}

fn one(found: &Found, address: SocketAddr) -> Finding {
    let about = found.client;
    let path = found.path.display();
    let file = match &found.file {
        Ok(file) => file,
        Err(error) => {
            return Finding::warn(
                about,
                format!("{path} cannot be read: {error:#}"),
                "the client may not read it either; mend it",
            );
        }
    };
    let door = address.to_string();
    let (ours, others): (Vec<_>, Vec<_>) = file.servers.iter().partition(|server| server.is_through_us(&door));
    let names = |servers: &[&crate::cli::clients::Server]| {
        servers.iter().map(|server| format!("`{}`", server.name)).collect::<Vec<_>>().join(", ")
    };
    match (ours.is_empty(), others.is_empty()) {
        (true, true) => Finding::ok(about, format!("{path} names no servers")),
        (false, true) => Finding::ok(about, format!("{path}: all through us: {}", names(&ours))),
        (true, false) => Finding::warn(
            about,
            format!("{path}: past us: {}", names(&others)),
            &format!("`amends init --client {path}` writes a configuration for them"),
        ),
        (false, false) => Finding::warn(
            about,
            format!("{path}: through us: {}; past us: {}", names(&ours), names(&others)),
            "put `amends wrap --` before the others' commands, or serve them as well",
        ),
    }
}
