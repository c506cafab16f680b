//! The table of an export: one row for each call.

use std::collections::BTreeSet;
use std::io::Write;

use amends_core::call::Received;
use amends_core::{CallId, Fact, InteractionId, Timestamp};
use amends_ledger::{SessionRow, Trace};
use anyhow::Result;

use super::super::stamp::utc;

const COLUMNS: [&str; 16] = [
    "session",
    "call",
    "tool",
    "upstream",
    "principal",
    "door",
    "received",
    "ended",
    "ms",
    "attempts",
    "verdicts",
    "compensations",
    "outcome",
    "certainty",
    "waits_ms",
    "people",
];

/// What is told of one call.
struct Row<'a> {
    received: &'a Received,
    at: Timestamp,
    ended: Option<Timestamp>,
    attempts: u32,
    verdicts: Vec<&'static str>,
    compensations: Vec<&'a str>,
    outcome: Option<String>,
    certainty: Option<&'static str>,
    waits_ms: u64,
    asked: Vec<&'a InteractionId>,
    people: BTreeSet<&'a str>,
}

pub(super) fn write_header(out: &mut dyn Write) -> Result<()> {
    Ok(writeln!(out, "{}", COLUMNS.join(","))?)
}

/// Writes the calls of a session. One that was retired has none left.
pub(super) fn write_session(session: &SessionRow, trace: &Trace, out: &mut dyn Write) -> Result<()> {
    for row in rows(trace) {
        let cells = [
            session.session.to_string(),
            row.received.call.to_string(),
            row.received.tool.to_string(),
            row.received.upstream.to_string(),
            row.received.principal.to_string(),
            session.door.clone(),
            utc(row.at),
            row.ended.map(utc).unwrap_or_default(),
            row.ended.map(|ended| ended.since_ms(row.at).to_string()).unwrap_or_default(),
            row.attempts.to_string(),
            row.verdicts.join(" "),
            row.compensations.join(" "),
            row.outcome.unwrap_or_default(),
            row.certainty.unwrap_or_default().to_owned(),
            row.waits_ms.to_string(),
            row.people.into_iter().collect::<Vec<_>>().join(" "),
        ];
        writeln!(out, "{}", cells.map(|cell| quoted(&cell)).join(","))?;
    }
    Ok(())
}

fn rows(trace: &Trace) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for stored in &trace.events {
        let at = stored.event.at;
        let mut with = |call: &CallId, change: &mut dyn FnMut(&mut Row<'_>)| {
            // An id may come again after its call ended: the last one is meant.
            if let Some(row) = rows.iter_mut().rfind(|row| row.received.call == *call) {
                change(row);
            }
        };
        match &stored.event.fact {
            Fact::CallReceived { received, .. } => rows.push(Row {
                received,
                at,
                ended: None,
                attempts: 0,
                verdicts: Vec::new(),
                compensations: Vec::new(),
                outcome: None,
                certainty: None,
                waits_ms: 0,
                asked: Vec::new(),
                people: BTreeSet::new(),
            }),
            Fact::AttemptStarted { attempt, .. } => with(&attempt.call, &mut |row| row.attempts += 1),
            Fact::FailureJudged { attempt, verdict, compensation, .. } => {
                if let Some(row) = rows.iter_mut().rfind(|row| row.received.call == attempt.call) {
                    row.verdicts.push(verdict.as_str());
                    row.compensations.push(compensation);
                }
            }
            Fact::WaitBegan { call, until, .. } => with(call, &mut |row| row.waits_ms += until.since_ms(at)),
            Fact::CallRefused { call, refusal } => with(call, &mut |row| {
                row.ended = Some(at);
                row.outcome = Some(format!("refused:{}", refusal.kind.as_str()));
                row.certainty = Some(amends_core::Certainty::NotSent.as_str());
            }),
            Fact::CallEnded { call, outcome, certainty, .. } => with(call, &mut |row| {
                row.ended = Some(at);
                row.outcome = Some(outcome.as_str().to_owned());
                row.certainty = Some(certainty.as_str());
            }),
            Fact::DoubtResolved { call, certainty, .. } => {
                with(call, &mut |row| row.certainty = Some(certainty.as_str()));
            }
            Fact::InteractionOpened { interaction } => {
                if let Some(row) = rows.iter_mut().rfind(|row| row.received.call == interaction.call) {
                    row.asked.push(&interaction.id);
                }
            }
            Fact::InteractionAnswered { interaction, answer, .. } => {
                if let Some(row) = rows.iter_mut().find(|row| row.asked.contains(&interaction)) {
                    row.people.insert(&answer.by);
                }
            }
            _ => {}
        }
    }
    rows
}

/// A cell: in quotes where it must be, and never what a spreadsheet would compute.
fn quoted(cell: &str) -> String {
    let computed = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let cell = if computed { format!("'{cell}") } else { cell.to_owned() };
    if cell.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_never_computed() {
        assert_eq!(quoted("pay"), "pay");
        assert_eq!(quoted("a,\"b\"\nc"), "\"a,\"\"b\"\"\nc\"");
        assert_eq!(quoted("=HYPERLINK(1)"), "'=HYPERLINK(1)");
        assert_eq!(quoted("@x,y"), "\"'@x,y\"");
    }
}
