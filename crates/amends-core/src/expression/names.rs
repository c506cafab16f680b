//! Which names an expression speaks of.

use std::collections::BTreeSet;

use cel::common::ast::{Expr, IdedExpr, LiteralValue};

use super::cost::entries;

/// The names of types, which `type(x)` is compared with.
const TYPES: [&str; 10] = ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

/// The variables that an expression takes from outside.
pub(super) fn variables(expression: &IdedExpr) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    walk(expression, &mut Vec::new(), &mut |part, bound| {
        let Expr::Ident(name) = part else { return };
        if let Some(outer) = name.strip_prefix('.') {
            // A leading dot means the one outside, whatever a loop calls its own.
            found.insert(outer.to_owned());
        } else if !bound.contains(name) && !name.starts_with('@') && !TYPES.contains(&name.as_str()) {
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

/// A value that an expression speaks of, by the names that lead to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// The variable it begins with.
    pub variable: String,
    /// The fields that lead to it from there.
    pub fields: Vec<String>,
    /// Whether it is only asked whether it is there.
    pub tested: bool,
}

impl Path {
    /// The value at its end, in that variable.
    pub fn find<'a>(&self, variable: &'a serde_json::Value) -> Option<&'a serde_json::Value> {
        self.fields.iter().try_fold(variable, |value, field| value.get(field))
    }

    /// Whether it leads through the value at the end of that one.
    pub fn starts_with(&self, other: &Self) -> bool {
        self.variable == other.variable && self.fields.starts_with(&other.fields)
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.variable)?;
        self.fields.iter().try_for_each(|field| write!(f, ".{field}"))
    }
}

/// The values that an expression speaks of, each as far as its names are written out.
pub(super) fn paths(expression: &IdedExpr) -> Vec<Path> {
    let mut found: Vec<Path> = Vec::new();
    walk_into(expression, &mut Vec::new(), &mut |part, bound| {
        let Some(path) = path(part, bound) else { return true };
        if !found.contains(&path) {
            found.push(path);
        }
        false
    });
    found
}

/// The value that a part names from outside, or asks for.
pub(super) fn spelled(part: &IdedExpr) -> Option<Path> {
    path(&part.expr, &[]).map(|path| Path { tested: false, ..path })
}

/// The path that a part spells.
fn path(part: &Expr, bound: &[String]) -> Option<Path> {
    let (mut fields, mut at) = (Vec::new(), part);
    let tested = matches!(part, Expr::Select(select) if select.test);
    // Ends: each turn goes one part deeper into a finite tree.
    loop {
        at = match at {
            Expr::Ident(name) if !bound.contains(name) && !name.starts_with('@') => {
                fields.reverse();
                // A leading dot means the one outside, whatever a loop calls its own.
                let variable = name.strip_prefix('.').unwrap_or(name).to_owned();
                return Some(Path { variable, fields, tested });
            }
            Expr::Select(select) => {
                fields.push(select.field.clone());
                &select.operand.expr
            }
            Expr::Call(call) if call.func_name == "_[_]" => match call.args.as_slice() {
                [of, key] => {
                    let Expr::Literal(LiteralValue::String(key)) = &key.expr else { return None };
                    fields.push(key.to_string());
                    &of.expr
                }
                _ => return None,
            },
            _ => return None,
        };
    }
}

/// Shows every part, with the names that are bound there.
pub(super) fn walk(part: &IdedExpr, bound: &mut Vec<String>, seen: &mut impl FnMut(&Expr, &[String])) {
    walk_into(part, bound, &mut |part, bound| {
        seen(part, bound);
        true
    });
}

/// The same without what is within a part where that says no.
fn walk_into(part: &IdedExpr, bound: &mut Vec<String>, seen: &mut impl FnMut(&Expr, &[String]) -> bool) {
    if !seen(&part.expr, bound) {
        return;
    }
    match &part.expr {
        Expr::Call(call) => {
            call.target.iter().for_each(|target| walk_into(target, bound, seen));
            call.args.iter().for_each(|argument| walk_into(argument, bound, seen));
        }
        Expr::Comprehension(over) => {
            walk_into(&over.iter_range, bound, seen);
            walk_into(&over.accu_init, bound, seen);
            let outside = bound.len();
            bound.push(over.iter_var.clone());
            bound.extend(over.iter_var2.clone());
            bound.push(over.accu_var.clone());
            for inner in [&over.loop_cond, &over.loop_step, &over.result] {
                walk_into(inner, bound, seen);
            }
            bound.truncate(outside);
        }
        Expr::List(list) => list.elements.iter().for_each(|element| walk_into(element, bound, seen)),
        Expr::Map(map) => entries(&map.entries).for_each(|entry| walk_into(entry, bound, seen)),
        Expr::Struct(fields) => entries(&fields.entries).for_each(|entry| walk_into(entry, bound, seen)),
        Expr::Select(select) => walk_into(&select.operand, bound, seen),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::expression::Expression;

    #[test]
    fn what_an_expression_speaks_of_is_told_by_its_names() {
        let paths = |source: &str| {
            let paths = Expression::parse(source).unwrap().paths();
            paths.iter().map(|path| (path.to_string(), path.tested)).collect::<Vec<_>>()
        };
        let all =
            paths("state.order['id'] == inputs.id && has(state.order.sum) && state.list.all(x, x.n < state.most)");
        let said: Vec<&str> = all.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(said, ["state.order.id", "inputs.id", "state.order.sum", "state.list", "state.most"]);
        assert_eq!(all.iter().filter(|(_, tested)| *tested).count(), 1);
        assert_eq!(paths("state[inputs.name] == 1"), [("state".to_owned(), false), ("inputs.name".to_owned(), false)]);
    }
}
