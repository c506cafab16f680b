//! Whether the conditions of an action can ever hold.
//!
//! A condition that only compares values with what is written out in it depends on nothing but how each of them stands to
//! those. So a few values of each kind stand for all there are, and every combination of them is tried. What is known of a value
//! (its schema, that nothing ever writes it) leaves fewer. Where a condition does more than compare, it may hold.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::held::{Held, Values};
use super::inputs::{is_of, property, requires_within};
use super::results::given;
use super::{Action, Branch, Finding, Machine, Target};
use crate::expression::{Expression, Path};
use crate::id::{ActionName, StateName};
use crate::limits::GUARD_TRIES_MAX;

/// Above this, whole numbers are not told apart.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// What the variables of an expression are in one try.
pub(super) type Try = BTreeMap<String, Value>;

impl Machine {
    /// Conditions of an action that never hold, and targets that are never chosen. Where a name in them leads nowhere, the rest
    /// follows from that.
    pub(super) fn hopeless(&self, name: &ActionName, action: &Action, held: &Held<'_>, found: &mut Vec<Finding>) {
        let at = |part| ["actions", name.as_str(), part];
        let is_told = |part, found: &[Finding]| found.iter().any(|finding| finding.at == at(part));
        if let Some(guard) = action.guard.as_ref().filter(|_| !is_told("guard", found)) {
            let never = !self.can_hold(guard, action) || self.is_out_of_reach(guard, action, held);
            if never {
                let message = format!("it can never be taken: `{}` never holds", guard.source());
                let fix = "mend the guard, the schema of the inputs, or what is written into the fields before it";
                found.push(Finding::error(&at("guard"), message, fix));
            } else if let Some(what) = self.never(guard, "boolean", action) {
                let message =
                    format!("it can never be taken: `{}` is {what}, and a guard is true or false", guard.source());
                found.push(Finding::error(&at("guard"), message, "compare it with what it has to be"));
            }
        }
        let Target::Choice(branches) = &action.to else { return };
        if is_told("to", found) {
            return;
        }
        for (n, branch) in self.unchosen(branches, action, held) {
            let message = match &branch.when {
                Some(when) => format!("`{}` is never chosen by `{}`", branch.state, when.source()),
                None => format!("`{}` is never chosen: one of those before it always is", branch.state),
            };
            let fix = "mend the conditions, or drop the target";
            found.push(Finding::error(&at("to"), message, fix).within(&[n.to_string()]));
        }
    }

    /// A guard that never holds in a walk that begins today, and may in one that goes on from another declaration.
    pub(super) fn of_before(&self, name: &ActionName, action: &Action, held: &Held<'_>, found: &mut Vec<Finding>) {
        let (Some(guard), Some(today)) = (&action.guard, held.begun_today()) else { return };
        if self.is_out_of_reach(guard, action, &today) && !self.is_out_of_reach(guard, action, held) {
            let message = format!("no walk that begins today can take it: `{}` never holds in one", guard.source());
            let fix = "see that it is meant for walks of another declaration alone, or mend the guard";
            found.push(Finding::warning(&["actions", name.as_str(), "guard"], message, fix));
        }
    }

    /// Targets that are never chosen because the action is never taken where they would be.
    pub(super) fn excluded(&self, name: &ActionName, action: &Action, held: &Held<'_>, found: &mut Vec<Finding>) {
        let (Target::Choice(branches), Some(guard)) = (&action.to, &action.guard) else { return };
        let Some(plain) = plainly(guard) else { return };
        if self.is_out_of_reach(guard, action, held) {
            return;
        }
        let alone = self.chosen(branches, None, action, held);
        let guarded = self.chosen(branches, Some(&plain), action, held);
        for ((n, branch), (alone, guarded)) in branches.iter().enumerate().zip(alone.into_iter().zip(guarded)) {
            // The last one must be there even where a guard leaves nothing for it.
            if let Some(when) = branch.when.as_ref().filter(|_| alone && !guarded) {
                let message = format!(
                    "`{}` is never chosen: where the guard `{}` holds, `{}` does not, or one before it does",
                    branch.state,
                    guard.source(),
                    when.source()
                );
                let fix = "mend the guard or the condition, or drop the target";
                found.push(Finding::warning(&["actions", name.as_str(), "to"], message, fix).within(&[n.to_string()]));
            }
        }
    }

    /// Whether a guard never holds over anything that it can be asked about.
    fn is_out_of_reach(&self, guard: &Expression, action: &Action, held: &Held<'_>) -> bool {
        let Some(plain) = plainly(guard) else { return false };
        let (known, tries) = self.tries(&[&plain], action, held);
        known == 1 && !tries.iter().any(|tried| is(&plain, tried) == Some(true))
    }

    /// The targets that are never chosen, as far as that is found within the bound.
    fn unchosen<'a>(&self, branches: &'a [Branch], action: &Action, held: &Held<'_>) -> Vec<(usize, &'a Branch)> {
        let mut chosen = self.chosen(branches, None, action, held);
        for (n, branch) in branches.iter().enumerate() {
            let may = |it: &Expression| self.can_hold(it, action) && self.never(it, "boolean", action).is_none();
            chosen[n] &= branch.when.as_ref().is_none_or(may);
        }
        // The last one must be there even where those before it say all there is to say.
        let always = |branch: &Branch| {
            let when = branch.when.as_ref().filter(|when| when.variables().is_empty());
            when.is_some_and(|when| when.compared().is_some() && is(when, &Try::new()) != Some(false))
        };
        if let [before @ .., Branch { when: None, .. }] = branches {
            chosen[before.len()] = !before.iter().any(always);
        }
        branches.iter().enumerate().zip(chosen).filter(|(_, chosen)| !chosen).map(|(branch, _)| branch).collect()
    }

    /// Which targets are chosen in some try in which that guard holds, or may be in one that is beyond the bound.
    fn chosen(&self, branches: &[Branch], guard: Option<&Expression>, action: &Action, held: &Held<'_>) -> Vec<bool> {
        // One that does more than compare may hold or not, as is needed.
        let plain = |branch: &Branch| branch.when.as_ref().is_some_and(|when| when.compared().is_some());
        let plain: Vec<bool> = branches.iter().map(plain).collect();
        let plain_ones = branches.iter().zip(&plain).filter(|(_, plain)| **plain);
        let conditions: Vec<&Expression> =
            guard.into_iter().chain(plain_ones.filter_map(|(branch, _)| branch.when.as_ref())).collect();
        let (known, tries) = self.tries(&conditions, action, held);
        let guards = usize::from(guard.is_some());
        if known < guards {
            return vec![true; branches.len()];
        }
        let mut chosen = vec![false; branches.len()];
        let holds = |tried: &&Try| guard.is_none_or(|guard| is(guard, tried) == Some(true));
        for tried in tries.iter().filter(holds) {
            let mut asked = guards;
            for (n, branch) in branches.iter().enumerate() {
                let Some(when) = branch.when.as_ref().filter(|_| plain[n]) else {
                    chosen[n] = true;
                    continue;
                };
                // Those after it were not tried together with those before.
                if asked == known {
                    chosen[n..].fill(true);
                    break;
                }
                asked += 1;
                let said = is(when, tried);
                chosen[n] |= said == Some(true);
                if said != Some(false) {
                    break;
                }
            }
        }
        chosen
    }

    /// Everything that the first of those conditions can be asked about, as many of them as can be asked all of it within the
    /// bound, and how many those are.
    fn tries(&self, conditions: &[&Expression], action: &Action, held: &Held<'_>) -> (usize, Vec<Try>) {
        let mut compared: BTreeMap<Path, Vec<Value>> = BTreeMap::new();
        let mut known = 0;
        let mut choices = BTreeMap::new();
        for condition in conditions {
            let Some(more) = condition.compared() else { break };
            let mut both = compared.clone();
            more.into_iter().for_each(|(path, with)| both.entry(path).or_default().extend(with));
            let within = |outer: &Path, inner: &Path| outer != inner && inner.starts_with(outer);
            if both.keys().any(|outer| outer.fields.is_empty() || both.keys().any(|inner| within(outer, inner))) {
                break;
            }
            let changed = both.iter().filter(|(path, with)| compared.get(*path) != Some(*with));
            let mut more: BTreeMap<Path, Vec<Option<Value>>> = choices.clone();
            more.extend(
                changed.map(|(path, with)| (path.clone(), self.choices(path, with, action, &action.from, held))),
            );
            // Each of the conditions is asked in each of the tries; of a value that there is not, nothing can be said.
            let asked = more.values().try_fold(known + 1, |all: usize, choices| all.checked_mul(choices.len()));
            if asked.is_none_or(|asked| asked == 0 || asked > GUARD_TRIES_MAX) {
                break;
            }
            (compared, choices, known) = (both, more, known + 1);
        }
        let all = ["state", "inputs", "setup", "result"].map(|name| (name.to_owned(), json!({})));
        let mut tries = vec![Try::from(all)];
        for (path, choices) in choices {
            let with_choice = |tried: &Try, choice: &Option<Value>| {
                let mut tried = tried.clone();
                if let (Some(choice), Some(variable)) = (choice, tried.get_mut(&path.variable)) {
                    put(variable, &path.fields, choice.clone());
                }
                tried
            };
            tries = tries.iter().flat_map(|tried| choices.iter().map(|choice| with_choice(tried, choice))).collect();
        }
        (known, tries)
    }

    /// What stands for all that a value can be in those states; nothing among them where it may not be there.
    pub(super) fn choices(
        &self,
        path: &Path,
        with: &[Value],
        action: &Action,
        from: &BTreeSet<StateName>,
        held: &Held<'_>,
    ) -> Vec<Option<Value>> {
        let (schema, sure) = match (path.variable.as_str(), path.fields.as_slice()) {
            ("inputs", fields) => typed(action.input.as_ref(), fields),
            ("state", [first, rest @ ..]) => {
                if let Some(written) = held.within(first, from) {
                    return ends(&written, rest);
                }
                let (schema, required) = typed(self.schema.as_ref(), &path.fields);
                (schema, required || (self.fields.contains_key(first) && rest.is_empty()))
            }
            ("result", _) => match given(path, with, action, held) {
                Some(given) => return given,
                None => (None, false),
            },
            _ => (None, false),
        };
        let values = values(schema, with).into_iter().map(Some);
        values.chain((!sure).then_some(None)).collect()
    }
}

/// What those names lead to in each of some values; nothing where they lead nowhere.
pub(super) fn ends(values: &Values, names: &[String]) -> Values {
    let mut ends = Values::new();
    for value in values {
        let end = value.as_ref().and_then(|value| names.iter().try_fold(value, |at, name| at.get(name)));
        if !ends.iter().any(|known| known.as_ref() == end) {
            ends.push(end.cloned());
        }
    }
    ends
}

/// What must hold wherever a guard does, of which only comparisons are made: all of it, or those parts of it.
fn plainly(guard: &Expression) -> Option<Expression> {
    if guard.compared().is_some() {
        return Some(guard.clone());
    }
    let parts = guard.conjuncts().into_iter().filter_map(|part| Expression::parse(part).ok());
    let plain: Vec<String> =
        parts.filter(|part| part.compared().is_some()).map(|part| format!("({})", part.source())).collect();
    (!plain.is_empty()).then(|| Expression::parse(&plain.join(" && ")).ok())?
}

/// What a condition is in a try, where it gives an answer.
pub(super) fn is(condition: &Expression, tried: &Try) -> Option<bool> {
    let variables: Vec<(&str, &Value)> = tried.iter().map(|(name, value)| (name.as_str(), value)).collect();
    condition.evaluate(&variables).ok()?.as_bool()
}

/// The schema of what those names lead to, and whether it is always there.
pub(super) fn typed<'a>(schema: Option<&'a Value>, fields: &[String]) -> (Option<&'a Value>, bool) {
    let (mut at, mut sure) = (schema, true);
    for field in fields {
        sure = sure && schema.zip(at).is_some_and(|(root, part)| requires_within(root, part, field));
        at = schema.zip(at).and_then(|(root, part)| property(root, part, field));
    }
    (at, sure)
}

/// Values that stand for all that fit a schema, for whoever compares them with those.
pub(super) fn values(schema: Option<&Value>, with: &[Value]) -> Vec<Value> {
    let said = |key: &str| schema.and_then(|schema| schema.get(key));
    let kinds: Option<Vec<&str>> = match said("type") {
        Some(Value::String(kind)) => Some(vec![kind]),
        Some(Value::Array(kinds)) => Some(kinds.iter().filter_map(Value::as_str).collect()),
        _ => None,
    };
    let fits = |value: &Value| kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| is_of(value, kind)));
    let named =
        said("enum").and_then(Value::as_array).cloned().or_else(|| said("const").map(|only| vec![only.clone()]));
    let mut values = named.unwrap_or_else(|| {
        let texts = with.iter().filter_map(Value::as_str).flat_map(|text| [text.to_owned(), format!("{text}\u{1}")]);
        let texts = texts.chain([String::new(), "\u{10ffff}".to_owned()]).map(Value::String);
        let plain = [json!(true), json!(false), Value::Null, json!([]), json!({})];
        texts.chain(plain).chain(numbers(schema, with)).collect()
    });
    values.retain(fits);
    values
}

/// Numbers around those, within the bounds of a schema.
fn numbers(schema: Option<&Value>, with: &[Value]) -> Vec<Value> {
    let bound = |key: &str| schema.and_then(|schema| schema.get(key)?.as_f64());
    let (low, high) = (bound("minimum"), bound("maximum"));
    let (above, below) = (bound("exclusiveMinimum"), bound("exclusiveMaximum"));
    let bounds = [low, high, above, below].into_iter().flatten();
    let mut marks: Vec<f64> = with.iter().filter_map(Value::as_f64).chain(bounds).collect();
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    let between = marks.windows(2).map(|pair| f64::midpoint(pair[0], pair[1])).collect::<Vec<_>>();
    let around = marks.iter().flat_map(|mark| [mark - 1.0, *mark, mark + 1.0]);
    let whole = marks.iter().chain(&between).flat_map(|mark| [mark.floor(), mark.ceil()]);
    // Beside a number that is too large to be told apart from its neighbours there is nothing; far from it there is.
    let far = marks.iter().filter(|mark| mark.abs() >= EXACT_MAX).flat_map(|mark| [mark / 2.0, mark * 2.0]);
    let far = far.map(|mark| mark.clamp(f64::MIN, f64::MAX));
    let mut numbers: Vec<f64> = around.chain(whole).chain(between.iter().copied()).chain(far).chain([0.0]).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    let written = |number: f64| {
        if number.fract() == 0.0 && number.abs() < EXACT_MAX { json!(number as i64) } else { json!(number) }
    };
    // Whole numbers that are written out are what they are, and so are their neighbours.
    let exact = with.iter().filter_map(Value::as_i64).filter(|it| it.unsigned_abs() as f64 >= EXACT_MAX);
    let exact = exact.flat_map(|it| [it.saturating_sub(1), it, it.saturating_add(1)]).map(Value::from);
    let mut numbers: Vec<Value> = numbers.into_iter().map(written).chain(exact).collect();
    numbers.retain(|number| {
        let Some(number) = number.as_f64() else { return true };
        // What is so large may be equal to a bound only because it is not told apart from it.
        let large = number.abs() >= EXACT_MAX;
        low.is_none_or(|low| number >= low)
            && high.is_none_or(|high| number <= high)
            && above.is_none_or(|above| number > above || (large && number == above))
            && below.is_none_or(|below| number < below || (large && number == below))
    });
    numbers
}

/// Puts a value where those names lead.
pub(super) fn put(variable: &mut Value, fields: &[String], value: Value) {
    match fields {
        [] => *variable = value,
        [first, rest @ ..] => {
            if !variable.is_object() {
                *variable = Value::Object(Map::new());
            }
            put(&mut variable[first], rest, value);
        }
    }
}

#[cfg(test)]
mod tests;
