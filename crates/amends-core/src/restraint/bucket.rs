//! The rate at which one principal may call.

use crate::time::Timestamp;

/// One token, in the millionths that are counted in.
const TOKEN: u64 = 1_000_000;

/// How often somebody may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Calls a second, in thousandths; never zero.
    pub per_second_milli: u64,
    /// How many calls may come at once; never zero.
    pub burst: u64,
}

/// A bucket of calls: each takes one, and it fills again at its rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    rate: Rate,
    left: u64,
    at: Timestamp,
}

impl Bucket {
    /// A full bucket.
    pub const fn new(rate: Rate, now: Timestamp) -> Self {
        Self { left: rate.burst.saturating_mul(TOKEN), rate, at: now }
    }

    /// Fills at another rate from now on. What is in it stays, as far as there is room for it.
    pub fn go_on_at(&mut self, rate: Rate, now: Timestamp) {
        if rate != self.rate {
            self.fill(now);
            self.rate = rate;
            self.fill(now);
        }
    }

    /// Takes one call, or says how many milliseconds it takes until there is one.
    pub fn take(&mut self, now: Timestamp) -> Result<(), u64> {
        self.fill(now);
        if self.left >= TOKEN {
            self.left -= TOKEN;
            return Ok(());
        }
        Err((TOKEN - self.left).div_ceil(self.rate.per_second_milli.max(1)))
    }

    /// Whether it is full, and so says no more than a new one would.
    pub fn is_full(&mut self, now: Timestamp) -> bool {
        self.fill(now);
        self.left == self.rate.burst.saturating_mul(TOKEN)
    }

    /// A thousandth of a call a second is a millionth of one a millisecond.
    fn fill(&mut self, now: Timestamp) {
        let gained = now.since_ms(self.at).saturating_mul(self.rate.per_second_milli);
        self.left = self.left.saturating_add(gained).min(self.rate.burst.saturating_mul(TOKEN));
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    #[test]
    fn a_burst_passes_and_the_next_is_told_when() {
        let mut bucket = Bucket::new(Rate { per_second_milli: 2000, burst: 3 }, at(0));
        assert!((0..3).all(|_| bucket.take(at(0)).is_ok()));
        assert_eq!(bucket.take(at(0)), Err(500));
        assert_eq!(bucket.take(at(499)), Err(1));
        assert_eq!(bucket.take(at(500)), Ok(()));
        assert!(!bucket.is_full(at(500)));
        assert!(bucket.is_full(at(2000)));
    }

    #[test]
    fn another_rate_counts_from_now_on_and_gives_nobody_a_burst() {
        let mut bucket = Bucket::new(Rate { per_second_milli: 1000, burst: 5 }, at(0));
        assert!((0..5).all(|_| bucket.take(at(0)).is_ok()));
        bucket.go_on_at(Rate { per_second_milli: 2000, burst: 10 }, at(1000));
        assert_eq!((bucket.take(at(1000)), bucket.take(at(1000))), (Ok(()), Err(500)));
        bucket.go_on_at(Rate { per_second_milli: 1000, burst: 1 }, at(9000));
        assert_eq!((bucket.take(at(9000)), bucket.take(at(9000))), (Ok(()), Err(1000)));
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing() {
        let mut bucket = Bucket::new(Rate { per_second_milli: 1000, burst: 1 }, at(10_000));
        assert_eq!(bucket.take(at(10_000)), Ok(()));
        assert_eq!(bucket.take(at(0)), Err(1000));
        assert_eq!(bucket.take(at(10_000)), Err(1000));
    }

    /// However the calls come, no stretch of time sees more than its rate and one burst; and who waits as told gets through.
    #[test]
    fn no_stretch_of_time_sees_more_than_its_rate_and_a_burst() {
        let mut chance = 7_u64;
        for round in 0..200_u64 {
            let rate = Rate { per_second_milli: 1 + round * 37, burst: 1 + round % 9 };
            let mut bucket = Bucket::new(rate, at(0));
            let (mut now, mut passed) = (0, Vec::new());
            for _ in 0..300 {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                now += (chance >> 33) % 700;
                match bucket.take(at(now)) {
                    Ok(()) => passed.push(now),
                    Err(wait) => {
                        now += wait;
                        assert_eq!(bucket.take(at(now)), Ok(()), "{rate:?} after {wait}");
                        passed.push(now);
                    }
                }
            }
            for (n, from) in passed.iter().enumerate() {
                for (more, to) in passed[n..].iter().enumerate() {
                    let allowed = rate.burst * TOKEN + (to - from) * rate.per_second_milli;
                    assert!((more as u64 + 1) * TOKEN <= allowed, "{rate:?}: {more} from {from} to {to}");
                }
            }
        }
    }
}
