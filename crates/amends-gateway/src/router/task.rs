//! The ids of tasks, as agents know them: they say which upstream a task is at, and for whom.

use amends_core::{Principal, UpstreamName};
use amends_ledger::keyed_digest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const PROOF_LENGTH: usize = 32;
/// How long an id may be that an agent brings back.
const LENGTH_MAX: usize = 8 * 1024;

/// The id under which a principal knows a task of an upstream. It is always the same, so that a repeat gets the same.
pub fn give(secret: &[u8], principal: &Principal, upstream: &UpstreamName, id: &str) -> String {
    let inside = URL_SAFE_NO_PAD.encode(format!("{upstream}\0{id}"));
    format!("{}{inside}", proof(secret, principal, &inside))
}

/// The upstream and its own id of a task that was given to that principal; nothing where it was not.
pub fn take(secret: &[u8], principal: &Principal, given: &str) -> Option<(UpstreamName, String)> {
    if given.len() > LENGTH_MAX {
        return None;
    }
    let (claimed, inside) = given.split_at_checked(PROOF_LENGTH)?;
    let proven = proof(secret, principal, inside);
    // Every byte is looked at, so that the time it takes says nothing of where they differ.
    let differing = proven.bytes().zip(claimed.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
    if differing != 0 {
        return None;
    }
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(inside).ok()?).ok()?;
    let (upstream, id) = text.split_once('\0')?;
    Some((UpstreamName::new(upstream), id.to_owned()))
}

fn proof(secret: &[u8], principal: &Principal, inside: &str) -> String {
    let parts = [b"task" as &[u8], principal.as_str().as_bytes(), inside.as_bytes()];
    keyed_digest(secret, &parts).as_str()[..PROOF_LENGTH].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_leads_to_its_upstream_for_its_principal_alone() {
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        let shop = UpstreamName::new("shop");
        for id in ["t-1", "", "ä\0b", &"x".repeat(1000)] {
            let given = give(b"secret", &ada, &shop, id);
            assert_eq!(give(b"secret", &ada, &shop, id), given);
            assert_eq!(take(b"secret", &ada, &given), Some((shop.clone(), id.to_owned())));
            assert_eq!(take(b"secret", &bob, &given), None);
            assert_eq!(take(b"another", &ada, &given), None);
            for at in [0, 20, PROOF_LENGTH, given.len() - 1] {
                let mut forged = given.clone().into_bytes();
                forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
                assert_eq!(take(b"secret", &ada, &String::from_utf8(forged).unwrap()), None, "{at}");
            }
        }
        for odd in ["", "x", "ä", &"é".repeat(100), &"0".repeat(LENGTH_MAX + 1)] {
            assert_eq!(take(b"secret", &ada, odd), None);
        }
    }
}
