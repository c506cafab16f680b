//! `amends init`: from servers that run, and from clients' configurations.

use serde_json::{Value, json};

use crate::support::{AMENDS, Place};
use crate::{listed, run, run_with, text, words};

fn shop(place: &Place) -> Vec<String> {
    let book = place.path("book.db").display().to_string();
    [AMENDS, "shop", "--book", &book].map(str::to_owned).to_vec()
}

/// Checks a file, and gives what is said about it.
fn checked(place: &Place, file: &str) -> Value {
    let output = run(place, &["check", "--config", file, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn tool<'a>(checked: &'a Value, name: &str) -> Option<&'a Value> {
    checked["tools"].as_array().expect("tools").iter().find(|tool| tool["tool"] == name)
}

#[test]
fn a_server_that_runs_gets_a_configuration_that_fits_it() {
    let place = Place::new();
    let command = shop(&place);
    let mut arguments = vec!["init", "--name", "shop", "--"];
    arguments.extend(words(&command));
    let output = run(&place, &arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        output.stdout.is_empty() && said.contains("amends serve --config amends.toml") && said.contains("\"wrap\""),
        "{said}"
    );
    let written = std::fs::read_to_string(place.path("amends.toml")).expect("the file");
    assert!(written.contains("#effect = \"keyed\"") && written.contains("idempotency_key"), "{written}");
    let explained = checked(&place, "amends.toml");
    for tool in explained["tools"].as_array().expect("tools") {
        assert_eq!(tool["contract"]["effect"], "write", "nothing is resendable before somebody says so: {tool}");
    }
    let live = run(&place, &["check", "--live", "--json"]);
    assert_eq!(live.status.code(), Some(0), "{}", text(&live.stdout));
    // Every question answered by yes still fits the server.
    let agreed: String = written
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    place.write("agreed.toml", &agreed);
    let explained = checked(&place, "agreed.toml");
    assert_eq!(tool(&explained, "issue_refund").expect("a section")["contract"]["effect"], "keyed");
    let live = run(&place, &["check", "--config", "agreed.toml", "--live", "--json"]);
    assert_eq!(live.status.code(), Some(0), "{}", text(&live.stdout));
    assert_eq!(place.requests("issue_refund") + place.requests("get_order"), 0, "no tool is called");
}

#[test]
fn a_file_that_is_there_is_not_written_over_unless_asked_for() {
    let place = Place::new();
    place.write("amends.toml", "# mine\n");
    let refused = run(&place, &["init", "--no-start", "--url", "http://127.0.0.1:1/mcp"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--force"), "{}", text(&refused.stderr));
    assert_eq!(std::fs::read_to_string(place.path("amends.toml")).expect("it"), "# mine\n");
    let printed = run(&place, &["init", "--no-start", "--url", "http://127.0.0.1:1/mcp", "--out", "-"]);
    assert_eq!(printed.status.code(), Some(0));
    assert!(text(&printed.stdout).contains("url = \"http://127.0.0.1:1/mcp\""));
    assert_eq!(
        run(&place, &["init", "--no-start", "--force", "--url", "http://127.0.0.1:1/mcp"]).status.code(),
        Some(0)
    );
    checked(&place, "amends.toml");
}

#[test]
fn a_server_that_does_not_start_is_written_down_with_the_reason() {
    let place = Place::new();
    let command = listed(&place, "tools.json", &json!([]), &["--want", "SHOP_SECRET_WORD"]);
    let mut arguments = vec!["init", "--"];
    arguments.extend(words(&command));
    let output = run(&place, &arguments);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("did not answer"), "{}", text(&output.stderr));
    let written = std::fs::read_to_string(place.path("amends.toml")).expect("the file");
    assert!(written.contains("It did not answer") && written.contains("\n[upstreams.listed]\n"), "{written}");
    checked(&place, "amends.toml");
    let output = run_with(
        &place,
        &[
            "init",
            "--force",
            "--pass",
            "SHOP_SECRET_WORD",
            "--",
            &command[0],
            &command[1],
            &command[2],
            "--want",
            "SHOP_SECRET_WORD",
        ],
        &[("SHOP_SECRET_WORD", "x")],
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = std::fs::read_to_string(place.path("amends.toml")).expect("the file");
    assert!(written.contains("env_pass = [\"SHOP_SECRET_WORD\"]"), "{written}");
    // What it was given by name it also gets from `serve`.
    let live = run_with(&place, &["check", "--live"], &[("SHOP_SECRET_WORD", "x")]);
    assert_eq!(live.status.code(), Some(0), "{}", text(&live.stdout));
}

#[test]
fn every_server_of_a_client_is_in_one_file_and_no_secret_is() {
    let place = Place::new();
    let tools =
        json!([{ "name": "get_thing", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } }]);
    let one = listed(&place, "one.json", &tools, &["--want", "ONE_API_KEY"]);
    let two = listed(&place, "two.json", &tools, &[]);
    let client = format!(
        "{{ // as an editor writes it\n \"servers\": {{\n  \"one\": {{ \"command\": {:?}, \"args\": {:?}, \"env\": {{ \"ONE_API_KEY\": \"hunter2-hunter2\", \"REGION\": \"eu\" }} }},\n  \
         \"two words\": {{ \"command\": {:?}, \"args\": {:?}, }}, /* off */ \"off\": {{ \"command\": \"x\", \"disabled\": true }},\n \
         \"gone\": {{ \"command\": \"no-such-program-anywhere\" }} }} }}",
        one[0],
        &one[1..],
        two[0],
        &two[1..]
    );
    place.write("mcp.json", &client);
    let output = run(&place, &["init", "--client", "mcp.json"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "one of them is not there: {said}");
    assert!(
        said.contains("`gone` did not answer") && said.contains("`off`") && said.contains("set ONE_API_KEY"),
        "{said}"
    );
    let written = std::fs::read_to_string(place.path("amends.toml")).expect("the file");
    assert!(!written.contains("hunter2") && !said.contains("hunter2"), "{written}");
    assert!(written.contains("env_pass = [\"ONE_API_KEY\"]") && written.contains("REGION = \"eu\""), "{written}");
    assert!(
        written.contains("#[tools.one__get_thing]") && written.contains("#[tools.two-words__get_thing]"),
        "{written}"
    );
    let explained = checked(&place, "amends.toml");
    assert_eq!(explained["upstreams"].as_array().map(Vec::len), Some(3), "{explained}");
    // A person's word for the servers' hints.
    let output = run(&place, &["init", "--client", "mcp.json", "--only", "two words", "--trust-hints", "--force"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(tool(&checked(&place, "amends.toml"), "get_thing").expect("a section")["contract"]["effect"], "read");
}

#[test]
fn whatever_a_server_calls_its_tools_the_file_is_valid_and_says_nothing_else() {
    let place = Place::new();
    let nasty = [
        "a\"b",
        "a\nb = 1",
        "]\n[ledger]\nurl = \"memory:\"",
        "'''",
        "\\",
        "é\u{202e}",
        "x".repeat(3000).as_str(),
        "a.b",
        "get_a b",
    ]
    .map(str::to_owned);
    let tools: Vec<Value> = nasty
        .iter()
        .map(|name| json!({ "name": name, "description": format!("{name}\n[listen]\nhttp = \"0.0.0.0:1\""),
                            "inputSchema": { "type": "object", "properties": { name: { "type": "string" } }, "required": [name] } }))
        .collect();
    for upstreams in [1, 2] {
        let command = listed(&place, "nasty.json", &json!(tools), &[]);
        let entry = json!({ "command": command[0], "args": command[1..] });
        let servers: serde_json::Map<String, Value> =
            (0..upstreams).map(|n| (format!("n\"{n}\n[x]"), entry.clone())).collect();
        place.write("client.json", &json!({ "mcpServers": servers }).to_string());
        let output = run(&place, &["init", "--client", "client.json", "--force"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let explained = checked(&place, "amends.toml");
        let declared =
            explained["tools"].as_array().expect("tools").iter().filter(|tool| tool["contract"]["declared"] == true);
        let live = run(&place, &["check", "--live", "--json"]);
        assert_eq!(live.status.code(), Some(0), "every section is of a tool that is served: {}", text(&live.stdout));
        assert!(declared.count() >= upstreams * (nasty.len() - 1), "{explained}");
        let written = std::fs::read_to_string(place.path("amends.toml")).expect("the file");
        assert_eq!(
            written.lines().filter(|line| line.starts_with("[ledger]") || line.starts_with("[listen]")).count(),
            2
        );
    }
}

#[test]
fn what_is_no_server_is_said_to_be_none() {
    let place = Place::new();
    for arguments in [
        &["init"][..],
        &["init", "--client", "nothing.json"],
        &["init", "--url", "http://x/mcp", "--name", "a b", "--no-start"],
    ] {
        let output = run(&place, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty() && !place.path("amends.toml").exists());
    }
    place.write("broken.json", "{ \"mcpServers\": ");
    assert_eq!(run(&place, &["init", "--client", "broken.json"]).status.code(), Some(2));
    let output = run(&place, &["init", "--no-start", "--url", "ftp://x/mcp"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    checked(&place, "amends.toml");
}

#[test]
fn an_api_stands_beside_servers_under_a_name_of_its_own() {
    let place = Place::new();
    let tools = json!([{ "name": "get_thing", "inputSchema": { "type": "object" } }]);
    let command = listed(&place, "tools.json", &tools, &[]);
    let document = "openapi: 3.1.0\nservers: [{url: 'http://api.example/v1'}]\npaths:\n  /things/{id}:\n    get:\n      \
                    operationId: readThing\n      parameters: [{name: id, in: path, required: true, schema: {type: string}}]\n      \
                    responses: {}\n    post:\n      operationId: writeThing\n      \
                    parameters: [{name: id, in: path, required: true, schema: {type: string}}]\n      responses: {}\n";
    // Both would be called after the same word.
    place.write("listed.yaml", document);
    place.write("other.yaml", document);
    let mut arguments = vec!["init", "--openapi", "listed.yaml", "--openapi", "other.yaml", "--"];
    arguments.extend(words(&command));
    let output = run(&place, &arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("3 upstreams") && said.contains("`other` is an HTTP API"), "{said}");
    assert!(!said.contains("\"wrap\""), "there is more than one: {said}");
    let explained = checked(&place, "amends.toml");
    let names: Vec<_> =
        explained["upstreams"].as_array().expect("upstreams").iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names.len(), 3, "{explained}");
    assert_eq!(tool(&explained, "other__readThing").expect("a section")["contract"]["effect"], "read");
    assert_eq!(tool(&explained, "other__writeThing").expect("a section")["contract"]["effect"], "write");
    let live = run(&place, &["check", "--live", "--json"]);
    assert_eq!(live.status.code(), Some(0), "every section is of a tool that is served: {}", text(&live.stdout));
    let refused =
        run(&place, &["init", "--force", "--name", "one", "--openapi", "listed.yaml", "--openapi", "other.yaml"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    let missing = run(
        &place,
        &["init", "--out", "x.toml", "--openapi", "nothing.yaml", "--url", "http://127.0.0.1:1/mcp", "--no-start"],
    );
    assert_eq!(missing.status.code(), Some(2), "{}", text(&missing.stderr));
    assert!(!place.path("x.toml").exists());
}
