//! Many changes of the configuration while calls come and go.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;

use crate::place::{health, listening};
use crate::process::{children, files};
use crate::servers::{lines, reload, served, text, upstream};
use crate::support::{Gateway, Place, eventually};

const RELOADS: u32 = 50;

/// Calls a tool over and over until it is told to stop, and gives how often it did; the first failure ends it.
fn calls(gateway: &Gateway, tool: &str, arguments: impl Fn(u64) -> String, stop: &AtomicBool) -> u64 {
    let mut made = 0;
    while !stop.load(Ordering::Relaxed) {
        let (status, answer) = gateway.call(tool, &arguments(made));
        assert_eq!((status, &answer["status"]), (200, &json!("success")), "{tool}: {answer}");
        made += 1;
    }
    made
}

#[test]
fn fifty_reloads_under_load_fail_no_call_and_leave_nothing_behind() {
    let place = Place::new();
    let a = upstream(&place, "a", &[]);
    // One keeps its process under other rules, one gets another process now and then, one comes and goes.
    let config = |n: u32| {
        let env = format!("env = {{ N = \"{}\" }}", n / 10);
        let b = format!("{}\n{env}", upstream(&place, "b", &[]));
        let mut upstreams = vec![("a", format!("{a}\ntimeout = \"{}s\"", 20 + n)), ("b", b)];
        if n % 10 == 5 {
            upstreams.push(("c", upstream(&place, "c", &[])));
        }
        let tools = "[tools.a__echo]\neffect = \"read\"\n[tools.a__pay]\neffect = \"write\"\n[tools.b__pay]\n";
        (upstreams, format!("{tools}effect = \"write\"\ntimeout = \"{}s\"\n", 30 + n))
    };
    let (upstreams, more) = config(0);
    let gateway = listening(&place, &upstreams, &more);
    served(&gateway, "a__echo");
    served(&gateway, "b__echo");
    let (children_before, files_before) = (children(gateway.id()).len(), files(gateway.id()));
    let (stop, paid) = (AtomicBool::new(false), AtomicU64::new(0));
    let pays = |tool: &'static str| {
        let arguments = move |n: u64| json!({ "order": format!("{tool}-{n}"), "seconds": 0.01 }).to_string();
        paid.fetch_add(calls(&gateway, tool, arguments, &stop), Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        let load = [
            scope.spawn(|| assert!(calls(&gateway, "a__echo", |_| "{}".into(), &stop) > 0)),
            scope.spawn(|| pays("a__pay")),
            scope.spawn(|| pays("b__pay")),
        ];
        for n in 1..=RELOADS {
            let (upstreams, more) = config(n);
            reload(&place, &gateway, &text(&place, &upstreams, &more));
        }
        let last = || health(&gateway)["upstreams"]["b"]["state"] == "ready";
        eventually("the last of them is ready", last);
        stop.store(true, Ordering::Relaxed);
        load.into_iter().for_each(|calls| calls.join().expect("no call failed"));
    });
    let mut book = lines(&place, "book");
    assert_eq!(book.len() as u64, paid.load(Ordering::Relaxed), "each was paid");
    book.sort();
    book.dedup();
    assert_eq!(book.len() as u64, paid.load(Ordering::Relaxed), "and once");
    assert_eq!(lines(&place, "starts").iter().filter(|name| *name == "a").count(), 1, "it was never started again");
    eventually("no process is left behind", || children(gateway.id()).len() == children_before);
    eventually("no file is left open", || files(gateway.id()) <= files_before + 2);
    place.settled();
}
