//! `amends walk diff A B`: two walks side by side.

use std::process::ExitCode;
use std::sync::Arc;

use amends_core::{Fact, SessionId};
use amends_gateway::walks::steps::{Entry, history};
use amends_ledger::Ledger;
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use super::super::ledger::LedgerArgs;
use super::super::outcome::print;
use super::found;

/// How many characters of a digest are shown.
const DIGEST_CHARS: usize = 12;
/// What two moves may differ in though all else is the same.
const FIELDS: &str = "fields";

/// The flags of `amends walk diff`.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// A walk (`ses_…`).
    a: String,
    /// Another.
    b: String,
    #[command(flatten)]
    ledger: LedgerArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn diff(args: DiffArgs) -> Result<ExitCode> {
    let ledger = args.ledger.open().await?;
    let (a, b) = (Made::of(&ledger, &args.a).await?, Made::of(&ledger, &args.b).await?);
    let shared = a.shares_with(&b);
    // Of a fork and the walk it was forked from, the moves after that point stand side by side.
    let (a, b) = (a.after(shared), b.after(shared));
    let length = a.moves.len().max(b.moves.len());
    let number = |n: usize| shared.unwrap_or_default() + n as u64 + 1;
    let first = (0..length).find_map(|n| Some((n, difference(a.moves.get(n), b.moves.get(n))?)));
    if args.json {
        let difference = first.map(|(n, what)| json!({ "move": number(n), "what": what }));
        let mut said = json!({ "a": a.told(), "b": b.told(), "first_difference": difference });
        if let Some(shared) = shared {
            said["shared"] = shared.into();
        }
        print(&serde_json::to_string_pretty(&said)?)?;
    } else {
        let mut text = format!("{:>5}  {:<44}  {:<44}\n", "MOVE", args.a, args.b);
        for n in 0..length {
            let mark = if first.is_some_and(|(at, _)| at == n) { '*' } else { ' ' };
            let (left, right) = (cell(a.moves.get(n)), cell(b.moves.get(n)));
            text.push_str(&format!("{mark}{:>4}  {left:<44}  {right:<44}\n", number(n)));
        }
        if let Some(shared) = shared {
            text.push_str(&format!("until move {shared} they are one walk\n"));
        }
        text.push_str(&match first {
            Some((n, what)) => format!("they first differ in the {what} of move {}", number(n)),
            None => format!("they are the same: {length} moves"),
        });
        if let Some((n, FIELDS)) = first {
            let wrote = |made: &Made| made.moves.get(n).map(|(_, wrote)| wrote.to_string()).unwrap_or_default();
            text.push_str(&format!("\n{}  {}\n{}  {}", args.a, wrote(&a), args.b, wrote(&b)));
        }
        print(&text)?;
    }
    Ok(if first.is_some() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// What was made in a walk.
struct Made {
    session: SessionId,
    /// The walk it was forked from, and after how many of its moves.
    from: Option<(SessionId, u64)>,
    /// Each move with what it wrote into the fields.
    moves: Vec<(Entry, Value)>,
}

impl Made {
    async fn of(ledger: &Arc<dyn Ledger>, id: &str) -> Result<Self> {
        let trace = found(ledger, id).await?;
        let written = ledger.fields(&trace.session).await?;
        let wrote = |seq: u64| -> Value {
            let body = written.iter().find(|(its, _)| *its == seq).map(|(_, body)| body);
            body.and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default()
        };
        let entries = history(trace.events.iter().map(|stored| &stored.event)).into_iter();
        let moves = entries.filter_map(|entry| entry.seq.map(|seq| (entry, wrote(seq)))).collect();
        let from = trace.events.iter().find_map(|stored| match &stored.event.fact {
            Fact::WalkBegan { beginning } => beginning.from.as_ref().map(|from| (from.session.clone(), from.seq)),
            _ => None,
        });
        Ok(Self { session: trace.session.clone(), from, moves })
    }

    /// How many moves both begin with, where one was forked from the other, or both from a third.
    fn shares_with(&self, other: &Self) -> Option<u64> {
        let of = |fork: &Self, parent: &Self| match &fork.from {
            Some((from, seq)) if *from == parent.session => Some(*seq),
            _ => None,
        };
        let alike = || match (&self.from, &other.from) {
            (Some((a, at)), Some((b, then))) if a == b => Some(*at.min(then)),
            _ => None,
        };
        of(self, other).or_else(|| of(other, self)).or_else(alike)
    }

    /// The same without the moves that both share.
    fn after(mut self, shared: Option<u64>) -> Self {
        self.moves.retain(|(entry, _)| entry.seq > shared);
        self
    }

    fn told(&self) -> Vec<Value> {
        let told = |(entry, wrote): &(Entry, Value)| {
            let mut told = serde_json::to_value(entry).unwrap_or_default();
            told[FIELDS] = wrote.clone();
            told
        };
        self.moves.iter().map(told).collect()
    }
}

/// In what two moves differ, if they do.
fn difference(a: Option<&(Entry, Value)>, b: Option<&(Entry, Value)>) -> Option<&'static str> {
    let (Some((a, a_wrote)), Some((b, b_wrote))) = (a, b) else { return Some("action") };
    if a.action != b.action {
        Some("action")
    } else if a.inputs_digest != b.inputs_digest {
        Some("inputs")
    } else if a.to != b.to || a.enters != b.enters {
        Some("state")
    } else {
        (a_wrote != b_wrote).then_some(FIELDS)
    }
}

fn cell(made: Option<&(Entry, Value)>) -> String {
    let Some((entry, _)) = made else { return "-".to_owned() };
    let action = entry.action.as_ref().map_or("(reset)", |action| action.as_str());
    let digest: String = entry.inputs_digest.as_str().chars().take(DIGEST_CHARS).collect();
    format!("{action} {digest} {}", entry.words())
}
