//! `amends check`, `amends policy schema` and `amends policy test`.

use std::process::Command;

use serde_json::Value;

use crate::support::{AMENDS, Place, root};

/// Runs the binary: its exit code, its standard output and its standard error.
fn amends(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(AMENDS).args(arguments).current_dir(root()).output().expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn shop(place: &Place, policies: &str) -> String {
    place.write("policies.cedar", policies);
    let text = format!(
        "[policy]\nfiles = [\"policies.cedar\"]\n[upstreams.shop]\ncommand = [{AMENDS:?}, \"shop\", \"--book\", {:?}]\n\
         [tools.shop__get_order]\neffect = \"read\"\n[tools.shop__issue_refund]\neffect = \"write\"\n",
        place.path("book.db").display().to_string()
    );
    place.write("amends.toml", &text).display().to_string()
}

#[test]
fn the_cases_of_the_example_are_decided_as_written() {
    let (code, said, complaint) = amends(&["policy", "test", "examples/policies/refunds.cases.toml"]);
    assert_eq!(code, 0, "{said}{complaint}");
    assert!(said.contains("6 of 6 are decided as written"), "{said}");
    let (code, said, _) = amends(&["policy", "test", "--json", "examples/policies/refunds.cases.toml"]);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((code, &said["passed"]), (0, &Value::Bool(true)));
}

#[test]
fn a_case_that_is_decided_otherwise_is_told_with_what_was_decided() {
    let place = Place::new();
    shop(&place, "@id(\"reads\") permit (principal, action in Action::\"read\", resource);");
    let case =
        "[[case]]\nsays = \"it pays\"\nprincipal = \"ada\"\ntool = \"shop__issue_refund\"\nexpect = \"permit\"\n";
    let file =
        |more: &str| place.write("a.cases.toml", &format!("config = \"amends.toml\"\n{more}")).display().to_string();
    let (code, said, _) = amends(&["policy", "test", &file(case)]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("expected permit") && said.contains("got      forbid, by policy no policy"), "{said}");
    let (code, _, complaint) = amends(&["policy", "test", &file(&case.replace("issue_refund", "isue_refund"))]);
    assert!(code == 2 && complaint.contains("did you mean `shop__issue_refund`?"), "{code}: {complaint}");
    let (code, _, complaint) = amends(&["policy", "test", &file(&format!("{case}by = \"red\"\n"))]);
    assert!(code == 2 && complaint.contains("there is no policy `red`; did you mean `reads`?"), "{code}: {complaint}");
}

#[test]
fn a_policy_that_does_not_fit_its_tool_is_found_with_its_place() {
    let place = Place::new();
    let config = shop(
        &place,
        "permit (principal, action == Action::\"shop__issue_refund\", resource)\nwhen { context.args.amuont == decimal(\"1.0\") };",
    );
    let (code, said, _) = amends(&["check", "--config", &config]);
    assert_eq!(code, 0, "what the tool takes is not known: {said}");
    let (code, said, complaint) = amends(&["check", "--config", &config, "--live"]);
    assert_eq!(code, 1, "{said}{complaint}");
    assert!(said.contains("policies.cedar:2:8: policy `policies.cedar#1`") && said.contains("amuont"), "{said}");
    let config = shop(&place, "permit (principal, action == Action::\"shop__issue_refunds\", resource);");
    let (code, said, _) = amends(&["check", "--config", &config, "--live"]);
    assert!(code == 1 && said.contains("did you mean `shop__issue_refund`?"), "{said}");
    let config = shop(&place, "permit (principal, action, resource) when { principal.nmae == \"x\" };");
    let (code, said, _) = amends(&["check", "--config", &config]);
    assert!(code == 1 && said.contains("nmae"), "{said}");
    let config = shop(&place, "permit (principal, action, resource)\n  when { context. };");
    let (code, _, complaint) = amends(&["check", "--config", &config]);
    assert!(code == 1 && complaint.contains("policies.cedar:2: column "), "{complaint}");
}

#[test]
fn the_schema_has_what_each_tool_takes() {
    let place = Place::new();
    let config = shop(&place, "permit (principal, action, resource);");
    let (code, said, complaint) = amends(&["policy", "schema", "--config", &config, "--live"]);
    assert_eq!(code, 0, "{complaint}");
    assert!(said.contains("action \"shop__issue_refund\" in [\"call\", \"write\"]"), "{said}");
    assert!(said.contains("\"amount\": decimal"), "{said}");
    let (code, said, _) = amends(&["policy", "schema", "--config", &config]);
    assert!(code == 0 && said.contains("action \"shop__get_order\" in [\"call\", \"read\"]"), "{said}");
}
