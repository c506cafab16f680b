//! *Sessions*: found, and one told event by event, with its calls on a line of time and its walk where it walks.

use amends_core::dispatcher::redecide::paths;
use hyper::Response;
use maud::{Markup, PreEscaped, html};

use super::super::api::fields::{Fields, encoded};
use super::super::api::problem::Problem;
use super::super::api::sessions::{self, SessionLine, Wanted, told_event};
use super::super::api::spans::line_of;
use super::super::api::{calls as found_calls, machines};
use super::super::body::Body;
use super::Asked;
use super::calls::{drawn, events, receipt, table as calls_table};
use super::frame::{How, Place, mark, session, time};
use super::machines::picture;
use crate::clock;
use crate::hindsight::events_of;
use crate::walks::steps::history;

/// How many of a session's calls have a line of time on its page, and how many events it shows.
const LINES_MAX: usize = 20;
const EVENTS_MAX: usize = 500;

pub(super) async fn page(asked: &Asked<'_>, mut query: Fields) -> Result<Response<Body>, Problem> {
    let wanted = Wanted::read(&mut query)?;
    query.finish()?;
    let found = sessions::list(&asked.door.gateway, &asked.signed_in.person, &wanted).await?;
    let next = found.next.as_deref().map(|next| format!("/sessions?{}", again(&wanted, next)));
    Ok(asked.frame(Place::Sessions, "Sessions").with(html! {
        form.filter method="get" action="/sessions" role="search" {
            label { "Search " input name="search" type="search" value=[wanted.search.as_deref()]; }
            label { "Door " input name="door" value=[wanted.door.as_deref()]; }
            label { "By " input name="principal" value=[wanted.principal.as_deref()]; }
            label { "Machine " input name="machine" value=[wanted.machine.as_deref()]; }
            label { input type="checkbox" name="open" value="true" checked[wanted.open]; " with open calls" }
            button { "Find" }
        }
        div #sessions data-live { (table(&found.items)) }
        p.small { "Looked at the " (found.looked_at) " newest sessions." }
        @if let Some(next) = next { p { a rel="next" href=(next) { "Older" } } }
    }))
}

fn again(wanted: &Wanted, after: &str) -> String {
    let named = [
        ("search", wanted.search.as_deref()),
        ("door", wanted.door.as_deref()),
        ("principal", wanted.principal.as_deref()),
        ("machine", wanted.machine.as_deref()),
        ("open", wanted.open.then_some("true")),
        ("after", Some(after)),
    ];
    let said = named.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded(value?))));
    said.collect::<Vec<_>>().join("&")
}

/// Sessions in a table.
pub(super) fn table(rows: &[SessionLine]) -> Markup {
    html! {
        @if rows.is_empty() { p { "There are none." } } @else {
            div.wide { table {
                thead { tr {
                    th scope="col" { "Session" } th scope="col" { "Last event" } th scope="col" { "Door" }
                    th scope="col" { "By" } th scope="col" { "Machine" } th scope="col" { "Events" } th scope="col" { "Open calls" }
                } }
                tbody { @for row in rows { tr data-row tabindex="-1" {
                    th scope="row" { (session(&row.session)) }
                    td { (time(row.updated)) }
                    td { (row.door) }
                    td { (row.principal) }
                    td { (row.machine.as_deref().unwrap_or("–")) }
                    td.number { (row.events) }
                    td {
                        @if row.retired { (mark(How::Plain, "retired")) }
                        @else if row.open_calls > 0 { (mark(How::Waits, &row.open_calls.to_string())) }
                        @else { (mark(How::Good, "none")) }
                    }
                } } }
            } }
        }
    }
}

/// One session.
pub(super) async fn one(asked: &Asked<'_>, id: &str) -> Result<Response<Body>, Problem> {
    let gateway = &asked.door.gateway;
    let trace = sessions::trace(gateway, &asked.signed_in.person, id).await?;
    let all: Vec<_> = trace.events.iter().map(|stored| stored.event.clone()).collect();
    let walk = machines::walk(gateway, &trace).await.ok();
    let principal = all.iter().find_map(|event| match &event.fact {
        amends_core::Fact::SessionOpened { principal, .. } | amends_core::Fact::SessionRetired { principal, .. } => {
            Some(principal.as_str())
        }
        _ => None,
    });
    let lines = found_calls::of_session(id, principal.unwrap_or_default(), &paths(&all));
    let shown: Vec<_> = trace.events.iter().rev().take(EVENTS_MAX).rev().map(told_event).collect();
    let left_out = trace.events.len() - shown.len();
    Ok(asked.frame(Place::Sessions, "A session").with(html! {
        p { code { (id) } }
        @if trace.cut > 0 { p.notice { "It is retired: its first " (trace.cut) " events were dropped." } }
        @if let Some(walk) = &walk {
            section #walk data-live aria-labelledby="walk-title" {
                h2 #walk-title { "The walk through " (walk.view.machine) }
                p { "It is in " strong { (walk.view.state) } " after " (walk.view.seq) " moves"
                    @if walk.view.over { ", and over" } "." }
                (PreEscaped(picture(&walk.svg())))
                (path(&all))
            }
        }
        section #calls data-live aria-labelledby="calls-title" {
            h2 #calls-title { "Calls" }
            (calls_table(&lines))
            @for line in lines.iter().take(LINES_MAX) {
                h3 { (line.tool) " " code { (line.call) } }
                (drawn(&line_of(&events_of(&all, &line.call.as_str().into()), clock::now())))
            }
        }
        section #events data-live aria-labelledby="events-title" {
            h2 #events-title { "Events" }
            @if left_out > 0 { p.small { "The first " (left_out) " are left out; " code { "amends trace" } " shows all." } }
            (events(&shown))
        }
        (receipt(id, trace.events.last().map(|last| (last.event.seq, last.hash.as_str()))))
    }))
}

/// The moves of a walk.
fn path(events: &[amends_core::Event]) -> Markup {
    let moves = history(events.iter());
    html! {
        @if !moves.is_empty() {
            ol.path { @for entry in &moves { li {
                strong { (entry.action.as_ref().map_or("(reset)", |action| action.as_str())) }
                " · " (entry.words())
                @if let Some(message) = &entry.message { ": " (message) }
                " · " (time(entry.at.ms()))
            } } }
        }
    }
}
