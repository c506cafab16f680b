//! What an expression compares, where comparing is all it does.

use std::collections::BTreeMap;

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};
use serde_json::{Value, json};

use super::names::{Path, spelled};

/// What each value that an expression speaks of is compared with; nothing where it does more with one than that.
pub(super) fn compared(expression: &IdedExpr) -> Option<BTreeMap<Path, Vec<Value>>> {
    let mut found = BTreeMap::new();
    let mut left = vec![expression];
    // Ends: each turn takes one part of a finite tree.
    while let Some(part) = left.pop() {
        if let Some(path) = spelled(part) {
            found.entry(path).or_insert_with(Vec::new);
            continue;
        }
        match &part.expr {
            Expr::Literal(_) => drop(literal(part)?),
            Expr::Call(call) => match call.func_name.as_str() {
                operators::LOGICAL_AND | operators::LOGICAL_OR | operators::LOGICAL_NOT | operators::CONDITIONAL => {
                    left.extend(&call.args)
                }
                _ => {
                    let (path, with) = comparison(call)?;
                    if let Some(path) = path {
                        found.entry(path).or_insert_with(Vec::new).extend(with);
                    }
                }
            },
            _ => return None,
        }
    }
    Some(found)
}

/// The value and what it is compared with; no value where two literals are compared.
fn comparison(call: &CallExpr) -> Option<(Option<Path>, Vec<Value>)> {
    let [one, other] = call.args.as_slice() else { return None };
    match call.func_name.as_str() {
        operators::EQUALS
        | operators::NOT_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS => match (spelled(one), spelled(other)) {
            (Some(path), None) => Some((Some(path), vec![literal(other)?])),
            (None, Some(path)) => Some((Some(path), vec![literal(one)?])),
            (None, None) => literal(one).zip(literal(other)).map(|_| (None, Vec::new())),
            (Some(_), Some(_)) => None,
        },
        operators::IN => {
            let Expr::List(list) = &other.expr else { return None };
            let among = list.elements.iter().map(literal).collect::<Option<Vec<_>>>()?;
            spelled(one).map(|path| (Some(path), among))
        }
        _ => None,
    }
}

/// A plain value that is written out.
fn literal(part: &IdedExpr) -> Option<Value> {
    match &part.expr {
        Expr::Literal(LiteralValue::Boolean(it)) => Some(json!(*it.inner())),
        Expr::Literal(LiteralValue::Int(it)) => Some(json!(*it.inner())),
        Expr::Literal(LiteralValue::UInt(it)) => Some(json!(*it.inner())),
        Expr::Literal(LiteralValue::Double(it)) => Some(json!(*it.inner())),
        Expr::Literal(LiteralValue::String(it)) => Some(json!(it.to_string())),
        Expr::Literal(LiteralValue::Null) => Some(Value::Null),
        Expr::Call(call) if call.func_name == operators::NEGATE => {
            let number = literal(call.args.first()?)?;
            Some(number.as_i64().map_or_else(|| json!(-number.as_f64().unwrap_or_default()), |number| json!(-number)))
        }
        _ => None,
    }
}
