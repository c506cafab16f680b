//! What a fact is called, and which call it is about.

use super::Fact;
use crate::id::CallId;

impl Fact {
    /// Whether it only says something: it changes nothing, and the input that it tells of is not in the trace.
    pub(crate) const fn is_remark(&self) -> bool {
        matches!(self, Self::Ignored { .. } | Self::SuppressedError { .. })
    }

    /// Its name on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SessionOpened { .. } => "session_opened",
            Self::CallReceived { .. } => "call_received",
            Self::CallRefused { .. } => "call_refused",
            Self::AttemptStarted { .. } => "attempt_started",
            Self::AttemptEnded { .. } => "attempt_ended",
            Self::AttemptTimedOut { .. } => "attempt_timed_out",
            Self::AttemptOrphaned { .. } => "attempt_orphaned",
            Self::FailureJudged { .. } => "failure_judged",
            Self::WaitBegan { .. } => "wait_began",
            Self::DoubtSettled { .. } => "doubt_settled",
            Self::InterimAnswered { .. } => "interim_answered",
            Self::CallEnded { .. } => "call_ended",
            Self::CallApproved { .. } => "call_approved",
            Self::EvidenceCompared { .. } => "evidence_compared",
            Self::InteractionOpened { .. } => "interaction_opened",
            Self::InteractionAnswered { .. } => "interaction_answered",
            Self::InteractionLapsed { .. } => "interaction_lapsed",
            Self::InteractionWithdrawn { .. } => "interaction_withdrawn",
            Self::InquiryMade { .. } => "inquiry_made",
            Self::InquiryOpened { .. } => "inquiry_opened",
            Self::InputsGiven { .. } => "inputs_given",
            Self::InquiryWithdrawn { .. } => "inquiry_withdrawn",
            Self::WorkNamed { .. } => "work_named",
            Self::InquiryClosed { .. } => "inquiry_closed",
            Self::DoubtResolved { .. } => "doubt_resolved",
            Self::ReversalMinted { .. } => "reversal_minted",
            Self::ReversalArmed { .. } => "reversal_armed",
            Self::ReversalVoided { .. } => "reversal_voided",
            Self::ReversalRefused { .. } => "reversal_refused",
            Self::ReversalRedeemed { .. } => "reversal_redeemed",
            Self::CancelRequested { .. } => "cancel_requested",
            Self::Ticked { .. } => "ticked",
            Self::Resumed { .. } => "resumed",
            Self::AnswerDelivered { .. } => "answer_delivered",
            Self::LateResult { .. } => "late_result",
            Self::SessionRetired { .. } => "session_retired",
            Self::SchemaDrifted { .. } => "schema_drifted",
            Self::SchemaApproved { .. } => "schema_approved",
            Self::WalkBegan { .. } => "walk_began",
            Self::WalkMigrated { .. } => "walk_migrated",
            Self::MoveReceived { .. } => "move_received",
            Self::MoveRefused { .. } => "move_refused",
            Self::MoveJoined { .. } => "move_joined",
            Self::MoveWeighed { .. } => "move_weighed",
            Self::MoveWaits { .. } => "move_waits",
            Self::MoveMade { .. } => "move_made",
            Self::MoveEnded { .. } => "move_ended",
            Self::WalkReset { .. } => "walk_reset",
            Self::WalkAborted { .. } => "walk_aborted",
            Self::WalkUnwound { .. } => "walk_unwound",
            Self::Ignored { .. } => "ignored",
            Self::SuppressedError { .. } => "suppressed_error",
        }
    }

    /// Whether something is done again from here: a call is sent once more, or a move is tried once more, each of which is counted
    /// where it is decided.
    pub const fn is_retry(&self) -> bool {
        matches!(self, Self::FailureJudged { retry: Some(_), .. } | Self::MoveWaits { .. })
    }

    /// The call it is about, where it is about one.
    pub fn call(&self) -> Option<&CallId> {
        match self {
            Self::CallReceived { received, .. } => Some(&received.call),
            Self::InteractionOpened { interaction } => Some(&interaction.call),
            Self::MoveReceived { taking, .. } => Some(&taking.id),
            Self::MoveRefused { of, .. }
            | Self::MoveJoined { of, .. }
            | Self::MoveWeighed { of, .. }
            | Self::MoveWaits { of, .. }
            | Self::MoveMade { of, .. }
            | Self::MoveEnded { of, .. }
            | Self::WalkReset { of, .. }
            | Self::WalkUnwound { of, .. }
            | Self::WalkAborted { of } => Some(of),
            Self::CallRefused { call, .. }
            | Self::WaitBegan { call, .. }
            | Self::DoubtSettled { call, .. }
            | Self::InterimAnswered { call }
            | Self::CallEnded { call, .. }
            | Self::CallApproved { call, .. }
            | Self::EvidenceCompared { call, .. }
            | Self::InputsGiven { call, .. }
            | Self::InquiryWithdrawn { call, .. }
            | Self::InquiryClosed { call, .. }
            | Self::DoubtResolved { call, .. }
            | Self::ReversalMinted { call, .. }
            | Self::ReversalArmed { call, .. }
            | Self::ReversalVoided { call, .. }
            | Self::ReversalRefused { call, .. }
            | Self::ReversalRedeemed { call, .. }
            | Self::CancelRequested { call, .. }
            | Self::AnswerDelivered { call } => Some(call),
            Self::AttemptStarted { attempt, .. }
            | Self::AttemptEnded { attempt, .. }
            | Self::AttemptTimedOut { attempt, .. }
            | Self::AttemptOrphaned { attempt, .. }
            | Self::FailureJudged { attempt, .. }
            | Self::InquiryMade { attempt, .. }
            | Self::WorkNamed { attempt, .. }
            | Self::InquiryOpened { attempt, .. }
            | Self::LateResult { attempt, .. } => Some(&attempt.call),
            Self::SessionOpened { .. }
            | Self::InteractionAnswered { .. }
            | Self::InteractionLapsed { .. }
            | Self::InteractionWithdrawn { .. }
            | Self::Ticked { .. }
            | Self::Resumed { .. }
            | Self::SessionRetired { .. }
            | Self::SchemaDrifted { .. }
            | Self::SchemaApproved { .. }
            | Self::WalkBegan { .. }
            | Self::WalkMigrated { .. }
            | Self::Ignored { .. }
            | Self::SuppressedError { .. } => None,
        }
    }
}
