//! The tools of the small worlds: one for every kind of contract, with as few sends as can be.

use std::collections::BTreeMap;
use std::sync::Arc;

use amends_core::attempt::Payload;
use amends_core::claim::ClaimKind;
use amends_core::contract::{KeyPlace, Place, Reverse, StatusReader};
use amends_core::expression::Expression;
use amends_core::playbook::RuleSpec;
use amends_core::{
    Call, CallId, CallKey, Claim, Contract, Digest, EffectKind, Playbook, Redeems, Rules, SessionId, Timestamp,
};

use crate::world::Flaw;

const HOUR_MS: u64 = 60 * 60 * 1000;
/// Longer than any world lasts.
const LONG_MS: u64 = 24 * 24 * HOUR_MS;
/// How long a request to the tool with a status really lives.
pub(crate) const LIFE_MS: u64 = 8_000;

/// The token of the one write that can be undone.
pub(crate) const TOKEN: &str = "token";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Tool {
    Write,
    WriteWithStatus,
    Keyed,
    Idempotent,
    Read,
    Reversible,
    Undo,
}

impl Tool {
    pub(crate) const ALL: [Self; 7] =
        [Self::Write, Self::WriteWithStatus, Self::Keyed, Self::Idempotent, Self::Read, Self::Reversible, Self::Undo];

    pub(crate) fn effect(self) -> EffectKind {
        match self {
            Self::Write | Self::WriteWithStatus | Self::Reversible | Self::Undo => EffectKind::Write,
            Self::Keyed => EffectKind::Keyed,
            Self::Idempotent => EffectKind::Idempotent,
            Self::Read => EffectKind::Read,
        }
    }

    pub(crate) fn hash(self) -> Digest {
        Digest::new(format!("rules-{self:?}"))
    }

    pub(crate) fn rules(self, flaw: Option<Flaw>) -> Arc<Rules> {
        let mut contract =
            Contract { effect: self.effect(), declared: true, ..Contract::undeclared(3_000, 9_000, LONG_MS) };
        contract.answer_within_ms = HOUR_MS;
        match self {
            Self::Keyed => {
                let place = Place::Argument("key".into());
                contract.key = Some(KeyPlace { place, window_ms: LONG_MS, durable: true });
            }
            Self::WriteWithStatus => {
                let happened = Expression::parse("result.found").expect("it is an expression");
                contract.status =
                    Some(StatusReader { tool: "status".into(), args: BTreeMap::new(), happened, by_key: true });
                contract.settles_within_ms = Some(if flaw == Some(Flaw::NegativeAtOnce) { 0 } else { LIFE_MS });
            }
            Self::Reversible => {
                contract.reverse = Some(Reverse { tool: "undo".into(), args: BTreeMap::new(), within_ms: LONG_MS });
            }
            Self::Write | Self::Idempotent | Self::Read | Self::Undo => {}
        }
        let once = || RuleSpec {
            compensation: "retry_with_backoff".into(),
            backoff_ms: Some(vec![200]),
            jitter_percent: Some(0),
            ..RuleSpec::default()
        };
        let spec = ["transient_timeout", "upstream_unavailable"].map(|verdict| (verdict.to_owned(), once()));
        let playbook = Playbook::parse(&BTreeMap::from(spec), &contract).expect("it is a playbook");
        Arc::new(Rules { contract, playbook })
    }
}

/// One call of a world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) tool: Tool,
    /// The session it is made in.
    pub(crate) session: usize,
    /// Calls with the same number are one wish, which may take effect once.
    pub(crate) wish: u8,
    pub(crate) args: u8,
    /// The agent's own key.
    pub(crate) key: Option<&'static str>,
    /// Whether it writes to the one object there is.
    pub(crate) object: bool,
}

pub(crate) fn call_id(index: usize) -> CallId {
    CallId::new(format!("c{index}"))
}

pub(crate) fn session_id(index: usize) -> SessionId {
    SessionId::new(format!("s{index}"))
}

pub(crate) fn own_key(index: usize) -> String {
    format!("e-c{index}")
}

impl Wish {
    pub(crate) fn call(&self, index: usize, now: u64, rules: Arc<Rules>) -> Call {
        let fingerprint = Digest::new(format!("f{}", self.args));
        let claim = |kind, name: String| Claim { name: Digest::new(name), fingerprint: fingerprint.clone(), kind };
        let arguments = format!("a-{:?}-{}", self.tool, self.args);
        let mut claims = match self.key {
            _ if self.tool.effect().is_read() => Vec::new(),
            Some(key) => vec![claim(ClaimKind::Key, format!("k-{key}")), claim(ClaimKind::ArgumentsIfFree, arguments)],
            None => vec![claim(ClaimKind::Arguments, arguments)],
        };
        if self.object {
            claims.push(claim(ClaimKind::Object, "object".into()));
        }
        let redeems = (self.tool == Tool::Undo).then(|| Redeems {
            token: Digest::new(TOKEN),
            session: session_id(0),
            call: call_id(0),
        });
        Call {
            id: call_id(index),
            tool: format!("{:?}", self.tool).as_str().into(),
            upstream: "shop".into(),
            deadline: Timestamp::from_ms(now + rules.contract.deadline_ms),
            rules,
            rules_hash: self.tool.hash(),
            arguments: Payload { digest: fingerprint.clone(), size: 2 },
            principal: "agent".into(),
            key: self.key.map(|key| CallKey(key.into())),
            claims,
            effect_key: own_key(index),
            repeat_of: None,
            evidence: Vec::new(),
            reversal: (self.tool == Tool::Reversible).then(|| Digest::new(TOKEN)),
            redeems,
            view: None,
            leg: None,
        }
    }
}
