//! A story as it is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use amends_core::attempt::Payload;
use amends_core::call::Received;
use amends_core::claim::ClaimKind;
use amends_core::evidence::Evidence;
use amends_core::gates::{Approval, Patience};
use amends_core::machine::MachineSpec;
use amends_core::playbook::PlaybookSpec;
use amends_core::refusal::{Refusal, RefusalKind};
use amends_core::{
    Call, CallKey, Claim, ClaimState, Contract, Digest, EffectKind, Gates, Held, Playbook, Recovery, Redeems, Report,
    Rules, Timestamp, ToolName,
};
use serde::Deserialize;

use super::GoldenError;
use crate::scenario::StepSpec;

/// When every story begins.
pub(super) use crate::scenario::BEGIN;

/// A story as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Story {
    /// What it shows, in a sentence.
    pub(super) story: String,
    #[serde(default)]
    pub(super) tool: ToolSpec,
    #[serde(default)]
    pub(super) playbook: PlaybookSpec,
    /// The settled rules of a recorded call, in the place of `tool` and `playbook`.
    rules: Option<Rules>,
    #[serde(default)]
    pub(super) inputs: Vec<InputSpec>,
    /// The machine that the story is about, where it is about a walk.
    pub(super) machine: Option<MachineSpec>,
    /// What governs the tools that it calls; those that are left out are governed by `tool`.
    #[serde(default)]
    tools: BTreeMap<String, ToolSpec>,
    /// What is done in the walk, in the place of `inputs`.
    #[serde(default)]
    pub(super) steps: Vec<StepSpec>,
    pub(super) expected: Option<Expected>,
}

/// The golden part.
#[derive(Debug, Deserialize)]
pub(super) struct Expected {
    pub(super) trace: String,
}

/// The tool's contract; what is left out is as the config has it.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ToolSpec {
    pub(super) name: String,
    effect: EffectKind,
    declared: bool,
    key: Option<amends_core::contract::KeyPlace>,
    status: Option<amends_core::contract::StatusReader>,
    settles_within_ms: Option<u64>,
    timeout_ms: u64,
    deadline_ms: u64,
    repeat_window_ms: u64,
    rejects_before_effect: Vec<u16>,
    reverse: Option<amends_core::contract::Reverse>,
    queue: Option<String>,
    answer_within_ms: u64,
    input_within_ms: u64,
    /// Whether it names the object it writes.
    object: bool,
    /// What its calls are based on.
    evidence: Vec<Evidence>,
}

impl Default for ToolSpec {
    fn default() -> Self {
        Self {
            name: "issue_refund".into(),
            effect: EffectKind::Write,
            declared: true,
            key: None,
            status: None,
            settles_within_ms: None,
            timeout_ms: 5_000,
            deadline_ms: 50_000,
            repeat_window_ms: 600_000,
            rejects_before_effect: Vec::new(),
            reverse: None,
            queue: None,
            answer_within_ms: 3_600_000,
            input_within_ms: 300_000,
            object: false,
            evidence: Vec::new(),
        }
    }
}

/// One input. Without `at` or `after` it comes a hundred milliseconds after the one before, a tick when it is due.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InputSpec {
    pub(super) at: Option<u64>,
    /// How long after the one before.
    pub(super) after: Option<u64>,
    /// A call as it was recorded.
    pub(super) received: Option<Box<Received>>,
    /// What came of an attempt, as it was recorded.
    pub(super) report: Option<Box<Report>>,
    /// What was sampled with it.
    pub(super) gates: Option<Gates>,
    /// A call of that id.
    pub(super) call: Option<String>,
    /// The agent's own key.
    key: Option<String>,
    /// What it repeats, as the ledger said.
    repeat_of: Option<RepeatSpec>,
    /// A No from outside the session.
    pub(super) refusal: Option<RefusalKind>,
    /// The result of that attempt, and what it says.
    pub(super) result: Option<String>,
    pub(super) says: Option<String>,
    /// The question that a person answers, and how.
    pub(super) answer: Option<String>,
    pub(super) choice: Option<String>,
    /// Who answers, where that is not ada.
    pub(super) by: Option<String>,
    /// Who must say yes to the call.
    pub(super) approval: Option<Approval>,
    /// How the wait for that is spent.
    pub(super) patience: Option<Patience>,
    /// The attempt whose upstream asks something of the agent; `says` tells what.
    pub(super) asks: Option<String>,
    /// The call for which the agent answers an inquiry, and which one.
    pub(super) gives: Option<String>,
    /// The call whose upstream takes back what it asked.
    pub(super) withdraws: Option<String>,
    pub(super) inquiry: Option<u32>,
    /// Whose token it redeems.
    redeems: Option<String>,
    /// The call to be stopped, and why.
    pub(super) cancel: Option<String>,
    pub(super) disconnect: Option<String>,
    /// The agent's turn was stopped while this call ran.
    pub(super) end_turn: Option<String>,
    /// The agent ended its session while this call ran.
    pub(super) end_session: Option<String>,
    pub(super) delivery: Option<String>,
    #[serde(default)]
    pub(super) tick: bool,
    #[serde(default)]
    pub(super) resume: bool,
    /// The run of the upstream from here on.
    pub(super) run: Option<u64>,
    /// Whether the upstream's retry budget is spent from here on.
    pub(super) budget_spent: Option<bool>,
    /// Until when the upstream's breaker is open from here on; 0 where it is closed.
    pub(super) breaker_until: Option<u64>,
}

/// The call that a call repeats.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RepeatSpec {
    call: String,
    state: ClaimState,
    #[serde(default)]
    other_arguments: bool,
    /// It is not a repeat: it writes to the same object.
    #[serde(default)]
    object: bool,
}

impl Story {
    pub(super) fn rules(&self) -> Result<Arc<Rules>, GoldenError> {
        if let Some(rules) = &self.rules {
            return Ok(Arc::new(rules.clone()));
        }
        self.tool.rules(&self.playbook)
    }

    /// What governs each tool that is named; one that is not is governed by those rules.
    pub(super) fn rules_of(&self, others: &Arc<Rules>) -> Result<impl Fn(&ToolName) -> Arc<Rules>, GoldenError> {
        let mut named = BTreeMap::new();
        for (name, tool) in &self.tools {
            named.insert(ToolName::new(name.as_str()), tool.rules(&PlaybookSpec::default())?);
        }
        let others = others.clone();
        Ok(move |tool: &ToolName| named.get(tool).unwrap_or(&others).clone())
    }
}

impl ToolSpec {
    fn rules(&self, playbook: &PlaybookSpec) -> Result<Arc<Rules>, GoldenError> {
        let contract = Contract {
            effect: self.effect,
            declared: self.declared,
            key: self.key.clone(),
            status: self.status.clone(),
            settles_within_ms: self.settles_within_ms,
            rejects_before_effect: self.rejects_before_effect.clone(),
            reverse: self.reverse.clone(),
            queue: self.queue.clone(),
            answer_within_ms: self.answer_within_ms,
            input_within_ms: self.input_within_ms,
            ..Contract::undeclared(self.timeout_ms, self.deadline_ms, self.repeat_window_ms)
        };
        let playbook =
            Playbook::parse(playbook, &contract).map_err(|error| GoldenError::Senseless { what: error.to_string() })?;
        Ok(Arc::new(Rules { contract, playbook }))
    }
}

impl InputSpec {
    /// The call it is, under those rules.
    pub(super) fn to_call(&self, id: &str, tool: &ToolSpec, rules: &Arc<Rules>, now: Timestamp) -> Call {
        let fingerprint = Digest::from("arguments");
        let claim = |kind, name: &str| Claim { name: name.into(), fingerprint: fingerprint.clone(), kind };
        let mut claims = match &self.key {
            _ if rules.contract.effect.is_read() => Vec::new(),
            Some(_) => vec![claim(ClaimKind::Key, "by-key"), claim(ClaimKind::ArgumentsIfFree, "by-arguments")],
            None => vec![claim(ClaimKind::Arguments, "by-arguments")],
        };
        if tool.object {
            claims.push(claim(ClaimKind::Object, "by-object"));
        }
        let repeat_of = self.repeat_of.as_ref().map(|repeat| Held {
            name: match (&self.key, repeat.object) {
                (_, true) => "by-object".into(),
                (Some(_), false) => "by-key".into(),
                (None, false) => "by-arguments".into(),
            },
            session: "another".into(),
            call: repeat.call.as_str().into(),
            state: repeat.state,
            fingerprint: if repeat.other_arguments { "others".into() } else { fingerprint.clone() },
            effect_key: match repeat.state {
                ClaimState::Granted => String::new(),
                _ => format!("key-of-{}", repeat.call),
            },
            since: now - 10_000,
        });
        Call {
            id: id.into(),
            tool: tool.name.as_str().into(),
            upstream: "shop".into(),
            rules: rules.clone(),
            rules_hash: "rules".into(),
            arguments: Payload { digest: fingerprint.clone(), size: 20 },
            principal: "local".into(),
            deadline: now + rules.contract.deadline_ms,
            key: self.key.clone().map(CallKey),
            claims,
            effect_key: format!("key-of-{id}"),
            repeat_of,
            evidence: tool.evidence.clone(),
            reversal: tool.reverse.as_ref().map(|_| Digest::new(format!("token-of-{id}"))),
            redeems: self.redeems.as_ref().map(|call| Redeems {
                token: Digest::new(format!("token-of-{call}")),
                session: "another".into(),
                call: call.as_str().into(),
            }),
            view: None,
            leg: None,
        }
    }

    /// The No it comes with, as a driver words it.
    pub(super) fn to_refusal(&self, tool: &str) -> Option<Box<Refusal>> {
        let kind = self.refusal?;
        let mut refusal = Refusal::of(kind, format!("there is no tool `{tool}`"));
        let known = BTreeMap::from([("issue_refund", ()), ("get_order", ())]);
        let fuzzy_matches = amends_core::nearest::nearest(tool, known.keys().copied());
        refusal.recovery = Some(Recovery { fuzzy_matches, ..Recovery::default() });
        Some(Box::new(refusal))
    }
}
