//! `amends guard`: what a gateway starts beside itself, to end its children should it be killed.

use std::ffi::OsString;
use std::io::BufReader;

use amends_gateway::upstream::stdio::guard;

/// What says on the command line that this process stands guard.
const WORD: &str = "guard";

/// Lets this very binary guard the children of this process.
pub(super) fn appoint() {
    match std::env::current_exe() {
        Ok(own) => guard::appoint(own, vec![WORD.into()]),
        Err(error) => tracing::warn!(%error, "this binary cannot be found, so that nobody guards its children"),
    }
}

/// Stands guard for whoever holds the other end of standard input, where the command line says that and nothing else.
pub fn stands_guard(mut arguments: impl Iterator<Item = OsString>) -> bool {
    let stands = arguments.nth(1).is_some_and(|word| word == WORD) && arguments.next().is_none();
    if stands {
        guard::stand(BufReader::new(std::io::stdin()));
    }
    stands
}
