//! Rounds: every variant a little, again and again, so that a busy minute of the machine hits all of them alike.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::house::{House, Route, Variant, Way};
use crate::load::{self, Slice};

/// How much is measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) slice: Duration,
    pub(crate) callers: Vec<usize>,
}

/// One variant with so many callers, over all rounds.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) route: Route,
    pub(crate) way: Way,
    pub(crate) callers: usize,
    pub(crate) slices: Vec<Slice>,
}

/// What all rounds showed.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) cells: Vec<Cell>,
    /// The p50 of one group commit in each round.
    pub(crate) commits_us: Vec<f64>,
}

impl Measured {
    /// The cell that another one is compared with, if there is one.
    pub(crate) fn beside(&self, cell: &Cell, way: Way) -> Option<&Cell> {
        self.cells.iter().find(|it| it.route == cell.route && it.way == way && it.callers == cell.callers)
    }
}

/// Runs all rounds. The first one warms up and does not count.
pub(crate) async fn run(plan: &Plan, house: &House, variants: &[Variant]) -> Result<Measured> {
    let mut commits = house.commits()?;
    let mut measured = Measured { cells: Vec::new(), commits_us: Vec::new() };
    for callers in &plan.callers {
        for Variant { route, way, .. } in variants {
            measured.cells.push(Cell { route: *route, way: *way, callers: *callers, slices: Vec::new() });
        }
    }
    for round in 0..=plan.rounds {
        let lasting = if round == 0 { plan.slice / 4 } else { plan.slice };
        let each = plan.callers.iter().flat_map(|callers| variants.iter().map(move |variant| (*callers, variant)));
        for ((callers, variant), cell) in each.zip(&mut measured.cells) {
            let slice = load::slice(variant, callers, lasting);
            let slice =
                slice.await.with_context(|| format!("{}: {}, {callers} callers", variant.route, variant.way))?;
            if round > 0 && slice.calls > 0 {
                cell.slices.push(slice);
            }
        }
        let commit = commits.p50_us(lasting).await?;
        if round > 0 {
            measured.commits_us.push(commit);
            eprintln!("round {round} of {}", plan.rounds);
        }
    }
    Ok(measured)
}
