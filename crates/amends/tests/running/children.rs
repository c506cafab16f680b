//! Children that die, do not leave, or crash in a loop.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::place::{health, listening};
use crate::process::{children, is_guard, runs, signal};
use crate::servers::{child, id_of, ids, lines, reload, served, text, upstream};
use crate::support::{AMENDS, Gateway, Place, eventually};

/// A gateway over a child that minds nothing and has started another process, and the ids of both.
fn over_stubborn(place: &Place) -> (Gateway, [u32; 2]) {
    let gateway = listening(place, &[("a", upstream(place, "a", &["--stubborn", "--fork"]))], "");
    let id = id_of(&served(&gateway, "a__echo"));
    let forked = ids(place, "forked")[0];
    assert!(runs(id) && runs(forked));
    (gateway, [id, forked])
}

fn all_end(ids: &[u32]) {
    for id in ids {
        eventually(&format!("{id} has ended"), || !runs(*id));
    }
}

#[test]
fn a_child_that_minds_nothing_is_ended_with_what_it_started_when_the_gateway_is_told_to_end() {
    let place = Place::new();
    let (mut gateway, all) = over_stubborn(&place);
    signal(gateway.id(), "TERM");
    gateway.ended();
    assert_eq!(all.map(runs), [false, false], "they end before the gateway does");
}

#[test]
fn a_child_that_minds_nothing_is_ended_with_what_it_started_when_the_gateway_is_killed() {
    let place = Place::new();
    let (mut gateway, all) = over_stubborn(&place);
    let guards: Vec<u32> = children(gateway.id()).into_iter().filter(|id| is_guard(*id)).collect();
    assert_eq!(guards.len(), 1, "one guard");
    gateway.kill();
    all_end(&all);
    all_end(&guards);
}

#[test]
fn a_guard_that_is_killed_is_replaced_with_the_next_child() {
    let place = Place::new();
    let (mut gateway, all) = over_stubborn(&place);
    let guard = |gateway: &Gateway| children(gateway.id()).into_iter().find(|id| is_guard(*id));
    signal(guard(&gateway).expect("a guard"), "KILL");
    eventually("it is dead", || guard(&gateway).is_none());
    let more = [("a", upstream(&place, "a", &["--stubborn", "--fork"])), ("b", upstream(&place, "b", &["--stubborn"]))];
    reload(&place, &gateway, &text(&place, &more, ""));
    let other = id_of(&served(&gateway, "b__echo"));
    assert!(guard(&gateway).is_some());
    gateway.kill();
    all_end(&all);
    all_end(&[other]);
}

#[test]
fn what_is_wrapped_ends_with_a_wrapper_that_is_killed() {
    let place = Place::new();
    let mut wrapper = Command::new(AMENDS)
        .args(["wrap", "--ledger", &place.ledger(), "--"])
        .args(child(&place, "a", &["--stubborn", "--fork"]))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let all = [ids(&place, "a.pid")[0], ids(&place, "forked")[0]];
    wrapper.kill().expect("it runs");
    wrapper.wait().expect("it ended");
    all_end(&all);
}

#[test]
fn a_child_that_dies_is_seen_to_although_what_it_started_keeps_its_output_open() {
    let place = Place::new();
    let gateway = listening(&place, &[("a", upstream(&place, "a", &["--fork"]))], "");
    let id = id_of(&served(&gateway, "a__echo"));
    let forked = ids(&place, "forked")[0];
    let (_, died) = gateway.call("a__die", "{}");
    assert_eq!(died["error"]["code"], "ConnectionLost", "{died}");
    assert_ne!(id_of(&served(&gateway, "a__echo")), id);
    all_end(&[forked]);
    gateway_ends(gateway);
}

fn gateway_ends(mut gateway: Gateway) {
    signal(gateway.id(), "TERM");
    gateway.ended();
}

#[test]
fn a_child_that_crashes_in_a_loop_is_down_with_its_last_words_and_is_tried_less_often() {
    let place = Place::new();
    place.write("fail", "no \x1b[2Jlicence\nsecret words for people\n");
    let gateway = listening(&place, &[("a", upstream(&place, "a", &["--fail"]))], "");
    let state = || health(&gateway)["upstreams"]["a"].clone();
    eventually("the loop is seen", || state()["reason"].as_str().is_some_and(|reason| reason.contains("6 times")));
    let said = state();
    let tries = lines(&place, "starts").len();
    assert_eq!(said["state"], "down", "{said}");
    assert!(said["reason"].as_str().is_some_and(|reason| reason.contains("exit status: 3")), "{said}");
    assert!(!said["reason"].as_str().is_some_and(|reason| reason.contains("people")), "agents see the reason: {said}");
    let words: Vec<&str> = said["stderr"].as_array().expect("words").iter().filter_map(Value::as_str).collect();
    assert!(words.contains(&"no \\u{1b}[2Jlicence") && words.contains(&"secret words for people"), "{words:?}");
    assert!((6..=7).contains(&tries), "{tries} tries");
    std::fs::remove_file(place.path("fail")).expect("the file");
    served(&gateway, "a__echo");
    assert!(lines(&place, "starts").len() <= tries + 2, "probes are far apart");
    assert_eq!(state().get("stderr"), None);
}

#[test]
fn a_flood_on_standard_error_holds_nobody_up_and_is_not_kept() {
    let place = Place::new();
    let gateway = listening(&place, &[("a", upstream(&place, "a", &["--flood"]))], "");
    served(&gateway, "a__echo");
    gateway_ends(gateway);
}

#[test]
fn a_child_gets_what_it_needs_and_what_is_named_and_nothing_else() {
    let place = Place::new();
    std::fs::create_dir(place.path("home")).expect("a folder");
    let home = place.path("home").canonicalize().expect("a folder");
    let rest =
        format!("env = {{ GIVEN = \"given\" }}\nenv_pass = [\"PASSED\", \"NOT_SET\"]\ncwd = \"{}\"", home.display());
    let declared = format!("{}\n{rest}", upstream(&place, "a", &[]));
    let config = place.write("serve.toml", &text(&place, &[("a", declared)], ""));
    let mut command = Command::new(AMENDS);
    command.arg("serve").arg("--config").arg(config).env("PASSED", "passed").env("A_SECRET", "secret");
    let gateway = Gateway::listening(command);
    let said = served(&gateway, "a__echo");
    let has = |name: &str| said["env"].get(name).and_then(Value::as_str);
    assert_eq!(
        (has("GIVEN"), has("PASSED"), has("A_SECRET"), has("NOT_SET")),
        (Some("given"), Some("passed"), None, None)
    );
    assert!(has("PATH").is_some());
    assert_eq!(said["cwd"].as_str(), home.to_str());
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let place = Place::new();
    let declared = format!("{}\ncwd = \"/nonexistent/folder\"", upstream(&place, "a", &[]));
    let gateway = listening(&place, &[("a", declared)], "");
    eventually("it is said why", || {
        let health = health(&gateway);
        let reason = health["upstreams"]["a"]["reason"].as_str().unwrap_or("");
        reason.contains("/nonexistent/folder")
    });
}
