//! What an answer looks like: what the contract's expressions find in it.

use amends_core::attempt::{ItemFailure, Provenance, Shape, Suppressed};
use amends_core::contract::AnswerShape;
use amends_core::expression::Expression;
use amends_core::failure::bounded;
use amends_core::limits::ITEMS_MAX;
use amends_core::{Code, Contract, Digest, Failure, Timestamp};
use serde_json::Value;

use crate::problem::Problem;

/// What an answer looks like, by the expressions of its tool's contract. One that gives no answer says nothing.
///
/// ```
/// use amends_core::contract::{AnswerShape, Contract};
/// use amends_core::expression::Expression;
/// use amends_wire::mcp::shape::shape;
/// use serde_json::json;
///
/// let rows = Some(Expression::parse("result.orders")?);
/// let contract = Contract { answer: AnswerShape { rows, ..AnswerShape::default() }, ..Contract::undeclared(0, 0, 0) };
/// assert_eq!(shape(&contract, &json!({"orders": []}), &json!({})).rows, Some(0));
/// # Ok::<(), amends_core::expression::ExpressionError>(())
/// ```
pub fn shape(contract: &Contract, result: &Value, args: &Value) -> Shape {
    let AnswerShape { rows, truncated, errors, stale, confidence, provenance, follow_up: _ } = &contract.answer;
    let mut unread = Vec::new();
    let mut ask = |part: &str, expression: &Option<Expression>| {
        let value = expression.as_ref()?.evaluate(&[("result", result), ("args", args)]);
        let value = value.map_err(|error| {
            unread.push(Suppressed { doing: format!("reading `answer.{part}`"), reason: bounded(&error.to_string()) });
        });
        value.ok().filter(|value| !value.is_null())
    };
    let failed = ask("errors", errors).and_then(list).unwrap_or_default();
    let sources = ask("provenance", provenance).and_then(list).unwrap_or_default();
    let rows = ask("rows", rows);
    let truncated = ask("truncated", truncated) == Some(Value::Bool(true));
    let stale = ask("stale", stale) == Some(Value::Bool(true));
    let sure = ask("confidence", confidence);
    Shape {
        rows: rows.and_then(|rows| rows.as_array().map(|rows| rows.len() as u64).or_else(|| rows.as_u64())),
        truncated,
        stale,
        errors: failed.iter().take(ITEMS_MAX).enumerate().map(|(n, failed)| item(n, failed, contract)).collect(),
        errors_left_out: failed.len().saturating_sub(ITEMS_MAX) as u64,
        confidence_permille: sure.and_then(|sure| permille(&sure)),
        provenance: sources.iter().take(ITEMS_MAX).filter_map(source).collect(),
        masked: Vec::new(),
        unread,
    }
}

fn list(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

/// One failed item: its own `item`, or else its place, and what its status and code mean in the tables for whole answers.
fn item(n: usize, failed: &Value, contract: &Contract) -> ItemFailure {
    let named = match failed.get("item") {
        Some(Value::String(name)) => Some(bounded(name)),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    ItemFailure { item: named.unwrap_or_else(|| n.to_string()), failure: failure(failed, contract) }
}

fn failure(failed: &Value, contract: &Contract) -> Failure {
    if let Some(problem) = Problem::read(failed) {
        if let Some((failure, _)) = problem.judge(contract) {
            return failure;
        }
        // A code of our own registry means what it means there; any other word is only quoted.
        let code = problem.code.as_deref().and_then(Code::parse).unwrap_or(Code::ActionError);
        return problem.failure(code);
    }
    match failed.get("message").unwrap_or(failed).as_str() {
        Some(said) => Failure::of(Code::ActionError).saying(said),
        None => Failure::of(Code::ActionError),
    }
}

fn permille(sure: &Value) -> Option<u16> {
    let sure = sure.as_f64().filter(|sure| (0.0..=1.0).contains(sure))?;
    Some((sure * 1000.0).round() as u16)
}

fn source(value: &Value) -> Option<Provenance> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    Some(Provenance {
        source: bounded(value.as_str().or_else(|| text("source"))?),
        hash: text("hash").map(|hash| Digest::new(bounded(hash))),
        read_at: value.get("read_at").and_then(Value::as_u64).map(Timestamp::from_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn contract() -> Contract {
        let of = |text: &str| Some(Expression::parse(text).unwrap());
        Contract {
            answer: AnswerShape {
                rows: of("result.rows"),
                truncated: of("result.has_more"),
                errors: of("result.failed"),
                stale: of("result.age > args.max_age"),
                confidence: of("result.sure"),
                provenance: of("result.sources"),
                follow_up: Vec::new(),
            },
            ..Contract::undeclared(0, 0, 0)
        }
    }

    fn of(result: &Value) -> Shape {
        shape(&contract(), result, &json!({"max_age": 60}))
    }

    #[test]
    fn an_answer_that_says_nothing_has_no_shape() {
        for said in [json!({}), json!("text")] {
            let found = of(&said);
            assert_eq!(found.unread.len(), 6, "each part that could not be read is named: {found:?}");
            assert_eq!(Shape { unread: Vec::new(), ..found }, Shape::default());
        }
        let odd = json!({"rows": "many", "has_more": "yes", "failed": {}, "age": "old", "sure": 7, "sources": 1});
        let found = of(&odd);
        assert_eq!(Shape { unread: Vec::new(), ..found }, Shape::default());
    }

    #[test]
    fn every_part_is_found() {
        let found = of(&json!({
            "rows": [1, 2], "has_more": true, "age": 61, "sure": 0.5,
            "sources": ["crm", {"source": "orders", "hash": "abc", "read_at": 7}, 5],
        }));
        assert_eq!(
            (found.rows, found.truncated, found.stale, found.confidence_permille),
            (Some(2), true, true, Some(500))
        );
        assert_eq!(found.provenance.len(), 2);
        assert_eq!(found.provenance[1].read_at, Some(Timestamp::from_ms(7)));
    }

    #[test]
    fn items_are_judged_by_status_and_code_and_never_by_their_sentences() {
        let found = of(&json!({"failed": [
            {"item": "ord_1", "status": 404, "message": "rate limited, timeout, forbidden"},
            {"item": 2, "code": "RateLimited"},
            {"code": "strange", "message": "not found"},
            "not found",
            {"error": {"status": "PERMISSION_DENIED", "message": "no"}},
        ]}));
        let codes: Vec<_> = found.errors.iter().map(|failed| (failed.item.as_str(), failed.failure.code)).collect();
        assert_eq!(
            codes,
            [
                ("ord_1", Code::NotFound),
                ("2", Code::RateLimited),
                ("2", Code::ActionError),
                ("3", Code::ActionError),
                ("4", Code::Forbidden)
            ]
        );
    }

    #[test]
    fn what_is_beyond_the_bound_is_counted() {
        let failed: Vec<Value> = (0..ITEMS_MAX + 5).map(|n| json!({"item": n, "status": 500})).collect();
        let found = of(&json!({"failed": failed, "sources": vec!["x"; 100]}));
        assert_eq!((found.errors.len(), found.errors_left_out, found.provenance.len()), (ITEMS_MAX, 5, ITEMS_MAX));
    }
}
