//! Retry policies as data: how often and how far apart a failure is sent again, for a verdict, a class or a whole tool.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::rule::default_ladder;
use super::{PlaybookError, forbidden};
use crate::compensation::{Compensation, Ladder};
use crate::contract::Contract;
use crate::limits::{LADDER_STEPS_MAX, WAIT_MS_MAX};
use crate::nearest::nearest;
use crate::registry::{Class, Code};
use crate::verdict::Verdict;

/// How often and how far apart a failure is sent again. What is left out is as in the table we ship.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Whether it is sent again at all.
    pub retryable: bool,
    /// How many sends there are in all, the first included.
    pub max_attempts: Option<u32>,
    /// How the waits grow.
    pub backoff: Option<Backoff>,
    /// The first wait.
    pub initial_ms: Option<u64>,
    /// The longest wait.
    pub max_ms: Option<u64>,
    /// What each wait of an exponential backoff is multiplied by.
    pub factor: Option<f64>,
    /// How far a wait may differ, in percent.
    pub jitter_percent: Option<u8>,
    /// The only codes it is for; empty for all that its section covers.
    pub codes: Vec<String>,
}

/// How the waits of a policy grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// They are all the same.
    Fixed,
    /// Each is the first wait longer than the one before.
    Linear,
    /// Each is a multiple of the one before.
    Exponential,
}

/// The policies of one place in the configuration: the whole file's, or one tool's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetryLayer {
    /// For every failure; only a tool has it.
    pub whole: Option<RetryPolicy>,
    /// By the class's name.
    pub class: BTreeMap<String, RetryPolicy>,
    /// By the verdict's name.
    pub verdict: BTreeMap<String, RetryPolicy>,
}

/// What a policy is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// A tool's every failure.
    Whole,
    /// One class.
    Class(Class),
    /// One verdict, in a tool's own section.
    OwnVerdict(Verdict),
    /// One verdict, of every tool.
    Verdict(Verdict),
}

impl Scope {
    fn holds(self, code: Code) -> bool {
        match self {
            Self::Whole => true,
            Self::Class(class) => code.class() == class,
            Self::OwnVerdict(verdict) | Self::Verdict(verdict) => code.verdict() == verdict,
        }
    }

    /// Whether a policy without `codes` is for this one.
    fn covers(self, code: Code) -> bool {
        self.holds(code)
            && match self {
                Self::Whole | Self::Class(_) => code.retryable(),
                Self::OwnVerdict(_) => true,
                // A tool that is troubled itself is sent again only where its own section, its class or its code is named.
                Self::Verdict(_) => code.class() != Class::ToolTransient,
            }
    }
}

impl RetryPolicy {
    /// The codes it is for.
    pub(super) fn codes(&self, scope: Scope) -> Result<Vec<Code>, PlaybookError> {
        if self.codes.is_empty() {
            return Ok(Code::ALL.into_iter().filter(|code| scope.covers(*code)).collect());
        }
        let named = |name: &String| {
            let code = Code::parse(name).ok_or_else(|| PlaybookError::UnknownCode {
                name: name.clone(),
                nearest: nearest(name, Code::ALL.map(Code::as_str)),
            })?;
            let (class, verdict) = (code.class().as_str(), code.verdict().as_str());
            match scope.holds(code) {
                true => Ok(code),
                false => Err(PlaybookError::Elsewhere { code: code.as_str(), class, verdict }),
            }
        };
        self.codes.iter().map(named).collect()
    }

    /// Refuses a policy that makes no sense, never ends, or would break a promise.
    pub(super) fn check(&self, scope: Scope, contract: &Contract) -> Result<(), PlaybookError> {
        self.check_fields()?;
        let codes = self.codes(scope)?;
        if !self.sends_again() {
            return Ok(());
        }
        if let Scope::OwnVerdict(verdict) | Scope::Verdict(verdict) = scope {
            return forbidden::allowed(verdict, &self.sending(verdict), contract);
        }
        // A class of which nothing may be sent again is refused with the reason of its first code.
        let held = || Code::ALL.into_iter().filter(|code| scope.holds(*code)).collect();
        let checked: Vec<Code> = if codes.is_empty() { held() } else { codes };
        for code in checked {
            forbidden::allowed(code.verdict(), &self.sending(code.verdict()), contract)?;
        }
        Ok(())
    }

    fn check_fields(&self) -> Result<(), PlaybookError> {
        let wrong = |field, reason| Err(PlaybookError::Field { field, reason });
        let ladder = self.backoff.is_some() || self.initial_ms.is_some() || self.max_ms.is_some();
        if !self.retryable && (self.max_attempts.is_some_and(|max| max > 1) || ladder || self.factor.is_some()) {
            return wrong("retryable", "is false, so there is nothing to say about further sends");
        }
        match self.max_attempts {
            Some(0) => return wrong("max_attempts", "counts the first send too, so it is at least 1"),
            Some(max) if max as usize > LADDER_STEPS_MAX + 1 => {
                return wrong("max_attempts", "is above 17, the first send and 16 further ones");
            }
            _ => {}
        }
        if self.initial_ms.is_some_and(|wait| wait > WAIT_MS_MAX) {
            return wrong("initial", "is longer than a day");
        }
        if self.max_ms.is_some_and(|wait| wait > WAIT_MS_MAX) {
            return wrong("max", "is longer than a day");
        }
        if self.initial_ms.zip(self.max_ms).is_some_and(|(initial, max)| initial > max) {
            return wrong("initial", "is longer than `max`");
        }
        if self.factor.is_some() && self.backoff != Some(Backoff::Exponential) {
            return wrong("factor", "is for `backoff = \"exponential\"` only");
        }
        if self.factor.is_some_and(|factor| !(1.0..=100.0).contains(&factor)) {
            return wrong("factor", "is not from 1 to 100");
        }
        if self.jitter_percent.is_some_and(|percent| percent > 100) {
            return wrong("jitter", "is above 100 %");
        }
        Ok(())
    }

    /// Whether it sends anything again.
    pub(super) fn sends_again(&self) -> bool {
        self.retryable && self.max_attempts != Some(1)
    }

    /// What is done about that verdict where it is sent again.
    pub(super) fn sending(&self, verdict: Verdict) -> Compensation {
        let ladder = self.ladder(verdict);
        if verdict == Verdict::RateLimited {
            Compensation::Wait(ladder)
        } else {
            Compensation::RetryWithBackoff(ladder)
        }
    }

    /// The waits of something that is no call of its own, such as a stage of a machine.
    pub fn alone(&self) -> Result<Ladder, PlaybookError> {
        self.check_fields()?;
        Ok(self.ladder(Verdict::TransientTimeout))
    }

    fn ladder(&self, verdict: Verdict) -> Ladder {
        let default = default_ladder(verdict);
        let further = self.max_attempts.map_or(default.backoff_ms.len(), |max| max.saturating_sub(1) as usize);
        let shaped = self.backoff.is_some() || self.initial_ms.is_some();
        let first = default.backoff_ms.first().copied().unwrap_or(200);
        let initial = self.initial_ms.unwrap_or(first);
        let wait = |n: usize| match self.backoff {
            None if !shaped => default.backoff_ms.get(n).or(default.backoff_ms.last()).copied().unwrap_or(first),
            Some(Backoff::Fixed) => initial,
            Some(Backoff::Linear) => initial.saturating_mul(n as u64 + 1),
            None | Some(Backoff::Exponential) => {
                let wait = initial as f64 * self.factor.unwrap_or(2.0).powi(i32::try_from(n).unwrap_or(i32::MAX));
                wait.min(WAIT_MS_MAX as f64) as u64
            }
        };
        let longest = self.max_ms.unwrap_or(WAIT_MS_MAX);
        Ladder {
            backoff_ms: (0..further).map(|n| wait(n).min(longest)).collect(),
            jitter_percent: self.jitter_percent.unwrap_or(default.jitter_percent),
            last_ms: if shaped || self.max_attempts.is_some() { None } else { default.last_ms },
            sends_max: self.max_attempts,
        }
    }
}
