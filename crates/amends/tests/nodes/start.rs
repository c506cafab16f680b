//! Nodes that begin: on an empty database, on one that a later program has made, and on what they cannot use.

use std::process::Command;

use crate::Site;
use crate::postgres_server::Cluster;
use crate::support::{AMENDS, Gateway};

#[test]
fn nodes_that_start_at_once_on_an_empty_database_share_one_ledger() {
    let site = Site::over(Cluster::shared().database());
    let commands: Vec<Command> = (0..3).map(|_| site.place.up_command("", &[])).collect();
    let starting: Vec<_> =
        commands.into_iter().map(|command| std::thread::spawn(move || Gateway::start(command))).collect();
    let nodes: Vec<Gateway> = starting.into_iter().map(|node| node.join().expect("it starts")).collect();
    let stream = nodes[0].begin("charge_card", r#"{"order":"ord_1","amount":5}"#);
    assert_eq!(crate::answer(stream)["status"], "success");
    assert_eq!(site.database.sql("SELECT count(*) FROM meta"), "1");
    assert_eq!(site.database.sql("SELECT count(*) > 2 FROM nodes"), "t", "all of them say there that they live");
    site.place.settled();
}

#[test]
fn a_newer_database_is_refused_and_left_alone() {
    let site = Site::over(Cluster::shared().database());
    drop(site.place.up(""));
    site.database.sql("UPDATE meta SET version = version + 1");
    let said = refused(&site, &site.database.url());
    assert!(said.contains("this program knows versions up to"), "{said}");
    site.database.sql("UPDATE meta SET version = version - 1");
    drop(site.place.up(""));
}

#[test]
fn what_cannot_be_a_ledger_is_refused_clearly() {
    let site = Site::over(Cluster::shared().database());
    let said = refused(&site, &format!("{}&sslmode=require", site.database.url()));
    assert!(said.contains("TLS"), "nothing falls back: {said}");
    let said = refused(&site, &format!("{}&sslmode=verify", site.database.url()));
    assert!(said.contains("`verify-full`"), "{said}");
    let said = refused(&site, "postgres://a@localhost:1/d?sslmode=verify-full&sslrootcert=/nonexistent/ca.pem");
    assert!(said.contains("/nonexistent/ca.pem"), "{said}");
    site.database.sql("CREATE TABLE meta (something text)");
    let said = refused(&site, &site.database.url());
    assert!(said.contains("not a ledger's"), "{said}");
    let said = refused(&site, "postgres://amends:s3cret@127.0.0.1:1/nothing");
    assert!(said.contains("refused") && !said.contains("s3cret"), "{said}");
}

/// What the binary says when it does not start.
fn refused(site: &Site, ledger: &str) -> String {
    let output = Command::new(AMENDS)
        .args(["up", "--demo", "--listen", "127.0.0.1:0", "--ledger", ledger])
        .current_dir(site.place.path("."))
        .output()
        .expect("the binary runs");
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}
