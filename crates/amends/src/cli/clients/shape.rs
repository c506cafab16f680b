//! The shapes in which clients write their servers down.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Server, ServerReach};

/// Where the servers stand in a file, whichever client it is of.
pub(super) fn entries(file: &Value) -> Vec<(String, &Value)> {
    let mut places: Vec<Option<&Value>> =
        ["mcpServers", "servers", "context_servers", "mcp_servers"].iter().map(|key| file.get(key)).collect();
    places.push(match file.get("mcp") {
        Some(mcp) if mcp.get("servers").is_some_and(Value::is_object) => mcp.get("servers"),
        mcp => mcp,
    });
    // One file for all projects, each with servers of its own.
    let projects = file.get("projects").and_then(Value::as_object).into_iter().flatten();
    places.extend(projects.map(|(_, project)| project.get("mcpServers")));
    let mut found: Vec<(String, &Value)> = Vec::new();
    for (name, entry) in places.into_iter().flatten().filter_map(Value::as_object).flatten() {
        if !found.iter().any(|(known, _)| known == name) {
            found.push((name.clone(), entry));
        }
    }
    found
}

/// Reads one entry, or says why it is no server for us.
pub(super) fn server(name: &str, entry: &Value) -> Result<Server, String> {
    let Some(entry) = entry.as_object() else { return Err("it is no object".into()) };
    let is = |key: &str, value: bool| entry.get(key).and_then(Value::as_bool) == Some(value);
    if is("disabled", true) || is("enabled", false) {
        return Err("it is switched off".into());
    }
    // An older shape has all of it one level deeper.
    let source = entry.get("source").and_then(Value::as_object).unwrap_or(entry);
    let mut notes = Vec::new();
    if let Some(url) = ["url", "httpUrl", "serverUrl"].iter().find_map(|key| text(source, key)) {
        if text(source, "type").as_deref() == Some("sse") || url.ends_with("/sse") {
            notes.push("it may speak the old transport (HTTP and SSE), which is not spoken here".to_owned());
        }
        let mut headers = texts(source, &["headers", "http_headers"])?;
        if let Some(variable) = text(source, "bearer_token_env_var") {
            headers.insert("Authorization".into(), format!("Bearer ${{{variable}}}"));
        }
        for (header, variable) in texts(source, &["env_http_headers"])? {
            headers.insert(header, format!("${{{variable}}}"));
        }
        let reach = ServerReach::Url { url, headers };
        return Ok(Server { name: name.to_owned(), reach, wrapped: false, notes });
    }
    let mut env = texts(entry, &["env", "environment"])?;
    let command = match source.get("command") {
        Some(Value::String(program)) => [vec![program.clone()], list(source, "args")?].concat(),
        Some(Value::Array(_)) => [list(source, "command")?, list(source, "args")?].concat(),
        Some(Value::Object(command)) => {
            env.extend(texts(command, &["env"])?);
            [text(command, "path").into_iter().collect(), list(command, "args")?].concat()
        }
        _ => return Err("it has neither a command nor an address".into()),
    };
    if command.first().is_none_or(String::is_empty) {
        return Err("its command is empty".into());
    }
    if let Some(file) = text(entry, "envFile") {
        notes.push(format!("the client also reads its environment from `{file}`"));
    }
    if command.iter().any(|word| word.contains("${")) {
        notes.push("its command holds `${…}`, which the client fills in and we do not".to_owned());
    }
    let reach = ServerReach::Command { command, env, cwd: text(entry, "cwd") };
    Ok(Server { name: name.to_owned(), reach, wrapped: false, notes })
}

fn text(entry: &Map<String, Value>, key: &str) -> Option<String> {
    entry.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn list(entry: &Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("its `{key}` is no list of texts");
    match entry.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(words)) => {
            words.iter().map(|word| word.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

fn texts(entry: &Map<String, Value>, keys: &[&str]) -> Result<BTreeMap<String, String>, String> {
    let mut all = BTreeMap::new();
    for key in keys {
        match entry.get(*key) {
            None | Some(Value::Null) => {}
            Some(Value::Object(values)) => all.extend(values.iter().filter_map(|(name, value)| {
                let value = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(number) => number.to_string(),
                    Value::Bool(truth) => truth.to_string(),
                    Value::Null | Value::Array(_) | Value::Object(_) => return None,
                };
                Some((name.clone(), value))
            })),
            Some(_) => return Err(format!("its `{key}` is no object")),
        }
    }
    Ok(all)
}
