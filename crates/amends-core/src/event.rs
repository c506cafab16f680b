//! Events: what happened in a session, in order.

mod about;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::approval::{Scope, Yes};
use crate::attempt::{Payload, Purpose, Report};
use crate::call::Received;
use crate::certainty::Certainty;
use crate::dispatcher::cancel::CancelReason;
use crate::dispatcher::retire::RetireReason;
use crate::drift::Drift;
use crate::evidence::Changed;
use crate::gates::{Gates, HeldBack};
use crate::id::{ActionName, MachineName, StateName};
use crate::id::{AttemptId, CallId, Digest, InteractionId, Principal, SessionId, Tenant, ToolName};
use crate::inquiry::{Inquiry, Unanswered, Way};
use crate::interaction::{Interaction, PersonAnswer};
use crate::machine::MachineSpec;
use crate::outcome::Outcome;
use crate::playbook::Origin;
use crate::refusal::Refusal;
use crate::time::Timestamp;
use crate::verdict::Verdict;
use crate::walk::{Beginning, Left, Taking, Weighed};

/// The version of the stored shape. Every version ever stored keeps loading.
pub const VERSION: u32 = 1;

/// Which generation of the dispatcher decided. It is raised whenever the same inputs may be decided otherwise, so that what an
/// older program decided is not taken for something that was never decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Decider(u32);

impl Decider {
    /// The one that wrote no name of its own.
    pub const FIRST: Self = Self(1);
    /// The one of this program. The second measures a wait for quiet anew when a session is taken up; the third clears up after
    /// a move whose time is over, and tells its agent that a person is asked about a call of it; the fourth says what stays done
    /// of a walk that is given up, settles a doubt by a result that comes after the end of its call, and lets a walk go on from a
    /// move that could not be judged; the fifth goes on with a move by what was looked at for it then, clears up after it once,
    /// and lets a person's No to a move stand; the sixth does with a move that failed what its stage says, though its agent is gone,
    /// and takes it again only once what was not done so far cannot arrive any more; the seventh counts the time of people who are
    /// asked at once once, does nothing else in a step that has nothing to decide, lets what comes late count against what a person said
    /// and for what can be undone, and makes no move whose agent was told that it is over.
    pub const THIS: Self = Self(7);

    /// Whether it is the one that wrote no name of its own.
    pub fn is_first(&self) -> bool {
        *self == Self::FIRST
    }
}

impl Default for Decider {
    fn default() -> Self {
        Self::FIRST
    }
}

/// One thing that happened in a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The version of the stored shape.
    pub v: u32,
    /// Its place in the session, from 1.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub fact: Fact,
}

/// What happened. A step begins with the fact that records its input, so that it can be decided again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Fact {
    /// The session began.
    SessionOpened {
        /// Its id, so that a record cannot be passed off as another session's.
        session: SessionId,
        /// Where its jitter comes from.
        seed: u64,
        /// Whose it is.
        principal: Principal,
        /// The door it came through.
        door: String,
        /// The tenant it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tenant: Option<Tenant>,
        /// Which decider begins it.
        #[serde(default, skip_serializing_if = "Decider::is_first")]
        decider: Decider,
    },
    /// Input: a call arrived.
    CallReceived {
        /// The call.
        #[serde(flatten)]
        received: Box<Received>,
        /// What was sampled with it.
        #[serde(default, skip_serializing_if = "Gates::is_open")]
        gates: Gates,
    },
    /// We said no; nothing was sent. The call is over.
    CallRefused {
        /// The call.
        call: CallId,
        /// Why.
        refusal: Box<Refusal>,
    },
    /// An attempt may be sent. For a write this is the intent, durable before the first byte.
    AttemptStarted {
        /// Which one.
        attempt: AttemptId,
        /// What for.
        purpose: Purpose,
        /// The tool it goes to.
        tool: ToolName,
        /// Which piece of evidence it reads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<u32>,
        /// When an answer is no longer waited for.
        deadline: Timestamp,
        /// When the first byte must have left.
        send_by: Timestamp,
        /// Which run of the upstream it goes to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<u64>,
    },
    /// Input: an attempt ended.
    AttemptEnded {
        /// Which one.
        attempt: AttemptId,
        /// What came of it.
        report: Box<Report>,
        /// What was sampled with it.
        #[serde(default, skip_serializing_if = "Gates::is_open")]
        gates: Gates,
    },
    /// Nobody answered an attempt in time.
    AttemptTimedOut {
        /// Which one.
        attempt: AttemptId,
        /// What that proves.
        certainty: Certainty,
    },
    /// An attempt was found without a result after a crash.
    AttemptOrphaned {
        /// Which one.
        attempt: AttemptId,
        /// What that proves.
        certainty: Certainty,
    },
    /// A failed attempt was judged.
    FailureJudged {
        /// Which one.
        attempt: AttemptId,
        /// Which situation it is.
        verdict: Verdict,
        /// What is done about it.
        compensation: String,
        /// Who said so.
        rule: Origin,
        /// The number of the further send that follows, where one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<u32>,
        /// Why no further send follows, though the playbook and the contract would allow one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_back: Option<HeldBack>,
    },
    /// The call waits before its next attempt.
    WaitBegan {
        /// The call.
        call: CallId,
        /// Until when.
        until: Timestamp,
        /// What the next attempt is for.
        next: Purpose,
    },
    /// A status read settled a doubt.
    DoubtSettled {
        /// The call.
        call: CallId,
        /// What is known now.
        certainty: Certainty,
        /// The status read that showed it.
        by: AttemptId,
    },
    /// The agent was told that the call is still being settled. It is not over.
    InterimAnswered {
        /// The call.
        call: CallId,
    },
    /// The call is over.
    CallEnded {
        /// The call.
        call: CallId,
        /// How.
        outcome: Outcome,
        /// What is known of its effect.
        certainty: Certainty,
        /// The attempt whose answer it is, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<AttemptId>,
        /// Whether the answer is that of an earlier call.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replayed: bool,
        /// Whether a person allowed it after its agent had gone: the next equal call needs no other permission.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        granted: bool,
        /// Whether it did, or may have done, something for a move that no token undoes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        lasts: bool,
    },
    /// Who must say yes before the call is sent did.
    CallApproved {
        /// The call.
        call: CallId,
        /// Whose yes it is.
        yes: Yes,
        /// For what else it is good.
        #[serde(default, skip_serializing_if = "Scope::is_once")]
        scope: Scope,
        /// The question that was answered last, where one was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interaction: Option<InteractionId>,
        /// The call to which it was given, where that is another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<CallId>,
    },
    /// What the call is based on was read, and compared with what it was.
    EvidenceCompared {
        /// The call.
        call: CallId,
        /// What says something else; nothing where all is as it was.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<Changed>,
    },
    /// A person is asked.
    InteractionOpened {
        /// The question.
        interaction: Box<Interaction>,
    },
    /// Input: a person answered.
    InteractionAnswered {
        /// Which question.
        interaction: InteractionId,
        /// The answer.
        answer: Box<PersonAnswer>,
        /// What was sampled with it.
        #[serde(default, skip_serializing_if = "Gates::is_open")]
        gates: Gates,
    },
    /// Nobody answered in time; the default counts.
    InteractionLapsed {
        /// Which question.
        interaction: InteractionId,
        /// The default.
        default: String,
    },
    /// The question is pointless by now.
    InteractionWithdrawn {
        /// Which question.
        interaction: InteractionId,
    },
    /// Input: the upstream asks something of the agent while it works on an attempt.
    InquiryMade {
        /// Which attempt.
        attempt: AttemptId,
        /// What it asks.
        inquiry: Box<Inquiry>,
        /// What was sampled with it.
        #[serde(default, skip_serializing_if = "Gates::is_open")]
        gates: Gates,
    },
    /// The agent is asked what the upstream wants to know. The work clock stands until it is over.
    InquiryOpened {
        /// The attempt whose upstream asks.
        attempt: AttemptId,
        /// Its number in the call, from 1.
        inquiry: u32,
        /// Whether the upstream waits, so that the attempt goes on.
        held: bool,
        /// When an answer no longer counts.
        due: Timestamp,
        /// How the agent is asked.
        way: Way,
    },
    /// Input: the agent answered an inquiry.
    InputsGiven {
        /// The call.
        call: CallId,
        /// The inquiry's number in the call.
        inquiry: u32,
        /// The digest and size of what it gave.
        inputs: Payload,
        /// What was sampled with it.
        #[serde(default, skip_serializing_if = "Gates::is_open")]
        gates: Gates,
    },
    /// Input: the upstream took back what it asked while it works.
    InquiryWithdrawn {
        /// The call.
        call: CallId,
        /// The inquiry's number in the call.
        inquiry: u32,
    },
    /// Input: the upstream gave what it does for an attempt a name, by which it can be asked about later.
    WorkNamed {
        /// Which attempt.
        attempt: AttemptId,
        /// The name, as the upstream gave it.
        name: String,
    },
    /// An inquiry is over without an answer.
    InquiryClosed {
        /// The call.
        call: CallId,
        /// Its number in the call.
        inquiry: u32,
        /// Why.
        why: Unanswered,
    },
    /// It is known what became of a call that had ended in doubt: a person said so, or its result came after all.
    DoubtResolved {
        /// The call.
        call: CallId,
        /// What is known now.
        certainty: Certainty,
        /// The question that was answered, or that is pointless by now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interaction: Option<InteractionId>,
        /// The attempt whose late result showed it, where nobody said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AttemptId>,
        /// Until when it may still arrive, where a person says that it did not happen so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arrives_by: Option<Timestamp>,
    },
    /// A token was made for a write that is about to be sent.
    ReversalMinted {
        /// The call.
        call: CallId,
        /// The token's digest.
        token: Digest,
    },
    /// The write was done, and its token can be redeemed.
    ReversalArmed {
        /// The call.
        call: CallId,
        /// The token's digest.
        token: Digest,
        /// Until when.
        until: Timestamp,
    },
    /// The write was not done; its token is worth nothing.
    ReversalVoided {
        /// The call.
        call: CallId,
        /// The token's digest.
        token: Digest,
    },
    /// A write is not undone: there is no token for it, or none that counts.
    ReversalRefused {
        /// The call that should be undone, or that should undo.
        call: CallId,
        /// Why.
        reason: String,
    },
    /// A write was undone with its token.
    ReversalRedeemed {
        /// The call that undid it; the write's own where the playbook said so.
        call: CallId,
        /// The token's digest.
        token: Digest,
        /// The write.
        of: CallId,
    },
    /// Input: somebody wants the call stopped.
    CancelRequested {
        /// The call.
        call: CallId,
        /// Why.
        reason: CancelReason,
    },
    /// Input: a deadline passed.
    Ticked {
        /// What was sampled with it.
        #[serde(default, skip_serializing_if = "Gates::is_open")]
        gates: Gates,
    },
    /// Input: the session was taken up after a crash, or by another node.
    Resumed {
        /// Which decider goes on with it.
        #[serde(default, skip_serializing_if = "Decider::is_first")]
        decider: Decider,
        /// What was sampled with it.
        #[serde(default, skip_serializing_if = "Gates::is_open")]
        gates: Gates,
    },
    /// Input: the answer is known to have arrived.
    AnswerDelivered {
        /// The call.
        call: CallId,
    },
    /// Input: an attempt's result came after the attempt was over. It changes nothing but what is known, which may settle a doubt.
    LateResult {
        /// Which one.
        attempt: AttemptId,
        /// What came of it.
        report: Box<Report>,
    },
    /// Input: the session is over for good. The events before this one are dropped with it.
    SessionRetired {
        /// Its id, so that a record cannot be passed off as another session's.
        session: SessionId,
        /// Whose it was.
        principal: Principal,
        /// The door it came through.
        door: String,
        /// How many events are dropped.
        events: u64,
        /// Why.
        reason: RetireReason,
    },
    /// Input: a tool is no longer what it was pinned to.
    SchemaDrifted {
        /// What it was and what it is.
        #[serde(flatten)]
        drift: Drift,
    },
    /// Input: somebody approved what a tool became.
    SchemaApproved {
        /// What it was and what it is.
        #[serde(flatten)]
        drift: Drift,
        /// Who.
        by: String,
    },
    /// Input: a walk through a machine begins.
    WalkBegan {
        /// How.
        #[serde(flatten)]
        beginning: Box<Beginning>,
    },
    /// Input: the walk goes on under another declaration of its machine.
    WalkMigrated {
        /// The machine as it is declared now, and every other that it uses.
        definition: BTreeMap<MachineName, MachineSpec>,
        /// The digest of all of that.
        hash: Digest,
    },
    /// Input: an agent wants an action taken.
    MoveReceived {
        /// Its wish.
        #[serde(flatten)]
        taking: Box<Taking>,
        /// What was sampled with it.
        #[serde(default, skip_serializing_if = "Gates::is_open")]
        gates: Gates,
    },
    /// We said no; the walk is where it was.
    MoveRefused {
        /// The move.
        #[serde(rename = "move")]
        of: CallId,
        /// Why.
        refusal: Box<Refusal>,
    },
    /// It repeats another move, and gets its answer.
    MoveJoined {
        /// The move.
        #[serde(rename = "move")]
        of: CallId,
        /// The one it repeats.
        first: CallId,
    },
    /// Input: what was evaluated of a move.
    MoveWeighed {
        /// The move.
        #[serde(rename = "move")]
        of: CallId,
        /// What it said.
        #[serde(flatten)]
        weighed: Weighed,
    },
    /// The move is tried again, not before that time.
    MoveWaits {
        /// The move.
        #[serde(rename = "move")]
        of: CallId,
        /// Until when.
        until: Timestamp,
        /// The number of the try that follows.
        #[serde(rename = "try")]
        attempt: u32,
    },
    /// The walk is somewhere else now.
    MoveMade {
        /// The move.
        #[serde(rename = "move")]
        of: CallId,
        /// The action that was taken.
        action: ActionName,
        /// How many moves were made with it.
        moves: u64,
        /// Where it came from.
        from: StateName,
        /// Where it leads: a state for each machine that it goes on in, the innermost first; none where it enters another.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        to: Vec<StateName>,
        /// The machine it enters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        enters: Option<MachineName>,
        /// The digest and size of what it wrote into the fields.
        fields: Payload,
    },
    /// The move is over.
    MoveEnded {
        /// The move.
        #[serde(rename = "move")]
        of: CallId,
        /// How.
        outcome: Outcome,
        /// What is known of what it did.
        certainty: Certainty,
        /// When it can be taken again at the earliest, where that was declared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<Timestamp>,
        /// Whether a person allowed it after its agent had gone: the next equal wish needs no other permission.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        granted: bool,
    },
    /// The walk is back at its beginning.
    WalkReset {
        /// The wish for it.
        #[serde(rename = "move")]
        of: CallId,
        /// How many moves were made with it.
        moves: u64,
    },
    /// The walk is over, and what was done in it is undone.
    WalkAborted {
        /// The move that failed.
        #[serde(rename = "move")]
        of: CallId,
    },
    /// Input: what was done in a walk that was given up is undone, as far as it could be. It is said again where something of the
    /// rest was undone late.
    WalkUnwound {
        /// The move that failed.
        #[serde(rename = "move")]
        of: CallId,
        /// How many calls were undone.
        undone: u32,
        /// The calls that were not, as far as is known.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failed: Vec<CallId>,
        /// Those of them whose undoing is in doubt.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        doubtful: Vec<CallId>,
        /// The calls that no token undoes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<Left>,
        /// How many more of them there were, before those.
        #[serde(default, skip_serializing_if = "is_none_left")]
        more: u32,
    },
    /// Input that makes no sense here.
    Ignored {
        /// Why.
        why: String,
    },
    /// An error was ignored on purpose.
    SuppressedError {
        /// What was being done.
        doing: String,
        /// Why it does not matter.
        reason: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_none_left(more: &u32) -> bool {
    *more == 0
}
