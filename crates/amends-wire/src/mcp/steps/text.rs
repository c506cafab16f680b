//! What a model reads of a move.

use amends_core::failure::bounded;
use amends_core::{Envelope, Outcome, Status};

use super::answer::{looked, skipped, written};
use super::guide::guided;
use super::names::Names;
use super::view::Moved;
use crate::mcp::text as envelope;

/// How many bytes of what a move gave, of the fields and of the schemas are spelled out; more is in the structured answer.
const SPELLED_BYTES_MAX: usize = 4096;

/// What a model reads of a move: what became of it, where the walk is, and what can be done next with which inputs.
pub fn text(answer: &Envelope, moved: &Moved, names: &Names, hint: &str) -> String {
    if looked(answer) {
        return envelope::text(answer, None);
    }
    let view = &moved.view;
    let failed = matches!(answer.status(), Status::Error | Status::Refused);
    let mut lines = if failed {
        let told = guided(answer, moved, names);
        vec![envelope::text(&Envelope { valid_next_actions: None, ..told }, None)]
    } else {
        let how = match answer.outcome() {
            None | Some(Outcome::Succeeded) => "",
            Some(_) => "; it took more than the first attempt to know it",
        };
        let action = bounded(&moved.action);
        match skipped(answer).and_then(|skipped| skipped["message"].as_str()) {
            Some(why) => vec![format!("`{action}` leads on: {why}.")],
            None => vec![format!("`{action}` was done{how}.")],
        }
    };
    lines.push(hint.to_owned());
    if let (false, Some(result)) = (failed, &moved.result) {
        lines.push(spelled("It gave", result.get()));
    }
    if !failed && !view.fields.is_empty() {
        lines.push(spelled("The fields are", &written(&view.fields)));
    }
    let schemas = view.schemas(names);
    if !schemas.say_nothing() {
        lines.push(spelled("The inputs of each", &written(&schemas)));
    }
    if !view.session.as_str().is_empty() {
        lines.push(format!("The walk is `{}`, after {}.", view.session, moves(view.seq)));
    }
    if answer.replayed && !failed {
        lines.push("This is the recorded answer of an equal move; nothing was done again for this one.".to_owned());
    }
    lines.join("\n")
}

/// So many moves, in words.
pub fn moves(made: u64) -> String {
    if made == 1 { "1 move".to_owned() } else { format!("{made} moves") }
}

fn spelled(what: &str, json: &str) -> String {
    if json.len() > SPELLED_BYTES_MAX {
        return format!("{what}: {} bytes, in the structured answer.", json.len());
    }
    format!("{what}: {json}")
}
