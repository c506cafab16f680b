//! One upstream and a gateway in front of it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::{AMENDS, Gateway, Place, eventually, http};

/// A server that says where it listens. It is ended by its id when dropped.
#[derive(Debug)]
pub struct Listening {
    child: Child,
    pub url: String,
}

impl Listening {
    pub fn start(words: &[String]) -> Self {
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts; tests/clients/setup.sh installs what it needs");
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut said).expect("a line");
        let url = said.trim().strip_prefix("listens on ").unwrap_or_else(|| panic!("it said `{said}`")).to_owned();
        Self { child, url }
    }

    /// `kill -9`, by its id.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A gateway over that place's ledger, in front of one upstream declared as given, with whatever else.
pub fn serve(place: &Place, upstream: &str, more: &str) -> Gateway {
    let text = format!(
        "[ledger]\nurl = \"{}\"\n\n[listen]\nhttp = \"127.0.0.1:0\"\n\n[upstreams.one]\nprefix = \"\"\n{upstream}\n\n{more}\n",
        place.ledger()
    );
    let config = place.write("serve.toml", &text);
    let mut command = Command::new(AMENDS);
    command.arg("serve").arg("--config").arg(config);
    Gateway::listening(command)
}

/// The same, once it lists tools.
pub fn serve_tools(place: &Place, upstream: &str, more: &str) -> Gateway {
    let gateway = serve(place, upstream, more);
    let list = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    eventually("the tools are served", || {
        let (_, answer) = http::post(&gateway.address, "/mcp", &[], list);
        answer["result"]["tools"].as_array().is_some_and(|tools| !tools.is_empty())
    });
    gateway
}
