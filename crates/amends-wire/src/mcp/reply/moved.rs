//! The answer of a move as a result.

use amends_core::{Envelope, RefusalKind, Status};
use serde_json::value::RawValue;

use super::{ClientTraits, ENVELOPE, RECEIPT, Receipt, block};
use crate::mcp::Dialect;
use crate::mcp::era::Era;
use crate::mcp::inputs::REQUEST_STATE;
use crate::mcp::steps::{Moved, Names, Written, filled, text};
use crate::message::INVALID_PARAMS;
use crate::splice::Splice;

/// The answer of a move as an error of the protocol, where it has to be one: its code, its words and its data.
///
/// A state that does not count is one, which a client must not take for a tool's answer. So is a tool that was never listed, where
/// no other was nearly named.
pub fn moved_error(envelope: &Envelope, moved: &Moved, names: &Names) -> Option<(i64, String, Box<RawValue>)> {
    let error = envelope.error()?;
    let state = error.details.first().is_some_and(|fault| fault.field == REQUEST_STATE);
    let near = error.recovery.as_ref().is_some_and(|recovery| !recovery.fuzzy_matches.is_empty());
    let unknown = error.kind == RefusalKind::UnknownName.as_str() && error.details.is_empty() && !near;
    (state || unknown).then(|| (INVALID_PARAMS, error.message.clone(), filled(envelope, moved, names)))
}

/// The answer of a move as a result: where the walk is and what may be done next is part of every one.
pub fn moved(
    envelope: &Envelope,
    moved: &Moved,
    names: &Names,
    written: &Written,
    receipt: Option<&Receipt>,
    traits: ClientTraits,
) -> String {
    let bare = &written.bare;
    let spoken = traits.dialect.render(&written.whole);
    let failed = matches!(envelope.status(), Status::Error | Status::Refused);
    let is_error = failed && traits.dialect.marks_error(&spoken);
    let mut content = block(&text(envelope, moved, names, &written.hint));
    if traits.dialect == Dialect::Theodosia {
        content = format!("{content},{}", block(spoken.get()));
    }
    // The data is in the answer itself.
    let mut splice = Splice::new(bare.get());
    if !failed {
        let _ = splice.remove_member(bare.get(), "data");
    }
    let mut meta = format!("\"{ENVELOPE}\":{}", splice.finish());
    if let Some(receipt) = receipt {
        meta.push_str(&format!(",\"{RECEIPT}\":{}", receipt.json()));
    }
    // As [`stamped`](crate::mcp::era::stamped) would, without reading all of it again.
    let stamp = match traits.era {
        Era::Modern => ",\"resultType\":\"complete\"",
        Era::Legacy => "",
    };
    format!(
        "{{\"content\":[{content}],\"structuredContent\":{},\"isError\":{is_error},\"_meta\":{{{meta}}}{stamp}}}",
        spoken.get()
    )
}
