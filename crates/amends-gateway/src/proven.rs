//! What came of verifying a ledger, for programs and for people.

use amends_ledger::{Fault, Verified};
use serde_json::{Value, json};

/// For programs.
pub fn json(verified: &Verified) -> Value {
    let fault = |fault: &Fault| json!({ "kind": fault.kind.as_str(), "session": fault.session, "seq": fault.seq, "words": fault.words });
    let consistent = verified.is_consistent();
    let proven = verified.proven.filter(|_| consistent);
    json!({
        "consistent": consistent,
        "completeness": if proven.is_some() { "proven to the anchor's last checkpoint" } else { "not proven" },
        "proven": proven.map(|proven| json!({
            "entries": proven.size, "events": proven.events, "events_after": proven.beyond,
        })),
        "sessions": verified.sessions,
        "events": verified.events,
        "decided_again": verified.decided,
        "not_decidable_again": verified.undecidable,
        "decided_by_older": verified.older,
        "log_entries": verified.logged,
        "checkpoints": verified.checkpoints,
        "faults": verified.faults.iter().map(fault).collect::<Vec<_>>(),
        "faults_left_off": verified.left_off,
    })
}

/// For people.
pub fn text(verified: &Verified) -> String {
    let Verified { sessions, events, decided, undecidable, older, .. } = verified;
    let mut text = String::new();
    for fault in &verified.faults {
        let session = fault.session.as_ref().map_or("the ledger", |session| session.as_str());
        let seq = fault.seq.map(|seq| format!(" at event {seq}")).unwrap_or_default();
        text.push_str(&format!("{session}{seq}: {}: {}\n", fault.kind.as_str(), fault.words));
    }
    if !verified.is_consistent() {
        text.push_str(&format!("NOT consistent: {} faults in {events} events", verified.fault_count()));
        return text;
    }
    text.push_str(&match verified.proven {
        Some(proven) => format!(
            "consistent; complete up to the anchor's last checkpoint, which covers {} events; {} came after it",
            proven.events, proven.beyond
        ),
        None => "consistent; completeness not proven".to_owned(),
    });
    text.push_str(&format!(
        ": {events} events in {sessions} sessions, every chain recomputed, {decided} sessions decided again"
    ));
    if *undecidable > 0 {
        text.push_str(&format!(", {undecidable} not decidable again"));
    }
    if *older > 0 {
        text.push_str(&format!(", {older} decided by an older program and otherwise than today"));
    }
    text
}
