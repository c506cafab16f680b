//! *Now*: what is in flight, how much goes on, and how the upstreams are.

use std::sync::atomic::Ordering;

use amends_core::Verdict;
use amends_ledger::QueueFilter;
use hyper::Response;
use maud::{Markup, html};

use super::super::api::calls::{self, Wanted};
use super::super::api::fields::Fields;
use super::super::api::problem::Problem;
use super::super::api::upstreams::{UpstreamSeen, upstreams};
use super::super::body::Body;
use super::Asked;
use super::calls::table;
use super::chart::{bars, between};
use super::frame::{How, Place, mark};
use crate::gateway::Gateway;
use crate::pulse::Beat;

/// How many calls are shown, and up to how many questions are counted.
const SHOWN: usize = 10;
const QUESTIONS_MAX: usize = 1000;

pub(super) async fn page(asked: &Asked<'_>, query: &Fields) -> Result<Response<Body>, Problem> {
    query.finish()?;
    let gateway = &asked.door.gateway;
    let questions = gateway.ledger.queue(&QueueFilter::default(), QUESTIONS_MAX).await?.len();
    let wanted = Wanted { limit: SHOWN, ..Wanted::default() };
    let newest = calls::list(gateway, &asked.signed_in.person, &wanted).await?;
    let beats = gateway.pulse.beats(&gateway.metrics);
    Ok(asked.frame(Place::Now, "Now").with(html! {
        section #flight data-live aria-label="In flight" { (flight(gateway, questions)) }
        section #rates data-live aria-labelledby="rates-title" {
            h2 #rates-title { "The last quarter of an hour" }
            p.small { "What this process counted, in steps of 15 seconds." }
            div.charts {
                (bars("Calls", &between(beats.iter().map(|beat| beat.received))))
                (bars("Ended", &between(beats.iter().map(|beat| beat.ended))))
                (bars("Refused", &between(beats.iter().map(|beat| beat.refused))))
            }
            h3 { "Verdicts" }
            (verdicts(&beats))
        }
        section #upstreams data-live aria-labelledby="upstreams-title" {
            h2 #upstreams-title { "Upstreams" }
            (table_of(&upstreams(gateway)))
        }
        section #newest data-live aria-labelledby="newest-title" {
            h2 #newest-title { "The newest calls" }
            (table(&newest.items))
        }
    }))
}

fn flight(gateway: &Gateway, questions: usize) -> Markup {
    let recording = gateway.recording.load(Ordering::Relaxed);
    html! {
        dl.numbers {
            div { dt { "Calls in flight" } dd { (gateway.room.open()) } }
            div { dt { "Sessions driven" } dd { (gateway.sessions_driven()) } }
            div { dt { "Questions open" } dd { a href="/queue" { (questions) } } }
            div {
                dt { "Ledger" }
                dd {
                    @if recording { (mark(How::Good, "records")) }
                    @else { (mark(How::Bad, "does not record: new calls are refused")) }
                }
            }
        }
    }
}

fn verdicts(beats: &[Beat]) -> Markup {
    let counted = |place: usize| between(beats.iter().map(|beat| beat.verdicts.get(place).copied().unwrap_or(0)));
    let given: Vec<(Verdict, Vec<u64>)> = Verdict::ALL
        .into_iter()
        .enumerate()
        .map(|(place, verdict)| (verdict, counted(place)))
        .filter(|(_, counted)| counted.iter().any(|count| *count > 0))
        .collect();
    html! {
        @if given.is_empty() { p { "No attempt failed." } }
        div.charts { @for (verdict, counted) in &given { (bars(verdict.as_str(), counted)) } }
    }
}

fn table_of(upstreams: &[UpstreamSeen]) -> Markup {
    html! {
        @if upstreams.is_empty() { p { "There are none." } } @else {
            div.wide { table {
                thead { tr {
                    th scope="col" { "Upstream" } th scope="col" { "Health" } th scope="col" { "Breaker" }
                    th scope="col" { "Tools" } th scope="col" { "Attempts" } th scope="col" { "Waiting" }
                    th scope="col" { "Retry budget" }
                } }
                tbody { @for upstream in upstreams { tr {
                    th scope="row" { (upstream.name) }
                    td { (health(upstream)) }
                    td { (breaker(upstream)) }
                    td.number { (upstream.tools) }
                    td.number { (upstream.calls) }
                    td.number { (upstream.waiting) }
                    td.number { (format!("{:.1}", f64::from(upstream.retry_budget_milli) / 1000.0)) }
                } } }
            } }
        }
    }
}

fn health(upstream: &UpstreamSeen) -> Markup {
    match upstream.state.as_str() {
        "ready" => mark(How::Good, "ready"),
        "starting" => mark(How::Waits, "starting"),
        _ => {
            let why = upstream.reason.as_deref().map(|reason| format!("down: {reason}"));
            mark(How::Bad, &why.unwrap_or_else(|| "down".to_owned()))
        }
    }
}

fn breaker(upstream: &UpstreamSeen) -> Markup {
    match (&upstream.breaker.retry_after_ms, upstream.breaker.tools_open) {
        (Some(after), _) => mark(How::Bad, &format!("open for {:.1} s", *after as f64 / 1000.0)),
        (None, _) if upstream.breaker.open => mark(How::Bad, "open"),
        (None, 0) => mark(How::Good, "closed"),
        (None, tools) => mark(How::Doubt, &format!("open for {tools} of its tools")),
    }
}
