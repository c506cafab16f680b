//! `subscriptions/listen`: a request whose answer is a stream of what the client asked to hear, until it hangs up.

use std::collections::BTreeSet;

use amends_wire::mcp::lists::Kind;
use amends_wire::mcp::{Era, era, tasks as wire};
use amends_wire::message;
use amends_wire::object::Object;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::client::SUBSCRIPTIONS_MAX;
use super::methods::settled_route;
use super::{Answer, Asked, Client, Outbox, tasks, walk};
use crate::hub::{Mailbox, Subscribed, Wants, subscribe};
use crate::listing;
use crate::router::Route;

/// Says what will be told, and tells it until the client stops listening, or does not read.
pub(super) async fn listen(client: &Client, asked: &Asked, outbox: &Outbox) -> Answer {
    let Some(filter) = filter(asked) else {
        return Answer::error(asked, message::INVALID_PARAMS, "`notifications` must be an object", None);
    };
    if !outbox.is_open() {
        let words = "what is heard comes as a stream, which this client does not take";
        return Answer::error(asked, message::INVALID_REQUEST, words, None);
    }
    let named = |member: &str| filter[member].as_array().into_iter().flatten().filter_map(Value::as_str);
    let (uris, mut ids): (Vec<&str>, Vec<&str>) =
        (named("resourceSubscriptions").collect(), named("taskIds").collect());
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(*id));
    let declared = client.said(asked).capabilities;
    if filter.get("taskIds").is_some() && !declared.is_some_and(|declared| wire::declared(declared.get())) {
        let data = json!({ "requiredCapabilities": { "extensions": { wire::EXTENSION: {} } } }).to_string();
        let words = "to hear of tasks, the client must declare that it understands them";
        return Answer::error(asked, era::MISSING_CLIENT_CAPABILITY, words, Some(&data));
    }
    if uris.len().max(ids.len()) > SUBSCRIPTIONS_MAX {
        return Answer::error(asked, message::INVALID_PARAMS, "these are too many subscriptions", None);
    }
    // What an upstream that just starts can tell is not known before it has said so.
    listing::greeted(&client.gateway).await;
    let may = |kind: Kind| client.gateway.upstreams().values().any(|upstream| upstream.news.may_have(kind));
    let wants = Wants {
        tools: filter["toolsListChanged"] == true,
        prompts: filter["promptsListChanged"] == true && may(Kind::Prompts),
        resources: filter["resourcesListChanged"] == true
            && (may(Kind::Resources) || !client.gateway.catalogue.now().machines().is_empty()),
        ..Wants::default()
    };
    // Before anything is said, so that nothing that happens meanwhile is lost.
    let mailbox = client.gateway.hub.open(wants.clone(), Some(asked.id.clone()));
    let mut reader = mailbox.first_reader();
    let mut heard: Vec<Subscribed> = Vec::new();
    for uri in &uris {
        if let Some(subscribed) = subscribed(client, uri).await {
            mailbox.change(|wants| wants.uris.insert((*uri).to_owned(), subscribed.upstream().clone()));
            heard.push(subscribed);
        }
    }
    let honoured: Vec<String> = mailbox.change(|wants| wants.uris.keys().cloned().collect());
    let told = tasks_heard(client, &mailbox, &ids).await;
    if !outbox.send(acknowledgement(&asked.id, &wants, &honoured, &told)).await {
        return ended(asked);
    }
    loop {
        let line = match reader.next().await {
            Ok(Some((_, line))) => line,
            Ok(None) => return ended(asked),
            Err(lost) => {
                tracing::warn!(lost = lost.0, "a client that listens does not read; its stream is closed");
                return ended(asked);
            }
        };
        tokio::select! {
            biased;
            sent = said(client, outbox, &line) => if !sent {
                return ended(asked);
            },
            lost = reader.overrun() => {
                tracing::warn!(lost = lost.0, "a client that listens does not read; its stream is closed");
                return ended(asked);
            }
        }
    }
}

/// Passes on what is heard; of a task that is over, with what came of it.
async fn said(client: &Client, outbox: &Outbox, line: &str) -> bool {
    let line = match line.contains(wire::STATUS_ALONE) {
        true => tasks::whole_line(client, line).await,
        false => line.to_owned(),
    };
    outbox.send(line).await
}

/// Wants to hear how those tasks are; gives those that will be told. Of one that is not this principal's, nothing is said.
async fn tasks_heard(client: &Client, mailbox: &Mailbox, ids: &[&str]) -> Vec<String> {
    let known: Vec<_> = ids.iter().filter_map(|given| Some((*given, tasks::known(client, given)?))).collect();
    for (given, (upstream, id)) in &known {
        client.gateway.hub.hears_of(mailbox, upstream, id, given);
    }
    // What an upstream is asked to tell counts once it has said so.
    let will = known.iter().map(|(given, (upstream, id))| async move {
        let told = match upstream.era() {
            Some(Era::Modern) => upstream.news.will_tell_of(id).await,
            _ => upstream.news.has_tasks(),
        };
        told.then(|| (*given).to_owned())
    });
    join_all(will).await.into_iter().flatten().collect()
}

fn filter(asked: &Asked) -> Option<Value> {
    let filter = asked.text().and_then(Object::parse)?.get("notifications")?;
    serde_json::from_str::<Value>(filter.get()).ok().filter(Value::is_object)
}

/// Wants to hear of a resource; nothing where it lives nowhere, or where it lives does not tell.
async fn subscribed(client: &Client, uri: &str) -> Option<Subscribed> {
    if walk::is_own(client, uri) {
        return walk::hears(client, uri).await;
    }
    let params = serde_json::value::to_raw_value(&json!({ "uri": uri })).ok()?;
    let Route::To { upstreams, .. } = settled_route(&client.gateway, "resources/subscribe", Some(&params)).await else {
        return None;
    };
    for upstream in upstreams {
        let tells = upstream.news.capability("resources").is_some_and(|it| it["subscribe"] == true);
        if tells && let Ok(subscribed) = subscribe(&client.gateway.hub, &upstream, uri).await {
            return Some(subscribed);
        }
    }
    None
}

/// What of the client's wishes is fulfilled; it comes before everything else.
fn acknowledgement(id: &str, wants: &Wants, uris: &[String], tasks: &[String]) -> String {
    let mut honoured = json!({});
    for (name, wanted) in [
        ("toolsListChanged", wants.tools),
        ("promptsListChanged", wants.prompts),
        ("resourcesListChanged", wants.resources),
    ] {
        if wanted {
            honoured[name] = json!(true);
        }
    }
    if !uris.is_empty() {
        honoured["resourceSubscriptions"] = json!(uris);
    }
    if !tasks.is_empty() {
        honoured["taskIds"] = json!(tasks);
    }
    let params = format!(r#"{{"notifications":{honoured},"_meta":{{"{}":{id}}}}}"#, era::SUBSCRIPTION_ID);
    message::notification("notifications/subscriptions/acknowledged", Some(&params))
}

/// The end of the stream, said in the protocol's words.
fn ended(asked: &Asked) -> Answer {
    let result = format!(r#"{{"resultType":"complete","_meta":{{"{}":{}}}}}"#, era::SUBSCRIPTION_ID, asked.id);
    Answer::result(asked, &result)
}
