//! What calls cost, and how much may be spent.

use std::collections::BTreeMap;

use amends_core::expression::Expression;
use serde::Deserialize;
use serde_json::Value;

use super::ConfigError;
use super::settle::{expression, invalid};
use super::spec::ToolSpec;

/// The most that anything may cost.
const COST_MAX: f64 = 1e12;

/// `cost = { per_session = …, per_principal_day = … }`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CostSpec {
    /// What the calls of one session may cost together. There is no limit by default.
    pub per_session: Option<f64>,
    /// What the calls of one principal may cost in one day, by UTC. There is no limit by default.
    pub per_principal_day: Option<f64>,
}

/// What a call of a tool costs: a number, or a CEL expression over `args` that gives one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum ToolCostSpec {
    /// A whole number.
    Whole(u32),
    /// Any number.
    Number(f64),
    /// A CEL expression over `args`.
    Expression(String),
}

/// What calls cost, and how much may be spent.
#[derive(Clone, Debug, Default)]
pub struct CostConfig {
    /// What one session may spend, in thousandths.
    pub session_max_milli: Option<u64>,
    /// What one principal may spend in a day, in thousandths.
    pub day_max_milli: Option<u64>,
    tools: BTreeMap<String, ToolCost>,
}

#[derive(Clone, Debug)]
enum ToolCost {
    Fixed(u64),
    Told(Expression),
}

impl CostConfig {
    pub(super) fn settle(spec: &CostSpec, tools: &BTreeMap<String, ToolSpec>) -> Result<Self, ConfigError> {
        let cap = |part: &str, cap: Option<f64>| {
            let key = format!("limits.cost.{part}");
            cap.map(|cap| milli(cap).ok_or_else(|| invalid(&key, format!("is 0 to {COST_MAX}")))).transpose()
        };
        let mut of = BTreeMap::new();
        for (name, tool) in tools {
            let key = format!("tools.{name}.cost");
            let number = |cost: f64| milli(cost).ok_or_else(|| invalid(&key, format!("is 0 to {COST_MAX}")));
            let cost = match &tool.cost {
                None => continue,
                Some(ToolCostSpec::Whole(cost)) => ToolCost::Fixed(number(f64::from(*cost))?),
                Some(ToolCostSpec::Number(cost)) => ToolCost::Fixed(number(*cost)?),
                Some(ToolCostSpec::Expression(text)) => ToolCost::Told(expression(&key, text)?),
            };
            of.insert(name.clone(), cost);
        }
        let session_max_milli = cap("per_session", spec.per_session)?;
        let day_max_milli = cap("per_principal_day", spec.per_principal_day)?;
        if of.is_empty() && (session_max_milli.is_some() || day_max_milli.is_some()) {
            return Err(invalid("limits.cost", "bounds what nothing counts: no tool has a `cost`".into()));
        }
        Ok(Self { session_max_milli, day_max_milli, tools: of })
    }

    /// Whether that tool's calls are counted.
    pub fn counts(&self, tool: &str) -> bool {
        self.bounds() && self.tools.contains_key(tool)
    }

    /// What a call of that tool costs, in thousandths; nothing where that is not counted.
    pub fn of(&self, tool: &str, arguments: &Value) -> Result<Option<u64>, String> {
        let Some(cost) = self.tools.get(tool).filter(|_| self.bounds()) else { return Ok(None) };
        match cost {
            ToolCost::Fixed(milli) => Ok(Some(*milli)),
            ToolCost::Told(expression) => {
                let value = expression.evaluate(&[("args", arguments)]).map_err(|error| error.to_string())?;
                let cost = value.as_f64().and_then(milli);
                cost.map(Some).ok_or_else(|| format!("`{}` gives no number from 0 to {COST_MAX}", expression.source()))
            }
        }
    }

    fn bounds(&self) -> bool {
        self.session_max_milli.is_some() || self.day_max_milli.is_some()
    }
}

/// A cost in thousandths. What is finer counts as one of them.
fn milli(cost: f64) -> Option<u64> {
    (0.0..=COST_MAX).contains(&cost).then(|| (cost * 1000.0 - 1e-6).ceil().max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::super::{Spec, settle};
    use serde_json::json;

    #[test]
    fn a_cost_is_a_number_or_what_an_expression_gives() {
        let text = "[limits]\ncost = { per_session = 10 }\n[tools.a]\ncost = 1\n[tools.b]\ncost = 0.0015\n[tools.c]\ncost = \"args.amount * 2.0\"\n[tools.d]\n";
        let config = settle(Spec::parse(text, "test").unwrap()).unwrap().cost;
        assert_eq!(config.session_max_milli, Some(10_000));
        let none = json!({});
        assert_eq!(
            (config.of("a", &none), config.of("b", &none), config.of("d", &none)),
            (Ok(Some(1000)), Ok(Some(2)), Ok(None))
        );
        assert_eq!(config.of("c", &json!({ "amount": 1.25 })), Ok(Some(2500)));
        assert!(config.of("c", &json!({ "amount": -1.0 })).is_err());
        assert!(config.of("c", &none).is_err());
    }

    #[test]
    fn mistakes_are_refused_with_the_key_they_are_in() {
        for (text, says) in [
            ("[limits]\ncost = { per_session = 10 }", "`limits.cost`: bounds what nothing counts"),
            ("[limits]\ncost = { per_session = -1 }\n[tools.a]\ncost = 1", "`limits.cost.per_session`"),
            ("[tools.a]\ncost = -1.0", "`tools.a.cost`"),
            ("[tools.a]\ncost = \"args.(\"", "`tools.a.cost`"),
        ] {
            let refused = settle(Spec::parse(text, "test").unwrap()).unwrap_err().to_string();
            assert!(refused.starts_with(says), "{refused}");
        }
    }
}
