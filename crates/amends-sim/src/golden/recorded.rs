//! A golden from a recorded call: with its shape and without its content.
//!
//! Ids and digests get stable names, times count from the call's arrival, and whatever an agent, an upstream or a person
//! wrote is left out. What stays is what was decided on: codes, certainties, sizes, waits, and the rules.

use std::collections::BTreeMap;

use amends_core::attempt::{Payload, Shape};
use amends_core::dispatcher::cancel::CancelReason;
use amends_core::dispatcher::redecide::{CallEnd, begins_a_step, paths};
use amends_core::gates::{OpenBreaker, UNSEEN_RUN};
use amends_core::{
    Ask, AttemptId, CallId, Digest, Event, Fact, Failure, Gates, Inquiry, InteractionId, Refusal, Report, Rules,
    Timestamp,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::story::BEGIN;
use super::{Golden, GoldenError};

const CALL: &str = "c1";
const ANOTHER: &str = "c0";

/// The golden of a recorded call, its end written down. It is told under its own rules, and must end as it did.
pub fn of_call(events: &[Event], call: &CallId, rules: &Rules, story: &str) -> Result<String, GoldenError> {
    let senseless = |what: String| GoldenError::Senseless { what };
    let path = paths(events).remove(call).ok_or_else(|| senseless(format!("there is no `{call}` in this trace")))?;
    let end = path.end.ok_or_else(|| senseless(format!("`{call}` is still open; its end is not known yet")))?;
    let mut maker =
        Maker { call, at: path.at, last: path.at, names: BTreeMap::new(), runs: BTreeMap::new(), inputs: Vec::new() };
    maker.read(events);
    let words = |value: Value| toml::Value::try_from(value).map_err(|error| senseless(error.to_string()));
    let mut table = toml::Table::new();
    table.insert("story".into(), story.into());
    table.insert("inputs".into(), words(Value::Array(maker.inputs))?);
    let rules = serde_json::to_value(rules).map_err(|error| senseless(error.to_string()))?;
    table.insert("rules".into(), words(rules)?);
    let text = toml::to_string(&table).map_err(|error| senseless(error.to_string()))?;
    let golden = Golden::read(&text)?;
    let told = golden.tell(&golden.rules()?)?;
    let ended = match end {
        CallEnd::Refused(kind) => format!("call_refused {CALL} {}", kind.as_str()),
        CallEnd::Ended(outcome, certainty) => format!("call_ended {CALL} {}, {}", outcome.as_str(), certainty.as_str()),
    };
    if !told.contains(&ended) {
        let what = format!("told again without its content it does not end as it did ({})", end.words());
        return Err(senseless(what));
    }
    Ok(golden.with_end(&told))
}

struct Maker<'a> {
    call: &'a CallId,
    at: Timestamp,
    last: Timestamp,
    names: BTreeMap<Digest, String>,
    runs: BTreeMap<u64, u64>,
    inputs: Vec<Value>,
}

impl Maker<'_> {
    fn read(&mut self, events: &[Event]) {
        let mut asked: BTreeMap<InteractionId, String> = BTreeMap::new();
        let mut known = false;
        for (n, event) in events.iter().enumerate().filter(|(_, event)| begins_a_step(&event.fact)) {
            let step = events[n..].iter().enumerate();
            let step = step.take_while(|(n, event)| *n == 0 || !begins_a_step(&event.fact)).map(|(_, event)| event);
            let ours = step.clone().any(|event| event.fact.call() == Some(self.call));
            for event in step {
                if let Fact::InteractionOpened { interaction } = &event.fact
                    && interaction.call == *self.call
                    && let Some((_, n)) = interaction.id.as_str().rsplit_once('_')
                {
                    asked.insert(interaction.id.clone(), format!("int_{CALL}_{n}"));
                }
            }
            let input = match &event.fact {
                Fact::CallReceived { received, gates } if received.call == *self.call => {
                    known = true;
                    let mut kept = Map::new();
                    let whole = serde_json::to_value(received).unwrap_or_default();
                    self.received(&whole, &mut kept);
                    json!({ "at": 0, "received": kept, "gates": self.gates(gates) })
                }
                Fact::AttemptEnded { attempt, report, gates } if ours => {
                    let report = self.report(report);
                    json!({ "result": number(attempt), "report": report, "gates": self.gates(gates) })
                }
                Fact::LateResult { attempt, report } if ours => {
                    json!({ "result": number(attempt), "report": self.report(report) })
                }
                Fact::InteractionAnswered { interaction, answer, gates } => match asked.get(interaction) {
                    Some(id) => json!({ "answer": id, "choice": answer.choice, "gates": self.gates(gates) }),
                    None => continue,
                },
                Fact::InquiryMade { attempt, inquiry, gates } if ours => {
                    let kinds: Vec<&str> = inquiry.asks.iter().map(|ask| ask.kind.as_str()).collect();
                    let says = format!("asks {} by {}", kinds.join(" "), inquiry.way.as_str());
                    json!({ "asks": number(attempt), "says": says, "gates": self.gates(gates) })
                }
                Fact::InputsGiven { inquiry, gates, .. } if ours => {
                    json!({ "gives": CALL, "inquiry": inquiry, "gates": self.gates(gates) })
                }
                Fact::InquiryWithdrawn { inquiry, .. } if ours => json!({ "withdraws": CALL, "inquiry": inquiry }),
                Fact::CancelRequested { reason: CancelReason::Asked, .. } if ours => json!({ "cancel": CALL }),
                Fact::CancelRequested { reason: CancelReason::TurnEnded, .. } if ours => json!({ "end_turn": CALL }),
                Fact::CancelRequested { reason: CancelReason::SessionEnded, .. } if ours => {
                    json!({ "end_session": CALL })
                }
                Fact::CancelRequested { reason: CancelReason::Disconnected, .. } if ours => {
                    json!({ "disconnect": CALL })
                }
                Fact::AnswerDelivered { .. } if ours => json!({ "delivery": CALL }),
                // A tick comes when it is due: the waits are as long, and their jitter is not.
                Fact::Ticked { gates } if ours => json!({ "tick": true, "gates": self.gates(gates) }),
                Fact::Resumed { gates, .. } if ours && known => json!({ "resume": true, "gates": self.gates(gates) }),
                _ => continue,
            };
            let ticks = matches!(event.fact, Fact::Ticked { .. });
            self.put(input, event.at, !ticks);
        }
    }

    fn put(&mut self, mut input: Value, at: Timestamp, timed: bool) {
        if timed && input.get("at").is_none() {
            input["after"] = json!(at.since_ms(self.last));
        }
        self.last = at;
        self.inputs.push(input);
    }

    /// What is known to be no content, by name; a field that is added later stays out until somebody thinks about it.
    fn received(&mut self, whole: &Value, kept: &mut Map<String, Value>) {
        let mut keep = |name: &str, value: Value| drop(kept.insert(name.to_owned(), value));
        keep("call", json!(CALL));
        keep("tool", whole["tool"].clone());
        keep("upstream", whole["upstream"].clone());
        keep("rules", json!("rules"));
        keep("principal", json!("local"));
        keep("deadline", self.time(&whole["deadline"]));
        keep("effect_key", json!(format!("key-of-{CALL}")));
        keep(
            "arguments",
            json!({ "digest": self.name(&whole["arguments"]["digest"]), "size": whole["arguments"]["size"] }),
        );
        if whole.get("key").is_some() {
            keep("key", json!("key"));
        }
        let claims = whole["claims"].as_array().into_iter().flatten();
        let claims: Vec<Value> = claims
            .map(|claim| {
                json!({
                    "name": self.name(&claim["name"]), "fingerprint": self.name(&claim["fingerprint"]), "kind": claim["kind"],
                })
            })
            .collect();
        keep("claims", json!(claims));
        if let Some(held) = whole.get("repeat_of") {
            let held = json!({
                "name": self.name(&held["name"]), "session": "another", "call": ANOTHER, "state": held["state"],
                "fingerprint": self.name(&held["fingerprint"]), "effect_key": format!("key-of-{ANOTHER}"),
                "since": self.time(&held["since"]),
            });
            keep("repeat_of", held);
        }
        let evidence = whole["evidence"].as_array().into_iter().flatten();
        let evidence: Vec<Value> = evidence
            .map(|one| {
                let mut kept =
                    json!({ "tool": one["tool"], "reference": self.name(&one["reference"]), "from": one["from"] });
                if one.get("hash").is_some() {
                    kept["hash"] = self.name(&one["hash"]);
                }
                kept
            })
            .collect();
        keep("evidence", json!(evidence));
        if whole.get("reversal").is_some() {
            keep("reversal", self.name(&whole["reversal"]));
        }
        if let Some(redeems) = whole.get("redeems") {
            let token = self.name(&redeems["token"]);
            keep("redeems", json!({ "token": token, "session": "another", "call": ANOTHER }));
        }
    }

    fn report(&mut self, report: &Report) -> Value {
        let mute = |failure: &Failure| Failure { upstream: None, ..failure.clone() };
        let payload = report.payload.as_ref();
        let payload = payload.map(|payload| Payload { digest: self.digest(&payload.digest), size: payload.size });
        let shape = report.shape.as_ref().map(|shape| {
            let errors = shape.errors.iter().zip(1..).map(|(error, n)| amends_core::attempt::ItemFailure {
                item: format!("item-{n}"),
                failure: mute(&error.failure),
            });
            Box::new(Shape {
                errors: errors.collect(),
                provenance: Vec::new(),
                unread: Vec::new(),
                ..(**shape).clone()
            })
        });
        written(&Report {
            certainty: report.certainty,
            answered: report.answered,
            failure: report.failure.as_ref().map(mute),
            payload,
            happened: report.happened,
            fits: report.fits,
            recorded: report.recorded,
            granted: report.granted.clone(),
            shape,
            inquiry: report.inquiry.clone().map(|inquiry| self.inquiry(&inquiry)),
            suppressed: Vec::new(),
            undo: report.undo.clone(),
        })
    }

    fn inquiry(&mut self, inquiry: &Inquiry) -> Box<Inquiry> {
        let asks = inquiry.asks.iter().map(|ask| Ask {
            payload: Payload { digest: self.digest(&ask.payload.digest), size: ask.payload.size },
            kind: ask.kind,
        });
        Box::new(Inquiry { asks: asks.collect(), ..Inquiry::clone(inquiry) })
    }

    fn gates(&mut self, gates: &Gates) -> Value {
        let refusal = gates.refusal.as_ref().map(|refusal| {
            let message = refusal.kind.as_str().replace('_', " ");
            Box::new(Refusal {
                code: refusal.code,
                retry_after_ms: refusal.retry_after_ms,
                ..Refusal::of(refusal.kind, message)
            })
        });
        let breakers = gates.breakers.iter();
        let breakers = breakers.map(|open| OpenBreaker { until: self.shifted(open.until), ..open.clone() }).collect();
        let runs = gates.runs.iter().map(|(upstream, run)| (upstream.clone(), self.run(*run))).collect();
        written(&Gates { refusal, runs, breakers, ..gates.clone() })
    }

    /// The runs of upstreams, counted from 1. A run that cannot be seen stays one.
    fn run(&mut self, run: u64) -> u64 {
        let next = self.runs.len() as u64 + 1;
        if run == UNSEEN_RUN { run } else { *self.runs.entry(run).or_insert(next) }
    }

    /// A time as the story counts it.
    fn shifted(&self, time: Timestamp) -> Timestamp {
        (BEGIN + time.since_ms(self.at)) - self.at.since_ms(time)
    }

    fn time(&self, ms: &Value) -> Value {
        json!(self.shifted(Timestamp::from_ms(ms.as_u64().unwrap_or_default())))
    }

    /// The same name for the same digest, and no way back to it.
    fn name(&mut self, digest: &Value) -> Value {
        json!(self.digest(&Digest::from(digest.as_str().unwrap_or_default())))
    }

    fn digest(&mut self, digest: &Digest) -> Digest {
        let next = format!("digest-{}", self.names.len() + 1);
        Digest::new(self.names.entry(digest.clone()).or_insert(next).as_str())
    }
}

fn number(attempt: &AttemptId) -> String {
    format!("{CALL}/{}", attempt.n)
}

fn written(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
