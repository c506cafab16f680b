//! `amends doctor` over PostgreSQL: what it sees, and that it changes nothing.

use std::process::Command;

use serde_json::Value;

use crate::Site;
use crate::postgres_server::Cluster;
use crate::support::AMENDS;

/// The findings about that, each with its level and its words.
fn findings(site: &Site, about: &str) -> Vec<(String, String)> {
    site.place.write("amends.toml", &format!("[ledger]\nurl = \"{}\"\n", site.place.ledger()));
    let output = Command::new(AMENDS)
        .args(["doctor", "--json", "--no-start"])
        .current_dir(site.place.path("."))
        .output()
        .expect("the binary runs");
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let found = said["findings"].as_array().expect("findings").iter().filter(|finding| finding["about"] == about);
    found.map(|finding| (text(finding, "level"), text(finding, "words"))).collect()
}

fn has(found: &[(String, String)], level: &str, words: &str) {
    let fits = found.iter().any(|(is, said)| is == level && said.contains(words));
    assert!(fits, "nothing that is {level} and says `{words}`: {found:#?}");
}

#[test]
fn a_database_is_looked_at_and_left_as_it_is() {
    let site = Site::over(Cluster::shared().database());
    has(&findings(&site, "ledger"), "ok", "holds nothing yet");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(site.database.sql(tables), "0", "nothing is made");

    let mut gateway = site.place.up("");
    assert_eq!(gateway.call("charge_card", r#"{"order":"ord_1","amount":5}"#).0, 200);
    site.place.settled();
    let held = |table: &str| format!("(SELECT md5(string_agg(t::text, ',' ORDER BY t::text)) FROM {table} t)");
    let state = format!("SELECT {} || {} || {}", held("events"), held("sessions"), held("meta"));
    let found = findings(&site, "ledger");
    has(&found, "ok", "tables of version");
    has(&found, "ok", "0 calls open, 0 questions for a person");
    has(&findings(&site, "clock"), "ok", "the database's clock agrees with ours");
    has(&findings(&site, "clock"), "ok", "nothing that was recorded lies in the future");
    gateway.kill();
    let before = site.database.sql(&state);
    findings(&site, "ledger");
    assert_eq!(site.database.sql(&state), before, "nothing changes");

    // A call that nobody drives any more, and a question that waits for a person.
    site.database.sql("UPDATE nodes SET lease_until = 0");
    site.database.sql("UPDATE sessions SET open_calls = open_calls + 1, updated = updated + 86400000");
    let found = findings(&site, "ledger");
    has(&found, "warn", "0 nodes alive");
    has(&findings(&site, "clock"), "bad", "which is still to come");

    site.database.sql("UPDATE meta SET version = version + 1");
    has(&findings(&site, "ledger"), "bad", "this program knows up to");
    site.database.sql("UPDATE meta SET version = version - 2");
    has(&findings(&site, "ledger"), "warn", "this program knows");
    site.database.sql("ALTER TABLE meta RENAME TO other");
    has(&findings(&site, "ledger"), "ok", "holds nothing yet");
}

#[test]
fn a_database_that_cannot_be_reached_is_said_to_be_so_without_its_password() {
    let site = Site::over(Cluster::shared().database());
    let place = crate::support::Place::with_ledger("postgres://amends:s3cret@127.0.0.1:1/nothing".to_owned());
    let away = Site { place, database: site.database };
    let found = findings(&away, "ledger");
    has(&found, "bad", "cannot be looked at");
    assert!(found.iter().all(|(_, words)| !words.contains("s3cret")), "{found:?}");
}
