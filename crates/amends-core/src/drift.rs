//! A tool that is no longer what it was.

use serde::{Deserialize, Serialize};

use crate::id::{Digest, ToolName, UpstreamName};

/// The difference between what a tool was pinned to and what its upstream says of it. The texts themselves pass by the core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// Where the tool lives.
    pub upstream: UpstreamName,
    /// The tool as agents know it.
    pub tool: ToolName,
    /// The digest of what it was pinned to.
    pub pinned: Digest,
    /// The digest of what it was seen to be.
    pub seen: Digest,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatcher::redecide::redecide;
    use crate::dispatcher::{Dispatcher, Input};
    use crate::gates::Gates;
    use crate::time::Timestamp;

    #[test]
    fn a_drift_and_its_approval_are_recorded_and_decided_again() {
        let drift =
            Drift { upstream: "shop".into(), tool: "pay".into(), pinned: Digest::new("aa"), seen: Digest::new("bb") };
        let mut dispatcher = Dispatcher::open("s".into(), 7, "amends".into(), "gateway");
        let at = Timestamp::from_ms;
        let mut events = dispatcher.handle(at(1), &Gates::default(), Input::Drift(Box::new(drift.clone()))).events;
        let approval = Input::Approval { drift: Box::new(drift), by: "ann".to_owned() };
        events.extend(dispatcher.handle(at(2), &Gates::default(), approval).events);
        let names: Vec<_> = events.iter().map(|event| event.fact.name()).collect();
        assert_eq!(names, ["session_opened", "schema_drifted", "schema_approved"]);
        assert_eq!(redecide(&events, |_| None), Ok(None));
        assert_eq!(Dispatcher::restore(&events, |_| None).unwrap(), dispatcher);
    }
}
