//! A call on a line of time: its attempts, its waits, and whom it waited for.

use amends_core::{Event, Fact, Timestamp};
use serde::Serialize;

/// A call on a line of time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) from: u64,
    /// The end, or now while it is open.
    pub(crate) to: u64,
    pub(crate) spans: Vec<Span>,
}

/// Something that took time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Span {
    /// `attempt`, `wait`, `person` or `agent`.
    pub(crate) kind: &'static str,
    pub(crate) label: String,
    /// What came of it.
    pub(crate) words: String,
    pub(crate) from: u64,
    /// Nothing while it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<u64>,
    /// Whether it failed.
    pub(crate) failed: bool,
    #[serde(skip)]
    key: String,
}

/// The line of a call, by the events about it.
pub(crate) fn line_of(events: &[&Event], now: Timestamp) -> Line {
    let mut spans: Vec<Span> = Vec::new();
    let begin = |kind, key: String, label: String, at: Timestamp| Span {
        kind,
        label,
        words: String::new(),
        from: at.ms(),
        to: None,
        failed: false,
        key,
    };
    for event in events {
        let at = event.at;
        match &event.fact {
            Fact::AttemptStarted { attempt, purpose, tool, .. } => {
                end(&mut spans, "wait", "over", at, false);
                let label = format!("attempt {} to {}: {tool}", attempt.n, purpose.as_str());
                spans.push(begin("attempt", format!("attempt {}", attempt.n), label, at));
            }
            Fact::AttemptEnded { attempt, report, .. } => {
                let code = report.failure.as_ref().map_or("ok", |failure| failure.code.as_str());
                let words = format!("{code}, {}", report.certainty.as_str());
                end(&mut spans, &format!("attempt {}", attempt.n), &words, at, report.failure.is_some());
            }
            Fact::AttemptTimedOut { attempt, certainty } => {
                let words = format!("no answer in time, {}", certainty.as_str());
                end(&mut spans, &format!("attempt {}", attempt.n), &words, at, true);
            }
            Fact::AttemptOrphaned { attempt, certainty } => {
                let words = format!("found without a result, {}", certainty.as_str());
                end(&mut spans, &format!("attempt {}", attempt.n), &words, at, true);
            }
            Fact::WaitBegan { next, until, .. } => {
                let mut wait = begin("wait", "wait".to_owned(), format!("wait, then {}", next.as_str()), at);
                wait.words = format!("{} ms", until.since_ms(at));
                spans.push(wait);
            }
            Fact::InteractionOpened { interaction } => {
                let label = format!("a person on `{}`", interaction.queue);
                spans.push(begin("person", interaction.id.to_string(), label, at));
            }
            Fact::InteractionAnswered { interaction, answer, .. } => {
                let words = format!("{} by {}", answer.choice, answer.by);
                end(&mut spans, interaction.as_str(), &words, at, false);
            }
            Fact::InteractionLapsed { interaction, default } => {
                end(&mut spans, interaction.as_str(), &format!("nobody answered, {default}"), at, true);
            }
            Fact::InteractionWithdrawn { interaction } => {
                end(&mut spans, interaction.as_str(), "pointless by now", at, false);
            }
            Fact::InquiryOpened { inquiry, .. } => {
                spans.push(begin("agent", format!("inquiry {inquiry}"), format!("inquiry {inquiry} to the agent"), at));
            }
            Fact::InputsGiven { inquiry, .. } => end(&mut spans, &format!("inquiry {inquiry}"), "answered", at, false),
            Fact::InquiryClosed { inquiry, why, .. } => {
                end(&mut spans, &format!("inquiry {inquiry}"), why.as_str(), at, true);
            }
            Fact::InquiryWithdrawn { inquiry, .. } => {
                end(&mut spans, &format!("inquiry {inquiry}"), "taken back", at, false);
            }
            Fact::CallEnded { .. } | Fact::CallRefused { .. } => end(&mut spans, "wait", "over", at, false),
            _ => {}
        }
    }
    let from = events.first().map_or(now, |event| event.at);
    let over = events.iter().any(|event| matches!(event.fact, Fact::CallEnded { .. } | Fact::CallRefused { .. }));
    let open = !over || spans.iter().any(|span| span.to.is_none());
    let last = events.last().map_or(now, |event| event.at);
    let to = if open { now.max(last) } else { last };
    Line { from: from.ms(), to: to.ms(), spans }
}

/// Ends the newest span of that key that goes on.
fn end(spans: &mut [Span], key: &str, words: &str, at: Timestamp, failed: bool) {
    let Some(span) = spans.iter_mut().rev().find(|span| span.key == key && span.to.is_none()) else { return };
    span.to = Some(at.ms());
    span.failed = failed;
    if span.words.is_empty() {
        span.words = words.to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Vec<Event> {
        let lines = [
            r#"{"v":1,"seq":2,"at":100,"event":"attempt_started","attempt":{"call":"c","n":1},"purpose":"act","tool":"pay","deadline":900,"send_by":900}"#,
            r#"{"v":1,"seq":3,"at":150,"event":"attempt_timed_out","attempt":{"call":"c","n":1},"certainty":"in_doubt"}"#,
            r#"{"v":1,"seq":4,"at":150,"event":"wait_began","call":"c","until":250,"next":"status"}"#,
            r#"{"v":1,"seq":5,"at":250,"event":"attempt_started","attempt":{"call":"c","n":2},"purpose":"status","tool":"get","deadline":900,"send_by":900}"#,
        ];
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn attempts_and_waits_lie_where_they_happened() {
        let events = events();
        let line = line_of(&events.iter().collect::<Vec<_>>(), Timestamp::from_ms(400));
        let told: Vec<_> = line.spans.iter().map(|span| (span.kind, span.from, span.to, span.failed)).collect();
        assert_eq!(
            told,
            [("attempt", 100, Some(150), true), ("wait", 150, Some(250), false), ("attempt", 250, None, false)]
        );
        assert_eq!((line.from, line.to), (100, 400), "what is open reaches to now");
    }
}
