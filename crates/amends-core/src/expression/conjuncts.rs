//! The parts of an expression that must all hold.

use cel::common::ast::{Expr, IdedExpr};

const AND: &str = "_&&_";

/// The sources of the parts that an expression joins with `&&`; itself where it joins none. Nothing where they cannot be told apart.
pub(super) fn conjuncts<'a>(source: &'a str, expression: &IdedExpr) -> Option<Vec<&'a str>> {
    let parts = split(source);
    // What was split is what the parser saw, or it is not told.
    (parts.len() == count(expression)).then_some(parts)
}

fn count(expression: &IdedExpr) -> usize {
    let (mut count, mut left) = (0, vec![expression]);
    // Ends: each turn takes one part of a finite tree.
    while let Some(part) = left.pop() {
        match &part.expr {
            Expr::Call(call) if call.func_name == AND => left.extend(&call.args),
            _ => count += 1,
        }
    }
    count
}

/// A text cut at each `&&` that stands outside of brackets and quotes.
fn split(source: &str) -> Vec<&str> {
    let bytes = source.as_bytes();
    let (mut parts, mut begin, mut depth, mut at) = (Vec::new(), 0, 0_usize, 0);
    // Ends: every turn goes on by at least one byte.
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'\'' | b'"' => {
                at = behind_quotes(bytes, at);
                continue;
            }
            b'&' if depth == 0 && bytes.get(at + 1) == Some(&b'&') => {
                parts.push(source[begin..at].trim());
                begin = at + 2;
                at += 1;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(source[begin..].trim());
    parts
}

/// Where a text in quotes that begins there is over.
fn behind_quotes(bytes: &[u8], begin: usize) -> usize {
    let quote = bytes[begin];
    let raw = begin > 0 && matches!(bytes[begin - 1], b'r' | b'R');
    let triple = bytes[begin..].starts_with(&[quote; 3]);
    let (end, mut at): (&[u8], usize) = if triple { (&[quote; 3], begin + 3) } else { (&[quote], begin + 1) };
    // Ends: every turn goes on by at least one byte.
    while at < bytes.len() {
        if bytes[at] == b'\\' && !raw {
            at += 2;
        } else if bytes[at..].starts_with(end) {
            return at + end.len();
        } else {
            at += 1;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use crate::expression::Expression;

    #[test]
    fn the_parts_that_must_all_hold_are_told_apart() {
        let parts = |source: &str| -> Vec<String> {
            let read = Expression::parse(source).unwrap();
            read.conjuncts().into_iter().map(str::to_owned).collect()
        };
        assert_eq!(
            parts("state.a > 1 && inputs.b == 'x && y'&&!(state.c && state.d)"),
            ["state.a > 1", "inputs.b == 'x && y'", "!(state.c && state.d)"]
        );
        assert_eq!(parts("state.a"), ["state.a"]);
        assert_eq!(parts(r#"inputs.a == "\"&&" && inputs.b"#), [r#"inputs.a == "\"&&""#, "inputs.b"]);
        for one in [
            "state.a && state.b || state.c",
            "state.a ? state.b && state.c : state.d && state.e",
            "(state.a && state.b)",
        ] {
            assert_eq!(parts(one), [one], "these are not parts of one another");
        }
    }
}
