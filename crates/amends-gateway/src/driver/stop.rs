//! A call is stopped by somebody who does not wait for its answer.

use std::sync::Arc;

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::{CallId, SessionId};
use amends_ledger::Error;

use super::orphans::{Take, raise};
use super::session::Mail;
use crate::gateway::Gateway;

/// Asks for a call to be stopped, by whoever drives its session here or takes it up for that; `false` where another node drives it.
pub(crate) async fn stop(gateway: &Arc<Gateway>, session: &SessionId, call: &CallId) -> Result<bool, Error> {
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
