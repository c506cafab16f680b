//! A server that a configuration is written for: where it came from, and how it becomes an upstream.

use std::collections::BTreeMap;
use std::path::Path;

use super::name;
use super::toml_text::{comment, key, list, quoted};
use crate::cli::clients::{Server, ServerReach, looks_secret, referred};

/// A server to write an upstream for.
#[derive(Debug)]
pub(super) struct Source {
    /// The upstream's name.
    pub(super) name: String,
    /// How it is reached.
    pub(super) reach: ServerReach,
    /// Variables that somebody named to be passed on.
    pub(super) pass: Vec<String>,
    /// Where it was found, in words.
    pub(super) from: String,
    /// What is worth saying.
    pub(super) notes: Vec<String>,
    /// Whether it may see our whole environment while it is looked at: a command somebody typed just now.
    pub(super) typed: bool,
}

/// An upstream as it is written, and what it wants to find in the environment.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The lines of its section.
    pub(super) lines: Vec<String>,
    /// Variables that have to be set, each with where its value was.
    pub(super) wants: BTreeMap<String, String>,
    /// What could not be taken over.
    pub(super) lost: Vec<String>,
}

impl Source {
    pub(super) fn typed(name: Option<&str>, command: &[String], pass: &[String]) -> Self {
        let name = name.map_or_else(|| name::of_command(command), str::to_owned);
        let reach = ServerReach::Command { command: command.to_vec(), env: BTreeMap::new(), cwd: None };
        Self { name, reach, pass: pass.to_vec(), from: "the command line".into(), notes: Vec::new(), typed: true }
    }

    pub(super) fn at(name: Option<&str>, url: &str) -> Self {
        let name = name.map_or_else(|| name::of_url(url), str::to_owned);
        let reach = ServerReach::Url { url: url.to_owned(), headers: BTreeMap::new() };
        Self { name, reach, pass: Vec::new(), from: "the command line".into(), notes: Vec::new(), typed: false }
    }

    pub(super) fn of_client(server: Server, file: &Path) -> Self {
        let mut notes = server.notes;
        if server.wrapped {
            notes.push("the client starts it through `amends wrap`; this is the server behind it".to_owned());
        }
        let from = format!("`{}` in {}", server.name, file.display());
        Self { name: name::sound(&server.name), reach: server.reach, pass: Vec::new(), from, notes, typed: false }
    }

    /// How it becomes an upstream. No secret is in it.
    pub(super) fn write(&self) -> Written {
        let mut written = Written::default();
        match &self.reach {
            ServerReach::Command { command, env, cwd } => {
                written.command(command);
                written.lines.extend(cwd.as_ref().map(|folder| format!("cwd = {}", quoted(folder))));
                written.environment(env, &self.pass, &self.from);
            }
            ServerReach::Url { url, headers } => {
                written.address(url);
                written.headers(&self.name, headers, &self.from);
            }
        }
        written
    }
}

impl Written {
    fn command(&mut self, command: &[String]) {
        let mut words = command.to_vec();
        for at in 1..words.len() {
            let (flag, value) = match words[at].split_once('=') {
                Some((flag, value)) if flag.starts_with('-') => (flag.to_owned(), value.to_owned()),
                _ => (words[at - 1].clone(), words[at].clone()),
            };
            let flag = if flag.starts_with('-') { flag.trim_start_matches('-').to_owned() } else { String::new() };
            if value.starts_with('-') || value.is_empty() || !looks_secret(&flag, &value) {
                continue;
            }
            let inside = words[at].starts_with('-');
            let place = if flag.is_empty() { format!("argument {at}") } else { format!("the value of `--{flag}`") };
            self.lost.push(format!(
                "{place} looks like a secret and was not copied; write it another way than into this file"
            ));
            words[at] = if inside { format!("--{flag}=REPLACE_ME") } else { "REPLACE_ME".to_owned() };
        }
        self.lines.push(format!("command = {}", list(&words)));
    }

    fn environment(&mut self, env: &BTreeMap<String, String>, pass: &[String], from: &str) {
        let mut passed = pass.to_vec();
        let mut plain = Vec::new();
        for (name, value) in env {
            let origin = match referred(value) {
                Some(Some(variable)) if variable == name => Some("your environment".to_owned()),
                Some(Some(variable)) => Some(format!("the variable `{variable}`")),
                Some(None) => Some(format!("what the client asks for (`{value}`)")),
                None if looks_secret(name, value) => Some(from.to_owned()),
                None => None,
            };
            match origin {
                Some(origin) => {
                    passed.push(name.clone());
                    self.wants.insert(name.clone(), origin);
                }
                None => plain.push(format!("{} = {}", key(name), quoted(value))),
            }
        }
        if !plain.is_empty() {
            self.lines.push(format!("env = {{ {} }}", plain.join(", ")));
        }
        passed.sort();
        passed.dedup();
        if !passed.is_empty() {
            self.lines
                .push(format!("env_pass = {}    # their values come from the environment of `amends`", list(&passed)));
        }
    }

    fn address(&mut self, url: &str) {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
        let (authority, path) =
            place.split_once('/').map_or((place, None), |(authority, path)| (authority, Some(path)));
        let mut kept = match authority.rsplit_once('@') {
            Some((_, host)) => {
                self.lost.push("its address holds a name or a password, which were not copied".to_owned());
                format!("{scheme}://{host}")
            }
            None => format!("{scheme}://{authority}"),
        };
        if let Some(path) = path {
            kept.push('/');
            kept.push_str(path);
        }
        if let Some(query) = query {
            let secret = |part: &str| part.split_once('=').is_some_and(|(name, value)| looks_secret(name, value));
            let parts: Vec<&str> = query.split('&').filter(|part| !secret(part)).collect();
            if parts.len() < query.split('&').count() {
                self.lost.push("its address holds what looks like a secret, which was not copied".to_owned());
            }
            if !parts.is_empty() {
                kept.push('?');
                kept.push_str(&parts.join("&"));
            }
        }
        self.lines.push(format!("url = {}", quoted(&kept)));
    }

    /// Headers are always read from the environment: what a client sends along is there to prove who it is.
    fn headers(&mut self, upstream: &str, headers: &BTreeMap<String, String>, from: &str) {
        let mut written = Vec::new();
        for (header, value) in headers {
            let (prefix, rest) = match value.split_once(' ') {
                Some((scheme @ ("Bearer" | "Basic" | "Token"), rest)) => (format!("{scheme} "), rest),
                _ => (String::new(), value.as_str()),
            };
            let variable = match referred(rest) {
                Some(Some(variable)) => variable.to_owned(),
                _ => name::variable(upstream, header),
            };
            let prefix = if prefix.is_empty() { String::new() } else { format!(", prefix = {}", quoted(&prefix)) };
            written.push(format!("{} = {{ env = {}{prefix} }}", key(header), quoted(&variable)));
            self.wants.insert(variable, from.to_owned());
        }
        if !written.is_empty() {
            self.lines.push(format!("headers = {{ {} }}", written.join(", ")));
        }
    }
}

impl Source {
    /// What a reader of the file should know of it.
    pub(super) fn remarks(&self, written: &Written) -> Vec<String> {
        let notes = self.notes.iter().chain(&written.lost);
        notes.map(|note| comment(note)).collect()
    }
}
