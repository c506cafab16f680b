//! Bytes into inputs. A new input of the dispatcher gets its line in `World::input`, and what it carries a function below.

use std::collections::BTreeMap;
use std::sync::Arc;

use amends_core::attempt::{Payload, Recorded, Undo};
use amends_core::claim::ClaimKind;
use amends_core::contract::{KeyPlace, Place, Reverse, StatusReader};
use amends_core::dispatcher::cancel::CancelReason;
use amends_core::evidence::{Evidence, EvidenceSource};
use amends_core::expression::Expression;
use amends_core::failure::UpstreamWords;
use amends_core::gates::{Approval, UNSEEN_RUN};
use amends_core::inquiry::{Ask, AskKind, Inquiry, Way};
use amends_core::playbook::{PlaybookSpec, RuleSpec};
use amends_core::{
    AttemptId, Call, CallId, CallKey, Certainty, Claim, ClaimState, Code, Compensation, Contract, Deadline, Digest,
    Effect, EffectKind, Failure, Gates, Held, Input, InteractionId, Outcome, PersonAnswer, Playbook, Redeems, Refusal,
    RefusalKind, Report, Rules, Step, Timestamp, Verdict,
};

use crate::bytes::Bytes;
use crate::dispatcher::walker::Walker;

const CALLS: [&str; 5] = ["c0", "c1", "c2", "c3", "c4"];
const UPSTREAMS: [&str; 2] = ["shop", "bank"];
const EFFECTS: [EffectKind; 4] = [EffectKind::Read, EffectKind::Idempotent, EffectKind::Keyed, EffectKind::Write];
const CERTAINTIES: [Certainty; 4] =
    [Certainty::InDoubt, Certainty::Processed, Certainty::NotProcessed, Certainty::NotSent];
const OUTCOMES: [Outcome; 4] =
    [Outcome::Succeeded, Outcome::SucceededAfterCompensation, Outcome::Unresolved, Outcome::Exhausted];
/// When every world begins.
const BEGIN: Timestamp = Timestamp::from_ms(1_000_000);
/// How far time can run between two inputs: some weeks.
const STEP_MS_MAX: u64 = 1 << 32;

/// Everything around one session.
#[derive(Debug)]
pub struct World {
    /// The time of the last input.
    pub now: Timestamp,
    rules: Vec<Arc<Rules>>,
    /// The attempts that were asked for.
    sent: Vec<AttemptId>,
    /// The questions that were asked.
    asked: Vec<InteractionId>,
    /// What upstreams asked of the agent.
    inquired: Vec<(CallId, u32)>,
    /// What is known of its walk, where it has one.
    pub walker: Option<Walker>,
}

impl World {
    /// A world with up to three sets of rules.
    pub fn new(bytes: &mut Bytes<'_>) -> Self {
        let count = 1 + bytes.below(3);
        let rules = (0..count).map(|_| Arc::new(rules(bytes))).collect();
        Self { now: BEGIN, rules, sent: Vec::new(), asked: Vec::new(), inquired: Vec::new(), walker: None }
    }

    /// Finds rules by their digest.
    pub fn rules_of(&self) -> impl Fn(&Digest) -> Option<Arc<Rules>> + '_ {
        |digest| self.rules.get(digest.as_str().parse::<usize>().ok()?).cloned()
    }

    /// The next input, when it comes, and what is sampled with it. Time may seem to run backwards.
    pub fn next(&mut self, bytes: &mut Bytes<'_>, deadline: Option<Deadline>) -> (Timestamp, Gates, Input) {
        let due = deadline.map(|deadline| deadline.at).filter(|at| at.since_ms(self.now) < STEP_MS_MAX);
        let at = match bytes.below(8) {
            0..=2 => self.now + u64::from(bytes.byte()),
            3 => due.unwrap_or(self.now) - 1,
            4 | 5 => due.unwrap_or(self.now),
            6 => self.now - bytes.number(),
            _ => self.now + bytes.number() % STEP_MS_MAX,
        };
        let input = self.input(bytes, at.max(self.now));
        self.now = self.now.max(at);
        (at, gates(bytes), input)
    }

    /// Notes what a step asked for, so that results can answer it.
    pub fn learn(&mut self, step: &Step) {
        if let Some(walker) = &mut self.walker {
            walker.learn(step);
        }
        for effect in &step.effects {
            match effect {
                Effect::Send(attempt) => self.sent.push(attempt.id.clone()),
                Effect::Ask(interaction) => self.asked.push(interaction.id.clone()),
                Effect::Inquire(asking) => self.inquired.push((asking.attempt.call.clone(), asking.inquiry)),
                Effect::Abort(_)
                | Effect::Reply(_)
                | Effect::Withdraw(_)
                | Effect::Tell(_)
                | Effect::Begin(_)
                | Effect::Weigh { .. }
                | Effect::Join { .. }
                | Effect::Unwind { .. }
                | Effect::Retract { .. } => {}
            }
        }
    }

    /// What a driver does for the walk that has nothing else to do.
    pub fn due(&mut self) -> Option<Input> {
        let mut walker = self.walker.take()?;
        let due = walker.due(|| self.call(&mut Bytes::new(&[]), self.now));
        self.walker = Some(walker);
        due
    }

    fn input(&mut self, bytes: &mut Bytes<'_>, now: Timestamp) -> Input {
        if let Some(mut walker) = self.walker.take() {
            let input = bytes.below(3).gt(&0).then(|| walker.input(bytes, now, |bytes| self.call(bytes, now)));
            self.walker = Some(walker);
            if let Some(input) = input {
                return input;
            }
        }
        match bytes.below(15) {
            0..=2 => Input::Call(Box::new(self.call(bytes, now))),
            3..=6 => Input::Result { attempt: self.attempt(bytes), report: Box::new(report(bytes)) },
            7 => {
                let reason = bytes.one_of(&[CancelReason::Asked, CancelReason::Disconnected]);
                Input::Cancel { call: call_id(bytes), reason }
            }
            8 => Input::Delivery { call: call_id(bytes) },
            9 => Input::Resume,
            11 => {
                let (call, inquiry) = self.inquiry(bytes);
                Input::Withdrawal { call, inquiry }
            }
            12 => Input::Answer { interaction: self.question(bytes), answer: Box::new(answer(bytes, now)) },
            13 => Input::Inquiry { attempt: self.attempt(bytes), inquiry: Box::new(inquiry(bytes)) },
            14 => {
                let (call, inquiry) = self.inquiry(bytes);
                Input::Inputs { call, inquiry, inputs: payload(bytes) }
            }
            _ => Input::Tick,
        }
    }

    fn call(&self, bytes: &mut Bytes<'_>, now: Timestamp) -> Call {
        let id = call_id(bytes);
        let n = bytes.below(self.rules.len());
        let rules = self.rules[n].clone();
        let key = bytes.once_in(2).then(|| CallKey("key".into()));
        let claims = if rules.contract.effect.is_read() { Vec::new() } else { claims(bytes, key.is_some()) };
        let reversible = rules.contract.reverse.is_some() && !bytes.once_in(8);
        let redeems = bytes.once_in(6);
        let patience_ms = if bytes.once_in(4) { bytes.number() } else { rules.contract.deadline_ms };
        Call {
            tool: "tool".into(),
            upstream: bytes.one_of(&UPSTREAMS).into(),
            rules_hash: Digest::new(n.to_string()),
            rules,
            arguments: Payload { digest: "arguments".into(), size: bytes.number() },
            principal: "local".into(),
            deadline: now + patience_ms,
            key,
            effect_key: format!("key-of-{id}"),
            repeat_of: bytes.once_in(4).then(|| held(bytes, now)),
            claims,
            evidence: if bytes.once_in(4) { evidence(bytes) } else { Vec::new() },
            reversal: reversible.then(|| Digest::new(format!("token-of-{id}"))),
            redeems: redeems.then(|| Redeems { token: "token".into(), session: "s".into(), call: "c9".into() }),
            view: None,
            leg: None,
            id,
        }
    }

    /// One that was asked, the latest first, or one that never was.
    fn question(&self, bytes: &mut Bytes<'_>) -> InteractionId {
        let back = bytes.below(4);
        self.asked.len().checked_sub(back + 1).map_or_else(|| "int_none".into(), |at| self.asked[at].clone())
    }

    /// One that was made, the latest first, or one that never was.
    fn inquiry(&self, bytes: &mut Bytes<'_>) -> (CallId, u32) {
        let back = bytes.below(4);
        match self.inquired.len().checked_sub(back + 1) {
            Some(at) => self.inquired[at].clone(),
            None => (call_id(bytes), u32::from(bytes.byte() % 4)),
        }
    }

    /// One that was asked for, the latest first, or any other.
    fn attempt(&self, bytes: &mut Bytes<'_>) -> AttemptId {
        let back = bytes.below(6);
        match self.sent.len().checked_sub(back + 1) {
            Some(at) => self.sent[at].clone(),
            None => AttemptId { call: call_id(bytes), n: u32::from(bytes.byte() % 40) },
        }
    }
}

/// A tool's contract and playbook, as the configuration would take them.
pub fn rules(bytes: &mut Bytes<'_>) -> Rules {
    let contract = contract(bytes);
    let mut playbook = Playbook::default();
    for _ in 0..bytes.below(3) {
        let verdict = bytes.one_of(&Verdict::ALL);
        let rule = RuleSpec {
            compensation: bytes.one_of(&Compensation::WORDS).into(),
            backoff_ms: bytes.once_in(2).then(|| (0..=bytes.below(20)).map(|_| bytes.number()).collect()),
            jitter_percent: bytes.once_in(2).then(|| bytes.byte()),
            queue: None,
        };
        let spec = PlaybookSpec::from([(verdict.as_str().to_owned(), rule)]);
        playbook = Playbook::parse(&spec, &contract).unwrap_or(playbook);
    }
    Rules { contract, playbook }
}

fn contract(bytes: &mut Bytes<'_>) -> Contract {
    let effect = bytes.one_of(&EFFECTS);
    let key = KeyPlace {
        place: Place::Argument("key".into()),
        window_ms: bytes.one_of(&[86_400_000, 70_000, 1, u64::MAX]),
        durable: bytes.once_in(2),
    };
    let status = !effect.is_read() && bytes.once_in(2);
    Contract {
        effect,
        declared: !bytes.once_in(4),
        key: (effect == EffectKind::Keyed).then_some(key),
        status: status.then(|| status_reader(bytes.once_in(2))),
        settles_within_ms: bytes.once_in(2).then(|| bytes.number()),
        reverse: (!effect.is_read() && bytes.once_in(3)).then(|| Reverse {
            tool: "undo".into(),
            args: BTreeMap::new(),
            within_ms: bytes.number(),
        }),
        answer_within_ms: bytes.one_of(&[86_400_000, 1, 0, u64::MAX]),
        ..Contract::undeclared(
            bytes.one_of(&[5_000, 1, 60_000, u64::MAX]),
            bytes.one_of(&[50_000, 5_000, 1, 0, 86_400_000, u64::MAX]),
            bytes.one_of(&[600_000, 0, u64::MAX]),
        )
    }
}

fn evidence(bytes: &mut Bytes<'_>) -> Vec<Evidence> {
    let piece = |bytes: &mut Bytes<'_>| {
        let hash = bytes.once_in(2).then(|| Digest::from(bytes.one_of(&["result", "other"])));
        let from = if hash.is_some() { EvidenceSource::Call } else { EvidenceSource::Fresh };
        Evidence { tool: "read".into(), reference: "reference".into(), hash, from }
    };
    (0..=bytes.below(2)).map(|_| piece(bytes)).collect()
}

fn answer(bytes: &mut Bytes<'_>, at: Timestamp) -> PersonAnswer {
    let choices = ["happened", "did_not_happen", "approve", "deny", "seen", "unknown", "", "approve_arguments"];
    let choice = bytes.one_of(&choices);
    let by = bytes.one_of(&["ada", "bob"]);
    PersonAnswer { choice: choice.into(), by: by.into(), note: None, at, content: None }
}

fn status_reader(by_key: bool) -> StatusReader {
    let happened = Expression::parse("result.found").expect("it is an expression");
    StatusReader { tool: "status".into(), args: BTreeMap::new(), happened, by_key }
}

fn call_id(bytes: &mut Bytes<'_>) -> CallId {
    bytes.one_of(&CALLS).into()
}

fn claims(bytes: &mut Bytes<'_>, keyed: bool) -> Vec<Claim> {
    let fingerprint = Digest::from(bytes.one_of(&["arguments", "others"]));
    let claim = |kind, name: &str| Claim { name: name.into(), fingerprint: fingerprint.clone(), kind };
    let mut claims = match (bytes.once_in(8), keyed) {
        (true, _) => Vec::new(),
        (false, true) => vec![claim(ClaimKind::Key, "by-key"), claim(ClaimKind::ArgumentsIfFree, "by-arguments")],
        (false, false) => vec![claim(ClaimKind::Arguments, "by-arguments")],
    };
    if bytes.once_in(3) {
        claims.push(claim(ClaimKind::Object, "by-object"));
    }
    claims
}

fn held(bytes: &mut Bytes<'_>, now: Timestamp) -> Held {
    Held {
        name: bytes.one_of(&["by-key", "by-arguments", "by-object"]).into(),
        session: "another".into(),
        call: call_id(bytes),
        state: bytes.one_of(&[
            ClaimState::InDoubt,
            ClaimState::InFlight,
            ClaimState::Complete,
            ClaimState::Awaiting,
            ClaimState::Granted,
        ]),
        fingerprint: bytes.one_of(&["arguments", "others"]).into(),
        effect_key: "key-of-another".into(),
        since: now - bytes.number(),
    }
}

fn report(bytes: &mut Bytes<'_>) -> Report {
    let failed = !bytes.once_in(3);
    let certainty = bytes.one_of(&CERTAINTIES);
    Report {
        certainty: if failed || bytes.once_in(8) { certainty } else { Certainty::Processed },
        answered: !bytes.once_in(3),
        failure: failed.then(|| failure(bytes)),
        payload: bytes.once_in(2).then(|| payload(bytes)),
        happened: bytes.one_of(&[None, Some(true), Some(false)]),
        fits: bytes.once_in(2),
        recorded: bytes.once_in(4).then(|| Recorded {
            outcome: bytes.one_of(&OUTCOMES),
            certainty: bytes.one_of(&CERTAINTIES),
            code: None,
            refused: None,
        }),
        shape: None,
        suppressed: Vec::new(),
        granted: bytes.once_in(4).then(String::new),
        inquiry: (!failed && bytes.once_in(4)).then(|| Box::new(inquiry(bytes))),
        undo: (!failed && bytes.once_in(4)).then(|| Box::new(Undo { tool: "undo".into(), within_ms: bytes.number() })),
    }
}

fn payload(bytes: &mut Bytes<'_>) -> Payload {
    Payload { digest: bytes.one_of(&["a", "b"]).into(), size: bytes.number() }
}

fn inquiry(bytes: &mut Bytes<'_>) -> Inquiry {
    let kinds = [AskKind::Form, AskKind::Url, AskKind::Sampling, AskKind::Roots, AskKind::Other];
    let asks = (0..bytes.below(3)).map(|_| Ask { kind: bytes.one_of(&kinds), payload: payload(bytes) }).collect();
    Inquiry::of(asks, bytes.one_of(&[Way::Line, Way::Return, Way::Undeclared, Way::Closed]))
}

fn failure(bytes: &mut Bytes<'_>) -> Failure {
    Failure {
        code: bytes.one_of(&Code::ALL),
        status: bytes.once_in(4).then(|| bytes.one_of(&[429, 503, 409])),
        retry_after_ms: bytes.once_in(4).then(|| bytes.number()),
        upstream: bytes.once_in(4).then(|| UpstreamWords { text: Some("no".into()), ..UpstreamWords::default() }),
    }
}

/// What is sampled: mostly nothing but the runs of the upstreams.
fn gates(bytes: &mut Bytes<'_>) -> Gates {
    let kind = bytes.one_of(&RefusalKind::ALL);
    let refusal = bytes.once_in(16).then(|| Box::new(Refusal::of(kind, "no")));
    let seen = bytes.below(4);
    let run = bytes.one_of(&[UNSEEN_RUN, 1, 2]);
    let runs = UPSTREAMS.iter().take(seen).map(|upstream| ((*upstream).into(), run)).collect();
    let spent = if bytes.once_in(4) { [UPSTREAMS[0].into()].into() } else { Default::default() };
    let (queue, policy) = ("ops".to_owned(), String::new());
    let approval = || Approval { queue, persons: 2, policy, requester_may: false, form: None };
    let approval = bytes.once_in(3).then(|| Box::new(approval()));
    Gates { refusal, runs, spent, approval, ..Gates::default() }
}
