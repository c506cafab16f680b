//! Many worlds at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::flaw::Flaw;
use crate::watch::Broken;
use crate::world::{Summary, World};

/// A seed whose world broke a promise.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The seed.
    pub seed: u64,
    /// What broke.
    pub broken: Box<Broken>,
}

/// Runs the world of one seed.
pub fn run(seed: u64, flaw: Option<Flaw>) -> Result<Summary, Box<Broken>> {
    World::new(seed, flaw, false).run()
}

/// Runs these seeds on all cores, and gives the first that failed, or what all of them amounted to.
pub fn run_all(seeds: &[u64], flaw: Option<Flaw>) -> Result<Summary, Failed> {
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let failed: Mutex<Option<Failed>> = Mutex::new(None);
    let total = Mutex::new(Summary::default());
    let threads = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut sum = Summary::default();
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed) as usize;
                    let Some(seed) = seeds.get(at).copied() else {
                        break;
                    };
                    match run(seed, flaw) {
                        Ok(one) => sum.add(one),
                        Err(broken) => {
                            stop.store(true, Ordering::Relaxed);
                            let mut failed = failed.lock().unwrap_or_else(|e| e.into_inner());
                            failed.get_or_insert(Failed { seed, broken });
                        }
                    }
                }
                total.lock().unwrap_or_else(|e| e.into_inner()).add(sum);
            });
        }
    });
    match failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
        Some(failed) => Err(failed),
        None => Ok(total.into_inner().unwrap_or_else(|e| e.into_inner())),
    }
}

/// Runs a failing seed once more with a log, and tells its story: what broke, and everything its session saw.
pub fn story(failed: &Failed, flaw: Option<Flaw>) -> String {
    let mut world = World::new(failed.seed, flaw, true);
    let broken = match world.run() {
        Ok(_) => "it did not break again".to_owned(),
        Err(broken) => broken.to_string(),
    };
    format!(
        "seed {}: {broken}\n{}\nAMENDS_SEED={} cargo nextest run -p amends-sim\n",
        failed.seed,
        world.watch.log().join("\n"),
        failed.seed
    )
}

impl Summary {
    const fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.events += other.events;
        self.effects += other.effects;
        self.happenings += other.happenings;
        self.answers += other.answers;
        self.lapses += other.lapses;
        self.undone += other.undone;
        self.unredeemed += other.unredeemed;
        self.stale += other.stale;
        self.busy += other.busy;
        self.given += other.given;
        self.unanswered += other.unanswered;
        self.walks += other.walks;
        self.moves += other.moves;
        self.unmoved += other.unmoved;
        self.repeats += other.repeats;
    }
}
