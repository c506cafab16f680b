//! The shop's book: what really arrived and what really happened, wish by wish.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

/// What the book says of all wishes.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) truths: HashMap<String, Truth>,
    /// Everything that arrived, reads for the sake of a write included.
    pub(crate) requests: usize,
}

/// What the book says of one wish.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    /// When its requests arrived, and the fault each met.
    pub(crate) requests: Vec<(i64, Option<String>)>,
    /// When its effects happened.
    pub(crate) effects: Vec<i64>,
}

#[derive(Debug, Deserialize)]
struct Statement {
    effects: Vec<EffectRow>,
    requests: Vec<RequestRow>,
}

#[derive(Debug, Deserialize)]
struct EffectRow {
    at_ms: i64,
    order_id: Option<String>,
    body: Value,
}

#[derive(Debug, Deserialize)]
struct RequestRow {
    at_ms: i64,
    tool: String,
    args: Value,
    fault: Option<String>,
}

impl Book {
    /// Asks the shop for its book.
    pub(crate) fn read(amends: &Path, book: &Path) -> Result<Self> {
        let said = Command::new(amends).args(["shop", "book", "--json", "--book"]).arg(book).output()?;
        ensure!(said.status.success(), "no book: {}", String::from_utf8_lossy(&said.stderr));
        Ok(Self::from_statement(serde_json::from_slice(&said.stdout).context("the book is not as expected")?))
    }

    fn from_statement(statement: Statement) -> Self {
        let mut book = Self { requests: statement.requests.len(), ..Self::default() };
        for row in statement.requests {
            // A status read names no wish, or is another tool than the wish's.
            if let Some(name) = name(&row.args).filter(|_| row.tool != "get_refund") {
                book.truths.entry(name).or_default().requests.push((row.at_ms, row.fault));
            }
        }
        for row in statement.effects {
            if let Some(name) = row.order_id.or_else(|| name(&row.body)) {
                book.truths.entry(name).or_default().effects.push(row.at_ms);
            }
        }
        book
    }

    /// Whether every effect that was to come late has come.
    pub(crate) fn is_settled(&self) -> bool {
        let late = |truth: &Truth| truth.requests.iter().any(|(_, fault)| fault.as_deref() == Some("late_effect"));
        self.truths.values().all(|truth| !late(truth) || !truth.effects.is_empty())
    }
}

fn name(value: &Value) -> Option<String> {
    value["order"].as_str().or_else(|| value["subject"].as_str()).map(str::to_owned)
}

impl Truth {
    /// The requests beyond the first that served nothing: the effect had happened already, or an earlier refusal lasts.
    pub(crate) fn needless(&self) -> usize {
        let happened = self.effects.iter().min();
        let refused = |fault: &Option<String>| {
            fault.as_deref().is_some_and(|fault| matches!(fault, "forbidden" | "unprocessable" | "precondition"))
        };
        let mut refused_before = false;
        let mut needless = 0;
        for (n, (at, fault)) in self.requests.iter().enumerate() {
            // A request makes its own effect in the millisecond of its arrival, or later.
            let done_before = n > 0 && happened.is_some_and(|happened| happened < at);
            needless += usize::from(done_before || refused_before);
            refused_before |= refused(fault);
        }
        needless
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_after_the_effect_or_after_a_refusal_is_needless() {
        let fault = |name: &str| Some(name.to_owned());
        let again = Truth { requests: vec![(1, fault("lose_response")), (9, None)], effects: vec![1] };
        assert_eq!(again.needless(), 1);
        let needed = Truth { requests: vec![(1, fault("status_500")), (9, None)], effects: vec![9] };
        assert_eq!(needed.needless(), 0);
        let hopeless = Truth { requests: vec![(1, fault("forbidden")), (9, fault("forbidden"))], effects: vec![] };
        assert_eq!(hopeless.needless(), 1);
    }
}
