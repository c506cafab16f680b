//! HTTP and JSON as 0.3 spoke it. Its JSON-RPC has parts with a `kind`; over plain HTTP it wrote its messages in the JSON of their
//! protocol buffers, which look like those of 1.0 but for a few names. So they are turned into those of 1.0 and back.

use serde_json::{Map, Value, json};

use super::error::{Refused, Trouble};

/// The parameters of 1.0 that a body of 0.3 stands for: those of a message that is sent. Names may be written with underscores, as some
/// clients do, and a message may also be written as in the JSON-RPC of 0.3.
pub fn sent(body: &str) -> Result<String, Refused> {
    let body: Map<String, Value> = read(body)?;
    let message = member(&body, &["message", "request"]).and_then(Value::as_object);
    let message = message.ok_or_else(|| wrong("there is no `message`"))?;
    let mut new = Map::new();
    for (name, names) in [
        ("messageId", ["messageId", "message_id"]),
        ("contextId", ["contextId", "context_id"]),
        ("taskId", ["taskId", "task_id"]),
        ("metadata", ["metadata", "metadata"]),
    ] {
        if let Some(value) = member(message, &names) {
            new.insert(name.into(), value.clone());
        }
    }
    if let Some(role) = member(message, &["role"]) {
        let role = match role.as_str() {
            Some("user") => json!("ROLE_USER"),
            Some("agent") => json!("ROLE_AGENT"),
            _ => role.clone(),
        };
        new.insert("role".into(), role);
    }
    if let Some(parts) = member(message, &["content", "parts"]) {
        let parts = parts.as_array().ok_or_else(|| wrong("`message.content` is not a list of parts"))?;
        new.insert("parts".into(), parts.iter().map(newer_part).collect());
    }
    let mut params = json!({ "message": new });
    if let Some(configuration) = member(&body, &["configuration"]).and_then(Value::as_object) {
        // What is not said is false in the JSON of protocol buffers.
        let waits = member(configuration, &["blocking"]).is_some_and(|blocking| *blocking == true);
        params["configuration"] = json!({ "returnImmediately": !waits });
        let push = ["pushNotification", "push_notification", "pushNotificationConfig"];
        if let Some(push) = member(configuration, &push) {
            params["configuration"]["taskPushNotificationConfig"] = newer_push(push);
        }
    }
    Ok(params.to_string())
}

/// The parameters of 1.0 that a body of 0.3 stands for: those of an address to call back at.
pub fn registered(body: &str) -> Result<String, Refused> {
    let body: Map<String, Value> = read(body)?;
    let config = member(&body, &["config"]).and_then(Value::as_object).unwrap_or(&body);
    let push = member(config, &["pushNotificationConfig", "push_notification_config"]);
    let push = push.ok_or_else(|| wrong("there is no `pushNotificationConfig`"))?;
    let mut push = newer_push(push);
    if let Some(id) = member(&body, &["configId", "config_id"])
        && push["id"].is_null()
    {
        push["id"] = id.clone();
    }
    Ok(push.to_string())
}

/// An answer of 1.0 in the words of 0.3: a task, a message, an event of a stream, or addresses to call back at.
pub fn told(answer: &str) -> String {
    let Ok(mut answer) = serde_json::from_str::<Value>(answer) else { return answer.to_owned() };
    if answer["configs"].is_array() {
        let configs = answer["configs"].as_array_mut().into_iter().flatten();
        configs.for_each(|config| *config = older_push(config));
    } else if answer["taskId"].is_string() && answer["url"].is_string() {
        answer = older_push(&answer);
    } else {
        older(&mut answer);
    }
    answer.to_string()
}

/// An error in the words of 0.3, which named it by its type: `TaskNotFoundError`. What 1.0 says of it is there as well.
pub fn refused(refused: &Refused) -> String {
    let mut body: Value = serde_json::from_str(&refused.http()).unwrap_or_default();
    let reason = body["error"]["details"][0]["reason"].as_str().unwrap_or_default();
    let reason = reason.strip_suffix("_ERROR").unwrap_or(reason).to_lowercase();
    let words = reason.split('_').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        format!("{}{rest}", first.to_uppercase())
    });
    body["type"] = format!("{}Error", words.collect::<String>()).into();
    body["message"] = refused.message.as_str().into();
    body.to_string()
}

/// Goes through an answer and writes what was written differently.
fn older(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(older),
        Value::Object(members) => {
            if let Some(Value::Object(update)) = members.get_mut("statusUpdate") {
                let state = update.get("status").and_then(|status| status["state"].as_str()).unwrap_or_default();
                let goes_on = matches!(state, "TASK_STATE_SUBMITTED" | "TASK_STATE_WORKING");
                update.insert("final".into(), (!goes_on).into());
            }
            if members.get("state") == Some(&json!("TASK_STATE_CANCELED")) {
                members.insert("state".into(), json!("TASK_STATE_CANCELLED"));
            }
            let is_message = members.contains_key("messageId");
            if let Some(Value::Array(parts)) = members.get_mut("parts") {
                parts.iter_mut().for_each(|part| *part = older_part(part));
            }
            if is_message && let Some(parts) = members.remove("parts") {
                members.insert("content".into(), parts);
            }
            // What is in parts and metadata is not ours to write differently.
            for (name, value) in members {
                if !matches!(name.as_str(), "parts" | "content" | "metadata") {
                    older(value);
                }
            }
        }
        _ => {}
    }
}

fn older_part(part: &Value) -> Value {
    if !part["data"].is_null() {
        let data = if part["data"].is_object() { part["data"].clone() } else { json!({ "value": part["data"] }) };
        return json!({ "data": { "data": data } });
    }
    let (member, value) = match (&part["raw"], &part["url"]) {
        (Value::String(bytes), _) => ("fileWithBytes", bytes),
        (_, Value::String(url)) => ("fileWithUri", url),
        _ => return json!({ "text": part["text"] }),
    };
    let mut file = json!({ member: value, "mimeType": part["mediaType"] });
    if part["filename"].is_string() {
        file["name"] = part["filename"].clone();
    }
    json!({ "file": file })
}

fn newer_part(part: &Value) -> Value {
    let Some(members) = part.as_object() else { return part.clone() };
    if let Some(data) = member(members, &["data"]) {
        // Written by its protocol buffer it is in another `data`.
        let inner = data.as_object().filter(|data| data.len() == 1).and_then(|data| data.get("data"));
        return json!({ "data": inner.filter(|_| members.get("kind").is_none()).unwrap_or(data) });
    }
    let Some(file) = member(members, &["file"]).and_then(Value::as_object) else {
        return json!({ "text": members.get("text") });
    };
    let mut new = Map::new();
    for (name, names) in [
        ("raw", ["fileWithBytes", "file_with_bytes", "bytes"]),
        ("url", ["fileWithUri", "file_with_uri", "uri"]),
        ("mediaType", ["mimeType", "mime_type", "mimeType"]),
        ("filename", ["name", "name", "name"]),
    ] {
        if let Some(value) = member(file, &names) {
            new.insert(name.into(), value.clone());
        }
    }
    Value::Object(new)
}

fn newer_push(push: &Value) -> Value {
    let mut new = json!({ "id": push["id"], "url": push["url"], "token": push["token"] });
    let shown = &push["authentication"];
    if shown.is_object() {
        new["authentication"] = json!({ "scheme": shown["schemes"][0], "credentials": shown["credentials"] });
    }
    new
}

fn older_push(push: &Value) -> Value {
    let mut config = json!({ "id": push["id"], "url": push["url"] });
    if push["token"].is_string() {
        config["token"] = push["token"].clone();
    }
    if push["authentication"]["scheme"].is_string() {
        config["authentication"] = json!({ "schemes": [push["authentication"]["scheme"]] });
    }
    let (task, id) = (push["taskId"].as_str().unwrap_or_default(), push["id"].as_str().unwrap_or_default());
    json!({ "name": format!("tasks/{task}/pushNotificationConfigs/{id}"), "pushNotificationConfig": config })
}

/// The first of these members that is there.
fn member<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| object.get(*name)).filter(|value| !value.is_null())
}

fn read(body: &str) -> Result<Map<String, Value>, Refused> {
    serde_json::from_str(body)
        .map_err(|error| Refused::of(Trouble::InvalidRequest, format!("the body cannot be read: {error}")))
}

fn wrong(message: &str) -> Refused {
    Refused::of(Trouble::InvalidParams, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(body: Value) -> Value {
        serde_json::from_str(&sent(&body.to_string()).unwrap()).unwrap()
    }

    #[test]
    fn a_message_is_read_in_each_way_it_was_written() {
        let wanted = json!({ "tool": "pay", "args": { "n": 1 } });
        for message in [
            json!({ "request": { "message_id": "m", "context_id": "c", "role": "ROLE_USER", "content": [{ "data": { "data": wanted } }] } }),
            json!({ "message": { "messageId": "m", "contextId": "c", "role": "user", "parts": [{ "kind": "data", "data": wanted }] } }),
        ] {
            let params = new(message);
            let message = &params["message"];
            assert_eq!((message["messageId"].as_str(), message["contextId"].as_str()), (Some("m"), Some("c")));
            assert_eq!((&message["role"], &message["parts"][0]["data"]), (&json!("ROLE_USER"), &wanted), "{params}");
            assert!(params["configuration"].is_null(), "{params}");
        }
        let file = json!({ "file": { "file_with_uri": "https://h/a", "mime_type": "image/png", "name": "a" } });
        let params = new(json!({
            "message": { "message_id": "m", "content": [{ "text": "x" }, file] },
            "configuration": { "blocking": true, "push_notification": { "url": "http://h", "authentication": { "schemes": ["Bearer"], "credentials": "c" } } },
        }));
        assert_eq!(params["message"]["parts"][1]["url"], "https://h/a");
        assert_eq!(params["configuration"]["returnImmediately"], false);
        let push = &params["configuration"]["taskPushNotificationConfig"];
        assert_eq!(
            (push["url"].as_str(), push["authentication"]["scheme"].as_str()),
            (Some("http://h"), Some("Bearer"))
        );
        for odd in ["", "[]", "{}", r#"{"message":7}"#, r#"{"message":{"content":7}}"#] {
            assert!(sent(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn an_answer_is_written_as_it_was_then() {
        let old = |value: Value| -> Value { serde_json::from_str(&told(&value.to_string())).unwrap() };
        let part =
            json!({ "data": { "parts": [{ "state": "TASK_STATE_CANCELED" }] }, "mediaType": "application/json" });
        let task = old(json!({ "task": {
            "id": "t",
            "status": { "state": "TASK_STATE_CANCELED", "message": { "messageId": "m", "parts": [{ "text": "no" }] } },
            "artifacts": [{ "artifactId": "a", "parts": [part, { "raw": "AA==", "mediaType": "image/png", "filename": "f" }] }],
        } }));
        let task = &task["task"];
        assert_eq!(task["status"]["state"], "TASK_STATE_CANCELLED");
        assert_eq!(task["status"]["message"]["content"][0]["text"], "no");
        let parts = &task["artifacts"][0]["parts"];
        assert_eq!(parts[0]["data"]["data"]["parts"][0]["state"], "TASK_STATE_CANCELED", "data is as it was");
        assert_eq!((&parts[1]["file"]["fileWithBytes"], &parts[1]["file"]["name"]), (&json!("AA=="), &json!("f")));
        let update = |state: &str| old(json!({ "statusUpdate": { "taskId": "t", "status": { "state": state } } }));
        assert_eq!(update("TASK_STATE_WORKING")["statusUpdate"]["final"], false);
        assert_eq!(update("TASK_STATE_INPUT_REQUIRED")["statusUpdate"]["final"], true);
    }

    #[test]
    fn an_error_is_named_by_its_type() {
        for (trouble, name) in [
            (Trouble::TaskNotCancelable, "TaskNotCancelableError"),
            (Trouble::Internal, "InternalError"),
            (Trouble::PushNotSupported, "PushNotificationNotSupportedError"),
        ] {
            let said: Value = serde_json::from_str(&refused(&Refused::of(trouble, "no"))).unwrap();
            assert_eq!((said["type"].as_str(), said["message"].as_str()), (Some(name), Some("no")), "{said}");
            assert!(said["error"]["details"][0]["metadata"]["amendsCode"].is_string(), "{said}");
        }
    }

    #[test]
    fn an_address_to_call_back_at_has_its_old_shape() {
        let body = json!({ "parent": "tasks/t", "config_id": "p", "config": { "push_notification_config": { "url": "http://h" } } });
        let new: Value = serde_json::from_str(&registered(&body.to_string()).unwrap()).unwrap();
        assert_eq!((new["id"].as_str(), new["url"].as_str()), (Some("p"), Some("http://h")));
        let back: Value = serde_json::from_str(&told(r#"{"id":"p","url":"http://h","taskId":"t"}"#)).unwrap();
        assert_eq!(back["name"], "tasks/t/pushNotificationConfigs/p");
        assert_eq!(back["pushNotificationConfig"]["url"], "http://h");
    }
}
