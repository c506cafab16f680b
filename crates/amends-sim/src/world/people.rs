//! People: they are asked, look when they get round to it, and tell the truth.

use amends_core::interaction::{Interaction, PersonAnswer, Subject, choice};
use amends_core::{CallId, Input, SessionId, Step};

use crate::queue::Place;
use crate::watch::Broken;
use crate::world::{Happening, News, World};

/// How long a person waits before looking again at what may still happen.
const LOOK_AGAIN_MS: u64 = 5_000;

impl World {
    /// The ledger keeps what a durable step says of tokens and questions, and people hear of new ones.
    pub(crate) fn keep(&mut self, session: &SessionId, step: &Step) {
        self.tokens.apply(session, &step.reversals);
        for interaction in self.queue.apply(session, &step.events) {
            let ms = match self.chance.between(0, 9) {
                0..=4 => self.chance.between(100, 3_000),
                5..=7 => self.chance.between(3_000, 50_000),
                // A move waits for a day: somebody looks before the world ends.
                _ if interaction.subject == Subject::Move => self.chance.between(1_000, 60_000),
                // Nobody ever looks.
                _ => continue,
            };
            self.later(ms, Happening::Look(Box::new(interaction)));
        }
    }

    /// A person looks at a question, and answers it if there is an answer yet.
    pub(super) fn look(&mut self, interaction: Interaction) {
        let place = (interaction.session.clone(), interaction.id.clone());
        if !self.watch.is_open(&place) {
            return;
        }
        let (picked, other) = match interaction.subject {
            Subject::Doubt => match self.truth(&interaction.call) {
                Some(true) => (choice::HAPPENED, choice::DID_NOT_HAPPEN),
                Some(false) => (choice::DID_NOT_HAPPEN, choice::HAPPENED),
                None => return self.later(LOOK_AGAIN_MS, Happening::Look(Box::new(interaction))),
            },
            Subject::Move if self.chance.percent(70) => (choice::APPROVE, choice::DENY),
            Subject::Move => (choice::DENY, choice::APPROVE),
            Subject::Resend if self.chance.percent(60) => (choice::APPROVE, choice::DENY),
            Subject::Resend => (choice::DENY, choice::APPROVE),
            Subject::Notice => (choice::SEEN, choice::SEEN),
        };
        if self.chance.percent(8) {
            // The door lets through what is no option: the dispatcher must not take it.
            self.hand_over(&place, self.answer_of("perhaps"));
        }
        let answer = self.answer_of(picked);
        self.watch.answers(&place, picked);
        self.watch.note(|| format!("a person answers {picked} to {}", place.1));
        if self.queue.give(&place, answer, self.flaw) {
            self.deliver(&place);
        }
        if self.chance.percent(25) {
            let ms = self.chance.between(0, 20_000);
            let second = Box::new(self.answer_of(other));
            self.later(ms, Happening::Second(place, second));
        }
    }

    /// A second person answers. The queue holds to the first answer; whatever reaches the dispatcher after that is ignored.
    pub(super) fn second_answer(&mut self, place: &Place, answer: PersonAnswer) {
        if self.queue.give(place, answer.clone(), self.flaw) {
            self.deliver(place);
        } else if !self.queue.is_open(place) {
            self.hand_over(place, answer);
        }
    }

    /// Whether a write happened, as somebody sees who looks at the upstream. Nothing while it still may.
    fn truth(&self, call: &CallId) -> Option<bool> {
        let key = self.watch.effect_key(call);
        if self.book.has(&key) {
            return Some(true);
        }
        (self.now >= self.watch.quiet_at(&key)).then_some(false)
    }

    /// Hands the answer that counts to whoever drives the session.
    fn deliver(&mut self, place: &Place) {
        if let Some(answer) = self.queue.answer(place).cloned() {
            self.hand_over(place, answer);
        }
    }

    fn hand_over(&mut self, place: &Place, answer: PersonAnswer) {
        let (session, interaction) = place.clone();
        if let Some(node) = self.driving(&session) {
            let at = self.now + self.chance.between(0, 20);
            let input = Input::Answer { interaction, answer: Box::new(answer) };
            self.tell(at, node, News::Input(session, Box::new(input)));
        }
    }

    /// A node takes up the sessions that nobody drives and for which an answer has come, or its time has passed.
    pub(super) fn wake(&mut self, node: usize) -> Result<(), Box<Broken>> {
        for session in self.queue.due(self.time()) {
            if self.driving(&session).is_none() {
                self.take_up(node, &session)?;
            }
        }
        for place in self.queue.answered() {
            if self.driving(&place.0).is_none() {
                self.take_up(node, &place.0)?;
            }
            if self.nodes[node].drivers.contains_key(&place.0)
                && let Some(answer) = self.queue.answer(&place).cloned()
            {
                let input = Input::Answer { interaction: place.1, answer: Box::new(answer) };
                self.input(node, &place.0, input)?;
            }
        }
        Ok(())
    }

    /// A node drops sessions from memory that only wait for a person, and walks in which nothing goes on.
    pub(super) fn doze(&mut self, node: usize) {
        let idle = |driver: &crate::driver::Driver| {
            let rests = driver.dispatcher.open_questions() > 0 || driver.dispatcher.walk().is_some();
            let waits = driver.dispatcher.open_calls() == 0 && rests;
            waits && driver.queue.is_empty() && driver.backlog.is_empty() && !driver.stuck
        };
        let drivers = self.nodes[node].drivers.values().filter(|driver| idle(driver));
        let sessions: Vec<SessionId> = drivers.map(|driver| driver.session.clone()).collect();
        for session in sessions {
            if self.chance.percent(25) {
                self.watch.note(|| format!("{session}: dropped from memory"));
                self.nodes[node].drivers.remove(&session);
                self.hang_up(&session);
            }
        }
    }

    pub(super) fn driving(&self, session: &SessionId) -> Option<usize> {
        let drives = |node: &usize| self.nodes[*node].alive && self.nodes[*node].drivers.contains_key(session);
        (0..self.nodes.len()).find(drives)
    }

    fn answer_of(&self, choice: &str) -> PersonAnswer {
        PersonAnswer { choice: choice.into(), by: "ops".into(), note: None, at: self.time() }
    }
}
