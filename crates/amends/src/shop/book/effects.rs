//! The effects in the book: one row for everything the shop really did.

use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde_json::{Number, Value, json};

use super::super::job::RefundQuery;
use super::super::tool::Tool;
use super::{Book, Error, now_ms};

/// An effect that is about to be written, apart from its reference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effect<'a> {
    pub(crate) tool: Tool,
    pub(crate) order: Option<&'a str>,
    pub(crate) key: Option<&'a str>,
    /// What the reference begins with, such as `ch`.
    pub(crate) prefix: &'a str,
}

/// How a write with a key ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Keyed {
    /// The result, of this request or of the first with its key.
    Done(Value),
    /// The key belongs to a request with other arguments.
    Reused,
}

/// A refund the book knows of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refund {
    pub(crate) id: String,
    /// What was answered when it was issued.
    pub(crate) body: Value,
    pub(crate) cancelled: bool,
}

impl Book {
    /// Writes an effect whose body is `body` with the new reference under `id`, and returns that body.
    pub(crate) fn add(&self, effect: Effect<'_>, body: Value) -> Result<Value, Error> {
        self.change(|change| insert(change, effect, body))
    }

    /// Issues a refund, unless `key` was used before.
    pub(crate) fn issue_refund(&self, order: &str, amount: &Number, key: Option<&str>) -> Result<Keyed, Error> {
        self.change(|change| {
            if let Some(key) = key
                && let Some(first) = find(change, "key", key)?
            {
                let same =
                    first.body["order"].as_str() == Some(order) && first.body["amount"].as_f64() == amount.as_f64();
                return Ok(if same { Keyed::Done(first.body) } else { Keyed::Reused });
            }
            let effect = Effect { tool: Tool::IssueRefund, order: Some(order), key, prefix: "re" };
            insert(change, effect, json!({ "order": order, "amount": amount })).map(Keyed::Done)
        })
    }

    /// The newest refund that fits `query`.
    pub(crate) fn refund(&self, query: &RefundQuery) -> Result<Option<Refund>, Error> {
        self.change(|change| match query {
            RefundQuery::Key(key) => find(change, "key", key),
            RefundQuery::Order(order) => find(change, "order_id", order),
        })
    }

    /// Cancels the refund `id` unless that is done already; `false` means there is no such refund.
    pub(crate) fn cancel_refund(&self, id: &str) -> Result<bool, Error> {
        self.change(|change| {
            let Some(refund) = find(change, "ref", id)? else {
                return Ok(false);
            };
            if !refund.cancelled {
                let body = json!({ "id": id, "cancelled": true });
                let tool = Tool::CancelRefund.name();
                change.execute(
                    "INSERT INTO effects (at_ms, tool, order_id, key, ref, body) VALUES (?, ?, ?, NULL, ?, ?)",
                    params![now_ms(), tool, refund.body["order"].as_str(), id, body.to_string()],
                )?;
            }
            Ok(true)
        })
    }
}

/// The reference counts with the rows, so it is unique in the book and easy to say aloud.
fn insert(change: &Transaction<'_>, effect: Effect<'_>, mut body: Value) -> Result<Value, Error> {
    let row: i64 =
        change.prepare_cached("SELECT coalesce(max(id), 0) + 1 FROM effects")?.query_row([], |row| row.get(0))?;
    let reference = format!("{}_{row:06}", effect.prefix);
    body["id"] = Value::from(reference.as_str());
    change
        .prepare_cached("INSERT INTO effects (id, at_ms, tool, order_id, key, ref, body) VALUES (?, ?, ?, ?, ?, ?, ?)")?
        .execute(params![row, now_ms(), effect.tool.name(), effect.order, effect.key, reference, body.to_string()])?;
    Ok(body)
}

/// The newest refund whose `column` is `value`.
fn find(change: &Transaction<'_>, column: &str, value: &str) -> Result<Option<Refund>, Error> {
    change
        .prepare_cached(&format!(
            "SELECT ref, body, EXISTS (
                 SELECT 1 FROM effects AS undone
                 WHERE undone.tool = 'cancel_refund' AND undone.ref = refund.ref
             )
             FROM effects AS refund
             WHERE tool = 'issue_refund' AND {column} = ?
             ORDER BY id DESC LIMIT 1"
        ))?
        .query_row([value], read)
        .optional()
}

fn read(row: &Row<'_>) -> Result<Refund, Error> {
    let body: String = row.get(1)?;
    Ok(Refund {
        id: row.get(0)?,
        body: serde_json::from_str(&body)
            .map_err(|cause| Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, Box::new(cause)))?,
        cancelled: row.get(2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_book(check: impl FnOnce(&Book)) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let book = Book::open(&folder.path().join("shop.db")).expect("the book opens");
        check(&book);
    }

    fn effects(book: &Book) -> i64 {
        let count = book.connection().query_row("SELECT count(*) FROM effects", [], |row| row.get(0));
        count.expect("the table is there")
    }

    #[test]
    fn a_key_gives_one_effect_and_always_the_first_result() {
        with_book(|book| {
            let five = Number::from(5);
            let issue = |amount: &Number| book.issue_refund("ord_1", amount, Some("k1")).expect("the book is writable");
            let first = issue(&five);
            assert_eq!(first, Keyed::Done(json!({"id": "re_000001", "order": "ord_1", "amount": 5})));
            assert_eq!(issue(&five), first);
            assert_eq!(issue(&Number::from(6)), Keyed::Reused);
            assert_eq!(effects(book), 1);
        });
    }

    #[test]
    fn without_a_key_every_refund_is_a_new_effect() {
        with_book(|book| {
            for _ in 0..2 {
                book.issue_refund("ord_1", &Number::from(5), None).expect("the book is writable");
            }
            assert_eq!(effects(book), 2);
            let newest = book.refund(&RefundQuery::Order("ord_1".to_owned())).expect("the book is readable");
            assert_eq!(newest.expect("there is one").id, "re_000002");
        });
    }

    #[test]
    fn a_refund_is_cancelled_once() {
        with_book(|book| {
            book.issue_refund("ord_1", &Number::from(5), Some("k1")).expect("the book is writable");
            assert_eq!(book.cancel_refund("re_000001"), Ok(true));
            assert_eq!(book.cancel_refund("re_000001"), Ok(true));
            assert_eq!(book.cancel_refund("re_000002"), Ok(false));
            assert_eq!(effects(book), 2);
            let refund = book.refund(&RefundQuery::Key("k1".to_owned())).expect("the book is readable");
            assert!(refund.expect("it is still there").cancelled);
        });
    }
}
