//! The gateway: handle, append, only then perform; and what it does after a crash or while the ledger is away.

use std::sync::Arc;

use amends_core::dispatcher::redecide::redecide;
use amends_core::gates::Gates;
use amends_core::{
    CallId, Certainty, Digest, Dispatcher, Effect, Event, Fact, Input, Outcome, Purpose, Refusal, RefusalKind, Rules,
    SessionId, Step,
};
use amends_ledger::{Error, Form, Ledger as _, OpenWork, StoredAnswer};
use bytes::Bytes;

use super::agent::is_other;
use super::fault::Fault;
use super::promise::{Judged, Promise, broken};
use super::stage::{AWAY_MS, Happening, Stage, UNDO_RULES};
use super::told::Told;
use crate::driver::{Driver, Waiting};
use crate::world::record;

/// How often a call is handed in again as the repeat of whoever holds its names.
const HOLDERS_MAX: u32 = 4;
/// How long a recorded answer is kept.
const KEPT_MS: u64 = 24 * 60 * 60 * 1000;

impl Stage<'_> {
    /// Opens the session of a new connection.
    pub(super) fn open(&mut self, session: &SessionId) {
        let seed = self.plan.seed;
        let driver = Driver::new(session.clone(), seed, opened(session, seed), 1, Vec::new());
        self.drivers.insert(session.clone(), driver);
    }

    /// Takes one input: handles it, records the step, and only then performs its effects.
    pub(super) fn turn(&mut self, session: &SessionId, mut input: Input) -> Judged {
        let mut refusal = None;
        for _ in 0..HOLDERS_MAX {
            let (now, gates) = (self.time(), Gates { refusal: refusal.take(), ..self.gates() });
            let Some(driver) = self.drivers.get_mut(session) else {
                return Ok(());
            };
            let step = driver.dispatcher.handle(now, &gates, input.clone());
            if step.events.is_empty() {
                self.arm(session);
                return Ok(());
            }
            self.judge.steps(&step)?;
            self.assign(&step);
            match self.append(session, &input, &step) {
                Ok(()) => {
                    self.note_step(session, &input, &step);
                    return self.recorded(session, step);
                }
                Err(Error::Held(held)) => {
                    self.unassign(&step);
                    self.restore(session)?;
                    let Input::Call(call) = &mut input else {
                        return broken(Promise::OneEnd, "a claim is held, and it is not a call that wants it");
                    };
                    self.note(|| format!("ledger: {} is held by {} ({:?})", call.id, held.call, held.state));
                    call.repeat_of = Some(*held);
                }
                Err(Error::Unavailable { .. }) => {
                    self.restore(session)?;
                    return self.unrecorded(session, input);
                }
                Err(error @ Error::Spent { .. }) => {
                    self.unassign(&step);
                    self.restore(session)?;
                    let Input::Call(call) = &mut input else {
                        return broken(Promise::TokenedReversals, error.to_string());
                    };
                    self.note(|| format!("ledger: {error}"));
                    call.redeems = None;
                    refusal = Some(Box::new(Refusal::of(RefusalKind::ReversalRefused, "the token is spent")));
                }
                Err(error) => return broken(Promise::SameDecisions, format!("the ledger refuses a step: {error}")),
            }
        }
        broken(Promise::OneEnd, "a call finds no holder to wait for")
    }

    /// Numbers the attempts of a step: from the first send on, each may meet a fault.
    fn assign(&mut self, step: &Step) {
        for event in &step.events {
            let Fact::AttemptStarted { attempt, purpose, .. } = &event.fact else {
                continue;
            };
            if !self.is_drilled(&attempt.call) {
                continue;
            }
            let counts = *purpose == Purpose::Act || !self.slots.is_empty() || self.plan.reading_first;
            if *purpose != Purpose::Join && counts && !self.slots.contains_key(attempt) {
                self.slots.insert(attempt.clone(), self.slots.len());
            }
            if self.fires(attempt, Fault::LedgerAway) {
                self.away = true;
                self.was_away = true;
                self.ledger.set_unavailable(true);
                self.note(|| "ledger: is away".into());
                self.later(AWAY_MS, Happening::LedgerBack);
            }
        }
    }

    /// Forgets the attempts of a step that was dropped.
    fn unassign(&mut self, step: &Step) {
        for event in &step.events {
            if let Fact::AttemptStarted { attempt, .. } = &event.fact {
                self.slots.remove(attempt);
            }
        }
    }

    fn append(&mut self, session: &SessionId, input: &Input, step: &Step) -> Result<(), Error> {
        let (now, tools) = (self.time(), &self.tools);
        let Some(driver) = self.drivers.get_mut(session) else {
            return Ok(());
        };
        let open = OpenWork {
            calls: driver.dispatcher.open_calls() as u32,
            due: driver.dispatcher.deadline().map(|deadline| deadline.at),
        };
        let waiting = Waiting { ticket: 0, input: input.clone(), step: step.clone(), open, lease_until: u64::MAX };
        let mut append = record::append(driver, &waiting, tools, now, None);
        append.reversals.clone_from(&step.reversals);
        append.answers.extend(resolved(step).map(|call| StoredAnswer {
            call: call.clone(),
            outcome: Outcome::SucceededAfterCompensation,
            certainty: Certainty::Processed,
            form: Form::Envelope,
            body: Bytes::from_static(b"{}"),
            until: now + KEPT_MS,
        }));
        let fate = record::now(self.ledger.append(append));
        fate.unwrap_or(Err(Error::Corrupt { reason: "a ledger in memory must not wait".into() }))?;
        driver.history.extend(step.events.iter().cloned());
        driver.durable = driver.history.len() as u64;
        Ok(())
    }

    /// A step is durable: what it says is judged, and its effects are performed.
    fn recorded(&mut self, session: &SessionId, step: Step) -> Judged {
        for event in &step.events {
            self.judge.durable(event)?;
        }
        for effect in &step.effects {
            if let Effect::Reply(reply) = effect {
                let told = self.told(reply);
                self.judge.answers(&reply.call, &told, &self.upstream)?;
                if reply.last {
                    self.answers.insert(reply.call.clone(), told);
                }
            }
        }
        let life = self.life;
        for effect in step.effects {
            if life == self.life {
                self.perform(session, effect)?;
            }
        }
        if life == self.life {
            self.arm(session);
        }
        Ok(())
    }

    fn perform(&mut self, session: &SessionId, effect: Effect) -> Judged {
        match effect {
            Effect::Send(attempt) => return self.send(session, *attempt),
            Effect::Reply(reply) => return self.reply(session, &reply),
            Effect::Ask(question) => self.asks(session, *question),
            Effect::Withdraw(question) => {
                self.questions.remove(&question);
            }
            // What was sent is still listened for: a late answer may settle a doubt.
            Effect::Abort(_) => {}
            // The drill's upstreams ask nothing of their agents.
            Effect::Inquire(_) | Effect::Tell(_) | Effect::Retract { .. } => {}
            // Nor does it walk through machines.
            Effect::Begin(_) | Effect::Weigh { .. } | Effect::Join { .. } | Effect::Unwind { .. } => {}
        }
        Ok(())
    }

    /// Sets the one timer of a session.
    fn arm(&mut self, session: &SessionId) {
        let now = self.now;
        let life = self.life;
        let Some(driver) = self.drivers.get_mut(session) else {
            return;
        };
        let wanted = driver.dispatcher.deadline().map(|deadline| deadline.at);
        if wanted == driver.armed {
            return;
        }
        driver.armed = wanted;
        if let Some(at) = wanted {
            self.later(at.ms().saturating_sub(now), Happening::Tick(life, session.clone()));
        }
    }

    pub(super) fn tick(&mut self, session: &SessionId) -> Judged {
        let now = self.time();
        let Some(driver) = self.drivers.get_mut(session) else {
            return Ok(());
        };
        if driver.dispatcher.deadline().is_none_or(|deadline| deadline.at > now) {
            return Ok(());
        }
        driver.armed = None;
        self.turn(session, Input::Tick)
    }

    /// What could not be recorded: a call is refused, since nothing may be sent for it; the rest waits.
    fn unrecorded(&mut self, session: &SessionId, input: Input) -> Judged {
        match input {
            Input::Call(call) if is_other(&call.id) => self.other.push(Told::unrecorded()),
            Input::Call(call) => {
                self.note(|| format!("gateway: refuses {}, since it cannot record", call.id));
                self.agent.hears(self.now, Told::unrecorded());
                if self.agent.repeats_left > 0 {
                    self.agent.repeats_left -= 1;
                    self.later(2 * AWAY_MS, Happening::Ask);
                }
            }
            input => self.backlog.push((session.clone(), input)),
        }
        Ok(())
    }

    pub(super) fn ledger_back(&mut self) -> Judged {
        self.note(|| "ledger: is back".into());
        self.away = false;
        self.ledger.set_unavailable(false);
        for (session, input) in std::mem::take(&mut self.backlog) {
            self.turn(&session, input)?;
        }
        let sessions: Vec<SessionId> = self.drivers.keys().cloned().collect();
        for session in sessions {
            self.arm(&session);
        }
        Ok(())
    }

    /// The gateway starts again and takes up what it left open.
    pub(super) fn restart(&mut self) -> Judged {
        self.note(|| "gateway: starts again".into());
        self.alive = true;
        if self.away {
            self.later(AWAY_MS, Happening::Restart);
            return Ok(());
        }
        let Some(Ok(rows)) = record::now(self.ledger.sessions(usize::MAX)) else {
            return broken(Promise::SameDecisions, "the ledger cannot be read");
        };
        for row in rows.into_iter().filter(|row| row.open_calls > 0) {
            self.take_up(&row.session)?;
            self.turn(&row.session, Input::Resume)?;
        }
        Ok(())
    }

    /// Takes up a session that is not driven.
    pub(super) fn take_up(&mut self, session: &SessionId) -> Judged {
        if self.drivers.contains_key(session) {
            return Ok(());
        }
        let lease = record::now(self.ledger.take(session, self.time()));
        let trace = record::now(self.ledger.trace(session));
        let (Some(Ok(Some(lease))), Some(Ok(Some(trace)))) = (lease, trace) else {
            return broken(Promise::SameDecisions, format!("{session} cannot be taken up"));
        };
        let history: Vec<Event> = trace.events.into_iter().map(|stored| stored.event).collect();
        let driver =
            Driver::new(session.clone(), self.plan.seed, opened(session, self.plan.seed), lease.epoch, history);
        self.drivers.insert(session.clone(), driver);
        self.restore(session)
    }

    /// Goes back to what the ledger holds.
    fn restore(&mut self, session: &SessionId) -> Judged {
        let rules = self.rules();
        let seed = self.plan.seed;
        let Some(driver) = self.drivers.get_mut(session) else {
            return Ok(());
        };
        driver.armed = None;
        driver.dispatcher = match driver.history.is_empty() {
            true => opened(session, seed),
            false => match Dispatcher::restore(&driver.history, rules) {
                Ok(dispatcher) => dispatcher,
                Err(error) => return broken(Promise::SameDecisions, format!("the trace cannot be folded: {error}")),
            },
        };
        Ok(())
    }

    /// Every trace folds to the live state, and decided again gives the same events.
    pub(super) fn decided_again(&self) -> Judged {
        for (session, driver) in self.drivers.iter().filter(|(_, driver)| !driver.history.is_empty()) {
            match Dispatcher::restore(&driver.history, self.rules()) {
                Ok(folded) if folded == driver.dispatcher => {}
                Ok(_) => return broken(Promise::SameDecisions, format!("{session} folds to another state")),
                Err(error) => return broken(Promise::SameDecisions, format!("{session} cannot be folded: {error}")),
            }
            match redecide(&driver.history, self.rules()) {
                Ok(None) => {}
                Ok(Some(_)) => return broken(Promise::SameDecisions, format!("{session} is decided otherwise")),
                Err(error) => {
                    return broken(Promise::SameDecisions, format!("{session} cannot be decided again: {error}"));
                }
            }
        }
        Ok(())
    }

    fn rules(&self) -> impl Fn(&Digest) -> Option<Arc<Rules>> + use<> {
        let (rules, undo) = (self.plan.subject.rules.clone(), self.plan.subject.undo.clone());
        move |hash| if hash.as_str() == UNDO_RULES { undo.clone() } else { Some(rules.clone()) }
    }

    fn gates(&self) -> Gates {
        let runs = [(self.plan.subject.upstream.clone(), self.upstream.seen_run())];
        Gates { runs: runs.into(), ..Gates::default() }
    }

    fn note_step(&mut self, session: &SessionId, input: &Input, step: &Step) {
        if self.log.is_none() {
            return;
        }
        let lines: Vec<String> = step.events.iter().map(describe).collect();
        let what = match input {
            Input::Call(_) => "call",
            Input::Result { .. } => "result",
            Input::Answer { .. } => "answer",
            Input::Inquiry { .. } => "inquiry",
            Input::Inputs { .. } => "inputs",
            Input::Withdrawal { .. } => "withdrawal",
            Input::Name { .. } => "name",
            Input::Cancel { .. } => "cancel",
            Input::Delivery { .. } => "delivery",
            Input::Tick => "tick",
            Input::Resume => "resume",
            Input::Drift(_) => "drift",
            Input::Approval { .. } => "approval",
            Input::Begin(_) => "begin",
            Input::Migrate { .. } => "migrate",
            Input::Move(_) => "move",
            Input::Weighed { .. } => "weighed",
            Input::Unwound { .. } => "unwound",
            Input::Retire { .. } => "retire",
        };
        self.note(|| format!("gateway: {session} {what}: {}", lines.join(", ")));
    }
}

/// One event of a story, in a few words.
fn describe(event: &Event) -> String {
    let name = event.fact.name();
    match &event.fact {
        Fact::AttemptStarted { attempt, purpose, .. } => format!("{name} {attempt} ({})", purpose.as_str()),
        Fact::AttemptEnded { attempt, report, .. } => {
            let said = report.failure.as_ref().map_or("success", |failure| failure.code.as_str());
            format!("{name} {attempt} ({said}, {})", report.certainty.as_str())
        }
        Fact::AttemptTimedOut { attempt, certainty } | Fact::AttemptOrphaned { attempt, certainty } => {
            format!("{name} {attempt} ({})", certainty.as_str())
        }
        Fact::FailureJudged { verdict, compensation, .. } => format!("{name} {} -> {compensation}", verdict.as_str()),
        Fact::CallEnded { outcome, certainty, .. } => format!("{name} {} ({})", outcome.as_str(), certainty.as_str()),
        _ => name.to_owned(),
    }
}

/// The calls of which a person said in this step that they were done.
fn resolved(step: &Step) -> impl Iterator<Item = &CallId> {
    step.events.iter().filter_map(|event| match &event.fact {
        Fact::DoubtResolved { call, certainty: Certainty::Processed, .. } => Some(call),
        _ => None,
    })
}

fn opened(session: &SessionId, seed: u64) -> Dispatcher {
    Dispatcher::open(session.clone(), seed, "agent".into(), "drill")
}
