//! The two eras of MCP: sessions that begin with `initialize`, and requests that stand alone.

use serde_json::value::RawValue;

use super::inputs::OURS;
use crate::object::Object;
use crate::splice::Splice;

/// The newest version, whose requests stand alone.
pub const MODERN: &str = "2026-07-28";
/// The newest version that begins with `initialize`.
pub const LEGACY: &str = "2025-11-25";
/// The versions that begin with `initialize`, newest first.
pub const LEGACY_VERSIONS: [&str; 4] = [LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"];
/// Every version we speak, newest first.
pub const VERSIONS: [&str; 5] = [MODERN, LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"];

/// The field of `_meta` in which a modern request names its version.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The field of `_meta` in which a modern request says who asks.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The field of `_meta` in which a modern request says what its sender can do.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The field of `_meta` in which a modern request says what it wants to hear of what the server notes down.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The field of `_meta` in which a modern answer says who gives it.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The field of `_meta` that names the `subscriptions/listen` a notification is for.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The fields of `_meta` that only a modern request has; a server of the other era may refuse what carries them.
pub const STAMPS: [&str; 4] = [PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL];

/// The headers of a modern request do not say what its body says.
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs something of the client that it did not declare.
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// The version the request names is not spoken here.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// Which kind of MCP is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// Sessions that begin with `initialize`: up to 2025-11-25.
    Legacy,
    /// Requests that carry their version with them: 2026-07-28 and later.
    Modern,
}

impl Era {
    /// The era of a request by its method and the version in its `_meta`; nothing where neither tells.
    pub fn detect(method: &str, params: Option<&RawValue>) -> Option<Self> {
        if matches!(method, "initialize" | "notifications/initialized") {
            return Some(Self::Legacy);
        }
        if let Some(version) = requested_version(params) {
            return Some(Self::of_version(&version));
        }
        (method == "server/discover").then_some(Self::Modern)
    }

    /// The era that a version belongs to. Versions are dates, so they compare as text.
    pub fn of_version(version: &str) -> Self {
        if version >= MODERN { Self::Modern } else { Self::Legacy }
    }

    /// The newest version of the era.
    pub const fn newest(self) -> &'static str {
        match self {
            Self::Legacy => LEGACY,
            Self::Modern => MODERN,
        }
    }
}

/// The version a modern request names in its `_meta`.
pub fn requested_version(params: Option<&RawValue>) -> Option<String> {
    let meta = Object::parse(params?.get())?.get("_meta")?;
    Object::parse(meta.get())?.string(PROTOCOL_VERSION).map(|version| version.into_owned())
}

/// Whether a modern request says what its sender can do, as it must.
pub fn declares_capabilities(params: Option<&RawValue>) -> bool {
    let meta = params.and_then(|params| Object::parse(params.get())).and_then(|params| params.get("_meta"));
    let declared = meta.and_then(|meta| Object::parse(meta.get())).and_then(|meta| meta.get(CLIENT_CAPABILITIES));
    declared.is_some_and(crate::object::is_object)
}

/// Whether a list of versions, under that name in an object, has the newest one.
pub fn offers_modern(text: &str, name: &str) -> bool {
    let listed = Object::parse(text).and_then(|object| object.get(name));
    listed
        .and_then(|list| serde_json::from_str::<Vec<String>>(list.get()).ok())
        .is_some_and(|list| list.iter().any(|version| version == MODERN))
}

/// Whether that version is one we speak.
pub fn is_known(version: &str) -> bool {
    VERSIONS.contains(&version)
}

/// The version to answer `initialize` with: the one asked for, or the newest that begins so.
pub fn negotiated(asked: &str) -> &'static str {
    LEGACY_VERSIONS.into_iter().find(|version| *version == asked).unwrap_or(LEGACY)
}

/// The params of a modern request without what only such a request has in its `_meta`; all other bytes stay as they are.
pub fn without_stamps(params: &str) -> String {
    let meta = Object::parse(params).and_then(|object| object.get("_meta"));
    let Some((meta, known)) = meta.and_then(|meta| Some((meta.get(), Object::parse(meta.get())?))) else {
        return params.to_owned();
    };
    let mut splice = Splice::new(params);
    for name in STAMPS.into_iter().filter(|name| known.get(name).is_some()) {
        let _ = splice.remove_member(meta, name);
    }
    splice.finish()
}

/// The result with the stamps that its era demands and it lacks; all other bytes stay as they are.
///
/// A modern result says that it is complete; lists, resources and `server/discover` also say for how long and by whom they may
/// be kept: not at all, and by the asker alone.
pub fn stamped(result: &str, method: &str, era: Era) -> String {
    if era == Era::Legacy {
        return result.to_owned();
    }
    let Some(object) = Object::parse(result) else { return result.to_owned() };
    let mut splice = Splice::new(result);
    let mut stamp = |name: &str, value: &str| {
        if object.get(name).is_none() {
            let _ = splice.set_member(result, name, value);
        }
    };
    stamp("resultType", "\"complete\"");
    let complete = object.string("resultType").is_none_or(|kind| kind == "complete");
    if complete && is_cacheable(method) {
        stamp("ttlMs", "0");
        stamp("cacheScope", "\"private\"");
    }
    splice.finish()
}

/// The result without the stamps of a modern answer, for a client that does not know them; all other bytes stay as they are.
pub fn unstamped(result: &str) -> String {
    let mut splice = Splice::new(result);
    for stamp in ["resultType", "ttlMs", "cacheScope"] {
        if splice.remove_member(result, stamp).is_err() {
            return result.to_owned();
        }
    }
    splice.finish()
}

/// The subscription that a notification came by, as it was written.
pub fn subscription(params: &str) -> Option<String> {
    let meta = Object::parse(params)?.get("_meta")?;
    Object::parse(meta.get())?.get(SUBSCRIPTION_ID).map(|id| id.get().to_owned())
}

/// The parameters of a notification without the subscription it came by, which is ours and no client's; all other bytes stay as
/// they are.
pub fn unsubscribed(params: &str) -> String {
    let meta = Object::parse(params).and_then(|params| params.get("_meta"));
    let Some((meta, members)) = meta.and_then(|meta| Some((meta.get(), Object::parse(meta.get())?))) else {
        return params.to_owned();
    };
    let mut splice = Splice::new(params);
    let _ = match (members.get(SUBSCRIPTION_ID), members.members().len()) {
        (None, _) => Ok(()),
        (Some(_), 1) => splice.remove_member(params, "_meta"),
        (Some(_), _) => splice.remove_member(meta, SUBSCRIPTION_ID),
    };
    splice.finish()
}

/// A code as it may be said to a client of that era: two of the older ones must not be used any more.
pub const fn code_for(code: i64, era: Era) -> i64 {
    match (code, era) {
        (-32002 | -32042, Era::Modern) => crate::message::INVALID_PARAMS,
        (code, _) => code,
    }
}

/// Whether the answer to a method must say how it may be kept.
pub fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "server/discover"
    )
}

/// The parameters of our own `initialize`: what can be asked of an agent can be asked of us.
pub fn initialize_params() -> String {
    format!(r#"{{"protocolVersion":"{LEGACY}","capabilities":{OURS},"clientInfo":{}}}"#, own_info())
}

/// Who we are, as an implementation's info.
pub fn own_info() -> String {
    format!(r#"{{"name":"amends","version":"{}"}}"#, env!("CARGO_PKG_VERSION"))
}

/// The params with what a modern request of our own must carry put into their `_meta`, where it is not there already.
pub fn with_own_meta(params: Option<&str>, version: &str) -> String {
    with_meta(params, version, "{}")
}

/// The same for a client that declared those capabilities, as they were written.
pub fn with_meta(params: Option<&str>, version: &str, capabilities: &str) -> String {
    let all = || {
        let info = own_info();
        format!(r#""{PROTOCOL_VERSION}":"{version}","{CLIENT_CAPABILITIES}":{capabilities},"{CLIENT_INFO}":{info}"#)
    };
    let Some((text, object)) = params.and_then(|text| Some((text, Object::parse(text)?))) else {
        return format!(r#"{{"_meta":{{{}}}}}"#, all());
    };
    let mut splice = Splice::new(text);
    match object.get("_meta").and_then(|meta| Some((meta.get(), Object::parse(meta.get())?))) {
        Some((meta, known)) => {
            let (version, info) = (format!("\"{version}\""), own_info());
            let ours =
                [(PROTOCOL_VERSION, version.as_str()), (CLIENT_CAPABILITIES, capabilities), (CLIENT_INFO, &info)];
            for (name, value) in ours {
                if known.get(name).is_none() {
                    let _ = splice.set_member(meta, name, value);
                }
            }
        }
        None => {
            let _ = splice.set_member(text, "_meta", format!("{{{}}}", all()));
        }
    }
    splice.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_request_tells_its_era() {
        let meta = |version| raw(&format!(r#"{{"_meta":{{"{PROTOCOL_VERSION}":"{version}"}}}}"#));
        assert_eq!(Era::detect("initialize", None), Some(Era::Legacy));
        assert_eq!(Era::detect("tools/list", Some(&meta("2026-07-28"))), Some(Era::Modern));
        assert_eq!(Era::detect("tools/list", Some(&meta("2031-01-01"))), Some(Era::Modern));
        assert_eq!(Era::detect("tools/list", Some(&meta("2025-11-25"))), Some(Era::Legacy));
        assert_eq!(Era::detect("tools/list", Some(&raw("{}"))), None);
        assert_eq!(Era::detect("server/discover", None), Some(Era::Modern));
        assert_eq!((negotiated("2025-03-26"), negotiated("2026-07-28")), ("2025-03-26", LEGACY));
    }

    #[test]
    fn a_request_of_the_other_era_leaves_its_stamps_behind() {
        let stamped = with_own_meta(Some(r#"{"a":1.0,"_meta":{"t":1}}"#), MODERN);
        assert_eq!(without_stamps(&stamped), r#"{"a":1.0,"_meta":{"t":1}}"#);
        assert_eq!(without_stamps(r#"{"a":1.0}"#), r#"{"a":1.0}"#);
        assert_eq!(without_stamps(r#"{"_meta":7}"#), r#"{"_meta":7}"#);
    }

    #[test]
    fn only_what_is_missing_is_stamped() {
        assert_eq!(stamped("{}", "tools/call", Era::Legacy), "{}");
        assert_eq!(stamped("{ \"x\": 1.0 }", "tools/call", Era::Modern), r#"{ "x": 1.0,"resultType":"complete" }"#);
        assert_eq!(
            stamped(r#"{"ttlMs":5}"#, "tools/list", Era::Modern),
            r#"{"ttlMs":5,"resultType":"complete","cacheScope":"private"}"#
        );
        let asks = r#"{"resultType":"input_required"}"#;
        assert_eq!(stamped(asks, "resources/read", Era::Modern), asks);
        assert_eq!(stamped("null", "tools/list", Era::Modern), "null");
        let modern = r#"{"resultType":"complete","tools":[1.0],"ttlMs":5,"cacheScope":"private"}"#;
        assert_eq!((unstamped(modern), unstamped("7")), (r#"{"tools":[1.0]}"#.into(), "7".into()));
        let id = SUBSCRIPTION_ID;
        assert_eq!(unsubscribed(&format!(r#"{{"uri":"a","_meta":{{"{id}":7}}}}"#)), r#"{"uri":"a"}"#);
        assert_eq!(unsubscribed(&format!(r#"{{"_meta":{{"x":1.0,"{id}":7}}}}"#)), r#"{"_meta":{"x":1.0}}"#);
        assert_eq!((unsubscribed(r#"{"_meta":{}}"#), unsubscribed("[]")), (r#"{"_meta":{}}"#.into(), "[]".into()));
        assert_eq!(subscription(&format!(r#"{{"_meta":{{"{id}":"x"}}}}"#)).as_deref(), Some("\"x\""));
        assert_eq!((subscription("{}"), subscription(r#"{"_meta":7}"#)), (None, None));
        assert_eq!((code_for(-32002, Era::Modern), code_for(-32002, Era::Legacy)), (-32602, -32002));
    }

    #[test]
    fn our_own_requests_say_who_asks_and_keep_what_is_there() {
        let alone = with_own_meta(None, MODERN);
        assert_eq!(requested_version(Some(&raw(&alone))).as_deref(), Some(MODERN));
        let joined = with_own_meta(Some(r#"{"a":1.0,"_meta":{"t":1}}"#), MODERN);
        assert!(joined.starts_with(r#"{"a":1.0,"_meta":{"t":1,"io.model"#), "{joined}");
        assert_eq!(with_own_meta(Some(&joined), MODERN), joined);
    }
}
