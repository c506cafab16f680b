//! The driver's turn: handle, append, only then perform.

use amends_core::claim::{ClaimChange, ClaimKind};
use amends_core::gates::{Gates, OpenBreaker};
use amends_core::refusal::{Refusal, RefusalKind};
use amends_core::{CallId, Effect, Event, Fact, Input, Purpose, SessionId, Step, Timestamp, UpstreamName};
use amends_ledger::{Error, Ledger as _, MemoryLedger, OpenWork};

use crate::catalog::UPSTREAMS;
use crate::chance::Chance;
use crate::driver::{Justified, Waiting};
use crate::flaw::Flaw;
use crate::watch::{Broken, Standing};
use crate::world::alter::{alter, astray};
use crate::world::legs::at_once;
use crate::world::{Happening, News, World, record};

/// How long a driver waits before it asks a ledger again that was away.
pub(super) const ASK_AGAIN_MS: u64 = 500;
/// For how long an upstream stays held back, or does not.
const STRETCH_MS: u64 = 2_000;
/// The arguments that no tool takes.
pub(crate) const NONSENSE: u64 = 99;

impl World {
    /// Takes an input for a session this node drives, or passes it on to whoever does.
    pub(crate) fn input(&mut self, node: usize, session: &SessionId, input: Input) -> Result<(), Box<Broken>> {
        let Some(driver) = self.nodes[node].drivers.get_mut(session) else {
            self.pass_on(session, input);
            return Ok(());
        };
        if let Input::Call(call) = &input
            && let Some(slot) = self.asked.get(&call.id).and_then(|asked| asked.slot)
            && self.wishes[slot].call.as_ref() != Some(&call.id)
        {
            // The door sees that the connection it came by is gone: by now its repeat may have been answered.
            return Ok(());
        }
        if !driver.stuck {
            return self.handle(node, session, input);
        }
        match input {
            // Fail closed: what cannot be recorded is not begun.
            Input::Call(call) if call.leg.is_none() => self.refuse_directly(&call.id),
            Input::Move(taking) => self.refuse_move_directly(&taking.id),
            input => driver.backlog.push(input),
        }
        Ok(())
    }

    pub(crate) fn handle(&mut self, node: usize, session: &SessionId, input: Input) -> Result<(), Box<Broken>> {
        let gates = self.gates(&input);
        let now = self.time();
        let probe = self.chance.percent(12);
        let machine = &mut self.nodes[node];
        let lease_until = machine.lease_until;
        let Some(driver) = machine.drivers.get_mut(session) else {
            return Ok(());
        };
        let misled = self.misled.takes_for(self.flaw, &input);
        let taken = misled.unwrap_or_else(|| input.clone());
        if probe {
            self.watch.early_tick(&driver.dispatcher, &gates)?;
        }
        let before = Standing::of(&driver.dispatcher);
        let mut step = driver.dispatcher.handle(now, &gates, taken.clone());
        driver.history.extend(step.events.iter().cloned());
        self.watch.stepped(driver, &taken, &step, now)?;
        self.watch.refusal_changes_nothing(before, &driver.dispatcher, &step)?;
        if step.events.is_empty() {
            return Ok(());
        }
        for effect in &step.effects {
            if let Effect::Send(attempt) = effect {
                self.unsent.insert(attempt.id.clone(), false);
            }
        }
        if let Input::Cancel { call, .. } = &input {
            for (_, stop) in self.unsent.iter_mut().filter(|(attempt, _)| attempt.call == *call) {
                *stop = true;
            }
        }
        self.misled.behave(self.flaw, session, &input, &mut step);
        alter(self.flaw, &mut step);
        astray(self.flaw, &driver.history, &mut step);
        let open = OpenWork {
            calls: driver.dispatcher.open_calls() as u32,
            due: driver.dispatcher.deadline().map(|deadline| deadline.at),
        };
        self.tickets += 1;
        let ticket = self.tickets;
        let wait = self.chance.between(0, self.slow_ms);
        let append_at = (self.now + wait).max(driver.due.append);
        driver.due.append = append_at;
        let early = early_effects(self.flaw, &step);
        let at_once = at_once(&step);
        driver.queue.push_back(Waiting { ticket, input, step, open, lease_until });
        self.tell(append_at, node, News::Append(session.clone(), ticket));
        self.mishap(node);
        for (effect, run) in early {
            self.perform(node, session, effect, run, lease_until)?;
        }
        self.arm(node, session);
        self.go_on(node, session, at_once)
    }

    /// The oldest step goes to the ledger.
    pub(crate) fn append(&mut self, node: usize, session: &SessionId, ticket: u64) -> Result<(), Box<Broken>> {
        let (now, tools) = (self.time(), self.tools);
        let machine = &mut self.nodes[node];
        let Some(driver) = machine.drivers.get_mut(session) else {
            return Ok(());
        };
        let front = driver.queue.front().map(|waiting| waiting.ticket);
        if driver.stuck || front.is_none_or(|front| front > ticket) {
            return Ok(());
        }
        if front != Some(ticket) {
            // An earlier step is held up; steps are recorded in the order they were handled in.
            self.tell(self.now + 1, node, News::Append(session.clone(), ticket));
            return Ok(());
        }
        let Some(waiting) = driver.queue.pop_front() else {
            return Ok(());
        };
        let mut append = record::append(driver, &waiting, tools, now, self.flaw);
        if free(&machine.ledger, &waiting.step, now)
            && let Err(token) = self.tokens.check(&waiting.step.reversals, now, self.flaw)
        {
            driver.queue.push_front(waiting);
            return self.redemption_refused(node, session, &token);
        }
        let mut fate = record::now(machine.ledger.append(append.clone()));
        if self.flaw == Some(Flaw::IgnoreHeld) && matches!(fate, Some(Err(Error::Held(_)))) {
            append.claims.clear();
            fate = record::now(machine.ledger.append(append));
        }
        match fate {
            Some(Ok(appended)) => {
                driver.durable = appended.seq;
                let epoch = driver.epoch;
                self.watch.durable(session, epoch, &waiting.step.events, &self.book)?;
                self.keep(session, &waiting.step);
                self.mishap(node);
                self.justify(node, session, waiting);
                Ok(())
            }
            Some(Err(Error::Held(held))) => {
                driver.queue.push_front(waiting);
                self.hand_in_again(node, session, *held)
            }
            Some(Err(Error::Fenced { .. } | Error::Conflict { .. })) => {
                driver.queue.push_front(waiting);
                self.lose(node, session)
            }
            Some(Err(Error::Unavailable { .. })) => {
                driver.stuck = true;
                let epoch = driver.epoch;
                let step = waiting.step.clone();
                driver.queue.push_front(waiting);
                self.learn(session, epoch, &step)?;
                self.tell(self.now + ASK_AGAIN_MS, node, News::Ask(session.clone()));
                Ok(())
            }
            Some(Err(
                error @ (Error::Corrupt { .. } | Error::Newer { .. } | Error::Spent { .. } | Error::Answered { .. }),
            )) => Err(self.watch.broken("ledger", None, error.to_string())),
            None => Err(self.watch.broken("ledger", None, "it waits".into())),
        }
    }

    /// A step that seemed to fail may be durable all the same; the watch must know the truth at once.
    fn learn(&mut self, session: &SessionId, epoch: u64, step: &Step) -> Result<(), Box<Broken>> {
        let seen = self.watch.seen(session);
        if let Some(Ok(Some(trace))) = record::now(self.root.trace(session)) {
            let new: Vec<Event> =
                trace.events.into_iter().map(|stored| stored.event).filter(|event| event.seq > seen).collect();
            if !new.is_empty() {
                self.watch.durable(session, epoch, &new, &self.book)?;
                self.keep(session, step);
            }
        }
        Ok(())
    }

    /// A step is durable: its effects may begin, after those of all earlier ones.
    pub(super) fn justify(&mut self, node: usize, session: &SessionId, waiting: Waiting) {
        let wait = self.chance.between(0, self.slow_ms);
        let now = self.now;
        let early = self.flaw == Some(Flaw::SendBeforeAppend);
        let Some(driver) = self.nodes[node].drivers.get_mut(session) else {
            return;
        };
        let at = (now + wait).max(driver.due.act);
        driver.due.act = at;
        let runs = runs(&waiting.step);
        let mut effects = waiting.step.effects;
        effects.retain(|effect| !matches!(effect, Effect::Begin(_) | Effect::Weigh { .. }));
        if early {
            effects.retain(|effect| !matches!(effect, Effect::Send(_)));
        }
        let justified = Justified { effects, runs, lease_until: waiting.lease_until };
        self.tell(at, node, News::Durable(session.clone(), Box::new(justified)));
    }

    pub(crate) fn durable(
        &mut self,
        node: usize,
        session: &SessionId,
        justified: Justified,
    ) -> Result<(), Box<Broken>> {
        let mut at = self.now;
        for effect in justified.effects {
            at += self.chance.between(0, self.slow_ms.min(2));
            let run = match &effect {
                Effect::Send(attempt) => {
                    justified.runs.iter().find(|(id, _)| *id == attempt.id).and_then(|(_, run)| *run)
                }
                Effect::Abort(_)
                | Effect::Reply(_)
                | Effect::Ask(_)
                | Effect::Withdraw(_)
                | Effect::Inquire(_)
                | Effect::Tell(_)
                | Effect::Begin(_)
                | Effect::Weigh { .. }
                | Effect::Join { .. }
                | Effect::Unwind { .. }
                | Effect::Retract { .. } => None,
            };
            let news = News::Perform(session.clone(), Box::new(effect), run, justified.lease_until);
            self.tell(at, node, news);
        }
        if let Some(driver) = self.nodes[node].drivers.get_mut(session) {
            driver.due.act = driver.due.act.max(at);
        }
        self.mishap(node);
        Ok(())
    }

    /// Sets the one timer of a session.
    pub(crate) fn arm(&mut self, node: usize, session: &SessionId) {
        if self.flaw == Some(Flaw::NoTimer) {
            return;
        }
        let late = if self.chance.percent(10) { self.chance.between(0, 2 * self.slow_ms) } else { 0 };
        let (now, ahead_ms) = (self.now, self.ahead_ms);
        let Some(driver) = self.nodes[node].drivers.get_mut(session) else {
            return;
        };
        let wanted = driver.dispatcher.deadline().map(|deadline| deadline.at);
        if wanted == driver.armed {
            return;
        }
        driver.armed = wanted;
        if let Some(at) = wanted {
            let at = at.ms().saturating_sub(ahead_ms).max(now) + late;
            self.tell(at, node, News::Timer(session.clone()));
        }
    }

    pub(crate) fn timer(&mut self, node: usize, session: &SessionId) -> Result<(), Box<Broken>> {
        let now = self.time();
        let Some(driver) = self.nodes[node].drivers.get_mut(session) else {
            return Ok(());
        };
        let due = driver.dispatcher.deadline().is_some_and(|deadline| deadline.at <= now);
        if due && !driver.stuck {
            driver.armed = None;
            self.handle(node, session, Input::Tick)?;
            self.arm(node, session);
        }
        Ok(())
    }

    fn gates(&self, input: &Input) -> Gates {
        let runs = UPSTREAMS
            .iter()
            .zip(&self.upstreams)
            .map(|(name, upstream)| (UpstreamName::from(*name), upstream.seen_run()));
        let refusal = match input {
            Input::Call(call) if self.is_nonsense(&call.id) => {
                Some(Box::new(Refusal::of(RefusalKind::UnknownName, "there is no such tool")))
            }
            Input::Call(call) if self.unredeemed.contains(&call.id) => {
                Some(Box::new(Refusal::of(RefusalKind::ReversalRefused, "the token does not count")))
            }
            Input::Move(taking) if self.is_unfit(&taking.id) => {
                Some(Box::new(Refusal::of(RefusalKind::ValidationFailed, "its inputs do not fit")))
            }
            Input::Answer { interaction, .. } if self.lost.contains(interaction.as_str()) => Some(busy()),
            Input::Result { attempt, .. } if self.lost.contains(&attempt.to_string()) => Some(busy()),
            _ => None,
        };
        let mut gates = Gates { refusal, runs: runs.collect(), ..Gates::default() };
        self.ask_first(input, &mut gates);
        for (n, name) in UPSTREAMS.iter().enumerate() {
            let upstream = UpstreamName::from(*name);
            match self.trouble(n as u64) {
                0 => drop(gates.spent.insert(upstream)),
                1 => {
                    let until = Timestamp::from_ms((self.now / STRETCH_MS + 1) * STRETCH_MS + self.ahead_ms);
                    gates.breakers.push(OpenBreaker { upstream, tool: None, until });
                }
                _ => {}
            }
        }
        gates
    }

    /// A number under twenty for each stretch of time and upstream: at 0 its budget is spent, at 1 its breaker is open.
    fn trouble(&self, upstream: u64) -> u64 {
        Chance::new((self.now / STRETCH_MS) ^ (upstream << 32) ^ (self.fault_percent << 40)).between(0, 19)
    }

    fn is_nonsense(&self, call: &CallId) -> bool {
        self.asked.get(call).is_some_and(|asked| asked.args == NONSENSE)
    }

    pub(crate) fn arrives_at(&mut self, node: usize, session: &SessionId, input: Input) {
        let news = News::Input(session.clone(), Box::new(input));
        let life = self.nodes[node].life;
        self.later(0, Happening::Node(node, life, news));
    }
}

/// The No to what wanted an object that another write holds.
fn busy() -> Box<Refusal> {
    Box::new(Refusal::of(RefusalKind::InFlight, "another write to the same object is on its way"))
}

/// Whether the ledger is there and none of the claims that a step must take is held: who repeats a redemption is told of
/// that, and not that the token is spent.
fn free(ledger: &MemoryLedger, step: &Step, now: Timestamp) -> bool {
    step.claims.iter().all(|change| match change {
        ClaimChange::Take { claim, call, over, .. } => match record::now(ledger.held(&claim.name, now)) {
            Some(Ok(Some(held))) => {
                held.call == *call || Some(&held.call) == over.as_ref() || claim.kind == ClaimKind::ArgumentsIfFree
            }
            Some(Ok(None)) => true,
            Some(Err(_)) | None => false,
        },
        ClaimChange::Absent { name } => matches!(record::now(ledger.held(name, now)), Some(Ok(None))),
        ClaimChange::Settle { .. } | ClaimChange::Grant { .. } | ClaimChange::Release { .. } => true,
    })
}

/// The run that each attempt of a step was meant for.
fn runs(step: &Step) -> Vec<(amends_core::AttemptId, Option<u64>)> {
    let started = step.events.iter().filter_map(|event| match &event.fact {
        Fact::AttemptStarted { attempt, run, purpose: Purpose::Act, .. } => Some((attempt.clone(), *run)),
        _ => None,
    });
    started.collect()
}

/// What a flawed driver does before the step is durable.
fn early_effects(flaw: Option<Flaw>, step: &Step) -> Vec<(Effect, Option<u64>)> {
    let wanted = |effect: &&Effect| match effect {
        Effect::Send(_) => flaw == Some(Flaw::SendBeforeAppend),
        Effect::Reply(_) => flaw == Some(Flaw::ReplyBeforeAppend),
        Effect::Abort(_)
        | Effect::Ask(_)
        | Effect::Withdraw(_)
        | Effect::Inquire(_)
        | Effect::Tell(_)
        | Effect::Begin(_)
        | Effect::Weigh { .. }
        | Effect::Join { .. }
        | Effect::Unwind { .. }
        | Effect::Retract { .. } => false,
    };
    let effects = step.effects.iter().filter(wanted);
    effects.map(|effect| (effect.clone(), None)).collect()
}
