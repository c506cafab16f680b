//! What became of each call of a trace, in numbers.

use std::collections::BTreeMap;

use crate::attempt::Purpose;
use crate::certainty::Certainty;
use crate::event::{Event, Fact};
use crate::id::{CallId, ToolName, UpstreamName};
use crate::outcome::Outcome;
use crate::refusal::RefusalKind;
use crate::registry::Code;
use crate::time::Timestamp;
use crate::verdict::Verdict;

/// How a call went: what was sent, who was asked, how long the agent waited, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallPath {
    /// The tool.
    pub tool: ToolName,
    /// Where it lives.
    pub upstream: UpstreamName,
    /// When it arrived.
    pub at: Timestamp,
    /// How often it was sent.
    pub sends: u32,
    /// How often something was read about it: a status, a baseline, evidence.
    pub reads: u32,
    /// How often a person was asked about it.
    pub asked: u32,
    /// Each judgement of one of its attempts, in order, with the failure's code.
    pub judged: Vec<(Verdict, Code)>,
    /// After which time the agent was first told something; nothing while it waits.
    pub told_after_ms: Option<u64>,
    /// How it ended; nothing while it is open.
    pub end: Option<CallEnd>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallEnd {
    /// Nothing was sent.
    Refused(RefusalKind),
    /// It was sent, and this is what became of it.
    Ended(Outcome, Certainty),
}

impl CallEnd {
    /// The words for it.
    pub fn words(self) -> String {
        match self {
            Self::Refused(kind) => format!("refused ({})", kind.as_str()),
            Self::Ended(outcome, certainty) => format!("{} ({})", outcome.as_str(), certainty.as_str()),
        }
    }
}

/// What became of each call of a trace.
pub fn paths<'a>(events: impl IntoIterator<Item = &'a Event>) -> BTreeMap<CallId, CallPath> {
    let mut paths: BTreeMap<CallId, CallPath> = BTreeMap::new();
    let mut codes = BTreeMap::new();
    for event in events {
        if let Fact::CallReceived { received, .. } = &event.fact {
            let path = CallPath {
                tool: received.tool.clone(),
                upstream: received.upstream.clone(),
                at: event.at,
                sends: 0,
                reads: 0,
                asked: 0,
                judged: Vec::new(),
                told_after_ms: None,
                end: None,
            };
            paths.insert(received.call.clone(), path);
            continue;
        }
        let Some(path) = event.fact.call().and_then(|call| paths.get_mut(call)) else { continue };
        let waited = event.at.since_ms(path.at);
        match &event.fact {
            Fact::AttemptStarted { purpose, .. } => match purpose {
                Purpose::Act | Purpose::Reverse => path.sends += 1,
                Purpose::Baseline | Purpose::Status | Purpose::Evidence => path.reads += 1,
                Purpose::Join => {}
            },
            Fact::AttemptEnded { attempt, report, .. } => {
                if let Some(failure) = &report.failure {
                    codes.insert(attempt.clone(), failure.code);
                }
            }
            Fact::AttemptTimedOut { attempt, .. } => {
                codes.insert(attempt.clone(), Code::NetworkTimeout);
            }
            Fact::AttemptOrphaned { attempt, .. } => {
                codes.insert(attempt.clone(), Code::ConnectionLost);
            }
            Fact::FailureJudged { attempt, verdict, .. } => {
                path.judged.extend(codes.get(attempt).map(|code| (*verdict, *code)));
            }
            Fact::InteractionOpened { .. } => path.asked += 1,
            Fact::InterimAnswered { .. } => path.told_after_ms = path.told_after_ms.or(Some(waited)),
            Fact::CallRefused { refusal, .. } => {
                path.end = Some(CallEnd::Refused(refusal.kind));
                path.told_after_ms = path.told_after_ms.or(Some(waited));
            }
            Fact::CallEnded { outcome, certainty, .. } => {
                path.end = Some(CallEnd::Ended(*outcome, *certainty));
                path.told_after_ms = path.told_after_ms.or(Some(waited));
            }
            _ => {}
        }
    }
    paths
}
