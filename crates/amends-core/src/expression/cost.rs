//! How long an expression may take, known before it runs.

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use serde_json::Value;

/// How many steps an evaluation may take at most, as estimated from above.
const STEPS_MAX: u64 = 5_000_000;

/// What an expression costs: its parts, and how deep its loops lie in each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    parts: u64,
    depth: u32,
}

impl Cost {
    pub(super) fn of(expression: &IdedExpr) -> Self {
        let mut parts = 1;
        let mut depth = 0;
        // Ends: each turn takes one part of a finite tree, and no part is below itself.
        let mut left = vec![(expression, 0)];
        while let Some((part, loops)) = left.pop() {
            parts += 1;
            depth = depth.max(loops);
            match &part.expr {
                Expr::Call(call) => {
                    left.extend(call.target.as_deref().map(|target| (target, loops)));
                    left.extend(call.args.iter().map(|argument| (argument, loops)));
                }
                Expr::Comprehension(over) => {
                    left.push((&over.iter_range, loops));
                    left.push((&over.accu_init, loops));
                    left.extend([&over.loop_cond, &over.loop_step, &over.result].map(|inner| (inner, loops + 1)));
                }
                Expr::List(list) => left.extend(list.elements.iter().map(|element| (element, loops))),
                Expr::Map(map) => left.extend(entries(&map.entries).map(|entry| (entry, loops))),
                Expr::Struct(fields) => left.extend(entries(&fields.entries).map(|entry| (entry, loops))),
                Expr::Select(select) => left.push((&select.operand, loops)),
                Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
            }
        }
        Self { parts, depth }
    }

    /// Whether it may run over those values. Each loop runs at most once for each value there is, or part of the expression.
    pub(super) fn is_bearable<'a>(self, values: impl Iterator<Item = &'a Value>) -> bool {
        if self.depth == 0 {
            return true;
        }
        let size = values.fold(self.parts, |size, value| size.saturating_add(nodes(value)));
        size.saturating_pow(self.depth).saturating_mul(self.parts) <= STEPS_MAX
    }
}

pub(super) fn entries(entries: &[cel::common::ast::IdedEntryExpr]) -> impl Iterator<Item = &IdedExpr> {
    entries.iter().flat_map(|entry| match &entry.expr {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    })
}

/// How many values there are in a value, with itself.
fn nodes(value: &Value) -> u64 {
    let mut count = 0;
    let mut left = vec![value];
    // Ends: each turn takes one value of a finite tree.
    while let Some(value) = left.pop() {
        count += 1;
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => left.extend(fields.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    count
}
