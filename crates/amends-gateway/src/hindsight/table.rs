//! What a change would have done, for people and for programs.

use std::fmt::Write;

use serde_json::{Value, json as value};

use super::tally::{Named, Tally, WhatIf};
use crate::told::utc;

/// For people.
pub fn text(found: &WhatIf) -> String {
    let all = &found.all;
    let mut text = format!(
        "{} over {} sessions since {} UTC: {} calls compared\n",
        found.file,
        found.sessions,
        utc(found.since),
        all.calls
    );
    let _ = writeln!(
        text,
        "{:<24} {:<21} {:>6} {:>6} {:>9} {:>6} {:>5} {:>9} {:>7} {:>12}",
        "TOOL", "VERDICT", "CALLS", "SAME", "OTHERWISE", "BEYOND", "OPEN", "SENDS", "ASKED", "WAITS"
    );
    for ((tool, verdict), tally) in &found.by {
        text.push_str(&line(tool, verdict, tally));
    }
    text.push_str(&line("all", "", all));
    named(
        &mut text,
        "how they end otherwise",
        found.otherwise.iter().map(|((from, to), n)| (format!("{from} -> {to}"), n)),
    );
    named(&mut text, "beyond what was recorded", found.beyond.iter().map(|(why, n)| (why.clone(), n)));
    if !found.not_decidable.is_empty() {
        text.push_str("\nnot decidable again\n");
        for (why, calls) in &found.not_decidable {
            let _ = writeln!(text, "  {calls:>6}  {why}");
        }
    }
    for tool in &found.not_called {
        let _ = writeln!(text, "\nnobody called `{tool}` in this time, so nothing is known of its rules");
    }
    for (version, calls) in &found.released {
        let _ = writeln!(
            text,
            "\n{calls} calls had rules of release {version}. Released in its place, these rules drop what they do not repeat of it, \
             and that is not counted here: name the configuration with --config, and it is"
        );
    }
    text.trim_end().to_owned()
}

fn line(tool: &str, verdict: &str, tally: &Tally) -> String {
    let change = |fewer: u64, more: u64| match (fewer, more) {
        (0, 0) => "0".to_owned(),
        (fewer, 0) => format!("-{fewer}"),
        (0, more) => format!("+{more}"),
        (fewer, more) => format!("-{fewer} +{more}"),
    };
    let waits = change(tally.waits_less_ms, tally.waits_more_ms);
    format!(
        "{tool:<24} {verdict:<21} {:>6} {:>6} {:>9} {:>6} {:>5} {:>9} {:>7} {:>12}\n",
        tally.calls,
        tally.same,
        tally.otherwise,
        tally.beyond,
        tally.open,
        change(tally.sends_fewer, tally.sends_more),
        change(tally.asked_fewer, tally.asked_more),
        if waits == "0" { waits } else { format!("{waits} ms") },
    )
}

fn named<'a>(text: &mut String, title: &str, rows: impl Iterator<Item = (String, &'a Named)>) {
    for (n, (what, named)) in rows.enumerate() {
        if n == 0 {
            let _ = writeln!(text, "\n{title}");
        }
        let examples: Vec<&str> = named.examples.iter().map(|call| call.as_str()).collect();
        let such = if examples.is_empty() { String::new() } else { format!("   such as {}", examples.join(", ")) };
        let _ = writeln!(text, "  {:>6}  {what}{such}", named.calls);
    }
}

/// For programs.
pub fn json(found: &WhatIf) -> Value {
    let by: Vec<Value> = found
        .by
        .iter()
        .map(|((tool, verdict), tally)| {
            let mut row = numbers(tally);
            row["tool"] = value!(tool);
            row["verdict"] = value!((*verdict != "-").then_some(verdict));
            row
        })
        .collect();
    let ends = found.otherwise.iter().map(
        |((from, to), named)| value!({ "from": from, "to": to, "calls": named.calls, "examples": named.examples }),
    );
    let beyond = found
        .beyond
        .iter()
        .map(|(why, named)| value!({ "why": why, "calls": named.calls, "examples": named.examples }));
    let not = found.not_decidable.iter().map(|(why, calls)| value!({ "why": why, "calls": calls }));
    value!({
        "playbook": found.file, "since": found.since, "sessions": found.sessions, "all": numbers(&found.all), "by": by,
        "ends_otherwise": ends.collect::<Vec<_>>(), "beyond": beyond.collect::<Vec<_>>(),
        "not_decidable": not.collect::<Vec<_>>(), "not_called": found.not_called,
        "had_release": found.released.iter().map(|(version, calls)| value!({ "version": version, "calls": calls })).collect::<Vec<_>>(),
    })
}

fn numbers(tally: &Tally) -> Value {
    value!({
        "calls": tally.calls, "same": tally.same, "otherwise": tally.otherwise, "beyond": tally.beyond,
        "open": tally.open, "sends_fewer": tally.sends_fewer, "sends_more": tally.sends_more,
        "asked_fewer": tally.asked_fewer, "asked_more": tally.asked_more, "waits_less_ms": tally.waits_less_ms,
        "waits_more_ms": tally.waits_more_ms,
    })
}
