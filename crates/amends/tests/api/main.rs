//! HTTP APIs, TLS and lost sessions, through the real binary.

#[path = "../support/mod.rs"]
mod support;

mod credentials;
mod document;
mod operations;
mod server;
mod sessions;
mod stopped;
mod tls;

use std::process::Command;

use server::{Api, DOCUMENT};
use support::{AMENDS, Gateway, Place};

/// Starts `amends serve` over that place's ledger with that configuration after it.
fn serve(place: &Place, config: &str, environment: &[(&str, &str)]) -> Gateway {
    let head = format!("[ledger]\nurl = \"{}\"\n\n[listen]\nhttp = \"127.0.0.1:0\"\n", place.ledger());
    let config = place.write("serve.toml", &format!("{head}\n{config}\n"));
    let mut command = Command::new(AMENDS);
    command.arg("serve").arg("--config").arg(config).envs(environment.iter().copied());
    Gateway::listening(command)
}

/// A gateway before that API, with what is declared of its tools.
fn before(place: &Place, api: &Api, more: &str, tools: &str) -> Gateway {
    place.write("shop.yaml", DOCUMENT);
    let upstream = format!(
        "[upstreams.shop]\nopenapi = \"shop.yaml\"\nbase_url = \"http://{}/v1\"\nprefix = \"\"\ntimeout = \"1s\"\n\
         deadline = \"20s\"\n{more}\n",
        api.address
    );
    serve(place, &format!("{upstream}\n{tools}"), &[])
}

/// What a `GET` of that path says.
fn get(gateway: &Gateway, path: &str) -> serde_json::Value {
    let mut stream = std::net::TcpStream::connect(&gateway.address).expect("a connection");
    let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", gateway.address);
    std::io::Write::write_all(&mut stream, head.as_bytes()).expect("a request");
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
    serde_json::from_slice(&support::http::parse(&answer).1).unwrap_or_default()
}
