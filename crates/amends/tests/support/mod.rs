//! What the tests through the real binary share: a folder of their own, a gateway on a free port, clients, and the
//! shop's book to count in.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part of this")]

pub mod authority;
pub mod client;
pub mod desk;
pub mod front;
pub mod http;
pub mod rmcp;
pub mod served;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The binary under test.
pub const AMENDS: &str = env!("CARGO_BIN_EXE_amends");

/// How long a condition may take to come true on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with a ledger, a book and a fault script of one test's own.
#[derive(Debug)]
pub struct Place {
    folder: tempfile::TempDir,
    /// The ledger, where it is not in the folder.
    elsewhere: Option<String>,
}

/// A gateway that runs; it is killed by its id when dropped.
#[derive(Debug)]
pub struct Gateway {
    child: Child,
    pub address: String,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder"), elsewhere: None }
    }

    /// A folder whose ledger is at that address.
    pub fn with_ledger(url: String) -> Self {
        Self { elsewhere: Some(url), ..Self::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The ledger as the command line names it.
    pub fn ledger(&self) -> String {
        let here = || format!("sqlite:{}", self.path("amends.db").display());
        self.elsewhere.clone().unwrap_or_else(here)
    }

    /// Writes a file and gives its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file in the temporary folder");
        path
    }

    /// Starts `amends up --demo` over this folder with that fault script (TOML, see `amends shop`).
    pub fn up(&self, faults: &str) -> Gateway {
        self.up_with(faults, &[])
    }

    /// The same with further flags.
    pub fn up_with(&self, faults: &str, flags: &[&str]) -> Gateway {
        Gateway::start(self.up_command(faults, flags))
    }

    /// The same with a shop that may take its time: no attempt times out before a test is done with it.
    pub fn up_patient(&self, faults: &str) -> Gateway {
        let config = "[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\ntimeout = \"40s\"\ndeadline = \"55s\"\n";
        let config = self.write("patient.toml", config).display().to_string();
        self.up_with(faults, &["--config", &config])
    }

    /// A gateway that dies at that point of the first write it is asked for.
    pub fn up_crashing(&self, faults: &str, point: &str) -> Gateway {
        let mut command = self.up_command(faults, &[]);
        command.env("AMENDS_CRASH_AT", point);
        Gateway::start(command)
    }

    /// Starts a gateway that dies at that point of a write it takes up by itself, and waits for its end.
    pub fn crash(&self, faults: &str, point: &str) {
        let mut command = self.up_command(faults, &[]);
        let command = command.env("AMENDS_CRASH_AT", point).stdin(Stdio::null()).stdout(Stdio::null());
        let mut gateway = Gateway { child: command.spawn().expect("it starts"), address: String::new() };
        gateway.ended();
    }

    /// The command that starts such a gateway.
    pub fn up_command(&self, faults: &str, flags: &[&str]) -> Command {
        let script = self.write("faults.toml", faults);
        let mut command = Command::new(AMENDS);
        command
            .args(["up", "--demo", "--listen", "127.0.0.1:0", "--ledger", &self.ledger(), "--faults"])
            .arg(script)
            .arg("--book")
            .arg(self.path("book.db"))
            .args(flags)
            .current_dir(self.folder.path());
        command
    }

    /// The command of `amends wrap` around a shop with that fault script, governed by that config if there is one.
    pub fn wrap(&self, faults: &str, config: Option<&str>) -> Vec<String> {
        let text = |path: PathBuf| path.display().to_string();
        let mut command = vec![AMENDS.to_owned(), "wrap".into(), "--ledger".into(), self.ledger()];
        if let Some(config) = config {
            command.extend(["--config".into(), text(self.write("wrap.toml", config))]);
        }
        let (book, script) = (text(self.path("book.db")), text(self.write("faults.toml", faults)));
        command.extend(["--", AMENDS, "shop", "--book", &book, "--faults", &script].map(str::to_owned));
        command
    }

    /// How many effects of that tool the shop's book holds.
    pub fn effects(&self, tool: &str) -> u64 {
        self.count("SELECT count(*) FROM effects WHERE tool = ?1", tool)
    }

    /// How many requests for that tool arrived at the shop.
    pub fn requests(&self, tool: &str) -> u64 {
        self.count("SELECT count(*) FROM requests WHERE tool = ?1", tool)
    }

    /// How many requests for that tool were cancelled at the shop.
    pub fn cancelled(&self, tool: &str) -> u64 {
        self.count("SELECT count(*) FROM requests WHERE tool = ?1 AND note = 'cancelled'", tool)
    }

    /// When requests for that tool arrived at the shop, in milliseconds.
    pub fn arrivals(&self, tool: &str) -> Vec<i64> {
        let book = self.book();
        let mut rows =
            book.prepare("SELECT at_ms FROM requests WHERE tool = ?1 ORDER BY id").expect("the book's table");
        let times = rows.query_map([tool], |row| row.get(0)).expect("rows");
        times.map(|time| time.expect("a time")).collect()
    }

    /// How many effects of that tool on that order the shop's book holds.
    pub fn effects_on(&self, tool: &str, order: &str) -> usize {
        self.column("SELECT ref FROM effects WHERE tool = ?1 AND order_id = ?2 ORDER BY id", tool, order).len()
    }

    /// How many requests for that tool and order arrived at the shop.
    pub fn requests_on(&self, tool: &str, order: &str) -> usize {
        let query = "SELECT args FROM requests WHERE tool = ?1 AND json_extract(args, '$.order') = ?2";
        self.column(query, tool, order).len()
    }

    /// When they arrived, in milliseconds.
    pub fn arrivals_on(&self, tool: &str, order: &str) -> Vec<i64> {
        let query = "SELECT cast(at_ms AS TEXT) FROM requests
                     WHERE tool = ?1 AND json_extract(args, '$.order') = ?2 ORDER BY id";
        self.column(query, tool, order).iter().map(|at| at.parse().expect("a time")).collect()
    }

    /// The keys they came with, in order.
    pub fn keys_on(&self, tool: &str, order: &str) -> Vec<String> {
        let query = "SELECT coalesce(json_extract(args, '$.idempotency_key'), '') FROM requests
                     WHERE tool = ?1 AND json_extract(args, '$.order') = ?2 ORDER BY id";
        self.column(query, tool, order)
    }

    fn column(&self, query: &str, tool: &str, order: &str) -> Vec<String> {
        if !self.path("book.db").exists() {
            return Vec::new();
        }
        let book = self.book();
        let Ok(mut rows) = book.prepare(query) else {
            return Vec::new();
        };
        let found = rows.query_map([tool, order], |row| row.get(0)).expect("rows");
        found.map(|text| text.expect("a text")).collect()
    }

    fn count(&self, query: &str, tool: &str) -> u64 {
        if !self.path("book.db").exists() {
            return 0;
        }
        self.book().query_row(query, [tool], |row| row.get::<_, i64>(0)).map_or(0, |count| count as u64)
    }

    fn book(&self) -> rusqlite::Connection {
        let book = rusqlite::Connection::open(self.path("book.db")).expect("the shop's book");
        book.busy_timeout(Duration::from_secs(10)).expect("a timeout");
        book
    }

    /// Runs the binary and gives its exit code and what it printed.
    pub fn amends(&self, arguments: &[&str]) -> (i32, String) {
        let output = Command::new(AMENDS)
            .args(arguments)
            .args(["--ledger", &self.ledger()])
            .current_dir(self.folder.path())
            .output()
            .expect("the binary runs");
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Every event of every session, oldest session first.
    pub fn events(&self) -> Vec<Value> {
        let (_, sessions) = self.amends(&["sessions", "--json", "--limit", "1000"]);
        let sessions: Value = serde_json::from_str(&sessions).expect("JSON");
        let mut events = Vec::new();
        for session in sessions["sessions"].as_array().into_iter().flatten().rev() {
            let (_, trace) = self.amends(&["trace", session["session"].as_str().unwrap_or(""), "--json"]);
            let trace: Value = serde_json::from_str(&trace).expect("JSON");
            events.extend(trace["events"].as_array().cloned().unwrap_or_default());
        }
        events
    }

    /// The events of that name, oldest session first.
    pub fn events_named(&self, name: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == name).collect()
    }

    /// How many calls are open, over all sessions.
    pub fn open_calls(&self) -> u64 {
        let (_, sessions) = self.amends(&["sessions", "--json", "--limit", "1000"]);
        let sessions: Value = serde_json::from_str(&sessions).expect("JSON");
        let rows = sessions["sessions"].as_array().expect("a list").iter();
        rows.map(|row| row["open_calls"].as_u64().expect("a number")).sum()
    }

    /// Waits until no call is open, and has the ledger verified.
    pub fn settled(&self) {
        eventually("no call is open", || self.open_calls() == 0);
        self.assert_verified();
    }

    /// The ledger is consistent, by the binary's own word.
    pub fn assert_verified(&self) {
        let (code, said) = self.amends(&["verify"]);
        assert_eq!(code, 0, "{said}");
    }
}

impl Gateway {
    /// Starts a gateway and waits until it listens and serves its tools.
    pub fn start(command: Command) -> Self {
        let gateway = Self::listening(command);
        eventually("the shop's tools are served", || {
            gateway.call("get_order", r#"{"order":"ord_ready"}"#).1["status"] == "success"
        });
        gateway
    }

    /// Starts a gateway and waits until it listens, whatever its upstreams do.
    pub fn listening(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let stderr = child.stderr.take().expect("its standard error");
        let mut lines = BufReader::new(stderr).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| {
                let rest = line.strip_prefix("amends listens on http://")?;
                rest.split(';').next().map(str::to_owned)
            })
            .expect("the gateway says where it listens");
        // Whatever else it says must be read, or it would block one day.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("gateway: {line}")));
        Self { child, address }
    }

    pub fn mcp(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// One call through the plain HTTP door: the status and the envelope.
    pub fn call(&self, tool: &str, arguments: &str) -> (u16, Value) {
        http::post(&self.address, &format!("/call/{tool}"), &[], arguments.as_bytes())
    }

    /// The same with headers.
    pub fn call_with(&self, tool: &str, headers: &[(&str, &str)], arguments: &str) -> (u16, Value) {
        http::post(&self.address, &format!("/call/{tool}"), headers, arguments.as_bytes())
    }

    /// Begins a call through the plain HTTP door and gives the connection.
    pub fn begin(&self, tool: &str, arguments: &str) -> std::net::TcpStream {
        http::send(&self.address, &format!("/call/{tool}"), &[], arguments.as_bytes())
    }

    /// Waits until it has ended by itself.
    pub fn ended(&mut self) {
        eventually("the gateway ends", || matches!(self.child.try_wait(), Ok(Some(_))));
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, by its id.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits for a condition, generously.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}
