//! A session is over, and its events are dropped.

use serde::{Deserialize, Serialize};

use crate::dispatcher::Dispatcher;
use crate::time::Timestamp;

/// Why a session's events are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetireReason {
    /// It is older than what is kept.
    Retention,
    /// Somebody asked for it.
    Forgotten,
}

impl RetireReason {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retention => "retention",
            Self::Forgotten => "forgotten",
        }
    }
}

impl Dispatcher {
    /// Ends the session for good, if nothing is open in it.
    pub(super) fn retire(&mut self, now: Timestamp, reason: RetireReason) {
        if self.state.is_busy() {
            return self.ignore(now, "a session with open calls or questions is not retired".to_owned());
        }
        let fact = self.state.retirement(reason);
        self.emit(now, fact);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatcher::redecide::redecide;
    use crate::dispatcher::{Input, TraceError};
    use crate::event::Fact;
    use crate::gates::Gates;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    fn retired() -> (Dispatcher, Vec<crate::Event>) {
        let mut dispatcher = Dispatcher::open("s".into(), 7, "p".into(), "mcp");
        let mut events = dispatcher.handle(at(1), &Gates::default(), Input::Resume).events;
        let retire = Input::Retire { reason: RetireReason::Forgotten };
        events.extend(dispatcher.handle(at(2), &Gates::default(), retire).events);
        (dispatcher, events)
    }

    #[test]
    fn the_last_event_says_how_many_went_and_why() {
        let (dispatcher, events) = retired();
        assert!(dispatcher.is_retired());
        let last = &events.last().unwrap().fact;
        assert!(
            matches!(last, Fact::SessionRetired { events: 2, reason: RetireReason::Forgotten, session, .. }
                if session.as_str() == "s"),
            "{last:?}"
        );
    }

    #[test]
    fn nothing_happens_any_more_in_a_retired_session() {
        let (mut dispatcher, events) = retired();
        for input in [Input::Tick, Input::Resume, Input::Retire { reason: RetireReason::Retention }] {
            assert!(dispatcher.handle(at(9), &Gates::default(), input).events.is_empty());
        }
        let mut restored = Dispatcher::restore(&events[2..], |_| None).unwrap();
        assert_eq!(restored.seq(), 3);
        assert!(restored.is_retired());
        assert!(restored.handle(at(9), &Gates::default(), Input::Resume).events.is_empty());
    }

    #[test]
    fn a_whole_trace_is_decided_again_and_a_cut_one_is_not() {
        let (_, events) = retired();
        assert_eq!(redecide(&events, |_| None), Ok(None));
        assert_eq!(redecide(&events[2..], |_| None), Err(TraceError::Retired));
        let more = [events[2].clone(), crate::Event { seq: 4, ..events[1].clone() }];
        assert!(Dispatcher::restore(&more, |_| None).is_err());
    }
}
