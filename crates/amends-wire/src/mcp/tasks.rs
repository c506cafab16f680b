//! Tasks: a call that is answered with a handle, by which its result is fetched later. The stateful era has them in its core, the
//! stateless one as an extension.

use serde_json::value::RawValue;

use super::era::CLIENT_CAPABILITIES;
use crate::object::{Object, quoted};
use crate::splice::Splice;

/// The name of the extension in the stateless era.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The field of `_meta` that names the task a message belongs to.
pub const RELATED: &str = "io.modelcontextprotocol/related-task";
const ID: &str = "taskId";

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

/// The parameters of a `tasks/…` with another id; all other bytes stay as they are.
pub fn with_id(params: &str, id: &str) -> String {
    let mut splice = Splice::new(params);
    match splice.set_member(params, ID, quoted(id)) {
        Ok(()) => splice.finish(),
        Err(_) => params.to_owned(),
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
}
