//! How long a child that ended is left alone before its next life.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// A child that was ready for so long starts over with the shortest wait.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);
/// So many ends within that time are a loop.
const LOOP_ENDS: usize = 6;
const LOOP_WITHIN: Duration = Duration::from_secs(60);
/// How often a child in a loop is tried.
const PROBE_EVERY: Duration = Duration::from_secs(30);

/// The ends of a child's lives, and what follows from them for the next one.
#[derive(Debug)]
pub(super) struct Restarts {
    backoff: Duration,
    ends: VecDeque<Instant>,
    looping: bool,
}

impl Default for Restarts {
    fn default() -> Self {
        Self { backoff: BACKOFF_MIN, ends: VecDeque::new(), looping: false }
    }
}

impl Restarts {
    /// The child ended at that time, after it had been ready for so long, where it ever was. It says how long to wait: the waits
    /// grow, and each is cut by up to a half by `chance`, which is between 0 and 1, so that children that fell together do not
    /// rise together.
    pub(super) fn ended(&mut self, at: Instant, ready_for: Option<Duration>, chance: f64) -> Duration {
        if ready_for.is_some_and(|time| time >= HEALTHY_AFTER) {
            *self = Self::default();
        }
        self.ends.push_back(at);
        while self.ends.len() > LOOP_ENDS || self.ends.front().is_some_and(|end| at.duration_since(*end) > LOOP_WITHIN)
        {
            self.ends.pop_front();
        }
        self.looping |= self.ends.len() >= LOOP_ENDS;
        let whole = if self.looping { PROBE_EVERY } else { self.backoff };
        self.backoff = (self.backoff * 2).min(BACKOFF_MAX);
        whole.mul_f64(1.0 - chance.clamp(0.0, 1.0) / 2.0)
    }

    /// Whether the child ends so often that it is only tried from time to time.
    pub(super) const fn is_looping(&self) -> bool {
        self.looping
    }

    /// What is said of a child that ended for that reason.
    pub(super) fn reason(&self, why: String) -> String {
        if !self.looping {
            return why;
        }
        let (ends, within, every) = (LOOP_ENDS, LOOP_WITHIN.as_secs(), PROBE_EVERY.as_secs());
        format!("{why}; it ended {ends} times within {within} s and is only tried every {every} s or so")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_cut_by_up_to_a_half() {
        let (mut restarts, now) = (Restarts::default(), Instant::now());
        assert_eq!(restarts.ended(now, None, 0.0), BACKOFF_MIN);
        assert_eq!(restarts.ended(now, None, 1.0), BACKOFF_MIN);
        assert_eq!(restarts.ended(now, None, 0.5), BACKOFF_MIN * 3);
    }

    #[test]
    fn a_loop_is_seen_and_stays_one_until_a_life_is_long_enough() {
        let (mut restarts, mut now) = (Restarts::default(), Instant::now());
        for _ in 1..LOOP_ENDS {
            assert!(restarts.ended(now, Some(Duration::from_secs(1)), 0.0) <= BACKOFF_MAX);
            assert_eq!(restarts.reason("it ended".into()), "it ended");
        }
        assert_eq!(restarts.ended(now, None, 0.0), PROBE_EVERY);
        assert!(restarts.reason("it ended".into()).contains("6 times"));
        for _ in 0..10 {
            now += PROBE_EVERY;
            assert_eq!(restarts.ended(now, None, 0.0), PROBE_EVERY, "probes are too far apart to count again");
        }
        assert_eq!(restarts.ended(now, Some(HEALTHY_AFTER), 0.0), BACKOFF_MIN);
        assert_eq!(restarts.reason("it ended".into()), "it ended");
    }

    #[test]
    fn ends_that_are_far_apart_are_no_loop() {
        let (mut restarts, mut now) = (Restarts::default(), Instant::now());
        for _ in 0..20 {
            now += LOOP_WITHIN / 2;
            assert!(restarts.ended(now, None, 0.0) <= BACKOFF_MAX);
        }
    }
}
