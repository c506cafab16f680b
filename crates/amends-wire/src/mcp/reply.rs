//! An answer as an MCP result.

use amends_core::envelope::{Data, ReversalNote};
use amends_core::{Code, Envelope, RefusalKind, Status};
use serde_json::value::RawValue;

use super::classify::is_protocols_own;
use super::dialect::Dialect;
use super::era::{Era, MISSING_CLIENT_CAPABILITY, stamped};
use super::inputs::REQUEST_STATE;
use super::text::text;
use crate::message::INVALID_PARAMS;
use crate::object::{Object, is_object, quoted};
use crate::splice::Splice;

pub use moved::{moved, moved_error};
pub use recorded::{TO_MEAN_ANOTHER, recorded};

/// The field of a result's `_meta` with the envelope, without its data.
pub const ENVELOPE: &str = "amends/envelope";
/// The field of a result's `_meta` with the receipt.
pub const RECEIPT: &str = "amends/receipt";

/// Names by which clients are known that leave structured content alone in errors.
const LENIENT: [&str; 2] = ["mcp", "amends"];

/// What is known of the client that gets an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTraits {
    /// The kind of MCP it speaks.
    pub era: Era,
    /// Whether it holds structured content against the tool's output schema even in errors, and throws away what does not fit.
    pub validates_errors: bool,
    /// The words in which it wants our own answers.
    pub dialect: Dialect,
}

impl ClientTraits {
    /// The traits of a client by its era and the name it gives itself.
    ///
    /// The TypeScript SDK 1.x validates errors, and a client's name does not tell its SDK, so every client of the older era counts
    /// as one that does unless it is known not to.
    pub fn of(era: Era, client_name: Option<&str>) -> Self {
        let lenient = era == Era::Modern || client_name.is_some_and(|name| LENIENT.contains(&name));
        Self { era, validates_errors: !lenient, dialect: Dialect::default() }
    }

    /// The same client, answered in those words.
    #[must_use]
    pub const fn speaking(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }
}

/// The proof of an event handed to the agent. What was answered before it was recorded has neither sequence nor hash; what could
/// not be recorded says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The session's trace.
    pub trace: String,
    /// The event's place in it.
    pub sequence: Option<u64>,
    /// The hash of the chain there.
    pub hash: Option<String>,
    /// How many entries of the log the newest checkpoint covered when this was answered. A later one covers the event.
    pub checkpoint: Option<u64>,
    /// Why the answer is not recorded, and will not be.
    pub unrecorded: Option<RefusalKind>,
}

impl Receipt {
    fn json(&self) -> String {
        let sequence = self.sequence.map(|sequence| format!(",\"sequence\":{sequence}")).unwrap_or_default();
        let hash = self.hash.as_ref().map(|hash| format!(",\"hash\":{}", quoted(hash))).unwrap_or_default();
        let checkpoint = self.checkpoint.map(|size| format!(",\"checkpoint\":{size}")).unwrap_or_default();
        let unrecorded =
            self.unrecorded.map(|kind| format!(",\"unrecorded\":\"{}\"", kind.as_str())).unwrap_or_default();
        format!("{{\"trace\":{}{sequence}{hash}{checkpoint}{unrecorded}}}", quoted(&self.trace))
    }

    /// An envelope that is the data of a JSON-RPC error, with the receipt beside it: an error has no `_meta` of its own.
    pub fn beside(&self, envelope: &RawValue) -> String {
        let mut splice = Splice::new(envelope.get());
        let _ = splice.set_member(envelope.get(), "_meta", format!("{{\"{RECEIPT}\":{}}}", self.json()));
        splice.finish()
    }
}

/// An upstream's own result, with our part in its `_meta` and the stamps of its era; all other bytes stay as they are.
pub fn forward(result: &str, envelope: &Envelope, receipt: Option<&Receipt>, traits: ClientTraits) -> String {
    let Some(object) = Object::parse(result) else {
        return result.to_owned();
    };
    let ours = [(ENVELOPE, Some(envelope.to_json(None).get().to_owned())), (RECEIPT, receipt.map(Receipt::json))];
    let ours = ours.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let mut splice = Splice::new(result);
    if let Some(note) = &envelope.reversal {
        add_block(&mut splice, &object, result, note);
    }
    match object.get("_meta").filter(|meta| is_object(meta)) {
        Some(meta) => {
            for (name, value) in ours {
                let _ = splice.set_member(meta.get(), name, value);
            }
        }
        None => {
            let members: Vec<_> = ours.map(|(name, value)| format!("\"{name}\":{value}")).collect();
            let _ = splice.set_member(result, "_meta", format!("{{{}}}", members.join(",")));
        }
    }
    match (traits.era, object.string("resultType").as_deref()) {
        (Era::Modern, None) => drop(splice.set_member(result, "resultType", "\"complete\"")),
        // A stamp of the other era, which a stateful client does not know.
        (Era::Legacy, Some("complete")) => drop(splice.remove_member(result, "resultType")),
        (Era::Modern, Some(_)) | (Era::Legacy, _) => {}
    }
    splice.finish()
}

/// An upstream's own result with one more text block, which says how to undo what was done: models do not see `_meta`.
pub fn with_token(result: &str, note: &ReversalNote) -> String {
    let Some(object) = Object::parse(result) else {
        return result.to_owned();
    };
    let mut splice = Splice::new(result);
    add_block(&mut splice, &object, result, note);
    splice.finish()
}

fn add_block(splice: &mut Splice<'_>, object: &Object<'_>, result: &str, note: &ReversalNote) {
    let words =
        format!("This can be undone once, with `{}`: call `amends_reverse` with token `{}`.", note.tool, note.token);
    match object.get("content").map(RawValue::get) {
        Some(content) if content.ends_with(']') => {
            let head = content[..content.len() - 1].trim_end();
            let comma = if head.ends_with('[') { "" } else { "," };
            let _ = splice.replace(content, format!("{head}{comma}{}]", block(&words)));
        }
        _ => {
            let _ = splice.set_member(result, "content", format!("[{}]", block(&words)));
        }
    }
}

/// An envelope as a result of our own. `payload` is the data it names, as the structured content of a result and not as a whole
/// one; `declares_output` says whether the tool has an output schema.
pub fn envelope(
    envelope: &Envelope,
    payload: Option<&RawValue>,
    receipt: Option<&Receipt>,
    traits: ClientTraits,
    declares_output: bool,
) -> String {
    let bare = envelope.to_json(None);
    let full = traits.dialect.envelope(envelope, payload);
    let failed = matches!(envelope.status(), Status::Error | Status::Refused);
    let data = own_data(envelope, payload);
    let mut content = vec![block(&text(envelope, payload))];
    if traits.dialect == Dialect::Theodosia {
        content.push(block(full.get()));
    }
    // Before 2026-07-28 structured content is always an object.
    let fitting = data.as_deref().filter(|data| traits.era == Era::Modern || data.starts_with('{'));
    // A tool with an output schema that gives nothing would be thrown away by every client, unless it says that it is an error.
    // What does not fit a declared output passes only as an error.
    let unfit = declares_output && (failed || fitting.is_none());
    let is_error = unfit || (failed && traits.dialect.marks_error(&full));
    let structured = match (declares_output, unfit) {
        (false, _) => Some(full.get()),
        (true, true) if traits.validates_errors => {
            if traits.dialect != Dialect::Theodosia {
                content.push(block(full.get()));
            }
            None
        }
        // Also of what was done, where it is marked as an error: `_meta` is seen by few.
        (true, true) => Some(full.get()),
        (true, false) => fitting,
    };
    let mut meta = format!("\"{ENVELOPE}\":{}", bare.get());
    if let Some(receipt) = receipt {
        meta.push_str(&format!(",\"{RECEIPT}\":{}", receipt.json()));
    }
    let structured = structured.map(|value| format!(",\"structuredContent\":{value}")).unwrap_or_default();
    let content = content.join(",");
    let result = format!("{{\"content\":[{content}]{structured},\"isError\":{is_error},\"_meta\":{{{meta}}}}}");
    stamped(&result, "tools/call", traits.era)
}

/// The JSON-RPC error that a call gets instead of a result: its code, its message, and the envelope as its data. Nothing
/// where it gets a result.
///
/// A tool that was never listed is one, a state that does not count, and an upstream's error that the protocol itself needs.
pub fn protocol_error(envelope: &Envelope) -> Option<(i64, String, Box<RawValue>)> {
    let error = envelope.error()?;
    // A name within the arguments is the model's to correct.
    let unknown = error.kind == RefusalKind::UnknownName.as_str() && error.details.is_empty();
    let words = error.upstream.as_ref().filter(|_| {
        matches!(error.code, Code::MissingCapability | Code::ContractVersionMismatch)
            && error.certainty.nothing_happened()
    });
    let theirs = words.and_then(|words| words.code.as_deref()?.parse().ok()).filter(|code| is_protocols_own(*code));
    // A state that does not count is an error of the protocol, which a client must not take for a tool's answer.
    let state = error.details.first().is_some_and(|fault| fault.field == REQUEST_STATE);
    let code = if unknown || state { INVALID_PARAMS } else { theirs? };
    let mut data = envelope.to_json(None);
    let missing = error.upstream.as_ref().and_then(|words| words.field.as_deref());
    if let Some(missing) = missing.filter(|_| code == MISSING_CLIENT_CAPABILITY) {
        let mut splice = Splice::new(data.get());
        let required: Vec<String> = missing.split(',').map(|name| format!("{}:{{}}", quoted(name))).collect();
        let required = format!("{{{}}}", required.join(","));
        if splice.set_member(data.get(), "requiredCapabilities", required).is_ok()
            && let Ok(named) = RawValue::from_string(splice.finish())
        {
            data = named;
        }
    }
    Some((code, error.message.clone(), data))
}

/// The data of an envelope that is not an error, as JSON.
fn own_data(envelope: &Envelope, payload: Option<&RawValue>) -> Option<String> {
    match envelope.data()? {
        Data::Of(_) => payload.map(|payload| payload.get().to_owned()),
        Data::Value(value) | Data::Shown { value, .. } => Some(value.to_string()),
    }
}

fn block(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", quoted(text))
}

mod moved;
mod recorded;

#[cfg(test)]
mod goldens;
