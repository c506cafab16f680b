//! People: they are asked, look when they get round to it, and tell the truth.

use amends_core::gates::{Approval, Gates, Patience};
use amends_core::interaction::{Interaction, PersonAnswer, Subject, choice};
use amends_core::{CallId, Held, Input, SessionId, Step, Timestamp};

use crate::catalog::Tool;
use crate::flaw::Flaw;
use crate::queue::Place;
use crate::watch::Broken;
use crate::world::{Happening, News, World};

/// How long a person waits before looking again at what may still happen.
const LOOK_AGAIN_MS: u64 = 5_000;

/// How long an agent is kept waiting for a person.
const HOLD_MS: u64 = 3_000;
/// For how long a yes that nobody waited for is good: some agents come too late.
pub(crate) const GRANTED_FOR_MS: u64 = 25_000;

impl World {
    /// Who must say yes to a call, as the driver samples it.
    pub(super) fn ask_first(&self, input: &Input, gates: &mut Gates) {
        let Input::Call(call) = input else { return };
        let tool = self.tools.iter().find(|tool| tool.name == call.tool);
        let persons = tool.map_or(0, Tool::persons);
        if !self.asks_first || persons == 0 || call.redeems.is_some() || self.flaw == Some(Flaw::AskedNobody) {
            return;
        }
        let approval =
            Approval { queue: "ops".into(), persons, policy: String::new(), requester_may: false, form: None };
        gates.approval = Some(Box::new(approval));
        let patience = Patience { hold_ms: HOLD_MS, granted_for_ms: GRANTED_FOR_MS, ..Patience::default() };
        gates.patience = Some(Box::new(patience));
    }

    /// What a step wanted is held by another call: it is handed in again as a repeat, or as one that lost it.
    pub(super) fn lose_to(&mut self, held: Held, input: &mut Input) {
        match input {
            Input::Call(call) => call.repeat_of = Some(held),
            Input::Result { report, .. } if !held.name.as_str().starts_with("o-") => report.granted = None,
            Input::Result { attempt, .. } => drop(self.lost.insert(attempt.to_string())),
            Input::Answer { interaction, .. } => drop(self.lost.insert(interaction.to_string())),
            _ => {}
        }
    }

    /// The ledger keeps what a durable step says of tokens and questions, and people hear of new ones.
    pub(crate) fn keep(&mut self, session: &SessionId, step: &Step) {
        self.tokens.apply(session, &step.reversals, Timestamp::from_ms(self.now));
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
            Subject::Call if self.chance.percent(70) => (choice::APPROVE, choice::DENY),
            Subject::Call => (choice::DENY, choice::APPROVE),
            Subject::SignIn if self.chance.percent(70) => (choice::DONE, choice::DENY),
            Subject::SignIn => (choice::DENY, choice::DONE),
            Subject::Notice => (choice::SEEN, choice::SEEN),
        };
        if self.chance.percent(8) {
            // The door lets through what is no option: the dispatcher must not take it.
            self.hand_over(&place, self.answer_of("perhaps"));
        }
        if interaction.subject == Subject::Call && self.chance.percent(15) {
            // Whoever called says yes to itself: neither the queue nor the dispatcher takes that.
            let own = PersonAnswer { by: "agent".into(), ..self.answer_of(choice::APPROVE) };
            if !self.queue.give(&place, own.clone(), self.flaw) {
                self.hand_over(&place, own);
            }
        }
        let second = interaction.grounds.as_ref().is_some_and(|grounds| grounds.said_yes > 0);
        let by = if second { "dev" } else { "ops" };
        let answer = PersonAnswer { by: by.into(), ..self.answer_of(picked) };
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
        PersonAnswer { choice: choice.into(), by: "ops".into(), note: None, at: self.time(), content: None }
    }
}
