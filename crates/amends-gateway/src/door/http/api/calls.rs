//! Calls: found, listed, and told with all that became of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use amends_core::dispatcher::redecide::{CallEnd, CallPath, paths, retell};
use amends_core::{Answer, CallId, Effect, Envelope, Event, Fact, Rules};
use amends_ledger::{SessionRow, Trace};
use serde::Serialize;
use serde_json::Value;

use super::fields::Fields;
use super::problem::Problem;
use super::sessions::{self, Page, sees, told_event};
use super::spans::{Line, line_of};
use crate::gateway::Gateway;
use crate::hindsight::{Recorded, events_of};
use crate::identity::Person;

/// How many sessions are opened for one page of calls.
const OPENED_MAX: usize = 300;
/// How many of the newest sessions a page may lie in.
const LISTED_MAX: usize = 5000;

/// A call in a list.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CallLine {
    pub(crate) call: String,
    pub(crate) session: String,
    pub(crate) tool: String,
    pub(crate) upstream: String,
    pub(crate) principal: String,
    pub(crate) at: u64,
    pub(crate) state: &'static str,
    pub(crate) end: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) certainty: Option<&'static str>,
    pub(crate) sends: u32,
    pub(crate) asked: u32,
    pub(crate) verdicts: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) told_after_ms: Option<u64>,
}

/// Which calls are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) search: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) after: Option<String>,
    pub(crate) limit: usize,
}

/// All that is known of a call.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CallSeen {
    #[serde(flatten)]
    pub(crate) line: CallLine,
    pub(crate) effect: &'static str,
    pub(crate) reversible: bool,
    /// Its arguments, as far as they may be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) view: Option<String>,
    /// What the agent was answered, as far as it can be told.
    pub(crate) agent: Vec<Told>,
    /// Why that cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_unknown: Option<String>,
    /// What the operator may see beside it.
    pub(crate) events: Vec<Value>,
    pub(crate) timeline: Line,
    /// The last event about it, by which it can be proven.
    pub(crate) receipt: Receipt,
}

/// One answer to the agent.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Told {
    /// Whether the call was over with it.
    pub(crate) last: bool,
    /// `forward`: the upstream's own result with the envelope beside it. `envelope`: our own. `recorded`: that of an equal call.
    pub(crate) form: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) envelope: Option<Value>,
}

/// Where a call stands in the chain.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Receipt {
    pub(crate) session: String,
    pub(crate) seq: u64,
    pub(crate) hash: String,
}

impl Wanted {
    pub(crate) const STATES: [&'static str; 3] = ["open", "ended", "refused"];

    pub(crate) fn read(fields: &mut Fields) -> Result<Self, Problem> {
        let outcomes = amends_core::Outcome::ALL.map(amends_core::Outcome::as_str);
        Ok(Self {
            search: fields.text("search")?,
            tool: fields.text("tool")?,
            state: fields.word("state", &Self::STATES)?,
            outcome: fields.word("outcome", &outcomes)?,
            after: fields.text("after")?,
            limit: usize::try_from(fields.number("limit", 50, 1, 200)?).unwrap_or(200),
        })
    }

    fn takes(&self, line: &CallLine) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        let holds = |text: &str| {
            let all = [&line.call, &line.session, &line.tool, &line.principal, &line.end];
            all.iter().any(|found| found.contains(text)) || line.verdicts.iter().any(|verdict| verdict.contains(text))
        };
        let ended = line.end.split_once(' ').map_or(line.end.as_str(), |(outcome, _)| outcome);
        is(&self.tool, &line.tool)
            && is(&self.state, line.state)
            && is(&self.outcome, ended)
            && self.search.as_deref().is_none_or(holds)
    }
}

/// The newest calls first: the sessions that began last in front, and in each the calls that came last.
pub(crate) async fn list(gateway: &Arc<Gateway>, person: &Person, wanted: &Wanted) -> Result<Page<CallLine>, Problem> {
    let rows = gateway.ledger.sessions(LISTED_MAX).await?;
    let mut begin = 0;
    if let Some(after) = &wanted.after {
        let session = gateway.ledger.session_of(&CallId::new(after.as_str())).await?;
        let place = session.and_then(|session| rows.iter().position(|row| row.session == session));
        begin = place.ok_or_else(|| Problem::field("after", "no such call is among those that are looked at"))?;
    }
    let mut items = Vec::new();
    let mut past = wanted.after.is_none();
    let mut looked_at = 0;
    let mut last = None;
    for row in rows[begin..].iter().filter(|row| row.cut == 0 && sees(person, row)) {
        if items.len() > wanted.limit || looked_at == OPENED_MAX {
            break;
        }
        looked_at += 1;
        let Some(trace) = gateway.ledger.trace(&row.session).await? else { continue };
        let mut lines = lines(row, &trace);
        lines.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| b.call.cmp(&a.call)));
        for line in lines {
            last = Some(line.call.clone());
            if past && wanted.takes(&line) {
                items.push(line);
            } else if wanted.after.as_ref() == Some(&line.call) {
                past = true;
            }
        }
    }
    let more = items.len() > wanted.limit;
    items.truncate(wanted.limit);
    let next = if more { items.last().map(|line| line.call.clone()) } else { last.filter(|_| looked_at == OPENED_MAX) };
    Ok(Page { items, next, looked_at })
}

/// The calls of a session.
fn lines(row: &SessionRow, trace: &Trace) -> Vec<CallLine> {
    let of = paths(trace.events.iter().map(|stored| &stored.event));
    of_session(row.session.as_str(), row.principal.as_str(), &of)
}

/// The same by what became of each.
pub(crate) fn of_session(session: &str, principal: &str, of: &BTreeMap<CallId, CallPath>) -> Vec<CallLine> {
    of.iter().map(|(call, path)| line(session, principal, call, path)).collect()
}

fn line(session: &str, principal: &str, call: &CallId, path: &CallPath) -> CallLine {
    CallLine {
        call: call.to_string(),
        session: session.to_owned(),
        tool: path.tool.to_string(),
        upstream: path.upstream.to_string(),
        principal: principal.to_owned(),
        at: path.at.ms(),
        state: match path.end {
            None => "open",
            Some(CallEnd::Refused(_)) => "refused",
            Some(CallEnd::Ended(..)) => "ended",
        },
        end: path.end.map_or_else(|| "open".to_owned(), CallEnd::words),
        certainty: match path.end {
            Some(CallEnd::Ended(_, certainty)) => Some(certainty.as_str()),
            Some(CallEnd::Refused(_)) | None => None,
        },
        sends: path.sends,
        asked: path.asked,
        verdicts: path.judged.iter().map(|(verdict, _)| verdict.as_str()).collect(),
        told_after_ms: path.told_after_ms,
    }
}

/// All that is known of a call.
pub(crate) async fn seen(gateway: &Arc<Gateway>, person: &Person, id: &str) -> Result<CallSeen, Problem> {
    let call = CallId::new(id);
    let unknown = || Problem::not_found("call");
    let session = gateway.ledger.session_of(&call).await?.ok_or_else(unknown)?;
    let trace = sessions::trace(gateway, person, session.as_str()).await.map_err(|problem| match problem.code {
        "not_found" => unknown(),
        _ => problem,
    })?;
    let recorded = Recorded::read(&gateway.ledger, &session).await?.ok_or_else(unknown)?;
    let about = events_of(&recorded.events, &call);
    let received = about.iter().find_map(|event| match &event.fact {
        Fact::CallReceived { received, .. } => Some(received),
        _ => None,
    });
    let received = received.ok_or_else(unknown)?;
    let path = recorded.paths().remove(&call).ok_or_else(unknown)?;
    let rules = recorded.rules.get(&received.rules);
    let (agent, agent_unknown) = agent(&recorded, &call);
    let seqs: Vec<u64> = about.iter().map(|event| event.seq).collect();
    let stored: Vec<_> = trace.events.iter().filter(|stored| seqs.contains(&stored.event.seq)).collect();
    let receipt = stored.last().map(|last| Receipt {
        session: session.to_string(),
        seq: last.event.seq,
        hash: last.hash.to_string(),
    });
    Ok(CallSeen {
        line: line(session.as_str(), received.principal.as_str(), &call, &path),
        effect: rules.map_or("unknown", |rules| rules.contract.effect.as_str()),
        reversible: rules.is_some_and(|rules| rules.contract.reverse.is_some()),
        view: received.view.clone(),
        agent,
        agent_unknown,
        timeline: line_of(&about, crate::clock::now()),
        events: stored.iter().map(|stored| told_event(stored)).collect(),
        receipt: receipt.ok_or_else(unknown)?,
    })
}

/// What the agent was answered: the session is decided again, and its answers are those it was given. What a tool gave is not
/// among them, since it is not recorded.
fn agent(recorded: &Recorded, call: &CallId) -> (Vec<Told>, Option<String>) {
    let mut told = Vec::new();
    let rules: &BTreeMap<_, Arc<Rules>> = &recorded.rules;
    let events: &[Event] = &recorded.events;
    let again = retell(
        events,
        |hash| rules.get(hash).cloned(),
        |effect| {
            if let Effect::Reply(reply) = effect
                && reply.call == *call
            {
                let said = |envelope: &Envelope| serde_json::from_str(envelope.to_json(None).get()).ok();
                let (form, envelope) = match &reply.answer {
                    Answer::Forward { envelope, .. } => ("forward", said(envelope)),
                    Answer::Envelope(envelope) => ("envelope", said(envelope)),
                    Answer::Recorded { .. } => ("recorded", None),
                    Answer::Asked { .. } => ("asked", None),
                };
                told.push(Told { last: reply.last, form, envelope });
            }
        },
    );
    let unknown = match again {
        Ok(None) => None,
        Ok(Some(_)) => {
            Some("the session is decided otherwise today, so that what was answered after that is not known".to_owned())
        }
        Err(error) => Some(error.to_string()),
    };
    (told, unknown)
}
