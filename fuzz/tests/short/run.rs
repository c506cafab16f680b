//! One target: first what was kept, then what chance makes of it.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use amends_fuzz::{TARGETS, Target};

use crate::chance::Chance;
use crate::corpus::corpus;
use crate::mutate::mutated;

/// The seed where none is given: the same bytes on every machine.
const SEED: u64 = 1;

pub(crate) fn run(name: &str, runs: u64) {
    let (_, target) = TARGETS.into_iter().find(|(known, _)| *known == name).expect("there is such a target");
    let seed = number("AMENDS_FUZZ_SEED").unwrap_or(SEED);
    let runs = number("AMENDS_FUZZ_RUNS").unwrap_or(runs);
    let kept = corpus(name);
    let mut slowest = (Duration::ZERO, String::new());
    let mut one = |bytes: &[u8], said: String| {
        let begun = Instant::now();
        attempt(name, target, bytes, &said);
        if begun.elapsed() > slowest.0 {
            slowest = (begun.elapsed(), said);
        }
    };
    for item in &kept {
        one(&item.bytes, format!("the kept input `{}`", item.name));
    }
    for run in 0..runs {
        let bytes = mutated(&kept, &mut Chance::of(seed, name, run));
        one(&bytes, format!("run {run} of AMENDS_FUZZ_SEED={seed}"));
    }
    eprintln!("{name}: {} kept, {runs} made; the slowest took {:?}: {}", kept.len(), slowest.0, slowest.1);
}

/// Runs the target; if it panics, says with what, and keeps that in a file.
fn attempt(name: &str, target: Target, bytes: &[u8], said: &str) {
    if std::env::var_os("AMENDS_FUZZ_KEEP").is_some() {
        keep(name, "last", bytes);
    }
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(bytes))) {
        let path = keep(name, "failed", bytes);
        eprintln!("`{name}` failed with {said}: {}", bytes.escape_ascii());
        eprintln!("it is in {}; once it is fixed, keep it in fuzz/corpus/{name} under a telling name", path.display());
        resume_unwind(panic);
    }
}

fn keep(name: &str, why: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}-{why}"));
    fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("`{variable}` is a whole number, not `{text}`")))
}
