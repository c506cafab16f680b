//! The breaker of an upstream, or of one of its tools.

use crate::id::ToolName;
use crate::restraint::Sign;
use crate::time::Timestamp;

/// How long a probe is given before another may be sent, where the breaker is not told how it went.
const UNSURE_MS: u64 = 1000;
/// How many results are looked at for their share of failures: this many for each failure that opens it in a row.
const WINDOW: u32 = 4;

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerRules {
    /// How many failures in a row open it, 1 to 32. More than half of the last four times as many do so too.
    pub failures: u32,
    /// How long it stays open at first.
    pub cool_down_ms: u64,
    /// How long it stays open at most; the time doubles while probes fail.
    pub cool_down_max_ms: u64,
}

impl Default for BreakerRules {
    fn default() -> Self {
        Self { failures: 5, cool_down_ms: 5_000, cool_down_max_ms: 60_000 }
    }
}

/// What a call would do at an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// It may find out whether the upstream is back. It is answered, or given up, within that time.
    Probe {
        /// How long that takes at most.
        within_ms: u64,
    },
    /// It waits until somebody else found out.
    Other,
}

/// A breaker: closed until the upstream fails too often, then open for a while, then half open until one probe shows how it is.
///
/// Half open is not a state of its own, but an open breaker whose time is over: nobody has to tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    rules: BreakerRules,
    state: State,
    streak: u32,
    streak_of: Whose,
    recent: u128,
    seen: u32,
    recent_of: Whose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open { until: Timestamp, cool_down_ms: u64, probe_until: Option<Timestamp> },
}

/// Whose failures were counted. One tool that always fails says nothing of the upstream's other tools.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Whose {
    Nobodys,
    One(ToolName),
    Everybodys,
}

impl Breaker {
    /// A closed breaker.
    pub const fn new(rules: BreakerRules) -> Self {
        Self {
            rules,
            state: State::Closed,
            streak: 0,
            streak_of: Whose::Nobodys,
            recent: 0,
            seen: 0,
            recent_of: Whose::Nobodys,
        }
    }

    /// Lets a call pass, or says when it is worth coming back. A probe that passes keeps others from passing until it is known
    /// how it went, or its time is over.
    pub fn pass(&mut self, now: Timestamp, errand: Errand) -> Result<(), Timestamp> {
        let State::Open { until, probe_until, .. } = &mut self.state else {
            return Ok(());
        };
        if now < *until {
            return Err(*until);
        }
        match (errand, probe_until.filter(|at| now < *at)) {
            (Errand::Probe { within_ms }, None) => {
                *probe_until = Some(now + within_ms);
                Ok(())
            }
            (_, Some(at)) => Err(at.min(now + UNSURE_MS)),
            (Errand::Other, None) => Err(now + UNSURE_MS),
        }
    }

    /// Takes in what an attempt said. `whose` is the tool that failed, where the failure may be that tool's alone; a breaker of
    /// several tools opens only when more than one of them fails.
    pub fn record(&mut self, now: Timestamp, sign: Sign, whose: Option<&ToolName>) {
        match (self.state, sign) {
            (State::Closed, Sign::Nothing) => {}
            (State::Closed, Sign::Up) => {
                (self.streak, self.streak_of) = (0, Whose::Nobodys);
                self.push(false);
            }
            (State::Closed, Sign::Down) => {
                self.streak += 1;
                self.push(true);
                self.streak_of.add(whose);
                self.recent_of.add(whose);
                if self.fails_too_often() {
                    self.open(now, self.rules.cool_down_ms);
                }
            }
            // What was on its way when it opened tells nothing new.
            (State::Open { until, .. }, _) if now < until => {}
            (State::Open { .. }, Sign::Up) => self.close(),
            (State::Open { cool_down_ms, .. }, Sign::Down) => self.open(now, cool_down_ms.saturating_mul(2)),
            (State::Open { until, cool_down_ms, .. }, Sign::Nothing) => {
                self.state = State::Open { until, cool_down_ms, probe_until: None };
            }
        }
    }

    /// Closes it: a read of our own was answered.
    pub fn close(&mut self) {
        *self = Self::new(self.rules);
    }

    /// Until when nothing is sent again; nothing while it is closed.
    pub fn open_until(&self, now: Timestamp) -> Option<Timestamp> {
        match self.state {
            State::Closed => None,
            State::Open { until, .. } => Some(until.max(now + UNSURE_MS)),
        }
    }

    /// When a probe may be sent; nothing while it is closed.
    pub fn probe_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Closed => None,
            State::Open { until, probe_until, .. } => Some(probe_until.map_or(until, |at| at.max(until))),
        }
    }

    /// Whether it says no more than a new one would.
    pub fn is_blank(&self) -> bool {
        self.state == State::Closed && self.recent == 0
    }

    fn open(&mut self, now: Timestamp, cool_down_ms: u64) {
        let cool_down_ms = cool_down_ms.min(self.rules.cool_down_max_ms);
        let state = State::Open { until: now + cool_down_ms, cool_down_ms, probe_until: None };
        *self = Self { state, ..Self::new(self.rules) };
    }

    fn fails_too_often(&self) -> bool {
        let in_a_row = self.streak >= self.rules.failures && self.streak_of == Whose::Everybodys;
        let window = self.window();
        let often = self.seen >= window && self.recent.count_ones() > window / 2;
        in_a_row || (often && self.recent_of == Whose::Everybodys)
    }

    fn push(&mut self, failed: bool) {
        let window = self.window();
        let mask = if window >= u128::BITS { u128::MAX } else { (1 << window) - 1 };
        self.recent = ((self.recent << 1) | u128::from(failed)) & mask;
        self.seen = (self.seen + 1).min(window);
        if self.recent == 0 {
            self.recent_of = Whose::Nobodys;
        }
    }

    fn window(&self) -> u32 {
        self.rules.failures.saturating_mul(WINDOW).clamp(WINDOW, u128::BITS)
    }
}

impl Whose {
    fn add(&mut self, tool: Option<&ToolName>) {
        *self = match (&*self, tool) {
            (Self::Nobodys, Some(tool)) => Self::One(tool.clone()),
            (Self::One(known), Some(tool)) if known == tool => return,
            _ => Self::Everybodys,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBE: Errand = Errand::Probe { within_ms: 2_000 };

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    fn failing(times: u32) -> Breaker {
        let mut breaker = Breaker::new(BreakerRules::default());
        (0..times).for_each(|_| breaker.record(at(0), Sign::Down, None));
        breaker
    }

    #[test]
    fn it_opens_after_five_failures_in_a_row_and_says_until_when() {
        assert_eq!(failing(4).pass(at(0), Errand::Other), Ok(()));
        let mut breaker = failing(5);
        assert_eq!(breaker.pass(at(0), PROBE), Err(at(5_000)));
        assert_eq!(breaker.open_until(at(0)), Some(at(5_000)));
        assert_eq!(breaker.open_until(at(5_000)), Some(at(6_000)));
    }

    #[test]
    fn an_answer_in_between_begins_the_count_anew() {
        let mut breaker = failing(4);
        breaker.record(at(0), Sign::Up, None);
        (0..4).for_each(|_| breaker.record(at(0), Sign::Down, None));
        assert_eq!(breaker.pass(at(0), Errand::Other), Ok(()));
    }

    #[test]
    fn it_opens_when_more_than_half_of_the_last_twenty_failed() {
        let mut breaker = Breaker::new(BreakerRules::default());
        let mut opened = None;
        for n in 1..100 {
            breaker.record(at(0), if n % 3 == 0 { Sign::Up } else { Sign::Down }, None);
            if breaker.open_until(at(0)).is_some() {
                opened = Some(n);
                break;
            }
        }
        assert_eq!(opened, Some(20));
        let mut breaker = Breaker::new(BreakerRules::default());
        (0..1000).for_each(|n| breaker.record(at(0), if n % 2 == 0 { Sign::Up } else { Sign::Down }, None));
        assert_eq!(breaker.open_until(at(0)), None);
    }

    #[test]
    fn a_no_or_a_limit_never_opens_it() {
        let mut breaker = Breaker::new(BreakerRules::default());
        for n in 0..10_000 {
            breaker.record(at(n), if n % 2 == 0 { Sign::Nothing } else { Sign::Up }, None);
        }
        assert_eq!(breaker.pass(at(0), Errand::Other), Ok(()));
        assert!(breaker.is_blank());
    }

    #[test]
    fn one_tool_that_always_fails_opens_nothing_for_the_others() {
        let (one, other) = (ToolName::new("one"), ToolName::new("other"));
        let mut breaker = Breaker::new(BreakerRules::default());
        (0..100).for_each(|_| breaker.record(at(0), Sign::Down, Some(&one)));
        assert_eq!(breaker.pass(at(0), Errand::Other), Ok(()));
        breaker.record(at(0), Sign::Down, Some(&other));
        assert!(breaker.pass(at(0), Errand::Other).is_err());
    }

    #[test]
    fn half_open_lets_one_probe_pass_and_nothing_else() {
        let mut breaker = failing(5);
        assert_eq!(breaker.pass(at(5_000), Errand::Other), Err(at(6_000)));
        assert_eq!(breaker.pass(at(5_000), PROBE), Ok(()));
        assert_eq!(breaker.pass(at(5_001), PROBE), Err(at(6_001)));
        assert_eq!(breaker.pass(at(7_000), PROBE), Ok(()), "a probe that nobody heard of again is given up");
        breaker.record(at(7_100), Sign::Nothing, None);
        assert_eq!(breaker.pass(at(7_100), PROBE), Ok(()), "a probe that said nothing makes room for the next");
        breaker.record(at(7_200), Sign::Up, None);
        assert_eq!(breaker.pass(at(7_200), Errand::Other), Ok(()));
    }

    #[test]
    fn its_time_doubles_while_probes_fail_and_begins_anew_once_it_closed() {
        let mut breaker = failing(5);
        let mut now = at(0);
        let mut waits = Vec::new();
        for _ in 0..6 {
            let until = breaker.pass(now, PROBE).unwrap_err();
            waits.push(until.since_ms(now));
            now = until;
            assert_eq!(breaker.pass(now, PROBE), Ok(()));
            breaker.record(now, Sign::Down, None);
        }
        assert_eq!(waits, [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
        breaker.close();
        (0..5).for_each(|_| breaker.record(now, Sign::Down, None));
        assert_eq!(breaker.pass(now, PROBE), Err(now + 5_000));
    }

    #[test]
    fn what_was_on_its_way_when_it_opened_changes_nothing() {
        let mut breaker = failing(5);
        for n in 0..1000 {
            breaker.record(at(n), if n % 2 == 0 { Sign::Up } else { Sign::Down }, None);
        }
        assert_eq!(breaker.pass(at(1000), PROBE), Err(at(5_000)));
    }

    /// Whatever comes: while it is open nothing passes, half open at most one passes until something is heard, and a breaker that
    /// hears only good things closes.
    #[test]
    fn it_never_lets_more_through_than_it_should() {
        let mut chance = 11_u64;
        let mut draw = |n: u64| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (chance >> 33) % n
        };
        for round in 0..500 {
            let rules = BreakerRules { failures: 1 + round % 32, cool_down_ms: 100, cool_down_max_ms: 1000 };
            let mut breaker = Breaker::new(rules);
            let mut now = at(0);
            for _ in 0..400 {
                now = now + draw(60);
                let half_open = breaker.probe_at().is_some_and(|probe| probe <= now);
                let errand = if draw(2) == 0 { Errand::Probe { within_ms: 50 } } else { Errand::Other };
                let passed = breaker.pass(now, errand).is_ok();
                match breaker.open_until(now) {
                    None => assert!(passed),
                    Some(_) => {
                        assert_eq!(passed, half_open && errand != Errand::Other);
                        assert!(!passed || breaker.pass(now, PROBE).is_err());
                    }
                }
                let sign = [Sign::Up, Sign::Down, Sign::Down, Sign::Nothing][draw(4) as usize];
                breaker.record(now, sign, None);
            }
            now = now + 1000;
            assert!(breaker.pass(now, Errand::Probe { within_ms: 50 }).is_ok(), "its longest time is over");
            breaker.record(now, Sign::Up, None);
            assert_eq!(breaker.pass(now, Errand::Other), Ok(()));
        }
    }
}
