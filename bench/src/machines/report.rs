//! What was measured, as tables or as JSON.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Cell, Measured, Peer, Slice};
use crate::load::quantile;
use crate::report::{highest, median};

/// Prints everything.
pub(crate) fn print(measured: &Measured, as_json: bool) -> Result<()> {
    let text = match as_json {
        true => serde_json::to_string_pretty(&as_value(measured))?,
        false => tables(measured),
    };
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        wrote => Ok(wrote?),
    }
}

fn tables(measured: &Measured) -> String {
    let mut text =
        "| | sessions | steps/s | p50 ms | p99 ms | CPU µs/step | steps/s, times Theodosia's | p50, times as short |\n"
            .to_owned();
    text.push_str("|---|---|---|---|---|---|---|---|\n");
    for cell in &measured.cells {
        let rate = highest(&rates(cell));
        text.push_str(&format!(
            "| {}, {} | {} | {:.0} ({:.0}) | {:.2} | {:.2} | {:.0} | {} | {} |\n",
            cell.peer,
            cell.transport,
            cell.sessions,
            rate.median,
            rate.best,
            ms(took(cell, 0.5)),
            ms(took(cell, 0.99)),
            cpu(cell),
            times(measured, cell).map_or_else(String::new, |times| format!("{times:.1}")),
            shorter(measured, cell).map_or_else(String::new, |times| format!("{times:.1}")),
        ));
    }
    text.push_str("\n| | first start ms | start ms | MB at the start | MB after the load |\n|---|---|---|---|---|\n");
    for start in &measured.starts {
        let middle = |times: &[Duration]| median(&times.iter().map(|took| ms(*took)).collect::<Vec<_>>());
        let memory = median(&start.memory.iter().map(|bytes| mb(*bytes)).collect::<Vec<_>>());
        let after =
            measured.memory.iter().find(|(peer, transport, _)| (*peer, *transport) == (start.peer, start.transport));
        text.push_str(&format!(
            "| {}, {} | {:.0} | {:.0} | {memory:.1} | {:.1} |\n",
            start.peer,
            start.transport,
            middle(&start.first),
            middle(&start.again),
            after.map_or(f64::NAN, |(_, _, bytes)| mb(*bytes)),
        ));
    }
    text.trim_end().to_owned()
}

fn as_value(measured: &Measured) -> Value {
    let cells = measured.cells.iter().map(|cell| {
        let rate = highest(&rates(cell));
        json!({
            "server": cell.peer.to_string(),
            "transport": cell.transport.to_string(),
            "sessions": cell.sessions,
            "steps_per_second": { "median": rate.median, "best": rate.best },
            "p50_ms": ms(took(cell, 0.5)),
            "p99_ms": ms(took(cell, 0.99)),
            "cpu_us": cpu(cell),
            "times_theodosia": times(measured, cell),
            "p50_times_shorter": shorter(measured, cell),
        })
    });
    let starts = measured.starts.iter().map(|start| {
        let all = |times: &[Duration]| times.iter().map(|took| ms(*took)).collect::<Vec<_>>();
        json!({
            "server": start.peer.to_string(),
            "transport": start.transport.to_string(),
            "first_ms": all(&start.first),
            "again_ms": all(&start.again),
            "memory_bytes": start.memory,
        })
    });
    let memory = measured.memory.iter().map(|(peer, transport, bytes)| {
        json!({ "server": peer.to_string(), "transport": transport.to_string(), "after_load_bytes": bytes })
    });
    json!({
        "cells": cells.collect::<Vec<_>>(),
        "starts": starts.collect::<Vec<_>>(),
        "memory": memory.collect::<Vec<_>>(),
    })
}

fn rates(cell: &Cell) -> Vec<f64> {
    cell.slices.iter().map(|slice| slice.per_second).collect()
}

fn cpu(cell: &Cell) -> f64 {
    median(&cell.slices.iter().map(|slice| slice.cpu_us).collect::<Vec<_>>())
}

/// Over the steps of all rounds: a slow server takes too few in one.
fn took(cell: &Cell, share: f64) -> Duration {
    let mut all: Vec<Duration> = cell.slices.iter().flat_map(|Slice { took, .. }| took).copied().collect();
    all.sort_unstable();
    quantile(&all, share)
}

/// How many times as many steps a second as Theodosia, the median over the rounds.
fn times(measured: &Measured, cell: &Cell) -> Option<f64> {
    let beside = beside(measured, cell)?;
    let ratios: Vec<f64> = rates(cell).iter().zip(rates(beside)).map(|(rate, beside)| rate / beside).collect();
    (!ratios.is_empty()).then(|| median(&ratios))
}

/// How many times as short as Theodosia's the median step is.
fn shorter(measured: &Measured, cell: &Cell) -> Option<f64> {
    Some(ms(took(beside(measured, cell)?, 0.5)) / ms(took(cell, 0.5)))
}

/// Theodosia over the same transport with as many sessions; nothing for Theodosia itself.
fn beside<'a>(measured: &'a Measured, cell: &Cell) -> Option<&'a Cell> {
    let same = |other: &&Cell| {
        other.peer == Peer::Theodosia && other.transport == cell.transport && other.sessions == cell.sessions
    };
    measured.cells.iter().find(same).filter(|_| cell.peer != Peer::Theodosia)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
