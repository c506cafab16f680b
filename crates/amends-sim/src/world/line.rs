//! The line between a node and the world: what is sent, what arrives, what comes back.

use amends_core::attempt::Undo;
use amends_core::contract::EffectKind;
use amends_core::{
    Attempt, AttemptId, Certainty, ClaimState, Code, Effect, Failure, Held, Input, Purpose, Report, SessionId,
};
use amends_ledger::Ledger as _;

use crate::flaw::Flaw;
use crate::upstream::{Fault, Reaction, Request, refused};
use crate::watch::Broken;
use crate::world::{Happening, News, World, record};

/// How often a driver looks whether a joined call has ended.
const POLL_MS: u64 = 150;

impl World {
    /// Performs one effect of a step.
    pub(crate) fn perform(
        &mut self,
        node: usize,
        session: &SessionId,
        effect: Effect,
        run: Option<u64>,
        lease_until: u64,
    ) -> Result<(), Box<Broken>> {
        match effect {
            Effect::Send(attempt) if attempt.purpose == Purpose::Join => {
                let Some(held) = attempt.holder else {
                    return Err(self.watch.broken(
                        "repeats_find_it",
                        Some(attempt.id.call),
                        "a join does not say whom it waits for".into(),
                    ));
                };
                self.poll(node, session, attempt.id, Box::new(held))
            }
            Effect::Send(attempt) => self.send(node, session, *attempt, run, lease_until),
            Effect::Abort(attempt) => {
                self.aborted.insert(attempt.clone());
                let act = self.sent.get(&attempt).cloned();
                if self.flaw == Some(Flaw::ResendInline)
                    && let Some(request) = act.filter(|r| r.purpose == Purpose::Act)
                {
                    self.later(5, Happening::Arrive(Box::new(request)));
                }
                Ok(())
            }
            // The queue knows them already: it is part of what was recorded.
            Effect::Ask(_) | Effect::Withdraw(_) => Ok(()),
            Effect::Inquire(asking) => {
                self.inquire(session, &asking);
                Ok(())
            }
            Effect::Tell(telling) => self.told(&telling, lease_until),
            Effect::Retract { .. } => Ok(()),
            // They were done at once.
            Effect::Begin(_) | Effect::Weigh { .. } => Ok(()),
            Effect::Join { of, first } => {
                self.join_move(node, session, of, first);
                Ok(())
            }
            Effect::Unwind { of, since } => self.unwind_walk(node, session, of, since),
            Effect::Reply(reply) if self.walks.moves.contains_key(&reply.call) => {
                self.watch.move_before_answer(&reply)?;
                self.answer_move(node, session, &reply.call);
                Ok(())
            }
            Effect::Reply(reply) => {
                self.watch.replies(session, &reply, &self.book)?;
                self.receive(node, session, &reply)
            }
        }
    }

    fn send(
        &mut self,
        node: usize,
        session: &SessionId,
        attempt: Attempt,
        run: Option<u64>,
        lease_until: u64,
    ) -> Result<(), Box<Broken>> {
        let Some(asked) = self.asked.get(&attempt.id.call).cloned() else {
            return Ok(());
        };
        let own = &self.tools[asked.tool];
        let Some(target) = self.target(&attempt, &asked) else {
            return Err(self.watch.broken("one_token_one_undo", Some(attempt.id.call), "it cannot be undone".into()));
        };
        let tool = &self.tools[target.tool];
        let upstream = &self.upstreams[tool.place];
        let strict = self.flaw != Some(Flaw::SendLate);
        if strict && self.time() >= attempt.send_by {
            // The dispatcher's own tick ends it.
            return Ok(());
        }
        let fresh = self.flaw == Some(Flaw::FreshLease);
        let lease_until = if fresh { self.nodes[node].lease_until } else { lease_until };
        if strict && self.time().ms() >= lease_until {
            let failure = Failure::of(Code::LeaseLost);
            let report = Report::silent(failure, Certainty::NotSent);
            let input = result(attempt.id, Box::new(report));
            self.arrives_at(node, session, input);
            return Ok(());
        }
        if self.unsent.remove(&attempt.id) == Some(true) {
            // The agent is gone, or wants it stopped, and no byte has left: nothing is begun for nobody.
            let report = Report::silent(Failure::of(Code::ToolCancelled), Certainty::NotSent);
            self.arrives_at(node, session, result(attempt.id, Box::new(report)));
            return Ok(());
        }
        let other_run = run.is_some_and(|run| run != upstream.seen_run());
        if other_run && self.flaw != Some(Flaw::AnyRun) {
            self.arrives_at(node, session, result(attempt.id, refused()));
            return Ok(());
        }
        self.watch.sends(session, &attempt)?;
        let percent = if self.troubled() { self.fault_percent } else { 0 };
        let mut fault = Fault::draw(&mut self.chance, percent, attempt.purpose, tool.life_ms);
        let based = attempt.purpose == Purpose::Act && !own.contract().evidence.is_empty();
        // Who was called stale once is often called so again.
        let stale = if self.watch.times_stale(&attempt.id) > 0 { percent } else { percent / 2 };
        if based && fault == Fault::None && self.chance.percent(stale) {
            fault = Fault::Stale;
        }
        fault = self.curious_fault(&attempt.id, attempt.purpose, fault);
        let request = Request {
            effect_key: target.effect_key,
            fact: (attempt.purpose == Purpose::Evidence).then_some(attempt.tool),
            undoes: target.undoes,
            attempt: attempt.id,
            purpose: attempt.purpose,
            tool: target.tool,
            args: target.args,
            wish: target.wish,
            run: upstream.run,
            sent: self.now,
            session: session.clone(),
            from: (node, self.nodes[node].life),
            fault,
        };
        self.watch.note(|| format!("{session}: sends {} ({fault:?})", request.attempt));
        self.sent.insert(request.attempt.clone(), request.clone());
        let soon = self.chance.between(1, 40);
        match fault {
            Fault::Refused => self.answer_in(soon, &request, refused()),
            Fault::LoseRequest { broken: true } => {
                let failure = Failure::of(Code::ConnectionLost);
                let report = Report::silent(failure, Certainty::InDoubt);
                self.answer_in(soon, &request, Box::new(report));
            }
            Fault::LoseRequest { broken: false } => {}
            Fault::Delay { after } => {
                let ms = after.min(tool.life_ms - 1);
                self.later(ms, Happening::Arrive(Box::new(request)));
            }
            _ => self.later(soon, Happening::Arrive(Box::new(request))),
        }
        Ok(())
    }

    /// A request reaches its upstream.
    pub(crate) fn arrive(&mut self, request: Request) -> Result<(), Box<Broken>> {
        let reached = self.upstreams[self.tools[request.tool].place].reaches(&request);
        match request.fault {
            Fault::Round if reached => {
                self.answer_with_a_question(&request);
                return Ok(());
            }
            Fault::Asks if reached => {
                self.ask_and_wait(request);
                return Ok(());
            }
            _ => {}
        }
        let before = self.book.done().len();
        let upstream = &mut self.upstreams[self.tools[request.tool].place];
        let reactions = upstream.arrive(self.now, &request, self.tools, &mut self.book, &mut self.chance, self.flaw);
        self.watch.happened(&self.book, before)?;
        for reaction in reactions {
            match reaction {
                Reaction::Answer(ms, report) => self.answer_in(ms, &request, report),
                Reaction::Later(ms, answers) => {
                    self.later(ms, Happening::Effect(Box::new(request.clone()), answers));
                }
            }
        }
        Ok(())
    }

    /// A request takes effect late, unless its process has died since.
    pub(crate) fn late_effect(&mut self, request: Request, answers: bool) -> Result<(), Box<Broken>> {
        let before = self.book.done().len();
        let upstream = &mut self.upstreams[self.tools[request.tool].place];
        if !upstream.reaches(&request) {
            return Ok(());
        }
        let report = upstream.apply(self.now, &request, self.tools, &mut self.book, self.flaw);
        self.watch.happened(&self.book, before)?;
        if answers {
            self.answer_in(2, &request, report);
        }
        Ok(())
    }

    pub(super) fn answer_in(&mut self, ms: u64, request: &Request, mut report: Box<Report>) {
        let (node, life) = request.from;
        let contract = self.tools[request.tool].contract();
        if contract.effect == EffectKind::Write && report.failure.is_none() {
            let undo = contract.reverse.as_ref();
            report.undo = undo.map(|undo| Box::new(Undo { tool: undo.tool.clone(), within_ms: undo.within_ms }));
        }
        let news = News::Answer(request.session.clone(), request.attempt.clone(), report);
        self.later(ms, Happening::Node(node, life, news));
    }

    /// An answer reaches the node that sent the request. Once the attempt was stopped it may well be thrown away.
    pub(crate) fn answered(
        &mut self,
        node: usize,
        session: &SessionId,
        attempt: AttemptId,
        mut report: Box<Report>,
    ) -> Result<(), Box<Broken>> {
        if self.aborted.contains(&attempt) && self.chance.percent(50) {
            return Ok(());
        }
        let driver = self.nodes[node].drivers.get(session);
        if driver.is_none_or(|driver| driver.dispatcher.is_open(&attempt.call)) {
            report.undo = None;
        }
        self.watch.hears(&attempt, &report);
        self.mishear(&attempt, &mut report);
        if let Some(failure) = &mut report.failure
            && let Some(ms) = failure.retry_after_ms
        {
            self.watch.asked_to_wait(&attempt, self.time().ms(), ms);
            if self.flaw == Some(Flaw::Impatient) {
                failure.retry_after_ms = None;
            }
        }
        self.input(node, session, result(attempt, report))
    }

    /// Looks whether a joined call has ended; its stored answer is then the answer of the join.
    pub(crate) fn poll(
        &mut self,
        node: usize,
        session: &SessionId,
        attempt: AttemptId,
        holder: Box<Held>,
    ) -> Result<(), Box<Broken>> {
        let machine = &self.nodes[node];
        let open = machine.drivers.get(session).is_some_and(|driver| driver.dispatcher.is_open(&attempt.call));
        if !open {
            return Ok(());
        }
        let found = record::now(machine.ledger.answer(&holder.call));
        if let Some(Ok(Some(answer))) = found {
            let mut report = Report::success(None);
            report.certainty = answer.certainty;
            report.recorded = Some(amends_core::attempt::Recorded {
                outcome: answer.outcome,
                certainty: answer.certainty,
                code: None,
                refused: None,
            });
            return self.input(node, session, result(attempt, Box::new(report)));
        }
        let awaits = holder.state == ClaimState::Awaiting;
        if (awaits || holder.state == ClaimState::InFlight)
            && let Some(Ok(held)) = record::now(machine.ledger.held(&holder.name, self.time()))
        {
            let same = held.filter(|held| held.call == holder.call);
            let granted = same.as_ref().filter(|held| held.state == ClaimState::Granted);
            if granted.is_some() || (awaits && same.is_none()) {
                let granted = granted.map(|held| held.effect_key.clone());
                let report = Report { certainty: Certainty::NotSent, granted, ..Report::success(None) };
                return self.input(node, session, result(attempt, Box::new(report)));
            }
        }
        let news = News::Poll(session.clone(), attempt, holder);
        self.tell(self.now + POLL_MS, node, news);
        Ok(())
    }
}

fn result(attempt: AttemptId, report: Box<Report>) -> Input {
    Input::Result { attempt, report }
}
