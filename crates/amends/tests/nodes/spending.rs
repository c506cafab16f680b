//! What a principal may spend in a day, at several nodes together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Site;
use crate::postgres_server::Cluster;
use crate::support::{Gateway, eventually};

const RULES: &str =
    "[limits]\ncost = { per_principal_day = 100 }\n[tools.charge_card]\neffect = \"write\"\ncost = \"args.amount\"\n";

/// Charges so much, as a call of its own: the status, and what is said.
fn charge(node: &Gateway, amount: u32) -> (u16, String) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let key = format!("key-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let body = format!(r#"{{"order":"ord_1","amount":{amount}}}"#);
    let (status, said) = node.call_with("charge_card", &[("idempotency-key", &key)], &body);
    (status, said.to_string())
}

/// Whether that much is left as far as a node knows: it is asked for more than there ever is.
fn leaves(node: &Gateway, left: u32) -> bool {
    let (status, said) = charge(node, 101);
    assert_eq!(status, 403, "{said}");
    said.contains(&format!(" {left} is left"))
}

#[test]
fn nodes_hold_a_cap_together_and_count_nothing_twice() {
    let site = Site::over(Cluster::shared().database());
    let config = site.place.write("cost.toml", RULES).display().to_string();
    let up = || site.place.up_with("", &["--config", &config]);
    let (one, other) = (up(), up());
    assert_eq!(charge(&one, 6).0, 200);
    eventually("the other node has seen it", || leaves(&other, 94));
    assert_eq!(charge(&other, 10).0, 200);
    eventually("the first node has seen that", || leaves(&one, 84));
    assert!(leaves(&other, 84));
    // Long enough for several looks, of which each would add to it.
    let until = Instant::now() + Duration::from_secs(8);
    while Instant::now() < until {
        assert!(leaves(&one, 84) && leaves(&other, 84));
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(leaves(&up(), 84), "whoever comes later knows at once");
    assert_eq!(charge(&one, 84).0, 200);
    eventually("nothing is left anywhere", || leaves(&other, 0));
    assert_eq!(charge(&other, 1).0, 403);
    assert_eq!(site.place.effects("charge_card"), 3);
    site.place.settled();
}
