//! Amends inside a program: functions are judged like any other tool.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amends::embed::{Amends, Builder, Certainty, Code, EmbedError, Failed, Function};
use amends_core::machine::{ActionSpec, MachineSpec};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// A shop in this program: what was really done.
#[derive(Debug, Default)]
struct Book {
    charges: AtomicUsize,
    keys: Mutex<BTreeSet<String>>,
}

impl Book {
    fn charged(&self) -> usize {
        self.charges.load(Ordering::SeqCst)
    }
}

fn in_memory() -> Builder {
    Amends::builder().config("[ledger]\nurl = 'memory:'")
}

fn with_rules(rules: &str) -> Builder {
    Amends::builder().config(&format!("[ledger]\nurl = 'memory:'\n{rules}"))
}

#[tokio::test]
async fn a_function_that_panics_is_judged_and_not_fatal() {
    let amends = in_memory()
        .function(Function::new("charge", |_: Value| async move {
            if true {
                panic!("the till is on fire");
            }
            Ok(json!({}))
        }))
        .function(Function::new("look", |_: Value| async move { Ok(json!({ "open": true })) }).reads())
        .start()
        .await
        .unwrap();
    let agent = amends.agent("anna");
    let told = agent.call("charge", json!({})).await.unwrap();
    assert_eq!(told.certainty(), Some(Certainty::InDoubt), "{}", told.envelope());
    assert_eq!(told.error().unwrap()["safe_to_repeat"], false);
    assert!(told.envelope().to_string().contains("the till is on fire"), "{}", told.envelope());

    let told = agent.call("look", json!({})).await.unwrap();
    assert_eq!(told.data(), Some(&json!({ "open": true })));
    amends.stop().await;
}

#[tokio::test]
async fn a_write_that_hangs_is_told_to_stop_and_never_runs_twice() {
    let book = Arc::new(Book::default());
    let stopped = Arc::new(Notify::new());
    let (of_book, of_stopped) = (book.clone(), stopped.clone());
    let charge = Function::with_errand("charge", move |_: Value, mut errand| {
        let (book, stopped) = (of_book.clone(), of_stopped.clone());
        async move {
            book.charges.fetch_add(1, Ordering::SeqCst);
            errand.stopped.wait().await;
            stopped.notify_one();
            std::future::pending::<Result<Value, Failed>>().await
        }
    });
    let amends =
        with_rules("[tools.charge]\neffect = 'write'\ntimeout = '200ms'").function(charge).start().await.unwrap();
    let agent = amends.agent("anna");
    let told = agent.call("charge", json!({ "order": "A17" })).await.unwrap();
    assert_eq!(told.certainty(), Some(Certainty::InDoubt), "{}", told.envelope());
    tokio::time::timeout(Duration::from_secs(60), stopped.notified()).await.expect("it is told to stop");

    let again = agent.call("charge", json!({ "order": "A17" })).await.unwrap();
    assert_eq!(again.envelope()["replayed"], true, "{}", again.envelope());
    assert_eq!(book.charged(), 1);
}

#[tokio::test]
async fn what_a_function_knows_of_its_effect_counts() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let charge = Function::new("charge", move |_: Value| {
        let run = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            match run {
                0 => Err(Failed::untouched(Code::Provider5xx, "not now")),
                _ => Ok(json!({ "id": run })),
            }
        }
    });
    let settle = Function::new("settle", |_: Value| async move {
        Err::<Value, _>(Failed::in_doubt(Code::Provider5xx, "the line broke"))
    });
    let amends = in_memory().function(charge).function(settle).start().await.unwrap();
    let agent = amends.agent("anna");
    let told = agent.call("charge", json!({})).await.unwrap();
    assert_eq!(told.data(), Some(&json!({ "id": 1 })), "nothing was done, so it is tried again: {}", told.envelope());
    assert_eq!(told.envelope()["outcome"], "succeeded_after_compensation");

    let told = agent.call("settle", json!({})).await.unwrap();
    assert_eq!(told.certainty(), Some(Certainty::InDoubt));
    assert_eq!(told.envelope()["attempts"].as_array().map(Vec::len), Some(1), "a write in doubt is sent once");
    amends.stop().await;
}

#[tokio::test]
async fn a_keyed_function_gets_the_same_key_for_the_same_effect() {
    let book = Arc::new(Book::default());
    let of_book = book.clone();
    let charge = Function::with_errand("charge", move |_: Value, errand| {
        let book = of_book.clone();
        async move {
            let new = book.keys.lock().unwrap().insert(errand.key.expect("a keyed function has a key"));
            if new {
                book.charges.fetch_add(1, Ordering::SeqCst);
                return Err(Failed::in_doubt(Code::Provider5xx, "done, and the answer was lost"));
            }
            Ok(json!({ "charged": book.charged() }))
        }
    });
    let rules =
        "[tools.charge]\neffect = 'keyed'\nkey = { header = 'idempotency-key', window = '1h' }\nsettles_within = '1s'";
    let amends = with_rules(rules).function(charge).start().await.unwrap();
    let told = amends.agent("anna").call("charge", json!({ "order": "A17" })).await.unwrap();
    assert_eq!(told.data(), Some(&json!({ "charged": 1 })), "{}", told.envelope());
    assert_eq!(book.charged(), 1);
    amends.stop().await;
}

#[tokio::test]
async fn a_function_that_blocks_has_a_thread_of_its_own() {
    let amends = in_memory()
        .function(Function::blocking("slow", |_: Value| {
            std::thread::sleep(Duration::from_millis(300));
            Ok(json!({ "slow": true }))
        }))
        .function(Function::new("quick", |_: Value| async move { Ok(json!({ "quick": true })) }).reads())
        .start()
        .await
        .unwrap();
    let agent = amends.agent("anna");
    let (slow, quick) = tokio::join!(async { agent.call("slow", json!({})).await.unwrap() }, async {
        agent.call("quick", json!({})).await.unwrap()
    });
    assert_eq!(slow.data(), Some(&json!({ "slow": true })));
    assert_eq!(quick.data(), Some(&json!({ "quick": true })));
    amends.stop().await;
}

#[tokio::test]
async fn an_action_of_a_machine_runs_a_function() {
    let book = Arc::new(Book::default());
    let of_book = book.clone();
    let brew = Function::new("brew", move |what: Value| {
        let book = of_book.clone();
        async move {
            book.charges.fetch_add(1, Ordering::SeqCst);
            match what["item"].as_str() {
                Some("tea") => Err(Failed::untouched(Code::InputInvalid, "we have no tea")),
                item => Ok(json!({ "cup": item })),
            }
        }
    });
    let order = MachineSpec::new("created")
        .terminal(["served"])
        .action(
            "order",
            ActionSpec::new(["created"], "ordered")
                .input(json!({
                    "type": "object", "properties": { "item": { "type": "string" } }, "required": ["item"],
                }))
                .writes("item", "inputs.item"),
        )
        .action("brew", ActionSpec::new(["ordered"], "served").function("brew").arg("item", "state.item"))
        .action("change", ActionSpec::new(["ordered"], "created").times(3));
    let amends = in_memory().function(brew).machine("cafe", order).start().await.unwrap();
    let agent = amends.agent("anna");
    let step = |action: &str, inputs: Value| agent.call("step", json!({ "action": action, "inputs": inputs }));

    let told = step("brew", json!({})).await.unwrap();
    assert_eq!(told.kind(), Some("invalid_transition"), "{}", told.envelope());
    step("order", json!({ "item": "tea" })).await.unwrap();
    let told = step("brew", json!({})).await.unwrap();
    assert_eq!(told.kind(), Some("action_error"), "{}", told.envelope());
    assert_eq!(told.envelope()["valid_next_actions"], json!(["brew", "change"]));
    step("change", json!({})).await.unwrap();
    step("order", json!({ "item": "mocha" })).await.unwrap();
    let told = step("brew", json!({})).await.unwrap();
    let moved = told.data().unwrap_or_else(|| panic!("{}", told.envelope()));
    assert_eq!(moved["state"]["fields"]["item"], "mocha", "{moved}");
    assert_eq!(moved["result"], json!({ "cup": "mocha" }));
    assert_eq!(book.charged(), 2);

    let told = amends.agent("bert").call("brew", json!({ "item": "mocha" })).await.unwrap();
    assert!(told.error().is_some(), "what a machine writes with is called by it alone: {}", told.envelope());
    assert_eq!(book.charged(), 2);
    amends.stop().await;
}

#[tokio::test]
async fn what_is_open_when_the_program_ends_is_settled_when_it_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "[ledger]\nurl = 'sqlite:{}'\n[tools.charge]\neffect = 'write'\ntimeout = '30s'",
        folder.path().join("ledger.db").display()
    );
    let begun = Arc::new(Notify::new());
    let runs = Arc::new(AtomicUsize::new(0));
    let charge = |begun: Arc<Notify>, runs: Arc<AtomicUsize>| {
        Function::new("charge", move |_: Value| {
            let (begun, runs) = (begun.clone(), runs.clone());
            async move {
                runs.fetch_add(1, Ordering::SeqCst);
                begun.notify_one();
                std::future::pending::<Result<Value, Failed>>().await
            }
        })
    };
    // A runtime that is dropped in mid-call leaves as much behind as a process that is killed.
    let (text, first) = (config.clone(), charge(begun.clone(), runs.clone()));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let amends = Amends::builder().config(&text).function(first).start().await.unwrap();
            let agent = amends.agent("anna");
            let call = agent.call("charge", json!({ "order": "A17" }));
            tokio::select! {
                told = async { call.await } => panic!("it hangs: {told:?}"),
                () = begun.notified() => {}
            }
        });
        runtime.shutdown_background();
    })
    .join()
    .unwrap();

    let amends =
        Amends::builder().config(&config).function(charge(Arc::default(), runs.clone())).start().await.unwrap();
    let told = amends.agent("anna").call("charge", json!({ "order": "A17" })).await.unwrap();
    assert_eq!(told.certainty(), Some(Certainty::InDoubt), "{}", told.envelope());
    assert_eq!(runs.load(Ordering::SeqCst), 1, "a write in doubt is not run again");
}

#[tokio::test]
async fn two_functions_of_one_name_are_refused() {
    let same = || Function::new("same", |_: Value| async move { Ok(json!({})) });
    let refused = in_memory().function(same()).function(same()).start().await.unwrap_err();
    assert!(matches!(refused, EmbedError::Twice(name) if name == "same"));
}

#[tokio::test]
async fn two_machines_of_one_name_are_refused_and_so_are_two_actions() {
    let go = || ActionSpec::new(["a"], "z");
    let machine = || MachineSpec::new("a").terminal(["z"]).action("go", go());
    let refused = in_memory().machine("same", machine()).machine("same", machine()).start().await.unwrap_err();
    assert_eq!(refused.to_string(), "there are two machines `same`");
    let written =
        "[machines.same]\ninitial = 'a'\nterminal = ['z']\n[machines.same.actions.go]\nfrom = ['a']\nto = 'z'";
    let refused = with_rules(written).machine("same", machine()).start().await.unwrap_err();
    assert!(matches!(refused, EmbedError::TwoMachines(name) if name == "same"));
    let refused = in_memory().machine("m", machine().action("go", go())).start().await.unwrap_err();
    assert!(refused.to_string().contains("`machines.m.actions.go`: two actions have this name"), "{refused}");
}
