//! The statement: what the book holds, for a reader.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use rusqlite::Row;
use serde::Serialize;
use serde_json::value::RawValue;

use super::book::{self, Book};

/// Everything in the book, as `amends shop book --json` prints it.
#[derive(Debug, Serialize)]
struct Statement {
    /// How many effects each tool had.
    counts: BTreeMap<String, usize>,
    effects: Vec<EffectRow>,
    requests: Vec<RequestRow>,
}

#[derive(Debug, Serialize)]
struct EffectRow {
    id: i64,
    at_ms: i64,
    tool: String,
    order_id: Option<String>,
    key: Option<String>,
    #[serde(rename = "ref")]
    reference: String,
    body: Box<RawValue>,
}

#[derive(Debug, Serialize)]
struct RequestRow {
    id: i64,
    at_ms: i64,
    tool: String,
    args: Box<RawValue>,
    fault: Option<String>,
    note: String,
}

/// Prints the book to standard output.
pub(crate) fn print(book: &Book, json: bool) -> Result<()> {
    let statement = Statement::read(book)?;
    if json {
        return crate::cli::print(&serde_json::to_string_pretty(&statement)?);
    }
    let mut text = Vec::new();
    statement.write(&mut text)?;
    crate::cli::print(String::from_utf8_lossy(&text).trim_end())
}

impl Statement {
    fn read(book: &Book) -> Result<Statement, book::Error> {
        let connection = book.connection();
        let effects = connection
            .prepare("SELECT id, at_ms, tool, order_id, key, ref, body FROM effects ORDER BY id")?
            .query_map([], EffectRow::read)?
            .collect::<Result<Vec<_>, _>>()?;
        let requests = connection
            .prepare("SELECT id, at_ms, tool, args, fault, note FROM requests ORDER BY id")?
            .query_map([], RequestRow::read)?
            .collect::<Result<Vec<_>, _>>()?;
        let mut counts = BTreeMap::new();
        for effect in &effects {
            *counts.entry(effect.tool.clone()).or_default() += 1;
        }
        Ok(Statement { counts, effects, requests })
    }

    fn write(&self, output: &mut impl Write) -> std::io::Result<()> {
        writeln!(output, "effects by tool")?;
        for (tool, count) in &self.counts {
            writeln!(output, "  {tool:<14} {count}")?;
        }
        writeln!(output, "effects")?;
        for row in &self.effects {
            let key = row.key.as_deref().unwrap_or("-");
            let order = row.order_id.as_deref().unwrap_or("-");
            writeln!(
                output,
                "  {:>4}  {:<14} {:<10} {order:<14} {key:<14} {}",
                row.id, row.tool, row.reference, row.body
            )?;
        }
        writeln!(output, "requests")?;
        for row in &self.requests {
            let fault = row.fault.as_deref().unwrap_or("-");
            writeln!(output, "  {:>4}  {:<14} {fault:<18} {:<10} {}", row.id, row.tool, row.note, row.args)?;
        }
        Ok(())
    }
}

impl EffectRow {
    fn read(row: &Row<'_>) -> Result<EffectRow, book::Error> {
        Ok(EffectRow {
            id: row.get(0)?,
            at_ms: row.get(1)?,
            tool: row.get(2)?,
            order_id: row.get(3)?,
            key: row.get(4)?,
            reference: row.get(5)?,
            body: json_at(row, 6)?,
        })
    }
}

impl RequestRow {
    fn read(row: &Row<'_>) -> Result<RequestRow, book::Error> {
        Ok(RequestRow {
            id: row.get(0)?,
            at_ms: row.get(1)?,
            tool: row.get(2)?,
            args: json_at(row, 3)?,
            fault: row.get(4)?,
            note: row.get(5)?,
        })
    }
}

fn json_at(row: &Row<'_>, column: usize) -> Result<Box<RawValue>, book::Error> {
    RawValue::from_string(row.get(column)?).map_err(|cause| {
        let kind = rusqlite::types::Type::Text;
        book::Error::FromSqlConversionFailure(column, kind, Box::new(cause))
    })
}
