//! Who serves the machine: how each server is started, and the words it has for the same things.

use std::fmt;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::order::Said;
use crate::caller::{self, Target};
use crate::proxy::child::Child;
use crate::subject::Subject;

/// How often a server that has not opened its port yet is asked.
const ASK_EVERY: Duration = Duration::from_millis(1);
const ASKS_MAX: usize = 60_000;

/// Who serves the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Theodosia,
    Amends,
}

/// How its agents reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
}

/// What a session is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handle {
    /// Its connection.
    Connection,
    /// A name that the agent chooses.
    Chosen,
    /// The handle that the answer to its first step gives, which was sent as one that belongs to no connection.
    Given,
}

/// What every server needs.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) own: PathBuf,
    pub(crate) amends: PathBuf,
    pub(crate) gateways: PathBuf,
    pub(crate) folder: PathBuf,
}

/// A server that answers.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) peer: Peer,
    pub(crate) transport: Transport,
    pub(crate) target: Target,
    pub(crate) id: u32,
    _listening: Option<Subject>,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Theodosia => "Theodosia",
            Self::Amends => "Amends",
        })
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
        })
    }
}

impl Transport {
    pub(crate) const ALL: [Self; 2] = [Self::Stdio, Self::Http];
}

impl Peer {
    pub(crate) const ALL: [Self; 2] = [Self::Theodosia, Self::Amends];

    pub(crate) fn program(self, place: &Place) -> PathBuf {
        match self {
            Self::Theodosia => place.gateways.join("theodosia/bin/theodosia"),
            Self::Amends => place.amends.clone(),
        }
    }

    /// What its sessions are known by. Over stdio all of them share one connection.
    pub(crate) fn handle(self, transport: Transport) -> Handle {
        match (transport, self) {
            (Transport::Http, _) => Handle::Connection,
            (Transport::Stdio, Self::Theodosia) => Handle::Chosen,
            (Transport::Stdio, Self::Amends) => Handle::Given,
        }
    }

    /// The state that an answer says the machine is in.
    pub(crate) fn state<'a>(self, said: &Said<'a>) -> Option<&'a str> {
        match self {
            Self::Theodosia => said.state.as_ref()?.stage,
            Self::Amends => said.data.as_ref()?.state.as_ref().map(|state| state.name),
        }
    }

    /// How it is started, with what it records in that folder.
    fn command(self, place: &Place, transport: Transport, folder: &Path, port: u16) -> Result<Command> {
        let mut command = Command::new(self.program(place));
        command.current_dir(folder).stderr(File::create(folder.join("said"))?);
        match self {
            Self::Theodosia => {
                let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/gateways");
                command.env("THEODOSIA_HOME", folder.join("store")).env("THEODOSIA_QUIET", "1");
                command.args(["serve", "theodosia_coffee:build", "--app-dir", scripts]);
                if transport == Transport::Http {
                    command.args(["--transport", "http", "--port", &port.to_string()]);
                }
            }
            Self::Amends => {
                let config = folder.join("coffee.toml");
                std::fs::write(&config, format!("[listen]\nhttp = \"127.0.0.1:{port}\"\n\n{COFFEE}"))?;
                match transport {
                    Transport::Http => command.arg("serve").arg("--config").arg(config),
                    Transport::Stdio => {
                        let wrapped = command.arg("wrap").arg("--config").arg(config).arg("--").arg(&place.own);
                        wrapped.args(["echo", "--stdio"])
                    }
                };
            }
        }
        Ok(command)
    }
}

impl Server {
    /// Starts it in a folder of that name, which may have been used before, and waits until it takes a greeting.
    pub(crate) async fn start(place: &Place, peer: Peer, transport: Transport, name: &str) -> Result<Self> {
        let folder = place.folder.join(name);
        std::fs::create_dir_all(&folder)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let command = peer.command(place, transport, &folder, port)?;
        let started = match transport {
            Transport::Stdio => Self::piped(peer, command).await,
            Transport::Http => Self::listening(peer, command, port).await,
        };
        started.with_context(|| {
            let said = std::fs::read_to_string(folder.join("said")).unwrap_or_default();
            format!("{peer} over {transport} does not start: {said}")
        })
    }

    async fn piped(peer: Peer, command: Command) -> Result<Self> {
        let child = Child::spawn(&mut command.into())?;
        let id = child.id().context("it ended at once")?;
        caller::greet(&child).await?;
        let target = Target::Stdio(Arc::new(child));
        Ok(Self { peer, transport: Transport::Stdio, target, id, _listening: None })
    }

    async fn listening(peer: Peer, mut command: Command, port: u16) -> Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let subject = Subject::found(child, format!("127.0.0.1:{port}"));
        let target = Target::Http { address: subject.address.clone(), stateless: false };
        for _ in 0..ASKS_MAX {
            if tokio::net::TcpStream::connect(&subject.address).await.is_ok() {
                let id = subject.id();
                return Ok(Self { peer, transport: Transport::Http, target, id, _listening: Some(subject) });
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
        bail!("nobody listens on port {port}")
    }
}

/// The coffee order as Amends is told of it. Its ledger is a file that is synced before anything is answered.
const COFFEE: &str = r#"
[ledger]
url = "sqlite:ledger.db"

[machines.coffee]
initial = "created"
terminal = ["closed"]
limits = { steps = 10_000_000 }

[machines.coffee.actions.take_order]
from = ["created", "fulfilled"]
to = "ordered"
input = { type = "object", properties = { item = { type = "string" }, number = { type = "integer" } }, required = ["item", "number"] }
writes = { item = "inputs.item", number = "inputs.number" }

[machines.coffee.actions.pay]
from = ["ordered"]
to = "paid"
input = { type = "object", properties = { amount = { type = "number" } }, required = ["amount"] }
writes = { amount = "inputs.amount" }

[machines.coffee.actions.fulfil]
from = ["paid"]
to = "fulfilled"

[machines.coffee.actions.close]
from = ["fulfilled"]
to = "closed"
"#;
