//! Machines to walk through: every kind of action, over tools of every kind.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use amends_core::Digest;
use amends_core::id::MachineName;
use amends_core::machine::MachineSpec;
use serde_json::{Value, json};

/// A machine, with every other that it uses.
#[derive(Debug)]
pub struct Declared {
    /// Its name.
    pub name: MachineName,
    /// What was written.
    pub definition: BTreeMap<MachineName, MachineSpec>,
    /// The digest of that.
    pub hash: Digest,
}

/// Every machine that a walk of the world may begin in.
pub fn machines() -> &'static [Declared] {
    static MACHINES: OnceLock<Vec<Declared>> = OnceLock::new();
    MACHINES.get_or_init(|| {
        vec![declared("order", &[order()]), declared("staged", &[staged()]), declared("outer", &[outer(), inner()])]
    })
}

fn declared(name: &str, specs: &[(&str, Value)]) -> Declared {
    let read = |spec: &Value| serde_json::from_value(spec.clone()).expect("it is a machine");
    let definition = specs.iter().map(|(name, spec)| (MachineName::new(*name), read(spec))).collect();
    Declared { name: name.into(), definition, hash: Digest::new(format!("machine-{name}")) }
}

/// Plain actions, each with another kind of tool.
fn order() -> (&'static str, Value) {
    let spec = json!({
        "initial": "new", "terminal": ["done", "dropped"], "limits": { "steps": 14, "loops": 4 },
        "actions": {
            "take": { "from": ["new"], "to": "ordered" },
            "pay": { "from": ["ordered"], "to": "paid", "tool": "mail", "timeout": "12s" },
            "charge": { "from": ["ordered"], "to": "paid", "tool": "charge_durable" },
            "top_up": { "from": ["paid"], "to": "paid", "tool": "charge_process" },
            "look": { "from": ["paid"], "to": "paid", "tool": "look", "timeout": "2s" },
            "note": { "from": ["paid"], "to": "paid" },
            "ship": {
                "from": ["paid"], "tool": "order_by_key",
                "to": [{ "when": "result.ok", "state": "done" }, { "state": "paid" }],
            },
            "drop": { "from": ["new", "ordered", "paid"], "to": "dropped" },
        },
    });
    ("order", spec)
}

/// Actions with a life of their own, several calls at once, and people who must agree.
fn staged() -> (&'static str, Value) {
    let spec = json!({
        "initial": "raw", "terminal": ["done"], "limits": { "loops": 5 },
        "actions": {
            "fetch": {
                "from": ["raw"], "to": "fetched", "setup": [{ "tool": "look" }], "gate": "'proceed'",
                "tool": "pay_read", "assert": "'ok'", "exit": [{ "tool": "look_twice" }],
                "retry": { "max_attempts": 3, "initial": "300ms" }, "resolution": "skip",
            },
            "fan": {
                "from": ["fetched"], "to": "fanned", "timeout": "9s", "retry": { "max_attempts": 3, "initial": "200ms" },
                "parallel": { "a": { "tool": "mail_surface" }, "b": { "tool": "order_trusted" }, "c": { "tool": "look" } },
                "exit": [{ "tool": "label" }, { "tool": "charge_durable" }],
            },
            "mark": {
                "from": ["fetched"], "to": "fetched", "tool": "label", "resolution": "retry_later", "later": "4s",
            },
            "bless": { "from": ["fanned"], "to": "blessed", "tool": "mail", "queue": "ops" },
            "nod": { "from": ["fanned"], "to": "fanned", "queue": "ops", "times": 2 },
            "risk": {
                "from": ["blessed"], "to": "done", "tool": "charge_undone", "assert": "'ok'",
                "retry": { "max_attempts": 2, "initial": "200ms" }, "resolution": "abort_workflow",
            },
        },
    });
    ("staged", spec)
}

/// A machine that runs another, and then lets the agent call tools itself.
fn outer() -> (&'static str, Value) {
    let spec = json!({
        "initial": "start", "terminal": ["done"], "limits": { "loops": 4 },
        "actions": {
            "run": { "from": ["start"], "to": "ran", "machine": "inner" },
            "free": { "from": ["ran"], "to": "done", "allowed": ["mail_bare", "look", "pay_unsettled"], "turns": 4 },
            "back": { "from": ["ran"], "to": "start" },
        },
    });
    ("outer", spec)
}

fn inner() -> (&'static str, Value) {
    let spec = json!({
        "initial": "a", "terminal": ["end"], "limits": { "loops": 4 },
        "actions": {
            "write": { "from": ["a"], "to": "b", "tool": "order_unsettled" },
            "set": { "from": ["b"], "to": "b", "tool": "stock_set" },
            "finish": { "from": ["a", "b"], "to": "end", "tool": "charge_short" },
        },
    });
    ("inner", spec)
}

#[cfg(test)]
mod tests {
    use amends_core::machine::Machines;

    use super::*;
    use crate::catalog::tools;

    #[test]
    fn every_machine_can_be_read_and_names_tools_that_there_are() {
        for declared in machines() {
            let machines = Machines::read(&declared.definition).unwrap();
            assert!(machines.get(&declared.name).is_some());
            for machine in machines.declared() {
                let named = machine.actions().flat_map(|(_, action)| action.tools());
                for name in named {
                    let tool = tools(None).iter().find(|tool| tool.name == *name);
                    assert!(tool.is_some_and(|tool| !tool.by_baseline()), "{name}");
                }
            }
        }
    }
}
