//! The trace a call belongs to: what the agent said of it, and what the upstream is told (W3C Trace Context).

use amends_core::{AttemptId, CallId};
use amends_ledger::digest;
use amends_wire::Object;
use amends_wire::splice::Splice;

/// The member of `_meta`, and the header, that names the parent.
pub(super) const TRACEPARENT: &str = "traceparent";
/// What else travels with it, in `_meta` and as headers.
pub(super) const COMPANIONS: [&str; 2] = ["tracestate", "baggage"];

/// How long what travels with a context may be; longer ones are left out.
const COMPANION_BYTES_MAX: usize = 8192;
const STATE_BYTES_MAX: usize = 512;

/// The trace a call belongs to. Our own ids follow from the call's, so that every node and every process after a crash
/// gives the same ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) trace: [u8; 16],
    /// The agent's span, where it said one.
    pub(super) parent: Option<[u8; 8]>,
    pub(super) state: String,
    pub(super) sampled: bool,
}

impl Context {
    /// The context of a call with those parameters.
    pub(super) fn of(params: &str, call: &CallId) -> Self {
        let meta = meta(params);
        let said = |name: &str| Some(meta.as_ref()?.string(name)?.into_owned());
        let state = said("tracestate").filter(|state| state.len() <= STATE_BYTES_MAX).unwrap_or_default();
        match said(TRACEPARENT).as_deref().and_then(parse) {
            Some((trace, parent, sampled)) => Self { trace, parent: Some(parent), state, sampled },
            None => Self { trace: hashed(&format!("trace {call}")), parent: None, state: String::new(), sampled: true },
        }
    }

    /// What the upstream is told: that attempt is its parent.
    pub(super) fn traceparent(&self, attempt: &AttemptId) -> String {
        let flags = u8::from(self.sampled);
        format!("00-{}-{}-{flags:02x}", hex(&self.trace), hex(&attempt_span(attempt)))
    }
}

/// The span of a call.
pub(super) fn call_span(call: &CallId) -> [u8; 8] {
    hashed(&format!("call {call}"))
}

/// The span of an attempt.
pub(super) fn attempt_span(attempt: &AttemptId) -> [u8; 8] {
    hashed(&format!("attempt {} {}", attempt.n, attempt.call))
}

/// The members of a request's `_meta`.
pub(super) fn meta(params: &str) -> Option<Object<'_>> {
    Object::parse(Object::parse(params)?.get("_meta")?.get())
}

/// What travels with a context, by its name, as far as it is sound.
pub(super) fn companions(params: &str) -> Vec<(&'static str, String)> {
    let Some(meta) = meta(params) else { return Vec::new() };
    let said = |name: &'static str| Some((name, meta.string(name)?.into_owned()));
    COMPANIONS.into_iter().filter_map(said).filter(|(_, text)| sound(text)).collect()
}

/// Whether a text can stand in a header.
pub(super) fn sound(text: &str) -> bool {
    !text.is_empty() && text.len() <= COMPANION_BYTES_MAX && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// The parameters with those members of `_meta` set; all other bytes stay as they are.
pub(super) fn with_meta(params: &str, members: &[(&str, String)]) -> String {
    let mut splice = Splice::new(params);
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let held = Object::parse(params).and_then(|params| params.get("_meta"));
    let done = match held {
        Some(held) => members.iter().try_for_each(|(name, text)| splice.set_member(held.get(), name, quoted(text))),
        None => {
            let members: Vec<String> =
                members.iter().map(|(name, text)| format!("{}:{}", quoted(name), quoted(text))).collect();
            splice.set_member(params, "_meta", format!("{{{}}}", members.join(",")))
        }
    };
    if done.is_ok() { splice.finish() } else { params.to_owned() }
}

/// Reads a `traceparent`; nothing where it is not one.
pub(super) fn parse(text: &str) -> Option<([u8; 16], [u8; 8], bool)> {
    let mut parts = text.trim().split('-');
    let version = bytes::<1>(parts.next()?)?[0];
    let (trace, parent) = (bytes::<16>(parts.next()?)?, bytes::<8>(parts.next()?)?);
    let flags = bytes::<1>(parts.next()?)?[0];
    // Later versions may have more to say; the first has not.
    let known = version != 0xff && (version != 0 || parts.next().is_none());
    (known && trace != [0; 16] && parent != [0; 8]).then_some((trace, parent, flags & 1 == 1))
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

/// The first bytes of a digest. That they are all zero, which no id may be, will not happen.
fn hashed<const N: usize>(text: &str) -> [u8; N] {
    let digest = digest(format!("amends/telemetry/1\n{text}").as_bytes());
    bytes(&digest.as_str()[..2 * N]).unwrap_or([1; N])
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn only_a_sound_parent_counts() {
        assert!(parse(PARENT).is_some_and(|(_, _, sampled)| sampled));
        assert!(parse(&PARENT.replace("-01", "-00")).is_some_and(|(_, _, sampled)| !sampled));
        assert!(parse(&format!("cc{}-more", &PARENT[2..])).is_some(), "a later version may say more");
        for odd in [
            "",
            "00-x-y-01",
            &PARENT.replace("00-0a", "ff-0a"),
            &format!("{PARENT}-more"),
            &PARENT.to_uppercase(),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        ] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_call_without_a_parent_gets_a_trace_that_follows_from_its_id() {
        let call = CallId::new("call_1");
        let own = Context::of("{}", &call);
        assert_eq!(own, Context::of(r#"{"_meta":{"traceparent":7,"tracestate":"a=b"}}"#, &call));
        assert_ne!(own.trace, Context::of("{}", &CallId::new("call_2")).trace);
        let said = Context::of(&format!(r#"{{"_meta":{{"traceparent":"{PARENT}","tracestate":"a=b"}}}}"#), &call);
        assert_eq!((hex(&said.trace).as_str(), said.state.as_str()), ("0af7651916cd43dd8448eb211c80319c", "a=b"));
        let attempt = AttemptId { call, n: 1 };
        let told = said.traceparent(&attempt);
        assert!(told.starts_with("00-0af7651916cd43dd8448eb211c80319c-") && told.ends_with("-01"), "{told}");
        assert_ne!(told, PARENT);
        assert_eq!(parse(&told).unwrap().1, attempt_span(&attempt));
    }

    #[test]
    fn the_parent_is_set_and_nothing_else_changes() {
        let set = [(TRACEPARENT, "p".to_owned())];
        let params = r#"{"name":"x", "arguments":{"n":1.0}, "_meta":{"a": 1,"traceparent":"old"}}"#;
        assert_eq!(with_meta(params, &set), params.replace("\"old\"", "\"p\""));
        assert_eq!(with_meta(r#"{"name":"x"}"#, &set), r#"{"name":"x","_meta":{"traceparent":"p"}}"#);
    }
}
