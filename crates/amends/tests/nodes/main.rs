//! Several gateways on one PostgreSQL, through the real binary, counted in the shop's book.

#[path = "../../../../tests/postgres/mod.rs"]
mod postgres_server;
#[path = "../support/mod.rs"]
mod support;

mod death;
mod doctor;
mod meeting;
mod outage;
mod spending;
mod start;
mod tls;
mod walks;
mod webhook;

use std::io::Read;
use std::net::TcpStream;
use std::process::Command;

use postgres_server::Database;
use serde_json::Value;
use support::{Gateway, Place, http};

/// A folder and a database, and as many gateways over them as a test starts.
struct Site {
    place: Place,
    database: Database,
}

impl Site {
    fn over(database: Database) -> Self {
        Self { place: Place::with_ledger(database.url()), database }
    }
}

/// A fault script for one tool and order.
fn faults(tool: &str, order: &str, attempts: &[&str], more: &str) -> String {
    format!("[[fault]]\ntool = \"{tool}\"\nwhen = {{ order = \"{order}\" }}\nattempts = {attempts:?}\n{more}\n")
}

/// The envelope that arrives on a connection.
fn answer(mut stream: TcpStream) -> Value {
    let mut text = Vec::new();
    stream.read_to_end(&mut text).expect("an answer");
    serde_json::from_slice(&http::parse(&text).1).unwrap_or(Value::Null)
}

fn signal(gateway: &Gateway, signal: &str) {
    let sent = Command::new("kill").args([signal, &gateway.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "{signal}");
}
