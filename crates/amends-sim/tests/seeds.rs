//! Many worlds, every promise, after every step.
//!
//! `AMENDS_SEED=N` runs one world; `AMENDS_SEEDS=COUNT` runs more or fewer of them.

use std::fs;
use std::path::Path;

use amends_sim::{APPROVALS_FROM, WALKS_FROM, many};

/// How many worlds are run where nothing else is said.
const SEEDS: u64 = 20_000;

/// How many worlds with walks are run where nothing else is said.
const WALKS: u64 = 5_000;

/// How many worlds in which people are asked before calls are sent are run where nothing else is said.
const APPROVALS: u64 = 5_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.trim().parse().ok()
}

fn check(seeds: &[u64]) {
    match many::run_all(seeds, None) {
        #[expect(clippy::print_stdout, reason = "the count is what this test says")]
        Ok(sum) => println!("{} worlds: {sum:?}", seeds.len()),
        Err(failed) => panic!("{}", many::story(&failed, None)),
    }
}

#[test]
fn every_seed_that_ever_broke_a_promise_keeps_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/seeds");
    let mut seeds = Vec::new();
    for file in fs::read_dir(folder).expect("the folder of seeds is there") {
        let path = file.expect("it can be listed").path();
        if path.extension().is_some_and(|ext| ext == "txt") {
            let text = fs::read_to_string(&path).expect("it can be read");
            let lines = text.lines().map(|line| line.split('#').next().unwrap_or(""));
            seeds.extend(lines.filter_map(|line| line.trim().parse::<u64>().ok()));
        }
    }
    check(&seeds);
}

#[test]
fn no_seed_breaks_a_promise() {
    match number("AMENDS_SEED") {
        Some(seed) => check(&[seed]),
        None => check(&(0..number("AMENDS_SEEDS").unwrap_or(SEEDS)).collect::<Vec<_>>()),
    }
}

#[test]
fn no_seed_of_a_world_with_walks_breaks_a_promise() {
    if number("AMENDS_SEED").is_none() {
        let worlds = number("AMENDS_SEEDS").unwrap_or(WALKS);
        check(&(WALKS_FROM..WALKS_FROM + worlds).collect::<Vec<_>>());
    }
}

#[test]
fn no_seed_of_a_world_in_which_people_are_asked_first_breaks_a_promise() {
    if number("AMENDS_SEED").is_none() {
        let worlds = number("AMENDS_SEEDS").unwrap_or(APPROVALS);
        check(&(APPROVALS_FROM..APPROVALS_FROM + worlds).collect::<Vec<_>>());
    }
}
