//! *Queue*: what people are asked, with what is needed to decide, and the buttons to answer with.

use amends_core::interaction::{Grounds, InteractionKind, Subject, choice};
use amends_ledger::QueueState;
use hyper::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::super::api::fields::{Fields, encoded};
use super::super::api::interactions::{self, Asked as Question};
use super::super::api::problem::Problem;
use super::super::body::Body;
use super::Asked;
use super::frame::{How, Place, call, mark, session, time};
use crate::compared::Difference;
use crate::identity::Role;
use crate::{clock, form, told};

pub(super) async fn page(asked: &Asked<'_>, mut query: Fields) -> Result<Response<Body>, Problem> {
    let entries = interactions::list(&asked.door.gateway, &asked.signed_in.person, &mut query).await?;
    query.finish()?;
    let mut questions = Vec::new();
    for entry in entries {
        questions.push(interactions::asked(&asked.door.gateway, entry).await?);
    }
    Ok(asked.frame(Place::Queue, "Queue").with(listed(asked, &questions)))
}

/// One question alone.
pub(super) async fn one(asked: &Asked<'_>, id: &str) -> Result<Response<Body>, Problem> {
    let gateway = &asked.door.gateway;
    let entry = interactions::find(gateway, &asked.signed_in.person, id).await?;
    let question = interactions::asked(gateway, entry).await?;
    Ok(asked.frame(Place::Queue, "A question").with(listed(asked, &[question])))
}

/// Takes an answer, and shows what is left.
pub(super) async fn answer(asked: &Asked<'_>, id: &str, form: &mut Fields) -> Result<Response<Body>, Problem> {
    let gateway = &asked.door.gateway;
    let fate = interactions::answer(gateway, &asked.signed_in.person, id, form).await?;
    let entries = interactions::list(gateway, &asked.signed_in.person, &mut Fields::default()).await?;
    let mut questions = Vec::new();
    for entry in entries {
        questions.push(interactions::asked(gateway, entry).await?);
    }
    let mut frame = asked.frame(Place::Queue, "Queue");
    frame.status = fate.status;
    frame.notice = Some(format!("{id}: {}", fate.message));
    Ok(frame.with(listed(asked, &questions)))
}

fn listed(asked: &Asked<'_>, questions: &[Question]) -> Markup {
    html! {
        p { a href="/queue?all=true" { "Also those that are over" } }
        div #questions data-live {
            @if questions.is_empty() { p { "Nobody is asked anything." } }
            @for question in questions { (shown(asked, question)) }
        }
    }
}

fn shown(asked: &Asked<'_>, question: &Question) -> Markup {
    let of = &question.entry.interaction;
    let open = question.entry.state == QueueState::Open;
    let may = asked.signed_in.person.role >= Role::Approver;
    html! {
        article.question id=(of.id) data-row tabindex="-1" aria-labelledby=(format!("{}-q", of.id)) {
            h2 id=(format!("{}-q", of.id)) { (of.question) }
            p { (state(question)) " · on " code { (of.queue) } " · " (of.kind.as_str()) " · asked " (time(of.opened.ms())) }
            dl.facts {
                dt { "Tool" } dd { code { (of.tool) } }
                dt { "Asked for by" } dd { (of.principal) }
                dt { @if of.subject == Subject::Move { "Move" } @else { "Call" } }
                dd {
                    @if of.subject == Subject::Move { code { (of.call) } } @else { (call(of.call.as_str())) }
                    " in " (session(of.session.as_str()))
                }
                dt { "Risk" } dd { (risk(question)) }
                @if let Some(grounds) = of.grounds.as_ref().filter(|grounds| grounds.form.is_none()) {
                    dt { "Persons" } dd { (persons(grounds)) }
                }
                @if let Some(by) = of.arrives_by { dt { "May still arrive until" } dd { (time(by.ms())) } }
            }
            @if let Some(view) = &of.view {
                h3 { "Arguments, as they are recorded" }
                pre.view { (pretty(view)) }
            }
            @let read = of.grounds.as_ref().map(|grounds| grounds.evidence.as_slice()).unwrap_or_default();
            @if !read.is_empty() {
                h3 { "What it is based on, as it was read" }
                @for read in read {
                    p { code { (read.tool) } " " span.small { (read.hash) } }
                    @if let Some(view) = &read.view { pre.view { (pretty(view)) } }
                }
            }
            @if !question.changed.is_empty() {
                h3 { "What it is based on has changed" }
                @for difference in &question.changed { (sides(difference)) }
            }
            @if let Some(answer) = &question.entry.answer {
                p { "Answered " strong { (answer.choice) } " by " (answer.by) " at " (time(answer.at.ms()))
                    @if let Some(note) = &answer.note { ": " q { (note) } } }
            }
            @if open && may { (answering(asked, question)) }
            @if open && !may { p { "Answering is for the role " code { "approver" } "." } }
        }
    }
}

fn answering(asked: &Asked<'_>, question: &Question) -> Markup {
    let of = &question.entry.interaction;
    let proof = asked.signed_in.page.as_deref().unwrap_or_default();
    let note = format!("{}-note", of.id);
    let free = of.kind == InteractionKind::Ask && of.options.is_empty();
    html! {
        form.answer method="post" action=(format!("/queue/{}", encoded(of.id.as_str()))) {
            input type="hidden" name="page" value=(proof);
            @if let Some(asked) = of.form().filter(|form| form.choices.is_empty()) {
                @for (name, said, required) in form::fields(asked) { (field(of.id.as_str(), &name, &said, required)) }
            }
            @if free {
                p { label for=(format!("{}-choice", of.id)) { "Answer" } " "
                    input id=(format!("{}-choice", of.id)) name="choice" required maxlength="2000"; }
            }
            @if of.subject == Subject::Doubt {
                @let gave = format!("{}-gave", of.id);
                p {
                    label for=(gave) { "What it gave, as JSON, if it happened and you know" } " "
                    textarea id=(gave) name="content" rows="2" maxlength="16384" {}
                }
                @if let Some(schema) = &of.gives { details { summary { "What it gives" } pre.view { (pretty(schema)) } } }
            }
            p { label for=(note) { "Note" } " " input id=(note) name="note" maxlength="2000"; }
            p.buttons {
                @if free { button data-key="a" { "Answer" } }
                @for option in &of.options {
                    button name="choice" value=(option) data-key=[key(option)] title=[means(option)]
                        formnovalidate[option == choice::DENY] { (words(option)) }
                }
                span.small { "Nobody answers: " code { (of.default) } }
            }
        }
    }
}

/// A field of a form, by what its schema says of it.
fn field(question: &str, name: &str, said: &Value, required: bool) -> Markup {
    let id = format!("{question}-field-{name}");
    let called = format!("{}{name}", interactions::FIELD);
    let title = said["title"].as_str().unwrap_or(name);
    let listed = said["enum"].as_array();
    html! {
        p {
            label for=(id) { (title) @if required { " (needed)" } } " "
            @match (listed, said["type"].as_str()) {
                (Some(options), _) => {
                    select id=(id) name=(called) required[required] {
                        @if !required { option value="" {} }
                        @for option in options {
                            @let text = plain(option);
                            option value=(text) { (text) }
                        }
                    }
                }
                (None, Some("boolean")) => { input id=(id) name=(called) type="checkbox" value="true"; }
                (None, Some("integer")) => { input id=(id) name=(called) type="number" step="1" required[required]; }
                (None, Some("number")) => { input id=(id) name=(called) type="number" step="any" required[required]; }
                (None, Some("string")) => { input id=(id) name=(called) maxlength="2000" required[required]; }
                _ => { textarea id=(id) name=(called) rows="4" required[required] {} }
            }
            @if let Some(more) = said["description"].as_str() { " " span.small { (more) } }
        }
    }
}

/// A value as a text: texts are themselves, others JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// How far a yes goes.
fn means(option: &str) -> Option<&'static str> {
    match option {
        choice::APPROVE => Some("this call, once"),
        choice::APPROVE_SESSION => Some("this call, and every further call of this tool in the same session"),
        choice::APPROVE_ARGUMENTS => {
            Some("this call, and every further one with these arguments, until it is taken back")
        }
        _ => None,
    }
}

/// The key that leads to a button.
fn key(option: &str) -> Option<&'static str> {
    match option {
        choice::APPROVE | choice::ANSWER | choice::HAPPENED | choice::SEEN => Some("a"),
        choice::DENY | choice::DID_NOT_HAPPEN => Some("d"),
        _ => None,
    }
}

fn words(option: &str) -> String {
    match option {
        choice::APPROVE => "Approve".to_owned(),
        choice::APPROVE_SESSION => "Approve for this session".to_owned(),
        choice::APPROVE_ARGUMENTS => "Approve these arguments always".to_owned(),
        choice::ANSWER => "Answer".to_owned(),
        choice::DENY => "Deny".to_owned(),
        choice::HAPPENED => "It happened".to_owned(),
        choice::DID_NOT_HAPPEN => "It did not happen".to_owned(),
        choice::UNKNOWN => "Nobody knows".to_owned(),
        choice::SEEN => "Seen".to_owned(),
        other => other.to_owned(),
    }
}

fn state(question: &Question) -> Markup {
    let of = &question.entry.interaction;
    match question.entry.state {
        QueueState::Open if of.due <= clock::now() => mark(How::Bad, &format!("overdue since {}", told::utc(of.due))),
        QueueState::Open => mark(How::Waits, &format!("open, due {}", told::utc(of.due))),
        state @ (QueueState::Answered | QueueState::Closed(_)) => mark(How::Plain, told::standing(state)),
    }
}

fn risk(question: &Question) -> Markup {
    let how = match (question.effect, question.reversible) {
        ("read", _) => How::Good,
        (_, true) | ("unknown", _) => How::Doubt,
        _ => How::Bad,
    };
    let undone = if question.reversible { "can be undone" } else { "cannot be undone" };
    match question.effect {
        "unknown" => mark(How::Plain, "what it does is not declared here"),
        "read" => mark(how, "read: changes nothing"),
        effect => mark(how, &format!("{effect}: {undone}")),
    }
}

/// Both sides of a difference beside each other. What only one side has is marked, by a sign too.
fn sides(difference: &Difference) -> Markup {
    let (was, is) = difference.lines();
    html! {
        p { code { (difference.tool) } }
        div.sides {
            div { h4 { "As it was" } pre.view.diff { @for (only, line) in &was { (side('-', *only, line)) } } }
            div { h4 { "As it is" } pre.view.diff { @for (only, line) in &is { (side('+', *only, line)) } } }
        }
    }
}

fn side(sign: char, only: bool, line: &str) -> Markup {
    html! {
        @match (only, sign) {
            (true, '-') => { del { "- " (line) } }
            (true, _) => { ins { "+ " (line) } }
            (false, _) => { "  " (line) }
        }
        "\n"
    }
}

/// How many must say yes, and how many still.
fn persons(grounds: &Grounds) -> String {
    let left = grounds.persons.saturating_sub(grounds.said_yes);
    match (grounds.persons, left) {
        (1, _) => "one must say yes".to_owned(),
        (all, 1) => format!("{all} must say yes; one more is needed"),
        (all, left) => format!("{all} must say yes; {left} are still needed"),
    }
}

/// A recorded view, with a line for each member where it is JSON.
pub(super) fn pretty(view: &str) -> String {
    let read = serde_json::from_str::<serde_json::Value>(view).ok();
    read.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| view.to_owned())
}
