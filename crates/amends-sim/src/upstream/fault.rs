//! What can befall one request.

use amends_core::Purpose;

use crate::chance::Chance;

/// What befalls one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It cannot be sent at all.
    Refused,
    /// It is lost on the way; the line may be seen to break.
    LoseRequest {
        /// Whether the line is seen to break.
        broken: bool,
    },
    /// It takes effect, and the answer is lost.
    LoseResponse {
        /// Whether the line is seen to break.
        broken: bool,
    },
    /// It arrives late.
    Delay {
        /// After how long.
        after: u64,
    },
    /// It arrives, and takes effect late.
    LateEffect {
        /// After how long.
        after: u64,
        /// Whether an answer follows.
        answers: bool,
    },
    /// It takes effect, and is answered late.
    LateAnswer {
        /// After how long.
        after: u64,
    },
    /// 409: an earlier request with this key is at work.
    InFlight,
    /// 409: this key was done before. Plain success where it was not.
    Done,
    /// 412.
    Stale,
    /// 403.
    Forbidden,
    /// 422.
    Invalid,
    /// 429, perhaps with a wait.
    Limited {
        /// The wait it asks for; zero for none.
        retry_after_ms: u64,
    },
    /// 500, before or after the effect.
    Failed {
        /// Whether the effect happened.
        after: bool,
    },
    /// 503, nothing done.
    Busy,
    /// The result does not fit what the tool declares.
    Malformed,
    /// An error in words, before or after the effect.
    Plain {
        /// Whether the effect happened.
        after: bool,
    },
    /// It is answered with a question; nothing is done.
    Round,
    /// The upstream asks something while it works, and waits.
    Asks,
    /// The process dies, before or after the effect.
    Crash {
        /// Whether the effect happened.
        after: bool,
    },
}

impl Fault {
    /// Draws what befalls a request.
    pub fn draw(chance: &mut Chance, percent: u64, purpose: Purpose, life_ms: u64) -> Self {
        if !chance.percent(percent) {
            return Self::None;
        }
        let after = chance.percent(50);
        let late = if chance.percent(50) {
            chance.between(100, 5_000)
        } else {
            chance.between(3_000, life_ms.saturating_sub(500).max(3_000))
        };
        let acts = matches!(purpose, Purpose::Act | Purpose::Reverse);
        match chance.between(0, if acts { 21 } else { 14 }) {
            0 => Self::Refused,
            1 => Self::LoseRequest { broken: after },
            2 | 3 => Self::LoseResponse { broken: after },
            4 => Self::Delay { after: late },
            5 => Self::LateAnswer { after: late },
            6 => Self::Limited { retry_after_ms: chance.pick(&[0, 0, 700, 2_000, 30_000]) },
            7 => Self::Busy,
            8 | 9 => Self::Failed { after },
            10 => Self::Malformed,
            11 => Self::Plain { after },
            12 => Self::InFlight,
            13 => Self::Forbidden,
            14 => Self::Done,
            15 | 16 => Self::LateEffect { after: late, answers: after },
            17 => Self::Stale,
            18 => Self::Invalid,
            19 => Self::Crash { after },
            20 => Self::LoseResponse { broken: after },
            _ => Self::Done,
        }
    }
}
