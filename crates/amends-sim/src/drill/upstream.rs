//! The upstream: it does what it is sent, honours what its contract says, breaks on cue, and keeps the book.

use std::collections::{BTreeMap, BTreeSet};

use amends_core::attempt::Payload;
use amends_core::gates::UNSEEN_RUN;
use amends_core::{AttemptId, CallId, Contract, EffectKind, Purpose, Report, SessionId};
use amends_wire::mcp::classify::{self, Signal};

use super::fault::Fault;
use super::subject::{Assume, Subject};

/// How late a status is that shows things late.
const READER_LAG_MS: u64 = 5_000;
/// How long after an attempt's time a late answer comes.
const LATE_MS: u64 = 500;
/// How long after an attempt's time a late effect comes at most.
const LATE_EFFECT_MS: u64 = 1_500;
/// How long an answer takes.
pub(super) const ANSWER_MS: u64 = 20;

/// One request on its way.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) attempt: AttemptId,
    pub(super) purpose: Purpose,
    pub(super) session: SessionId,
    /// The key minted for the call's effect, whether or not the upstream is told.
    pub(super) effect_key: String,
    pub(super) fault: Fault,
    /// Which run of the upstream it was sent to.
    pub(super) run: u64,
    /// Which life of the gateway sent it.
    pub(super) life: u32,
    /// When the call's deadline is.
    pub(super) deadline: u64,
    /// Whether it is of the call that redeems a token.
    pub(super) undoes: bool,
}

/// One effect that really happened.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) call: CallId,
    pub(super) effect_key: String,
    pub(super) at: u64,
}

/// What the upstream does about a request.
#[derive(Clone, Debug)]
pub(super) enum Reaction {
    /// Nothing is ever heard of it.
    Silence,
    /// It answers, or the line breaks, after that time.
    Answer(u64, Box<Report>),
    /// It takes effect after that time, and nobody answers.
    Later(u64),
}

/// The upstream and its book.
#[derive(Debug)]
pub(super) struct Upstream<'a> {
    subject: &'a Subject,
    assume: Option<Assume>,
    /// Its run; another one after each restart.
    pub(super) run: u64,
    /// Every effect that really happened.
    pub(super) book: Vec<Done>,
    /// How often one of them was undone.
    pub(super) undone: u32,
    /// Every undoing by a call of its own.
    pub(super) undoings: Vec<Done>,
    keys: BTreeMap<String, u64>,
    busy: BTreeSet<String>,
    evidence: u32,
    reader_fails: bool,
    reader_lags: bool,
}

impl<'a> Upstream<'a> {
    pub(super) const fn new(subject: &'a Subject, assume: Option<Assume>) -> Self {
        Self {
            subject,
            assume,
            run: 1,
            book: Vec::new(),
            undone: 0,
            undoings: Vec::new(),
            keys: BTreeMap::new(),
            busy: BTreeSet::new(),
            evidence: 1,
            reader_fails: false,
            reader_lags: false,
        }
    }

    /// The run that a driver can see.
    pub(super) const fn seen_run(&self) -> u64 {
        if self.subject.restarts_seen { self.run } else { UNSEEN_RUN }
    }

    /// Its process dies and starts again. What it was at is gone, and so are the keys it did not store.
    pub(super) fn restart(&mut self) {
        self.run += 1;
        self.busy.clear();
        let contracts = [Some(self.subject.contract()), self.subject.undo.as_ref().map(|undo| &undo.contract)];
        let mut keys = contracts.into_iter().flatten().filter_map(|contract| contract.key.as_ref());
        let durable = keys.any(|key| key.durable);
        if self.subject.restarts_seen && !durable {
            self.keys.clear();
        }
    }

    /// Whether a request that was sent earlier still reaches it: the pipe to an earlier run is gone.
    pub(super) const fn reaches(&self, request: &Request) -> bool {
        !self.subject.restarts_seen || request.run == self.run
    }

    /// Takes a request that arrived.
    pub(super) fn arrive(&mut self, now: u64, request: &Request) -> Reaction {
        if !self.reaches(request) {
            return Reaction::Answer(ANSWER_MS, self.signal(request, Signal::Lost));
        }
        let acts = matches!(request.purpose, Purpose::Act | Purpose::Reverse);
        if acts && self.has_effect(request) { self.act(now, request) } else { self.read(now, request) }
    }

    /// Takes the late effect of a request, unless its process has died since.
    pub(super) fn late_effect(&mut self, now: u64, request: &Request) {
        if self.reaches(request) {
            self.apply(now, request);
        }
    }

    /// What governs the tool that a request is for.
    fn contract(&self, request: &Request) -> &'a Contract {
        match &self.subject.undo {
            Some(undo) if request.undoes => &undo.contract,
            _ => self.subject.contract(),
        }
    }

    /// Whether a request with that purpose changes something, whatever the contract says.
    fn has_effect(&self, request: &Request) -> bool {
        !self.contract(request).effect.is_read() || self.assume == Some(Assume::ReadsWrite)
    }

    fn act(&mut self, now: u64, request: &Request) -> Reaction {
        let contract = self.contract(request);
        let keyed = self.sees_key(request);
        let known = keyed && self.knows(now, request);
        if keyed && !known && self.busy.contains(&request.effect_key) {
            return self.problem(request, 409, "idempotency_key_in_flight", None);
        }
        match request.fault {
            Fault::LoseRequest | Fault::CancelBefore => return Reaction::Silence,
            Fault::ResetBefore => return Reaction::Answer(ANSWER_MS, self.signal(request, Signal::Lost)),
            Fault::CrashBefore => {
                self.restart();
                return Reaction::Answer(ANSWER_MS, self.signal(request, Signal::Lost));
            }
            Fault::Precondition => self.evidence += 1,
            Fault::LateEffect => {
                if keyed && !known {
                    self.busy.insert(request.effect_key.clone());
                }
                let late = match (self.assume, contract.settles_within_ms) {
                    (Some(Assume::SettlesLate), Some(settles)) => settles + LATE_EFFECT_MS,
                    _ => LATE_EFFECT_MS.min(contract.request_life_ms() / 2),
                };
                return Reaction::Later(contract.timeout_ms + late);
            }
            _ => {}
        }
        let believed = request.fault.rejection().is_some_and(|status| contract.rejects_before_effect.contains(&status));
        if believed && self.assume == Some(Assume::RejectsAfterEffect) {
            self.apply(now, request);
        }
        if let Some(answer) = self.before_effect(request) {
            return answer;
        }
        self.apply(now, request);
        match request.fault {
            Fault::LoseResponse => Reaction::Silence,
            Fault::ReaderFails => {
                self.reader_fails = true;
                Reaction::Silence
            }
            Fault::ReaderLate => {
                self.reader_lags = true;
                Reaction::Silence
            }
            Fault::ResetAfter => Reaction::Answer(ANSWER_MS, self.signal(request, Signal::Lost)),
            Fault::CrashAfter => {
                self.restart();
                Reaction::Answer(ANSWER_MS, self.signal(request, Signal::Lost))
            }
            Fault::Late => Reaction::Answer(contract.timeout_ms + LATE_MS, self.success(request)),
            Fault::PastDeadline => Reaction::Answer(past(now, request), self.success(request)),
            Fault::CancelAfter => Reaction::Answer(10 * ANSWER_MS, self.success(request)),
            Fault::ErrorAfterEffect => self.problem(request, 500, "internal_error", None),
            Fault::ConflictDone => self.problem(request, 409, "idempotency_key_processed", None),
            Fault::Malformed => Reaction::Answer(ANSWER_MS, self.malformed(request)),
            Fault::PlainErrorAfter => Reaction::Answer(ANSWER_MS, self.plain_error(request)),
            _ => Reaction::Answer(ANSWER_MS, self.success(request)),
        }
    }

    /// What a request is answered that is turned away before its effect; nothing where it goes on.
    fn before_effect(&self, request: &Request) -> Option<Reaction> {
        let long_s = self.contract(request).deadline_ms / 1000 + 60;
        Some(match request.fault {
            Fault::Status500 => self.problem(request, 500, "internal_error", None),
            Fault::Status503 => self.problem(request, 503, "unavailable", Some(1)),
            Fault::Status503Bare => self.problem(request, 503, "unavailable", None),
            Fault::RateLimited => self.problem(request, 429, "rate_limited", Some(1)),
            Fault::RateLimitedBare => self.problem(request, 429, "rate_limited", None),
            Fault::RateLimitedLong => self.problem(request, 429, "rate_limited", Some(long_s)),
            Fault::ConflictInFlight => self.problem(request, 409, "idempotency_key_in_flight", None),
            Fault::ConflictReused => self.problem(request, 409, "idempotency_key_reused", None),
            Fault::Precondition | Fault::PreconditionSame => self.problem(request, 412, "evidence_stale", None),
            Fault::Forbidden => self.problem(request, 403, "forbidden", None),
            Fault::NotFound => self.problem(request, 404, "not_found", None),
            Fault::Unprocessable => self.problem(request, 422, "invalid_argument", None),
            Fault::PlainError => Reaction::Answer(ANSWER_MS, self.plain_error(request)),
            _ => return None,
        })
    }

    fn read(&mut self, now: u64, request: &Request) -> Reaction {
        let contract = self.contract(request);
        let reads_status = matches!(request.purpose, Purpose::Status | Purpose::Baseline);
        self.reader_fails |= request.fault == Fault::ReaderFails;
        self.reader_lags |= request.fault == Fault::ReaderLate;
        if reads_status && self.reader_fails {
            return self.problem(request, 500, "internal_error", None);
        }
        match request.fault {
            Fault::LoseRequest | Fault::LoseResponse | Fault::LateEffect | Fault::CancelBefore => Reaction::Silence,
            Fault::ResetBefore | Fault::ResetAfter => Reaction::Answer(ANSWER_MS, self.signal(request, Signal::Lost)),
            Fault::CrashBefore | Fault::CrashAfter => {
                self.restart();
                Reaction::Answer(ANSWER_MS, self.signal(request, Signal::Lost))
            }
            Fault::ErrorAfterEffect => self.problem(request, 500, "internal_error", None),
            Fault::ConflictDone => self.problem(request, 409, "idempotency_key_processed", None),
            Fault::Malformed => Reaction::Answer(ANSWER_MS, self.malformed(request)),
            Fault::PlainErrorAfter => Reaction::Answer(ANSWER_MS, self.plain_error(request)),
            Fault::Late => Reaction::Answer(contract.timeout_ms + LATE_MS, self.reading(now, request)),
            Fault::PastDeadline => Reaction::Answer(past(now, request), self.reading(now, request)),
            _ => match self.before_effect(request) {
                Some(answer) => answer,
                None => Reaction::Answer(ANSWER_MS, self.reading(now, request)),
            },
        }
    }

    /// Takes the effect of a request now, unless its key was seen before.
    fn apply(&mut self, now: u64, request: &Request) {
        if request.purpose == Purpose::Reverse {
            self.undone += 1;
            return;
        }
        self.busy.remove(&request.effect_key);
        let keyed = self.sees_key(request);
        if keyed && self.knows(now, request) {
            return;
        }
        let done = Done { call: request.attempt.call.clone(), effect_key: request.effect_key.clone(), at: now };
        if request.undoes {
            self.undoings.push(done)
        } else {
            self.book.push(done)
        }
        if keyed {
            self.keys.insert(request.effect_key.clone(), now);
        }
    }

    fn sees_key(&self, request: &Request) -> bool {
        self.contract(request).effect == EffectKind::Keyed && request.purpose == Purpose::Act
    }

    fn knows(&self, now: u64, request: &Request) -> bool {
        let window_ms = self.contract(request).key.as_ref().map_or(0, |key| key.window_ms);
        let first = self.keys.get(&request.effect_key);
        self.assume != Some(Assume::UpstreamForgetsKeys)
            && first.is_some_and(|first| now < first.saturating_add(window_ms))
    }

    /// What a read shows.
    fn reading(&self, now: u64, request: &Request) -> Box<Report> {
        let mut report = self.success(request);
        match request.purpose {
            Purpose::Status | Purpose::Baseline => {
                let contract = self.contract(request);
                let book = if request.undoes { &self.undoings } else { &self.book };
                let settles = contract.settles_within_ms.unwrap_or(u64::MAX);
                let lag = if self.reader_lags { READER_LAG_MS.min(settles / 2) } else { 0 };
                let lies = self.assume == Some(Assume::StatusLies);
                let seen = |done: &&Done| !lies && done.at + lag <= now;
                let by_key = contract.status.as_ref().is_some_and(|status| status.by_key);
                // Somebody else did the same before, which must not pass for this one.
                let count = 1 + book.iter().filter(seen).count();
                let own = book.iter().filter(seen).any(|done| done.effect_key == request.effect_key);
                report.happened = Some(if by_key { own } else { count > 0 });
                report.fits = true;
                report.payload = Some(payload(format!("seen-{count}")));
            }
            Purpose::Evidence => report.payload = Some(payload(format!("evidence-{}", self.evidence))),
            Purpose::Act | Purpose::Join | Purpose::Reverse => {}
        }
        report
    }

    fn success(&self, request: &Request) -> Box<Report> {
        let mut report = self.result(request, r#"{"content":[{"type":"text","text":"done"}]}"#);
        report.payload = Some(payload(format!("done-{}", self.book.len())));
        report
    }

    fn malformed(&self, request: &Request) -> Box<Report> {
        let mut report = self.result(request, r#"{"content":"done"}"#);
        report.payload = Some(payload("odd".to_owned()));
        report
    }

    fn plain_error(&self, request: &Request) -> Box<Report> {
        self.result(request, r#"{"isError":true,"content":[{"type":"text","text":"it did not work"}]}"#)
    }

    fn problem(&self, request: &Request, status: u16, code: &str, retry_after: Option<u64>) -> Reaction {
        let wait = retry_after.map(|seconds| format!(r#","retry_after":{seconds}"#)).unwrap_or_default();
        let problem = format!(r#"{{"status":{status},"code":"{code}"{wait}}}"#);
        let raw = format!(r#"{{"isError":true,"content":[],"structuredContent":{problem}}}"#);
        Reaction::Answer(ANSWER_MS, self.result(request, &raw))
    }

    /// What our own classifier makes of a result.
    fn result(&self, request: &Request, raw: &str) -> Box<Report> {
        Box::new(classify::result(raw, self.contract(request), None, &self.subject.translate).report)
    }

    /// What our own classifier makes of what the line says.
    pub(super) fn signal(&self, request: &Request, signal: Signal<'_>) -> Box<Report> {
        Box::new(classify::signal(signal, self.contract(request), &self.subject.translate, 0).report)
    }
}

/// How long an answer takes that comes after the agent's deadline.
const fn past(now: u64, request: &Request) -> u64 {
    request.deadline.saturating_sub(now) + 2 * LATE_MS
}

fn payload(text: String) -> Payload {
    Payload { digest: amends_core::Digest::new(text), size: 2 }
}
