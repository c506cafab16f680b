//! What a question is based on, compared with what it was: both sides as they may be shown, found in the questions that are kept.

use amends_core::evidence::Changed;
use amends_core::interaction::Read;
use amends_ledger::QueueEntry;
use serde_json::{Value, json};

/// How many questions of a queue are looked at for what something said.
pub const QUESTIONS_MAX: usize = 1000;
/// How many lines of a side are compared; of more, all count as different.
const LINES_MAX: usize = 400;

/// Something that a question is based on and that says something else than it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The tool that reads it.
    pub tool: String,
    /// What it said.
    pub was: Side,
    /// What it says.
    pub is: Side,
}

/// What something said at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The hash of that.
    pub hash: String,
    /// As far as it may be shown, where a question kept it.
    pub view: Option<String>,
}

/// A line of a side, and whether only that side has it.
pub type Line = (bool, String);

impl Difference {
    /// It for a program.
    pub fn to_json(&self) -> Value {
        let mut told = json!({ "reference": self.tool, "was": self.was.hash, "is": self.is.hash });
        for (name, side) in [("was_view", &self.was), ("is_view", &self.is)] {
            if let Some(view) = &side.view {
                told[name] = json!(view);
            }
        }
        told
    }

    /// The lines of what it said, and of what it says.
    pub fn lines(&self) -> (Vec<Line>, Vec<Line>) {
        marked(&self.was.lines(), &self.is.lines())
    }
}

impl Side {
    fn of(hash: &str, all: &[QueueEntry]) -> Self {
        let kept = all.iter().flat_map(reads).find(|read| read.hash.as_str() == hash && read.view.is_some());
        Self { hash: hash.to_owned(), view: kept.and_then(|read| read.view.clone()) }
    }

    /// A line for each member where it is JSON; the hash, where nothing else is known.
    fn lines(&self) -> Vec<String> {
        let text = self.view.as_deref().unwrap_or(&self.hash);
        let read = serde_json::from_str::<Value>(text).ok();
        let pretty = read.and_then(|value| serde_json::to_string_pretty(&value).ok());
        pretty.as_deref().unwrap_or(text).lines().map(str::to_owned).collect()
    }
}

/// What a question is based on and says something else than it did: what its own call found to have changed, else what was read when
/// the same was asked for before. `all` are the questions in which that is looked for.
pub fn differences(entry: &QueueEntry, compared: &[Changed], all: &[QueueEntry]) -> Vec<Difference> {
    if !compared.is_empty() {
        let difference = |changed: &Changed| Difference {
            tool: changed.reference.clone(),
            was: Side::of(changed.was.as_str(), all),
            is: Side::of(changed.is.as_str(), all),
        };
        return compared.iter().map(difference).collect();
    }
    let Some(before) = before(entry, all) else { return Vec::new() };
    // What one call is based on is read in the same order each time.
    let pairs = reads(before).zip(reads(entry)).filter(|(was, is)| was.tool == is.tool && was.hash != is.hash);
    let side = |read: &Read| Side { hash: read.hash.to_string(), view: read.view.clone() };
    pairs.map(|(was, is)| Difference { tool: is.tool.to_string(), was: side(was), is: side(is) }).collect()
}

/// The last question before that one in which the same was asked for.
fn before<'a>(entry: &QueueEntry, all: &'a [QueueEntry]) -> Option<&'a QueueEntry> {
    let of = &entry.interaction;
    let grounds = of.grounds.as_ref()?;
    let same = |other: &&QueueEntry| {
        let other = &other.interaction;
        let asked = (&other.principal, &other.tool) == (&of.principal, &of.tool);
        let arguments = other.grounds.as_ref().is_some_and(|other| other.arguments == grounds.arguments);
        asked && arguments && other.call != of.call && other.opened <= of.opened
    };
    all.iter().filter(same).max_by_key(|other| other.interaction.opened)
}

fn reads(entry: &QueueEntry) -> impl Iterator<Item = &Read> {
    entry.interaction.grounds.iter().flat_map(|grounds| &grounds.evidence)
}

/// Both sides, each line with whether only that side has it: all but the longest sequence of lines that both have.
fn marked(was: &[String], is: &[String]) -> (Vec<Line>, Vec<Line>) {
    let all = |lines: &[String]| lines.iter().map(|line| (true, line.clone())).collect::<Vec<Line>>();
    if was.len().max(is.len()) > LINES_MAX {
        return (all(was), all(is));
    }
    // How many lines both have in common from there on.
    let mut common = vec![vec![0_usize; is.len() + 1]; was.len() + 1];
    for a in (0..was.len()).rev() {
        for b in (0..is.len()).rev() {
            common[a][b] = match was[a] == is[b] {
                true => common[a + 1][b + 1] + 1,
                false => common[a + 1][b].max(common[a][b + 1]),
            };
        }
    }
    let (mut left, mut right) = (all(was), all(is));
    let (mut a, mut b) = (0, 0);
    while a < was.len() && b < is.len() {
        if was[a] == is[b] {
            (left[a].0, right[b].0) = (false, false);
            (a, b) = (a + 1, b + 1);
        } else if common[a + 1][b] >= common[a][b + 1] {
            a += 1;
        } else {
            b += 1;
        }
    }
    (left, right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(view: Option<&str>) -> Side {
        Side { hash: "h".into(), view: view.map(str::to_owned) }
    }

    #[test]
    fn only_what_differs_is_marked() {
        let (was, is) = (r#"{"a":1,"b":{"c":2,"d":3}}"#, r#"{"a":1,"b":{"c":5,"d":3},"e":6}"#);
        let difference = Difference { tool: "t".into(), was: side(Some(was)), is: side(Some(is)) };
        let (left, right) = difference.lines();
        let marked = |lines: Vec<Line>| -> Vec<String> {
            lines.into_iter().filter(|(only, _)| *only).map(|(_, line)| line.trim().to_owned()).collect()
        };
        assert_eq!(marked(left), ["\"c\": 2,", "}"]);
        assert_eq!(marked(right), ["\"c\": 5,", "},", "\"e\": 6"]);
    }

    #[test]
    fn what_is_not_known_is_told_by_its_hash() {
        let difference = Difference { tool: "t".into(), was: side(Some("no JSON")), is: side(None) };
        assert_eq!(difference.lines(), (vec![(true, "no JSON".into())], vec![(true, "h".into())]));
        let told = difference.to_json();
        assert_eq!((&told["was_view"], told.get("is_view")), (&json!("no JSON"), None));
        let long = vec!["x".to_owned(); LINES_MAX + 1];
        assert!(marked(&long, &long).0.iter().all(|(only, _)| *only));
        assert_eq!(marked(&[], &[]), (vec![], vec![]));
    }
}
