//! CEL expressions: any text is taken or refused, and what is taken gives an answer or none.
//!
//! The answer need not be the same twice: the evaluator walks through maps in any order. So a driver evaluates once and
//! records the answer.

use amends_core::expression::Expression;
use serde::Deserialize;
use serde_json::{Map, Value};

/// An expression and what it sees.
#[derive(Deserialize)]
struct Given {
    expression: String,
    #[serde(default)]
    variables: Map<String, Value>,
}

/// Reads the bytes as an expression with its variables, or as nothing but an expression.
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let given = serde_json::from_str(&text)
        .unwrap_or_else(|_| Given { expression: text.into_owned(), variables: Map::default() });
    let Ok(expression) = Expression::parse(&given.expression) else {
        return;
    };
    assert_eq!(expression.source(), given.expression);
    let _ = expression.mentions("key");
    let variables: Vec<(&str, &Value)> = given.variables.iter().map(|(name, value)| (name.as_str(), value)).collect();
    if let Err(error) = expression.evaluate(&variables) {
        assert!(error.to_string().starts_with('`'), "{error}");
    }
    let kept = serde_json::to_string(&expression).expect("an expression can be kept");
    let found: Expression = serde_json::from_str(&kept).expect("what was kept was parsed before");
    assert_eq!(found, expression);
}
