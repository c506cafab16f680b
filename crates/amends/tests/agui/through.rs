//! A client of AG-UI, a gateway, a second gateway and its tool: what happens at the bottom arrives at the top as what it is, once.

use serde_json::{Value, json};

use crate::agent::{Agent, asked, envelope, interrupt, last, outcome, results, statuses};
use crate::support::{Gateway, Place, eventually, served};

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
    fn start(lower: &str) -> Self {
        let (inner, outer) = (Place::new(), Place::new());
        let config = inner.write("below.toml", lower).display().to_string();
        let below = inner.up_with(FAULTS, &["--config", &config]);
        let upstream = format!("url = \"{}\"\ntimeout = \"40s\"\ndeadline = \"55s\"", below.mcp());
        let above = served::serve_tools(&outer, &upstream, "[tools.slow_report]\neffect = \"read\"\n");
        Self { inner, outer, below, above }
    }

    /// Nothing is left running, above or below.
    fn settled(&self) {
        self.outer.settled();
        self.inner.settled();
    }
}

fn charge(order: &str) -> Value {
    json!([{ "tool": "charge_card", "args": { "order": order, "amount": 5 } }])
}

#[test]
fn an_error_and_a_timeout_at_the_bottom_keep_their_code_to_the_top() {
    let two = Two::start("[tools.charge_card]\neffect = \"write\"\ntimeout = \"1s\"\n");
    let mut agent = Agent::of(&two.above);
    let went = agent.calls("wrong", charge("ord_wrong"));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["failed"]), "{went:#}");
    let error = &envelope(results(&went)[0])["error"];
    assert_eq!((&error["code"], &error["class"]), (&json!("InputInvalid"), &json!("ToolTerminal")), "{error:#}");
    let went = agent.calls("lost", charge("ord_lost"));
    assert_eq!(
        (&last(&went)["type"], &last(&went)["code"]),
        (&json!("RUN_ERROR"), &json!("NetworkTimeout")),
        "{went:#}"
    );
    assert_eq!(envelope(results(&went)[0])["error"]["certainty"], "in_doubt", "{went:#}");
    assert_eq!(two.inner.requests("charge_card"), 2);
    assert_eq!(two.inner.effects("charge_card"), 1);
}

#[test]
fn a_question_of_the_lower_gateway_is_an_interrupt_at_the_top() {
    let two = Two::start(
        "[tools.charge_card]\neffect = \"write\"\napproval = \"finance\"\n[queues.finance]\nrequester = true\n",
    );
    let mut agent = Agent::of(&two.above);
    let asks = interrupt(&agent.calls("t", charge("ord_1")));
    assert_eq!(asks["reason"], "input_required", "{asks:#}");
    assert_eq!(asks["responseSchema"]["properties"]["approve"]["type"], "boolean", "{asks:#}");
    assert_eq!(two.inner.requests("charge_card"), 0);
    let went = agent.resume("t", asks["id"].as_str().expect("an id"), json!({ "approve": true }));
    assert_eq!((outcome(&went), statuses(&went)), ("success", vec!["done"]), "{went:#}");
    assert_eq!((two.inner.requests("charge_card"), two.inner.effects("charge_card")), (1, 1));
    // A form that is put away is no answer: the question stays for others, and so does the interrupt.
    let went = agent.calls("u", charge("ord_2"));
    let resume = json!([{ "interruptId": asked(&went), "status": "cancelled" }]);
    let went = agent.run(json!({ "thread": "u", "resume": resume }));
    assert_eq!(two.inner.requests("charge_card"), 1, "{went:#}");
}

#[test]
fn a_client_that_goes_away_is_felt_at_the_bottom() {
    let two = Two::start("[tools.slow_report]\neffect = \"read\"\ntimeout = \"40s\"\ndeadline = \"55s\"\n");
    let mut agent = Agent::of(&two.above);
    let report = json!({ "calls": [{ "tool": "slow_report", "args": { "steps": 1000, "step_ms": 60 } }] });
    let n = agent.begin(json!({ "thread": "t", "amends": report }));
    eventually("the report is asked for", || two.inner.requests("slow_report") == 1);
    drop(agent);
    let _ = n;
    eventually("the shop hears of the cancel", || two.inner.cancelled("slow_report") == 1);
    two.settled();
}

#[test]
fn a_lower_gateway_that_dies_leaves_a_doubt_and_no_second_charge() {
    let mut two = Two::start("[tools.charge_card]\neffect = \"write\"\ntimeout = \"40s\"\ndeadline = \"55s\"\n");
    let mut agent = Agent::of(&two.above);
    let n = agent.begin(json!({ "thread": "t", "amends": { "calls": charge("ord_late") } }));
    eventually("the charge arrives", || two.inner.effects("charge_card") == 1);
    two.below.kill();
    let went = agent.finish(n);
    assert_eq!(
        (&last(&went)["type"], &last(&went)["code"]),
        (&json!("RUN_ERROR"), &json!("ConnectionLost")),
        "{went:#}"
    );
    let error = &envelope(results(&went)[0])["error"];
    assert_eq!((&error["certainty"], &error["safe_to_repeat"]), (&json!("in_doubt"), &json!(false)), "{error:#}");
    assert_eq!((two.inner.requests("charge_card"), two.inner.effects("charge_card")), (1, 1));
}

#[test]
fn an_upper_gateway_that_dies_finds_the_answer_when_it_is_back() {
    let mut two = Two::start("[tools.charge_card]\neffect = \"write\"\n");
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
