//! The Python package and the examples for agent frameworks, each against the real binary. The tests themselves are in
//! `tests/python`, and are run by pytest.

use std::path::{Path, PathBuf};
use std::process::Command;

const AMENDS: &str = env!("CARGO_BIN_EXE_amends");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is there")
}

/// Runs Python of that environment, with those folders to import from.
fn python(environment: &str, imports: &[&str], arguments: &[&str]) {
    let root = root();
    let imports: Vec<String> = imports.iter().map(|folder| root.join(folder).display().to_string()).collect();
    let output = Command::new(root.join("target/python").join(environment).join("bin/python"))
        .args(arguments)
        .current_dir(root.join("tests/python"))
        .env("AMENDS_BIN", AMENDS)
        .env("PYTHONPATH", imports.join(":"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("Python runs; tests/python/setup.sh installs it");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{arguments:?} failed:\n{said}");
    eprintln!("{said}");
}

fn package(tests: &str) {
    let imports = ["python/amends-pydantic-ai/src", "tests/python", "tests/python/pydantic_ai"];
    python("venv", &imports, &["-m", "pytest", "--quiet", &format!("pydantic_ai/{tests}")]);
}

fn example(folder: &str, tests: &str) {
    let imports = ["tests/python", folder];
    python("frameworks", &imports, &["-m", "pytest", "--quiet", &format!("frameworks/{tests}")]);
}

#[test]
fn failures_are_the_signals_of_pydantic_ai_over_both_transports() {
    package("test_signals.py");
}

#[test]
fn people_answer_and_runs_of_pydantic_ai_go_on() {
    package("test_people.py");
}

#[test]
fn direct_tools_of_pydantic_ai_fail_as_tools_over_mcp_do_and_as_the_page_says() {
    package("test_direct.py");
}

#[test]
fn the_package_for_pydantic_ai_is_typed() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    let cache = cache.path().display().to_string();
    let package = "../../python/amends-pydantic-ai";
    let config = format!("{package}/pyproject.toml");
    let source = format!("{package}/src");
    python("venv", &[], &["-m", "mypy", "--config-file", &config, "--cache-dir", &cache, &source]);
}

#[test]
fn the_package_for_pydantic_ai_can_be_built() {
    package("test_package.py");
}

#[test]
fn the_example_for_langgraph_works() {
    example("examples/langgraph", "test_langgraph.py");
}

#[test]
fn the_example_for_openai_agents_works() {
    example("examples/openai-agents", "test_openai_agents.py");
}
