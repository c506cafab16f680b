//! The two eras of MCP the shop speaks.

use serde_json::{Value, json};

/// The versions that begin with `initialize`, newest first.
const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// The version whose requests stand alone.
const MODERN: &str = "2026-07-28";

/// The field of `_meta` in which a modern request names its version.
pub(crate) const VERSION_FIELD: &str = "io.modelcontextprotocol/protocolVersion";

/// Which kind of MCP a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Sessions that begin with `initialize`.
    Legacy,
    /// Requests that carry their version with them.
    Modern,
}

impl Era {
    /// The era of a request by its `_meta`, or the version it wants that the shop does not speak.
    pub(crate) fn of(params: &Value) -> Result<Era, Value> {
        match params.get("_meta").and_then(|meta| meta.get(VERSION_FIELD)) {
            None => Ok(Era::Legacy),
            Some(version) if version == MODERN => Ok(Era::Modern),
            Some(other) => Err(other.clone()),
        }
    }
}

/// The version to answer `initialize` with: the one asked for, or the newest that begins so.
pub(crate) fn negotiated(asked: &str) -> &'static str {
    LEGACY.into_iter().find(|version| *version == asked).unwrap_or(LEGACY[0])
}

/// Every version the shop speaks, newest first.
pub(crate) fn supported() -> Value {
    let mut versions = vec![MODERN];
    versions.extend(LEGACY);
    json!(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_modern_only_if_it_says_so() {
        assert_eq!(Era::of(&json!({})), Ok(Era::Legacy));
        assert_eq!(Era::of(&json!({"_meta": 3})), Ok(Era::Legacy));
        let meta = |version: &str| json!({"_meta": {VERSION_FIELD: version}});
        assert_eq!(Era::of(&meta(MODERN)), Ok(Era::Modern));
        assert_eq!(Era::of(&meta("2031-01-01")), Err(json!("2031-01-01")));
    }

    #[test]
    fn an_unknown_version_is_answered_with_the_newest_of_its_era() {
        assert_eq!(negotiated("2025-03-26"), "2025-03-26");
        assert_eq!(negotiated("2024-11-05"), "2025-11-25");
        assert_eq!(negotiated(MODERN), "2025-11-25");
    }
}
