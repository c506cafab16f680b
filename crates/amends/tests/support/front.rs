//! A front that speaks TLS before somebody who does not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Serves over TLS what another address serves in the clear, one request on each connection; gives its port. It lives as long as
/// the test's process.
pub fn before(config: Arc<ServerConfig>, behind: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, behind) = (config.clone(), behind.clone());
            std::thread::spawn(move || passed(stream, config, &behind));
        }
    });
    port
}

/// Passes one request on, and its answer back; nothing where whoever asks does not trust us.
fn passed(stream: TcpStream, config: Arc<ServerConfig>, behind: &str) -> Option<()> {
    let mut reader = BufReader::new(StreamOwned::new(ServerConnection::new(config).ok()?, stream));
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(said) = lower.strip_prefix("content-length:") {
            length = said.trim().parse().ok()?;
        }
        if !lower.starts_with("connection:") {
            head.push_str(&line);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut plain = TcpStream::connect(behind).ok()?;
    plain.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).ok()?;
    plain.write_all(&body).ok()?;
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    let tls = reader.get_mut();
    tls.write_all(&answer).ok()?;
    tls.conn.send_close_notify();
    tls.flush().ok()
}
