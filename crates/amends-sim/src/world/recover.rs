//! What a driver does when a step is not recorded as it was handled: a claim was held, the lease is lost, the ledger was away.

use amends_core::{Digest, Dispatcher, Event, Fact, Held, Input, SessionId};
use amends_ledger::{Lease, Ledger as _};

use crate::driver::{Driver, Waiting};
use crate::watch::Broken;
use crate::world::turn::ASK_AGAIN_MS;
use crate::world::{News, World, record};

impl World {
    /// A claim was held: the step is dropped, and the call handed in again as the repeat of its holder.
    pub(super) fn hand_in_again(&mut self, node: usize, session: &SessionId, held: Held) -> Result<(), Box<Broken>> {
        self.watch.note(|| format!("{session}: held by {} ({:?})", held.call, held.state));
        let Some(waiting) = self.restore(node, session)? else {
            return Ok(());
        };
        let mut held = Some(held);
        for waiting in waiting {
            let mut input = waiting.input;
            if let Some(held) = held.take() {
                self.lose_to(held, &mut input);
            }
            self.handle(node, session, input)?;
        }
        Ok(())
    }

    /// A token did not count: the step is dropped, and the call handed in again with our No.
    pub(super) fn redemption_refused(
        &mut self,
        node: usize,
        session: &SessionId,
        token: &Digest,
    ) -> Result<(), Box<Broken>> {
        self.watch.note(|| format!("{session}: {token} does not count"));
        let front = self.nodes[node].drivers.get(session).and_then(|driver| driver.queue.front());
        let Some(Input::Call(call)) = front.map(|waiting| waiting.input.clone()) else {
            let what = format!("a step redeems {token} in vain, and is no call");
            return Err(self.watch.broken("one_token_one_undo", None, what));
        };
        self.unredeemed.insert(call.id);
        let Some(waiting) = self.restore(node, session)? else {
            return Ok(());
        };
        for waiting in waiting {
            self.handle(node, session, waiting.input)?;
        }
        Ok(())
    }

    /// Goes back to what the ledger holds, and gives the steps that were dropped. Nothing while the ledger is away.
    fn restore(&mut self, node: usize, session: &SessionId) -> Result<Option<Vec<Waiting>>, Box<Broken>> {
        let machine = &mut self.nodes[node];
        let Some(driver) = machine.drivers.get_mut(session) else {
            return Ok(None);
        };
        let trace = match record::now(machine.ledger.trace(session)) {
            Some(Ok(trace)) => trace,
            _ => {
                driver.stuck = true;
                self.tell(self.now + ASK_AGAIN_MS, node, News::Ask(session.clone()));
                return Ok(None);
            }
        };
        let events: Vec<Event> =
            trace.map(|trace| trace.events.into_iter().map(|stored| stored.event).collect()).unwrap_or_default();
        driver.dispatcher =
            if events.is_empty() { open(session, driver.seed) } else { self.watch.restored(&events)? };
        driver.durable = events.len() as u64;
        driver.history = events;
        driver.stuck = false;
        driver.armed = None;
        let waiting = driver.queue.drain(..).collect();
        self.arm(node, session);
        Ok(Some(waiting))
    }

    /// Asks the ledger what became of the steps whose append failed.
    pub(crate) fn ask_ledger(&mut self, node: usize, session: &SessionId) -> Result<(), Box<Broken>> {
        let machine = &mut self.nodes[node];
        let Some(driver) = machine.drivers.get_mut(session) else {
            return Ok(());
        };
        if !driver.stuck {
            return Ok(());
        }
        let Some(Ok(trace)) = record::now(machine.ledger.trace(session)) else {
            self.tell(self.now + ASK_AGAIN_MS, node, News::Ask(session.clone()));
            return Ok(());
        };
        if trace.as_ref().is_some_and(|trace| trace.epoch != driver.epoch) {
            return self.lose(node, session);
        }
        let stored = trace.map_or(0, |trace| trace.events.len() as u64);
        let mut durable = Vec::new();
        while let Some(front) = driver.queue.front() {
            let last = front.step.events.last().map_or(0, |event| event.seq);
            if last > stored {
                break;
            }
            durable.extend(driver.queue.pop_front());
        }
        driver.stuck = false;
        for waiting in durable {
            self.justify(node, session, waiting);
        }
        let Some(dropped) = self.restore(node, session)? else {
            return Ok(());
        };
        let driver = self.nodes[node].drivers.get_mut(session);
        let backlog = driver.map(|driver| std::mem::take(&mut driver.backlog));
        let inputs = dropped.into_iter().map(|waiting| waiting.input);
        for input in inputs.chain(backlog.unwrap_or_default()) {
            match input {
                Input::Call(call) if call.leg.is_none() => self.refuse_directly(&call.id),
                Input::Move(taking) => self.refuse_move_directly(&taking.id),
                input => self.handle(node, session, input)?,
            }
        }
        Ok(())
    }

    /// The lease is lost: whatever was not durable is for the new holder to decide.
    pub(super) fn lose(&mut self, node: usize, session: &SessionId) -> Result<(), Box<Broken>> {
        self.watch.note(|| format!("{session}: node {node} lost it"));
        let Some(driver) = self.nodes[node].drivers.remove(session) else {
            return Ok(());
        };
        self.hang_up(session);
        let inputs = driver.queue.into_iter().map(|waiting| waiting.input);
        for input in inputs.chain(driver.backlog) {
            self.pass_on(session, input);
        }
        Ok(())
    }

    /// What arrives at a node that no longer drives the session goes to the one that does; what does not, is lost.
    pub(super) fn pass_on(&mut self, session: &SessionId, input: Input) {
        if !matches!(input, Input::Result { .. } | Input::Cancel { .. }) {
            return;
        }
        let drives = |node: &usize| self.nodes[*node].drivers.contains_key(session);
        if let Some(node) = (0..self.nodes.len()).find(drives) {
            let news = News::Input(session.clone(), Box::new(input));
            self.tell(self.now + 1, node, news);
        }
    }

    /// Another node takes a session up.
    pub(crate) fn take_up(&mut self, node: usize, session: &SessionId) -> Result<(), Box<Broken>> {
        let now = self.time();
        let ledger = &self.nodes[node].ledger;
        match record::now(ledger.take(session, now)) {
            Some(Ok(Some(lease))) => self.drive(node, session, lease),
            _ => Ok(()),
        }
    }

    /// A node takes a session up that rests, though another one may hold it.
    pub(crate) fn take_rest(&mut self, node: usize, session: &SessionId) -> Result<(), Box<Broken>> {
        let now = self.time();
        let ledger = &self.nodes[node].ledger;
        match record::now(ledger.take_idle(session, now)) {
            Some(Ok(Some(lease))) => self.drive(node, session, lease),
            _ => Ok(()),
        }
    }

    fn drive(&mut self, node: usize, session: &SessionId, lease: Lease) -> Result<(), Box<Broken>> {
        let ledger = &self.nodes[node].ledger;
        let Some(Ok(Some(trace))) = record::now(ledger.trace(session)) else {
            return Ok(());
        };
        self.watch.note(|| format!("{session}: node {node} takes it, epoch {}", lease.epoch));
        self.watch.taken(session, lease.epoch);
        let events: Vec<Event> = trace.events.into_iter().map(|stored| stored.event).collect();
        let dispatcher = self.watch.restored(&events)?;
        let seed = match events.first().map(|event| &event.fact) {
            Some(Fact::SessionOpened { seed, .. }) => *seed,
            _ => 0,
        };
        let rests = dispatcher.walk().is_some() && dispatcher.open_calls() == 0 && dispatcher.open_questions() == 0;
        let driver = Driver::new(session.clone(), seed, dispatcher, lease.epoch, events);
        self.nodes[node].drivers.insert(session.clone(), driver);
        if rests {
            self.arm(node, session);
            return Ok(());
        }
        self.handle(node, session, Input::Resume)
    }

    /// What the ledger keeps of the fields of walks is what their moves wrote.
    pub(super) fn check_fields(&self) -> Result<(), Box<Broken>> {
        for session in self.watch.walking() {
            if let Some(Ok(stored)) = record::now(self.root.fields(session)) {
                self.watch.fields_follow(session, &stored)?;
            }
        }
        Ok(())
    }

    /// A node opens a session for an agent.
    pub(crate) fn open(&mut self, node: usize) -> SessionId {
        self.sessions += 1;
        let session = SessionId::new(format!("s{:02}", self.sessions));
        // Canonical JSON keeps integers up to 2^53.
        let seed = self.chance.next() >> 11;
        let driver = Driver::new(session.clone(), seed, open(&session, seed), 1, Vec::new());
        self.nodes[node].drivers.insert(session.clone(), driver);
        session
    }
}

fn open(session: &SessionId, seed: u64) -> Dispatcher {
    Dispatcher::open(session.clone(), seed, "agent".into(), "sim")
}
