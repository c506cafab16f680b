//! Somebody comes back from an issuer at which they signed in for an upstream.

use std::sync::Arc;

use hyper::{Response, StatusCode};
use maud::html;

use super::super::Door;
use super::super::api::fields::Fields;
use super::super::api::problem::Problem;
use super::super::body::Body;
use super::frame::document;
use crate::identity::Account;

/// The longest code, and the longest state, that is looked at.
const CODE_MAX: usize = 4096;

/// Takes what they bring, and says what came of it.
pub(in super::super) async fn signed_in(door: &Arc<Door>, query: &str) -> Response<Body> {
    let (status, title, words) = match brought(door, query).await {
        Ok(upstream) => {
            (StatusCode::OK, "Signed in", format!("You signed in for `{upstream}`. You can close this page."))
        }
        Err(why) => (StatusCode::BAD_REQUEST, "Not signed in", why),
    };
    let body = html! {
        main #main {
            h1 { (title) }
            p { (words) }
        }
    };
    document(status, title, "", &body)
}

async fn brought(door: &Arc<Door>, query: &str) -> Result<String, String> {
    let said = |problem: Problem| problem.detail;
    let mut fields = Fields::encoded(query).map_err(said)?;
    let state = fields.needed("state", CODE_MAX).map_err(said)?;
    if fields.text("error").map_err(said)?.is_some() {
        return Err("the issuer did not let you in; try again".into());
    }
    let code = fields.needed("code", CODE_MAX).map_err(said)?;
    let upstream = Account::came_back(&door.gateway, &state, &code).await.inspect_err(|why| {
        tracing::warn!(why, "somebody could not sign in for an upstream");
    })?;
    Ok(upstream.to_string())
}
