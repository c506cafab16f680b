//! Tasks: a call that is answered with a handle, by which its result is fetched later. The stateful era has them in its core, the
//! stateless one as an extension.

use serde_json::value::RawValue;

use super::era::{CLIENT_CAPABILITIES, Era};
use super::lists::with_meta;
use crate::object::{Object, is_object, quoted};
use crate::splice::Splice;

/// The name of the extension in the stateless era.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The field of `_meta` that names the task a message belongs to.
pub const RELATED: &str = "io.modelcontextprotocol/related-task";
/// The notification by which a server of the stateful era says how a task is.
pub const STATUS: &str = "notifications/tasks/status";
/// The same in the stateless era.
pub const STATUS_ALONE: &str = "notifications/tasks";
const ID: &str = "taskId";
/// What both eras say of a task, in the words of the stateful and of the stateless one.
const WORDS: [(&str, &str); 2] = [("ttl", "ttlMs"), ("pollInterval", "pollIntervalMs")];
/// What only a task of the stateless era says itself.
const ALONE: [&str; 3] = ["result", "error", "inputRequests"];

/// The notification that says how a task is, in that era.
pub const fn status(era: Era) -> &'static str {
    match era {
        Era::Legacy => STATUS,
        Era::Modern => STATUS_ALONE,
    }
}

/// Whether a notification says how a task is.
pub fn is_status(method: &str) -> bool {
    matches!(method, STATUS | STATUS_ALONE)
}

/// Whether a call may be answered with a task: it asks for one, or its sender says that it understands them.
pub fn wanted(params: &str) -> bool {
    // Hardly any call does, and none should cost more for it.
    if !params.contains("task") {
        return false;
    }
    let Some(object) = Object::parse(params) else { return false };
    let member = |raw: &RawValue, name: &str| Object::parse(raw.get()).is_some_and(|it| it.get(name).is_some());
    let inner = |raw, name: &str| Object::parse(RawValue::get(raw)).and_then(|it| it.get(name));
    let declared = object
        .get("_meta")
        .and_then(|meta| inner(meta, CLIENT_CAPABILITIES))
        .and_then(|capabilities| inner(capabilities, "extensions"));
    object.get("task").is_some_and(|task| Object::parse(task.get()).is_some())
        || declared.is_some_and(|extensions| member(extensions, EXTENSION))
}

/// Whether what a request says of its sender declares the extension.
pub fn declared(capabilities: &str) -> bool {
    let extensions = Object::parse(capabilities).and_then(|it| it.get("extensions"));
    extensions.and_then(|it| Object::parse(it.get())).is_some_and(|it| it.get(EXTENSION).is_some_and(is_object))
}

/// Whether the entry of a tool in a list says that it is called as a task and not otherwise.
pub fn is_required(entry: &str) -> bool {
    let execution = Object::parse(entry).and_then(|entry| Object::parse(entry.get("execution")?.get()));
    execution.is_some_and(|execution| execution.string("taskSupport").as_deref() == Some("required"))
}

/// The parameters of a call that asks for a task; all other bytes stay as they are.
pub fn asked_for(params: &str) -> String {
    let mut splice = Splice::new(params);
    match Object::parse(params).is_some_and(|object| object.get("task").is_none()) {
        true if splice.set_member(params, "task", "{}").is_ok() => splice.finish(),
        _ => params.to_owned(),
    }
}

/// The parameters of a call that does not ask for a task, and whose sender does not say that it understands them; all other bytes
/// stay as they are.
pub fn without(params: &str) -> String {
    let Some(object) = Object::parse(params) else { return params.to_owned() };
    let mut splice = Splice::new(params);
    if object.get("task").is_some() {
        let _ = splice.remove_member(params, "task");
    }
    let extensions = object
        .get("_meta")
        .and_then(|meta| inner(meta, CLIENT_CAPABILITIES))
        .and_then(|capabilities| inner(capabilities, "extensions"))
        .filter(|extensions| inner(extensions, EXTENSION).is_some());
    if let Some(extensions) = extensions {
        let _ = splice.remove_member(extensions.get(), EXTENSION);
    }
    splice.finish()
}

fn inner<'a>(raw: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    Object::parse(raw.get())?.get(name)
}

/// Whether a result is the handle of a task, in either era's shape.
pub fn is_handle(result: &str) -> bool {
    let Some(object) = Object::parse(result) else { return false };
    let task = object.get("task").and_then(|task| Object::parse(task.get()));
    let in_core = task.is_some_and(|task| task.string(ID).is_some());
    in_core || (object.string("resultType").as_deref() == Some("task") && object.string(ID).is_some())
}

/// The task that the parameters of a `tasks/…` name.
pub fn id(params: Option<&RawValue>) -> Option<String> {
    Object::parse(params?.get())?.string(ID).map(|id| id.into_owned())
}

/// How a task is.
pub fn status_of(task: &str) -> Option<String> {
    Object::parse(task)?.string("status").map(|status| status.into_owned())
}

/// Whether nothing more will be said of a task that is so.
pub fn is_over(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

/// Whether a task is told in the words of that era; one that says nothing of how long it is kept is told in either's.
pub fn is_told_in(task: &str, era: Era) -> bool {
    let Some(object) = Object::parse(task) else { return true };
    let other = WORDS.map(|(stateful, alone)| if era == Era::Legacy { alone } else { stateful });
    !other.iter().any(|word| object.get(word).is_some())
}

/// A task, or what is told of it, in the words of that era; what is in them already stays as it is. What came of a task is not
/// among the words of the stateful era, and in the stateless one it is for the caller to add.
pub fn told_in(task: &str, era: Era) -> String {
    let Some(object) = Object::parse(task).filter(|_| !is_told_in(task, era)) else { return task.to_owned() };
    let mut splice = Splice::new(task);
    for (stateful, alone) in WORDS {
        let (from, to) = if era == Era::Legacy { (alone, stateful) } else { (stateful, alone) };
        let said = object.get(from).map(|value| value.get().to_owned());
        if let Some(value) = said.or((from == WORDS[0].0 || from == WORDS[0].1).then(|| "null".to_owned())) {
            let _ = splice.remove_member(task, from);
            let _ = splice.set_member(task, to, value);
        }
    }
    if era == Era::Legacy {
        for name in ALONE.into_iter().chain(["resultType"]) {
            let _ = splice.remove_member(task, name);
        }
    }
    splice.finish()
}

/// The handle of a task in the shape of that era; nothing where it is in that shape already.
pub fn handle_in(result: &str, era: Era) -> Option<String> {
    let object = Object::parse(result)?;
    let nested = object.get("task").filter(|task| is_object(task));
    match (era, nested) {
        (Era::Modern, Some(task)) => {
            let told = told_in(task.get(), Era::Modern);
            let mut splice = Splice::new(&told);
            splice.set_member(&told, "resultType", "\"task\"").ok()?;
            if let Some(meta) = object.get("_meta") {
                splice.set_member(&told, "_meta", meta.get()).ok()?;
            }
            Some(splice.finish())
        }
        (Era::Legacy, None) => {
            let told = told_in(result, Era::Legacy);
            let mut splice = Splice::new(&told);
            splice.remove_member(&told, "_meta").ok()?;
            splice.remove_member(&told, "resultType").ok()?;
            let meta = object.get("_meta").map(|meta| format!(r#","_meta":{}"#, meta.get())).unwrap_or_default();
            Some(format!(r#"{{"task":{}{meta}}}"#, splice.finish()))
        }
        (Era::Modern, None) | (Era::Legacy, Some(_)) => None,
    }
}

/// What came of a task that is over: its result, or the error it ended with, as they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// A result, which may say that the tool failed.
    Result(String),
    /// An error of the protocol.
    Error(String),
}

/// A task of the stateless era that says itself what came of it. There, one whose tool failed is complete, too.
pub fn with_came(task: &str, came: &Came) -> String {
    let mut splice = Splice::new(task);
    let (status, name, value) = match came {
        Came::Result(result) => ("completed", "result", result),
        Came::Error(error) => ("failed", "error", error),
    };
    let set = splice.set_member(task, "status", quoted(status)).and_then(|()| splice.set_member(task, name, value));
    match set {
        Ok(()) => splice.finish(),
        Err(_) => task.to_owned(),
    }
}

/// What a task of the stateless era says that came of it.
pub fn came(task: &str) -> Option<Came> {
    let object = Object::parse(task)?;
    let result = object.get("result").map(|result| Came::Result(result.get().to_owned()));
    result.or_else(|| object.get("error").map(|error| Came::Error(error.get().to_owned())))
}

/// A result that names the task it belongs to, as the stateful era wants it.
pub fn related(result: &str, id: &str) -> String {
    with_meta(result, RELATED, &format!(r#"{{"{ID}":{}}}"#, quoted(id)))
}

/// The parameters of a `tasks/…` with another id; all other bytes stay as they are.
pub fn with_id(params: &str, id: &str) -> String {
    let mut splice = Splice::new(params);
    match splice.set_member(params, ID, quoted(id)) {
        Ok(()) => splice.finish(),
        Err(_) => params.to_owned(),
    }
}

/// The parameters of a message with another id of the task that it belongs to; all other bytes stay as they are.
pub fn renamed_relation(params: &str, id: &str) -> String {
    let meta = Object::parse(params).and_then(|params| params.get("_meta"));
    let related = meta.and_then(|meta| Object::parse(meta.get())?.get(RELATED)).filter(|related| is_object(related));
    let mut splice = Splice::new(params);
    match related.map(|related| splice.set_member(related.get(), ID, quoted(id))) {
        Some(Ok(())) => splice.finish(),
        Some(Err(_)) | None => params.to_owned(),
    }
}

/// A result with another id wherever it names a task of its own; all other bytes stay as they are.
pub fn renamed(result: &str, rename: impl Fn(&str) -> String) -> String {
    let mut splice = Splice::new(result);
    let Some(object) = Object::parse(result) else { return result.to_owned() };
    let related = object.get("_meta").and_then(|meta| Object::parse(meta.get())).and_then(|meta| meta.get(RELATED));
    let whole = Some(result);
    for part in [whole, object.get("task").map(RawValue::get), related.map(RawValue::get)].into_iter().flatten() {
        if let Some(id) = Object::parse(part).and_then(|part| part.string(ID).map(|id| id.into_owned())) {
            let _ = splice.set_member(part, ID, quoted(&rename(&id)));
        }
    }
    splice.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_wants_a_task_by_its_word_or_its_senders_capabilities() {
        assert!(wanted(r#"{"name":"a","task":{"ttl":1}}"#));
        assert!(wanted(
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}"#
        ));
        for other in [
            r#"{"name":"task"}"#,
            r#"{"task":null}"#,
            r#"{"arguments":{"task":{}}}"#,
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"tasks":{}}}}"#,
            "task",
        ] {
            assert!(!wanted(other), "{other}");
        }
    }

    #[test]
    fn a_call_can_be_made_without_its_wish_for_a_task() {
        assert_eq!(without(r#"{"name":"a","task":{"ttl":1},"x":1.0}"#), r#"{"name":"a","x":1.0}"#);
        let declared = r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{},"o":{}}}}}"#;
        assert!(wanted(declared) && !wanted(&without(declared)), "{}", without(declared));
        assert!(without(declared).contains(r#""o":{}"#));
        assert_eq!(without(r#"{"name":"task"}"#), r#"{"name":"task"}"#);
    }

    #[test]
    fn a_handle_is_known_in_both_shapes() {
        assert!(is_handle(r#"{"task":{"taskId":"t"}}"#));
        assert!(is_handle(r#"{"resultType":"task","taskId":"t"}"#));
        for other in [r#"{"taskId":"t"}"#, r#"{"resultType":"task"}"#, r#"{"content":[]}"#, r#"{"task":"t"}"#, "7"] {
            assert!(!is_handle(other), "{other}");
        }
    }

    #[test]
    fn ids_are_exchanged_wherever_they_stand_and_nothing_else_is() {
        let rename = |id: &str| format!("ours-{id}");
        let text = r#"{"n":1.0,"task":{"taskId":"a","x":2.0},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a"}}}"#;
        assert_eq!(renamed(text, rename), text.replace("\"a\"", "\"ours-a\""));
        let flat = r#"{"resultType":"task","taskId":"b","result":{"content":[{"taskId":"c"}]}}"#;
        assert_eq!(renamed(flat, rename), flat.replace("\"b\"", "\"ours-b\""));
        assert_eq!(renamed("[]", rename), "[]");
        let params = r#"{"taskId":"ours-a","x":1.0}"#;
        assert_eq!(with_id(params, "a"), r#"{"taskId":"a","x":1.0}"#);
        let raw = RawValue::from_string(params.to_owned()).unwrap();
        assert_eq!((id(Some(&raw)).as_deref(), id(None)), (Some("ours-a"), None));
    }

    #[test]
    fn a_task_is_told_in_the_words_of_either_era() {
        let stateful = r#"{"taskId":"a","status":"working","ttl":7,"x":1.0,"pollInterval":5}"#;
        let alone = r#"{"taskId":"a","status":"working","x":1.0,"ttlMs":7,"pollIntervalMs":5}"#;
        assert_eq!(
            (told_in(stateful, Era::Modern).as_str(), told_in(stateful, Era::Legacy).as_str()),
            (alone, stateful)
        );
        let detailed = r#"{"taskId":"a","status":"completed","x":1.0,"ttlMs":null,"result":{"content":[]}}"#;
        assert_eq!(told_in(detailed, Era::Legacy), r#"{"taskId":"a","status":"completed","x":1.0,"ttl":null}"#);
        assert_eq!(told_in(detailed, Era::Modern), detailed);
        assert_eq!(told_in("[]", Era::Modern), "[]");
        assert!(is_over("failed") && is_over("cancelled") && !is_over("input_required") && !is_over("x"));
        assert_eq!(status_of(detailed).as_deref(), Some("completed"));
        assert!(is_status(STATUS) && is_status(STATUS_ALONE) && !is_status("notifications/tasks/x"));
    }

    #[test]
    fn a_handle_takes_the_shape_of_either_era() {
        let nested = r#"{"task":{"taskId":"a","ttl":7,"x":1.0},"_meta":{"y":2.0}}"#;
        let flat = r#"{"taskId":"a","x":1.0,"ttlMs":7,"resultType":"task","_meta":{"y":2.0}}"#;
        assert_eq!((handle_in(nested, Era::Modern).as_deref(), handle_in(nested, Era::Legacy)), (Some(flat), None));
        let back = r#"{"task":{"taskId":"a","x":1.0,"ttl":7},"_meta":{"y":2.0}}"#;
        assert_eq!((handle_in(flat, Era::Legacy).as_deref(), handle_in(flat, Era::Modern)), (Some(back), None));
        assert!(is_handle(flat) && is_handle(nested) && is_handle(back));
    }

    #[test]
    fn what_came_of_a_task_is_told_with_it_or_apart() {
        let task = r#"{"taskId":"a","status":"failed","ttlMs":7}"#;
        let failed = Came::Error(r#"{"code":-1,"message":"no"}"#.into());
        let done = Came::Result(r#"{"content":[],"isError":true}"#.into());
        for came_of in [&failed, &done] {
            assert_eq!(came(&with_came(task, came_of)).as_ref(), Some(came_of));
        }
        assert_eq!(status_of(&with_came(task, &done)).as_deref(), Some("completed"), "its tool failed, and said so");
        assert_eq!((came(task), with_came("[]", &done)), (None, "[]".to_owned()));
        assert_eq!(related("{}", "a"), format!(r#"{{"_meta":{{"{RELATED}":{{"taskId":"a"}}}}}}"#));
    }

    #[test]
    fn a_tool_that_is_only_called_as_a_task_is_asked_for_one() {
        assert!(is_required(r#"{"name":"a","execution":{"taskSupport":"required"}}"#));
        for other in [r#"{"execution":{"taskSupport":"optional"}}"#, r#"{"execution":7}"#, "{}", "7"] {
            assert!(!is_required(other), "{other}");
        }
        assert_eq!(asked_for(r#"{"name":"a","n":1.0}"#), r#"{"name":"a","n":1.0,"task":{}}"#);
        assert_eq!(asked_for(r#"{"task":{"ttl":1}}"#), r#"{"task":{"ttl":1}}"#);
        assert!(declared(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#));
        for other in ["{}", r#"{"extensions":{}}"#, r#"{"extensions":{"io.modelcontextprotocol/tasks":null}}"#, "7"] {
            assert!(!declared(other), "{other}");
        }
    }
}
