//! The retry budget of an upstream.

use crate::restraint::Sign;

/// One token, in the thousandths that are counted in.
const TOKEN: u32 = 1000;

/// How large a budget is, and how it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetRules {
    /// How many tokens there are at most.
    pub tokens: u32,
    /// What a success gives back, in thousandths of a token.
    pub per_success_milli: u32,
}

impl Default for BudgetRules {
    fn default() -> Self {
        Self { tokens: 10, per_success_milli: 100 }
    }
}

/// The retries an upstream may still cause, as gRPC throttles them: a failure takes a token, a success gives a tenth of one
/// back, and nothing is sent again unless more than half is left. So when everything fails, retries end; first sends go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    rules: BudgetRules,
    left_milli: u32,
}

impl Budget {
    /// A full budget.
    pub const fn new(rules: BudgetRules) -> Self {
        Self { left_milli: rules.tokens.saturating_mul(TOKEN), rules }
    }

    /// Takes in what an attempt said of the upstream.
    pub fn record(&mut self, sign: Sign) {
        self.left_milli = match sign {
            Sign::Up => self.left_milli.saturating_add(self.rules.per_success_milli).min(self.full_milli()),
            Sign::Down => self.left_milli.saturating_sub(TOKEN),
            Sign::Nothing => self.left_milli,
        };
    }

    /// Whether anything may be sent again.
    pub const fn allows(&self) -> bool {
        self.left_milli > self.full_milli() / 2
    }

    /// What is left of it, in thousandths of a token.
    pub const fn left_milli(&self) -> u32 {
        self.left_milli
    }

    const fn full_milli(&self) -> u32 {
        self.rules.tokens.saturating_mul(TOKEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fifth_failure_in_a_row_ends_the_retries() {
        let mut budget = Budget::new(BudgetRules::default());
        let allowed: Vec<bool> = (0..6)
            .map(|_| {
                budget.record(Sign::Down);
                budget.allows()
            })
            .collect();
        assert_eq!(allowed, [true, true, true, true, false, false]);
    }

    #[test]
    fn ten_successes_pay_for_one_failure() {
        let mut budget = Budget::new(BudgetRules::default());
        (0..6).for_each(|_| budget.record(Sign::Down));
        (0..10).for_each(|_| budget.record(Sign::Up));
        assert!(!budget.allows());
        budget.record(Sign::Up);
        assert!(budget.allows());
    }

    #[test]
    fn a_limit_or_a_cancellation_costs_nothing() {
        let mut budget = Budget::new(BudgetRules::default());
        (0..1000).for_each(|_| budget.record(Sign::Nothing));
        assert_eq!(budget, Budget::new(BudgetRules::default()));
    }

    /// Whatever happens, when one in ten fails or fewer, retries go on, and when all fail, they end.
    #[test]
    fn retries_end_by_the_share_that_fails() {
        for every in 11..40 {
            let mut budget = Budget::new(BudgetRules::default());
            for n in 0..10_000 {
                budget.record(if n % every == 0 { Sign::Down } else { Sign::Up });
                assert!(budget.allows(), "one in {every} fails, after {n}");
            }
        }
        for every in 2..9 {
            let mut budget = Budget::new(BudgetRules::default());
            (0..10_000).for_each(|n| budget.record(if n % every == 0 { Sign::Down } else { Sign::Up }));
            assert!(!budget.allows(), "one in {every} fails");
        }
    }
}
