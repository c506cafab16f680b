//! What a field can be in each state, as far as what is written into it on the way there is written out.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::{Action, Machine, Machines};
use crate::expression::Expression;
use crate::id::StateName;

/// How many values of a field are told apart. More are never within the bound of what is tried.
const VALUES_MAX: usize = 64;

/// All that a field can be, and nothing among that where it may not be there.
pub(super) type Values = Vec<Option<Value>>;

/// What a field can be in each state that can be reached; nothing for one in which it can be anything.
type ByState<'a> = BTreeMap<&'a StateName, Option<Values>>;

/// What the fields of a machine can be, among those that it is declared with.
pub(super) struct Held<'a> {
    machine: &'a Machine,
    pub(super) others: &'a Machines,
    /// Whether it may go on with fields of which nothing is known.
    takes_over: bool,
    known: RefCell<BTreeMap<String, Rc<ByState<'a>>>>,
}

impl<'a> Held<'a> {
    pub(super) fn of(machine: &'a Machine, others: &'a Machines) -> Self {
        Self { machine, others, takes_over: others.takes_over(machine), known: RefCell::default() }
    }

    /// The same for walks that begin today, where those of another declaration may go on in it too.
    pub(super) fn begun_today(&self) -> Option<Self> {
        let Self { machine, others, .. } = *self;
        self.takes_over.then(|| Self { machine, others, takes_over: false, known: RefCell::default() })
    }

    /// All that a field can be in those states; nothing where it can be anything.
    pub(super) fn within<'s>(&self, field: &str, states: impl IntoIterator<Item = &'s StateName>) -> Option<Values> {
        if self.takes_over {
            return None;
        }
        let known = self.known.borrow().get(field).cloned();
        let by_state = known.unwrap_or_else(|| {
            let flowed = Rc::new(self.flow(field));
            self.known.borrow_mut().insert(field.to_owned(), Rc::clone(&flowed));
            flowed
        });
        let mut all = Some(Values::new());
        for here in states.into_iter().filter_map(|state| by_state.get(state)) {
            join(&mut all, here);
        }
        all
    }

    /// All that a field can ever be; nothing where it can be anything.
    pub(super) fn ever(&self, field: &str) -> Option<Values> {
        self.within(field, self.machine.states())
    }

    /// All that a field can be when the machine is over; nothing where it can be anything.
    pub(super) fn at_the_end(&self, field: &str) -> Option<Values> {
        self.within(field, &self.machine.terminal)
    }

    /// Follows what is written from where the machine begins to wherever its actions lead, whatever their guards say. A walk that is
    /// reset begins there anew, and a fork is as another walk was.
    fn flow(&self, field: &str) -> ByState<'a> {
        let machine = self.machine;
        let ways: Vec<(&Action, Option<Option<Values>>)> =
            machine.actions.values().map(|action| (action, written(action, field))).collect();
        let mut held = ByState::from([(&machine.initial, self.begun(field))]);
        let mut left = vec![&machine.initial];
        // Ends: a state is gone on from only when it can be more than before, and there is a bound on that.
        while let Some(state) = left.pop() {
            let here = held[state].clone();
            for (action, written) in ways.iter().filter(|(action, _)| action.from.contains(state)) {
                let after = written.as_ref().unwrap_or(&here);
                for to in action.to.states() {
                    let is_new = !held.contains_key(to);
                    if join(held.entry(to).or_insert_with(|| Some(Values::new())), after) || is_new {
                        left.push(to);
                    }
                }
            }
        }
        held
    }

    /// What a field can be when the machine is begun.
    fn begun(&self, field: &str) -> Option<Values> {
        let own = || Some(vec![self.machine.fields.get(field).cloned()]);
        let given = |action: &Action| action.args.get(field).map_or_else(own, values);
        let begun: Vec<Option<Values>> =
            self.others.runners(&self.machine.name).map(|(.., action)| given(action)).collect();
        if begun.is_empty() {
            return own();
        }
        let mut all = Some(Values::new());
        for more in &begun {
            join(&mut all, more);
        }
        all
    }
}

/// What an action leaves in a field, where it writes it.
fn written(action: &Action, field: &str) -> Option<Option<Values>> {
    // What an agent gives as it is may have any names in it.
    action.writes.get(field).map(values).or_else(|| action.keeps_inputs.then_some(None))
}

/// All that an expression can give, where that is written out.
fn values(expression: &Expression) -> Option<Values> {
    if let Some(texts) = expression.answers() {
        return Some(texts.into_iter().map(|text| Some(Value::String(text))).collect());
    }
    expression.variables().is_empty().then(|| expression.evaluate(&[]).ok()).flatten().map(|value| vec![Some(value)])
}

/// Adds what else it can be, and says whether that is more.
fn join(all: &mut Option<Values>, more: &Option<Values>) -> bool {
    let Some(known) = all else { return false };
    let before = known.len();
    match more {
        Some(more) => {
            for value in more {
                if !known.contains(value) {
                    known.push(value.clone());
                }
            }
            let is_more = known.len() > before;
            if known.len() > VALUES_MAX {
                *all = None;
            }
            is_more
        }
        None => {
            *all = None;
            true
        }
    }
}
