//! What an expression can answer, where that can be seen without running it.

use std::collections::BTreeSet;

use cel::common::ast::{Expr, IdedExpr, LiteralValue, operators};

/// The texts that an expression chooses among, if every answer it can give is a text that is written out.
pub(super) fn texts(expression: &IdedExpr) -> Option<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    let mut left = vec![expression];
    // Ends: each turn takes one part of a finite tree.
    while let Some(part) = left.pop() {
        match &part.expr {
            Expr::Literal(LiteralValue::String(text)) => {
                texts.insert(text.to_string());
            }
            Expr::Call(call) if call.func_name == "_?_:_" && call.args.len() == 3 => left.extend(&call.args[1..]),
            _ => return None,
        }
    }
    Some(texts)
}

/// Whether all that an expression can say is true or false.
pub(super) fn is_condition(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Literal(LiteralValue::Boolean(_)) => true,
        Expr::Select(select) => select.test,
        Expr::Call(call) => matches!(
            call.func_name.as_str(),
            operators::LOGICAL_AND
                | operators::LOGICAL_OR
                | operators::LOGICAL_NOT
                | operators::EQUALS
                | operators::NOT_EQUALS
                | operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS
                | operators::IN
        ),
        _ => false,
    }
}
