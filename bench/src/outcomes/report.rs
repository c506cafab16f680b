//! The table of what happened, as rates, so that rows with different numbers of calls compare.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use super::contender::Contender;
use super::tally::Tally;

/// A heading, and what is counted under it.
type Column = (&'static str, fn(&Tally) -> usize);

const COLUMNS: [Column; 8] = [
    ("doubled", |tally| tally.doubled),
    ("lost, told done", |tally| tally.lost_as_done),
    ("done, told failed", |tally| tally.done_as_failed),
    ("untyped", |tally| tally.untyped),
    ("needless sends", |tally| tally.needless),
    ("people asked", |tally| tally.people),
    ("succeeded", |tally| tally.succeeded),
    ("all requests", |tally| tally.requests),
];

/// Prints every row.
pub(crate) fn print(seed: u64, rows: &[(Contender, Tally)], as_json: bool, explain: bool) -> Result<()> {
    let text = match as_json {
        true => serde_json::to_string_pretty(&json(seed, rows))?,
        false => table(seed, rows, explain),
    };
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        wrote => Ok(wrote?),
    }
}

/// A table in Markdown, to be kept.
fn table(seed: u64, rows: &[(Contender, Tally)], explain: bool) -> String {
    let mut text = format!("Per 1,000 calls, one in five of them faulty; seed {seed}.\n\n| contender | calls |");
    COLUMNS.iter().for_each(|(heading, _)| text.push_str(&format!(" {heading} |")));
    text.push_str(" seconds |\n|---|---:|");
    text.push_str(&"---:|".repeat(COLUMNS.len() + 1));
    for (contender, tally) in rows {
        text.push_str(&format!("\n| {} | {} |", contender.name, tally.calls));
        COLUMNS.iter().for_each(|(_, count)| text.push_str(&format!(" {} |", rate(count(tally), tally.calls))));
        text.push_str(&format!(" {:.0} |", tally.took.as_secs_f64()));
    }
    for (contender, tally) in rows.iter().filter(|(_, tally)| tally.doubled_against_advice > 0) {
        text.push_str(&format!(
            "\n\n{}: in {} of {} doubled effects, a field of the answer had said not to repeat the call.",
            contender.name, tally.doubled_against_advice, tally.doubled
        ));
    }
    for (contender, tally) in rows.iter().filter(|(_, tally)| explain && !tally.wrong.is_empty()) {
        text.push_str(&format!("\n\n{}\n", contender.name));
        let lines = tally.wrong_by_fault().into_iter().map(|(what, count)| format!("{count:>6}  {what}"));
        text.push_str(&lines.collect::<Vec<_>>().join("\n"));
    }
    text
}

fn json(seed: u64, rows: &[(Contender, Tally)]) -> Value {
    let rows: Vec<Value> = rows
        .iter()
        .map(|(contender, tally)| {
            json!({
                "contender": contender.name,
                "calls": tally.calls,
                "doubled": tally.doubled,
                "doubled_against_advice": tally.doubled_against_advice,
                "lost_as_done": tally.lost_as_done,
                "done_as_failed": tally.done_as_failed,
                "untyped": tally.untyped,
                "needless": tally.needless,
                "people": tally.people,
                "succeeded": tally.succeeded,
                "requests": tally.requests,
                "ms": tally.took.as_millis() as u64,
                "wrong": tally.wrong_by_fault(),
            })
        })
        .collect();
    json!({ "seed": seed, "rows": rows })
}

/// Per 1,000 calls; nothing at all is a plain 0, so that it is not taken for a rounded one.
fn rate(count: usize, calls: usize) -> String {
    match count {
        0 => "0".to_owned(),
        count => format!("{:.1}", count as f64 * 1000.0 / calls as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_told_per_thousand_calls() {
        let tally = Tally { calls: 500, doubled: 1, succeeded: 450, ..Tally::default() };
        let text = table(1, &[(Contender::ALL[0], tally)], false);
        let row = "| direct, one call | 500 | 2.0 | 0 | 0 | 0 | 0 | 0 | 900.0 | 0 | 0 |";
        assert!(text.ends_with(row), "{text}");
    }
}
