//! The fields of an error that only some codes show to the agent.

/// A field of an error that the agent sees only where its code says so. All other fields are always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// When it is worth trying again.
    RetryAfterMs,
    /// What exactly is wrong with the arguments.
    Details,
    /// The next move.
    Recovery,
    /// The upstream's own words.
    Upstream,
    /// What a write gave back although it does not fit.
    UpstreamResult,
    /// The question a person was asked.
    Interaction,
    /// What the evidence was and is.
    Changed,
}

impl Field {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::RetryAfterMs,
        Self::Details,
        Self::Recovery,
        Self::Upstream,
        Self::UpstreamResult,
        Self::Interaction,
        Self::Changed,
    ];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RetryAfterMs => "retry_after_ms",
            Self::Details => "details",
            Self::Recovery => "recovery",
            Self::Upstream => "upstream",
            Self::UpstreamResult => "upstream_result",
            Self::Interaction => "interaction",
            Self::Changed => "changed",
        }
    }
}

/// What is wrong in our own house: the next move, and nothing of the insides.
pub(super) const HOUSE: &[Field] = &[Field::Recovery];
/// The same where time helps.
pub(super) const HOUSE_LATER: &[Field] = &[Field::RetryAfterMs, Field::Recovery];
/// What a message or its arguments lack, found before anything was sent.
pub(super) const MESSAGE: &[Field] = &[Field::Details, Field::Recovery];
/// What the upstream cannot do.
pub(super) const CAPABILITY: &[Field] = &[Field::Upstream, Field::Recovery];
/// What was tried, where time helps.
pub(super) const TRIED: &[Field] =
    &[Field::RetryAfterMs, Field::Upstream, Field::UpstreamResult, Field::Recovery, Field::Interaction];
/// What the upstream decided. A time to come back would be an invitation to ask the same again.
pub(super) const DECIDED: &[Field] = &[Field::Upstream, Field::UpstreamResult, Field::Recovery, Field::Interaction];
/// What the upstream decided about the arguments.
pub(super) const ARGUMENTS: &[Field] =
    &[Field::Details, Field::Upstream, Field::UpstreamResult, Field::Recovery, Field::Interaction];
/// What the upstream decided about the evidence.
pub(super) const EVIDENCE: &[Field] =
    &[Field::Changed, Field::Upstream, Field::UpstreamResult, Field::Recovery, Field::Interaction];
/// What was stopped.
pub(super) const STOPPED: &[Field] = &[Field::UpstreamResult, Field::Recovery, Field::Interaction];
