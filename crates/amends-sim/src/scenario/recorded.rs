//! What really came of calls, taken from an export, so that a faked tool can answer as it was answered then.

use std::collections::BTreeMap;

use amends_core::{AttemptId, CallId, Certainty, Code, Event, Fact, Failure, Purpose, Report, ToolName};
use serde_json::Value;

/// A session that was recorded.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Its events.
    pub events: Vec<Event>,
    /// What its calls gave, as far as the export says so.
    pub gave: BTreeMap<CallId, Value>,
}

/// What came of one attempt that was recorded.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The tool it went to.
    pub tool: ToolName,
    /// What came of it; nothing where its time was over before it was answered.
    pub report: Option<Report>,
    /// Whether its call gave what this one was answered with, so that the move goes on with that.
    pub gives: bool,
    /// What it was answered with, where that is known.
    pub body: Option<Value>,
}

impl Recording {
    /// What came of each attempt of a call; nothing for a call that is not known.
    pub fn sent(&self, call: &str) -> Option<Vec<Sent>> {
        let mut known = false;
        let mut started = BTreeMap::new();
        let mut sent = Vec::new();
        let mut gives = None;
        for event in self.events.iter().filter(|event| event.fact.call().is_some_and(|of| of.as_str() == call)) {
            known = true;
            if let Fact::AttemptStarted { attempt, tool, purpose, .. } = &event.fact {
                started.insert(attempt, (tool, *purpose));
                continue;
            }
            let Some((attempt, report)) = ended(&event.fact) else { continue };
            let Some((tool, purpose)) = started.get(attempt) else { continue };
            if report.as_ref().is_some_and(|report| shows(*purpose, report)) {
                gives = Some(sent.len());
            }
            sent.push(Sent { tool: (*tool).clone(), report, gives: false, body: None });
        }
        // The last that showed what was done is what its call was answered with.
        if let Some(last) = gives.and_then(|n| sent.get_mut(n)) {
            (last.gives, last.body) = (true, self.gave.get(&CallId::new(call)).cloned());
        }
        known.then_some(sent)
    }
}

/// How an attempt ended, if that is what the fact says.
fn ended(fact: &Fact) -> Option<(&AttemptId, Option<Report>)> {
    match fact {
        Fact::AttemptEnded { attempt, report, .. } => Some((attempt, Some((**report).clone()))),
        // What was judged then was that nobody answered, and so it is again.
        Fact::AttemptTimedOut { attempt, .. } => Some((attempt, None)),
        Fact::AttemptOrphaned { attempt, .. } => {
            Some((attempt, Some(Report::silent(Failure::of(Code::ConnectionLost), Certainty::InDoubt))))
        }
        _ => None,
    }
}

/// Whether an attempt of that purpose shows what its call did.
fn shows(purpose: Purpose, report: &Report) -> bool {
    match purpose {
        Purpose::Act => report.failure.is_none(),
        Purpose::Status => report.failure.is_none() && report.happened == Some(true),
        Purpose::Join | Purpose::Baseline | Purpose::Reverse | Purpose::Evidence => false,
    }
}
