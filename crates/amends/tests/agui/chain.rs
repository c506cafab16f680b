//! A client of AG-UI, a gateway, an agent of the A2A SDK that it calls, a second gateway that the agent calls over MCP, and its tool: what goes
//! wrong at any of them arrives at the top as what it is, once, and nothing is left running at the bottom.

mod crashes;
mod errors;
mod frameworks;
mod questions;
mod stops;
mod timeouts;

use serde_json::{Value, json};

use crate::agent::{envelope, results};
use crate::support::served::{self, Listening};
use crate::support::{Gateway, Place, eventually, root};

/// All of it but the client.
struct Chain {
    /// The first gateway's folder.
    above: Place,
    first: Gateway,
    clerk: Listening,
    clerk_flags: Vec<String>,
    /// The second gateway's folder, with the shop's book and the clerk's.
    below: Place,
    second: Gateway,
    second_config: String,
}

const FAULTS: &str = r#"
[[fault]]
tool = "charge_card"
when = { order = "ord_wrong" }
attempts = ["unprocessable"]
repeat = true

[[fault]]
tool = "charge_card"
when = { order = "ord_lost" }
attempts = ["lose_response"]
repeat = true

[[fault]]
tool = "charge_card"
when = { order = "ord_late" }
attempts = ["late"]
repeat = true
late_ms = 6000

[[fault]]
tool = "charge_card"
when = { order = "ord_crash" }
attempts = ["crash_after"]
"#;

/// How the parts of a chain are told to be.
#[derive(Clone, Copy, Debug, Default)]
struct Told<'a> {
    /// The contract of the agent's skill at the first gateway, and whatever else.
    first: &'a str,
    /// How long the first gateway waits for the agent, where that is not long.
    first_within: &'a str,
    /// The configuration of the second gateway.
    second: &'a str,
    /// Flags of the agent.
    clerk: &'a [&'a str],
}

/// The second gateway's, where nothing else is said: it is more patient than those above it.
const PATIENT: &str = "[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\ntimeout = \"40s\"\ndeadline = \"55s\"\n\
                       [tools.charge_card]\neffect = \"write\"\n[tools.slow_report]\neffect = \"read\"\n";

impl Chain {
    fn start(told: Told<'_>) -> Self {
        let below = Place::new();
        let second_config = if told.second.is_empty() { PATIENT } else { told.second }.to_owned();
        let second = second_over(&below, &second_config);
        Self::over(below, second, second_config, told)
    }

    /// The same over a second gateway that runs.
    fn over(below: Place, second: Gateway, second_config: String, told: Told<'_>) -> Self {
        let clerk_flags: Vec<String> = told.clerk.iter().map(|flag| (*flag).to_owned()).collect();
        let clerk = clerk(&below, &second.mcp(), None, &clerk_flags);
        let above = Place::new();
        let first = first_over(&above, &clerk, told.first_within, told.first);
        Self { above, first, clerk, clerk_flags, below, second, second_config }
    }

    /// The first gateway is killed and started again.
    fn restart_first(&mut self, told: &str) {
        self.first.kill();
        self.first = first_over(&self.above, &self.clerk, "", told);
    }

    /// The agent is killed.
    fn kill_clerk(&mut self) {
        self.clerk.kill();
    }

    /// The agent is started again where it was, and knows nothing of its tasks.
    fn start_clerk(&mut self) {
        let port = self.clerk.url.rsplit(':').next().expect("a port").to_owned();
        self.clerk = clerk(&self.below, &self.second.mcp(), Some(&port), &self.clerk_flags);
    }

    /// The second gateway is started again, over its ledger.
    fn start_second(&mut self) {
        self.second = second_over(&self.below, &self.second_config);
    }

    /// How often the agent noted that.
    fn noted(&self, what: &str) -> usize {
        self.notes().iter().filter(|line| *line == what).count()
    }

    fn notes(&self) -> Vec<String> {
        let book = std::fs::read_to_string(self.below.path("clerk.txt")).unwrap_or_default();
        book.lines().map(str::to_owned).collect()
    }

    /// Nothing is left running: no call is open above or below, and both ledgers are whole.
    fn settled(&self) {
        self.above.settled();
        self.below.settled();
    }

    /// How often the shop was asked to charge that order, and how often it did.
    fn charged(&self, order: &str) -> (usize, usize) {
        (self.below.requests_on("charge_card", order), self.below.effects_on("charge_card", order))
    }
}

fn second_over(below: &Place, config: &str) -> Gateway {
    let config = below.write("second.toml", config).display().to_string();
    below.up_with(FAULTS, &["--config", &config])
}

fn first_over(above: &Place, clerk: &Listening, within: &str, told: &str) -> Gateway {
    let within = if within.is_empty() { "timeout = \"30s\"\ndeadline = \"50s\"" } else { within };
    let upstream = format!("a2a = \"{}\"\n{within}", clerk.url);
    served::serve_tools(above, &upstream, told)
}

pub(crate) fn clerk(below: &Place, mcp: &str, port: Option<&str>, flags: &[String]) -> Listening {
    let text = |path: std::path::PathBuf| path.display().to_string();
    let mut words = vec![
        text(root().join("target/clerk/bin/python")),
        text(root().join("crates/amends/tests/agui/clerk.py")),
        text(below.path("clerk.txt")),
        mcp.to_owned(),
    ];
    words.extend(port.map(str::to_owned));
    words.extend(flags.iter().cloned());
    Listening::start(&words)
}

/// A call of the agent's skill, which calls a tool of the second gateway.
fn call(tool: &str, args: Value) -> Value {
    json!({ "tool": "clerk", "args": { "data": { "tool": tool, "args": args } } })
}

fn charge(order: &str) -> Value {
    call("charge_card", json!({ "order": order, "amount": 5 }))
}

fn report() -> Value {
    call("slow_report", json!({ "steps": 1000, "step_ms": 60 }))
}

/// The same with an id of the client's.
fn with_id(mut call: Value, id: &str) -> Value {
    call["id"] = json!(id);
    call
}

/// What the one result of a run says went wrong. That it is one is checked: nothing is told twice.
fn error(went: &Value) -> Value {
    let told = results(went);
    assert_eq!(told.len(), 1, "{went:#}");
    envelope(told[0])["error"].clone()
}

/// The processes that have a file of that folder open by name: a tool that was started for it.
fn running(below: &Place) -> Vec<String> {
    let folder = below.path("book.db").display().to_string();
    let processes = std::fs::read_dir("/proc").expect("the processes").flatten();
    let command = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
    let shops = processes.filter_map(command).map(|words| String::from_utf8_lossy(&words).replace('\0', " "));
    shops.filter(|words| words.contains(&folder) && words.contains(" shop ")).collect()
}

/// The tools of a gateway that is gone are gone too.
fn no_tool_runs(below: &Place) {
    eventually("no tool runs without its gateway", || running(below).is_empty());
}
