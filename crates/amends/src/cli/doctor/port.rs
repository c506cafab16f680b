//! Whether the doors can listen, and who does so already.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::finding::Finding;

const ABOUT: &str = "port";
const PATIENCE: Duration = Duration::from_secs(2);
/// How much of an answer is read.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Looks at the address of the doors.
pub(super) async fn look(address: SocketAddr) -> Vec<Finding> {
    vec![listen(address).await]
}

async fn listen(address: SocketAddr) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(ABOUT, format!("{address} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            if is_amends(address).await {
                return Finding::ok(ABOUT, format!("an Amends gateway listens on {address}{}", by(address)));
            }
            Finding::bad(
                ABOUT,
                format!("{address} is in use{}", by(address)),
                "end what listens there, or choose another address with `listen.http`",
            )
        }
        Err(error) => Finding::bad(
            ABOUT,
            format!("nobody may listen on {address}: {error}"),
            "choose an address of this machine and a port above 1023 with `listen.http`",
        ),
    }
}

fn by(address: SocketAddr) -> String {
    holder(address).map(|holder| format!(", by {holder}")).unwrap_or_default()
}

/// Whether what listens there answers as our gateways do.
async fn is_amends(address: SocketAddr) -> bool {
    let asked = tokio::time::timeout(PATIENCE, async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        let request = format!("GET /health HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await.ok()?;
        let text = String::from_utf8_lossy(&answer).into_owned();
        // Chunks have their lengths on lines of their own; the object is the only thing in braces.
        let body = text.split_once("\r\n\r\n")?.1;
        let object = body.get(body.find('{')?..=body.rfind('}')?)?;
        serde_json::from_str::<Value>(object).ok()
    });
    asked.await.ok().flatten().is_some_and(|health| health["upstreams"].is_object())
}

/// The process that listens there, where the system shows it.
fn holder(address: SocketAddr) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let inode = tables.iter().find_map(|table| listening(&std::fs::read_to_string(table).ok()?, address.port()))?;
    let wanted = format!("socket:[{inode}]");
    for process in std::fs::read_dir("/proc").ok()?.flatten() {
        let Ok(files) = std::fs::read_dir(process.path().join("fd")) else { continue };
        let holds = |file: std::fs::DirEntry| {
            std::fs::read_link(file.path()).is_ok_and(|link| link.to_string_lossy() == wanted)
        };
        if files.flatten().any(holds) {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("`{}`, process {}", name.trim(), process.file_name().to_string_lossy()));
        }
    }
    None
}

/// The socket that listens on a port, in the system's table of them.
fn listening(table: &str, port: u16) -> Option<String> {
    const LISTEN: &str = "0A";
    let at = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let here = fields.get(1)?.ends_with(&at) && *fields.get(3)? == LISTEN;
        here.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    })
}
