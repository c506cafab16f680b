//! What was done in a walk, as its trace tells it.

use amends_core::id::{ActionName, StateName};
use amends_core::{CallId, Certainty, Digest, Event, Fact, Outcome, RefusalKind, Timestamp, ToolName};
use serde::Serialize;

/// A wish to move, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The move.
    #[serde(rename = "move")]
    pub id: CallId,
    /// When it was wished for.
    pub at: Timestamp,
    /// The action; nothing for a wish to begin again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionName>,
    /// The digest of its inputs.
    pub inputs_digest: Digest,
    /// What its inputs say, as far as that may be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// How many moves were made with it, where it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<StateName>,
    /// Where it led: a state for each machine that it went on in, the innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<StateName>,
    /// The machine that it entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enters: Option<String>,
    /// How it ended; nothing while it is being made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What is known of what it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusalKind>,
    /// The same in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The move that it repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<CallId>,
    /// Whether the walk was given up with it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
    /// The calls that were made for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Called>,
}

/// A call that was made for a move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Called {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// What it is for the action: the name of one of several that are called at once.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is known of what it did; nothing while it is being made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
}

/// What was done in a walk, oldest first.
pub fn history<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for event in events {
        if let Fact::MoveReceived { taking, .. } = &event.fact {
            entries.push(Entry {
                id: taking.id.clone(),
                at: event.at,
                action: (!taking.reset).then(|| taking.action.clone()),
                inputs_digest: taking.inputs.digest.clone(),
                inputs: taking.view.clone(),
                seq: None,
                from: None,
                to: Vec::new(),
                enters: None,
                outcome: None,
                certainty: None,
                refused: None,
                message: None,
                repeats: None,
                aborted: false,
                calls: Vec::new(),
            });
            continue;
        }
        let of = match &event.fact {
            Fact::CallReceived { received, .. } => received.leg.as_ref().map(|leg| &leg.of),
            fact => fact.call(),
        };
        if let Some((call, certainty)) = known(&event.fact) {
            let mut calls = entries.iter_mut().rev().flat_map(|entry| &mut entry.calls);
            if let Some(called) = calls.find(|called| called.call == *call) {
                called.certainty = Some(certainty);
                continue;
            }
        }
        let entry = of.and_then(|of| entries.iter_mut().rev().find(|entry| entry.id == *of));
        if let Some(entry) = entry {
            entry.add(&event.fact);
        }
    }
    entries
}

/// What that says of what a call did.
const fn known(fact: &Fact) -> Option<(&CallId, Certainty)> {
    match fact {
        Fact::CallRefused { call, .. } => Some((call, Certainty::NotSent)),
        Fact::CallEnded { call, certainty, .. } | Fact::DoubtResolved { call, certainty, .. } => {
            Some((call, *certainty))
        }
        _ => None,
    }
}

impl Entry {
    fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::MoveRefused { refusal, .. } => {
                self.refused = Some(refusal.kind);
                self.message = Some(refusal.message.clone());
                self.outcome = Some(Outcome::Refused);
            }
            Fact::MoveJoined { first, .. } => self.repeats = Some(first.clone()),
            Fact::MoveMade { moves, from, to, enters, .. } => {
                self.seq = Some(*moves);
                self.from = Some(from.clone());
                self.to.clone_from(to);
                self.enters = enters.as_ref().map(ToString::to_string);
            }
            Fact::MoveEnded { outcome, certainty, .. } => {
                self.outcome = Some(*outcome);
                self.certainty = Some(*certainty);
            }
            Fact::WalkReset { moves, .. } => {
                self.seq = Some(*moves);
                self.outcome = Some(Outcome::Succeeded);
            }
            Fact::WalkAborted { .. } => self.aborted = true,
            Fact::CallReceived { received, .. } => {
                let leg = received.leg.as_ref().filter(|leg| leg.is_sibling());
                let name = leg.map(|leg| leg.name.clone());
                let (call, tool) = (received.call.clone(), received.tool.clone());
                self.calls.push(Called { call, tool, name, certainty: None });
            }
            _ => {}
        }
    }

    /// What came of it, in a few words.
    pub fn words(&self) -> String {
        let to: Vec<&str> = self.to.iter().map(StateName::as_str).collect();
        match (self.seq, &self.refused, &self.repeats, self.outcome) {
            (Some(_), ..) if self.action.is_none() => "back at the beginning".to_owned(),
            (Some(_), ..) => {
                let from = self.from.as_ref().map(StateName::as_str).unwrap_or_default();
                let to = match &self.enters {
                    Some(machine) => format!("into {machine}"),
                    None => to.join(" -> "),
                };
                format!("{from} -> {to}")
            }
            (None, Some(kind), ..) => format!("refused: {}", kind.as_str()),
            (None, None, Some(first), _) => format!("repeats {first}"),
            (None, None, None, Some(outcome)) => {
                let certainty = self.certainty.map(|certainty| format!(", {}", certainty.as_str())).unwrap_or_default();
                format!("{}{certainty}", outcome.as_str())
            }
            (None, None, None, None) => "being made".to_owned(),
        }
    }
}
