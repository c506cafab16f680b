//! Rows as columns: what `UNNEST` takes.

use super::connection::Value;
use super::ground::Ground;
use crate::append::Form;
use crate::claims::ClaimRow;
use crate::reversals::{ReversalRow, StoredUndo};
use crate::stored::{ms, number, word};

/// The sessions that a group of steps changes, by their ids.
#[derive(Default)]
pub(super) struct Sessions<'a> {
    pub(super) ids: Vec<&'a str>,
    pub(super) epochs: Vec<i64>,
    was: Vec<i64>,
    seqs: Vec<i64>,
    heads: Vec<&'a [u8]>,
    updated: Vec<i64>,
    calls: Vec<i64>,
    dues: Vec<Option<i64>>,
    machines: Vec<Option<&'a str>>,
}

impl<'a> Sessions<'a> {
    /// Those that are new, or those that were there.
    pub(super) fn of(ground: &'a Ground, new: bool) -> Self {
        let mut columns = Self::default();
        for (id, standing) in ground.sessions.iter().filter(|(_, row)| row.changed && row.was.is_none() == new) {
            columns.ids.push(id.as_str());
            columns.epochs.push(number(standing.place.epoch));
            columns.was.push(number(standing.was.map_or(0, |place| place.seq)));
            columns.seqs.push(number(standing.place.seq));
            columns.heads.push(standing.head.bytes());
            columns.updated.push(ms(standing.updated));
            columns.calls.push(i64::from(standing.open.calls));
            columns.dues.push(standing.open.due.map(ms));
            columns.machines.push(standing.machine.as_deref());
        }
        columns
    }

    pub(super) fn values(&self) -> Vec<Value<'_>> {
        vec![&self.ids, &self.was, &self.seqs, &self.heads, &self.updated, &self.calls, &self.dues, &self.machines]
    }
}

/// The claims that a group of steps leaves held, by their names.
#[derive(Default)]
pub(super) struct Claims<'a> {
    pub(super) names: Vec<&'a str>,
    /// The calls that held them before.
    pub(super) holders: Vec<&'a str>,
    kinds: Vec<String>,
    sessions: Vec<&'a str>,
    calls: Vec<&'a str>,
    states: Vec<String>,
    fingerprints: Vec<&'a str>,
    effect_keys: Vec<&'a str>,
    since: Vec<i64>,
    until: Vec<Option<i64>>,
}

impl<'a> Claims<'a> {
    /// Those that were not held, or those that were.
    pub(super) fn of(ground: &'a Ground, new: bool) -> Self {
        let mut columns = Self::default();
        for (name, slot) in ground.claims.iter().filter(|(_, slot)| slot.changed && slot.was.is_none() == new) {
            let Some(ClaimRow { held, kind, until }) = &slot.left else {
                continue;
            };
            columns.names.push(name.as_str());
            columns.holders.extend(slot.was.as_ref().map(|was| was.held.call.as_str()));
            columns.kinds.push(word(kind));
            columns.sessions.push(held.session.as_str());
            columns.calls.push(held.call.as_str());
            columns.states.push(word(&held.state));
            columns.fingerprints.push(held.fingerprint.as_str());
            columns.effect_keys.push(&held.effect_key);
            columns.since.push(ms(held.since));
            columns.until.push(until.map(ms));
        }
        columns
    }

    pub(super) fn values(&self) -> Vec<Value<'_>> {
        vec![
            &self.names,
            &self.kinds,
            &self.sessions,
            &self.calls,
            &self.states,
            &self.fingerprints,
            &self.effect_keys,
            &self.since,
            &self.until,
        ]
    }
}

/// The reversal tokens that a group of steps changes, by their digests.
#[derive(Default)]
pub(super) struct Tokens<'a> {
    pub(super) rows: Vec<&'a ReversalRow>,
    tokens: Vec<&'a str>,
    sessions: Vec<&'a str>,
    calls: Vec<&'a str>,
    states: Vec<String>,
    minted: Vec<i64>,
    until: Vec<Option<i64>>,
    redeemers: Vec<Option<&'a str>>,
    places: Vec<Option<&'a str>>,
    principals: Vec<Option<&'a str>>,
    tools: Vec<Option<&'a str>>,
    arguments: Vec<Option<&'a [u8]>>,
}

impl<'a> Tokens<'a> {
    /// Those that are new, or those that were there.
    pub(super) fn of(ground: &'a Ground, new: bool) -> Self {
        let mut columns = Self::default();
        for slot in ground.tokens.values().filter(|slot| slot.changed && slot.was.is_none() == new) {
            let Some(row) = &slot.left else {
                continue;
            };
            let undo: Option<&StoredUndo> = row.undo.as_ref();
            columns.rows.push(row);
            columns.tokens.push(row.token.as_str());
            columns.sessions.push(row.session.as_str());
            columns.calls.push(row.call.as_str());
            columns.states.push(word(&row.state));
            columns.minted.push(ms(row.minted));
            columns.until.push(row.until.map(ms));
            columns.redeemers.push(row.by.as_ref().map(|by| by.as_str()));
            columns.places.push(undo.map(|undo| undo.place.as_str()));
            columns.principals.push(undo.map(|undo| undo.principal.as_str()));
            columns.tools.push(undo.map(|undo| undo.tool.as_str()));
            columns.arguments.push(undo.map(|undo| &undo.arguments[..]));
        }
        columns
    }

    pub(super) fn values(&self) -> Vec<Value<'_>> {
        vec![
            &self.tokens,
            &self.sessions,
            &self.calls,
            &self.states,
            &self.minted,
            &self.until,
            &self.redeemers,
            &self.places,
            &self.principals,
            &self.tools,
            &self.arguments,
        ]
    }
}

/// What an answer's bytes are, as it is stored.
pub(super) fn form(form: Form) -> &'static str {
    match form {
        Form::Forward => "forward",
        Form::Envelope => "envelope",
        Form::Asked => "asked",
    }
}
