//! From the facts of a call to its spans. Arguments, results and anybody's words stay where they are: a span says names,
//! numbers and words of ours.

use std::collections::HashMap;

use amends_core::registry::Mcp;
use amends_core::{AttemptId, CallId, Certainty, Event, Fact, Outcome, Purpose, Report, SessionId, Timestamp};

use super::context::{Context, attempt_span, call_span};
use super::span::{Attribute, Kind, Said, Span, SpanEvent};

/// How many events a span has at most.
const EVENTS_MAX: usize = 64;

/// What is known so far of a call that will be a span.
#[derive(Debug)]
pub(crate) struct Story {
    context: Context,
    call: CallId,
    began: Timestamp,
    /// The tool's name, where it is one that is served.
    tool: Option<String>,
    attributes: Vec<Attribute>,
    events: Vec<SpanEvent>,
    left_out: u32,
    attempts: HashMap<u32, Begun>,
    /// The code of what failed last.
    failed: Option<&'static str>,
}

#[derive(Debug)]
struct Begun {
    purpose: Purpose,
    tool: String,
    at: Timestamp,
}

impl Story {
    /// The story of a call that was received with those parameters; nothing where its agent does not want it told.
    pub(super) fn of(session: &SessionId, params: &str, event: &Event) -> Option<Self> {
        let Fact::CallReceived { received, .. } = &event.fact else { return None };
        let context = Context::of(params, &received.call);
        let served = !received.upstream.as_str().is_empty();
        let tool = served.then(|| received.tool.to_string());
        let mut attributes: Vec<Attribute> = vec![
            ("mcp.method.name", "tools/call".into()),
            ("gen_ai.operation.name", "execute_tool".into()),
            ("mcp.session.id", session.to_string().into()),
            ("amends.call.id", received.call.to_string().into()),
        ];
        if let Some(tool) = &tool {
            attributes.push(("gen_ai.tool.name", tool.clone().into()));
            attributes.push(("amends.upstream", received.upstream.to_string().into()));
        }
        let version = super::context::meta(params)
            .and_then(|meta| Some(meta.string(amends_wire::mcp::era::PROTOCOL_VERSION)?.into_owned()));
        if let Some(version) = version.filter(|version| version.len() <= 32) {
            attributes.push(("mcp.protocol.version", version.into()));
        }
        context.sampled.then(|| Self {
            context,
            call: received.call.clone(),
            began: event.at,
            tool,
            attributes,
            events: Vec::new(),
            left_out: 0,
            attempts: HashMap::new(),
            failed: None,
        })
    }

    /// Takes in what happened next, and gives the span that is complete by it.
    pub(super) fn take(&mut self, event: &Event) -> Option<Span> {
        match &event.fact {
            Fact::AttemptStarted { attempt, purpose, tool, .. } => {
                let begun = Begun { purpose: *purpose, tool: tool.to_string(), at: event.at };
                self.attempts.insert(attempt.n, begun);
                None
            }
            Fact::AttemptEnded { attempt, report, .. } => {
                self.failed = report.failure.as_ref().map(|failure| failure.code.as_str()).or(self.failed);
                self.attempt(attempt, event.at, report.certainty, &failure(report))
            }
            Fact::AttemptTimedOut { attempt, certainty } => {
                self.failed = Some("NetworkTimeout");
                self.attempt(attempt, event.at, *certainty, &[("error.type", "timeout".into())])
            }
            Fact::AttemptOrphaned { attempt, certainty } => {
                self.attempt(attempt, event.at, *certainty, &[("error.type", "orphaned".into())])
            }
            Fact::CallRefused { refusal, .. } => {
                let kind = refusal.kind.as_str();
                let mut more: Vec<Attribute> =
                    vec![("amends.outcome", "refused".into()), ("amends.error.kind", kind.into())];
                match refusal.kind.mcp() {
                    Mcp::Result => more.push(("error.type", "tool_error".into())),
                    Mcp::Error(number) => {
                        more.push(("error.type", number.to_string().into()));
                        more.push(("rpc.response.status_code", number.to_string().into()));
                    }
                }
                Some(self.end(event.at, more, true))
            }
            Fact::CallEnded { outcome, certainty, replayed, .. } => {
                let done = matches!(outcome, Outcome::Succeeded | Outcome::SucceededAfterCompensation);
                let mut more: Vec<Attribute> =
                    vec![("amends.outcome", outcome.as_str().into()), ("amends.certainty", certainty.as_str().into())];
                if *replayed {
                    more.push(("amends.replayed", Said::Yes));
                }
                if !done {
                    more.push(("error.type", "tool_error".into()));
                    more.extend(self.failed.map(|code| ("amends.failure.code", code.into())));
                }
                Some(self.end(event.at, more, !done))
            }
            fact => {
                if let Some((name, attributes)) = happened(event.at, fact) {
                    self.happened(name, event.at, attributes);
                }
                None
            }
        }
    }

    fn happened(&mut self, name: &'static str, at: Timestamp, attributes: Vec<Attribute>) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(SpanEvent { name, at_ms: at.ms(), attributes });
        } else {
            self.left_out += 1;
        }
    }

    fn attempt(&mut self, id: &AttemptId, at: Timestamp, certainty: Certainty, more: &[Attribute]) -> Option<Span> {
        let begun = self.attempts.remove(&id.n)?;
        // A join waits for another call of ours; nothing is sent.
        let (name, kind) = match begun.purpose {
            Purpose::Join => ("join".to_owned(), Kind::Internal),
            _ => (format!("tools/call {}", begun.tool), Kind::Client),
        };
        let mut attributes: Vec<Attribute> = vec![
            ("mcp.method.name", "tools/call".into()),
            ("gen_ai.tool.name", begun.tool.into()),
            ("amends.attempt", Said::Number(i64::from(id.n))),
            ("amends.purpose", begun.purpose.as_str().into()),
            ("amends.certainty", certainty.as_str().into()),
        ];
        attributes.extend_from_slice(more);
        Some(Span {
            trace: self.context.trace,
            id: attempt_span(id),
            parent: Some(call_span(&self.call)),
            state: self.context.state.clone(),
            name,
            kind,
            start_ms: begun.at.ms(),
            end_ms: at.ms(),
            attributes,
            events: Vec::new(),
            events_left_out: 0,
            failed: !more.is_empty(),
        })
    }

    fn end(&mut self, at: Timestamp, more: Vec<Attribute>, failed: bool) -> Span {
        let mut attributes = std::mem::take(&mut self.attributes);
        attributes.extend(more);
        Span {
            trace: self.context.trace,
            id: call_span(&self.call),
            parent: self.context.parent,
            state: self.context.state.clone(),
            name: self.tool.as_ref().map_or_else(|| "tools/call".to_owned(), |tool| format!("tools/call {tool}")),
            kind: Kind::Server,
            start_ms: self.began.ms(),
            end_ms: at.ms(),
            attributes,
            events: std::mem::take(&mut self.events),
            events_left_out: self.left_out,
            failed,
        }
    }
}

/// What an attempt's report says of its failure; nothing where it did not fail.
fn failure(report: &Report) -> Vec<Attribute> {
    let Some(failure) = &report.failure else { return Vec::new() };
    let code = failure.code.as_str();
    let mut said: Vec<Attribute> = vec![("amends.failure.code", code.into())];
    // A JSON-RPC error has a number; any other word of an upstream could be anything.
    let number = failure.upstream.as_ref().and_then(|words| words.code.as_ref()?.parse::<i64>().ok());
    match (report.answered, &report.payload, number) {
        (true, Some(_), _) => said.push(("error.type", "tool_error".into())),
        (true, None, Some(number)) => {
            said.push(("error.type", number.to_string().into()));
            said.push(("rpc.response.status_code", number.to_string().into()));
        }
        _ => said.push(("error.type", code.into())),
    }
    said
}

/// What is told of a fact as an event of its call's span.
fn happened(at: Timestamp, fact: &Fact) -> Option<(&'static str, Vec<Attribute>)> {
    let number = |n: u64| Said::Number(i64::try_from(n).unwrap_or(i64::MAX));
    Some(match fact {
        Fact::FailureJudged { attempt, verdict, compensation, rule, retry, held_back } => {
            let mut said: Vec<Attribute> = vec![
                ("amends.attempt", number(attempt.n.into())),
                ("amends.verdict", verdict.as_str().into()),
                ("amends.compensation", compensation.clone().into()),
                ("amends.rule", rule.as_str().into()),
            ];
            said.extend(retry.map(|retry| ("amends.retry", number(retry.into()))));
            said.extend(held_back.map(|by| ("amends.held_back", by.as_str().into())));
            ("amends.failure_judged", said)
        }
        Fact::WaitBegan { until, next, .. } => {
            let said = vec![("amends.wait_ms", number(until.since_ms(at))), ("amends.next", next.as_str().into())];
            ("amends.wait_began", said)
        }
        Fact::DoubtSettled { certainty, .. } => {
            ("amends.doubt_settled", vec![("amends.certainty", certainty.as_str().into())])
        }
        Fact::EvidenceCompared { changed, .. } => {
            ("amends.evidence_compared", vec![("amends.changed", number(changed.len() as u64))])
        }
        Fact::InterimAnswered { .. } => ("amends.interim_answered", Vec::new()),
        Fact::InteractionOpened { .. } => ("amends.interaction_opened", Vec::new()),
        Fact::InquiryOpened { .. } => ("amends.inquiry_opened", Vec::new()),
        Fact::InputsGiven { .. } => ("amends.inputs_given", Vec::new()),
        Fact::InquiryWithdrawn { .. } => ("amends.inquiry_withdrawn", Vec::new()),
        Fact::InquiryClosed { .. } => ("amends.inquiry_closed", Vec::new()),
        Fact::WorkNamed { name, .. } => ("amends.work_named", vec![("amends.work", name.clone().into())]),
        Fact::ReversalMinted { .. } => ("amends.reversal_minted", Vec::new()),
        Fact::ReversalArmed { .. } => ("amends.reversal_armed", Vec::new()),
        Fact::ReversalVoided { .. } => ("amends.reversal_voided", Vec::new()),
        Fact::ReversalRefused { .. } => ("amends.reversal_refused", Vec::new()),
        Fact::ReversalRedeemed { .. } => ("amends.reversal_redeemed", Vec::new()),
        Fact::CancelRequested { .. } => ("amends.cancel_requested", Vec::new()),
        Fact::LateResult { report, .. } => {
            ("amends.late_result", vec![("amends.certainty", report.certainty.as_str().into())])
        }
        _ => return None,
    })
}
