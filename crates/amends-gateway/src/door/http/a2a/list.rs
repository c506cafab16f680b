//! All tasks of whoever asks, page by page: the one that changed last comes first.
//!
//! What a task is now is told by its trace, so each is looked at. One that is over does not change any more, and what it was is
//! remembered here, so that the next page does not read every trace again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use amends_core::{SessionId, Timestamp};
use amends_ledger::SessionRow;
use amends_wire::a2a::{Refused, State, Trouble};
use amends_wire::object::quoted;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use serde_json::value::RawValue;

use super::methods::Answer;
use super::task::{Seen, TaskId, look};
use super::{Asker, DOOR, unavailable};
use crate::told::since_1970;

/// How many tasks a page has where nobody says, and at most.
const PAGE: usize = 50;
const PAGE_MAX: usize = 100;
/// How many sessions are read at once.
const ROWS_MAX: usize = 500;
/// How many tasks that are over are remembered.
const OVER_MAX: usize = 50_000;

/// What tasks that are over were, by their session.
#[derive(Debug, Default)]
pub(in crate::door::http) struct Over(Mutex<HashMap<SessionId, (u64, Brief)>>);

/// What a task is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Brief {
    state: State,
    since: Timestamp,
    context: String,
}

/// A place in the list: the time since when a task is what it is, and its id.
type Place = (Timestamp, String);

/// What is wanted.
struct Filter {
    context: Option<String>,
    state: Option<State>,
    since: Option<Timestamp>,
    size: usize,
    after: Option<Place>,
    artifacts: bool,
}

impl Over {
    fn find(&self, row: &SessionRow) -> Option<Brief> {
        let over = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        over.get(&row.session).filter(|(events, _)| *events == row.events).map(|(_, brief)| brief.clone())
    }

    fn keep(&self, row: &SessionRow, brief: &Brief) {
        let mut over = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if over.len() >= OVER_MAX {
            over.clear();
        }
        over.insert(row.session.clone(), (row.events, brief.clone()));
    }
}

impl Filter {
    fn read(params: &RawValue) -> Result<Self, Refused> {
        let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
        let text = |name: &str| params[name].as_str().filter(|text| !text.is_empty());
        let number = |name: &str| match &params[name] {
            Value::Null => Ok(None),
            value => value.as_u64().map(Some).ok_or_else(|| wrong(&format!("`{name}` is a whole number, 0 or more"))),
        };
        let state = match text("status").filter(|status| *status != "TASK_STATE_UNSPECIFIED") {
            Some(name) => Some(State::parse(name).ok_or_else(|| wrong("`status` is no state of a task"))?),
            None => None,
        };
        let size = match number("pageSize")? {
            None => PAGE,
            Some(size) if (1..=PAGE_MAX as u64).contains(&size) => size as usize,
            Some(_) => return Err(wrong(&format!("`pageSize` is from 1 to {PAGE_MAX}"))),
        };
        number("historyLength")?;
        let since = match text("statusTimestampAfter") {
            Some(time) => {
                Some(since_1970(time).ok_or_else(|| wrong("`statusTimestampAfter` is no time: 2026-01-31T12:00:00Z"))?)
            }
            None => None,
        };
        let after = match text("pageToken") {
            Some(token) => Some(place(token).ok_or_else(|| wrong("`pageToken` is not one that was given here"))?),
            None => None,
        };
        let artifacts = params["includeArtifacts"].as_bool().unwrap_or(false);
        Ok(Self { context: text("contextId").map(str::to_owned), state, since, size, after, artifacts })
    }

    fn fits(&self, brief: &Brief) -> bool {
        self.context.as_ref().is_none_or(|context| *context == brief.context)
            && self.state.is_none_or(|state| state == brief.state)
            && self.since.is_none_or(|since| brief.since >= since)
    }
}

impl Asker<'_> {
    /// One page of the tasks of whoever asks.
    pub(super) async fn list(&self, params: &RawValue) -> Result<Answer, Refused> {
        let filter = Filter::read(params)?;
        let (total, mut page) = self.found(&filter).await?;
        let next = match page.len() > filter.size {
            true => {
                page.truncate(filter.size);
                page.last().map(token).unwrap_or_default()
            }
            false => String::new(),
        };
        let mut tasks = Vec::new();
        for (_, id) in page {
            if let Some(seen) = look(&self.door.gateway, self.who, &TaskId::parse(&id)).await? {
                tasks.push(seen.view.task(self.version, filter.artifacts));
            }
        }
        let text = format!(
            "{{\"tasks\":[{}],\"nextPageToken\":{},\"pageSize\":{},\"totalSize\":{total}}}",
            tasks.join(","),
            quoted(&next),
            filter.size
        );
        Ok(Answer::Value(text))
    }

    /// How many tasks fit, and the places of those that come next, one more than a page has.
    async fn found(&self, filter: &Filter) -> Result<(usize, Vec<Place>), Refused> {
        let ledger = &self.door.gateway.ledger;
        let (mut total, mut next) = (0, Vec::new());
        let mut last: Option<SessionRow> = None;
        loop {
            let rows = ledger.sessions_by(self.who, DOOR, last.as_ref(), ROWS_MAX).await;
            let rows = rows.map_err(|error| unavailable(&error))?;
            for row in &rows {
                let Some(brief) = self.brief(row).await?.filter(|brief| filter.fits(brief)) else { continue };
                total += 1;
                let place = (brief.since, row.session.to_string());
                if filter.after.as_ref().is_none_or(|after| comes_after(&place, after)) {
                    next.push(place);
                }
            }
            next.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
            next.truncate(filter.size + 1);
            match rows.into_iter().last() {
                Some(row) => last = Some(row),
                None => return Ok((total, next)),
            }
        }
    }

    async fn brief(&self, row: &SessionRow) -> Result<Option<Brief>, Refused> {
        if let Some(brief) = self.door.over.find(row) {
            return Ok(Some(brief));
        }
        let id = TaskId { session: row.session.clone(), call: None };
        let Some(seen) = look(&self.door.gateway, self.who, &id).await? else { return Ok(None) };
        let brief = Brief { state: seen.view.state, since: seen.since, context: seen.view.context.clone() };
        if is_over(&seen) {
            self.door.over.keep(row, &brief);
        }
        Ok(Some(brief))
    }
}

/// Whether nothing becomes of a task any more. What is told of another call is looked at each time.
fn is_over(seen: &Seen) -> bool {
    seen.view.state.is_terminal() && !seen.elsewhere
}

/// Whether that place is after the other: it changed earlier, or at the same time with a later id.
fn comes_after(place: &Place, other: &Place) -> bool {
    place.0 < other.0 || (place.0 == other.0 && place.1 > other.1)
}

fn token((since, id): &Place) -> String {
    URL_SAFE_NO_PAD.encode(format!("{} {id}", since.ms()))
}

fn place(token: &str) -> Option<Place> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let (since, id) = text.split_once(' ')?;
    Some((Timestamp::from_ms(since.parse().ok()?), id.to_owned()))
}

fn wrong(words: &str) -> Refused {
    Refused::of(Trouble::InvalidParams, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_place_and_nothing_else_is_one() {
        let here = (Timestamp::from_ms(1_700_000_000_123), "ses_a".to_owned());
        assert_eq!(place(&token(&here)), Some(here.clone()));
        for odd in ["", "50", "!", "c2VzX2E"] {
            assert_eq!(place(odd), None, "{odd}");
        }
        let older = (Timestamp::from_ms(1), "ses_a".to_owned());
        let beside = (here.0, "ses_b".to_owned());
        assert!(comes_after(&older, &here) && comes_after(&beside, &here));
        assert!(!comes_after(&here, &here) && !comes_after(&here, &older));
    }
}
