//! The states of a task.

use super::version::Version;

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is known, and nothing was done yet.
    Submitted,
    /// It goes on.
    Working,
    /// It waits for an answer.
    InputRequired,
    /// It waits for somebody to sign in.
    AuthRequired,
    /// It was done.
    Completed,
    /// It was tried, and failed or is in doubt.
    Failed,
    /// It was stopped, and nothing was done.
    Canceled,
    /// We said no.
    Rejected,
}

const NAMES: [(State, &str, &str); 8] = [
    (State::Submitted, "TASK_STATE_SUBMITTED", "submitted"),
    (State::Working, "TASK_STATE_WORKING", "working"),
    (State::InputRequired, "TASK_STATE_INPUT_REQUIRED", "input-required"),
    (State::AuthRequired, "TASK_STATE_AUTH_REQUIRED", "auth-required"),
    (State::Completed, "TASK_STATE_COMPLETED", "completed"),
    (State::Failed, "TASK_STATE_FAILED", "failed"),
    (State::Canceled, "TASK_STATE_CANCELED", "canceled"),
    (State::Rejected, "TASK_STATE_REJECTED", "rejected"),
];

impl State {
    /// Its name.
    pub fn name(self, version: Version) -> &'static str {
        let known = NAMES.iter().find(|(state, ..)| *state == self);
        match (known, version) {
            (Some((_, name, _)), Version::V1) => name,
            (Some((_, _, name)), Version::V03) => name,
            (None, _) => "",
        }
    }

    /// The state of that name, in either version; nothing where nobody here knows it.
    pub fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, new, old)| *new == name || *old == name).map(|(state, ..)| *state)
    }

    /// Whether nothing comes after it.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Whether somebody has to do something before it goes on.
    pub const fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known_again() {
        for (state, ..) in NAMES {
            for version in [Version::V1, Version::V03] {
                assert_eq!(State::parse(state.name(version)), Some(state));
            }
            assert!(!(state.is_terminal() && state.is_interrupted()));
        }
        assert_eq!(State::parse("TASK_STATE_DREAMING"), None);
    }
}
