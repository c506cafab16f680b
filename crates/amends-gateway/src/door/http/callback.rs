//! `POST /callback/interaction`: whoever was posted a question answers it, by the token that came with it.

use std::sync::Arc;

use amends_core::{InteractionId, PersonAnswer};
use amends_ledger::{AnswerFate, digest};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde::Deserialize;

use super::body::{Body, Read, read};
use super::{Door, json};
use crate::clock;
use crate::form;
use crate::webhook;

/// How long an answer may be.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// How deep it may nest.
const DEPTH_MAX: usize = 8;

/// An answer as it is posted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Posted {
    /// The question.
    interaction: String,
    /// The token that came with it.
    token: String,
    /// One of its options.
    choice: String,
    /// Who answers.
    by: String,
    /// What they add.
    note: Option<String>,
    /// What is asked for.
    content: Option<serde_json::Value>,
}

/// Takes an answer.
pub(super) async fn answer(door: &Arc<Door>, request: Request<Incoming>) -> Response<Body> {
    let posted = match read(request.into_body(), ANSWER_BYTES_MAX, DEPTH_MAX).await {
        Read::Gone => return told(StatusCode::BAD_REQUEST, "unreadable", "the body broke off"),
        Read::Bad { .. } => {
            return told(StatusCode::BAD_REQUEST, "unreadable", "the body is too large, too deep or not UTF-8");
        }
        Read::Text(text) => match serde_json::from_str::<Posted>(&text) {
            Ok(posted) => posted,
            Err(error) => return told(StatusCode::BAD_REQUEST, "unreadable", &error.to_string()),
        },
    };
    let gateway = &door.gateway;
    let id = InteractionId::new(posted.interaction.as_str());
    // Digests are compared, so that the time it takes says nothing of the token. A question that is not there has none.
    if digest(posted.token.as_bytes()) != digest(webhook::token(gateway, &id).as_bytes()) {
        return told(StatusCode::FORBIDDEN, "forbidden", "the token is not that question's");
    }
    if posted.by.trim().is_empty() {
        return told(StatusCode::BAD_REQUEST, "unreadable", "`by` says who answers");
    }
    let Posted { choice, by, note, content, .. } = posted;
    let mut answer = PersonAnswer { choice, by, note, at: clock::now(), content: None };
    match gateway.ledger.interaction(&id).await {
        Ok(Some(entry)) => {
            if let Err(why) = form::fill(&entry.interaction, &mut answer, content) {
                return told(StatusCode::BAD_REQUEST, "does_not_fit", &why);
            }
        }
        Ok(None) => return told(StatusCode::NOT_FOUND, "unknown", "there is no such question any more"),
        Err(error) => {
            tracing::warn!(%error, "a question could not be read");
            let words = "the ledger cannot be reached; post it again";
            return told(StatusCode::SERVICE_UNAVAILABLE, "unavailable", words);
        }
    }
    match gateway.ledger.answer_interaction(&id, answer).await {
        Ok(AnswerFate::Taken) => told(StatusCode::OK, "taken", "it counts"),
        Ok(AnswerFate::Late { choice, by, .. }) => {
            told(StatusCode::CONFLICT, "late", &format!("{by} answered `{choice}` before"))
        }
        Ok(AnswerFate::Closed(_)) => told(StatusCode::CONFLICT, "closed", "the question is over"),
        Ok(AnswerFate::Barred) => told(StatusCode::FORBIDDEN, "barred", "the yes of that name does not count here"),
        Ok(AnswerFate::NotAnOption { options }) => {
            told(StatusCode::BAD_REQUEST, "no_option", &format!("it takes `{}`", options.join("`, `")))
        }
        Ok(AnswerFate::Unknown) => told(StatusCode::NOT_FOUND, "unknown", "there is no such question any more"),
        Err(error) => {
            tracing::warn!(%error, "an answer could not be kept");
            told(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the ledger cannot be reached; post it again")
        }
    }
}

fn told(status: StatusCode, fate: &str, message: &str) -> Response<Body> {
    json(status, serde_json::json!({ "fate": fate, "message": message }).to_string())
}
