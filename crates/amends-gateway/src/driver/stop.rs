//! A call is stopped by somebody who does not wait for its answer.

use std::sync::Arc;

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::{CallId, SessionId};
use amends_ledger::{Error, Letter};
use serde_json::{Value, json};

use super::orphans::{Take, raise};
use super::post::Request;
use super::session::Mail;
use crate::clock;
use crate::gateway::Gateway;

/// Asks for a call to be stopped: by whoever drives its session here, or takes it up for that, or by letter where another node drives
/// it. `false` where there is nobody to ask.
pub(crate) async fn stop(gateway: &Arc<Gateway>, session: &SessionId, call: &CallId) -> Result<bool, Error> {
    if asked_here(gateway, session, call).await? {
        return Ok(true);
    }
    let Some(holder) = gateway.ledger.holder(session).await? else { return Ok(false) };
    let request = Request::Stop { session: session.clone(), call: call.clone() };
    let body = serde_json::to_value(request).map_err(|error| Error::Corrupt { reason: error.to_string() })?;
    let letter = Letter { place: Some(holder), session: Some(session.clone()), body };
    gateway.ledger.post(letter, clock::now()).await.map(|_| true)
}

/// The same, for a letter that asks it; what is replied.
pub(super) async fn stop_here(gateway: &Arc<Gateway>, session: &SessionId, call: &CallId) -> Value {
    match asked_here(gateway, session, call).await {
        Ok(asked) => json!({ "asked": asked }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

async fn asked_here(gateway: &Arc<Gateway>, session: &SessionId, call: &CallId) -> Result<bool, Error> {
    let mail = Mail::Cancel { call: call.clone(), reason: CancelReason::Asked };
    let unsent = match gateway.driver_of(session) {
        Some(driver) => match driver.send(mail) {
            Ok(()) => return Ok(true),
            Err(unsent) => unsent.0,
        },
        None => mail,
    };
    raise(gateway, session, Some(unsent), Take::Orphaned).await.map(|driver| driver.is_some())
}
