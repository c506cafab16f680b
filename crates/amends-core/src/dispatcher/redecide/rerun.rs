//! A session decided again under other rules, beyond the first difference as far as the record reaches.
//!
//! Up to the first difference the recorded inputs are fed in as they came. From there on what was recorded may come at another
//! time or not at all, so the session goes on in virtual time: an attempt that is still made gets the answer that the attempt
//! with its purpose and number got, as long after its start; a person who was asked answers as they did, as long after the
//! question; timers fire when they are due. Where the record has no answer, the call is beyond what was recorded.

use std::collections::{BTreeMap, BTreeSet};

use super::record::Record;
use super::{Difference, decide_as, input_of};
use crate::attempt::{Attempt, Purpose};
use crate::call::{Call, Received};
use crate::dispatcher::{Dispatcher, Input, Step, TraceError};
use crate::effect::Effect;
use crate::event::{Event, Fact};
use crate::gates::Gates;
use crate::id::{AttemptId, CallId, InteractionId};
use crate::inquiry::Asking;
use crate::interaction::{Interaction, Subject};
use crate::time::Timestamp;

/// What a session would have been under other rules.
#[derive(Clone, Debug, Default)]
pub struct Rerun {
    /// The first difference from the record; nothing where every decision is the same.
    pub difference: Option<Difference>,
    /// The events of the step in which it differs, as they would be recorded.
    pub step: Vec<Event>,
    /// Every event, as it would be recorded.
    pub events: Vec<Event>,
    /// The calls that went where the record does not reach, and why the first time.
    pub beyond: BTreeMap<CallId, Beyond>,
}

/// Why the record does not say how a call goes on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Beyond {
    /// It is sent, or read about, once more than was recorded.
    Attempt(Purpose),
    /// An answer is waited for longer than was recorded.
    Silence(Purpose),
    /// A person is asked who was not.
    Question,
    /// A person has more time than was recorded.
    Patience,
    /// It takes more steps than anything we record.
    Endless,
}

impl Beyond {
    /// The words for it.
    pub fn words(&self) -> String {
        match self {
            Self::Attempt(Purpose::Act) => "it is sent once more than was recorded".into(),
            Self::Attempt(purpose) => format!("an attempt to {} follows that was never made", purpose.as_str()),
            Self::Silence(_) => "an answer is waited for longer than was recorded".into(),
            Self::Question => "a person is asked who was not".into(),
            Self::Patience => "a person has more time than was recorded".into(),
            Self::Endless => "it takes more steps than can be followed".into(),
        }
    }
}

/// Decides a session again. `call` gives each of its calls, which came in at that time, as it is to be decided now: see
/// [`call_of`](super::call_of). Nothing where its rules are gone.
pub fn rerun(events: &[Event], call: impl Fn(&Received, Timestamp) -> Option<Call>) -> Result<Rerun, TraceError> {
    let Some(Event { fact: Fact::SessionOpened { session, seed, principal, door, .. }, .. }) = events.first() else {
        return Err(TraceError::NoBeginning);
    };
    let mut world = World {
        record: Record::of(events),
        dispatcher: Dispatcher::open(session.clone(), *seed, principal.clone(), door),
        call,
        done: Rerun::default(),
        waiting: BTreeSet::new(),
        unanswered: BTreeSet::new(),
        agenda: BTreeMap::new(),
        tail: 0,
    };
    if let Some(rest) = world.follow(events)? {
        world.go_on(rest)?;
    }
    Ok(world.done)
}

struct World<C> {
    record: Record,
    dispatcher: Dispatcher,
    call: C,
    done: Rerun,
    /// Attempts that were sent and whose answer has not come.
    waiting: BTreeSet<AttemptId>,
    /// Questions that were asked and not answered.
    unanswered: BTreeSet<InteractionId>,
    /// What arrives, and when; the number keeps the order.
    agenda: BTreeMap<(Timestamp, u64), (Input, Option<Gates>)>,
    tail: u64,
}

impl<C: Fn(&Received, Timestamp) -> Option<Call>> World<C> {
    /// Feeds the record in until a step differs, and gives what of the record comes after it.
    fn follow<'a>(&mut self, events: &'a [Event]) -> Result<Option<&'a [Event]>, TraceError> {
        let mut at = 0;
        while at < events.len() {
            let skipped = usize::from(at == 0);
            for event in &events[at..events.len().min(at + skipped + 1)] {
                decide_as(&mut self.dispatcher, event)?;
            }
            let Some(event) = events.get(at + skipped) else { break };
            let Some((input, gates)) = self.input(event)? else {
                if !event.fact.is_remark() {
                    return Err(TraceError::Illegal { seq: event.seq, name: event.fact.name() });
                }
                self.dispatcher.state.apply(event, None);
                self.done.events.extend(events[at..=at + skipped].iter().cloned());
                at += 1 + skipped;
                continue;
            };
            let decider = self.dispatcher.decider;
            let step = self.handle(event.at, &gates, input);
            let recorded = events.get(at..at + step.events.len());
            let same = recorded == Some(step.events.as_slice()) && !step.events.is_empty();
            // A step that stops short of what was recorded differs too: what follows must be another step's input.
            let next = events.get(at + step.events.len());
            let short = next.is_some_and(|next| !begins_a_step(&next.fact));
            if same && !short {
                at += step.events.len();
                self.sent(&step);
                continue;
            }
            let n = step.events.iter().zip(&events[at..]).take_while(|(decided, recorded)| decided == recorded).count();
            self.done.difference = Some(Difference {
                seq: events.get(at + n).or(step.events.get(n)).map_or(event.seq, |event| event.seq),
                recorded: events.get(at + n).filter(|event| n == 0 || !begins_a_step(&event.fact)).cloned(),
                decided: step.events.get(n).cloned(),
                decider,
            });
            self.done.step.clone_from(&step.events);
            self.schedule(event.at, &events[at..]);
            self.act(event.at, &step);
            let inputs = events[at + skipped + 1..].iter().position(|event| begins_a_step(&event.fact));
            return Ok(Some(inputs.map_or(&[], |n| &events[at + skipped + 1 + n..])));
        }
        Ok(None)
    }

    /// The input that an event records, the call under its new rules.
    fn input(&self, event: &Event) -> Result<Option<(Input, Gates)>, TraceError> {
        if let Fact::CallReceived { received, gates } = &event.fact {
            let missing = || TraceError::RulesMissing { call: received.call.clone(), hash: received.rules.clone() };
            let call = (self.call)(received, event.at).ok_or_else(missing)?;
            return Ok(Some((Input::Call(Box::new(call)), gates.clone())));
        }
        input_of(&event.fact, &|_| None)
    }

    fn handle(&mut self, now: Timestamp, gates: &Gates, input: Input) -> Step {
        match &input {
            Input::Result { attempt, .. } => drop(self.waiting.remove(attempt)),
            Input::Answer { interaction, .. } => drop(self.unanswered.remove(interaction)),
            _ => {}
        }
        let step = self.dispatcher.handle(now, gates, input);
        self.done.events.extend(step.events.iter().cloned());
        step
    }

    fn sent(&mut self, step: &Step) {
        for effect in &step.effects {
            match effect {
                Effect::Send(attempt) => drop(self.waiting.insert(attempt.id.clone())),
                Effect::Ask(question) => drop(self.unanswered.insert(question.id.clone())),
                Effect::Abort(_)
                | Effect::Reply(_)
                | Effect::Withdraw(_)
                | Effect::Inquire(_)
                | Effect::Tell(_)
                | Effect::Begin(_)
                | Effect::Weigh { .. }
                | Effect::Join { .. }
                | Effect::Unwind { .. }
                | Effect::Retract { .. } => {}
            }
        }
    }

    fn put(&mut self, at: Timestamp, input: Input, gates: Option<Gates>) {
        self.tail += 1;
        self.agenda.insert((at, self.tail), (input, gates));
    }

    /// What was on its way at the first difference arrives when it did.
    fn schedule(&mut self, now: Timestamp, rest: &[Event]) {
        for attempt in std::mem::take(&mut self.waiting) {
            let answer = self.record.went(&attempt).and_then(|went| went.answer.clone());
            if let Some((at, report)) = answer.filter(|(at, _)| *at >= now) {
                self.put(at, Input::Result { attempt, report: Box::new(report) }, None);
            }
        }
        for interaction in std::mem::take(&mut self.unanswered) {
            let answer = self.record.question(&interaction).and_then(|asked| asked.answer.clone());
            if let Some((at, answer)) = answer.filter(|(at, _)| *at >= now) {
                self.put(at, Input::Answer { interaction, answer: Box::new(answer) }, None);
            }
        }
        let ended: BTreeSet<&CallId> = self.record_ends(rest);
        let delivered = rest.iter().filter_map(|event| match &event.fact {
            Fact::AnswerDelivered { call } if !ended.contains(call) => Some((event.at, call.clone())),
            _ => None,
        });
        for (at, call) in delivered.collect::<Vec<_>>() {
            self.put(at, Input::Delivery { call }, None);
        }
    }

    fn record_ends<'a>(&self, rest: &'a [Event]) -> BTreeSet<&'a CallId> {
        let ends = rest.iter().filter_map(|event| match &event.fact {
            Fact::CallEnded { call, .. } | Fact::CallRefused { call, .. } => Some(call),
            _ => None,
        });
        ends.collect()
    }

    /// Goes on in virtual time, after the first difference.
    fn go_on(&mut self, rest: &[Event]) -> Result<(), TraceError> {
        for event in rest {
            let outside = matches!(
                event.fact,
                Fact::CallReceived { .. }
                    | Fact::CancelRequested { .. }
                    | Fact::Resumed { .. }
                    | Fact::WalkBegan { .. }
                    | Fact::WalkMigrated { .. }
                    | Fact::MoveReceived { .. }
                    | Fact::MoveWeighed { .. }
            );
            if let Some((input, gates)) = self.input(event)?.filter(|_| outside) {
                self.put(event.at, input, Some(gates));
            }
        }
        // Every call has a bounded number of attempts and waits, so this is never reached by a session that ends.
        let mut left = 64 * (self.agenda.len() + self.dispatcher.open_calls() + 1) + 4 * self.done.events.len();
        while let Some((now, input, gates)) = self.next() {
            let gates = gates.unwrap_or_else(|| self.record.gates(now));
            let step = self.handle(now, &gates, input);
            self.act(now, &step);
            left -= 1;
            if left == 0 {
                let open: Vec<CallId> = self.dispatcher.calls().map(|(id, _)| id.clone()).collect();
                open.into_iter().for_each(|call| self.is_beyond(&call, Beyond::Endless));
                break;
            }
        }
        Ok(())
    }

    /// The next thing that arrives, or the next timer; nothing once no call is left to follow.
    fn next(&mut self) -> Option<(Timestamp, Input, Option<Gates>)> {
        let live = |(id, _): (&CallId, &Received)| self.record.ended(id) && !self.done.beyond.contains_key(id);
        let follows = self.dispatcher.calls().any(live);
        let arrives = self.agenda.keys().next().map(|(at, _)| *at);
        let due = self.dispatcher.deadline().map(|deadline| deadline.at);
        match (arrives, due) {
            (Some(at), due) if due.is_none_or(|due| at <= due) => {
                let ((at, _), (input, gates)) = self.agenda.pop_first()?;
                Some((at, input, gates))
            }
            (arrives, Some(due)) if follows || arrives.is_some() => Some((due, Input::Tick, None)),
            _ => None,
        }
    }

    fn act(&mut self, now: Timestamp, step: &Step) {
        for effect in &step.effects {
            match effect {
                Effect::Send(attempt) => self.answer_attempt(now, attempt),
                Effect::Ask(question) => self.answer_question(now, question),
                Effect::Reply(reply) if reply.last => {
                    if let Some(after) = self.record.delivered_after_ms(&reply.call) {
                        self.put(now + after, Input::Delivery { call: reply.call.clone() }, None);
                    }
                }
                Effect::Inquire(asking) => self.answer_inquiry(now, asking),
                Effect::Reply(_)
                | Effect::Abort(_)
                | Effect::Withdraw(_)
                | Effect::Tell(_)
                // What a move wanted is on the agenda as it was recorded.
                | Effect::Begin(_)
                | Effect::Weigh { .. }
                | Effect::Join { .. }
                | Effect::Unwind { .. }
                | Effect::Retract { .. } => {}
            }
        }
    }

    fn answer_attempt(&mut self, now: Timestamp, attempt: &Attempt) {
        let started = |event: &&Event| {
            matches!(&event.fact, Fact::AttemptStarted { attempt: other, purpose, .. }
                if other.call == attempt.id.call && *purpose == attempt.purpose && other.n < attempt.id.n)
        };
        let before = self.done.events.iter().filter(started).count();
        let Some(went) = self.record.nth(&attempt.id.call, attempt.purpose, before).cloned() else {
            return self.is_beyond(&attempt.id.call, Beyond::Attempt(attempt.purpose));
        };
        let silent = went.silent_until.since_ms(went.started);
        let of = AttemptId { call: attempt.id.call.clone(), n: went.n };
        let made: Vec<_> = self.record.made(&of).map(|(at, inquiry)| (at, Box::new(inquiry.clone()))).collect();
        for (at, inquiry) in made {
            let input = Input::Inquiry { attempt: attempt.id.clone(), inquiry };
            self.put(now + at.since_ms(went.started), input, None);
        }
        match went.answer {
            Some((at, report)) => {
                let input = Input::Result { attempt: attempt.id.clone(), report: Box::new(report) };
                self.put(now + at.since_ms(went.started), input, None);
            }
            None if attempt.deadline.since_ms(now) <= silent => {}
            None => self.is_beyond(&attempt.id.call, Beyond::Silence(attempt.purpose)),
        }
    }

    fn answer_inquiry(&mut self, now: Timestamp, asking: &Asking) {
        let call = asking.attempt.call.clone();
        let Some(inquired) = self.record.inquiry(&call, asking.inquiry).cloned() else {
            return self.is_beyond(&call, Beyond::Question);
        };
        let inquiry = asking.inquiry;
        if let Some(at) = inquired.withdrawn {
            let input = Input::Withdrawal { call: call.clone(), inquiry };
            self.put(now + at.since_ms(inquired.opened), input, None);
        }
        if let Some((at, inputs)) = inquired.given {
            let input = Input::Inputs { call, inquiry, inputs };
            self.put(now + at.since_ms(inquired.opened), input, None);
        }
    }

    fn answer_question(&mut self, now: Timestamp, question: &Interaction) {
        let opened = |event: &&Event| {
            matches!(&event.fact, Fact::InteractionOpened { interaction }
                if interaction.call == question.call && interaction.subject == question.subject)
        };
        let before = self.done.events.iter().filter(opened).count().saturating_sub(1);
        let waits = matches!(question.subject, Subject::Resend | Subject::Call);
        let Some(asked) = self.record.nth_question(&question.call, question.subject, before).cloned() else {
            if waits {
                self.is_beyond(&question.call, Beyond::Question);
            }
            return;
        };
        let silent = asked.silent_until.since_ms(asked.opened);
        match asked.answer {
            Some((at, answer)) => {
                let at = now + at.since_ms(asked.opened);
                let answer = crate::interaction::PersonAnswer { at, ..answer };
                let input = Input::Answer { interaction: question.id.clone(), answer: Box::new(answer) };
                self.put(at, input, None);
            }
            None if waits && question.due.since_ms(now) > silent => self.is_beyond(&question.call, Beyond::Patience),
            None => {}
        }
    }

    fn is_beyond(&mut self, call: &CallId, why: Beyond) {
        self.done.beyond.entry(call.clone()).or_insert(why);
    }
}

/// Whether a fact records an input, or stands for one that left none behind: it is the first of its step.
pub fn begins_a_step(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::CallReceived { .. }
            | Fact::AttemptEnded { .. }
            | Fact::LateResult { .. }
            | Fact::InteractionAnswered { .. }
            | Fact::InquiryMade { .. }
            | Fact::InputsGiven { .. }
            | Fact::InquiryWithdrawn { .. }
            | Fact::WorkNamed { .. }
            | Fact::CancelRequested { .. }
            | Fact::AnswerDelivered { .. }
            | Fact::Ticked { .. }
            | Fact::Resumed { .. }
            | Fact::SchemaDrifted { .. }
            | Fact::SchemaApproved { .. }
            | Fact::WalkBegan { .. }
            | Fact::WalkMigrated { .. }
            | Fact::MoveReceived { .. }
            | Fact::MoveWeighed { .. }
            | Fact::WalkUnwound { .. }
            | Fact::Ignored { .. }
            | Fact::SuppressedError { .. }
    )
}
