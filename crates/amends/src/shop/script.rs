//! The script: all faults, in the order they are asked.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::fault::{Fault, Kind};
use super::tool::Tool;

/// Every fault in play, with unique keys; the first that matches a request speaks for it.
#[derive(Debug, Default)]
pub(crate) struct Script {
    faults: Vec<Fault>,
}

/// A script as written in TOML.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptSpec {
    #[serde(default)]
    fault: Vec<FaultSpec>,
}

/// One `[[fault]]` as written in TOML.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultSpec {
    tool: String,
    #[serde(default)]
    when: BTreeMap<String, Value>,
    attempts: Vec<String>,
    #[serde(default)]
    repeat: bool,
    retry_after: Option<u64>,
    late_ms: Option<u64>,
}

impl Script {
    /// Adds the faults of a TOML script.
    pub(crate) fn add_toml(&mut self, text: &str) -> Result<()> {
        let spec: ScriptSpec = toml::from_str(text)?;
        for (index, fault) in spec.fault.into_iter().enumerate() {
            self.add(fault).with_context(|| format!("in fault number {}", index + 1))?;
        }
        Ok(())
    }

    /// Adds one fault in its short form, `TOOL=KIND[,KIND…]` or `TOOL@ORDER=KIND[,KIND…]`.
    pub(crate) fn add_flag(&mut self, flag: &str) -> Result<()> {
        let (target, attempts) = flag.split_once('=').context("a fault is written `TOOL=KIND[,KIND…]`")?;
        let (tool, order) = match target.split_once('@') {
            Some((tool, order)) => (tool, Some(order)),
            None => (target, None),
        };
        self.add(FaultSpec {
            tool: tool.trim().to_owned(),
            when: order.map(|order| ("order".to_owned(), Value::from(order))).into_iter().collect(),
            attempts: attempts.split(',').map(|kind| kind.trim().to_owned()).collect(),
            ..FaultSpec::default()
        })
    }

    /// The fault that speaks for a request, if there is one.
    pub(crate) fn fault_for(&self, tool: Tool, arguments: &Map<String, Value>) -> Option<&Fault> {
        self.faults.iter().find(|fault| fault.matches(tool, arguments))
    }

    fn add(&mut self, spec: FaultSpec) -> Result<()> {
        let Some(tool) = Tool::named(&spec.tool) else {
            let known = Tool::ALL.map(Tool::name).join(", ");
            bail!("there is no tool `{}`; there are {known}", spec.tool);
        };
        ensure!(!spec.attempts.is_empty(), "`attempts` is empty");
        let attempts = spec
            .attempts
            .iter()
            .map(|name| {
                Kind::named(name).with_context(|| {
                    let known = Kind::ALL.map(Kind::name).join(", ");
                    format!("there is no kind of fault `{name}`; there are {known}")
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let key = self.unused_key(&spec);
        self.faults.push(Fault {
            key,
            tool,
            when: spec.when,
            attempts,
            repeat: spec.repeat,
            retry_after: spec.retry_after.unwrap_or(1),
            late: spec.late_ms.map(Duration::from_millis),
        });
        Ok(())
    }

    /// A key made of what the fault says, so that a restarted process with the same script counts on
    /// and one with another script starts at the beginning.
    fn unused_key(&self, spec: &FaultSpec) -> String {
        let mut words = vec![spec.tool.clone()];
        words.extend(spec.when.iter().map(|(field, value)| format!("{field}={value}")));
        words.push(spec.attempts.join(","));
        if spec.repeat {
            words.push("repeat".to_owned());
        }
        let key = words.join(" ");
        let twins =
            self.faults.iter().filter(|fault| fault.key == key || fault.key.starts_with(&format!("{key} #"))).count();
        match twins {
            0 => key,
            twins => format!("{key} #{}", twins + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object literal").clone()
    }

    #[test]
    fn a_toml_fault_keeps_everything_it_says() {
        let mut script = Script::default();
        script
            .add_toml(
                r#"
                [[fault]]
                tool = "issue_refund"
                when = { order = "ord_1", amount = 5 }
                attempts = ["rate_limited", "ok"]
                repeat = true
                retry_after = 7
                late_ms = 20
                "#,
            )
            .expect("the script is sound");
        let given = arguments(json!({"order": "ord_1", "amount": 5.0}));
        let fault = script.fault_for(Tool::IssueRefund, &given).expect("the fault matches");
        assert_eq!(fault.plan(2).kind, Kind::RateLimited);
        assert_eq!(fault.plan(0).retry_after, 7);
        assert_eq!(fault.plan(0).late, Some(Duration::from_millis(20)));
        let other = arguments(json!({"order": "ord_2", "amount": 5}));
        assert!(script.fault_for(Tool::IssueRefund, &other).is_none());
    }

    #[test]
    fn a_flag_may_name_an_order() {
        let mut script = Script::default();
        script.add_flag("charge_card@ord_9=lose_response, status_500").expect("the flag is sound");
        script.add_flag("charge_card=late").expect("so is this one");
        let kind = |order: &str| {
            let given = arguments(json!({"order": order}));
            let fault = script.fault_for(Tool::ChargeCard, &given);
            fault.expect("one of them matches").plan(0).kind
        };
        assert_eq!(kind("ord_9"), Kind::LoseResponse);
        assert_eq!(kind("ord_8"), Kind::Late);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_known_words() {
        let refusal = |flag: &str| {
            let error = Script::default().add_flag(flag).expect_err("it is wrong");
            format!("{error:#}")
        };
        assert!(refusal("charge_card").contains("TOOL=KIND"));
        assert!(refusal("charge=ok").contains("charge_card"));
        assert!(refusal("charge_card=explode").contains("crash_after"));
        for text in [
            "[[fault]]\ntool = \"get_order\"\nattempts = []",
            "[[fault]]\ntool = \"get_order\"\nattempts = [\"ok\"]\nrepeats = true",
            "fault = 3",
        ] {
            assert!(Script::default().add_toml(text).is_err(), "{text}");
        }
    }

    #[test]
    fn equal_faults_are_counted_apart() {
        let mut script = Script::default();
        for _ in 0..3 {
            script.add_flag("get_order=ok").expect("the flag is sound");
        }
        let keys: Vec<_> = script.faults.iter().map(|fault| &fault.key).collect();
        assert_eq!(keys, ["get_order ok", "get_order ok #2", "get_order ok #3"]);
    }
}
