//! *Ledger*: what was signed, and whether all of it holds.

use hyper::Response;
use maud::html;

use super::super::api::heavy;
use super::super::api::problem::Problem;
use super::super::body::Body;
use super::Asked;
use super::frame::{Place, time};
use crate::identity::Role;
use crate::proven;

/// How many checkpoints are listed.
const SHOWN: usize = 20;

pub(super) async fn page(asked: &Asked<'_>) -> Result<Response<Body>, Problem> {
    shown(asked, None, None).await
}

/// Verifies the ledger.
pub(super) async fn verify(asked: &Asked<'_>) -> Result<Response<Body>, Problem> {
    let verified = heavy::verify(&asked.door.gateway).await?;
    let words = if verified.is_consistent() { "Consistent." } else { "NOT consistent." };
    shown(asked, Some(words.to_owned()), Some(proven::text(&verified))).await
}

/// Signs what the ledger has become.
pub(super) async fn sign(asked: &Asked<'_>) -> Result<Response<Body>, Problem> {
    let words = match heavy::sign(&asked.door.gateway).await? {
        Some(checkpoint) => format!("Signed: the log has {} entries.", checkpoint.size),
        None => "There is nothing to sign yet.".to_owned(),
    };
    shown(asked, Some(words), None).await
}

async fn shown(asked: &Asked<'_>, notice: Option<String>, verified: Option<String>) -> Result<Response<Body>, Problem> {
    let checkpoints = heavy::checkpoints(&asked.door.gateway, SHOWN).await?;
    let proof = asked.signed_in.page.as_deref().unwrap_or_default();
    let may = asked.signed_in.person.role >= Role::Operator;
    let mut frame = asked.frame(Place::Ledger, "Ledger");
    frame.notice = notice;
    Ok(frame.with(html! {
        @if let Some(text) = &verified { pre.view #verified tabindex="0" { (text) } }
        @if may {
            div.buttons {
                form method="post" action="/ledger/verify" {
                    input type="hidden" name="page" value=(proof);
                    button { "Verify" }
                }
                form method="post" action="/ledger/checkpoints" {
                    input type="hidden" name="page" value=(proof);
                    button { "Sign a checkpoint" }
                }
            }
        }
        p.small { "Checkpoints beside the ledger prove less than those that were kept elsewhere: "
            code { "amends verify --anchor FILE" } "." }
        section #checkpoints data-live aria-labelledby="checkpoints-title" {
            h2 #checkpoints-title { "Checkpoints" }
            @if checkpoints.is_empty() { p { "None was signed yet." } } @else {
                div.wide { table {
                    thead { tr { th scope="col" { "Signed" } th scope="col" { "Entries" } th scope="col" { "Note" } } }
                    tbody { @for one in &checkpoints { tr {
                        td { (time(one.at.ms())) }
                        td.number { (one.size) }
                        td { details { summary { "shown" } pre.view { (one.note) } } }
                    } } }
                } }
            }
        }
    }))
}
