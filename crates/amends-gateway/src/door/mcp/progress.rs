//! Progress on its way to the agent: with the agent's own token, in order, and only ever increasing.

use amends_wire::message;
use amends_wire::object::Object;
use amends_wire::splice::Splice;

use crate::upstream::Progress;

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
