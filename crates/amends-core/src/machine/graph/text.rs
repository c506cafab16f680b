//! The machine in lines of text, for a terminal.

use std::collections::BTreeMap;

use super::super::Machine;
use super::layout::rows;
use super::{Marks, label};
use crate::id::StateName;

/// Draws a machine: each state with the ways that lead away from it.
pub(super) fn draw(machine: &Machine, marks: &Marks) -> String {
    let states: Vec<&StateName> = rows(machine).into_iter().flatten().collect();
    let shown = |state: &StateName| {
        let now = if marks.now.as_ref() == Some(state) { "*" } else { "" };
        if machine.is_terminal(state) { format!("[{state}]{now}") } else { format!("{state}{now}") }
    };
    let width = states.iter().map(|state| shown(state).chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for state in states {
        let mut ways: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for (name, action, _, to) in machine.ways().filter(|(_, _, from, _)| *from == state) {
            ways.entry((name, label(name, action))).or_default().push(shown(to));
        }
        let mut before = shown(state);
        if ways.is_empty() {
            text.push_str(&format!("{before}\n"));
        }
        for ((_, label), to) in ways {
            text.push_str(&format!("{before:width$}  {label} -> {}\n", to.join(" or ")));
            before.clear();
        }
    }
    text
}
