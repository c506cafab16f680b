//! Whether an expression can give an answer at all: what it does for sure must be possible with values of the types that are known.

use std::collections::BTreeSet;

use cel::common::ast::{CallExpr, Expr, IdedExpr, operators};

use super::STANDARD;
use super::cost::Cost;
use super::kinds::{Known, kinds};
use super::mixed::mixing;
use super::names::{spelled, variables};

/// Why a part that is always evaluated never gives an answer; nothing where it may.
pub(super) fn never(part: &IdedExpr, known: &Known<'_>) -> Option<String> {
    if spelled(part).is_some() {
        return None;
    }
    if variables(part).is_empty() {
        return fails(part);
    }
    let within = |part: &IdedExpr| never(part, known);
    match &part.expr {
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            // One side may say enough, whatever becomes of the other.
            (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => None,
            (operators::CONDITIONAL, [asked, ..]) => within(asked),
            (_, args) => {
                call.target.iter().map(AsRef::as_ref).chain(args).find_map(within).or_else(|| unlike(call, known))
            }
        },
        // What is done with each item is not done where there is none.
        Expr::Comprehension(over) => within(&over.iter_range),
        Expr::List(list) => list.elements.iter().find_map(within),
        Expr::Select(select) => within(&select.operand),
        Expr::Map(_) | Expr::Struct(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => None,
    }
}

/// Why what speaks of nothing gives no answer.
fn fails(part: &IdedExpr) -> Option<String> {
    if !Cost::of(part).is_bearable(std::iter::empty()) {
        return None;
    }
    let context = cel::Context::with_env(STANDARD.clone());
    let said = cel::Value::resolve(part, &context);
    let error = said.err()?;
    cel::Value::resolve(&mixing(part), &context).is_err().then(|| error.to_string())
}

/// Why an operator cannot take what it is given, by the types of that.
fn unlike(call: &CallExpr, known: &Known<'_>) -> Option<String> {
    let (takes, verb): (&[&str], &str) = match call.func_name.as_str() {
        operators::ADD => (&["number", "string", "array"], "added"),
        operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO => {
            (&["number"], "calculated with")
        }
        operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS => {
            (&["number", "string", "boolean", "array", "object", "null"], "compared by which is more")
        }
        _ => return None,
    };
    let [one, other] = call.args.as_slice() else { return None };
    let [one, other] = [classes(one, known)?, classes(other, known)?];
    let alike = takes.iter().any(|kind| one.contains(kind) && other.contains(kind));
    let words = |classes: BTreeSet<&str>| classes.into_iter().map(word).collect::<Vec<_>>().join(" or ");
    (!alike && !one.is_empty() && !other.is_empty())
        .then(|| format!("{} and {} cannot be {verb}", words(one), words(other)))
}

/// The types of which a part can be, whole numbers among all others.
fn classes(part: &IdedExpr, known: &Known<'_>) -> Option<BTreeSet<&'static str>> {
    let kinds = kinds(part, known)?.into_iter();
    Some(kinds.map(|kind| if kind == "integer" { "number" } else { kind }).collect())
}

fn word(kind: &str) -> &str {
    match kind {
        "string" => "a text",
        "number" => "a number",
        "boolean" => "a truth",
        "object" => "a table",
        "array" => "a list",
        other => other,
    }
}
