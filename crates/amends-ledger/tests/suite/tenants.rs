//! Tenants: whose sessions and questions are listed apart from everybody else's.

use amends_core::dispatcher::retire::RetireReason;
use amends_core::{Fact, Principal, Tenant};
use amends_ledger::{Append, Ledger, MemoryLedger, QueueFilter, SessionRow};

use crate::common::{Store, ms, node, note, question, step, verified};
use crate::retired::both;

/// A step that opens a session of a principal.
fn opened(session: &str, at: u64, tenant: Option<&str>, name: &str) -> Append {
    let tenant = tenant.map(Tenant::new);
    let principal = Principal::of(tenant.as_ref(), name);
    let fact = Fact::SessionOpened {
        session: session.into(),
        seed: 7,
        principal,
        door: "mcp".into(),
        tenant,
        decider: Default::default(),
    };
    step(session, 0, at, vec![fact])
}

fn ids(rows: &[SessionRow]) -> Vec<&str> {
    rows.iter().map(|row| row.session.as_str()).collect()
}

async fn of(ledger: &dyn Ledger, tenant: &str, limit: usize) -> Vec<SessionRow> {
    ledger.sessions_of(&Tenant::new(tenant), limit).await.unwrap()
}

pub(crate) async fn the_sessions_of_a_tenant_are_listed_apart(store: impl Store) {
    let ledger = store.join(node("a"));
    ledger.append(opened("s1", 10, Some("acme"), "ada")).await.unwrap();
    ledger.append(opened("s2", 20, Some("rival"), "ada")).await.unwrap();
    ledger.append(opened("s3", 30, None, "acme")).await.unwrap();
    ledger.append(opened("s4", 40, Some("acme"), "bob")).await.unwrap();
    ledger.append(opened("s5", 40, Some("a/c%me"), "bob")).await.unwrap();
    let acme = of(&*ledger, "acme", 9).await;
    assert_eq!(ids(&acme), ["s4", "s1"]);
    assert_eq!(acme[1].tenant(), Some(Tenant::new("acme")));
    assert_eq!(acme[1].principal.name(), "ada");
    assert_eq!(ids(&of(&*ledger, "acme", 1).await), ["s4"]);
    assert_eq!(ids(&of(&*ledger, "rival", 9).await), ["s2"]);
    assert_eq!(ids(&of(&*ledger, "a/c%me", 9).await), ["s5"]);
    assert!(of(&*ledger, "nobody", 9).await.is_empty() && of(&*ledger, "", 9).await.is_empty());
    assert_eq!(ids(&ledger.sessions(9).await.unwrap()), ["s5", "s4", "s3", "s2", "s1"], "all of them, in one list");
    ledger.append(step("s1", 1, 50, vec![note("x")])).await.unwrap();
    assert_eq!(of(&*ledger, "acme", 9).await[1].updated, ms(50));
}

pub(crate) async fn the_sessions_of_a_principal_are_walked_through_in_pieces(store: impl Store) {
    let ledger = store.join(node("a"));
    for (session, at, tenant, name) in [
        ("s1", 10, None, "ada"),
        ("s2", 10, None, "ada"),
        ("s3", 5, None, "bob"),
        ("s4", 30, None, "ada"),
        ("s5", 20, Some("acme"), "ada"),
    ] {
        ledger.append(opened(session, at, tenant, name)).await.unwrap();
    }
    ledger.append(Append { machine: Some("order".into()), ..opened("s6", 40, None, "ada") }).await.unwrap();
    let (ada, mut seen, mut last) = (Principal::of(None, "ada"), Vec::new(), None);
    loop {
        let rows = ledger.sessions_by(&ada, "mcp", last.as_ref(), 2).await.unwrap();
        seen.extend(rows.iter().map(|row| row.session.to_string()));
        match rows.into_iter().last() {
            Some(row) => last = Some(row),
            None => break,
        }
    }
    assert_eq!(seen, ["s1", "s2", "s4"], "the oldest first, without walks and whoever else's");
    assert!(ledger.sessions_by(&ada, "a2a", None, 9).await.unwrap().is_empty(), "a door of its own");
    let other = Principal::of(Some(&Tenant::new("acme")), "ada");
    assert_eq!(ids(&ledger.sessions_by(&other, "mcp", None, 9).await.unwrap()), ["s5"]);
}

pub(crate) async fn a_session_stays_its_tenants_after_it_was_retired_and_elsewhere(store: impl Store) {
    let elsewhere = MemoryLedger::new(node("elsewhere"));
    elsewhere.append(opened("s", 10, Some("acme"), "ada")).await.unwrap();
    let (row, trace) = both(&elsewhere, "s").await;
    let ledger = store.join(node("a"));
    assert!(ledger.import(row, trace).await.unwrap());
    assert_eq!(ids(&of(&*ledger, "acme", 9).await), ["s"]);
    ledger.append(opened("t", 20, Some("acme"), "ada")).await.unwrap();
    let retired = Fact::SessionRetired {
        session: "t".into(),
        principal: "acme/ada".into(),
        door: "mcp".into(),
        events: 1,
        reason: RetireReason::Retention,
    };
    ledger.append(Append { retires: true, ..step("t", 1, 30, vec![retired]) }).await.unwrap();
    assert_eq!(ids(&of(&*ledger, "acme", 9).await), ["t", "s"]);
    assert!(verified(&*ledger).await.unwrap().is_consistent());
}

pub(crate) async fn the_questions_of_a_tenant_are_listed_apart(store: impl Store) {
    let ledger = store.join(node("a"));
    for (session, tenant, at) in [("s1", Some("acme"), 90), ("s2", Some("rival"), 80), ("s3", None, 70)] {
        let mut asked = question(&format!("q-{session}"), session, at);
        asked.principal = Principal::of(tenant.map(Tenant::new).as_ref(), "ada");
        ledger.append(Append { asks: vec![asked], ..opened(session, 5, tenant, "ada") }).await.unwrap();
    }
    for all in [true, false] {
        let listed = async |tenant: Option<&str>, queue: Option<&str>| {
            let filter = QueueFilter { queue: queue.map(str::to_owned), tenant: tenant.map(Tenant::new), all };
            let entries = ledger.queue(&filter, 9).await.unwrap();
            entries.iter().map(|entry| entry.interaction.id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(listed(Some("acme"), None).await, ["q-s1"]);
        assert_eq!(listed(Some("rival"), Some("payments")).await, ["q-s2"]);
        assert_eq!(listed(Some("rival"), Some("others")).await, [""; 0]);
        assert_eq!(listed(None, None).await, ["q-s3", "q-s2", "q-s1"]);
    }
}
