//! Ids and handles: minted by us, unguessable.

use amends_core::{CallId, SessionId};

/// A new session's id.
pub fn session() -> SessionId {
    SessionId::new(format!("ses_{}", token()))
}

/// A new call's id.
pub fn call() -> CallId {
    CallId::new(format!("call_{}", token()))
}

/// The key for a call's effect. It follows from the call's own id, which nobody can guess.
pub fn effect_key(call: &CallId) -> String {
    format!("amends_{}", call.as_str().trim_start_matches("call_"))
}

/// A number for a session's jitter.
pub fn seed() -> u64 {
    // Jitter needs no secrecy; 53 bits so that every JSON reader keeps it whole.
    u64::from_le_bytes(random::<8>()) >> 11
}

/// 120 random bits in the alphabet of lower-case letters and digits.
pub fn token() -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    random::<24>().iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has a source of randomness");
    bytes
}
