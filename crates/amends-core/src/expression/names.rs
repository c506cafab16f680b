//! Which names an expression speaks of.

use std::collections::BTreeSet;

use cel::common::ast::{Expr, IdedExpr};

use super::cost::entries;

/// The variables that an expression takes from outside.
pub(super) fn variables(expression: &IdedExpr) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    walk(expression, &mut Vec::new(), &mut |part, bound| {
        let Expr::Ident(name) = part else { return };
        if let Some(outer) = name.strip_prefix('.') {
            // A leading dot means the one outside, whatever a loop calls its own.
            found.insert(outer.to_owned());
        } else if !bound.contains(name) && !name.starts_with('@') {
            found.insert(name.clone());
        }
    });
    found
}

/// The fields of that variable which an expression needs, and those whose presence it tests first.
pub(super) fn fields(expression: &IdedExpr, variable: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut needed, mut tested) = (BTreeSet::new(), BTreeSet::new());
    walk(expression, &mut Vec::new(), &mut |part, bound| {
        if let Expr::Select(select) = part
            && let Expr::Ident(name) = &select.operand.expr
            && name == variable
            && !bound.contains(name)
        {
            let set = if select.test { &mut tested } else { &mut needed };
            set.insert(select.field.clone());
        }
    });
    (needed, tested)
}

fn walk(part: &IdedExpr, bound: &mut Vec<String>, seen: &mut impl FnMut(&Expr, &[String])) {
    seen(&part.expr, bound);
    match &part.expr {
        Expr::Call(call) => {
            call.target.iter().for_each(|target| walk(target, bound, seen));
            call.args.iter().for_each(|argument| walk(argument, bound, seen));
        }
        Expr::Comprehension(over) => {
            walk(&over.iter_range, bound, seen);
            walk(&over.accu_init, bound, seen);
            let outside = bound.len();
            bound.push(over.iter_var.clone());
            bound.extend(over.iter_var2.clone());
            bound.push(over.accu_var.clone());
            for inner in [&over.loop_cond, &over.loop_step, &over.result] {
                walk(inner, bound, seen);
            }
            bound.truncate(outside);
        }
        Expr::List(list) => list.elements.iter().for_each(|element| walk(element, bound, seen)),
        Expr::Map(map) => entries(&map.entries).for_each(|entry| walk(entry, bound, seen)),
        Expr::Struct(fields) => entries(&fields.entries).for_each(|entry| walk(entry, bound, seen)),
        Expr::Select(select) => walk(&select.operand, bound, seen),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}
