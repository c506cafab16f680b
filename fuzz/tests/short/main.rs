//! Every target over its corpus, and then over bytes that are made from it.
//!
//! `AMENDS_FUZZ_SEED` makes other bytes; `AMENDS_FUZZ_RUNS` makes more of them; `AMENDS_FUZZ_KEEP=1` keeps each one in a file
//! before it is run, for a crash that leaves no time to say so.

mod chance;
mod corpus;
mod json;
mod mutate;
mod run;

use run::run;

macro_rules! targets {
    ($($name:ident: $runs:literal;)*) => {
        $(#[test]
        fn $name() {
            run(stringify!($name), $runs);
        })*

        #[test]
        fn every_target_runs_here_and_guided() {
            let tested = [$(stringify!($name)),*];
            assert_eq!(tested, amends_fuzz::TARGETS.map(|(name, _)| name));
            let guided = concat!(env!("CARGO_MANIFEST_DIR"), "/guided/fuzz_targets");
            for name in tested {
                assert!(std::fs::exists(format!("{guided}/{name}.rs")).is_ok_and(|there| there), "{guided}/{name}.rs");
            }
        }
    };
}

// How often each runs: what it can do in about a second.
targets! {
    scan: 20_000;
    lines: 10_000;
    events: 20_000;
    message: 20_000;
    tools: 5_000;
    call: 20_000;
    steps: 5_000;
    classify: 3_000;
    schema: 10_000;
    envelope: 2_000;
    config: 8_000;
    expression: 2_000;
    privacy: 3_000;
    trace: 5_000;
    dispatcher: 5_000;
    walk: 2_000;
}
