//! Questions that several nodes could post.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;

use crate::Site;
use crate::postgres_server::Cluster;
use crate::support::desk::{Desk, SECRET};
use crate::support::eventually;

#[test]
fn a_question_is_posted_by_one_node_and_by_another_where_that_one_dies() {
    let site = Site::over(Cluster::shared().database());
    let desk = Desk::open(true);
    let secret = site.place.write("secret.txt", SECRET);
    let text = format!(
        "[tools.charge_card]\neffect = \"write\"\napproval = \"finance\"\n[people]\nhold = \"0s\"\n\
         [queues.finance]\nwebhook = {{ url = \"http://{}/desk\", secret = {{ file = \"{}\" }} }}\n",
        desk.address,
        secret.display()
    );
    let config = site.place.write("webhook.toml", &text).display().to_string();
    let up = || site.place.up_with("", &["--config", &config]);
    let (mut one, _other) = (up(), up());
    let ask = |node: &crate::support::Gateway, order: &str| -> Value {
        let (_, waits) = node.call("charge_card", &format!(r#"{{"order":"{order}","amount":5}}"#));
        waits["error"]["interaction"].clone()
    };
    let posted = || -> Vec<Value> { desk.posted().iter().map(|one| one.json()["id"].clone()).collect() };
    let first = ask(&one, "ord_1");
    eventually("it is posted", || posted().contains(&first));
    // Any node posts what is older than five seconds and was not taken.
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!(posted(), std::slice::from_ref(&first), "by one of them");
    desk.takes.store(false, Ordering::SeqCst);
    let second = ask(&one, "ord_2");
    eventually("it is tried", || posted().contains(&second));
    one.kill();
    desk.takes.store(true, Ordering::SeqCst);
    let before = posted().len();
    eventually("the other node takes over", || posted().len() > before);
    assert_eq!(posted().last(), Some(&second));
    assert_eq!(posted().iter().filter(|id| **id == first).count(), 1);
}
