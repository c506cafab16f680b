//! What was measured, as a table or as JSON.

use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use crate::house::Way;
use crate::load::Slice;
use crate::rounds::{Cell, Measured, Plan};

/// The best and the middle of some rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) median: f64,
    pub(crate) best: f64,
}

/// Prints everything.
pub(crate) fn print(plan: &Plan, measured: &Measured, as_json: bool) -> Result<()> {
    let text = match as_json {
        true => serde_json::to_string_pretty(&json(plan, measured))?,
        false => table(plan, measured),
    };
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        wrote => Ok(wrote?),
    }
}

fn table(plan: &Plan, measured: &Measured) -> String {
    let mut text = format!(
        "One tools/call; median of {} interleaved rounds, the best in brackets. CPU is that of the process under test alone;\n\
         echo is that of the server behind it. Ratios are medians of the ratios within each round.\n",
        plan.rounds
    );
    for callers in &plan.callers {
        text.push_str(&format!(
            "\n{:<30} {:>15} {:>15} {:>17} {:>15} {:>7} {:>10} {:>9} {:>9}\n",
            format!("{callers} caller{}", if *callers == 1 { "" } else { "s" }),
            "p50 ms",
            "p99 ms",
            "calls/s",
            "CPU us/call",
            "echo us",
            "p50/direct",
            "p50/proxy",
            "CPU/proxy"
        ));
        for cell in measured.cells.iter().filter(|cell| cell.callers == *callers && !cell.slices.is_empty()) {
            text.push_str(&row(measured, cell));
        }
    }
    let commit = lowest(&measured.commits_us);
    text.push_str(&format!(
        "\none group commit, 1 producer: p50 {:.3} ({:.3}) ms\n",
        commit.median / 1e3,
        commit.best / 1e3
    ));
    text.push_str(&targets(measured, commit));
    text.trim_end().to_owned()
}

fn row(measured: &Measured, cell: &Cell) -> String {
    let ms = |of: fn(&Slice) -> f64| {
        let figure = lowest_of(cell, of);
        format!("{:.3} ({:.3})", figure.median / 1e3, figure.best / 1e3)
    };
    let cpu = lowest_of(cell, |slice| slice.cpu_us);
    let rate = highest(&values(cell, |slice| slice.per_second));
    let times = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
    format!(
        "{:<30} {:>15} {:>15} {:>17} {:>15} {:>7.1} {:>10} {:>9} {:>9}\n",
        format!("{:<15} {}", cell.route, cell.way),
        ms(|slice| slice.p50_us),
        ms(|slice| slice.p99_us),
        format!("{:.0} ({:.0})", rate.median, rate.best),
        format!("{:.1} ({:.1})", cpu.median, cpu.best),
        lowest_of(cell, |slice| slice.echo_us).median,
        times(ratio(measured, cell, Way::Direct, |slice| slice.p50_us)),
        times(ratio(measured, cell, Way::Proxy, |slice| slice.p50_us)),
        times(ratio(measured, cell, Way::Proxy, |slice| slice.cpu_us)),
    )
}

/// The two targets, and where we stand. Nothing is asserted: the machine has other things to do.
fn targets(measured: &Measured, commit: Figure) -> String {
    let mut text = "\ntarget: a read costs at most twice the CPU of the bare proxy\n".to_owned();
    for cell in measured.cells.iter().filter(|cell| cell.way == Way::AmendsRead) {
        if let Some(times) = ratio(measured, cell, Way::Proxy, |slice| slice.cpu_us) {
            text.push_str(&format!("  {:<15} {:>3} callers: {times:.2} times\n", cell.route, cell.callers));
        }
    }
    text.push_str("target: a write's p50 is about two group commits and the bare proxy's p50 (1 caller)\n");
    for cell in measured.cells.iter().filter(|cell| cell.way == Way::AmendsWrite && cell.callers == 1) {
        if let Some(proxy) = measured.beside(cell, Way::Proxy).filter(|proxy| !proxy.slices.is_empty()) {
            let (write, proxy) = (lowest_of(cell, |slice| slice.p50_us), lowest_of(proxy, |slice| slice.p50_us));
            let over = (write.median - proxy.median) / commit.median;
            let expected = 2.0 * commit.median + proxy.median;
            text.push_str(&format!(
                "  {:<15} {:.3} ms against {:.3} ms: {over:.2} commits over the proxy\n",
                cell.route,
                write.median / 1e3,
                expected / 1e3
            ));
        }
    }
    text
}

fn json(plan: &Plan, measured: &Measured) -> Value {
    let figure = |figure: Figure| json!({ "median": round(figure.median), "best": round(figure.best) });
    let cells: Vec<Value> = measured
        .cells
        .iter()
        .filter(|cell| !cell.slices.is_empty())
        .map(|cell| {
            json!({
                "route": cell.route.to_string(),
                "way": cell.way.to_string(),
                "callers": cell.callers,
                "calls": cell.slices.iter().map(|slice| slice.calls).sum::<usize>(),
                "p50_us": figure(lowest_of(cell, |slice| slice.p50_us)),
                "p99_us": figure(lowest_of(cell, |slice| slice.p99_us)),
                "calls_per_second": figure(highest(&values(cell, |slice| slice.per_second))),
                "cpu_us": figure(lowest_of(cell, |slice| slice.cpu_us)),
                "echo_cpu_us": figure(lowest_of(cell, |slice| slice.echo_us)),
                "p50_by_direct": ratio(measured, cell, Way::Direct, |slice| slice.p50_us).map(round),
                "p50_by_proxy": ratio(measured, cell, Way::Proxy, |slice| slice.p50_us).map(round),
                "cpu_by_proxy": ratio(measured, cell, Way::Proxy, |slice| slice.cpu_us).map(round),
            })
        })
        .collect();
    json!({
        "rounds": plan.rounds,
        "slice_ms": plan.slice.as_millis() as u64,
        "commit_p50_us": figure(lowest(&measured.commits_us)),
        "cells": cells,
    })
}

/// How a cell compares with another way on the same route, round by round.
fn ratio(measured: &Measured, cell: &Cell, way: Way, of: fn(&Slice) -> f64) -> Option<f64> {
    let base = measured.beside(cell, way)?;
    let ratios: Vec<f64> = values(cell, of).iter().zip(values(base, of)).map(|(value, base)| value / base).collect();
    (!ratios.is_empty()).then(|| median(&ratios))
}

fn values(cell: &Cell, of: fn(&Slice) -> f64) -> Vec<f64> {
    cell.slices.iter().map(of).collect()
}

fn lowest_of(cell: &Cell, of: fn(&Slice) -> f64) -> Figure {
    lowest(&values(cell, of))
}

fn lowest(values: &[f64]) -> Figure {
    Figure { median: median(values), best: values.iter().copied().fold(f64::INFINITY, f64::min) }
}

pub(crate) fn highest(values: &[f64]) -> Figure {
    Figure { median: median(values), best: values.iter().copied().fold(0.0, f64::max) }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_the_lowest_time_and_the_highest_rate() {
        assert_eq!(lowest(&[3.0, 1.0, 2.0]), Figure { median: 2.0, best: 1.0 });
        assert_eq!(highest(&[3.0, 1.0, 2.0, 10.0]), Figure { median: 2.5, best: 10.0 });
    }
}
