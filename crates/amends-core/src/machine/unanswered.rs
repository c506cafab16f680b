//! Expressions that never give an answer, and fields that a machine is begun with and that never fit it.

use super::inputs::property;
use super::satisfiable::never_fits;
use super::{Action, Does, Finding, Machine, Machines};
use crate::expression::Expression;
use crate::id::ActionName;

impl Machine {
    /// Expressions of an action that never give an answer, whatever they speak of. Of a guard and of a condition that is told where
    /// they are looked at: they never hold.
    pub(super) fn unanswered(&self, name: &ActionName, action: &Action, found: &mut Vec<Finding>) {
        let own = action.writes.iter().map(|(field, write)| (vec!["writes", field.as_str()], write));
        let others = action.expressions().filter(|(part, ..)| !["guard", "to", "writes"].contains(part));
        let own = own.map(|(part, write)| (part, Vec::new(), write));
        for (part, within, expression) in own.chain(others.map(|(part, within, it)| (vec![part], within, it))) {
            let Some(why) = self.unanswerable(expression, action) else { continue };
            let at = [&["actions", name.as_str()], part.as_slice()].concat();
            if found.iter().any(|finding| finding.at == at && finding.within == within) {
                continue;
            }
            let message = format!("`{}` never gives an answer: {why}", expression.source());
            let fix = match part[0] {
                "writes" => "mend it: what is done before it would be done, and the walk could not go on",
                _ => "mend it: the action can never be done",
            };
            found.push(Finding::error(&at, message, fix).within(&within));
        }
    }

    /// Whether a condition can hold, as far as it says itself: so must each part of it that must hold, and give an answer.
    pub(super) fn can_hold(&self, condition: &Expression, action: &Action) -> bool {
        let mut parts = condition.conjuncts().into_iter().filter_map(|part| Expression::parse(part).ok());
        condition.can_hold() && parts.all(|part| self.unanswerable(&part, action).is_none())
    }

    /// Why an expression of an action never gives an answer.
    pub(super) fn unanswerable(&self, expression: &Expression, action: &Action) -> Option<String> {
        // What there is not is told by its name.
        if !expression.unknown_functions().is_empty() {
            return None;
        }
        expression.never_answers(&|path| self.kinds_at(path, action))
    }

    /// Fields that another machine is begun with and that never fit it.
    pub(super) fn misbegun(&self, name: &ActionName, action: &Action, others: &Machines, found: &mut Vec<Finding>) {
        let Does::Machine(run) = &action.does else { return };
        let Some(schema) = others.get(run).and_then(|run| run.schema.as_ref()) else { return };
        for (field, given) in &action.args {
            let Some(takes) = property(schema, schema, field) else { continue };
            let wrong = match given.variables().is_empty() {
                true => {
                    given.evaluate(&[]).ok().filter(|value| never_fits(value, schema, takes)).map(|_| String::new())
                }
                false => self
                    .never_of(given, takes, action)
                    .map(|(gives, takes)| format!(": it is {gives}, and has to be {takes}")),
            };
            let Some(how) = wrong else { continue };
            let message =
                format!("`{}` does not fit the `{field}` that `state` of `{run}` describes{how}", given.source());
            let fix = format!("mend it, or the schema: `{run}` can never be begun with it");
            found.push(Finding::error(&["actions", name.as_str(), "args", field], message, fix));
        }
    }
}
