//! What each thing that happens does: the driver's part as the real drivers do it, and the upstream's.

use std::sync::Arc;

use amends_core::attempt::Recorded;
use amends_core::dispatcher::cancel::CancelReason;
use amends_core::event::VERSION;
use amends_core::interaction::choice;
use amends_core::{
    Answer, AttemptId, CallId, Certainty, Code, Effect, EffectKind, Event, Fact, Failure, Gates, Input, Outcome,
    PersonAnswer, Purpose, Refusal, RefusalKind, Reply, Report, Timestamp,
};

use crate::driver::{Driver, Known, Waiting};
use crate::ledger::Refused;
use crate::tools::{call_id, own_key, session_id};
use crate::world::{Action, Flaw, Request, Response, State, Told, World};

impl State {
    pub(crate) fn happen(&mut self, world: &World, action: Action) {
        match action {
            Action::Make(index) => {
                self.made[index] = true;
                let wish = &world.calls[index];
                if let Some(rules) = world.rules(&wish.tool.hash()) {
                    let call = wish.call(index, self.now, rules);
                    self.handle(world, wish.session, Input::Call(Box::new(call)), Gates::default());
                }
            }
            Action::Cancel(index) => {
                self.left.cancels -= 1;
                let input = Input::Cancel { call: call_id(index), reason: CancelReason::Asked };
                self.handle(world, world.calls[index].session, input, Gates::default());
            }
            Action::Append(session) => self.append(world, session),
            Action::Perform(session) => {
                if let Some(effect) = self.drivers[session].justified.pop_front() {
                    self.perform(world, session, &effect.value);
                }
            }
            Action::Crash(session) => {
                self.left.crashes -= 1;
                self.drivers[session].crash();
                self.back.retain(|(request, _)| request.session != session);
            }
            Action::TakeUp(session) => {
                let driver = &mut self.drivers[session];
                driver.live = driver.restored(session, world);
                if !driver.durable.value.is_empty() {
                    self.handle(world, session, Input::Resume, Gates::default());
                }
            }
            Action::Tick(session) => {
                self.left.ticks -= 1;
                let live = self.drivers[session].live.as_ref();
                let at = live.and_then(|live| live.deadline()).map_or(self.now, |deadline| deadline.at.ms());
                self.now = self.now.max(at);
                let now = self.now;
                self.wire.retain(|request| request.until.is_none_or(|until| now < until));
                self.handle(world, session, Input::Tick, Gates::default());
            }
            Action::Join(session, attempt) => self.join(world, session, attempt),
            Action::Arrive(request) => self.arrive(world, request),
            Action::Lose(request) => drop(self.wire.remove(&request)),
            Action::Refuse(request) => {
                self.left.refusals -= 1;
                self.wire.remove(&request);
                self.answers(request, Response::Refused);
            }
            Action::Answer(request, response) => {
                self.back.remove(&(request.clone(), response));
                self.answered(world, request, response);
            }
            Action::Person(session, question, happened) => {
                let picked = if happened { choice::HAPPENED } else { choice::DID_NOT_HAPPEN };
                let at = Timestamp::from_ms(self.now);
                let answer = PersonAnswer { choice: picked.into(), by: "person".into(), note: None, at, content: None };
                let input = Input::Answer { interaction: question.id, answer: Box::new(answer) };
                self.handle(world, session, input, Gates::default());
            }
        }
    }

    fn handle(&mut self, world: &World, session: usize, input: Input, gates: Gates) {
        let now = Timestamp::from_ms(self.now);
        let Some(live) = &mut self.drivers[session].live else {
            return;
        };
        let step = Arc::make_mut(live).handle(now, &gates, input.clone());
        if step.events.is_empty() {
            return;
        }
        let early: Vec<Effect> = step.effects.iter().filter(|effect| is_early(world.flaw, effect)).cloned().collect();
        self.drivers[session].queue.push_back(Known::new(Waiting { input, gates, step }));
        for effect in early {
            self.perform(world, session, &effect);
        }
    }

    /// The oldest step goes to the ledger. Where a claim is held the call is handed in again as a repeat, and where a token
    /// is spent it is handed in again to be refused; what was handled after it is handled again.
    fn append(&mut self, world: &World, session: usize) {
        let driver = &mut self.drivers[session];
        let Some(waiting) = driver.queue.pop_front() else {
            return;
        };
        let step = &waiting.value.step;
        let mut left = self.ledger.value.after(step, &session_id(session), false);
        if world.flaw == Some(Flaw::IgnoreHeld) && left.is_err() {
            left = self.ledger.value.after(step, &session_id(session), true);
        }
        let refused = match left {
            Ok(ledger) => {
                if ledger != *self.ledger.value {
                    self.ledger = Known::new(ledger);
                }
                driver.record(&step.events);
                let effects = step.effects.iter().filter(|effect| !is_early(world.flaw, effect));
                driver.justified.extend(effects.cloned().map(Known::new));
                return;
            }
            Err(refused) => refused,
        };
        let mut again = (*waiting.value).clone();
        if let Input::Call(call) = &mut again.input {
            match refused {
                Refused::Held(held) => call.repeat_of = Some(*held),
                Refused::Spent => {
                    call.redeems = None;
                    let refusal = Refusal::of(RefusalKind::ReversalRefused, "it was redeemed by another call");
                    again.gates.refusal = Some(Box::new(refusal));
                }
            }
        }
        let later: Vec<Known<Waiting>> = driver.queue.drain(..).collect();
        driver.live = driver.restored(session, world);
        self.handle(world, session, again.input, again.gates);
        for waiting in later {
            self.handle(world, session, waiting.value.input.clone(), waiting.value.gates.clone());
        }
    }

    fn perform(&mut self, world: &World, session: usize, effect: &Effect) {
        match effect {
            Effect::Send(attempt) if attempt.purpose == Purpose::Join => {
                if let Some(held) = &attempt.holder {
                    self.drivers[session].joins.push((attempt.id.clone(), held.call.clone()));
                }
            }
            Effect::Send(attempt) => {
                if self.now >= attempt.send_by.ms() {
                    return;
                }
                let started =
                    |fact: &Fact| matches!(fact, Fact::AttemptStarted { attempt: its, .. } if *its == attempt.id);
                self.unrecorded |= !self.drivers[session].facts().any(started);
                self.send(world, session, attempt.id.clone(), attempt.purpose);
            }
            Effect::Abort(attempt) => {
                if world.flaw == Some(Flaw::ResendOnTimeout)
                    && !self.drivers[session].joins.iter().any(|j| j.0 == *attempt)
                {
                    self.send(world, session, attempt.clone(), Purpose::Act);
                }
                self.drivers[session].joins.retain(|(join, _)| join != attempt);
            }
            Effect::Reply(reply) => self.tell(session, reply),
            Effect::Ask(_) | Effect::Withdraw(_) => {}
            Effect::Inquire(_) | Effect::Tell(_) | Effect::Retract { .. } => {}
            Effect::Begin(_) | Effect::Weigh { .. } | Effect::Join { .. } | Effect::Unwind { .. } => {}
        }
    }

    fn send(&mut self, world: &World, session: usize, attempt: AttemptId, purpose: Purpose) {
        let Some(call) = (0..self.made.len()).find(|index| call_id(*index) == attempt.call) else {
            return;
        };
        let settles = world.calls[call].tool.rules(None).contract.settles_within_ms;
        let until = settles.filter(|_| purpose == Purpose::Act).map(|life| self.now + life);
        let key = self.key(&attempt.call);
        let life = self.drivers[session].life;
        self.wire.insert(Request { session, life, attempt, purpose, call, key, until });
    }

    /// A request reaches the upstream, which does what it asks and answers.
    fn arrive(&mut self, world: &World, request: Request) {
        self.wire.remove(&request);
        if request.purpose != Purpose::Act {
            let happened = self.effects.contains_key(&request.key);
            return self.answers(request, Response::Status(happened));
        }
        let count = self.effects.get(&request.key).copied().unwrap_or_default();
        let after = match world.calls[request.call].tool.effect() {
            EffectKind::Read => 0,
            EffectKind::Idempotent => 1,
            EffectKind::Keyed if world.flaw != Some(Flaw::KeysForgotten) => 1,
            EffectKind::Keyed | EffectKind::Write => count + 1,
        };
        if after > 0 {
            self.effects.insert(request.key.clone(), after);
        }
        self.answers(request, Response::Done);
    }

    fn answers(&mut self, request: Request, response: Response) {
        if self.drivers[request.session].live.is_some() && self.drivers[request.session].life == request.life {
            self.back.insert((request, response));
        }
    }

    fn answered(&mut self, world: &World, request: Request, response: Response) {
        let report = match response {
            Response::Done => Report::success(None),
            Response::Status(happened) => Report { happened: Some(happened), fits: true, ..Report::success(None) },
            Response::Refused => Report::silent(Failure::of(Code::ConnectRefused), Certainty::NotSent),
        };
        let call = request.attempt.call.clone();
        let (session, attempt) = (request.session, request.attempt);
        self.handle(world, session, Input::Result { attempt, report: Box::new(report) }, Gates::default());
        let driver = &mut self.drivers[session];
        let over = |fact: &Fact| matches!(fact, Fact::CallEnded { call: ended, .. } if *ended == call);
        if world.flaw == Some(Flaw::EndAgain) && driver.queue.len() == 1 && driver.facts().any(over) {
            let (outcome, certainty) = (Outcome::SucceededAfterCompensation, Certainty::Processed);
            let (replayed, granted, lasts) = (false, false, false);
            let fact = Fact::CallEnded { call, outcome, certainty, attempt: None, replayed, granted, lasts };
            let seq = driver.durable.value.len() as u64 + 1;
            driver.queue.clear();
            driver.record(&[Event { v: VERSION, seq, at: Timestamp::from_ms(self.now), fact }]);
        }
    }

    /// How a call ended, where that is durable. What a person said later outranks it.
    pub(crate) fn answer(&self, call: &CallId) -> Option<Recorded> {
        let facts = self.drivers.iter().flat_map(Driver::facts);
        facts.fold(None, |found, fact| match fact {
            Fact::CallEnded { call: its, outcome, certainty, .. } if its == call => {
                Some(Recorded { outcome: *outcome, certainty: *certainty, code: None, refused: None })
            }
            Fact::DoubtResolved { call: its, certainty, .. } if its == call => {
                found.map(|found: Recorded| Recorded { certainty: *certainty, ..found })
            }
            _ => found,
        })
    }

    fn join(&mut self, world: &World, session: usize, attempt: AttemptId) {
        let joins = &mut self.drivers[session].joins;
        let Some(index) = joins.iter().position(|(join, _)| *join == attempt) else {
            return;
        };
        let (_, holder) = joins.remove(index);
        if let Some(recorded) = self.answer(&holder) {
            let report = Report { certainty: recorded.certainty, recorded: Some(recorded), ..Report::success(None) };
            self.handle(world, session, Input::Result { attempt, report: Box::new(report) }, Gates::default());
        }
    }

    /// An agent is told what became of its call.
    fn tell(&mut self, session: usize, reply: &Reply) {
        let facts = || self.drivers[session].facts();
        let ended = |fact: &Fact| match fact {
            Fact::CallEnded { call, .. }
            | Fact::CallRefused { call, .. }
            | Fact::InterimAnswered { call }
            | Fact::DoubtResolved { call, .. } => *call == reply.call,
            _ => false,
        };
        self.unfounded |= !facts().any(ended);
        let own = (0..self.made.len()).find(|index| call_id(*index) == reply.call).map(own_key).unwrap_or_default();
        let (key, told) = match &reply.answer {
            Answer::Forward { .. } => (self.key(&reply.call), Told::Done),
            Answer::Envelope(envelope) => match envelope.error() {
                None => (self.key(&reply.call), Told::Done),
                // A refusal speaks of this call alone.
                Some(error) if envelope.outcome().is_none() && error.certainty.nothing_happened() => {
                    (own, Told::Nothing)
                }
                Some(error) => (self.key(&reply.call), error.certainty.into()),
            },
            Answer::Asked { .. } => return,
            Answer::Recorded { attempt } => {
                let holder = facts().find_map(|fact| match fact {
                    Fact::CallReceived { received, .. } if received.call == reply.call => received.repeat_of.clone(),
                    _ => None,
                });
                let recorded = facts().find_map(|fact| match fact {
                    Fact::AttemptEnded { attempt: its, report, .. } if its == attempt => report.recorded,
                    _ => None,
                });
                match holder.zip(recorded) {
                    Some((holder, recorded)) => (holder.effect_key, recorded.certainty.into()),
                    None => return,
                }
            }
        };
        self.told.insert((key, told));
    }
}

/// Whether a flawed driver does this before its step is durable.
fn is_early(flaw: Option<Flaw>, effect: &Effect) -> bool {
    match effect {
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
    }
}
