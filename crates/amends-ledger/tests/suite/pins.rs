//! Pinned tools.

use amends_ledger::{Definition, PinnedTool, digest};

use crate::common::{Store, ms, node};

fn pin(place: &str, tool: &str, version: u64, says: &str) -> PinnedTool {
    PinnedTool {
        place: digest(place.as_bytes()),
        upstream: "shop".into(),
        tool: tool.into(),
        served: format!("shop__{tool}"),
        version,
        pinned: Definition { digest: digest(says.as_bytes()), text: Some(says.into()), at: ms(version) },
        seen: None,
    }
}

pub(crate) async fn a_pin_is_kept_only_where_it_follows_the_one_before(store: impl Store) {
    let ledger = store.join(node("a"));
    let first = pin("one", "pay", 1, "pays");
    assert!(!ledger.keep_pin(pin("one", "pay", 2, "nothing came before")).await.unwrap());
    assert!(ledger.keep_pin(first.clone()).await.unwrap());
    assert!(!ledger.keep_pin(pin("one", "pay", 1, "first as well")).await.unwrap());
    let seen = Definition { digest: digest(b"other"), text: None, at: ms(9) };
    let second = PinnedTool { version: 2, seen: Some(seen), ..first };
    assert!(ledger.keep_pin(second.clone()).await.unwrap());
    assert!(!ledger.keep_pin(pin("one", "pay", 2, "second as well")).await.unwrap());
    assert_eq!(store.join(node("b")).pins(None, 9).await.unwrap(), [second]);
}

pub(crate) async fn each_place_has_its_own_pins(store: impl Store) {
    let ledger = store.join(node("a"));
    for (place, tool) in [("one", "pay"), ("one", "look"), ("two", "pay")] {
        assert!(ledger.keep_pin(pin(place, tool, 1, "does")).await.unwrap());
    }
    let of_one = ledger.pins(Some(&digest(b"one")), 9).await.unwrap();
    assert_eq!(of_one.iter().map(|pin| pin.tool.as_str()).collect::<Vec<_>>(), ["look", "pay"]);
    assert_eq!(ledger.pins(Some(&digest(b"two")), 9).await.unwrap().len(), 1);
    assert_eq!(ledger.pins(Some(&digest(b"three")), 9).await.unwrap(), []);
    assert_eq!(ledger.pins(None, 2).await.unwrap().len(), 2);
    assert_eq!(ledger.pins(None, 9).await.unwrap().len(), 3);
}
