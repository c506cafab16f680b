//! Upstreams that ask something of the agent, and agents that answer, never answer, or answer twice.

use amends_core::attempt::Payload;
use amends_core::inquiry::{Asking, Telling};
use amends_core::{
    Ask, AskKind, AttemptId, CallId, Certainty, Code, Failure, Input, Inquiry, Purpose, Report, SessionId, Unanswered,
    Way,
};

use crate::catalog::INPUT_WITHIN_MS;
use crate::chance::Chance;
use crate::flaw::Flaw;
use crate::upstream::{Fault, Request};
use crate::watch::Broken;
use crate::world::{Happening, News, World};

impl World {
    /// What befalls a request in a world whose upstreams ask: they ask while they work, or in the place of an answer.
    ///
    /// It draws from a stream of its own, so that a world in which nobody asks stays as it was.
    pub(super) fn curious_fault(&self, attempt: &AttemptId, purpose: Purpose, fault: Fault) -> Fault {
        let mut chance = self.aside(attempt, 1);
        if !self.curious || purpose != Purpose::Act || fault != Fault::None || !chance.percent(45) {
            return fault;
        }
        if chance.percent(50) { Fault::Asks } else { Fault::Round }
    }

    /// An upstream answers a request with a question: nothing is done.
    pub(super) fn answer_with_a_question(&mut self, request: &Request) {
        let mut chance = self.aside(&request.attempt, 2);
        let way = chance.pick(&[Way::Line, Way::Return]);
        let report = Report::asking(Box::new(inquiry(way)));
        self.answer_in(chance.between(1, 40), request, Box::new(report));
    }

    /// An upstream asks while it works, and waits: for what it is told, or until it goes on by itself.
    pub(super) fn ask_and_wait(&mut self, request: Request) {
        let mut chance = self.aside(&request.attempt, 3);
        let way = chance.pick(&[Way::Line, Way::Return, Way::Return, Way::Undeclared]);
        let (node, life) = request.from;
        let input = Input::Inquiry { attempt: request.attempt.clone(), inquiry: Box::new(inquiry(way)) };
        let news = News::Input(request.session.clone(), Box::new(input));
        self.later(chance.between(1, 40), Happening::Node(node, life, news));
        // Of its own accord it acts only while a request lives at all.
        let left = (request.sent + self.tools[request.tool].life_ms).saturating_sub(self.now + 200);
        let attempt = request.attempt.clone();
        self.parked.insert(attempt.clone(), Request { fault: Fault::None, ..request });
        self.later(chance.between(50, INPUT_WITHIN_MS.min(left)), Happening::Tired(attempt));
    }

    /// An upstream does not wait any longer: it goes on without an answer, or forgets the request. It may take its question back,
    /// which reaches the node before or after whatever else it does.
    pub(super) fn tired(&mut self, attempt: &AttemptId) {
        let mut chance = self.aside(attempt, 4);
        let Some(request) = self.parked.remove(attempt) else { return };
        let goes_on = chance.percent(60);
        if let Some(inquiry) = self.asking.get(attempt).copied().filter(|_| chance.percent(50)) {
            let (node, life) = request.from;
            let input = Input::Withdrawal { call: attempt.call.clone(), inquiry };
            let news = News::Input(request.session.clone(), Box::new(input));
            self.later(chance.between(1, 60), Happening::Node(node, life, news));
        }
        if goes_on {
            self.later(0, Happening::Arrive(Box::new(request)));
        }
    }

    /// An agent is asked something.
    pub(super) fn inquire(&mut self, session: &SessionId, asking: &Asking) {
        let call = &asking.attempt.call;
        self.asking.insert(asking.attempt.clone(), asking.inquiry);
        let mut chance = self.aside(&asking.attempt, 5 + u64::from(asking.inquiry));
        let times = chance.pick(&[0, 1, 1, 1, 1, 2]);
        for _ in 0..times {
            let ms = chance.between(20, INPUT_WITHIN_MS + 1_000);
            self.later(ms, Happening::Give(session.clone(), call.clone(), asking.inquiry, asking.way));
        }
    }

    /// An agent answers what it was asked: over its line if that is whole, or by coming back to whoever drives the call.
    pub(super) fn give(&mut self, session: &SessionId, call: CallId, inquiry: u32, way: Way) {
        let on_the_line = self.agents.iter().any(|agent| agent.session.as_ref() == Some(session));
        if way == Way::Line && !on_the_line {
            return;
        }
        let drives = |node: &usize| self.nodes[*node].drivers.contains_key(session);
        if let Some(node) = (0..self.nodes.len()).find(drives) {
            let inputs = Payload { digest: "inputs".into(), size: 2 };
            self.arrives_at(node, session, Input::Inputs { call, inquiry, inputs });
        }
    }

    /// An upstream that waits is told, unless that is too late: then it is on its own.
    pub(super) fn told(&mut self, telling: &Telling, lease_until: u64) -> Result<(), Box<Broken>> {
        let late = self.now >= telling.send_by.ms() || self.now >= lease_until;
        if late && self.flaw != Some(Flaw::SendLate) {
            return Ok(());
        }
        let Some(request) = self.parked.remove(&telling.attempt) else {
            return Ok(());
        };
        let mut chance = self.aside(&telling.attempt, 100 + u64::from(telling.inquiry));
        let declined = telling.unanswered.is_some_and(|why| why != Unanswered::Refused);
        if declined && chance.percent(50) {
            let failure = Failure { status: Some(403), ..Failure::of(Code::Forbidden) };
            let report = Report::answered(failure, Certainty::NotProcessed, None);
            self.answer_in(5, &request, Box::new(report));
            return Ok(());
        }
        let fault = if chance.percent(25) { Fault::LoseResponse { broken: chance.percent(50) } } else { Fault::None };
        let request = Request { fault, sent: self.now, ..request };
        self.later(chance.between(1, 40), Happening::Arrive(Box::new(request)));
        Ok(())
    }

    /// A stream of chance for one attempt and one purpose.
    fn aside(&self, attempt: &AttemptId, what: u64) -> Chance {
        let mut hash = self.seed ^ what.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in attempt.call.as_str().bytes().chain(attempt.n.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Chance::new(hash)
    }
}

fn inquiry(way: Way) -> Inquiry {
    Inquiry::of(vec![Ask { kind: AskKind::Form, payload: Payload { digest: "form".into(), size: 2 } }], way)
}
