//! What a drill found, as a table and as JSON.

use amends_core::interaction::Subject as About;
use amends_sim::drill::{Assume, Drilled, Fault, Manner, Person, Row, Scene, Story};
use serde_json::{Value, json};

use super::live::LiveRow;

const COLUMNS: [&str; 8] = ["fault", "sends", "effects", "outcome", "told", "asked", "wait", "live"];

/// The table, grouped by tool, and the story of the first run that broke a promise.
pub(super) fn text(drilled: &[Drilled], live: &[LiveRow], assume: Option<Assume>, pairs: bool) -> String {
    let mut out = String::new();
    for tool in drilled {
        let contract = tool.subject.contract();
        let undeclared = if contract.declared { "" } else { "whatever is not declared: " };
        out.push_str(&format!(
            "{} ({undeclared}{}, at `{}`)\n",
            tool.subject.tool,
            contract.effect.as_str(),
            tool.subject.upstream
        ));
        let listed = tool.singles.iter().chain(&tool.scenes).chain(tool.pairs.iter().filter(|_| pairs));
        let of_tool: Vec<&LiveRow> = live.iter().filter(|row| row.tool == tool.subject.tool.as_str()).collect();
        let mut lines = vec![COLUMNS.map(str::to_owned)];
        lines.extend(listed.map(|row| cells(row, &of_tool)));
        lines.extend(of_tool.iter().filter(|row| Fault::named(row.kind).is_none()).map(|row| only_live(row)));
        if live.is_empty() {
            lines[0][7].clear();
        }
        out.push_str(&aligned(&lines));
        out.push_str(&summary(tool));
        out.push('\n');
    }
    let runs: u32 = drilled.iter().flat_map(Drilled::rows).map(|row| row.runs).sum();
    let broken: Vec<(&Drilled, &Row, &Story)> = all_broken(drilled).collect();
    let assumed = assume.map(|assume| format!(", assuming {}", assume.name())).unwrap_or_default();
    let live_broken = live.iter().filter(|row| row.broken.is_some()).count();
    if !live.is_empty() {
        out.push_str(&format!("live: {} calls, a promise broken in {live_broken}\n", live.len()));
    }
    match broken.first() {
        None => out.push_str(&format!(
            "every promise holds in the simulation: {} tools, {runs} runs{assumed}\n",
            drilled.len()
        )),
        Some((tool, row, story)) => {
            let count = broken.len();
            out.push_str(&format!(
                "a promise would break in {count} rows: {} tools, {runs} runs{assumed}\n\n",
                drilled.len()
            ));
            out.push_str(&told(tool, row, story));
        }
    }
    out
}

/// The whole drill as one document.
pub(super) fn json(drilled: &[Drilled], live: &[LiveRow], assume: Option<Assume>, seed: u64) -> Value {
    let tools: Vec<Value> = drilled
        .iter()
        .map(|tool| {
            json!({
                "tool": tool.subject.tool, "upstream": tool.subject.upstream, "effect": tool.subject.contract().effect,
                "faults": tool.singles.iter().map(row_json).collect::<Vec<_>>(),
                "pairs": tool.pairs.iter().map(row_json).collect::<Vec<_>>(),
                "pairs_not_met": tool.unmet,
                "declared": tool.subject.contract().declared,
                "undoing": scene(tool, |scene| scene == Scene::Undoing),
                "beside": scene(tool, |scene| matches!(scene, Scene::Beside { .. })),
            })
        })
        .collect();
    let runs: u32 = drilled.iter().flat_map(Drilled::rows).map(|row| row.runs).sum();
    let holds = all_broken(drilled).next().is_none() && live.iter().all(|row| row.broken.is_none());
    let mut document = json!({
        "holds": holds, "runs": runs, "seed": seed, "assume": assume.map(Assume::name), "tools": tools,
    });
    if !live.is_empty() {
        document["live"] = live.iter().map(live_json).collect();
    }
    document
}

/// The rows of one kind of scene.
fn scene(tool: &Drilled, wanted: fn(Scene) -> bool) -> Vec<Value> {
    tool.scenes.iter().filter(|row| wanted(row.scene)).map(row_json).collect()
}

fn all_broken(drilled: &[Drilled]) -> impl Iterator<Item = (&Drilled, &Row, &Story)> {
    drilled.iter().flat_map(|tool| tool.rows().filter_map(move |row| Some((tool, row, row.broken.as_ref()?))))
}

fn row_json(row: &Row) -> Value {
    let mut said = one_json(row);
    if let Scene::Beside { after_ms } = row.scene {
        said["after_ms"] = after_ms.into();
        said["other"] = row.other.iter().map(|told| told.outcome).collect();
    }
    said
}

fn one_json(row: &Row) -> Value {
    json!({
        "faults": row.faults.iter().map(|fault| fault.name()).collect::<Vec<_>>(),
        "reading_first": row.reading_first,
        "sends": row.sends, "reads": row.reads, "effects": row.effects, "undone": row.undone,
        "outcomes": row.told.iter().map(|told| told.outcome).collect::<Vec<_>>(),
        "told": row.told.iter().map(|told| told.certainty).collect::<Vec<_>>(),
        "who_must_act": row.told.iter().find_map(|told| told.who),
        "asked": row.asked.iter().map(|asked| json!({ "queue": asked.queue, "about": asked.about })).collect::<Vec<_>>(),
        "wait_ms": row.wait_ms, "runs": row.runs,
        "broken": row.broken.as_ref().map(|story| json!({
            "promise": story.broken.promise.name(), "what": story.broken.what, "agent": agent(story), "person": person(story),
            "story": story.lines,
        })),
    })
}

fn live_json(row: &LiveRow) -> Value {
    json!({
        "tool": row.tool, "fault": row.kind, "sends": row.sends, "effects": row.effects, "outcome": row.outcome,
        "told": row.told, "wait_ms": row.wait_ms, "broken": row.broken,
    })
}

/// What a call that was really made came to.
fn live_cell(row: &LiveRow) -> String {
    let broken = row.broken.as_ref().map(|broken| format!("  BROKEN {broken}")).unwrap_or_default();
    format!(
        "{} sends, {} effects, {}, {}, {}{broken}",
        row.sends,
        row.effects,
        row.outcome,
        row.told,
        wait(row.wait_ms)
    )
}

/// A fault that only the shop knows.
fn only_live(row: &LiveRow) -> [String; 8] {
    let mut cells: [String; 8] = Default::default();
    cells[0] = row.kind.to_owned();
    cells[7] = live_cell(row);
    cells
}

fn cells(row: &Row, live: &[&LiveRow]) -> [String; 8] {
    let alone = row.scene == Scene::Alone && !row.reading_first && row.faults.len() == 1;
    let single = |live: &&&LiveRow| alone && row.faults[0].name() == live.kind;
    let mark = row.broken.as_ref().map(|story| format!("  BROKEN {}", story.broken.promise.name())).unwrap_or_default();
    [
        name(row),
        row.sends.to_string(),
        if row.undone > 0 { format!("{} (undone)", row.effects) } else { row.effects.to_string() },
        outcome(row),
        steps(row.told.iter().map(|told| told.certainty.as_str())),
        asked(row),
        format!("{}{mark}", wait(row.wait_ms)),
        live.iter().find(single).map(|row| live_cell(row)).unwrap_or_default(),
    ]
}

fn name(row: &Row) -> String {
    let names: Vec<&str> = row.faults.iter().map(|fault| fault.name()).collect();
    let before = match row.scene {
        Scene::Alone if row.reading_first => "reading first: ".to_owned(),
        Scene::Alone => String::new(),
        Scene::Undoing => "undoing: ".to_owned(),
        Scene::Beside { after_ms } => format!("another after {}: ", wait(after_ms)),
    };
    format!("{before}{}", names.join(", "))
}

/// How it ended, and what another agent was told that wrote to the same object.
fn outcome(row: &Row) -> String {
    let own = steps(row.told.iter().map(|told| told.outcome));
    match steps(row.other.iter().map(|told| told.outcome)) {
        other if other.is_empty() => own,
        other => format!("{own} (the other: {other})"),
    }
}

/// What followed what, each said once.
fn steps<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut words: Vec<&str> = words.collect();
    words.dedup();
    words.join(" > ")
}

/// Who is asked: people by their queue, else whoever the agent is told must act.
fn asked(row: &Row) -> String {
    let queue = |about: &str, queue: &str| format!("person ({queue}{about})");
    let people: Vec<String> = row
        .asked
        .iter()
        .map(|asked| match asked.about {
            About::Doubt => queue("", &asked.queue),
            About::Resend => queue(", resend", &asked.queue),
            About::Notice => queue(", notice", &asked.queue),
            About::Move => queue(", move", &asked.queue),
            About::Call => queue(", before it is sent", &asked.queue),
            About::SignIn => queue(", to sign in", &asked.queue),
        })
        .collect();
    let told = row.told.iter().find_map(|told| told.who).and_then(|who| serde_json::to_value(who).ok());
    let told = told.as_ref().and_then(Value::as_str).unwrap_or("-").to_owned();
    if people.is_empty() { told } else { people.join(", ") }
}

/// A time in words a person would use.
fn wait(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..120_000 => format!("{:.1} s", ms as f64 / 1000.0),
        _ => format!("{:.1} min", ms as f64 / 60_000.0),
    }
}

fn summary(tool: &Drilled) -> String {
    // The first of the greatest, so that a fault that is added at the end changes nothing here.
    let Some(most) = tool.pairs.iter().rev().max_by_key(|row| row.sends) else {
        return match tool.unmet {
            0 => String::new(),
            unmet => format!("  pairs: none of {unmet} met a second attempt\n"),
        };
    };
    let longest = tool.pairs.iter().rev().max_by_key(|row| row.wait_ms).unwrap_or(most);
    let effects = tool.pairs.iter().map(|row| row.effects).max().unwrap_or_default();
    let people = tool.pairs.iter().filter(|row| !row.asked.is_empty()).count();
    let broken = tool.pairs.iter().filter(|row| row.broken.is_some()).count();
    let broken = if broken == 0 { String::new() } else { format!(", BROKEN in {broken}") };
    format!(
        "  {} pairs: at most {} sends ({}), {effects} effects, {} without an answer ({}); a person is asked in {people}{broken}\n",
        tool.pairs.len(),
        most.sends,
        name(most),
        wait(longest.wait_ms),
        name(longest),
    )
}

fn told(tool: &Drilled, row: &Row, story: &Story) -> String {
    let what: Vec<String> = row.faults.iter().map(|fault| format!("{}: {}", fault.name(), fault.means())).collect();
    format!(
        "the first of them: {} with {}\n  {}\n  the agent {}, the person {}\n  breaks {}\n\n{}\n",
        tool.subject.tool,
        name(row),
        what.join("\n  "),
        agent(story),
        person(story),
        story.broken,
        story.lines.join("\n"),
    )
}

const fn agent(story: &Story) -> &'static str {
    match story.manner {
        Manner::Polite => "heeds what it is told",
        Manner::Rude => "always asks again",
    }
}

const fn person(story: &Story) -> &'static str {
    match story.person {
        Person::Answers => "answers after ten minutes",
        Person::Silent => "never answers",
    }
}

/// Rows in columns as wide as their widest cell; numbers to the right.
fn aligned(lines: &[[String; 8]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let mut out = String::new();
    for line in lines {
        let cell = |(column, text): (usize, &String)| match column {
            1 | 2 => format!("{text:>width$}", width = widths[column]),
            _ => format!("{text:<width$}", width = widths[column]),
        };
        let joined: Vec<String> = line.iter().enumerate().map(cell).collect();
        out.push_str(&format!("  {}\n", joined.join("  ").trim_end()));
    }
    out
}
