//! Progress on its way to the agent: with the agent's own token, in order, and only ever increasing.

use amends_wire::message;
use amends_wire::object::Object;
use amends_wire::splice::Splice;

use super::Outbox;
use super::rounds::Rounds;
use crate::upstream::{Aside, AsideReceiver, Exchange, Progress, Reply};

/// Relays the progress of one call.
#[derive(Debug)]
pub struct ProgressRelay {
    token: String,
    last: f64,
}

impl ProgressRelay {
    /// A relay to the agent's token, as it was written.
    pub fn new(token: String) -> Self {
        Self { token, last: f64::NEG_INFINITY }
    }

    /// The notification for the agent; nothing where a second attempt only reports what a first one had.
    pub fn notification(&mut self, Progress(params): &Progress) -> Option<String> {
        let progress: f64 = Object::parse(params)?.get("progress")?.get().parse().ok()?;
        if progress <= self.last {
            return None;
        }
        self.last = progress;
        let mut splice = Splice::new(params);
        splice.set_member(params, "progressToken", self.token.clone()).ok()?;
        Some(message::notification("notifications/progress", Some(&splice.finish())))
    }
}

/// The token by which a request wants to hear of its progress, as it was written.
pub(super) fn token(params: &str) -> Option<String> {
    let meta = Object::parse(params)?.get("_meta")?;
    Object::parse(meta.get())?.get("progressToken").map(|token| token.get().to_owned())
}

/// The parameters with a token of ours.
pub(super) fn with_token(params: &str, ticket: u64) -> String {
    let mut splice = Splice::new(params);
    if let Some(meta) = Object::parse(params).and_then(|params| params.get("_meta")) {
        let _ = splice.set_member(meta.get(), "progressToken", ticket.to_string());
    }
    splice.finish()
}

/// Waits for the reply to a request, and passes its progress on before it.
pub(super) async fn relayed(
    exchange: &mut Exchange,
    mut relay: Option<ProgressRelay>,
    mut progress: AsideReceiver,
    outbox: &Outbox,
    rounds: Option<&Rounds<'_>>,
) -> Reply {
    let mut report = async |aside: Aside| {
        let heard = match rounds {
            Some(rounds) => rounds.hear(aside).await,
            None => Some(aside),
        };
        if let Some(Aside::Progress(progress)) = &heard
            && let Some(line) = relay.as_mut().and_then(|relay| relay.notification(progress))
        {
            outbox.send(line).await;
        }
    };
    loop {
        tokio::select! {
            biased;
            Some(reported) = progress.recv() => report(reported).await,
            reply = exchange.reply() => {
                while let Ok(reported) = progress.try_recv() {
                    report(reported).await;
                }
                return reply;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_keeps_its_bytes_but_for_the_token_and_never_goes_back() {
        let mut relay = ProgressRelay::new("\"t\"".into());
        let first = relay.notification(&Progress(r#"{"progressToken":7,"progress":1.0,"x":1e2}"#.into())).unwrap();
        assert!(first.contains(r#"{"progressToken":"t","progress":1.0,"x":1e2}"#), "{first}");
        assert_eq!(relay.notification(&Progress(r#"{"progressToken":8,"progress":1}"#.into())), None);
        assert!(relay.notification(&Progress(r#"{"progressToken":8,"progress":2}"#.into())).is_some());
    }
}
