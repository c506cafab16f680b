//! The HTTP and JSON binding: the same methods, by their paths. What 0.3 wrote there is turned into 1.0, and the answers back.

use std::sync::Arc;

use amends_core::Principal;
use amends_wire::a2a::card::OLD_REST;
use amends_wire::a2a::{Refused, Trouble, Version, old};
use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::{Method as Verb, Request, Response, StatusCode};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::api::fields::decoded;
use super::super::body::Body;
use super::super::connection::Connection;
use super::super::{Door, respond};
use super::methods::{Answer, Method};
use super::rpc::stream;
use super::{Asker, REST, is_json, named_version, spoken, text_of};

/// The type of what is answered.
const MEDIA: &str = "application/a2a+json";

/// Takes one request.
pub(super) async fn handle(
    door: &Arc<Door>,
    _connection: &Arc<Connection>,
    who: &Principal,
    request: Request<Incoming>,
) -> Response<Body> {
    // Also what is refused is read, so that the connection can be used again.
    let (parts, body) = request.into_parts();
    let request = Request::from_parts(parts, ());
    let text = match *request.method() == Verb::POST {
        true => text_of(body, door.gateway.config().limits).await.map_err(|(refused, _)| refused),
        false => Ok(String::new()),
    };
    let version = version(door, &request);
    let is_old = matches!(version, Ok(Version::V03));
    let answered = match version {
        Ok(_) => answer(door, who, &request, text, is_old).await,
        Err(refused) => Err(refused),
    };
    match answered {
        Ok(Answer::Value(value)) if is_old => respond(StatusCode::OK, "application/json", old::told(&value)),
        Ok(Answer::Value(value)) => respond(StatusCode::OK, MEDIA, value),
        Ok(Answer::Stream(events)) if is_old => stream(events, old::told),
        Ok(Answer::Stream(events)) => stream(events, str::to_owned),
        Err(refused) => {
            let status = StatusCode::from_u16(refused.trouble.status()).unwrap_or(StatusCode::BAD_REQUEST);
            let said = if is_old { old::refused(&refused) } else { refused.http() };
            respond(status, "application/json", said)
        }
    }
}

/// The version of a request: that of its path, or the one it names. The paths of both are the same but for what they begin with.
fn version(door: &Door, request: &Request<()>) -> Result<Version, Refused> {
    let named = named_version(door, request)?;
    if !is_of_old(request.uri().path()) {
        return Ok(named.unwrap_or(Version::V1));
    }
    match named {
        Some(Version::V1) => Err(Refused::of(Trouble::Version, "1.0 is spoken at `/a2a/v1`").with("supported", "0.3")),
        _ => spoken(door, Version::V03, "0.3"),
    }
}

/// Whether that is a path at which only 0.3 is spoken.
fn is_of_old(path: &str) -> bool {
    path.strip_prefix(OLD_REST).is_some_and(|rest| rest.starts_with('/'))
}

async fn answer(
    door: &Arc<Door>,
    who: &Principal,
    request: &Request<()>,
    text: Result<String, Refused>,
    is_old: bool,
) -> Result<Answer, Refused> {
    let path = request.uri().path();
    let path = match path.strip_prefix(OLD_REST) {
        Some(rest) => rest.strip_prefix("/v1").unwrap_or_default(),
        None => path.strip_prefix(REST).unwrap_or_default(),
    };
    let (method, mut named) = route(request.method(), path, is_old)?;
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
    let mut params = asked(request.uri().query().unwrap_or_default())?;
    let is_empty = text.as_ref().is_ok_and(String::is_empty);
    let needs_none = matches!(method, Method::Subscribe) || (matches!(method, Method::Cancel) && is_empty);
    if request.method() == Verb::POST && !needs_none {
        is_json(request)?;
    }
    let mut text = if matches!(method, Method::Subscribe) { String::new() } else { text? };
    let asker = Asker { door, who, version: Version::V1, ends_asking: is_old };
    if matches!(method, Method::Send | Method::Stream) {
        if is_old {
            text = old::sent(&text)?;
        }
        let params: &RawValue = serde_json::from_str(&text).map_err(|error| unread(&error))?;
        return asker.ask(method, params, &host).await;
    }
    if is_old && method == Method::PushCreate {
        text = old::registered(&text)?;
    }
    if !text.trim().is_empty() {
        let body: Map<String, Value> = serde_json::from_str(&text).map_err(|error| unread(&error))?;
        params.extend(body);
    }
    // What the path names counts.
    params.append(&mut named);
    let params = RawValue::from_string(Value::Object(params).to_string()).map_err(|error| unread(&error))?;
    asker.ask(method, &params, &host).await
}

fn unread(error: &serde_json::Error) -> Refused {
    Refused::of(Trouble::InvalidRequest, format!("the body cannot be read: {error}"))
}

/// The method that a path stands for, and what is named in it.
fn route(verb: &Verb, path: &str, is_old: bool) -> Result<(Method, Map<String, Value>), Refused> {
    let none = || Refused::of(Trouble::MethodNotFound, "there is nothing at this path");
    let named = |method: Method, names: &[(&str, &str)]| {
        let member = |(name, value): &(&str, &str)| Some(((*name).to_owned(), Value::String(decoded(value, false)?)));
        let members: Option<Map<_, _>> = names.iter().map(member).collect();
        Ok((method, members.ok_or_else(misspelled)?))
    };
    let parts: Vec<&str> = path.trim_start_matches('/').trim_end_matches('/').split('/').collect();
    let is = |wanted: &Verb| verb == wanted;
    match parts.as_slice() {
        ["message:send"] if is(&Verb::POST) => Ok((Method::Send, Map::new())),
        ["message:stream"] if is(&Verb::POST) => Ok((Method::Stream, Map::new())),
        ["card"] if is_old && is(&Verb::GET) => Ok((Method::Card, Map::new())),
        ["extendedAgentCard"] if is(&Verb::GET) => Ok((Method::Card, Map::new())),
        ["tasks"] if is(&Verb::GET) => Ok((Method::List, Map::new())),
        ["tasks", id] => match (id.rsplit_once(':'), verb) {
            (Some((id, "cancel")), &Verb::POST) => named(Method::Cancel, &[("id", id)]),
            (Some((id, "subscribe")), &Verb::POST | &Verb::GET) => named(Method::Subscribe, &[("id", id)]),
            (_, &Verb::GET) => named(Method::Get, &[("id", id)]),
            _ => Err(none()),
        },
        ["tasks", task, "pushNotificationConfigs"] if is(&Verb::POST) => named(Method::PushCreate, &[("taskId", task)]),
        ["tasks", task, "pushNotificationConfigs"] if is(&Verb::GET) => named(Method::PushList, &[("taskId", task)]),
        ["tasks", task, "pushNotificationConfigs", id] if is(&Verb::GET) => {
            named(Method::PushGet, &[("taskId", task), ("id", id)])
        }
        ["tasks", task, "pushNotificationConfigs", id] if is(&Verb::DELETE) => {
            named(Method::PushDelete, &[("taskId", task), ("id", id)])
        }
        _ => Err(none()),
    }
}

/// What an address asks for, as the members of parameters: whole numbers and yes or no are that.
fn asked(query: &str) -> Result<Map<String, Value>, Refused> {
    let numbers = ["pageSize", "historyLength"];
    let mut params = Map::new();
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let (Some(name), Some(value)) = (decoded(name, true), decoded(value, true)) else { return Err(misspelled()) };
        let value = match value.as_str() {
            text if numbers.contains(&name.as_str()) => {
                let number: Result<i64, _> = text.parse();
                number.map(Value::from).map_err(|_| {
                    Refused::of(Trouble::InvalidParams, format!("`{name}` is a whole number, 0 or more"))
                })?
            }
            "true" | "false" if name == "includeArtifacts" => Value::Bool(value == "true"),
            _ => Value::String(value),
        };
        params.insert(name, value);
    }
    Ok(params)
}

fn misspelled() -> Refused {
    Refused::of(Trouble::InvalidParams, "the address cannot be read: its escapes are not those of a text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stands_for_a_method_and_names_its_task() {
        let id = |(_, named): (Method, Map<String, Value>)| named.get("id").and_then(Value::as_str).map(str::to_owned);
        assert_eq!(route(&Verb::GET, "/tasks/ses_a", false).unwrap().0, Method::Get);
        assert_eq!(
            id(route(&Verb::POST, "/tasks/ses_a.call_b:cancel", false).unwrap()).as_deref(),
            Some("ses_a.call_b")
        );
        assert_eq!(id(route(&Verb::GET, "/tasks/ses_a%2Bb+c", false).unwrap()).as_deref(), Some("ses_a+b+c"));
        assert!(route(&Verb::GET, "/tasks/ses_a%zz", false).is_err());
        assert!(asked("pageToken=%zz").is_err());
        for verb in [Verb::GET, Verb::POST] {
            assert_eq!(route(&verb, "/tasks/ses_a:subscribe", false).unwrap().0, Method::Subscribe);
        }
        for odd in ["", "/", "/tasks/a/b", "/message:sing", "/tasks/a/pushNotificationConfigs/b/c"] {
            assert_eq!(route(&Verb::POST, odd, false).unwrap_err().trouble, Trouble::MethodNotFound, "{odd}");
        }
    }

    #[test]
    fn numbers_in_an_address_are_numbers() {
        let params = asked("pageSize=7&contextId=a%20b&includeArtifacts=true&status=TASK_STATE_WORKING").unwrap();
        assert_eq!((params["pageSize"].as_u64(), params["contextId"].as_str()), (Some(7), Some("a b")));
        assert_eq!(params["includeArtifacts"], true);
        assert!(asked("pageSize=many").is_err());
    }
}
