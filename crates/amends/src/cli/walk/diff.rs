//! `amends walk diff A B`: two walks side by side.

mod run;

use std::process::ExitCode;

use amends_gateway::walks::steps::moves;
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use super::super::ledger::LedgerArgs;
use super::super::outcome::print;
use run::{Made, Run};

/// How many characters of a digest are shown.
const DIGEST_CHARS: usize = 12;
/// What two walks may begin with, and two moves may write, though all else is the same.
const FIELDS: &str = "fields";
/// What two walks may walk through that have the same actions.
const MACHINE: &str = "machine";

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
    let both = Both { a: Run::of(&ledger, &args.a).await?, b: Run::of(&ledger, &args.b).await? };
    let first = both.first_difference();
    print(&if args.json { both.data(first)? } else { both.text([&args.a, &args.b], first) })?;
    Ok(if first.is_some() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Two runs, whose moves of one number stand side by side.
struct Both {
    a: Run,
    b: Run,
}

/// The number of a move, 0 for the beginning, and what of it is another.
type Difference = (u64, &'static str);

impl Both {
    fn first_difference(&self) -> Option<Difference> {
        let (a, b) = (&self.a, &self.b);
        if a.machine != b.machine {
            return Some((0, MACHINE));
        }
        if a.fields != b.fields {
            return Some((0, FIELDS));
        }
        (1..=self.length()).find_map(|seq| Some((seq, difference(a.moves.get(&seq), b.moves.get(&seq))?)))
    }

    /// How many moves the longer one has.
    fn length(&self) -> u64 {
        self.a.length().max(self.b.length())
    }

    /// How many moves are those of one walk.
    fn shared(&self) -> u64 {
        self.a.shares_with(&self.b).unwrap_or_default()
    }

    fn data(&self, first: Option<Difference>) -> Result<String> {
        let told = |run: &Run| run.moves.range(self.shared() + 1..).map(|(_, made)| data(made)).collect::<Vec<_>>();
        let difference = first.map(|(seq, what)| json!({ "move": seq, "what": what }));
        let mut said = json!({ "a": told(&self.a), "b": told(&self.b), "first_difference": difference });
        if let Some(shared) = self.a.shares_with(&self.b) {
            said["shared"] = shared.into();
        }
        Ok(serde_json::to_string_pretty(&said)?)
    }

    fn text(&self, ids: [&str; 2], first: Option<Difference>) -> String {
        let mut text = format!("{:>5}  {:<44}  {:<44}\n", "MOVE", ids[0], ids[1]);
        for seq in self.shared() + 1..=self.length() {
            let mark = if first.is_some_and(|(at, _)| at == seq) { '*' } else { ' ' };
            let (left, right) = (cell(self.a.moves.get(&seq)), cell(self.b.moves.get(&seq)));
            text.push_str(&format!("{mark}{seq:>4}  {left:<44}  {right:<44}\n"));
        }
        if self.shared() > 0 {
            text.push_str(&format!("until move {} they are one walk\n", self.shared()));
        }
        text.push_str(&match first {
            Some((0, MACHINE)) => format!("they walk through `{}` and `{}`", self.a.machine, self.b.machine),
            Some((0, what)) => format!("they begin with other {what}"),
            Some((seq, what)) => format!("they first differ in the {what} of move {seq}"),
            None => format!("they are the same: {}", moves(self.length())),
        });
        if let Some((seq, FIELDS)) = first {
            text.push_str(&format!("\n{}  {}\n{}  {}", ids[0], wrote(&self.a, seq), ids[1], wrote(&self.b, seq)));
        }
        text
    }
}

/// What a move wrote into the fields, or with which they began.
fn wrote(run: &Run, seq: u64) -> String {
    match seq {
        0 => run.fields.to_string(),
        seq => run.moves.get(&seq).map(|made| made.wrote.to_string()).unwrap_or_default(),
    }
}

/// In what two moves differ, if they do.
fn difference(a: Option<&Made>, b: Option<&Made>) -> Option<&'static str> {
    let (Some(a), Some(b)) = (a, b) else { return Some("action") };
    let (one, other) = (&a.entry, &b.entry);
    if one.action != other.action {
        Some("action")
    } else if one.inputs_digest != other.inputs_digest {
        Some("inputs")
    } else if one.from != other.from || one.to != other.to || one.enters != other.enters {
        Some("state")
    } else {
        (a.wrote != b.wrote).then_some(FIELDS)
    }
}

fn data(made: &Made) -> Value {
    let mut told = serde_json::to_value(&made.entry).unwrap_or_default();
    told[FIELDS] = made.wrote.clone();
    told
}

fn cell(made: Option<&Made>) -> String {
    let Some(Made { entry, .. }) = made else { return "-".to_owned() };
    let action = entry.action.as_ref().map_or("(reset)", |action| action.as_str());
    let digest: String = entry.inputs_digest.as_str().chars().take(DIGEST_CHARS).collect();
    format!("{action} {digest} {}", entry.words())
}
