//! A receiver of questions.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// What the desk and the gateway know.
pub const SECRET: &str = "a secret of the desk";

/// One posted question: the signature and the body as it came.
#[derive(Clone, Debug)]
pub struct Posted {
    pub signature: String,
    pub body: String,
}

impl Posted {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a question is JSON")
    }
}

/// A receiver that takes questions, or says that it cannot.
pub struct Desk {
    pub address: String,
    pub takes: Arc<AtomicBool>,
    posted: Arc<Mutex<Vec<Posted>>>,
}

impl Desk {
    pub fn open(takes: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let desk = Self { address, takes: Arc::new(AtomicBool::new(takes)), posted: Arc::default() };
        let (takes, posted) = (desk.takes.clone(), desk.posted.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (takes, posted) = (takes.clone(), posted.clone());
                thread::spawn(move || serve(stream, &takes, &posted));
            }
        });
        desk
    }

    pub fn posted(&self) -> Vec<Posted> {
        self.posted.lock().expect("nobody panicked").clone()
    }
}

/// Answers the requests of one connection.
fn serve(stream: TcpStream, takes: &AtomicBool, posted: &Mutex<Vec<Posted>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("it can be shared"));
    let mut writer = stream;
    loop {
        let (mut length, mut signature) = (0, String::new());
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            match line.split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().expect("a length");
                }
                Some((name, value)) if name.eq_ignore_ascii_case("amends-signature") => signature = value.to_owned(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("the whole body");
        let body = String::from_utf8(body).expect("UTF-8");
        posted.lock().expect("nobody panicked").push(Posted { signature, body });
        let status = if takes.load(Ordering::SeqCst) { "204 No Content" } else { "503 Service Unavailable" };
        if writer.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes()).is_err() {
            return;
        }
    }
}
