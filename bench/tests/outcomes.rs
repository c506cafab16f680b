//! A small run of `amends-bench outcomes`: what Amends promises holds, and the check can see when it does not.
//!
//! The binary of Amends is the one beside the bench's, as the workspace's tests build it; alone, `cargo build -p amends` comes first.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[test]
fn amends_doubles_loses_and_hides_nothing_where_a_naive_loop_does() {
    let bench = Path::new(env!("CARGO_BIN_EXE_amends-bench"));
    let amends = bench.with_file_name(format!("amends{}", std::env::consts::EXE_SUFFIX));
    assert!(amends.exists(), "`{}` is missing: cargo build -p amends", amends.display());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let said = Command::new(bench)
        .args(["outcomes", "--calls", "300", "--gateway-calls", "0", "--json", "--only", "Amends", "--only", "direct"])
        .arg("--amends")
        .arg(&amends)
        .arg("--folder")
        .arg(folder.path())
        .output()
        .expect("the bench runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let report: Value = serde_json::from_slice(&said.stdout).expect("the report is JSON");
    let row = |name: &str| {
        let rows = report["rows"].as_array().expect("the report has rows");
        rows.iter().find(|row| row["contender"] == name).unwrap_or_else(|| panic!("no `{name}` in {report}"))
    };

    for name in
        ["Amends, one call", "Amends, agent follows", "Amends, agent repeats", "Amends, agent repeats with a key"]
    {
        for count in ["doubled", "lost_as_done", "done_as_failed", "untyped"] {
            assert_eq!(row(name)[count], 0, "{count}: {:#}", row(name));
        }
    }
    let above = |name: &str, count: &str| row(name)[count].as_u64().is_some_and(|count| count > 0);
    assert!(above("direct, three retries", "doubled"), "{report:#}");
    assert!(above("direct, three retries with a key", "doubled"), "{report:#}");
    assert!(above("direct, one call", "done_as_failed"), "{report:#}");
    assert!(above("direct, one call", "untyped"), "{report:#}");
}
