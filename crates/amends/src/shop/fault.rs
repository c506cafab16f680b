//! A fault: which requests fail, and how each attempt in turn does.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::problem::Problem;
use super::tool::Tool;

/// How one request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing goes wrong.
    Ok,
    /// The effect happens and no answer ever comes.
    LoseResponse,
    /// Neither the effect nor an answer ever comes.
    LoseRequest,
    /// The effect happens at once and the answer comes late.
    Late,
    /// The effect happens late and no answer ever comes.
    LateEffect,
    /// The key belongs to a request that is still running.
    ConflictInFlight,
    /// The key belongs to a request that is done.
    ConflictDone,
    /// What the agent relied on has changed.
    Precondition,
    Forbidden,
    Unprocessable,
    RateLimited,
    Status500,
    Status503,
    /// The effect happens and the answer says it failed.
    ErrorAfterEffect,
    /// The effect happens and the result does not have the promised shape.
    Malformed,
    /// An error that is only a sentence.
    PlainError,
    /// The effect happens and the answer is a web page.
    Garbage,
    /// The process dies before the effect.
    CrashBefore,
    /// The process dies once the effect is durable.
    CrashAfter,
}

impl Kind {
    pub(crate) const ALL: [Kind; 19] = [
        Kind::Ok,
        Kind::LoseResponse,
        Kind::LoseRequest,
        Kind::Late,
        Kind::LateEffect,
        Kind::ConflictInFlight,
        Kind::ConflictDone,
        Kind::Precondition,
        Kind::Forbidden,
        Kind::Unprocessable,
        Kind::RateLimited,
        Kind::Status500,
        Kind::Status503,
        Kind::ErrorAfterEffect,
        Kind::Malformed,
        Kind::PlainError,
        Kind::Garbage,
        Kind::CrashBefore,
        Kind::CrashAfter,
    ];

    /// The kind that scripts call `name`.
    pub(crate) fn named(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Ok => "ok",
            Kind::LoseResponse => "lose_response",
            Kind::LoseRequest => "lose_request",
            Kind::Late => "late",
            Kind::LateEffect => "late_effect",
            Kind::ConflictInFlight => "conflict_in_flight",
            Kind::ConflictDone => "conflict_done",
            Kind::Precondition => "precondition",
            Kind::Forbidden => "forbidden",
            Kind::Unprocessable => "unprocessable",
            Kind::RateLimited => "rate_limited",
            Kind::Status500 => "status_500",
            Kind::Status503 => "status_503",
            Kind::ErrorAfterEffect => "error_after_effect",
            Kind::Malformed => "malformed",
            Kind::PlainError => "plain_error",
            Kind::Garbage => "garbage",
            Kind::CrashBefore => "crash_before",
            Kind::CrashAfter => "crash_after",
        }
    }
}

/// What one request is going to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// Seconds the agent is told to wait, where the failure says such a thing.
    pub(crate) retry_after: u64,
    /// How late is late, if the fault says so itself.
    pub(crate) late: Option<Duration>,
}

impl Plan {
    /// The plan of a request that no fault speaks of.
    pub(crate) const SMOOTH: Plan = Plan { kind: Kind::Ok, retry_after: 1, late: None };

    /// The problem this plan answers with, if it answers with one.
    pub(crate) fn problem(self) -> Option<Problem> {
        let problem = match self.kind {
            Kind::ConflictInFlight => {
                Problem::new(409, "idempotency_key_in_flight", "a request with this key is still running")
            }
            Kind::ConflictDone => {
                Problem::new(409, "idempotency_key_processed", "a request with this key has already been processed")
            }
            Kind::Precondition => {
                Problem::new(412, "evidence_stale", "what this request relies on has changed since it was read")
            }
            Kind::Forbidden => Problem::new(403, "forbidden", "the shop does not allow this request"),
            Kind::Unprocessable => Problem::new(422, "invalid_argument", "an argument has no meaning here"),
            Kind::RateLimited => Problem::new(429, "rate_limited", "too many requests").retry_after(self.retry_after),
            Kind::Status500 | Kind::ErrorAfterEffect => {
                Problem::new(500, "internal_error", "something went wrong in the shop")
            }
            Kind::Status503 => {
                Problem::new(503, "unavailable", "the shop is closed for a moment").retry_after(self.retry_after)
            }
            Kind::Ok
            | Kind::LoseResponse
            | Kind::LoseRequest
            | Kind::Late
            | Kind::LateEffect
            | Kind::Malformed
            | Kind::PlainError
            | Kind::Garbage
            | Kind::CrashBefore
            | Kind::CrashAfter => return None,
        };
        Some(problem)
    }
}

/// One entry of the script: the requests it speaks of and what each of them meets in turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    /// The name the book counts this fault's requests under; unique within a script.
    pub(crate) key: String,
    pub(crate) tool: Tool,
    /// Arguments that must be equal for a request to match.
    pub(crate) when: BTreeMap<String, Value>,
    /// What the first matching request meets, the second, and so on; never empty.
    pub(crate) attempts: Vec<Kind>,
    /// Whether the list starts over at its end.
    pub(crate) repeat: bool,
    pub(crate) retry_after: u64,
    pub(crate) late: Option<Duration>,
}

impl Fault {
    pub(crate) fn matches(&self, tool: Tool, arguments: &Map<String, Value>) -> bool {
        self.tool == tool
            && self.when.iter().all(|(field, wanted)| arguments.get(field).is_some_and(|given| same(wanted, given)))
    }

    /// What a matching request meets when `seen` others came before it.
    pub(crate) fn plan(&self, seen: usize) -> Plan {
        let turn = if self.repeat { seen % self.attempts.len() } else { seen };
        Plan {
            kind: self.attempts.get(turn).copied().unwrap_or(Kind::Ok),
            retry_after: self.retry_after,
            late: self.late,
        }
    }
}

/// Numbers are equal by value, so that `5` in a script matches `5.0` from an agent.
fn same(wanted: &Value, given: &Value) -> bool {
    match (wanted.as_f64(), given.as_f64()) {
        (Some(wanted), Some(given)) => wanted == given,
        _ => wanted == given,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault(attempts: &[Kind], repeat: bool) -> Fault {
        Fault {
            key: "k".to_owned(),
            tool: Tool::ChargeCard,
            when: BTreeMap::from([("amount".to_owned(), json!(5))]),
            attempts: attempts.to_vec(),
            repeat,
            retry_after: 1,
            late: None,
        }
    }

    #[test]
    fn after_the_list_nothing_goes_wrong_unless_it_repeats() {
        let kinds = |fault: &Fault| (0..4).map(|seen| fault.plan(seen).kind).collect::<Vec<_>>();
        let list = [Kind::LoseResponse, Kind::Status500];
        assert_eq!(kinds(&fault(&list, false)), [Kind::LoseResponse, Kind::Status500, Kind::Ok, Kind::Ok]);
        assert_eq!(
            kinds(&fault(&list, true)),
            [Kind::LoseResponse, Kind::Status500, Kind::LoseResponse, Kind::Status500]
        );
    }

    #[test]
    fn a_fault_matches_its_tool_and_equal_arguments_only() {
        let fault = fault(&[Kind::Ok], false);
        let arguments = |value: Value| value.as_object().expect("an object literal").clone();
        assert!(fault.matches(Tool::ChargeCard, &arguments(json!({"amount": 5.0, "x": 1}))));
        assert!(!fault.matches(Tool::ChargeCard, &arguments(json!({"amount": "5"}))));
        assert!(!fault.matches(Tool::ChargeCard, &arguments(json!({}))));
        assert!(!fault.matches(Tool::IssueRefund, &arguments(json!({"amount": 5}))));
    }

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.name()), Some(kind));
        }
        assert_eq!(Kind::named("explode"), None);
    }
}
