//! A client of AG-UI, a gateway, a second one that it calls over MCP or A2A, and its tool: what happens at the bottom arrives at the top as what it is, once.

use serde_json::{Value, json};

use crate::agent::{Agent, asked, envelope, interrupt, last, outcome, results, statuses};
use crate::support::{Gateway, Place, eventually, served};

/// How one gateway calls the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Mcp,
    A2a,
}

impl By {
    const BOTH: [Self; 2] = [Self::Mcp, Self::A2a];

    /// A call of a tool of the lower gateway.
    fn call(self, tool: &str, args: Value) -> Value {
        let args = match self {
            Self::Mcp => args,
            // To an agent, which tool it is and what it is given is data.
            Self::A2a => json!({ "data": { "tool": tool, "args": args } }),
        };
        json!({ "tool": tool, "args": args })
    }

    fn charge(self, order: &str) -> Value {
        json!([self.call("charge_card", json!({ "order": order, "amount": 5 }))])
    }
}

/// A gateway over a shop, and another one over that.
struct Two {
    inner: Place,
    outer: Place,
    below: Gateway,
    above: Gateway,
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
late_ms = 20000
"#;

impl Two {
    /// Two gateways, whose lower one has that beside its shop.
    fn start(by: By, lower: &str) -> Self {
        let (inner, outer) = (Place::new(), Place::new());
        let config = inner.write("below.toml", lower).display().to_string();
        let below = inner.up_with(FAULTS, &["--config", &config]);
        let reach = match by {
            By::Mcp => format!("url = \"{}\"", below.mcp()),
            By::A2a => format!("a2a = \"http://{}\"", below.address),
        };
        let upstream = format!("{reach}\ntimeout = \"30s\"\ndeadline = \"50s\"");
        let above = served::serve_tools(&outer, &upstream, "[tools.slow_report]\neffect = \"read\"\n");
        Self { inner, outer, below, above }
    }

    /// Nothing is left running, above or below.
    fn settled(&self) {
        self.outer.settled();
        self.inner.settled();
    }
}

const WRITES: &str = "[tools.charge_card]\neffect = \"write\"\n";

#[test]
fn an_error_and_a_timeout_at_the_bottom_keep_their_code_to_the_top() {
    for by in By::BOTH {
        let two = Two::start(by, &format!("{WRITES}timeout = \"1s\"\n"));
        let mut agent = Agent::of(&two.above);
        let went = agent.calls("wrong", by.charge("ord_wrong"));
        assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["failed"]), "{by:?}: {went:#}");
        let error = &envelope(results(&went)[0])["error"];
        assert_eq!(
            (&error["code"], &error["class"]),
            (&json!("InputInvalid"), &json!("ToolTerminal")),
            "{by:?}: {error:#}"
        );
        let went = agent.calls("lost", by.charge("ord_lost"));
        let end = last(&went);
        assert_eq!((&end["type"], &end["code"]), (&json!("RUN_ERROR"), &json!("NetworkTimeout")), "{by:?}: {went:#}");
        assert_eq!(envelope(results(&went)[0])["error"]["certainty"], "in_doubt", "{by:?}: {went:#}");
        assert_eq!((two.inner.requests("charge_card"), two.inner.effects("charge_card")), (2, 1), "{by:?}");
    }
}

#[test]
fn a_question_of_the_lower_gateway_is_an_interrupt_at_the_top() {
    for by in By::BOTH {
        let two = Two::start(by, &format!("{WRITES}approval = \"finance\"\n[queues.finance]\nrequester = true\n"));
        let mut agent = Agent::of(&two.above);
        let asks = interrupt(&agent.calls("t", by.charge("ord_1")));
        assert_eq!(asks["reason"], "input_required", "{by:?}: {asks:#}");
        let (field, kind, yes) = match by {
            By::Mcp => ("approve", "boolean", json!({ "approve": true })),
            By::A2a => ("choice", "string", json!({ "choice": "approve" })),
        };
        assert_eq!(asks["responseSchema"]["properties"][field]["type"], kind, "{by:?}: {asks:#}");
        assert_eq!(two.inner.requests("charge_card"), 0, "{by:?}");
        let went = agent.resume("t", asks["id"].as_str().expect("an id"), yes);
        assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done"]), "{by:?}: {went:#}");
        assert_eq!((two.inner.requests("charge_card"), two.inner.effects("charge_card")), (1, 1), "{by:?}");
        // A form that is put away is no yes.
        let went = agent.calls("u", by.charge("ord_2"));
        let resume = json!([{ "interruptId": asked(&went), "status": "cancelled" }]);
        let went = agent.run(json!({ "thread": "u", "resume": resume }));
        assert_eq!(two.inner.requests("charge_card"), 1, "{by:?}: {went:#}");
    }
}

#[test]
fn a_client_that_goes_away_is_felt_at_the_bottom() {
    for by in By::BOTH {
        let two = Two::start(by, "[tools.slow_report]\neffect = \"read\"\ntimeout = \"30s\"\ndeadline = \"50s\"\n");
        let mut agent = Agent::of(&two.above);
        let report = by.call("slow_report", json!({ "steps": 1000, "step_ms": 60 }));
        agent.begin(json!({ "thread": "t", "amends": { "calls": [report] } }));
        eventually("the report is asked for", || two.inner.requests("slow_report") == 1);
        drop(agent);
        eventually("the shop hears of the cancel", || two.inner.cancelled("slow_report") == 1);
        two.settled();
    }
}

#[test]
fn a_lower_gateway_that_dies_leaves_a_doubt_and_no_second_charge() {
    for by in By::BOTH {
        let mut two = Two::start(by, &format!("{WRITES}timeout = \"40s\"\ndeadline = \"55s\"\n"));
        let mut agent = Agent::of(&two.above);
        let n = agent.begin(json!({ "thread": "t", "amends": { "calls": by.charge("ord_late") } }));
        eventually("the charge arrives", || two.inner.effects("charge_card") == 1);
        two.below.kill();
        let went = agent.finish(n);
        assert_eq!(last(&went)["type"], "RUN_ERROR", "{by:?}: {went:#}");
        let error = &envelope(results(&went)[0])["error"];
        let told = (&error["class"], &error["certainty"], &error["safe_to_repeat"]);
        assert_eq!(told, (&json!("ProviderTransient"), &json!("in_doubt"), &json!(false)), "{by:?}: {error:#}");
        assert_eq!((two.inner.requests("charge_card"), two.inner.effects("charge_card")), (1, 1), "{by:?}");
    }
}

#[test]
fn an_upper_gateway_that_dies_finds_the_answer_when_it_is_back() {
    let mut two = Two::start(By::Mcp, WRITES);
    let mut agent = Agent::of(&two.above);
    let calls = json!([{ "tool": "charge_card", "args": { "order": "ord_1", "amount": 5 }, "id": "the-charge" }]);
    assert_eq!(statuses(&agent.calls("t", calls.clone())), ["done"]);
    two.above.kill();
    let upstream = format!("url = \"{}\"", two.below.mcp());
    two.above = served::serve_tools(&two.outer, &upstream, "");
    let mut agent = Agent::of(&two.above);
    let again = agent.calls("t", calls);
    assert_eq!(envelope(results(&again)[0])["replayed"], true, "{again:#}");
    assert_eq!((two.inner.requests("charge_card"), two.inner.effects("charge_card")), (1, 1));
    two.settled();
}
