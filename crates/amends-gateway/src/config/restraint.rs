//! How restraint is settled.

use amends_core::restraint::{BreakerRules, BudgetRules, Rate};

use super::ConfigError;
use super::settle::{invalid, ms};
use super::spec::{BreakerSpec, BudgetSpec, RateSpec};

pub(super) fn breaker(key: &str, spec: &BreakerSpec) -> Result<BreakerRules, ConfigError> {
    let usual = BreakerRules::default();
    let rules = BreakerRules {
        failures: spec.failures.unwrap_or(usual.failures),
        cool_down_ms: spec.cool_down.map_or(usual.cool_down_ms, |span| ms(span.0)),
        cool_down_max_ms: spec.cool_down_max.map_or(usual.cool_down_max_ms, |span| ms(span.0)),
    };
    if !(1..=32).contains(&rules.failures) {
        return Err(invalid(&format!("{key}.failures"), "is 1 to 32".into()));
    }
    if rules.cool_down_ms == 0 {
        return Err(invalid(&format!("{key}.cool_down"), "is longer than nothing".into()));
    }
    if rules.cool_down_max_ms < rules.cool_down_ms {
        return Err(invalid(&format!("{key}.cool_down_max"), "is at least `cool_down`".into()));
    }
    Ok(rules)
}

pub(super) fn budget(key: &str, spec: &BudgetSpec) -> Result<BudgetRules, ConfigError> {
    let usual = BudgetRules::default();
    let tokens = spec.tokens.unwrap_or(usual.tokens);
    if !(1..=1000).contains(&tokens) {
        return Err(invalid(&format!("{key}.tokens"), "is 1 to 1000".into()));
    }
    let per_success_milli = match spec.per_success {
        Some(given) if (0.0..=1000.0).contains(&given) => (given * 1000.0).round() as u32,
        Some(_) => return Err(invalid(&format!("{key}.per_success"), "is 0 to 1000".into())),
        None => usual.per_success_milli,
    };
    Ok(BudgetRules { tokens, per_success_milli })
}

pub(super) fn rate(key: &str, spec: &RateSpec) -> Result<Rate, ConfigError> {
    if !(0.001..=1_000_000.0).contains(&spec.per_second) {
        return Err(invalid(&format!("{key}.per_second"), "is 0.001 to 1000000".into()));
    }
    let burst = spec.burst.unwrap_or(spec.per_second.ceil() as u64);
    if !(1..=1_000_000).contains(&burst) {
        return Err(invalid(&format!("{key}.burst"), "is 1 to 1000000".into()));
    }
    Ok(Rate { per_second_milli: (spec.per_second * 1000.0).round() as u64, burst })
}
