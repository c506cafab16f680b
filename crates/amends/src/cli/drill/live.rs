//! The live part of a drill: a real gateway before the demo shop, one call for each tool and scripted fault.

mod gateway;

use std::time::{Duration, Instant};

use amends_sim::drill::Fault;
use anyhow::{Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::shop::fault::Kind;
use gateway::{Answer, Gateway};

/// How long an effect that comes late may take on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(30);

/// The tools that are called. `slow_report` waits for minutes by its contract, so it is left to the simulation.
const TOOLS: [&str; 6] = ["cancel_refund", "charge_card", "get_order", "get_refund", "issue_refund", "send_email"];

/// One call that was really made.
#[derive(Clone, Debug)]
pub(super) struct LiveRow {
    pub(super) tool: &'static str,
    pub(super) kind: &'static str,
    /// How often it reached the shop.
    pub(super) sends: usize,
    /// How often it took effect, by the shop's book.
    pub(super) effects: usize,
    /// How it ended, as the envelope says.
    pub(super) outcome: String,
    /// What the envelope says of the effect.
    pub(super) told: String,
    pub(super) wait_ms: u64,
    /// The promise that was broken, and how.
    pub(super) broken: Option<String>,
}

/// One call to be made, which the shop's script and book know by its mark.
struct Case {
    tool: &'static str,
    kind: Kind,
    /// The argument that carries the mark.
    field: &'static str,
    mark: String,
    arguments: Value,
}

/// Makes every call and compares what was told with the shop's book.
pub(super) fn live(only: &[String]) -> Result<Vec<LiveRow>> {
    let wanted: Vec<&'static str> =
        TOOLS.into_iter().filter(|tool| only.is_empty() || only.iter().any(|name| name == tool)).collect();
    let crashes = |case: &Case| matches!(case.kind, Kind::CrashBefore | Kind::CrashAfter);
    let (crashing, others): (Vec<Case>, Vec<Case>) = wanted.iter().flat_map(|tool| cases(tool)).partition(crashes);
    // A crash of the shop meets whatever else is on its way, so each tool crashes a shop of its own.
    let of_tool = |tool: &&'static str| crashing.iter().filter(|case| case.tool == *tool).collect::<Vec<_>>();
    let mut groups: Vec<(Vec<&Case>, bool)> = wanted.iter().map(|tool| (of_tool(tool), false)).collect();
    groups.push((others.iter().collect(), true));
    let held: Vec<Result<Vec<LiveRow>>> = std::thread::scope(|scope| {
        let begun: Vec<_> = groups.iter().map(|(cases, at_once)| scope.spawn(|| hold(cases, *at_once))).collect();
        begun.into_iter().map(|group| group.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked")))).collect()
    });
    let mut rows = Vec::new();
    for group in held {
        rows.extend(group?);
    }
    rows.sort_by_key(|row| (row.tool, Fault::named(row.kind), row.kind));
    Ok(rows)
}

/// Makes these calls through a gateway of their own, all at once or one after the other.
fn hold(cases: &[&Case], at_once: bool) -> Result<Vec<LiveRow>> {
    let gateway = Gateway::start(&script(cases))?;
    if cases.iter().any(|case| case.tool == "cancel_refund") {
        prepare(&gateway)?;
    }
    let make = |case: &Case| gateway.call(case.tool, &case.arguments);
    let answers: Vec<Result<Answer>> = match at_once {
        false => cases.iter().map(|case| make(case)).collect(),
        true => std::thread::scope(|scope| {
            let begun: Vec<_> = cases.iter().map(|case| scope.spawn(|| make(case))).collect();
            begun.into_iter().map(|call| call.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked")))).collect()
        }),
    };
    let late = |case: &Case| case.kind == Kind::LateEffect && !reads(case.tool);
    let began = Instant::now();
    let mut book = gateway.book()?;
    while began.elapsed() < PATIENCE && cases.iter().any(|case| late(case) && count(&book, "effects", case) == 0) {
        std::thread::sleep(Duration::from_millis(50));
        book = gateway.book()?;
    }
    cases.iter().zip(answers).map(|(case, answer)| Ok(row(case, &answer?, &book))).collect()
}

/// One call for each fault that the shop can be told to meet it with.
fn cases(tool: &'static str) -> Vec<Case> {
    let keyed = tool == "issue_refund";
    let numbered = Kind::ALL.into_iter().enumerate();
    numbered.filter(|(_, kind)| keyed || !conflicts(*kind)).map(|(n, kind)| case(tool, n, kind)).collect()
}

/// Whether it speaks of an earlier request with the same key.
const fn conflicts(kind: Kind) -> bool {
    matches!(kind, Kind::ConflictInFlight | Kind::ConflictDone)
}

fn case(tool: &'static str, n: usize, kind: Kind) -> Case {
    let order = format!("ord_drill_{}", kind.name());
    let (field, mark, arguments) = match tool {
        "cancel_refund" => {
            let id = refund(n);
            ("id", id.clone(), json!({ "id": id }))
        }
        "send_email" => {
            let to = format!("{order}@example.com");
            ("to", to.clone(), json!({ "to": to, "subject": "drill" }))
        }
        "get_order" | "get_refund" => ("order", order.clone(), json!({ "order": order })),
        _ => ("order", order.clone(), json!({ "order": order, "amount": 5 })),
    };
    Case { tool, kind, field, mark, arguments }
}

/// The id of the refund that the shop issues as that one, from 0.
fn refund(n: usize) -> String {
    format!("re_{:06}", n + 1)
}

/// Issues the refunds that will be cancelled, so that each has the id that the script knows.
fn prepare(gateway: &Gateway) -> Result<()> {
    for n in 0..Kind::ALL.len() {
        let answer =
            gateway.call("issue_refund", &json!({ "order": format!("ord_drill_prepared_{n}"), "amount": 5 }))?;
        let id = &answer.envelope["data"]["id"];
        ensure!(
            *id == refund(n).as_str(),
            "the shop did not issue the refund that will be cancelled: {}",
            answer.envelope
        );
    }
    Ok(())
}

/// The shop's script: each case meets its fault once.
fn script(cases: &[&Case]) -> String {
    let fault = |case: &&Case| {
        let (tool, field, mark) = (case.tool, case.field, &case.mark);
        // There must have been an earlier request for a conflict to be about.
        let kind = if conflicts(case.kind) {
            format!("lose_response\", \"{}", case.kind.name())
        } else {
            case.kind.name().into()
        };
        format!(
            "[[fault]]\ntool = \"{tool}\"\nwhen = {{ {field} = \"{mark}\" }}\nattempts = [\"{kind}\"]\nlate_ms = 2500\n"
        )
    };
    cases.iter().map(fault).collect()
}

fn reads(tool: &str) -> bool {
    tool.starts_with("get_")
}

/// How many rows of the book are this case's.
fn count(book: &Value, of: &str, case: &Case) -> usize {
    let mark = format!("\"{}\"", case.mark);
    let rows = book[of].as_array().map(Vec::as_slice).unwrap_or_default();
    rows.iter().filter(|row| row["tool"] == case.tool && row.to_string().contains(&mark)).count()
}

fn row(case: &Case, answer: &Answer, book: &Value) -> LiveRow {
    let (sends, effects) = (count(book, "requests", case), count(book, "effects", case));
    let envelope = &answer.envelope;
    let error = &envelope["error"];
    let done = error.is_null();
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let told = if done { "processed".to_owned() } else { word(&error["certainty"]).unwrap_or_default() };
    let outcome = word(&envelope["outcome"]).or_else(|| word(&error["kind"])).or_else(|| word(&envelope["status"]));
    let broken = judge(case, effects, &told, error["safe_to_repeat"] == true);
    LiveRow {
        tool: case.tool,
        kind: case.kind.name(),
        sends,
        effects,
        outcome: outcome.unwrap_or_default(),
        told,
        wait_ms: answer.wait_ms,
        broken,
    }
}

/// Holds the promises against the shop's book.
fn judge(case: &Case, effects: usize, told: &str, safe: bool) -> Option<String> {
    if reads(case.tool) {
        return None;
    }
    // Cancelling a refund again changes nothing more, and is not written again.
    if effects > 1 {
        return Some(format!("at_most_once: {effects} effects"));
    }
    match told {
        "processed" if effects == 0 => Some("told_truthfully: it is said to be done".into()),
        "not_sent" | "not_processed" if effects > 0 => Some("told_truthfully: it is said not to be done".into()),
        "processed" if safe => Some("safe_to_repeat: it was done".into()),
        "in_doubt" if safe && matches!(case.tool, "charge_card" | "send_email") => {
            Some("safe_to_repeat: it may have been done".into())
        }
        "processed" | "not_sent" | "not_processed" | "in_doubt" => None,
        other => Some(format!("told_truthfully: `{other}` is no certainty")),
    }
}
