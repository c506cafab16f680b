//! *Calls*: found, and one told with its line of time, what the agent saw beside what an operator may, and its receipt.

use amends_core::Outcome;
use hyper::Response;
use maud::{Markup, html};

use super::super::api::calls::{self, CallLine, CallSeen, Told, Wanted};
use super::super::api::fields::{Fields, encoded};
use super::super::api::problem::Problem;
use super::super::api::spans::Line;
use super::super::body::Body;
use super::Asked;
use super::frame::{Place, call, how_ended, mark, session, time};
use super::queue::pretty;

pub(super) async fn page(asked: &Asked<'_>, mut query: Fields) -> Result<Response<Body>, Problem> {
    let wanted = Wanted::read(&mut query)?;
    query.finish()?;
    let found = calls::list(&asked.door.gateway, &asked.signed_in.person, &wanted).await?;
    let next = found.next.as_deref().map(|next| format!("/calls?{}", again(&wanted, next)));
    Ok(asked.frame(Place::Calls, "Calls").with(html! {
        form.filter method="get" action="/calls" role="search" {
            label { "Search " input name="search" type="search" value=[wanted.search.as_deref()]; }
            label { "Tool " input name="tool" value=[wanted.tool.as_deref()]; }
            label { "State " (choose("state", &Wanted::STATES, wanted.state.as_deref())) }
            label { "Outcome " (choose("outcome", &Outcome::ALL.map(Outcome::as_str), wanted.outcome.as_deref())) }
            button { "Find" }
        }
        div #calls data-live { (table(&found.items)) }
        p.small { "Looked at " (found.looked_at) " sessions." }
        @if let Some(next) = next { p { a rel="next" href=(next) { "Older" } } }
    }))
}

fn again(wanted: &Wanted, after: &str) -> String {
    let named = [
        ("search", wanted.search.as_deref()),
        ("tool", wanted.tool.as_deref()),
        ("state", wanted.state.as_deref()),
        ("outcome", wanted.outcome.as_deref()),
        ("after", Some(after)),
    ];
    let said = named.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", encoded(value?))));
    said.collect::<Vec<_>>().join("&")
}

fn choose(name: &str, words: &[&str], chosen: Option<&str>) -> Markup {
    html! {
        select name=(name) {
            option value="" { "any" }
            @for word in words { option value=(word) selected[chosen == Some(*word)] { (word) } }
        }
    }
}

/// Calls in a table.
pub(super) fn table(calls: &[CallLine]) -> Markup {
    html! {
        @if calls.is_empty() { p { "There are none." } } @else {
            div.wide { table {
                thead { tr {
                    th scope="col" { "Came" } th scope="col" { "Tool" } th scope="col" { "How it ended" }
                    th scope="col" { "Sends" } th scope="col" { "Verdicts" } th scope="col" { "Told after" }
                    th scope="col" { "Call" }
                } }
                tbody { @for line in calls { tr data-row tabindex="-1" {
                    td { (time(line.at)) }
                    th scope="row" { (line.tool) }
                    td { (mark(how_ended(line.state, &line.end, line.certainty), &line.end)) }
                    td.number { (line.sends) }
                    td { (line.verdicts.join(", ")) }
                    td.number { @if let Some(ms) = line.told_after_ms { (ms) " ms" } @else { "–" } }
                    td { (call(&line.call)) }
                } } }
            } }
        }
    }
}

/// One call.
pub(super) async fn one(asked: &Asked<'_>, id: &str) -> Result<Response<Body>, Problem> {
    let seen = calls::seen(&asked.door.gateway, &asked.signed_in.person, id).await?;
    let title = format!("Call of {}", seen.line.tool);
    Ok(asked.frame(Place::Calls, &title).with(told(&seen)))
}

fn told(seen: &CallSeen) -> Markup {
    let line = &seen.line;
    html! {
        section #summary data-live aria-label="Summary" {
            p { (mark(how_ended(line.state, &line.end, line.certainty), &line.end)) }
            dl.facts {
                dt { "Call" } dd { code { (line.call) } }
                dt { "Session" } dd { (session(&line.session)) }
                dt { "Upstream" } dd { (line.upstream) }
                dt { "By" } dd { (line.principal) }
                dt { "Came" } dd { (time(line.at)) }
                dt { "Effect" } dd { (seen.effect) @if seen.reversible { ", can be undone" } }
                dt { "Sends" } dd { (line.sends) }
            }
            @if let Some(view) = &seen.view { h2 { "Arguments, as they are recorded" } pre.view { (pretty(view)) } }
        }
        section #timeline data-live aria-labelledby="timeline-title" {
            h2 #timeline-title { "Line of time" }
            (drawn(&seen.timeline))
        }
        div.beside {
            section #agent data-live aria-labelledby="agent-title" {
                h2 #agent-title { "What the agent saw" }
                p.small { "The envelope, decided again from the record. What a tool gave is not recorded; private words are masked." }
                @for one in &seen.agent { (answer(one)) }
                @if seen.agent.is_empty() { p { "Nothing so far." } }
                @if let Some(why) = &seen.agent_unknown { p { (why) } }
            }
            section #operator data-live aria-labelledby="operator-title" {
                h2 #operator-title { "What was recorded" }
                (events(&seen.events))
            }
        }
        (receipt(&seen.receipt.session, Some((seen.receipt.seq, &seen.receipt.hash))))
    }
}

fn answer(one: &Told) -> Markup {
    let form = match one.form {
        "forward" => "the upstream's own result, with this beside it",
        "envelope" => "an answer of ours",
        "recorded" => "the recorded answer of an equal call",
        _ => "what the upstream asks of it",
    };
    html! {
        p { @if one.last { "At the end: " } @else { "Meanwhile: " } (form) }
        @if let Some(envelope) = &one.envelope {
            pre.envelope { (serde_json::to_string_pretty(envelope).unwrap_or_default()) }
        }
    }
}

/// Events in a table.
pub(super) fn events(events: &[serde_json::Value]) -> Markup {
    html! {
        div.wide { table.events {
            thead { tr { th scope="col" { "#" } th scope="col" { "When" } th scope="col" { "What" } th scope="col" { "In words" } } }
            tbody { @for event in events { tr {
                td.number { (event["seq"]) }
                td { (time(event["at"].as_u64().unwrap_or(0))) }
                th scope="row" { code { (event["event"].as_str().unwrap_or_default()) } }
                td { (event["words"].as_str().unwrap_or_default()) }
            } } }
        } }
    }
}

/// Where something stands in the chain, and the script that makes its links again.
pub(super) fn receipt(session: &str, at: Option<(u64, &str)>) -> Markup {
    html! {
        section.receipt aria-labelledby="receipt-title" {
            h2 #receipt-title { "Receipt" }
            @if let Some((seq, hash)) = at { p { "Event " (seq) ": " code { (hash) } } }
            p #chain role="status" data-session=(session) data-seq=[at.map(|(seq, _)| seq)] data-hash=[at.map(|(_, hash)| hash)] {
                "The links are made again in the page where JavaScript runs; " code { "amends verify" } " does it for the whole ledger."
            }
            script src="/console/chain.js" defer {}
        }
    }
}

/// A call's spans, drawn to scale, and the same in words.
pub(super) fn drawn(line: &Line) -> Markup {
    let whole = line.to.saturating_sub(line.from).max(1);
    let place = |ms: u64| ms.saturating_sub(line.from).min(whole) as f64 * 1000.0 / whole as f64;
    html! {
        @if line.spans.is_empty() { p { "Nothing was sent." } } @else {
            svg.timeline viewBox=(format!("0 0 1000 {}", line.spans.len() * 26 + 4)) role="img"
                aria-label=(format!("{} spans over {whole} ms", line.spans.len())) preserveAspectRatio="none" {
                @for (row, span) in line.spans.iter().enumerate() {
                    @let from = place(span.from);
                    @let width = (place(span.to.unwrap_or(line.to)) - from).max(3.0);
                    rect class={ "span " (span.kind) @if span.failed { " failed" } @if span.to.is_none() { " open" } }
                        x=(format!("{from:.1}")) y=(row * 26 + 4) width=(format!("{width:.1}")) height="18" rx="3" {
                        title { (span.label) ": " (span.words) }
                    }
                }
            }
            ol.spans { @for span in &line.spans { li {
                span.kind { (span.kind) } " " (span.label)
                " · +" (span.from.saturating_sub(line.from)) " ms, "
                @if let Some(to) = span.to { (to.saturating_sub(span.from)) " ms" } @else { "goes on" }
                @if !span.words.is_empty() { " · " (span.words) }
            } } }
        }
    }
}
