//! The watch: it sees every step, every durable event, every effect, and the truth, and holds the promises against them.

mod approved_first;
mod at_most_once;
mod bounded;
mod cancellation;
mod deadlines;
mod evidence_compared;
mod inquiries;
mod intent_first;
mod judged_anew;
mod no_effect_without_event;
mod one_end;
mod one_object_one_write;
mod one_token_one_undo;
mod people;
mod repeats_find_it;
mod same_inputs;
mod truthful;
mod view;
mod walks;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use amends_core::{
    Attempt, AttemptId, CallId, Certainty, Code, Digest, Dispatcher, Effect, Event, Fact, Gates, Input, Reply, Report,
    Rules, SessionId, Step, Timestamp,
};

use crate::catalog::Tool;
use crate::driver::Driver;
use crate::queue::Place;
use crate::upstream::Book;
use crate::world::Summary;
use approved_first::YesView;
use one_token_one_undo::TokenView;
use people::QuestionView;
use view::CallView;
use walks::{MoveView, WalkView};
pub(crate) use walks::{Standing, Told};

/// A promise that was broken.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Which one.
    pub invariant: &'static str,
    /// The call it was broken for, where there is one.
    pub call: Option<CallId>,
    /// The number of the happening at which it was broken.
    pub step: u64,
    /// When, in milliseconds of the world.
    pub at: u64,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` broken at happening {} ({} ms)", self.invariant, self.step, self.at)?;
        if let Some(call) = &self.call {
            write!(f, " by call `{call}`")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// What the watch gives back: nothing, or a broken promise.
pub(crate) type Verdicts = Result<(), Box<Broken>>;

/// The watch over one world.
#[derive(Debug)]
pub struct Watch {
    tools: &'static [Tool],
    step: u64,
    now: u64,
    log: Option<Vec<String>>,
    sessions: BTreeMap<SessionId, SessionView>,
    calls: BTreeMap<CallId, CallView>,
    /// The effects that are proven never to happen, by their key, with who said so.
    never: BTreeMap<String, CallId>,
    /// How often each wish took effect.
    wishes: BTreeMap<u64, u64>,
    /// The wish that each call stands for.
    asked: BTreeMap<CallId, u64>,
    /// The wish that each effect counts for, by its key.
    credited: BTreeMap<String, u64>,
    /// When the upstream said that an attempt may be followed by another.
    not_before: BTreeMap<AttemptId, u64>,
    /// How often each call was answered for good, and how often a person said what became of it after its end.
    answered: BTreeMap<CallId, (u32, u32)>,
    tokens: BTreeMap<Digest, TokenView>,
    questions: BTreeMap<Place, QuestionView>,
    /// Whether people are asked before calls are sent.
    pub(crate) asks_first: bool,
    /// The calls that were approved, and what each yes is.
    approved: BTreeMap<CallId, YesView>,
    /// The calls whose yes was left for another one, and those of which it was spent.
    granted: BTreeMap<CallId, Timestamp>,
    spent: BTreeSet<CallId>,
    walks: BTreeMap<SessionId, WalkView>,
    moves: BTreeMap<CallId, MoveView>,
    /// The wish that each move stands for, and after how many moves its agent thinks the walk is.
    strode: BTreeMap<CallId, (u64, Option<u64>)>,
    /// Wishes without a key whose answer another equal wish took.
    shared: BTreeSet<u64>,
    /// How often each wish moved a walk.
    strides_made: BTreeMap<u64, u64>,
    /// What was really heard of each attempt.
    heard: BTreeMap<AttemptId, Report>,
    seen: Summary,
}

#[derive(Debug, Default)]
struct SessionView {
    epoch: u64,
    events: Vec<Event>,
}

impl Watch {
    pub(crate) fn new(tools: &'static [Tool], logged: bool) -> Self {
        Self {
            tools,
            step: 0,
            now: 0,
            log: logged.then(Vec::new),
            sessions: BTreeMap::new(),
            calls: BTreeMap::new(),
            never: BTreeMap::new(),
            wishes: BTreeMap::new(),
            asked: BTreeMap::new(),
            credited: BTreeMap::new(),
            not_before: BTreeMap::new(),
            answered: BTreeMap::new(),
            tokens: BTreeMap::new(),
            questions: BTreeMap::new(),
            asks_first: false,
            approved: BTreeMap::new(),
            granted: BTreeMap::new(),
            spent: BTreeSet::new(),
            walks: BTreeMap::new(),
            moves: BTreeMap::new(),
            strode: BTreeMap::new(),
            shared: BTreeSet::new(),
            strides_made: BTreeMap::new(),
            heard: BTreeMap::new(),
            seen: Summary::default(),
        }
    }

    /// What was noted, where the world was asked to.
    pub fn log(&self) -> &[String] {
        self.log.as_deref().unwrap_or_default()
    }

    /// What the durable events amount to so far.
    pub(crate) const fn seen_so_far(&self) -> Summary {
        self.seen
    }

    pub(crate) const fn tick(&mut self, step: u64, now: u64) {
        self.step = step;
        self.now = now;
    }

    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(format!("{:>8} {}", self.now, line()));
        }
    }

    pub(crate) fn broken(&self, invariant: &'static str, call: Option<CallId>, what: String) -> Box<Broken> {
        Box::new(Broken { invariant, call, step: self.step, at: self.now, what })
    }

    /// A dispatcher took an input.
    pub(crate) fn stepped(&mut self, driver: &Driver, input: &Input, step: &Step, now: Timestamp) -> Verdicts {
        self.note(|| describe(&driver.session, input, step));
        self.no_effect_without_event(step)?;
        if matches!(input, Input::Tick) {
            self.a_tick_moves_the_deadline(driver, step, now)?;
        }
        self.same_inputs(&driver.dispatcher, &driver.history)
    }

    /// A dispatcher is asked what it would do before its deadline.
    pub(crate) fn early_tick(&self, dispatcher: &Dispatcher, gates: &Gates) -> Verdicts {
        self.an_early_tick_does_nothing(dispatcher, gates)
    }

    /// A step is durable.
    pub(crate) fn durable(&mut self, session: &SessionId, epoch: u64, events: &[Event], book: &Book) -> Verdicts {
        self.note(|| format!("{session}: durable to {}", last_seq(events)));
        let view = self.sessions.entry(session.clone()).or_default();
        view.epoch = epoch;
        view.events.extend(events.iter().cloned());
        self.seen.events += events.len() as u64;
        let mut gates = &Gates::default();
        for (n, event) in events.iter().enumerate() {
            if let Fact::AttemptEnded { gates: seen, .. }
            | Fact::Ticked { gates: seen }
            | Fact::Resumed { gates: seen, .. } = &event.fact
            {
                gates = seen;
            }
            self.one_end(event)?;
            self.inquiries(event)?;
            self.sum_up(event);
            self.walks_on(session, event, events.get(n + 1))?;
            match &event.fact {
                Fact::AttemptStarted { attempt, purpose, .. } => {
                    self.judged_before_the_next(attempt)?;
                    self.no_blind_resend(attempt, *purpose, event)?;
                    self.bounded_attempt(attempt, *purpose, event.at)?;
                    self.held_back(attempt, *purpose, gates)?;
                    self.cancellation(attempt, *purpose)?;
                    self.repeats_find_it(attempt, *purpose)?;
                    self.evidence_compared(attempt, *purpose)?;
                    self.one_object_one_write(attempt, *purpose, event.at)?;
                    self.redeems_what_counts(attempt, *purpose, event.at)?;
                    self.approved_before_resend(session, event)?;
                    self.approved_first(attempt, *purpose)?;
                    self.goes_on_with_its_key(attempt);
                }
                Fact::FailureJudged { .. } => {
                    self.judged_by_its_own(event)?;
                    self.bounded_ladder(event)?;
                }
                Fact::DoubtSettled { .. } => self.settled_by_proof(event, book)?,
                Fact::CallApproved { .. } => self.a_yes_counts(session, event)?,
                Fact::CallEnded { .. } => {
                    self.leaves_its_yes(event);
                    self.replayed_as_recorded(event)?;
                    self.truthful_end(event, book)?;
                    self.asks_a_person(session, event)?;
                    self.settles_its_token(event)?;
                }
                Fact::CallRefused { call, refusal } => {
                    self.truthful_refusal(call, book)?;
                    self.refusal_is_said(call, refusal)?;
                }
                Fact::InteractionOpened { .. }
                | Fact::InteractionAnswered { .. }
                | Fact::InteractionLapsed { .. }
                | Fact::InteractionWithdrawn { .. } => self.one_answer(session, event)?,
                Fact::DoubtResolved { call, .. } => {
                    self.answered.entry(call.clone()).or_default().1 += 1;
                    self.resolved_by_answer(session, event)?;
                    self.truthful_resolution(event, book)?;
                    self.settles_its_token(event)?;
                }
                Fact::ReversalMinted { .. }
                | Fact::ReversalArmed { .. }
                | Fact::ReversalVoided { .. }
                | Fact::ReversalRedeemed { .. } => self.token_moves(event, events.get(n + 1), book)?,
                Fact::AnswerDelivered { call } => self.credit(call)?,
                _ => {}
            }
            view::apply(&mut self.calls, session, epoch, event, self.tools);
        }
        Ok(())
    }

    /// A node took a session: whoever held it must not act any more.
    pub(crate) fn taken(&mut self, session: &SessionId, epoch: u64) {
        self.sessions.entry(session.clone()).or_default().epoch = epoch;
    }

    /// An attempt's first byte leaves.
    pub(crate) fn sends(&self, session: &SessionId, attempt: &Attempt) -> Verdicts {
        self.intent_first(session, attempt)
    }

    /// An answer is given.
    pub(crate) fn replies(&mut self, session: &SessionId, reply: &Reply, book: &Book) -> Verdicts {
        self.result_before_answer(session, reply)?;
        self.one_answer_for_good(reply)?;
        self.truthful_envelope(reply, book)
    }

    /// Effects were written into the book.
    pub(crate) fn happened(&mut self, book: &Book, before: usize) -> Verdicts {
        for done in &book.done()[before..] {
            self.note(|| format!("EFFECT {} by {}/{}", done.effect_key, done.call, done.n));
            self.one_token_one_undo(done, book)?;
            self.at_most_once(done)?;
            self.never_again(done)?;
            if let Some(undone) = &done.undoes {
                self.uncount(undone);
            }
        }
        Ok(())
    }

    /// An agent asked for something.
    pub(crate) fn asks(&mut self, call: &CallId, wish: u64) {
        self.asked.insert(call.clone(), wish);
    }

    /// The upstream asked for time.
    pub(crate) fn asked_to_wait(&mut self, attempt: &AttemptId, now: u64, ms: u64) {
        self.not_before.insert(attempt.clone(), now + ms);
    }

    /// What reaches a node of an attempt, before anybody makes something else of it.
    pub(crate) fn hears(&mut self, attempt: &AttemptId, report: &Report) {
        self.heard.entry(attempt.clone()).or_insert_with(|| report.clone());
    }

    /// Everything has happened.
    pub(crate) fn finish(&self) -> Verdicts {
        self.liveness()?;
        self.every_move_over()?;
        self.every_walk_unwound()?;
        self.every_inquiry_over()?;
        self.every_answer_counted()?;
        self.decided_again()
    }

    /// The last sequence of a session that is known to be durable.
    pub(crate) fn seen(&self, session: &SessionId) -> u64 {
        self.sessions.get(session).map_or(0, |view| last_seq(&view.events))
    }

    /// The key minted for a call's effect, as its record says.
    pub(crate) fn effect_key(&self, call: &CallId) -> String {
        self.calls.get(call).map(|view| view.received.effect_key.clone()).unwrap_or_default()
    }

    /// From when on nothing that was sent with that key can still happen.
    pub(crate) fn quiet_at(&self, effect_key: &str) -> u64 {
        let calls = self.calls.values().filter(|view| view.received.effect_key == effect_key);
        let sent = calls.flat_map(|view| view.acts().map(|act| act.send_by.ms() + view.tool.life_ms));
        sent.max().unwrap_or_default()
    }

    /// A call that goes on with another's key may yet do what that one did not.
    fn goes_on_with_its_key(&mut self, attempt: &AttemptId) {
        let heir = self.calls.get(&attempt.call).filter(|view| view.inherited);
        if let Some(key) = heir.map(|view| view.received.effect_key.clone()) {
            self.never.remove(&key);
        }
    }

    fn sum_up(&mut self, event: &Event) {
        match &event.fact {
            Fact::InteractionAnswered { .. } => self.seen.answers += 1,
            Fact::InteractionLapsed { .. } => self.seen.lapses += 1,
            Fact::InputsGiven { .. } => self.seen.given += 1,
            Fact::InquiryClosed { .. } => self.seen.unanswered += 1,
            Fact::ReversalRedeemed { .. } => self.seen.undone += 1,
            Fact::ReversalRefused { .. } => self.seen.unredeemed += 1,
            Fact::EvidenceCompared { changed, .. } => self.seen.stale += u64::from(!changed.is_empty()),
            Fact::CallRefused { refusal, .. } => self.seen.busy += u64::from(refusal.code == Code::ResourceBusy),
            _ => {}
        }
    }

    /// What an agent is told of a call's effect in the end.
    pub(crate) fn told(&self, call: &CallId) -> Certainty {
        self.calls.get(call).and_then(|view| view.ended.as_ref()).map_or(Certainty::NotSent, |end| end.certainty)
    }

    /// The rules of a digest.
    pub(crate) fn rules(&self) -> impl Fn(&Digest) -> Option<Arc<Rules>> + use<> {
        let tools = self.tools;
        move |hash| {
            let tool = tools.iter().find(|tool| tool.hash == *hash);
            tool.map(|tool| tool.rules.clone())
        }
    }
}

fn last_seq(events: &[Event]) -> u64 {
    events.last().map_or(0, |event| event.seq)
}

fn describe(session: &SessionId, input: &Input, step: &Step) -> String {
    let mut out = format!("{session}: {}", input_name(input));
    for event in &step.events {
        out.push_str(&format!("\n           {:>3} {:?}", event.seq, event.fact));
    }
    for effect in &step.effects {
        let text = match effect {
            Effect::Send(attempt) => format!("Send {} {:?}", attempt.id, attempt.purpose),
            Effect::Abort(attempt) => format!("Abort {attempt}"),
            Effect::Ask(interaction) => format!("Ask {}", interaction.id),
            Effect::Withdraw(interaction) => format!("Withdraw {interaction}"),
            Effect::Inquire(asking) => format!("Inquire {} {}", asking.attempt, asking.inquiry),
            Effect::Tell(telling) => {
                format!("Tell {} {} {:?}", telling.attempt, telling.inquiry, telling.unanswered)
            }
            Effect::Retract { call, inquiry } => format!("Retract {call} {inquiry}"),
            Effect::Begin(wish) => format!("Begin {} {}", wish.leg.of, wish.leg.name),
            Effect::Weigh { of, what } => format!("Weigh {of} {what:?}"),
            Effect::Join { of, first } => format!("Join {of} {first}"),
            Effect::Unwind { of, .. } => format!("Unwind {of}"),
            Effect::Reply(reply) => format!("Reply {} last={}", reply.call, reply.last),
        };
        out.push_str(&format!("\n             > {text}"));
    }
    for claim in &step.claims {
        out.push_str(&format!("\n             # {claim:?}"));
    }
    for change in &step.reversals {
        out.push_str(&format!("\n             # {change:?}"));
    }
    out
}

fn input_name(input: &Input) -> String {
    match input {
        Input::Call(call) => format!("call {} {}", call.id, call.tool),
        Input::Result { attempt, .. } => format!("result of {attempt}"),
        Input::Answer { interaction, answer } => format!("answer {} to {interaction}", answer.choice),
        Input::Inquiry { attempt, .. } => format!("inquiry of {attempt}"),
        Input::Inputs { call, inquiry, .. } => format!("inputs for {call} {inquiry}"),
        Input::Withdrawal { call, inquiry } => format!("withdrawal of {call} {inquiry}"),
        Input::Name { attempt, name } => format!("name {name} of {attempt}"),
        Input::Cancel { call, reason } => format!("cancel {call} {reason:?}"),
        Input::Delivery { call } => format!("delivery of {call}"),
        Input::Tick => "tick".into(),
        Input::Resume => "resume".into(),
        Input::Drift(_) => "drift".into(),
        Input::Approval { .. } => "approval".into(),
        Input::Begin(beginning) => format!("begin {}", beginning.machine),
        Input::Migrate { hash, .. } => format!("migrate to {hash}"),
        Input::Move(taking) => format!("move {} {}", taking.id, taking.action),
        Input::Weighed { of, weighed } => format!("weighed {of} {weighed:?}"),
        Input::Unwound { of, .. } => format!("unwound {of}"),
        Input::Retire { .. } => "retire".into(),
    }
}
