//! An agent of PydanticAI behind fasta2a in the middle, with the tools of the second gateway through our package.

use serde_json::{Value, json};

use super::{FAULTS, PATIENT, error};
use crate::agent::{Agent, last, outcome, results, statuses};
use crate::support::served::{self, Listening};
use crate::support::{Gateway, Place, root};

struct Reasoning {
    above: Place,
    first: Gateway,
    below: Place,
    second: Gateway,
    _reasoner: Listening,
}

impl Reasoning {
    fn start() -> Self {
        let (above, below) = (Place::new(), Place::new());
        let config = PATIENT.replace("timeout = \"40s\"", "timeout = \"1s\"");
        let config = below.write("second.toml", &config).display().to_string();
        let faults = format!(
            "{FAULTS}\n[[fault]]\ntool = \"charge_card\"\nwhen = {{ order = \"ord_no\" }}\nattempts = [\"forbidden\"]\nrepeat = true\n"
        );
        let second = below.up_with(&faults, &["--config", &config]);
        let text = |path: std::path::PathBuf| path.display().to_string();
        let reasoner = Listening::start(&[
            "env".to_owned(),
            format!("PYTHONPATH={}", text(root().join("python/amends-pydantic-ai/src"))),
            "PYTHONDONTWRITEBYTECODE=1".to_owned(),
            text(root().join("target/clerk/bin/python")),
            text(root().join("crates/amends/tests/agui/reasoner.py")),
            text(below.path("reasoner.txt")),
            second.mcp(),
        ]);
        let upstream = format!("a2a = \"{}\"\ntimeout = \"30s\"\ndeadline = \"50s\"", reasoner.url);
        let first = served::serve_tools(&above, &upstream, "");
        Self { above, first, below, second, _reasoner: reasoner }
    }

    fn notes(&self) -> Vec<String> {
        let book = std::fs::read_to_string(self.below.path("reasoner.txt")).unwrap_or_default();
        book.lines().map(str::to_owned).collect()
    }

    fn charged(&self, order: &str) -> (usize, usize) {
        (self.below.requests_on("charge_card", order), self.below.effects_on("charge_card", order))
    }
}

/// What the agent is told to call, one after the other.
fn wish(calls: &[Value]) -> Value {
    let lines: Vec<String> = calls.iter().map(|args| format!("charge_card {args}")).collect();
    json!([{ "tool": "reason", "args": { "message": lines.join("\n") } }])
}

fn told(went: &Value) -> String {
    assert_eq!((outcome(went), statuses(went)), ("success", vec!["done"]), "{went:#}");
    results(went)[0]["content"].to_string()
}

#[test]
fn an_agent_of_pydantic_ai_behind_fasta2a_is_a_hop_like_any_other() {
    let mut chain = Reasoning::start();
    let mut agent = Agent::of(&chain.first);
    // What its model can correct it corrects, and nobody above hears of it.
    let (wrong, right) = (json!({ "order": "ord_1", "amount": "five" }), json!({ "order": "ord_1", "amount": 5 }));
    let said = told(&agent.calls("corrected", wish(&[wrong, right])));
    assert!(said.contains("success: ") && said.contains("ord_1"), "{said}");
    assert_eq!(chain.notes(), ["calls charge_card", "is told retried", "calls charge_card", "is told success"]);
    assert_eq!(chain.charged("ord_1"), (1, 1));
    // What is final its model hears, and says.
    let said = told(&agent.calls("final", wish(&[json!({ "order": "ord_no", "amount": 5 })])));
    assert!(said.contains("failed: ") && said.contains("Forbidden"), "{said}");
    assert_eq!(chain.charged("ord_no"), (1, 0));
    // A doubt is no success and nothing to try again: its run does not go on, and the doubt is one above, too.
    let before = chain.notes().len();
    let went = agent
        .calls("doubt", wish(&[json!({ "order": "ord_lost", "amount": 5 }), json!({ "order": "ord_2", "amount": 5 })]));
    let doubt = error(&went);
    assert_eq!((&doubt["code"], &doubt["certainty"]), (&json!("ActionError"), &json!("in_doubt")), "{went:#}");
    assert_eq!(last(&went)["type"], "RUN_ERROR", "{went:#}");
    assert_eq!((chain.charged("ord_lost"), chain.charged("ord_2")), ((1, 1), (0, 0)));
    assert_eq!(chain.notes()[before..], ["calls charge_card"], "its model hears nothing of it");
    // Its gateway is away: its run stops, and its model hears nothing of that either.
    chain.second.kill();
    let before = chain.notes().len();
    let went = agent.calls("away", wish(&[json!({ "order": "ord_3", "amount": 5 })]));
    assert_eq!((&error(&went)["code"], &last(&went)["type"]), (&json!("ActionError"), &json!("RUN_ERROR")), "{went:#}");
    assert!(!chain.notes()[before..].iter().any(|line| line.starts_with("is told")), "{:?}", chain.notes());
    chain.above.settled();
}
