//! What came back, and what arrived at the server.

use std::path::Path;

use serde_json::Value;

use crate::peer::{Peer, Said};
use crate::traffic::{Asked, Era, traffic};
use crate::undo;

/// What Amends adds to a result's `_meta`.
fn ours(name: &str) -> bool {
    name.starts_with("amends/")
}

/// Sends the traffic both ways and compares what comes back.
pub(crate) fn answers(direct: &mut Peer, through: &mut Peer, era: Era, front: Front) {
    for asked in traffic(era) {
        let what = format!("{} {:.120}", asked.method, asked.params);
        let expected: Vec<Said> = direct.ask(&asked).iter().map(|message| Said::read(message)).collect();
        let mut found: Vec<Said> = through.ask(&asked).iter().map(|message| Said::read(message)).collect();
        for said in &mut found {
            said.body = said.body.take().map(|body| undo::without_meta(&body, ours));
        }
        if front == Front::Serve && asked.method.ends_with("/list") {
            merged(&what, &asked, &expected, &found);
            continue;
        }
        if front == Front::Serve && OWN.contains(&asked.method.as_str()) {
            let answered = found.iter().any(|said| said.body.as_deref() == Some("{}"));
            assert!(found.len() == 1 && answered, "{what}: {found:?}");
            continue;
        }
        assert_eq!(found.len(), expected.len(), "{what}: messages");
        for (found, expected) in found.iter().zip(&expected) {
            same(&what, found, expected, &asked);
        }
    }
}

/// What stands between the client and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// `amends wrap`, in front of one server: everything passes as it is.
    Wrap,
    /// `amends serve`, in front of any number: lists are put together, so that only their entries keep their bytes, and what is
    /// about the client's own session is answered there.
    Serve,
}

/// What `amends serve` answers itself, for each of its clients.
const OWN: [&str; 4] = ["resources/subscribe", "resources/unsubscribe", "logging/setLevel", "ping"];

fn same(what: &str, found: &Said, expected: &Said, asked: &Asked) {
    if found == expected {
        return;
    }
    // The line that a tool echoes is the one that arrived: it is compared there.
    if asked.params.contains(r#""name":"echo""#) {
        return;
    }
    let cut = |said: &Said| said.body.as_ref().map(|body| body.chars().take(1500).collect::<String>());
    panic!(
        "{what}:\n   found {:?} {:?} {:?}\ndirectly {:?} {:?} {:?}",
        found.id,
        found.method,
        cut(found),
        expected.id,
        expected.method,
        cut(expected)
    );
}

/// Every entry of the server's own list is among ours, as it was written.
fn merged(what: &str, asked: &Asked, expected: &[Said], found: &[Said]) {
    // Our cursors are our own, so a page is asked for with theirs only where there is nobody in between.
    if asked.params.contains("\"cursor\"") {
        return;
    }
    let entries = |said: &[Said]| {
        let body = said.last().and_then(|said| said.body.clone()).expect("a list");
        ["tools", "prompts", "resources", "resourceTemplates"].iter().find_map(|name| {
            let list: Vec<Box<serde_json::value::RawValue>> =
                serde_json::from_str(undo::value(&body, name)?).expect("a list");
            Some(list.iter().map(|entry| entry.get().to_owned()).collect::<Vec<_>>())
        })
    };
    let (expected, found) = (entries(expected).expect("entries"), entries(found).expect("entries"));
    for entry in &expected {
        assert!(found.contains(entry), "{what}: {entry} is not in {found:?}");
    }
}

/// A request as it arrived at the server.
#[derive(Debug)]
struct Arrived {
    method: String,
    params: String,
    headers: Value,
}

/// What arrived through Amends is what arrives directly. What arrived beyond that, Amends wanted to know for itself.
pub(crate) fn arrivals(direct: &Path, through: &Path, front: Front) {
    let (direct, mut through) = (read(direct), read(through));
    for expected in direct {
        let wanted = expected.params.as_str();
        let at = through.iter().position(|found| found.method == expected.method && undone(found, wanted) == wanted);
        match at {
            Some(at) => {
                let found = through.remove(at);
                assert_eq!(found.headers, expected.headers, "{} {:.200}", expected.method, wanted);
            }
            None if expected.method == "initialize" || expected.method == "server/discover" => {}
            None if front == Front::Serve && expected.method.ends_with("/list") => {}
            None if front == Front::Serve && OWN.contains(&expected.method.as_str()) => {}
            None => {
                let alike = through.iter().filter(|found| found.method == expected.method);
                let alike: Vec<&str> = alike.map(|found| found.params.as_str()).collect();
                panic!("{} {wanted} did not arrive as it was sent, but {alike:#?}", expected.method);
            }
        }
    }
    for found in through {
        let own = ["initialize", "server/discover", "notifications/initialized", "subscriptions/listen", "ping"];
        let shared = front == Front::Serve && OWN.contains(&found.method.as_str());
        let known = shared || own.contains(&found.method.as_str()) || found.method.ends_with("/list");
        assert!(known, "{} {:.300} came from nobody", found.method, found.params);
    }
}

/// The parameters without what Amends adds, and with the agent's progress token again.
fn undone(found: &Arrived, expected: &str) -> String {
    let params = undo::without_meta(&found.params, ours);
    let token = undo::value(expected, "_meta").and_then(|meta| undo::value(meta, "progressToken"));
    match (undo::value(&params, "_meta"), token) {
        (Some(meta), Some(token)) => undo::with(&params, "_meta", &undo::with(meta, "progressToken", token)),
        _ => params,
    }
}

fn read(log: &Path) -> Vec<Arrived> {
    let text = std::fs::read_to_string(log).expect("the server's log");
    let mut headers = Value::Null;
    let mut all = Vec::new();
    for line in text.lines() {
        if let Some(given) = line.strip_prefix("# ") {
            headers = serde_json::from_str(given).expect("JSON");
            continue;
        }
        let said = Said::read(line);
        let method = said.method.expect("nothing is asked of us");
        all.push(Arrived { method, params: said.body.unwrap_or_default(), headers: std::mem::take(&mut headers) });
    }
    all
}
