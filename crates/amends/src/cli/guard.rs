//! `amends guard`: what a gateway starts beside itself, to end its children should it be killed.

use std::io::BufReader;
use std::process::ExitCode;

use amends_gateway::upstream::stdio::guard;
use anyhow::Result;

/// Lets this very binary guard the children of this process.
pub(super) fn appoint() {
    match std::env::current_exe() {
        Ok(own) => guard::appoint(own, vec!["guard".into()]),
        Err(error) => tracing::warn!(%error, "this binary cannot be found, so that nobody guards its children"),
    }
}

/// Stands guard for whoever holds the other end of standard input.
pub(super) fn stand() -> Result<ExitCode> {
    guard::stand(BufReader::new(std::io::stdin()));
    Ok(ExitCode::SUCCESS)
}
