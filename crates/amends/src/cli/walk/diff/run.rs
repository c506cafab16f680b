//! What was made in a walk, from the beginning: that of a fork is in the walks it comes from.

use std::collections::BTreeMap;
use std::sync::Arc;

use amends_core::id::MachineName;
use amends_core::machine::MachineSpec;
use amends_core::walk::Fork;
use amends_core::{Event, Fact, SessionId};
use amends_gateway::walks::steps::{Entry, history};
use amends_ledger::{Ledger, Trace};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::super::found;

/// What was made in a walk, from the beginning.
pub(super) struct Run {
    /// The machine it walks.
    pub(super) machine: MachineName,
    /// The fields it began with.
    pub(super) fields: Value,
    /// Each move by its number.
    pub(super) moves: BTreeMap<u64, Made>,
    /// The walk it is, and those it comes from, the first last.
    lineage: Vec<SessionId>,
}

/// A move that was made.
pub(super) struct Made {
    pub(super) entry: Entry,
    /// What it wrote into the fields; of a reset, those that it began again with.
    pub(super) wrote: Value,
}

impl Run {
    /// The run of a walk, with what was made in the walks it was forked from until then.
    pub(super) async fn of(ledger: &Arc<dyn Ledger>, id: &str) -> Result<Self> {
        let mut part = Part::of(ledger, id).await?;
        let mut lineage = vec![part.session.clone()];
        let mut moves = std::mem::take(&mut part.moves);
        // It ends: a walk is forked from one that was there before it.
        while let Some(Fork { session, seq, .. }) = part.from.take() {
            if lineage.contains(&session) {
                bail!("`{session}` comes from itself: what this ledger holds does not fit together");
            }
            let fork = lineage.last().map(ToString::to_string).unwrap_or_default();
            let of = Part::of(ledger, session.as_str()).await;
            part = of.with_context(|| format!("what was done before `{fork}` was forked cannot be read"))?;
            moves.extend(std::mem::take(&mut part.moves).into_iter().filter(|(its, _)| *its <= seq));
            lineage.push(session);
        }
        Ok(Self { machine: part.machine, fields: part.fields, moves, lineage })
    }

    /// How many moves both begin with, where they are two walks of which one comes from the other, or both from a third.
    pub(super) fn shares_with(&self, other: &Self) -> Option<u64> {
        let related = self.lineage.iter().any(|session| other.lineage.contains(session));
        if !related || self.lineage.first() == other.lineage.first() {
            return None;
        }
        let same = |(seq, made): &(&u64, &Made)| other.moves.get(seq).is_some_and(|its| its.entry.id == made.entry.id);
        Some(self.moves.iter().take_while(same).last().map_or(0, |(seq, _)| *seq))
    }

    /// How many moves were made.
    pub(super) fn length(&self) -> u64 {
        self.moves.last_key_value().map_or(0, |(seq, _)| *seq)
    }
}

/// What was made in one walk alone.
struct Part {
    session: SessionId,
    machine: MachineName,
    /// What it was forked from.
    from: Option<Fork>,
    fields: Value,
    moves: BTreeMap<u64, Made>,
}

impl Part {
    async fn of(ledger: &Arc<dyn Ledger>, id: &str) -> Result<Self> {
        let trace = found(ledger, id).await?;
        let written = ledger.fields(&trace.session).await?;
        let wrote = |seq: u64| -> Value {
            let body = written.iter().find(|(its, _)| *its == seq).map(|(_, body)| body);
            body.and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default()
        };
        let began = trace.events.iter().find_map(|stored| match &stored.event.fact {
            Fact::WalkBegan { beginning } => Some(beginning),
            _ => None,
        });
        let began = began.with_context(|| format!("`{id}` never began"))?;
        let again = resets(&trace, &began.machine);
        let made = |entry: Entry| {
            let seq = entry.seq?;
            Some((seq, Made { wrote: again.get(&seq).cloned().unwrap_or_else(|| wrote(seq)), entry }))
        };
        let moves = history(events(&trace)).into_iter().filter_map(made).collect();
        let (machine, from) = (began.machine.clone(), began.from.clone());
        Ok(Self {
            session: trace.session.clone(),
            machine,
            from,
            fields: initial(&began.definition, &began.machine),
            moves,
        })
    }
}

/// The fields with which the walk began again, by the number of each reset: they are those of what was declared then.
fn resets(trace: &Trace, machine: &MachineName) -> BTreeMap<u64, Value> {
    let mut found = BTreeMap::new();
    let (mut declared, mut wished) = (Value::Null, None);
    for event in events(trace) {
        match &event.fact {
            Fact::WalkBegan { beginning } => declared = initial(&beginning.definition, machine),
            Fact::WalkMigrated { definition, .. } => declared = initial(definition, machine),
            Fact::MoveReceived { taking, gates } if taking.reset => {
                wished = gates.declared.as_ref().map(|declared| initial(&declared.definition, machine));
            }
            Fact::WalkReset { moves, .. } => {
                declared = wished.take().unwrap_or(declared);
                found.insert(*moves, declared.clone());
            }
            _ => {}
        }
    }
    found
}

/// The fields that a machine is declared to begin with.
fn initial(definition: &BTreeMap<MachineName, MachineSpec>, machine: &MachineName) -> Value {
    definition.get(machine).map(|spec| Value::Object(spec.fields.clone())).unwrap_or_default()
}

fn events(trace: &Trace) -> impl Iterator<Item = &Event> {
    trace.events.iter().map(|stored| &stored.event)
}
