//! Whether an expression can be true at all, by what it says itself, whatever it speaks of.
//!
//! Numbers are added as far as they are told apart, which above 2^53 they are not; JSON has no number that differs from itself; a
//! size is never negative. Where more would have to be known, it may be true or false.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};
use serde_json::Value;

use super::STANDARD;
use super::cost::Cost;
use super::mixed::mixing;
use super::names::{Path, spelled, variables};

/// What a part of an expression can be. One that gives no answer is neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Can {
    pub(super) hold: bool,
    fail: bool,
}

impl Can {
    const EITHER: Self = Self { hold: true, fail: true };

    const fn only(holds: bool) -> Self {
        Self { hold: holds, fail: !holds }
    }
}

/// Whether an expression can be true, and whether it can be false.
pub(super) fn can(part: &IdedExpr) -> Can {
    if let Some(value) = folded(part) {
        return match value {
            Some(Value::Bool(holds)) => Can::only(holds),
            _ => Can { hold: false, fail: false },
        };
    }
    let Expr::Call(call) = &part.expr else { return Can::EITHER };
    match (call.func_name.as_str(), call.args.as_slice()) {
        (operators::LOGICAL_AND, [one, other]) => {
            let (one, other) = (can(one), can(other));
            Can { hold: one.hold && other.hold, fail: one.fail || other.fail }
        }
        (operators::LOGICAL_OR, [one, other]) => {
            let (one, other) = (can(one), can(other));
            Can { hold: one.hold || other.hold, fail: one.fail && other.fail }
        }
        (operators::LOGICAL_NOT, [one]) => {
            let Can { hold, fail } = can(one);
            Can { hold: fail, fail: hold }
        }
        (operators::CONDITIONAL, [asked, yes, no]) => {
            let (asked, yes, no) = (can(asked), can(yes), can(no));
            Can {
                hold: (asked.hold && yes.hold) || (asked.fail && no.hold),
                fail: (asked.hold && yes.fail) || (asked.fail && no.fail),
            }
        }
        (operator, [one, other]) => compared(operator, one, other).unwrap_or(Can::EITHER),
        _ => Can::EITHER,
    }
}

/// The value of a part that speaks of nothing, where it has one; nothing at all where it speaks of something.
fn folded(part: &IdedExpr) -> Option<Option<Value>> {
    if !variables(part).is_empty() || !Cost::of(part).is_bearable(std::iter::empty()) {
        return None;
    }
    let context = cel::Context::with_env(STANDARD.clone());
    let value = cel::Value::resolve(part, &context).or_else(|_| cel::Value::resolve(&mixing(part), &context));
    Some(value.ok().and_then(|value| value.json().ok()))
}

/// How two sums stand to each other, where that is the same whatever they speak of.
fn compared(operator: &str, one: &IdedExpr, other: &IdedExpr) -> Option<Can> {
    let (one, other) = (Sum::of(one)?, Sum::of(other)?);
    let apart = one.plus.checked_sub(other.plus)?;
    match (&one.of, &other.of) {
        (Some(it), Some(same)) if it == same && *it != Of::Sizes => holds(operator, apart, apart),
        (Some(Of::Size(_) | Of::Sizes), None) => holds(operator, apart, i128::MAX),
        (None, Some(Of::Size(_) | Of::Sizes)) => holds(operator, i128::MIN, apart),
        _ => None,
    }
}

/// Whether a comparison holds of two numbers whose difference is within those bounds.
fn holds(operator: &str, least: i128, most: i128) -> Option<Can> {
    let (below, equal, above) = (least < 0, least <= 0 && most >= 0, most > 0);
    let (hold, fail) = match operator {
        operators::EQUALS => (equal, below || above),
        operators::NOT_EQUALS => (below || above, equal),
        operators::LESS => (below, equal || above),
        operators::LESS_EQUALS => (below || equal, above),
        operators::GREATER => (above, below || equal),
        operators::GREATER_EQUALS => (above || equal, below),
        _ => return None,
    };
    Some(Can { hold, fail })
}

/// A whole number: so much more than another. Where nothing is added it may be a value of any kind.
struct Sum {
    of: Option<Of>,
    plus: i128,
}

/// What something is added to.
#[derive(PartialEq)]
enum Of {
    Value(Path),
    Size(Path),
    /// The size of something that has no name. Two of them are not told apart.
    Sizes,
}

impl Sum {
    fn of(part: &IdedExpr) -> Option<Self> {
        if let Some(value) = folded(part) {
            // What is written as a broken number is added to broken numbers only.
            let whole = value?.as_i64().filter(|_| is_whole(part))?;
            return Some(Self { of: None, plus: whole.into() });
        }
        let asks = matches!(&part.expr, Expr::Select(select) if select.test);
        if let Some(path) = spelled(part).filter(|_| !asks) {
            return Some(Self { of: Some(Of::Value(path)), plus: 0 });
        }
        let Expr::Call(call) = &part.expr else { return None };
        if let Some(sized) = sized(call) {
            let of = spelled(sized).map_or(Of::Sizes, Of::Size);
            return Some(Self { of: Some(of), plus: 0 });
        }
        let [one, other] = call.args.as_slice() else { return None };
        let (one, other) = (Self::of(one)?, Self::of(other)?);
        match call.func_name.as_str() {
            operators::ADD if one.of.is_none() || other.of.is_none() => {
                Some(Self { of: one.of.or(other.of), plus: one.plus.checked_add(other.plus)? })
            }
            operators::SUBSTRACT if other.of.is_none() => {
                Some(Self { of: one.of, plus: one.plus.checked_sub(other.plus)? })
            }
            _ => None,
        }
    }
}

/// What the size is asked of.
fn sized(call: &CallExpr) -> Option<&IdedExpr> {
    match (call.func_name.as_str(), &call.target, call.args.as_slice()) {
        ("size", None, [of]) => Some(of),
        ("size", Some(of), []) => Some(of),
        _ => None,
    }
}

/// Whether a part only calculates with whole numbers, so that its value is one: `double(1)` is written as one and is none.
fn is_whole(part: &IdedExpr) -> bool {
    match &part.expr {
        Expr::Literal(literal) => matches!(literal, LiteralValue::Int(_)),
        Expr::Call(call) => {
            let calculates =
                [operators::ADD, operators::SUBSTRACT, operators::MULTIPLY, operators::DIVIDE, operators::NEGATE];
            calculates.contains(&call.func_name.as_str()) && call.args.iter().all(is_whole)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::expression::Expression;

    #[test]
    fn what_can_never_be_true_is_seen() {
        for never in [
            "1 > 2",
            "1 + 1 == 3 || 'a' == 'b'",
            "inputs.n == inputs.n + 1",
            "1 + inputs.n <= inputs.n - 1",
            "inputs['n'] - 3 > inputs.n",
            "inputs.n < inputs.n",
            "inputs.n != inputs.n",
            "size(inputs.list) < 0",
            "inputs.list.size() + 1 == 0",
            "-1 >= size(inputs.list.filter(x, x > 1))",
            "inputs.n + 2 * 3 < inputs.n",
            "!(inputs.n == inputs.n) && inputs.n > 3",
            "inputs.n > 3 ? size(inputs.list) < 0 : inputs.n > inputs.n",
            "!(size(inputs.list) >= 0 || inputs.n > 3)",
        ] {
            assert!(!Expression::parse(never).unwrap().can_hold(), "{never}");
        }
    }

    #[test]
    fn what_can_be_true_for_some_values_is_never_taken_for_impossible() {
        for may in [
            "1 < 2",
            "inputs.n < inputs.n + 1",
            "inputs.n == inputs.n",
            "inputs.n <= inputs.n",
            "inputs.n == inputs.n + 0",
            "inputs.x == inputs.x + 1.0",
            "inputs.x + 1.0 == inputs.x + 2.0",
            "inputs.x == inputs.x + double(1)",
            "double(inputs.nan) != double(inputs.nan)",
            "size(inputs.list) < 3",
            "size(inputs.list) - 5 < 0",
            "size(inputs.list) <= 3 && size(inputs.list) > 0",
            "size(inputs.list.filter(i, i > 1)) != size(inputs.list.filter(i, i > 2))",
            "size(inputs.list) != size(inputs.n == 2 ? [1] : [])",
            "size(inputs.list) == 2 || size(inputs.list) < 0",
            "has(inputs.n) != inputs.no",
            "has(inputs.n) != has(inputs.absent)",
            "[1, 2].exists(n, n < inputs.n)",
        ] {
            let read = Expression::parse(may).unwrap();
            let inputs = json!({ "n": 2, "x": 1e300, "nan": "NaN", "list": [1, 2], "no": false });
            assert_eq!(read.evaluate(&[("inputs", &inputs)]).unwrap(), json!(true), "{may}");
            assert!(read.can_hold(), "{may}");
        }
    }

    #[test]
    fn what_is_impossible_by_its_words_is_so_by_its_values() {
        let values = [
            json!(0),
            json!(-1),
            json!(i64::MAX),
            json!(i64::MIN),
            json!(u64::MAX),
            json!(0.5),
            json!(4e15),
            json!(-0.0),
            json!(""),
            json!("a"),
            json!(null),
            json!(true),
            json!([1]),
            json!({ "a": 0.1 }),
        ];
        let sides = ["s.a", "s.a + 1", "s.a - 2", "2 + s.a", "size(s.a)", "size(s.a) + 1", "s.b", "1", "-1", "0.5"];
        for (one, other) in sides.iter().flat_map(|one| sides.map(|other| (*one, other))) {
            for operator in ["==", "!=", "<", "<=", ">", ">="] {
                let read = Expression::parse(&format!("{one} {operator} {other}")).unwrap();
                let not = Expression::parse(&format!("!({one} {operator} {other})")).unwrap();
                for state in values.iter().flat_map(|a| [0, 5].map(|b| json!({ "a": a, "b": values[b] }))) {
                    let said = read.evaluate(&[("s", &state)]).ok();
                    assert!(read.can_hold() || said != Some(Value::Bool(true)), "{read:?} over {state}");
                    assert!(not.can_hold() || said != Some(Value::Bool(false)), "{not:?} over {state}");
                }
            }
        }
    }
}
