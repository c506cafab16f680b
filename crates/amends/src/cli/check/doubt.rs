//! What happens to a tool's call that may or may not have happened, in words.

use amends_core::EffectKind;
use amends_core::contract::{Contract, KeyPlace};
use amends_core::limits::KEY_MARGIN_MS;
use amends_gateway::rulebook::span;

/// What happens when a call of that tool is in doubt.
pub(super) fn words(contract: &Contract) -> String {
    match (contract.effect, &contract.key) {
        (EffectKind::Read, _) => "never: it changes nothing".to_owned(),
        (EffectKind::Idempotent, _) => "it is sent again, since the same arguments lead to the same end".to_owned(),
        (EffectKind::Keyed, Some(key)) => match resent_for(contract, key) {
            0 => format!("it is never sent again, since the key's window is too short; {}", told(contract)),
            ms => {
                let run = if key.durable { "" } else { " and its process is the same" };
                let first = if contract.status.is_some() { "" } else { "nothing can be read; " };
                format!(
                    "it is sent again with its key while that is younger than {}{run}; after that {first}{}",
                    span(ms),
                    told(contract)
                )
            }
        },
        (EffectKind::Keyed | EffectKind::Write, _) => format!("it is never sent again unread; {}", told(contract)),
    }
}

/// For how long after its first send a key may be sent again.
pub(super) fn resent_for(contract: &Contract, key: &KeyPlace) -> u64 {
    key.window_ms.saturating_sub(contract.request_life_ms() + KEY_MARGIN_MS)
}

/// Who or what can tell.
fn told(contract: &Contract) -> String {
    let last = if contract.declared { "a person must tell" } else { "the agent is told that it may have happened" };
    let Some(status) = &contract.status else { return last.to_owned() };
    let how = if status.by_key { "about this very effect" } else { "and compared with what it said before the call" };
    match contract.settles_within_ms {
        Some(ms) => format!(
            "`{}` is read {how}; its yes counts, its no counts {} after the send; if it gives neither, {last}",
            status.tool,
            span(ms)
        ),
        None => format!("`{}` is read {how}; its yes counts, its no never; then {last}", status.tool),
    }
}
