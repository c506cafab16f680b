//! The stage: where one agent, one gateway, one upstream and one person meet, in virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use amends_core::interaction::{Subject as About, choice};
use amends_core::{
    AttemptId, CallId, Certainty, Input, Interaction, InteractionId, PersonAnswer, Report, Rules, SessionId, Timestamp,
    ToolName,
};
use amends_ledger::{MemoryLedger, Node};

use super::agent::{Agent, Manner};
use super::fault::Fault;
use super::promise::{Broken, Judge, Judged, Promise, broken};
use super::row::Asked;
use super::subject::{Assume, Scene, Subject};
use super::told::Told;
use super::upstream::{Reaction, Request, Upstream};
use crate::catalog::{SHOP, Tool};
use crate::driver::Driver;

/// When a run begins, in milliseconds since 1970.
const BEGIN_MS: u64 = 1_000_000;
/// How many things happen in one run at most.
const HAPPENINGS_MAX: u32 = 5_000;
/// How long a request takes to its upstream.
pub(super) const TRANSIT_MS: u64 = 20;
/// How long a person thinks.
const PERSON_MS: u64 = 10 * 60 * 1000;
/// How long an agent takes to connect again.
const RECONNECT_MS: u64 = 1_500;
/// How long a gateway takes to start again.
const RESTART_MS: u64 = 1_000;
/// The digest of the rules of the tool that undoes.
pub(super) const UNDO_RULES: &str = "undo-rules";
/// For how long the ledger is away.
pub(super) const AWAY_MS: u64 = 3_000;

/// What the person does who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Person {
    /// Answers the truth after ten minutes.
    Answers,
    /// Never answers.
    Silent,
}

/// What is played.
#[derive(Clone, Debug)]
pub(super) struct Plan<'a> {
    pub(super) subject: &'a Subject,
    pub(super) assume: Option<Assume>,
    pub(super) scene: Scene,
    /// What the first attempt meets, the next, and so on.
    pub(super) faults: &'a [Fault],
    /// Whether a read before the first send counts as an attempt.
    pub(super) reading_first: bool,
    pub(super) manner: Manner,
    pub(super) person: Person,
    pub(super) seed: u64,
}

/// Something that will happen.
#[derive(Debug)]
pub(super) enum Happening {
    Ask,
    AskBeside,
    Arrive(Box<Request>),
    Effect(Box<Request>),
    Answer(Box<Request>, Box<Report>),
    Input(u32, SessionId, Box<Input>),
    Tick(u32, SessionId),
    Poll(u32, SessionId, AttemptId, CallId),
    Person(SessionId, Box<Interaction>),
    Restart,
    LedgerBack,
}

/// One run.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    pub(super) plan: Plan<'a>,
    pub(super) now: u64,
    heap: std::collections::BinaryHeap<Reverse<(u64, u64)>>,
    due: BTreeMap<u64, Happening>,
    order: u64,
    /// The tool, and the one that undoes it.
    pub(super) tools: Vec<Tool>,
    pub(super) ledger: MemoryLedger,
    pub(super) away: bool,
    pub(super) was_away: bool,
    pub(super) alive: bool,
    pub(super) life: u32,
    pub(super) drivers: BTreeMap<SessionId, Driver>,
    pub(super) backlog: Vec<(SessionId, Input)>,
    pub(super) upstream: Upstream<'a>,
    pub(super) agent: Agent,
    /// Whether the write is done whose token is redeemed.
    pub(super) written: bool,
    /// What the other agent was told.
    pub(super) other: Vec<Told>,
    pub(super) judge: Judge<'a>,
    /// Which attempt, counted from the first, each one is.
    pub(super) slots: BTreeMap<AttemptId, usize>,
    /// The faults of the gateway that have happened, by slot.
    pub(super) fired: BTreeSet<usize>,
    /// The answer of each call that ended.
    pub(super) answers: BTreeMap<CallId, Told>,
    pub(super) joins: BTreeMap<AttemptId, CallId>,
    pub(super) questions: BTreeSet<InteractionId>,
    pub(super) sends: u32,
    pub(super) reads: u32,
    pub(super) asked: Vec<Asked>,
    pub(super) log: Option<Vec<String>>,
}

/// What a run amounted to.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) sends: u32,
    pub(super) reads: u32,
    pub(super) effects: u32,
    pub(super) undone: u32,
    pub(super) told: Vec<Told>,
    pub(super) other: Vec<Told>,
    pub(super) asked: Vec<Asked>,
    pub(super) wait_ms: u64,
    /// How many attempts there were that could meet a fault.
    pub(super) met: usize,
    pub(super) broken: Option<Broken>,
    pub(super) log: Vec<String>,
}

/// Plays a plan to its end.
pub(super) fn play(plan: Plan<'_>, logged: bool) -> Played {
    let mut stage = Stage::new(plan, logged);
    let broken = stage.run().err();
    Played {
        sends: stage.sends,
        reads: stage.reads,
        effects: stage.effects(),
        undone: stage.upstream.undone,
        told: stage.agent.told,
        other: stage.other,
        asked: stage.asked,
        wait_ms: stage.agent.wait_ms,
        met: stage.slots.values().max().map_or(0, |slot| slot + 1),
        broken,
        log: stage.log.unwrap_or_default(),
    }
}

impl<'a> Stage<'a> {
    fn new(plan: Plan<'a>, logged: bool) -> Self {
        let subject = plan.subject;
        let tool = |name: ToolName, rules: &Arc<Rules>, hash: &str| Tool {
            name,
            place: SHOP,
            upstream: subject.upstream.clone(),
            rules: rules.clone(),
            hash: hash.into(),
            life_ms: rules.contract.request_life_ms(),
            object: None,
            undo: None,
        };
        let mut tools = vec![tool(subject.tool.clone(), &subject.rules, "rules")];
        if let Some((rules, reverse)) = subject.undo.as_ref().zip(subject.contract().reverse.as_ref()) {
            tools.push(tool(ToolName::new(reverse.tool.as_str()), rules, UNDO_RULES));
        }
        let node = Node { id: "drill".into(), place: String::new(), lease_ms: 10_000 };
        Self {
            now: BEGIN_MS,
            heap: Default::default(),
            due: BTreeMap::new(),
            order: 0,
            tools,
            ledger: MemoryLedger::new(node),
            away: false,
            was_away: false,
            alive: true,
            life: 0,
            drivers: BTreeMap::new(),
            backlog: Vec::new(),
            upstream: Upstream::new(subject, plan.assume),
            agent: Agent::new(),
            written: false,
            other: Vec::new(),
            judge: Judge::new(subject),
            slots: BTreeMap::new(),
            fired: BTreeSet::new(),
            answers: BTreeMap::new(),
            joins: BTreeMap::new(),
            questions: BTreeSet::new(),
            sends: 0,
            reads: 0,
            asked: Vec::new(),
            log: logged.then(Vec::new),
            plan,
        }
    }

    fn run(&mut self) -> Judged {
        self.later(0, Happening::Ask);
        if let Scene::Beside { after_ms } = self.plan.scene {
            self.later(after_ms, Happening::AskBeside);
        }
        let mut happenings = 0;
        while let Some(Reverse((at, order))) = self.heap.pop() {
            happenings += 1;
            if happenings > HAPPENINGS_MAX {
                return broken(Promise::OneEnd, "it does not come to rest");
            }
            self.now = at;
            if let Some(what) = self.due.remove(&order) {
                self.happen(what)?;
            }
        }
        if self.agent.waiting_since.is_some() {
            return broken(Promise::WithinDeadline, "the agent never gets an answer");
        }
        self.judge.over()?;
        self.decided_again()
    }

    fn happen(&mut self, what: Happening) -> Judged {
        match what {
            Happening::Ask if !self.alive => self.later(RECONNECT_MS, Happening::Ask),
            Happening::Ask => return self.ask(),
            Happening::AskBeside if !self.alive => self.later(RECONNECT_MS, Happening::AskBeside),
            Happening::AskBeside => return self.ask_beside(),
            Happening::Arrive(request) => return self.arrive(*request),
            Happening::Effect(request) => {
                self.upstream.late_effect(self.now, &request);
                self.note(|| format!("upstream: {} takes effect late", request.attempt));
                return self.happened();
            }
            Happening::Answer(request, report) => return self.answered(*request, report),
            Happening::Input(life, session, input) if life == self.life => return self.turn(&session, *input),
            Happening::Tick(life, session) if life == self.life => return self.tick(&session),
            Happening::Poll(life, session, attempt, holder) if life == self.life => {
                return self.poll(&session, attempt, holder);
            }
            Happening::Input(..) | Happening::Tick(..) | Happening::Poll(..) => {}
            Happening::Person(session, question) => return self.person(&session, &question),
            Happening::Restart => return self.restart(),
            Happening::LedgerBack => return self.ledger_back(),
        }
        Ok(())
    }

    pub(super) fn later(&mut self, ms: u64, what: Happening) {
        self.order += 1;
        self.heap.push(Reverse((self.now + ms, self.order)));
        self.due.insert(self.order, what);
    }

    pub(super) const fn time(&self) -> Timestamp {
        Timestamp::from_ms(self.now)
    }

    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(format!("{:>9} {}", self.now - BEGIN_MS, line()));
        }
    }

    /// What befalls an attempt, and which one it is.
    pub(super) fn fault(&self, attempt: &AttemptId) -> (Fault, Option<usize>) {
        let slot = self.slots.get(attempt).copied();
        (slot.and_then(|slot| self.plan.faults.get(slot).copied()).unwrap_or(Fault::Ok), slot)
    }

    /// Whether a fault of the gateway befalls an attempt now; it does so once.
    pub(super) fn fires(&mut self, attempt: &AttemptId, wanted: Fault) -> bool {
        match self.fault(attempt) {
            (fault, Some(slot)) if fault == wanted => self.fired.insert(slot),
            _ => false,
        }
    }

    /// A request reaches its upstream.
    fn arrive(&mut self, request: Request) -> Judged {
        let reaction = self.upstream.arrive(self.now, &request);
        let effects = self.upstream.book.len();
        self.note(|| format!("upstream: takes {} ({}), effects {effects}", request.attempt, request.fault.name()));
        self.happened()?;
        match request.fault {
            Fault::KillInFlight if self.fires(&request.attempt, Fault::KillInFlight) => self.kill(),
            Fault::CancelAfter => self.cancel(&request, 1),
            _ => {}
        }
        match reaction {
            Reaction::Silence => {}
            Reaction::Answer(ms, report) => self.later(ms, Happening::Answer(Box::new(request), report)),
            Reaction::Later(ms) => self.later(ms, Happening::Effect(Box::new(request))),
        }
        Ok(())
    }

    pub(super) fn happened(&self) -> Judged {
        let adds_up = self.plan.assume == Some(Assume::RepeatsAddUp);
        self.judge.happened(&self.upstream, adds_up)
    }

    /// How often what is drilled took effect.
    fn effects(&self) -> u32 {
        let book = if self.written { &self.upstream.undoings } else { &self.upstream.book };
        book.iter().filter(|done| self.is_drilled(&done.call)).count() as u32
    }

    /// An answer, or a broken line, reaches the gateway that sent the request, if that lives.
    fn answered(&mut self, request: Request, report: Box<Report>) -> Judged {
        if request.life != self.life || !self.alive {
            return Ok(());
        }
        if self.fires(&request.attempt, Fault::KillAfterResult) {
            self.kill();
            return Ok(());
        }
        self.turn(&request.session, Input::Result { attempt: request.attempt, report })
    }

    /// The gateway is killed. An upstream that is its child goes with it.
    pub(super) fn kill(&mut self) {
        self.note(|| "gateway: is killed".into());
        self.alive = false;
        self.life += 1;
        self.drivers.clear();
        self.backlog.clear();
        if self.plan.subject.restarts_seen {
            self.upstream.restart();
        }
        self.cut(RECONNECT_MS);
        self.later(RESTART_MS, Happening::Restart);
    }

    /// A person answers the truth, after which the agent may ask again.
    fn person(&mut self, session: &SessionId, question: &Interaction) -> Judged {
        if !self.alive || self.away {
            self.later(AWAY_MS, Happening::Person(session.clone(), Box::new(question.clone())));
            return Ok(());
        }
        if !self.questions.remove(&question.id) {
            // A late answer told it before.
            self.looks_again(question);
            return Ok(());
        }
        let key = self.judge.effect_key(&question.call);
        let mut books = self.upstream.book.iter().chain(&self.upstream.undoings);
        let happened = books.any(|done| done.call == question.call || done.effect_key == key);
        let choice = match question.subject {
            About::Doubt if happened => choice::HAPPENED,
            About::Doubt => choice::DID_NOT_HAPPEN,
            About::Resend if happened => choice::DENY,
            About::Resend | About::Move | About::Call => choice::APPROVE,
            About::SignIn => choice::DONE,
            About::Notice => choice::SEEN,
        };
        self.note(|| format!("person: answers `{choice}`"));
        let answer =
            PersonAnswer { choice: choice.to_owned(), by: "person".into(), note: None, at: self.time(), content: None };
        let input = Input::Answer { interaction: question.id.clone(), answer: Box::new(answer) };
        self.take_up(session)?;
        self.turn(session, input)?;
        self.looks_again(question);
        Ok(())
    }

    /// The agent asks what became of its call, now that it is settled. Who was told that it was done, or asked anew since, has no
    /// reason to.
    fn looks_again(&mut self, question: &Interaction) {
        let told = self.agent.told.last();
        let knows = told.is_some_and(|told| told.certainty == Certainty::Processed);
        let concerned = self.agent.heard_of.as_ref() == Some(&question.call) || told.is_some_and(|told| told.replayed);
        if question.subject == About::Doubt && !knows && concerned {
            self.later(1_000, Happening::Ask);
        }
    }

    /// A person is asked.
    pub(super) fn asks(&mut self, session: &SessionId, question: Interaction) {
        self.note(|| format!("gateway: asks a person on `{}`: {}", question.queue, question.question));
        self.asked.push(Asked { queue: question.queue.clone(), about: question.subject });
        self.questions.insert(question.id.clone());
        if self.plan.person == Person::Answers {
            self.later(PERSON_MS, Happening::Person(session.clone(), Box::new(question)));
        }
    }
}
