//! What is masked of a step before it is recorded, and of a result before an agent gets it.

use amends_core::privacy::{Mask, Quoted};
use amends_core::{CallId, Fact, Input, Purpose, Report};
use amends_ledger::Append;
use amends_wire::mcp::classify::structured;
use bytes::Bytes;

use super::session::{Live, Session};
use crate::config::{PiiConfig, PrivacyConfig, withheld};

impl Session {
    /// Masks what a step says in words. What was decided does not depend on it, and the agent gets the words as they are.
    pub(super) fn mask(&self, input: &Input, append: &mut Append) {
        let about = subject(input);
        let config = self.gateway.config();
        for event in &mut append.events {
            let call = event.fact.call().or(about).cloned();
            let (mask, quoted) = self.mask_of(&config.privacy, call.as_ref(), &event.fact);
            mask.event(event, &quoted);
        }
        for asked in &mut append.asks {
            let live = self.live.get(&asked.call);
            let mask = config.privacy.of(asked.tool.as_str());
            mask.interaction(asked, &live.map(|live| quoted_of_call(mask, live)).unwrap_or_default());
        }
    }

    /// What is masked of a call, and the values of its private fields where the event can quote them.
    fn mask_of<'a>(&self, privacy: &'a PrivacyConfig, call: Option<&CallId>, fact: &Fact) -> (&'a Mask, Vec<Quoted>) {
        let live = call.and_then(|call| self.live.get(call));
        let Some(live) = live else {
            return (privacy.shared(), Vec::new());
        };
        let mask = live.tool.as_ref().map_or(privacy.shared(), |tool| privacy.of(tool.name.as_str()));
        let quoted = match fact {
            fact if !mask.has_fields() || !mask.reads(fact) => Vec::new(),
            // What it shows is a copy of what was recorded of the call before there was a result.
            Fact::InteractionOpened { .. } => quoted_of_call(mask, live),
            _ => quoted(mask, live),
        };
        (mask, quoted)
    }
}

/// Masks what an agent must not see in the upstream's own words about a failure.
pub(super) fn mask_words(pii: &PiiConfig, live: &Live, report: &mut Report) {
    let Some(words) = report.failure.as_mut().and_then(|failure| failure.upstream.as_mut()) else { return };
    let sieves = live.tool.as_ref().map_or(pii.shared(), |tool| pii.of(tool.name.as_str()));
    for text in [&mut words.code, &mut words.text, &mut words.field].into_iter().flatten() {
        sieves.results.mask_text(text);
    }
}

/// What an agent gets in the place of a result that holds what it must not; nothing where it may have all of it. What was masked is
/// noted in the report.
pub(super) fn shown(
    pii: &PiiConfig,
    live: &Live,
    purpose: Purpose,
    result: &Bytes,
    report: &mut Report,
) -> Option<Bytes> {
    let sieves = live.tool.as_ref().map_or(pii.shared(), |tool| pii.of(tool.name.as_str()));
    let text = std::str::from_utf8(result).ok()?;
    let withheld = sieves.withheld.masked(text, || structured(text)).map(|(_, found)| (withheld(&found), found));
    let (masked, found) = withheld.or_else(|| sieves.results.masked(text, || structured(text)))?;
    // A move goes on with what its calls gave; it is masked when that leaves.
    if purpose == Purpose::Act && report.failure.is_none() && live.leg.is_none() {
        report.shape.get_or_insert_default().masked = found.into_iter().collect();
    }
    Some(Bytes::from(masked))
}

/// The call that an input is about.
fn subject(input: &Input) -> Option<&CallId> {
    match input {
        Input::Call(call) => Some(&call.id),
        Input::Result { attempt, .. } | Input::Inquiry { attempt, .. } | Input::Name { attempt, .. } => {
            Some(&attempt.call)
        }
        Input::Inputs { call, .. } | Input::Withdrawal { call, .. } => Some(call),
        Input::Cancel { call, .. } | Input::Delivery { call } => Some(call),
        Input::Move(taking) => Some(&taking.id),
        Input::Weighed { of, .. } | Input::Unwound { of, .. } => Some(of),
        Input::Answer { .. }
        | Input::Tick
        | Input::Resume
        | Input::Drift(_)
        | Input::Approval { .. }
        | Input::Begin(_)
        | Input::Migrate { .. }
        | Input::Retire { .. } => None,
    }
}

/// The values of a call's private fields, in its arguments and its results.
fn quoted(mask: &Mask, live: &Live) -> Vec<Quoted> {
    if !mask.has_fields() {
        return Vec::new();
    }
    let mut quoted = quoted_of_call(mask, live);
    for result in live.results.values() {
        if let Some(found) = structured(&String::from_utf8_lossy(result)) {
            quoted.extend(mask.quoted_of_result(&found));
        }
    }
    quoted
}

/// The values of a call's private fields in its arguments.
fn quoted_of_call(mask: &Mask, live: &Live) -> Vec<Quoted> {
    if !mask.has_fields() {
        return Vec::new();
    }
    live.arguments().map(|arguments| mask.quoted_of_arguments(&arguments)).unwrap_or_default()
}
