//! Small wrong behaviours that can be planted, to prove that the watch sees them.

/// A wrong behaviour of the dispatcher, the driver, the classifier, the ledger, the operator or the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The driver sends before the intent is durable.
    SendBeforeAppend,
    /// The driver answers before the result is durable.
    ReplyBeforeAppend,
    /// The driver sends a request again by itself when its answer is overdue.
    ResendInline,
    /// A negative status read counts although the request can still arrive.
    NegativeAtOnce,
    /// The driver records a step without its claims when one of them is held.
    IgnoreHeld,
    /// The classifier takes a conflict for a success.
    ConflictAsSuccess,
    /// The classifier takes a plain error for proof that nothing was done.
    ErrorAsNothingDone,
    /// The first verdict is used for every later attempt.
    JudgeOnce,
    /// The driver sends after its lease and the attempt's send deadline are over.
    SendLate,
    /// The driver looks at its lease as it is when it sends, not as it was at the intent.
    FreshLease,
    /// The driver sends to another run of the upstream than the one the intent names.
    AnyRun,
    /// The upstream does not honour the keys it is sent.
    KeysForgotten,
    /// The classifier drops the time that the upstream asked for.
    Impatient,
    /// The driver never asks for a tick.
    NoTimer,
    /// A token is minted after its write's intent.
    MintLate,
    /// The ledger lets anybody redeem any token.
    RedeemUnchecked,
    /// The ledger lets a token be redeemed whose time is over.
    RedeemExpired,
    /// The ledger lets a token be redeemed while its write is in doubt.
    UndoInDoubt,
    /// A token that was redeemed is armed again.
    NeverSpent,
    /// An answer that comes again is taken again.
    AnswerTwice,
    /// The queue takes a later answer in place of the first.
    LateAnswerWins,
    /// A crash takes the questions of its node's sessions with it.
    QuestionsForgotten,
    /// Nobody is asked about a write that is in doubt.
    NobodyAsked,
    /// A question that nobody answers counts as a yes.
    DefaultApprove,
    /// A write does not claim its object.
    ObjectUnclaimed,
    /// What a call is based on is read, and not compared.
    EvidenceIgnored,
    /// A call is sent again although the upstream called it stale twice.
    ResendStale,
    /// An attempt in doubt is taken for one that did nothing, and sent again.
    RetryInDoubt,
    /// An answer to an inquiry that comes again is taken again.
    InputsTwice,
    /// The classifier takes a question of the upstream for its answer.
    QuestionAsSuccess,
    /// A result that comes after the call's end ends it again.
    LateResultCounts,
    /// The driver forgets that somebody must say yes.
    AskedNobody,
    /// A yes that was spent is not taken out of the ledger.
    GrantKept,
    /// The driver takes calls with other arguments for equal ones.
    ArgumentsAlike,
    /// The yes of whoever called is taken.
    RequesterApproves,
    /// A move is made although what it is about failed.
    MoveUnacted,
    /// A walk that is given up undoes also what was done before it began again.
    UndoEarlier,
    /// The driver gives every wish for a move a name of its own, so that no repeat is seen.
    RepeatsUnseen,
    /// A move is begun while another one is open or in doubt.
    MoveBeside,
    /// What becomes known of a call after its move ended makes the move.
    LateMoves,
    /// The driver gives every call of a move a key of its own.
    LegUnnamed,
    /// A wish that is refused writes into the fields.
    RefusalWrites,
    /// A walk that goes on from another's past begins where that one is now.
    ForkAstray,
    /// The driver drops what an agent says of how many moves were made.
    CountIgnored,
    /// The end of a move is recorded otherwise than it was decided.
    EndMisnamed,
    /// A move leads somewhere else than its machine says.
    LeadsAstray,
}

impl Flaw {
    /// Whether it shows only in worlds in which people are asked before calls are sent.
    pub const fn is_of_approvals(self) -> bool {
        matches!(self, Self::AskedNobody | Self::GrantKept | Self::ArgumentsAlike | Self::RequesterApproves)
    }

    /// Whether it shows only in worlds with walks.
    pub const fn is_of_walks(self) -> bool {
        matches!(
            self,
            Self::MoveUnacted
                | Self::UndoEarlier
                | Self::RepeatsUnseen
                | Self::MoveBeside
                | Self::LateMoves
                | Self::LegUnnamed
                | Self::RefusalWrites
                | Self::ForkAstray
                | Self::CountIgnored
                | Self::EndMisnamed
                | Self::LeadsAstray
        )
    }
}
