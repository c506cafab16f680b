//! Undoing a write: its token, and the call that undoes it.

use amends_core::contract::Reverse;
use amends_core::expression::ExpressionError;
use amends_core::{CallId, Digest};
use amends_ledger::{digest, keyed_digest};
use amends_wire::mcp::classify::structured;
use serde_json::{Map, Value};

use super::session::Live;

/// The token that undoes a call. It follows from the call and the ledger's secret, so that it need not be kept.
pub(crate) fn token(secret: &[u8; 32], call: &CallId) -> String {
    let keyed = keyed_digest(secret, &[b"reversal", call.as_str().as_bytes()]);
    format!("rev_{}", &keyed.as_str()[..40])
}

/// The digest by which the ledger knows a token.
pub fn token_digest(token: &str) -> Digest {
    digest(token.as_bytes())
}

/// The arguments that undo a call, from its own and from what it gave back.
pub(super) fn arguments(reverse: &Reverse, live: &Live) -> Result<Map<String, Value>, ExpressionError> {
    let args = live.arguments().unwrap_or_default();
    let last = live.results.iter().max_by_key(|(attempt, _)| attempt.n);
    let result = last.and_then(|(_, bytes)| structured(std::str::from_utf8(bytes).ok()?)).unwrap_or(Value::Null);
    let mut mapped = Map::new();
    for (name, expression) in &reverse.args {
        mapped.insert(name.clone(), expression.evaluate(&[("args", &args), ("result", &result)])?);
    }
    Ok(mapped)
}
