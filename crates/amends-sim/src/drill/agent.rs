//! The agent: one wish, and the ways to ask for it again.

use amends_core::attempt::Payload;
use amends_core::claim::ClaimKind;
use amends_core::dispatcher::cancel::CancelReason;
use amends_core::evidence::{Evidence, EvidenceSource};
use amends_core::{Call, CallId, Claim, Digest, Input, Redeems, SessionId, ToolName};

use super::promise::{Judged, Promise, broken};
use super::stage::{AWAY_MS, Happening, Stage};
use super::subject::Scene;
use super::told::Told;
use super::upstream::Request;

/// The call of the other agent.
const OTHER: &str = "another";
/// What the calls that redeem a token are called.
const UNDO: &str = "undo_";

/// Whether that is the call of the other agent.
pub(super) fn is_other(call: &CallId) -> bool {
    call.as_str() == OTHER
}

/// Whether that call redeems a token.
pub(super) fn is_undoing(call: &CallId) -> bool {
    call.as_str().starts_with(UNDO)
}

/// How an agent takes an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It acknowledges its answer, and asks again only if that is said to do no harm.
    Polite,
    /// It acknowledges nothing, and always asks once more with equal arguments.
    Rude,
}

/// The agent with its one wish.
#[derive(Debug)]
pub(super) struct Agent {
    /// The call it waits for.
    pub(super) call: Option<(CallId, SessionId)>,
    /// The call whose answer it heard last.
    pub(super) heard_of: Option<CallId>,
    /// How often it has asked.
    pub(super) asked: u32,
    /// How often it may still ask again of its own accord.
    pub(super) repeats_left: u32,
    /// How often it may still ask again because its connection broke.
    pub(super) cuts_left: u32,
    /// Since when it has been without an answer.
    pub(super) waiting_since: Option<u64>,
    /// The longest it was without one.
    pub(super) wait_ms: u64,
    /// What it was told, in order.
    pub(super) told: Vec<Told>,
}

impl Agent {
    pub(super) const fn new() -> Self {
        Self {
            call: None,
            heard_of: None,
            asked: 0,
            repeats_left: 1,
            cuts_left: 4,
            waiting_since: None,
            wait_ms: 0,
            told: Vec::new(),
        }
    }

    /// It has an answer.
    pub(super) fn hears(&mut self, now: u64, told: Told) {
        if let Some(since) = self.waiting_since.take() {
            self.wait_ms = self.wait_ms.max(now - since);
        }
        self.call = None;
        self.told.push(told);
    }
}

impl Stage<'_> {
    /// The agent asks, for the first time or again, on a connection of its own.
    pub(super) fn ask(&mut self) -> Judged {
        if self.agent.call.is_some() {
            return Ok(());
        }
        self.agent.asked += 1;
        self.agent.waiting_since.get_or_insert(self.now);
        let n = self.agent.asked;
        let what = if self.written { UNDO } else { "call_" };
        let (call, session) = (CallId::new(format!("{what}{n}")), SessionId::new(format!("session_{n}")));
        self.agent.call = Some((call.clone(), session.clone()));
        self.note(|| format!("agent: asks ({call})"));
        let input = self.call(call);
        self.open(&session);
        self.turn(&session, Input::Call(Box::new(input)))
    }

    /// Another agent writes something else to the same object.
    pub(super) fn ask_beside(&mut self) -> Judged {
        let (call, session) = (CallId::new(OTHER), SessionId::new("session_of_another"));
        self.note(|| format!("the other agent: asks ({call})"));
        let input = self.call(call);
        self.open(&session);
        self.turn(&session, Input::Call(Box::new(input)))
    }

    /// Whether the faults of this run are for that call.
    pub(super) fn is_drilled(&self, call: &CallId) -> bool {
        !is_other(call) && (self.plan.scene != Scene::Undoing || is_undoing(call))
    }

    fn call(&self, id: CallId) -> Call {
        let tool = &self.tools[usize::from(is_undoing(&id))];
        let contract = tool.contract();
        let what = match (is_other(&id), is_undoing(&id)) {
            (true, _) => "other-arguments",
            (false, true) => "undoing-arguments",
            (false, false) => "equal-arguments",
        };
        let fingerprint = Digest::new(what);
        let claim = |kind, name: &str| Claim { name: name.into(), fingerprint: fingerprint.clone(), kind };
        let mut claims = Vec::new();
        if !contract.effect.is_read() {
            claims.push(claim(ClaimKind::Arguments, what));
            claims.extend(contract.object.as_ref().map(|_| claim(ClaimKind::Object, "same-object")));
        }
        // The first write has the first token.
        let redeems = is_undoing(&id).then(|| Redeems {
            token: "token-of-call_1".into(),
            session: "session_1".into(),
            call: "call_1".into(),
        });
        let evidence = contract.evidence.iter().map(|reading| Evidence {
            tool: ToolName::new(reading.tool.as_str()),
            reference: Digest::new(reading.tool.as_str()),
            hash: Some("evidence-1".into()),
            from: EvidenceSource::Session,
        });
        Call {
            tool: tool.name.clone(),
            upstream: tool.upstream.clone(),
            rules: tool.rules.clone(),
            rules_hash: tool.hash.clone(),
            arguments: Payload { digest: fingerprint.clone(), size: 2 },
            principal: "agent".into(),
            deadline: self.time() + contract.deadline_ms,
            key: None,
            claims,
            effect_key: if contract.effect.is_read() { String::new() } else { format!("key-of-{id}") },
            repeat_of: None,
            evidence: evidence.collect(),
            reversal: contract.reverse.as_ref().map(|_| Digest::new(format!("token-of-{id}"))),
            redeems,
            view: None,
            leg: None,
            id,
        }
    }

    /// The agent's connection breaks, and it asks again.
    pub(super) fn cut(&mut self, after_ms: u64) {
        if self.agent.call.take().is_some() && self.agent.cuts_left > 0 {
            self.agent.cuts_left -= 1;
            self.later(after_ms, Happening::Ask);
        }
    }

    /// The agent has an answer, and acts on it in its manner.
    pub(super) fn hears(&mut self, call: &CallId, session: &SessionId, told: Told) -> Judged {
        let late = self.judge.deadline(call).max(1) + if self.was_away { AWAY_MS } else { 0 };
        if self.now > late {
            let what = format!("{call} is answered {} ms after its deadline", self.now - late);
            return broken(Promise::WithinDeadline, what);
        }
        self.note(|| format!("agent: hears `{}`, {:?}", told.outcome, told.certainty));
        self.agent.hears(self.now, told.clone());
        self.agent.heard_of = Some(call.clone());
        if self.plan.scene == Scene::Undoing && !self.written {
            return self.goes_on_to_undo(call, session);
        }
        let again = match self.plan.manner {
            Manner::Polite => {
                (told.failed() && told.safe_to_repeat).then(|| told.retry_after_ms.unwrap_or(0).max(1_000))
            }
            Manner::Rude => Some(50),
        };
        if let Some(ms) = again.filter(|_| self.agent.repeats_left > 0) {
            self.agent.repeats_left -= 1;
            self.later(ms, Happening::Ask);
        }
        let known = self.plan.manner == Manner::Polite && told.outcome != "interim";
        if known && self.drivers.contains_key(session) {
            return self.turn(session, Input::Delivery { call: call.clone() });
        }
        Ok(())
    }

    /// The write is done, and the agent has its token: from here on it is the undoing that is drilled.
    fn goes_on_to_undo(&mut self, call: &CallId, session: &SessionId) -> Judged {
        self.written = true;
        self.agent.told.clear();
        self.agent.wait_ms = 0;
        self.later(50, Happening::Ask);
        self.turn(session, Input::Delivery { call: call.clone() })
    }

    /// The agent wants its call stopped.
    pub(super) fn cancel(&mut self, request: &Request, ms: u64) {
        let call = request.attempt.call.clone();
        let input = Input::Cancel { call, reason: CancelReason::Asked };
        self.later(ms, Happening::Input(self.life, request.session.clone(), Box::new(input)));
    }
}
