//! What an expression speaks of in lists: by the names that lead to a list, and from its items on.

use cel::common::ast::{Expr, IdedExpr, LiteralValue};

use super::cost::entries;

/// How one gets from a value to what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// By the name of a member.
    Member(String),
    /// To any item of a list.
    Item,
}

/// A value that an expression speaks of, by the steps that lead to it from a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) variable: String,
    pub(crate) steps: Vec<Step>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.variable)?;
        self.steps.iter().try_for_each(|step| match step {
            Step::Member(name) => write!(f, ".{name}"),
            Step::Item => f.write_str("[]"),
        })
    }
}

/// The values within items of lists that an expression speaks of.
pub(super) fn within_items(expression: &IdedExpr) -> Vec<Place> {
    let mut look = Look { bound: Vec::new(), found: Vec::new() };
    look.at(expression);
    look.found.retain(|place| place.steps.contains(&Step::Item));
    look.found
}

struct Look {
    /// The names that loops gave, with what they stand for where that is known.
    bound: Vec<(String, Option<Place>)>,
    found: Vec<Place>,
}

impl Look {
    fn at(&mut self, part: &IdedExpr) {
        if let Some(place) = self.place(&part.expr)
            && !self.found.contains(&place)
        {
            self.found.push(place);
        }
        match &part.expr {
            Expr::Call(call) => {
                call.target.iter().for_each(|target| self.at(target));
                call.args.iter().for_each(|argument| self.at(argument));
            }
            Expr::Comprehension(over) => {
                self.at(&over.iter_range);
                self.at(&over.accu_init);
                let outside = self.bound.len();
                let item = self.place(&over.iter_range.expr).filter(|_| over.iter_var2.is_none()).map(|mut range| {
                    range.steps.push(Step::Item);
                    range
                });
                self.bound.push((over.iter_var.clone(), item));
                self.bound.extend(over.iter_var2.clone().map(|name| (name, None)));
                self.bound.push((over.accu_var.clone(), None));
                for inner in [&over.loop_cond, &over.loop_step, &over.result] {
                    self.at(inner);
                }
                self.bound.truncate(outside);
            }
            Expr::List(list) => list.elements.iter().for_each(|element| self.at(element)),
            Expr::Map(map) => entries(&map.entries).for_each(|entry| self.at(entry)),
            Expr::Struct(fields) => entries(&fields.entries).for_each(|entry| self.at(entry)),
            Expr::Select(select) => self.at(&select.operand),
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    /// The value that a part names.
    fn place(&self, part: &Expr) -> Option<Place> {
        let (of, step) = match part {
            Expr::Ident(name) => {
                return match self.bound.iter().rev().find(|(bound, _)| bound == name) {
                    Some((_, place)) => place.clone(),
                    None => {
                        Some(Place { variable: name.strip_prefix('.').unwrap_or(name).to_owned(), steps: Vec::new() })
                    }
                };
            }
            Expr::Select(select) => (select.operand.as_ref(), Step::Member(select.field.clone())),
            Expr::Call(call) if call.func_name == "_[_]" => match call.args.as_slice() {
                [of, key] => match &key.expr {
                    Expr::Literal(LiteralValue::String(key)) => (of, Step::Member(key.to_string())),
                    _ => return self.place(&of.expr).map(|place| place.then(Step::Item)),
                },
                _ => return None,
            },
            _ => return None,
        };
        self.place(&of.expr).map(|place| place.then(step))
    }
}

impl Place {
    fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::expression::Expression;

    #[test]
    fn what_is_read_of_items_is_told() {
        let places = |source: &str| {
            let places = Expression::parse(source).unwrap().within_items();
            places.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            places("inputs.lines.all(l, l.n > 0 && l.parts.exists(p, p['id'] == state.id))"),
            [
                "inputs.lines[].n",
                "inputs.lines[]",
                "inputs.lines[].parts",
                "inputs.lines[].parts[].id",
                "inputs.lines[].parts[]"
            ]
        );
        assert_eq!(
            places("inputs.lines[0].n == state.list[inputs.n]"),
            ["inputs.lines[0].n".replace('0', ""), "inputs.lines[]".into(), "state.list[]".into()]
        );
        assert_eq!(places("inputs.lines.map(l, l + 1).all(m, m.n > 1)"), ["inputs.lines[]"]);
        assert_eq!(places("inputs.a.b == 1"), Vec::<String>::new());
    }
}
