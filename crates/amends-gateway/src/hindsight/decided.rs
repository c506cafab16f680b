//! A recorded session, decided a second time: by the rules it had, or under a change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use amends_core::call::Received;
use amends_core::dispatcher::redecide::{
    Beyond, CallPath, Difference, Rerun, call_of, call_under, paths, rerun, whole,
};
use amends_core::playbook::Origin;
use amends_core::{Call, CallId, Code, Digest, Event, Fact, Rules, SessionId, Timestamp, TraceError, Verdict};
use amends_ledger::{Error, Ledger};

use super::change::Change;
use crate::config::ConfigError;

/// A recorded session with the rules its calls had.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its events.
    pub events: Vec<Event>,
    /// The rules, by their digest.
    pub rules: BTreeMap<Digest, Arc<Rules>>,
}

/// What came of deciding a session again by the rules it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// Every event is the same.
    Same,
    /// One is not: we decide otherwise than we did, or somebody changed the record.
    Otherwise(String),
    /// It cannot be decided again.
    NotDecidable(String),
}

/// One call under a change, beside what was recorded of it.
#[derive(Clone, Copy, Debug)]
pub struct Otherwise<'a> {
    /// What was recorded.
    pub recorded: Option<&'a Event>,
    /// What would be.
    pub decided: Option<&'a Event>,
    /// The judgement that led there, and the rule it followed.
    pub because: Option<(Verdict, Code, Origin)>,
}

impl Recorded {
    /// Reads a session; nothing where there is none.
    pub async fn read(ledger: &Arc<dyn Ledger>, session: &SessionId) -> Result<Option<Self>, Error> {
        let Some(trace) = ledger.trace(session).await? else { return Ok(None) };
        let events: Vec<Event> = trace.events.into_iter().map(|stored| stored.event).collect();
        let mut rules = BTreeMap::new();
        for received in calls(&events).map(|(received, _)| received) {
            if !rules.contains_key(&received.rules)
                && let Some(found) = ledger.rules(&received.rules).await?
            {
                rules.insert(received.rules.clone(), found);
            }
        }
        Ok(Some(Self { events, rules }))
    }

    /// What became of each call.
    pub fn paths(&self) -> BTreeMap<CallId, CallPath> {
        paths(&self.events)
    }

    /// Decides it again by the rules it had.
    pub fn again(&self) -> Again {
        if let Err(why) = whole(&self.events) {
            return Again::NotDecidable(why.to_string());
        }
        let own = |received: &Received, _: Timestamp| Some(call_of(received, self.rules.get(&received.rules)?.clone()));
        match rerun(&self.events, own) {
            Ok(Rerun { difference: None, .. }) => Again::Same,
            Ok(Rerun { difference: Some(difference), .. }) => Again::Otherwise(in_words(&difference)),
            Err(TraceError::RulesMissing { .. }) => Again::NotDecidable("its rules are no longer kept".into()),
            Err(error @ TraceError::NewerDecider { .. }) => Again::NotDecidable(error.to_string()),
            Err(error) => Again::Otherwise(error.to_string()),
        }
    }

    /// Decides it again under a change. What a configuration does not serve is given back as a reason.
    pub fn under(&self, change: &Change) -> Result<Result<Rerun, String>, ConfigError> {
        let mut governed: BTreeMap<CallId, Call> = BTreeMap::new();
        for (received, at) in calls(&self.events) {
            let Some(had) = self.rules.get(&received.rules) else {
                return Ok(Err("its rules are no longer kept".into()));
            };
            let Some(rules) = change.rules(&received.tool, &received.upstream, had)? else {
                return Ok(Err(format!("`{}` has no upstream `{}`", change.file(), received.upstream)));
            };
            governed.insert(received.call.clone(), call_under(received, at, had, rules));
        }
        let call = |received: &Received, _: Timestamp| governed.get(&received.call).cloned();
        Ok(rerun(&self.events, call).map_err(|error| error.to_string()))
    }
}

fn calls(events: &[Event]) -> impl Iterator<Item = (&Received, Timestamp)> {
    events.iter().filter_map(|event| match &event.fact {
        Fact::CallReceived { received, .. } => Some((&**received, event.at)),
        _ => None,
    })
}

fn in_words(difference: &Difference) -> String {
    let name = |event: &Option<Event>| event.as_ref().map_or("nothing", |event| event.fact.name());
    let (recorded, decided) = (name(&difference.recorded), name(&difference.decided));
    let older = if difference.is_older() { "; an older program decided there" } else { "" };
    format!("at event {} stands `{recorded}`, and `{decided}` is decided{older}", difference.seq)
}

/// The events about a call, what became of its questions among them.
pub fn events_of<'a>(events: &'a [Event], call: &CallId) -> Vec<&'a Event> {
    let mut asked = BTreeSet::new();
    let about = |event: &&'a Event| match &event.fact {
        Fact::InteractionOpened { interaction } if interaction.call == *call => {
            asked.insert(&interaction.id);
            true
        }
        Fact::InteractionAnswered { interaction, .. }
        | Fact::InteractionLapsed { interaction, .. }
        | Fact::InteractionWithdrawn { interaction } => asked.contains(interaction),
        fact => fact.call() == Some(call),
    };
    events.iter().filter(about).collect()
}

/// The first thing that differs about a call; nothing where all is the same.
pub fn first_difference<'a>(recorded: &'a [Event], decided: &'a [Event], call: &CallId) -> Option<Otherwise<'a>> {
    let (was, is) = (events_of(recorded, call), events_of(decided, call));
    let same = was.iter().zip(&is).take_while(|(was, is)| was.at == is.at && was.fact == is.fact).count();
    if same == was.len() && same == is.len() {
        return None;
    }
    let mut code = Code::LifecycleFailure;
    let mut because = None;
    for event in is.iter().take(same + 1) {
        match &event.fact {
            Fact::AttemptEnded { report, .. } => {
                code = report.failure.as_ref().map_or(code, |failure| failure.code);
                because = None;
            }
            Fact::AttemptTimedOut { .. } => code = Code::NetworkTimeout,
            Fact::AttemptOrphaned { .. } => code = Code::ConnectionLost,
            Fact::FailureJudged { verdict, rule, .. } => because = Some((*verdict, code, *rule)),
            _ => {}
        }
    }
    Some(Otherwise { recorded: was.get(same).copied(), decided: is.get(same).copied(), because })
}

/// How a call goes under a change, in words.
pub fn end_in_words(path: Option<&CallPath>, beyond: Option<&Beyond>) -> String {
    match (beyond, path) {
        (Some(beyond), _) => format!("beyond what was recorded: {}", beyond.words()),
        (None, Some(path)) => {
            let end =
                path.end.map_or_else(|| "still open".to_owned(), amends_core::dispatcher::redecide::CallEnd::words);
            let told = path.told_after_ms.map(|ms| format!(", told after {ms} ms")).unwrap_or_default();
            let asked = if path.asked > 0 { format!(", people asked {}", path.asked) } else { String::new() };
            format!("{end}, sent {}{asked}{told}", times(path.sends))
        }
        (None, None) => "not there at all".to_owned(),
    }
}

fn times(n: u32) -> String {
    match n {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        n => format!("{n} times"),
    }
}
