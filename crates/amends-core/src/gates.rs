//! What lives outside a session, as it was when an input arrived.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::id::{ToolName, UpstreamName};
use crate::interaction::Form;
use crate::limits::{GRANTED_FOR_MS, HOLD_MS};
use crate::refusal::Refusal;
use crate::time::Timestamp;
use crate::walk::Declared;

/// A run that stands for an upstream whose restarts are not ours to see.
pub const UNSEEN_RUN: u64 = 0;

/// What lives outside a session, sampled by the driver and recorded with the input, so that deciding again sees what was
/// seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gates {
    /// A No from outside the session: an unknown tool, arguments that do not fit, a limit, a ledger that is away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Box<Refusal>>,
    /// Which run of each upstream that matters would be sent to: another one after it restarted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runs: BTreeMap<UpstreamName, u64>,
    /// The upstreams whose retry budget is spent.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub spent: BTreeSet<UpstreamName>,
    /// The breakers that are not closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakers: Vec<OpenBreaker>,
    /// The clock of the process that takes a session up is behind the session's last event: how long nobody drove it is
    /// not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clock_behind: bool,
    /// Who must say yes before anything is sent; nobody where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
    /// How the wait for that yes is spent; as by default where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<Box<Patience>>,
    /// What the policies said, where that is not a plain yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Box<Ruling>>,
    /// What the call costs, where that is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The conversation that the call belongs to, as its agent names it, where its door has such names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The tool before which it is asked, where it is a question of a task: the task goes on with the call of that tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ToolName>,
    /// The machine as it is declared now, where a walk that begins again is to begin under that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Box<Declared>>,
}

/// Which policies decided about a call, and why. It is for whoever runs the gateway: no answer shows it to an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    /// The policies that decided, by their ids; none where no policy permits the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// Why, in the words of the policies, or in those of whoever could not evaluate one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// What a call costs, in thousandths of whatever is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// How much.
    pub milli: u64,
    /// How much the calls of one session may cost together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_max_milli: Option<u64>,
    /// What its principal has left for today, where that is less than it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_left_milli: Option<u64>,
}

/// Who must say yes before a call is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The queue the question is put on.
    pub queue: String,
    /// How many persons must say yes, each under another name.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub persons: u8,
    /// The policy that asks for it, for the operator; empty where the contract does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// Whether the one who called may say yes as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requester_may: bool,
    /// What is asked for, where that is more than a yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Box<Form>>,
}

/// How the wait for a person is spent, as it was configured when the call arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patience {
    /// How long the agent is kept waiting before it is told that a person is asked.
    pub hold_ms: u64,
    /// How long the person has; as the contract says where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_within_ms: Option<u64>,
    /// For how long a yes that nobody waited for is good.
    pub granted_for_ms: u64,
    /// What counts at once, where nobody is there to be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headless: Option<Headless>,
    /// Whether the call goes on when a person says yes, though nobody waits for its answer: its agent looks for that later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
}

/// What counts where nobody is there to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Headless {
    /// Every call is as if a person had said yes.
    Approve,
    /// Every call is as if a person had said no.
    Deny,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            hold_ms: HOLD_MS,
            answer_within_ms: None,
            granted_for_ms: GRANTED_FOR_MS,
            headless: None,
            goes_on: false,
        }
    }
}

/// A number of thousandths as a person writes it.
pub fn thousandths(milli: u64) -> String {
    match milli % 1000 {
        0 => (milli / 1000).to_string(),
        rest => format!("{}.{}", milli / 1000, format!("{rest:03}").trim_end_matches('0')),
    }
}

const fn one() -> u8 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_one(persons: &u8) -> bool {
    *persons == 1
}

/// A breaker that is not closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenBreaker {
    /// Whose it is.
    pub upstream: UpstreamName,
    /// The tool, where it is only that tool's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    /// When it may close, at the earliest.
    pub until: Timestamp,
}

/// Why a call that could be sent again is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldBack {
    /// The upstream's retry budget is spent.
    Budget,
    /// A breaker is open.
    Breaker,
}

impl HeldBack {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Breaker => "breaker",
        }
    }
}

impl Gates {
    /// Whether they say nothing.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// Which run of that upstream would be sent to.
    pub fn run(&self, upstream: &UpstreamName) -> Option<u64> {
        self.runs.get(upstream).copied()
    }

    /// Why nothing is sent again to that tool; nothing where it may be.
    pub fn held_back(&self, upstream: &UpstreamName, tool: &ToolName) -> Option<HeldBack> {
        if self.breaker_until(upstream, tool).is_some() {
            return Some(HeldBack::Breaker);
        }
        self.spent.contains(upstream).then_some(HeldBack::Budget)
    }

    /// When the breakers in the way of that tool may be closed, at the earliest.
    pub fn breaker_until(&self, upstream: &UpstreamName, tool: &ToolName) -> Option<Timestamp> {
        let in_the_way = |breaker: &&OpenBreaker| {
            breaker.upstream == *upstream && breaker.tool.as_ref().is_none_or(|its| its == tool)
        };
        self.breakers.iter().filter(in_the_way).map(|breaker| breaker.until).max()
    }
}
