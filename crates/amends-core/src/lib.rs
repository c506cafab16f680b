//! The core of Amends: it decides, and does nothing else.
//!
//! A [`Dispatcher`] is one session. It takes one [`Input`] at a time, with the time and the sampled [`Gates`], and
//! returns a [`Step`]: the events that happened and the effects to perform. It reads no clock, draws no randomness and
//! does no IO, so that a trace can be folded into the state it led to, or decided again.
//!
//! The order to read in: what is known of an attempt ([`Certainty`], [`Failure`], [`Report`]), what the operator declared
//! ([`Contract`], [`Playbook`]), what the judgement is ([`Verdict`], [`Compensation`], [`Outcome`]), what the agent gets
//! ([`Envelope`]), and then the dispatcher that joins them.

pub mod approval;
pub mod attempt;
pub mod call;
pub mod certainty;
pub mod claim;
pub mod compensation;
pub mod contract;
pub mod dispatcher;
pub mod drift;
pub mod effect;
pub mod envelope;
pub mod event;
pub mod evidence;
pub mod expression;
pub mod failure;
pub mod gates;
pub mod id;
pub mod inquiry;
pub mod interaction;
pub mod limits;
pub mod machine;
pub mod nearest;
pub mod outcome;
pub mod playbook;
pub mod privacy;
pub mod recovery;
pub mod refusal;
pub mod registry;
pub mod restraint;
pub mod reversal;
pub mod span;
pub mod time;
pub mod verdict;
pub mod walk;

pub use approval::{Scope, Yes};
pub use attempt::{Attempt, Purpose, Report};
pub use call::{Call, CallKey, Rules};
pub use certainty::Certainty;
pub use claim::{Claim, ClaimChange, ClaimState, Held};
pub use compensation::Compensation;
pub use contract::{Contract, EffectKind};
pub use dispatcher::{Deadline, Dispatcher, Input, Step, TraceError};
pub use drift::Drift;
pub use effect::{Answer, Effect, Reply};
pub use envelope::{Envelope, Status};
pub use event::{Decider, Event, Fact};
pub use failure::Failure;
pub use gates::{Approval, Gates};
pub use id::{AttemptId, CallId, Digest, InteractionId, Principal, SessionId, Tenant, ToolName, UpstreamName};
pub use inquiry::{Ask, AskKind, Inquiry, SignIn, Unanswered, Way};
pub use interaction::{Interaction, PersonAnswer};
pub use outcome::Outcome;
pub use playbook::Playbook;
pub use recovery::Recovery;
pub use refusal::{Refusal, RefusalKind};
pub use registry::{Class, Code, WhoMustAct};
pub use reversal::{Redeems, ReversalChange, ReversalState};
pub use time::Timestamp;
pub use verdict::Verdict;
