//! *Playbook*: the rules in force and where each comes from, what a change of them would have done, and the failures that no rule
//! recognises.

use std::sync::Arc;

use amends_core::Code;
use hyper::Response;
use maud::{Markup, html};

use super::super::api::fields::Fields;
use super::super::api::problem::Problem;
use super::super::api::unclassified::{self, Kind};
use super::super::api::{heavy, upstreams};
use super::super::body::Body;
use super::Asked;
use super::frame::{Place, call, time};
use crate::catalogue::ServedTool;
use crate::hindsight;
use crate::identity::Role;
use crate::rulebook::{Row, done};

pub(super) async fn page(asked: &Asked<'_>) -> Result<Response<Body>, Problem> {
    shown(asked, Said::default()).await
}

/// What came of what somebody wanted done.
#[derive(Debug, Default)]
struct Said {
    notice: Option<String>,
    fragment: String,
    whatif: Option<String>,
    proposal: Option<String>,
}

/// Says what a change would have done.
pub(super) async fn whatif(asked: &Asked<'_>, form: &mut Fields) -> Result<Response<Body>, Problem> {
    let found = heavy::whatif(&asked.door.gateway, form).await?;
    let fragment = found.text.clone();
    let whatif = Some(hindsight::text(&found.whatif));
    shown(asked, Said { fragment, whatif, ..Said::default() }).await
}

/// Writes a proposal of what a failure means.
pub(super) async fn propose(asked: &Asked<'_>, form: &mut Fields) -> Result<Response<Body>, Problem> {
    let proposed = unclassified::propose(&asked.door.gateway, &asked.signed_in.person, form).await?;
    let notice = Some(format!("Proposed in {}. Nothing is applied.", proposed.file));
    shown(asked, Said { notice, proposal: Some(proposed.text), ..Said::default() }).await
}

async fn shown(asked: &Asked<'_>, said: Said) -> Result<Response<Body>, Problem> {
    let gateway = &asked.door.gateway;
    let config = gateway.config();
    let listing = gateway.catalogue.now();
    let kinds = unclassified::list(gateway, &asked.signed_in.person).await?;
    let proof = asked.signed_in.page.as_deref().unwrap_or_default();
    let mut frame = asked.frame(Place::Playbook, "Playbook");
    frame.notice = said.notice;
    Ok(frame.with(html! {
        @if let Some(text) = &said.proposal { pre.view { (text) } }
        section #inbox data-live aria-labelledby="inbox-title" {
            h2 #inbox-title { "Failures that nothing recognises" }
            @if kinds.is_empty() { p { "None among the newest sessions." } }
            @for (place, kind) in kinds.iter().enumerate() { (unrecognised(asked, proof, place, kind)) }
        }
        section aria-labelledby="whatif-title" {
            h2 #whatif-title { "What if" }
            p { "Rules as in a configuration, laid over those that each call had. Nothing is written, nothing is sent." }
            form method="post" action="/playbook/whatif" {
                input type="hidden" name="page" value=(proof);
                p { label for="fragment" { "Changed rules" } br;
                    textarea #fragment name="playbook" rows="8" required spellcheck="false"
                        placeholder="[tools.NAME.playbook.transient_timeout]\ncompensation = \"surface\"" { (said.fragment) } }
                p { label { "How far back " input name="since" value="7d" size="5"; } " " button { "Say what it would have done" } }
            }
            @if let Some(text) = &said.whatif { pre.view #whatif tabindex="0" { (text) } }
        }
        section aria-labelledby="rules-title" {
            h2 #rules-title { "Rules in force" }
            p { @match &config.release {
                Some(released) => { "Release " (released.release.version) " is laid over the configuration." }
                None => { "No release is laid over the configuration." }
            } }
            @for tool in listing.tools() { (rules(tool, &upstreams::rows(&config, tool))) }
        }
    }))
}

fn rules(tool: &Arc<ServedTool>, rows: &[Row]) -> Markup {
    let contract = &tool.rules.contract;
    html! {
        details {
            summary {
                code { (tool.name) } " · " (contract.effect.as_str())
                @if !contract.declared { ", not declared" }
                @if contract.reverse.is_some() { ", can be undone" }
            }
            div.wide { table {
                thead { tr { th scope="col" { "Verdict" } th scope="col" { "What is done" } th scope="col" { "Codes" } th scope="col" { "From" } } }
                tbody { @for row in rows { tr {
                    th scope="row" { (row.verdict.as_str()) }
                    td { (done(&row.rule.compensation)) }
                    td.small { (row.codes().iter().map(|code| code.as_str()).collect::<Vec<_>>().join(", ")) }
                    td { @match (row.section(), row.release()) {
                        (Some(section), Some(file)) => { code { "[" (section) "]" } " of " (file) }
                        (Some(section), None) => { code { "[" (section) "]" } }
                        (None, _) => { "the table we ship" }
                    } }
                } } }
            } }
        }
    }
}

fn unrecognised(asked: &Asked<'_>, proof: &str, place: usize, kind: &Kind) -> Markup {
    let may = asked.signed_in.person.role >= Role::Operator;
    let when = format!("when-{place}");
    let failure = format!("failure-{place}");
    html! {
        article.question data-row tabindex="-1" {
            h3 { code { (kind.tool) } " of " (kind.upstream) ": " (kind.attempts) " attempts" }
            p { @if let Some(status) = kind.status { "status " (status) ", " }
                @if let Some(code) = &kind.code { "code " code { (code) } ", " }
                "last " (time(kind.last)) }
            @if let Some(text) = &kind.text { p { "The upstream's words, which nobody vouches for:" } pre.view { (text) } }
            p { "Such as " @for example in &kind.examples { (call(example)) " " } }
            @if may {
                form method="post" action="/playbook/proposals" {
                    input type="hidden" name="page" value=(proof);
                    input type="hidden" name="upstream" value=(kind.upstream);
                    p { label for=(when) { "When" } " " input id=(when) name="when" size="40" required value=[kind.when.as_deref()]; }
                    p { label for=(failure) { "it means" } " "
                        select id=(failure) name="failure" required {
                            option value="" { "choose" }
                            @for code in Code::ALL { option value=(code.as_str()) { (code.as_str()) } }
                        }
                        " " button { "Propose this rule" } }
                }
            }
        }
    }
}
