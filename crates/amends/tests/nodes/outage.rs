//! A PostgreSQL that goes away, and comes back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::Site;
use crate::postgres_server::Cluster;
use crate::support::{Gateway, eventually};

#[test]
fn a_crash_of_postgresql_under_load_leaves_no_double_effect_and_whole_chains() {
    let site = Site::over(Cluster::own().database());
    let nodes = [site.place.up(""), site.place.up("")];
    let load = Load::start(&nodes);
    eventually("calls succeed", || load.succeeded() >= 5);
    site.database.cluster.crash();
    eventually("writes are refused", || load.refused() >= 2);
    let before = load.succeeded();
    site.database.cluster.start_again();
    eventually("calls succeed again", || load.succeeded() >= before + 5);
    load.finish(&site);
}

#[test]
fn connections_that_are_cut_under_load_are_made_again() {
    let site = Site::over(Cluster::own().database());
    let nodes = [site.place.up(""), site.place.up("")];
    let load = Load::start(&nodes);
    for _ in 0..3 {
        let before = load.succeeded();
        eventually("calls succeed", || load.succeeded() >= before + 4);
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        assert_ne!(site.database.sql(cut), "0", "there was something to cut");
    }
    let before = load.succeeded();
    eventually("calls succeed again", || load.succeeded() >= before + 5);
    load.finish(&site);
}

#[test]
fn while_postgresql_takes_no_writes_none_is_sent() {
    let site = Site::over(Cluster::own().database());
    let node = site.place.up("");
    let cluster = &site.database.cluster;
    cluster.sql("postgres", "ALTER SYSTEM SET default_transaction_read_only = on");
    cluster.sql("postgres", "SELECT pg_reload_conf()");
    eventually("it takes no writes", || node.call("charge_card", r#"{"order":"ord_0","amount":5}"#).0 == 503);
    let sent = site.place.requests("charge_card");
    for _ in 0..3 {
        let (status, refused) = node.call("charge_card", r#"{"order":"ord_1","amount":5}"#);
        assert_eq!(status, 503, "{refused}");
        assert_eq!(refused["error"]["kind"], "store_unavailable", "{refused}");
        assert_eq!(refused["error"]["certainty"], "not_sent", "{refused}");
        assert!(refused["error"]["retry_after_ms"].is_u64(), "{refused}");
    }
    assert_eq!(site.place.requests("charge_card"), sent);
    assert_eq!(site.place.requests_on("charge_card", "ord_1"), 0);
    cluster.sql("postgres", "ALTER SYSTEM RESET default_transaction_read_only");
    cluster.sql("postgres", "SELECT pg_reload_conf()");
    eventually("calls work again", || {
        node.call("charge_card", r#"{"order":"ord_2","amount":5}"#).1["status"] == "success"
    });
    assert_eq!(site.place.effects_on("charge_card", "ord_2"), 1);
    site.place.settled();
}

/// Agents that charge one order after the other, and repeat each charge until they know how it ended.
struct Load {
    stop: Arc<AtomicBool>,
    agents: Vec<std::thread::JoinHandle<()>>,
    told: Arc<Mutex<BTreeMap<String, Vec<Value>>>>,
}

impl Load {
    fn start(nodes: &[Gateway]) -> Self {
        let (stop, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(BTreeMap::new())));
        let agents = (0..4).map(|agent| {
            let address = nodes[agent % nodes.len()].address.clone();
            let (stop, told) = (Arc::clone(&stop), Arc::clone(&told));
            std::thread::spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    charge(&address, &format!("ord_{agent}_{number}"), &told);
                }
            })
        });
        let agents = agents.collect();
        Self { stop, agents, told }
    }

    fn count(&self, such: impl Fn(&Value) -> bool) -> usize {
        let told = self.told.lock().expect("nobody panicked");
        told.values().flatten().filter(|answer| such(answer)).count()
    }

    fn succeeded(&self) -> usize {
        self.count(|answer| answer["status"] == "success")
    }

    fn refused(&self) -> usize {
        self.count(|answer| answer["error"]["kind"] == "store_unavailable")
    }

    /// Stops the agents, and compares what they were told with the book.
    fn finish(self, site: &Site) {
        self.stop.store(true, Ordering::Relaxed);
        for agent in self.agents {
            agent.join().expect("an agent's thread");
        }
        site.place.settled();
        for (order, answers) in self.told.lock().expect("nobody panicked").iter() {
            let effects = site.place.effects_on("charge_card", order);
            assert!(effects <= 1, "{order} was charged {effects} times: {answers:?}");
            let done = answers.iter().any(|answer| answer["status"] == "success");
            assert!(!done || effects == 1, "{order} was not charged: {answers:?}");
            let refused = |answer: &Value| answer["error"]["certainty"] == "not_sent";
            assert!(!answers.iter().all(refused) || effects == 0, "{order} was refused and charged: {answers:?}");
            for answer in answers.iter().filter(|answer| answer["error"]["kind"] == "store_unavailable") {
                assert!(answer["error"]["retry_after_ms"].is_u64(), "{answer}");
            }
        }
    }
}

/// Charges an order, and repeats it a few times while it is refused.
fn charge(address: &str, order: &str, told: &Mutex<BTreeMap<String, Vec<Value>>>) {
    let arguments = format!(r#"{{"order":"{order}","amount":5}}"#);
    for _ in 0..3 {
        let (_, answer) = crate::support::http::post(address, "/call/charge_card", &[], arguments.as_bytes());
        let again = answer["error"]["kind"] == "store_unavailable";
        told.lock().expect("nobody panicked").entry(order.to_owned()).or_default().push(answer);
        if !again {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}
