//! Whatever policies there are: what they forbid never reaches the upstream.

use serde_json::json;

use crate::support::Place;
use crate::up;

/// A small generator, so that a failing case can be made again.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

#[test]
fn a_forbidden_call_never_reaches_the_book() {
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    for _ in 0..3 {
        let place = Place::new();
        let most = 1 + chance.below(50);
        let unlucky = chance.below(6);
        let policies = format!(
            r#"
            permit (principal, action == Action::"charge_card", resource)
            when {{ context.args.amount.lessThanOrEqual(decimal("{most}.0")) }};
            forbid (principal, action in Action::"write", resource) when {{ context.args.order == "ord_{unlucky}" }};
            "#
        );
        let gateway = up(&place, "", &policies);
        let mut sent = 0;
        for n in 0..40 {
            let (order, amount) = (chance.below(6), chance.below(100_000) as f64 / 1000.0 + 0.001);
            let tool = if chance.below(4) == 0 { "issue_refund" } else { "charge_card" };
            let allowed = tool == "charge_card" && amount <= most as f64 && order != unlucky;
            let body = json!({ "order": format!("ord_{order}"), "amount": amount }).to_string();
            let key = format!("key-{n}");
            let (status, envelope) = gateway.call_with(tool, &[("idempotency-key", &key)], &body);
            sent += u64::from(allowed);
            assert_eq!(status == 200, allowed, "{tool} {body} under {policies}: {envelope}");
        }
        assert_eq!((place.effects("charge_card"), place.effects("issue_refund")), (sent, 0), "{policies}");
        assert_eq!((place.requests("charge_card"), place.requests("issue_refund")), (sent, 0));
    }
}
