//! The page `docs/codes/decisions.md`: what the goldens show of signals, contracts, verdicts and outcomes.

use std::fmt::Write as _;

use amends_core::{Code, Playbook, Verdict};

use crate::goldens::{Classified, Heard, Story, classified, stories};

const HEAD: &str = "\
<!-- Generated from `fixtures` by `UPDATE=1 cargo nextest run -p amends --test registry`. -->
# Decisions

Two tables, both read from golden files, so that they show what the code does.

## What a signal means

What came of one attempt, for each kind of tool: what went wrong, what is known of the effect, the verdict, and what the default
playbook names for it. What is then done also depends on what came before: the second table shows it.

| signal | tool | code | certainty | verdict | by default |
|---|---|---|---|---|---|
";

const STORIES: &str = "
## How calls end

Each row is a story in [`fixtures/scenarios`](../../fixtures/scenarios): what the operator declared, what was seen of the attempts, how
each failure was judged and compensated, and how the call ended. A number is that of the attempt.

| story | contract | what was seen | verdict → compensation | outcome |
|---|---|---|---|---|
";

/// The whole page.
pub(crate) fn page() -> String {
    let mut out = HEAD.to_owned();
    for (_, golden) in classified() {
        signal(&mut out, &golden);
    }
    out.push_str(STORIES);
    for (name, story) in stories() {
        told(&mut out, &name, &story);
    }
    out
}

/// One row for each group of tools that the signal means the same for.
fn signal(out: &mut String, golden: &Classified) {
    let mut groups: Vec<(Heard, Vec<&str>)> = Vec::new();
    for effect in ["read", "idempotent", "keyed", "write"] {
        let heard = &golden.expect[effect];
        match groups.iter_mut().find(|(seen, _)| seen == heard) {
            Some((_, effects)) => effects.push(effect),
            None => groups.push((heard.clone(), vec![effect])),
        }
    }
    let playbook = Playbook::default();
    for (heard, effects) in &groups {
        let tool = if effects.len() == 4 { "any".to_owned() } else { effects.join(", ") };
        let word = match golden.rejects_before_effect.as_slice() {
            [] => String::new(),
            statuses => format!(", taken at its word for {statuses:?}"),
        };
        let verdict = heard.verdict.as_deref().and_then(|word| Verdict::ALL.into_iter().find(|v| v.as_str() == word));
        let by_default = verdict.map_or("", |verdict| by_default(&playbook, verdict, heard.code.as_deref()));
        let _ = writeln!(
            out,
            "| {} | {tool}{word} | {} | {} | {} | {} |",
            golden.story,
            heard.code.as_deref().unwrap_or(""),
            code(&heard.certainty),
            code(heard.verdict.as_deref().unwrap_or("")),
            code(by_default),
        );
    }
}

fn told(out: &mut String, name: &str, story: &Story) {
    let (mut seen, mut judged, mut ended) = (Vec::new(), Vec::new(), Vec::new());
    for line in story.lines().filter_map(|line| line.get(9..)) {
        let mut words = line.splitn(3, ' ');
        let (event, subject, rest) =
            (words.next().unwrap_or(""), words.next().unwrap_or(""), words.next().unwrap_or(""));
        let n = subject.split_once('/').map_or(subject, |(_, n)| n);
        match event {
            "attempt_ended" => seen.push(format!("{n}: {rest}")),
            "attempt_timed_out" => seen.push(format!("{n}: no answer, {rest}")),
            "attempt_orphaned" => seen.push(format!("{n}: crashed, {rest}")),
            "late_result" => seen.push(format!("{n}, late: {rest}")),
            "cancel_requested" if rest == "Asked" => seen.push("the agent stopped it".to_owned()),
            "cancel_requested" if rest == "TurnEnded" => seen.push("the agent's turn was stopped".to_owned()),
            "cancel_requested" if rest == "SessionEnded" => seen.push("the agent ended its session".to_owned()),
            "cancel_requested" => seen.push("the agent went away".to_owned()),
            "resumed" => seen.push("taken up after a crash".to_owned()),
            "call_received" if !rest.is_empty() => seen.push(rest.to_owned()),
            "evidence_compared" if rest.is_empty() => seen.push("the evidence is unchanged".to_owned()),
            "evidence_compared" => seen.push(format!("changed: {rest}")),
            "interaction_answered" => seen.push(format!("a person says {rest}")),
            "interaction_lapsed" => seen.push(format!("nobody says anything, which means {rest}")),
            "interaction_opened" => {
                let queue = rest.split([' ', ',']).nth(1).unwrap_or("");
                judged.push(format!("asks on the queue {}", code(queue)));
            }
            "doubt_resolved" => judged.push(match rest.split_once(" by ") {
                Some((known, _)) => format!("settled: {known}"),
                None => format!("settled by a person: {rest}"),
            }),
            "reversal_redeemed" => judged.push("undoes with a token".to_owned()),
            "reversal_armed" => ended.push("can be undone".to_owned()),
            "reversal_refused" => ended.push(format!("not undone: {rest}")),
            "failure_judged" => judged.push(format!("{n}: {}", rest.replace("->", "→"))),
            "doubt_settled" => judged.push(format!("settled: {}", rest.split(' ').next().unwrap_or(""))),
            "move_received" => seen.push(format!("{} is wished for", code(rest))),
            "move_made" => ended.push(format!("{} is made", code(rest.split(' ').next().unwrap_or("")))),
            "move_refused" => ended.push(format!("refused: {}", code(rest))),
            "move_ended" if !rest.starts_with("succeeded") => ended.push(format!("the move: {rest}")),
            "call_refused" => ended.push(format!("refused: {}", code(rest))),
            "interim_answered" => ended.push("an interim answer".to_owned()),
            "call_ended" => ended.push(rest.to_owned()),
            _ => {}
        }
    }
    let _ = writeln!(
        out,
        "| [{}](../../fixtures/scenarios/{name}.toml) | {} | {} | {} | {} |",
        story.story,
        contract(story),
        seen.join("<br>"),
        judged.join("<br>"),
        ended.join("<br>"),
    );
}

/// What the operator declared, in a few words.
fn contract(story: &Story) -> String {
    if story.machine.is_some() {
        return "a machine".to_owned();
    }
    let tool = story.tool.as_ref();
    let has = |name: &str| tool.and_then(|tool| tool.get(name));
    let mut words = vec![has("effect").and_then(toml::Value::as_str).unwrap_or("write").to_owned()];
    if has("declared").and_then(toml::Value::as_bool) == Some(false) {
        words[0] = "undeclared".to_owned();
    }
    if let Some(status) = has("status") {
        let by_key = status.get("by_key").and_then(toml::Value::as_bool) == Some(true);
        words.push(if by_key { "status by key" } else { "status" }.to_owned());
    }
    if has("reverse").is_some() {
        words.push("reversible".to_owned());
    }
    if has("object").and_then(toml::Value::as_bool) == Some(true) {
        words.push("names its object".to_owned());
    }
    for evidence in has("evidence").and_then(toml::Value::as_array).into_iter().flatten() {
        words.extend(evidence.get("tool").map(|tool| format!("evidence: {}", tool.as_str().unwrap_or(""))));
    }
    words.extend(has("queue").and_then(toml::Value::as_str).map(|queue| format!("queue {}", code(queue))));
    words.extend(has("settles_within_ms").map(|ms| format!("settles within {ms} ms")));
    words.extend(has("rejects_before_effect").map(|statuses| format!("taken at its word for {statuses}")));
    for (verdict, rule) in story.playbook.iter().flatten() {
        let compensation = rule.get("compensation").and_then(toml::Value::as_str).unwrap_or("");
        words.push(format!("playbook: {} → {}", code(verdict), code(compensation)));
    }
    words.join(", ")
}

fn code(word: &str) -> String {
    if word.is_empty() { String::new() } else { format!("`{word}`") }
}

/// What the default playbook does about that verdict of that code.
fn by_default<'a>(playbook: &'a Playbook, verdict: Verdict, code: Option<&str>) -> &'a str {
    let code = code.and_then(Code::parse).unwrap_or(Code::ActionError);
    playbook.rule(verdict, code).compensation.as_str()
}
