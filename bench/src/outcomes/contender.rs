//! The contenders: what stands between an agent and the shop, and how that agent behaves.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::agent::{Agent, Key, Manner};
use super::line::Line;
use super::told::Words;
use crate::subject::Subject;

/// How long whoever calls the shop waits for its answer.
const SHOP_PATIENCE: Duration = Duration::from_secs(1);
/// How long an agent waits for a gateway's answer.
const GATEWAY_PATIENCE: Duration = Duration::from_secs(60);
const READY_LOOKS: usize = 300;
const READY_EVERY: Duration = Duration::from_millis(100);

/// What stands between an agent and the shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    Nothing,
    FastMcp,
    CtrlRun,
    Amends,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    pub(crate) front: Front,
    pub(crate) agent: Agent,
}

const fn row(name: &'static str, front: Front, manner: Manner, key: Key) -> Contender {
    Contender { name, front, agent: Agent { manner, key } }
}

impl Contender {
    /// Every contender, in the order of the table.
    pub(crate) const ALL: [Self; 11] = [
        row("direct, one call", Front::Nothing, Manner::Once, Key::Nowhere),
        row("direct, three retries", Front::Nothing, Manner::Repeats, Key::Nowhere),
        row("direct, three retries with a key", Front::Nothing, Manner::Repeats, Key::Argument),
        row("FastMCP proxy, one call", Front::FastMcp, Manner::Once, Key::Nowhere),
        row("FastMCP proxy, agent repeats", Front::FastMcp, Manner::Repeats, Key::Nowhere),
        row("CTRLRun, one call", Front::CtrlRun, Manner::Once, Key::Nowhere),
        row("CTRLRun, agent repeats", Front::CtrlRun, Manner::Repeats, Key::Nowhere),
        row("Amends, one call", Front::Amends, Manner::Once, Key::Nowhere),
        row("Amends, agent follows", Front::Amends, Manner::Follows, Key::Nowhere),
        row("Amends, agent repeats", Front::Amends, Manner::Repeats, Key::Nowhere),
        row("Amends, agent repeats with a key", Front::Amends, Manner::Repeats, Key::Meta),
    ];

    /// How long the agent waits for one answer.
    pub(crate) fn patience(&self) -> Duration {
        if self.front == Front::Nothing { SHOP_PATIENCE } else { GATEWAY_PATIENCE }
    }
}

impl Front {
    pub(crate) fn words(self) -> Words {
        match self {
            Self::Nothing | Self::FastMcp => Words::Shop,
            Self::CtrlRun => Words::CtrlRun,
            Self::Amends => Words::Amends,
        }
    }

    /// Whether it comes from a package of its own.
    pub(crate) fn is_foreign(self) -> bool {
        matches!(self, Self::FastMcp | Self::CtrlRun)
    }

    /// The program of a gateway from elsewhere, in the folder that `bench/gateways/setup.sh` fills.
    pub(crate) fn program(self, gateways: &Path) -> Option<PathBuf> {
        match self {
            Self::FastMcp => Some(gateways.join("fastmcp/bin/python")),
            Self::CtrlRun => Some(gateways.join("ctrlrun/bin/ctrlrun")),
            Self::Nothing | Self::Amends => None,
        }
    }

    /// Starts it in front of the shop; `None` where agents call the shop itself.
    pub(crate) async fn start(
        self,
        amends: &Path,
        gateways: &Path,
        folder: &Path,
        shop: &str,
    ) -> Result<Option<Subject>> {
        let url = format!("http://{shop}/mcp");
        let program = self.program(gateways);
        match (self, program) {
            (Self::Amends, _) => {
                let config = folder.join("amends.toml");
                std::fs::write(&config, amends_config(folder, &url))?;
                let config = config.to_str().context("the folder's path is not UTF-8")?;
                Subject::start(amends, &["serve", "--config", config]).map(Some)
            }
            (Self::FastMcp, Some(program)) => {
                let script = concat!(env!("CARGO_MANIFEST_DIR"), "/gateways/fastmcp_proxy.py");
                let mut command = Command::new(program);
                foreign(folder, |port| command.args([script, &url, port])).await.map(Some)
            }
            (Self::CtrlRun, Some(program)) => {
                std::fs::write(folder.join("ctrlrun.yaml"), CTRLRUN_POLICY)?;
                let mut command = Command::new(program);
                let seconds = SHOP_PATIENCE.as_secs().to_string();
                command.args(["gateway", "--upstream", &url, "--alias", "shop", "--principal", "agent"]);
                command.args(["--upstream-timeout", &seconds, "--listen"]);
                foreign(folder, |port| command.arg(format!("127.0.0.1:{port}"))).await.map(Some)
            }
            (Self::Nothing | Self::FastMcp | Self::CtrlRun, _) => Ok(None),
        }
    }
}

/// Starts a gateway on a free port, in a folder of its own, and waits until it answers.
async fn foreign<'a>(folder: &Path, command: impl FnOnce(&str) -> &'a mut Command) -> Result<Subject> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let log = std::fs::File::create(folder.join("gateway.log"))?;
    let child = command(&port.to_string())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("cannot start the gateway")?;
    let gateway = Subject::found(child, format!("127.0.0.1:{port}"));
    for _ in 0..READY_LOOKS {
        if Line::open(&gateway.address, GATEWAY_PATIENCE).await.is_ok() {
            return Ok(gateway);
        }
        tokio::time::sleep(READY_EVERY).await;
    }
    let said = std::fs::read_to_string(folder.join("gateway.log")).unwrap_or_default();
    bail!("the gateway does not answer: {said}")
}

/// What an operator who knows the shop declares.
fn amends_config(folder: &Path, url: &str) -> String {
    let ledger = folder.join("ledger.db");
    format!(
        r#"[ledger]
url = "sqlite:{}"

[listen]
http = "127.0.0.1:0"

[upstreams.shop]
prefix = ""
url = "{url}"
timeout = "{}s"
rejects_before_effect = [429]

[tools.get_order]
effect = "read"

[tools.get_refund]
effect = "read"

[tools.issue_refund]
effect = "keyed"
key = {{ argument = "idempotency_key", window = "24h", durable = true }}
status = {{ tool = "get_refund", args = {{ key = "key" }}, happened = "result.found" }}
settles_within = "10s"

[tools.charge_card]
effect = "write"

[tools.send_email]
effect = "write"
"#,
        ledger.display(),
        SHOP_PATIENCE.as_secs()
    )
}

/// The same knowledge in CTRLRun's words: what makes two calls one effect.
const CTRLRUN_POLICY: &str = r#"schema: ctrlrun.policy/v2

actions:
  mcp.shop.get_order:
    decision: allow
  mcp.shop.issue_refund:
    effect: "refund:{order}"
    decision: allow
  mcp.shop.charge_card:
    effect: "charge:{order}"
    decision: allow
  mcp.shop.send_email:
    effect: "email:{to}:{subject}"
    decision: allow
"#;
