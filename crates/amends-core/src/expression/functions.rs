//! Which functions an expression calls.

use std::collections::BTreeSet;

use cel::common::ast::{Expr, IdedExpr};
use cel::{Context, ExecutionError, Program};

use super::STANDARD;
use super::names::walk;

/// The functions that an expression calls and that there are not.
pub(super) fn unknown(expression: &IdedExpr) -> BTreeSet<String> {
    let mut called = BTreeSet::new();
    walk(expression, &mut Vec::new(), &mut |part, _| {
        if let Expr::Call(call) = part
            && is_word(&call.func_name)
        {
            called.insert((call.func_name.clone(), call.target.is_some()));
        }
    });
    called.into_iter().filter(|(name, member)| !is_known(name, *member)).map(|(name, _)| name).collect()
}

/// Operators have names too, which nobody can write.
fn is_word(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.contains(|c: char| c.is_ascii_alphabetic())
}

/// Whether there is a function of that name: called with nothing, one that there is complains of that, and not of its name.
fn is_known(name: &str, member: bool) -> bool {
    let call = if member { format!("''.{name}()") } else { format!("{name}()") };
    let Ok(program) = Program::compile(&call) else { return true };
    match program.execute(&Context::with_env(STANDARD.clone())) {
        Err(ExecutionError::UndeclaredReference(reference)) => reference.as_str() != name,
        Ok(_) | Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::expression::Expression;

    #[test]
    fn a_function_that_there_is_not_is_named_and_all_others_pass() {
        let unknown =
            |source: &str| Expression::parse(source).unwrap().unknown_functions().into_iter().collect::<Vec<_>>();
        assert_eq!(unknown("foo(inputs) && state.name.lower() == now()"), ["foo", "lower", "now"]);
        for known in [
            "size(state.list) > 1 && state.list.size() > 1",
            "state.list.all(item, item.startsWith('a') && item.contains('b') && item.endsWith('c'))",
            "has(state.a) ? int(state.a) + int(double('1')) : -uint(3u)",
            "string(result) in ['a'] && type(state) == map",
            "state.list.map(x, x * 2).exists(y, y % 2 == 0) || bytes('a') == b'a' || dyn(state.a) != null",
            "state.list.filter(x, x > 1).exists_one(y, y == 2) && bool('true')",
        ] {
            assert_eq!(unknown(known), Vec::<String>::new(), "{known}");
        }
        for missing in
            ["matches", "timestamp", "duration", "getFullYear", "getHours", "lowerAscii", "split", "replace", "join"]
        {
            assert_eq!(unknown(&format!("state.name.{missing}('a')")), [missing]);
        }
        for missing in ["matches", "timestamp", "duration", "now"] {
            assert_eq!(unknown(&format!("{missing}('a')")), [missing]);
        }
    }
}
