//! The example configurations of clients: each is read, its command is started, and its address is used.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use crate::run;
use crate::support::client::{Client, Sdk, envelope};
use crate::support::{AMENDS, Gateway, Place, root};
use crate::text;

/// A file, where its servers are, and the key of an address. Without that key the client starts commands only.
const FILES: [(&str, &str, Option<&str>); 8] = [
    ("claude-desktop.json", "mcpServers", None),
    ("claude-code.json", "mcpServers", Some("url")),
    ("cursor.json", "mcpServers", Some("url")),
    ("vscode.json", "servers", Some("url")),
    ("zed.json", "context_servers", Some("url")),
    ("windsurf.json", "mcpServers", Some("serverUrl")),
    ("gemini-cli.json", "mcpServers", Some("httpUrl")),
    ("codex.toml", "mcp_servers", Some("url")),
];
const PROGRAMS: [&str; 3] = ["pydantic_ai.py", "langgraph_agent.py", "openai_agents.py"];

fn example(name: &str) -> String {
    let path = root().join("examples/clients").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The command and the address that a file names.
fn named(name: &str, servers: &str, url: Option<&str>) -> (Vec<String>, Option<String>) {
    let file: Value = match name.ends_with(".toml") {
        true => toml::from_str(&example(name)).expect("TOML"),
        false => serde_json::from_str(&example(name)).expect("JSON"),
    };
    let shop = &file[servers]["shop"];
    let mut command = vec![shop["command"].as_str().expect("a command").to_owned()];
    command.extend(
        shop["args"].as_array().expect("arguments").iter().map(|word| word.as_str().expect("a text").to_owned()),
    );
    let url = url.map(|key| file[servers]["amends"][key].as_str().expect("an address").to_owned());
    (command, url)
}

/// The same of a program, as Python itself reads it.
fn named_in_python(name: &str) -> (Vec<String>, Option<String>) {
    let path = root().join("examples/clients").join(name);
    let reader = "import ast, json, sys\n\
        tree = ast.parse(open(sys.argv[1]).read())\n\
        found = {n.targets[0].id: n.value for n in tree.body if isinstance(n, ast.Assign)}\n\
        print(json.dumps([ast.literal_eval(found['COMMAND']), ast.literal_eval(found['URL'])]))";
    let output = Command::new("python3").args(["-c", reader]).arg(path).output().expect("python3");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{name}: {}", text(&output.stderr)))
}

/// Starts the command as a client would, with this binary and a real server in it, and calls a tool.
fn starts(place: &Place, name: &str, command: &[String]) {
    assert_eq!(command[..2], ["amends", "wrap"], "{name}");
    assert_eq!(command[command.len() - 2..], ["python3", "/path/to/shop.py"], "{name}");
    let (book, ledger) = (place.path("book.db").display().to_string(), place.ledger());
    let config = root().join("examples/wrap.toml").display().to_string();
    let mut words = vec![AMENDS, "wrap", "--ledger", &ledger];
    for word in &command[2..command.len() - 2] {
        words.push(if word == "/path/to/wrap.toml" { &config } else { word });
    }
    words.extend([AMENDS, "shop", "--book", &book]);
    let mut client = Client::stdio(Sdk::Python, None, &words);
    assert_eq!(envelope(&client.call("get_order", json!({ "order": "ord_1" })))["status"], "success", "{name}");
}

/// Uses the address as a client would, with the port of a gateway that runs.
fn reaches(gateway: &Gateway, name: &str, url: &str) {
    let url = url.replace("127.0.0.1:7070", &gateway.address);
    let mut client = Client::http(Sdk::Python, None, &url);
    assert_eq!(envelope(&client.call("get_order", json!({ "order": "ord_1" })))["status"], "success", "{name}");
}

#[test]
fn every_example_names_a_command_that_starts_and_an_address_that_answers() {
    let place = Place::new();
    let gateway = place.up("");
    let files = FILES.map(|(name, servers, url)| (name, named(name, servers, url)));
    let programs = PROGRAMS.map(|name| (name, named_in_python(name)));
    // What several files name alike is tried once.
    let mut tried = BTreeSet::new();
    for (name, (command, url)) in files.iter().chain(&programs) {
        if tried.insert(command.join(" ")) {
            starts(&place, name, command);
        }
        if let Some(url) = url.as_ref().filter(|url| tried.insert((*url).clone())) {
            reaches(&gateway, name, url);
        }
    }
}

#[test]
fn every_example_is_understood_by_init() {
    for (name, ..) in FILES {
        let place = Place::new();
        let file = root().join("examples/clients").join(name).display().to_string();
        let output = run(&place, &["init", "--client", &file, "--no-start", "--only", "shop"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
        let written = std::fs::read_to_string(place.path("amends.toml")).expect("the file");
        assert!(
            written.contains("command = [\"python3\", \"/path/to/shop.py\"]"),
            "the server behind `wrap`: {written}"
        );
    }
}

#[test]
fn no_example_is_left_out() {
    let mut there: Vec<String> = std::fs::read_dir(root().join("examples/clients"))
        .expect("the folder")
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with("__"))
        .collect();
    let mut known: Vec<String> =
        FILES.iter().map(|(name, ..)| (*name).to_owned()).chain(PROGRAMS.map(str::to_owned)).collect();
    there.sort();
    known.sort();
    assert_eq!(there, known);
    let page = std::fs::read_to_string(root().join("docs/clients.md")).expect("the page");
    for name in known {
        assert!(page.contains(&name), "docs/clients.md does not name {name}");
    }
}
