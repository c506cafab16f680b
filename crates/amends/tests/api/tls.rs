//! Upstreams behind TLS, with authorities of our own making.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::serve;
use crate::server::{Api, DOCUMENT, request};
use crate::sessions::{Forgets, Server};
use crate::support::authority::Authority;
use crate::support::{Gateway, Place, eventually};

/// Serves over TLS what another address serves in the clear; gives its port.
fn terminate(config: Arc<ServerConfig>, behind: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    // It lives as long as the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, behind) = (config.clone(), behind.clone());
            std::thread::spawn(move || {
                let connection = ServerConnection::new(config).expect("a connection");
                let mut reader = BufReader::new(StreamOwned::new(connection, stream));
                if let Some(seen) = request(&mut reader) {
                    let Ok(mut plain) = TcpStream::connect(&behind) else { return };
                    let (first, rest) = seen.head.split_once("\r\n").expect("a head");
                    let whole = format!("{first}\r\nconnection: close\r\n{rest}{}", seen.body);
                    let mut answer = Vec::new();
                    let _ = plain.write_all(whole.as_bytes());
                    // It closes once it has answered, since nothing more will come.
                    let _ = plain.shutdown(Shutdown::Write);
                    let _ = plain.read_to_end(&mut answer);
                    let tls = reader.get_mut();
                    if tls.write_all(&answer).and_then(|()| tls.flush()).is_err() {
                        return;
                    }
                    tls.conn.send_close_notify();
                    let _ = tls.flush();
                }
            });
        }
    });
    port
}

fn gateway(place: &Place, port: u16, host: &str) -> Gateway {
    place.write("shop.yaml", DOCUMENT);
    let config = format!(
        "[upstreams.shop]\nopenapi = \"shop.yaml\"\nbase_url = \"https://{host}:{port}/v1\"\nprefix = \"\"\nca = \"ca.pem\"\n\
         deadline = \"3s\"\n"
    );
    serve(place, &config, &[])
}

fn charge(gateway: &Gateway) -> (u16, Value) {
    let mut answer = (0, Value::Null);
    eventually("the tools are served", || {
        answer = gateway.call("charge", r#"{"order":"ord","amount":5}"#);
        answer.1["error"]["kind"] != "index_not_ready"
    });
    answer
}

#[test]
fn an_api_is_called_over_tls_by_its_name_or_its_address() {
    let (place, api, authority) = (Place::new(), Api::start(), Authority::new("Ours"));
    place.write("ca.pem", &authority.pem());
    for (n, host) in ["localhost", "127.0.0.1"].into_iter().enumerate() {
        let port = terminate(authority.server(host, 2999), api.address.to_string());
        let (status, done) = charge(&gateway(&place, port, host));
        assert_eq!(status, 200, "{done}");
        assert_eq!(api.effects("ord"), n + 1);
    }
    place.settled();
}

#[test]
fn an_mcp_server_is_met_over_tls_and_shown_its_credential() {
    let (place, authority) = (Place::new(), Authority::new("Ours"));
    place.write("ca.pem", &authority.pem());
    let server = Server::start(Forgets::NotFound);
    let port = terminate(authority.server("localhost", 2999), server.address.to_string());
    let config = format!(
        "[upstreams.shop]\nurl = \"https://localhost:{port}/mcp\"\nprefix = \"\"\nca = \"ca.pem\"\n\
         headers = {{ Authorization = {{ env = \"SHOP_TOKEN\", prefix = \"Bearer \" }} }}\n\n[tools.look]\neffect = \"read\"\n"
    );
    let gateway = serve(&place, &config, &[("SHOP_TOKEN", "tok-s3cret")]);
    eventually("the tools are served", || gateway.call("look", "{}").0 == 200);
    let seen = server.seen();
    assert!(seen.len() >= 4, "{}", seen.len());
    assert!(seen.iter().all(|seen| seen.header("authorization") == Some("Bearer tok-s3cret")), "with every request");
    place.settled();
}

#[test]
fn whoever_is_not_the_one_is_sent_nothing() {
    let (place, api, authority) = (Place::new(), Api::start(), Authority::new("Ours"));
    place.write("ca.pem", &authority.pem());
    for (config, says) in [
        (Authority::new("Another").server("localhost", 2999), "UnknownIssuer"),
        (authority.server("elsewhere.example", 2999), "not valid for name"),
        (authority.server("localhost", 2001), "xpired"),
    ] {
        let port = terminate(config, api.address.to_string());
        let (_, failed) = charge(&gateway(&place, port, "localhost"));
        let error = &failed["error"];
        assert_eq!((&error["code"], &error["certainty"]), (&json!("ConnectRefused"), &json!("not_sent")), "{failed}");
        assert!(error.to_string().contains(says), "{failed}");
    }
    // Somebody who speaks no TLS at all.
    let (_, failed) = charge(&gateway(&place, api.address.port(), "localhost"));
    assert_eq!(failed["error"]["certainty"], "not_sent", "{failed}");
    assert_eq!((api.seen("POST", "ord").len(), api.effects("ord")), (0, 0));
    place.settled();
}
