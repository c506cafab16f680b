//! The ledger over TLS.

use std::process::Command;

use crate::postgres_server::Cluster;
use crate::support::authority::Authority;
use crate::support::{AMENDS, Place};

/// What the binary says when it does not start over that ledger.
fn refused(place: &Place, ledger: &str) -> String {
    let output = Command::new(AMENDS)
        .args(["up", "--demo", "--listen", "127.0.0.1:0", "--ledger", ledger])
        .current_dir(place.path("."))
        .output()
        .expect("the binary runs");
    assert!(!output.status.success(), "{ledger}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_ledger_is_spoken_to_over_tls_with_whom_the_address_demands() {
    let (files, ours, other) = (Place::new(), Authority::new("Ours"), Authority::new("Another"));
    let (certificate, key) = ours.files("localhost");
    let (certificate, key) = (files.write("server.crt", &certificate), files.write("server.key", &key));
    let (ours, other) = (files.write("ours.pem", &ours.pem()), files.write("other.pem", &other.pem()));
    let cluster = Cluster::over_tls(&certificate, &key);
    let database = cluster.database();
    let port = cluster.port.expect("a port");
    let url = |host: &str, demand: &str| format!("postgres://postgres@{host}:{port}/{}?{demand}", database.name);
    let authority = |file: &std::path::Path| format!("sslrootcert={}", file.display());
    let (ours, other) = (authority(&ours), authority(&other));
    let encrypted = "SELECT count(*) > 0 AND bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE application_name = 'amends'";
    for (host, demand) in [
        ("localhost", format!("sslmode=verify-full&{ours}")),
        // The certificate is for another name, and only the authority counts.
        ("127.0.0.1", format!("sslmode=verify-ca&{ours}")),
        ("127.0.0.1", format!("sslmode=require&{ours}")),
        ("127.0.0.1", "sslmode=require".to_owned()),
    ] {
        let place = Place::with_ledger(url(host, &demand));
        let gateway = place.up("");
        let order = format!(r#"{{"order":"{host}-{}","amount":5}}"#, demand.len());
        assert_eq!(gateway.call("charge_card", &order).0, 200, "{demand}");
        assert_eq!(database.sql(encrypted), "t", "{demand}");
        place.settled();
    }
    for (host, demand, says) in [
        ("127.0.0.1", format!("sslmode=verify-full&{ours}"), "not valid for name"),
        ("localhost", format!("sslmode=verify-full&{other}"), "UnknownIssuer"),
        ("localhost", format!("sslmode=verify-ca&{other}"), "UnknownIssuer"),
        ("localhost", format!("sslmode=require&{other}"), "UnknownIssuer"),
    ] {
        let said = refused(&files, &url(host, &demand));
        assert!(said.contains(says), "{demand}: {said}");
    }
}
