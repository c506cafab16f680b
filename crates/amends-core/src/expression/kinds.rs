//! Of which JSON types an expression's value can be.

use std::collections::BTreeSet;

use cel::common::ast::{Expr, IdedExpr, LiteralValue, operators};

use super::answers::is_condition;
use super::names::{Path, spelled};

/// The types of what a path leads to, where they are known.
pub(super) type Known<'a> = dyn Fn(&Path) -> Option<BTreeSet<&'static str>> + 'a;

/// The JSON types of which an expression's value can be, `integer` and `number` apart; nothing where that is not known.
pub(super) fn kinds(part: &IdedExpr, known: &Known<'_>) -> Option<BTreeSet<&'static str>> {
    let only = |kind: &'static str| Some(BTreeSet::from([kind]));
    // A number that could be broken is written as a whole one where it is none.
    let number = || Some(BTreeSet::from(["number", "integer"]));
    if is_condition(part) {
        return only("boolean");
    }
    if let Some(path) = spelled(part) {
        return known(&path);
    }
    match &part.expr {
        Expr::Literal(literal) => match literal {
            LiteralValue::String(_) => only("string"),
            LiteralValue::Int(_) | LiteralValue::UInt(_) => only("integer"),
            LiteralValue::Double(_) => number(),
            LiteralValue::Null => only("null"),
            _ => None,
        },
        Expr::List(_) => only("array"),
        Expr::Map(_) => only("object"),
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::CONDITIONAL, [_, yes, no]) => Some(&kinds(yes, known)? | &kinds(no, known)?),
            // Only texts are added to texts, and numbers to numbers.
            (operators::ADD, [one, other]) => {
                let sides = [kinds(one, known), kinds(other, known)];
                let only = |side: &Option<BTreeSet<&'static str>>, kind: &'static str| {
                    side.as_ref().is_some_and(|kinds| kinds.iter().eq([&kind]))
                };
                if sides.iter().any(|side| only(side, "string")) {
                    Some(BTreeSet::from(["string"]))
                } else if sides.iter().all(|side| only(side, "integer")) {
                    Some(BTreeSet::from(["integer"]))
                } else {
                    sides.iter().any(|side| only(side, "integer")).then(|| BTreeSet::from(["number", "integer"]))
                }
            }
            (operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO, [one, other]) => {
                let whole = |part| kinds(part, known).is_some_and(|kinds| kinds.iter().eq([&"integer"]));
                if whole(one) && whole(other) { only("integer") } else { number() }
            }
            ("size" | "int" | "uint", _) => only("integer"),
            ("double", _) => number(),
            ("string", _) => only("string"),
            ("bool" | "contains" | "startsWith" | "endsWith" | "matches", _) => only("boolean"),
            _ => None,
        },
        _ => None,
    }
}
