//! Where each state of a picture stands: in rows, by how many moves it is away from the beginning.

use std::collections::BTreeMap;

use super::super::Machine;
use crate::id::StateName;

pub(super) const HEIGHT: f64 = 40.0;
const ROW_GAP: f64 = 72.0;
const COLUMN_GAP: f64 = 48.0;
pub(super) const MARGIN: f64 = 28.0;
/// How wide a letter is taken to be.
pub(super) const LETTER: f64 = 8.2;

/// A state's box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spot {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) row: usize,
}

impl Spot {
    pub(super) fn middle(self) -> f64 {
        self.x + self.width / 2.0
    }
}

/// The boxes of all states.
pub(super) fn spots(machine: &Machine) -> BTreeMap<&StateName, Spot> {
    let rows = rows(machine);
    let width = |state: &StateName| state.as_str().chars().count() as f64 * LETTER + 32.0;
    let widths: Vec<f64> = rows
        .iter()
        .map(|row| row.iter().map(|state| width(state)).sum::<f64>() + COLUMN_GAP * row.len().saturating_sub(1) as f64)
        .collect();
    let widest = widths.iter().copied().fold(0.0, f64::max);
    let mut spots = BTreeMap::new();
    for (n, row) in rows.iter().enumerate() {
        let mut x = MARGIN + (widest - widths[n]) / 2.0;
        for state in row {
            let spot = Spot { x, y: MARGIN + n as f64 * (HEIGHT + ROW_GAP), width: width(state), row: n };
            x += spot.width + COLUMN_GAP;
            spots.insert(*state, spot);
        }
    }
    spots
}

/// The states by their distance from the beginning; in a row, each stands near those that lead to it.
pub(super) fn rows(machine: &Machine) -> Vec<Vec<&StateName>> {
    let mut rows: Vec<Vec<&StateName>> = vec![vec![&machine.initial]];
    // Ends: each further row has states that no earlier one has.
    while let Some(last) = rows.last().filter(|row| !row.is_empty()) {
        let mut next: Vec<(f64, &StateName)> = Vec::new();
        for (_, _, _, to) in machine.ways().filter(|(_, _, from, _)| last.contains(from)) {
            if rows.iter().flatten().any(|known| *known == to) || next.iter().any(|(_, known)| *known == to) {
                continue;
            }
            let above: Vec<f64> = machine
                .ways()
                .filter(|(_, _, _, target)| *target == to)
                .filter_map(|(_, _, from, _)| last.iter().position(|known| *known == from).map(|at| at as f64))
                .collect();
            next.push((above.iter().sum::<f64>() / above.len().max(1) as f64, to));
        }
        next.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(b.1)));
        rows.push(next.into_iter().map(|(_, state)| state).collect());
    }
    rows.retain(|row| !row.is_empty());
    rows
}
