//! A gateway of this very binary, on a free port, before the demo shop, with a folder of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// How long the gateway and its shop may take to be ready, and a call to be answered.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway that runs; it is killed by its id when dropped.
pub(super) struct Gateway {
    own: PathBuf,
    child: Child,
    address: String,
    folder: Folder,
}

/// What a call came to, and how long that took.
pub(super) struct Answer {
    pub(super) envelope: Value,
    pub(super) wait_ms: u64,
}

/// The shop as in the demo, but for the restraint: here it fails in every way at once, and each fault is to be met alone.
const PATIENT: &str = r#"
[upstreams.shop]
command = ["amends"]
prefix = ""
timeout = "2s"
deadline = "30s"
breaker = { failures = 32 }
retry_budget = { tokens = 1000 }
"#;

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Gateway {
    /// Starts a gateway with that script for the shop, and waits until the shop's tools are served.
    pub(super) fn start(script: &str) -> Result<Self> {
        let own = std::env::current_exe().context("cannot find this binary")?;
        let folder = Folder::new()?;
        let faults = folder.0.join("faults.toml");
        std::fs::write(&faults, script).with_context(|| format!("cannot write `{}`", faults.display()))?;
        let config = folder.0.join("amends.toml");
        std::fs::write(&config, PATIENT).with_context(|| format!("cannot write `{}`", config.display()))?;
        let ledger = format!("sqlite:{}", folder.0.join("amends.db").display());
        let mut child = Command::new(&own)
            .args(["up", "--demo", "--listen", "127.0.0.1:0", "--ledger", &ledger, "--faults"])
            .arg(&faults)
            .arg("--book")
            .arg(folder.0.join("book.db"))
            .arg("--config")
            .arg(&config)
            .current_dir(&folder.0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start a gateway")?;
        let stderr = child.stderr.take().context("the gateway has a standard error")?;
        let mut gateway = Self { own, child, address: String::new(), folder };
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let listens = |line: String| {
            let rest = line.strip_prefix("amends listens on http://")?;
            rest.split(';').next().map(str::to_owned)
        };
        gateway.address = lines.by_ref().find_map(listens).context("the gateway does not listen")?;
        // Whatever else it says must be read, or it would block one day.
        std::thread::spawn(move || lines.for_each(drop));
        gateway.wait_for_tools()?;
        Ok(gateway)
    }

    fn wait_for_tools(&self) -> Result<()> {
        let began = Instant::now();
        loop {
            let answer = self.call("get_order", &json!({ "order": "ord_drill" }))?;
            if answer.envelope["status"] == "success" {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                bail!("the shop's tools are not served: {}", answer.envelope);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// One call through the plain HTTP door.
    pub(super) fn call(&self, tool: &str, arguments: &Value) -> Result<Answer> {
        let began = Instant::now();
        let body = arguments.to_string();
        let mut stream = TcpStream::connect(&self.address).context("the gateway is gone")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "POST /call/{tool} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).with_context(|| format!("`{tool}` is not answered"))?;
        let wait_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let text = String::from_utf8_lossy(&answer);
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let envelope =
            serde_json::from_str(body).with_context(|| format!("the answer of `{tool}` is not JSON: {text}"))?;
        Ok(Answer { envelope, wait_ms })
    }

    /// What the shop's book holds.
    pub(super) fn book(&self) -> Result<Value> {
        let output = Command::new(&self.own)
            .args(["shop", "--book"])
            .arg(self.folder.0.join("book.db"))
            .args(["book", "--json"])
            .stdin(Stdio::null())
            .output()
            .context("cannot read the shop's book")?;
        serde_json::from_slice(&output.stdout).context("the shop's book is not JSON")
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Folder {
    fn new() -> Result<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let n = MADE.fetch_add(1, Ordering::Relaxed);
        let path: &Path = &std::env::temp_dir();
        let path = path.join(format!("amends-drill-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("cannot make `{}`", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans up temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
