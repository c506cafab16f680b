//! A run that is stopped at another process than the one where it goes on: the wish goes there through the ledger.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::Principal;
use amends_ledger::{Error, Letter};
use serde_json::json;

use crate::clock;
use crate::config::LedgerPlace;
use crate::driver::Request;
use crate::gateway::Gateway;

/// How long a living process takes at most to take a letter.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Asks whichever process runs something in that thread to stop it. It says whether one did.
pub(crate) async fn stop_elsewhere(
    gateway: &Arc<Gateway>,
    principal: &Principal,
    thread: &str,
    run: Option<&str>,
) -> Result<bool, Error> {
    if gateway.config().ledger.place == LedgerPlace::Memory {
        return Ok(false);
    }
    let (ledger, now) = (&gateway.ledger, clock::now());
    let within_ms = u64::try_from(TAKEN_WITHIN.as_millis()).unwrap_or(u64::MAX);
    let request = Request::StopRun { run: run.map(str::to_owned), until: now + within_ms };
    let body = serde_json::to_value(request).map_err(|error| Error::Corrupt { reason: error.to_string() })?;
    let letter = Letter { place: Some(gateway.runs.address(principal, thread)), session: None, body };
    let id = ledger.post(letter, now).await?;
    let posted = Instant::now();
    // Ends with a reply, and one is given here where nobody else gives one in time.
    loop {
        let hint = ledger.hint();
        match ledger.letter(id).await? {
            Some(state) => {
                if let Some(reply) = state.reply {
                    return Ok(reply["stopped"] == true);
                }
            }
            None => return Ok(false),
        }
        if posted.elapsed() > TAKEN_WITHIN {
            // Nobody runs it. The letter must not lie there for the thread's next run.
            ledger.reply_letter(id, json!({ "stopped": false }), clock::now()).await?;
            continue;
        }
        tokio::select! {
            () = hint => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}
