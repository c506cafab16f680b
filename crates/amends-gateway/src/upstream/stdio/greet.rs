//! Greeting a child: as its client, or with the greeting of the agent that wrapped it.

use std::sync::Arc;
use std::time::Duration;

use amends_wire::mcp::{Era, era};
use amends_wire::message;
use tokio::sync::oneshot;

use super::Shared;
use super::traffic::Outgoing;
use crate::mint;
use crate::upstream::exchange::Reply;
use crate::upstream::{Greeting, Health};

const GREETING_TIMEOUT: Duration = Duration::from_secs(30);

/// Greets the child, or says the agent's greeting again, and then calls it ready.
pub(super) async fn greet(shared: Arc<Shared>) -> Result<(), String> {
    let (era, greeting) = match shared.greeting() {
        Greeting::Ours => greet_as_client(&shared).await,
        Greeting::Forwarded => greet_again(&shared).await,
    }?;
    // 52 bits, never the number that stands for a run nobody sees.
    let run = (mint::seed() >> 1) + 1;
    shared.traffic.name_run(run);
    shared.health.send_replace(Health::Ready { run, era, greeting: greeting.into() });
    Ok(())
}

async fn greet_as_client(shared: &Shared) -> Result<(Era, String), String> {
    match ask(shared, "initialize", &era::initialize_params()).await? {
        Reply::Result(result) => {
            tell_initialized(shared);
            return Ok((Era::Legacy, String::from_utf8_lossy(&result).into_owned()));
        }
        Reply::Error(error) => tracing::debug!(code = error.code, "no `initialize`; trying `server/discover`"),
        Reply::Fault(fault) => return Err(format!("no answer to `initialize`: {fault}")),
    }
    match ask(shared, "server/discover", &era::with_own_meta(None, era::MODERN)).await? {
        Reply::Result(result) => Ok((Era::Modern, String::from_utf8_lossy(&result).into_owned())),
        Reply::Error(error) => Err(format!("`server/discover` was refused with {}", error.code)),
        Reply::Fault(fault) => Err(format!("no answer to `server/discover`: {fault}")),
    }
}

async fn greet_again(shared: &Shared) -> Result<(Era, String), String> {
    let Some(params) = shared.traffic.greeting() else {
        return Ok((Era::Legacy, String::new()));
    };
    match ask(shared, "initialize", &params).await? {
        Reply::Result(result) => {
            tell_initialized(shared);
            Ok((Era::Legacy, String::from_utf8_lossy(&result).into_owned()))
        }
        Reply::Error(error) => Err(format!("it refused the agent's greeting with {}", error.code)),
        Reply::Fault(fault) => Err(format!("no answer to the agent's greeting: {fault}")),
    }
}

fn tell_initialized(shared: &Shared) {
    let line = message::notification("notifications/initialized", None);
    let _ = shared.traffic.write(Outgoing { ticket: None, line, send_by: None, run: None });
}

async fn ask(shared: &Shared, method: &str, params: &str) -> Result<Reply, String> {
    let ticket = shared.ticket();
    let (sender, receiver) = oneshot::channel();
    shared.traffic.expect(ticket, sender, None);
    let line = message::request(&ticket.to_string(), method, Some(params));
    shared
        .traffic
        .write(Outgoing { ticket: Some(ticket), line, send_by: None, run: None })
        .map_err(|_| "it takes no messages".to_owned())?;
    match tokio::time::timeout(GREETING_TIMEOUT, receiver).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(_)) => Err("it died during the greeting".into()),
        Err(_) => Err(format!("no answer to `{method}` in {} s", GREETING_TIMEOUT.as_secs())),
    }
}
