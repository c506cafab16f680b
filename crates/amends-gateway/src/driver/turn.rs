//! One turn: handle, append, and once that is durable, act.

use std::collections::VecDeque;

use amends_core::effect::{Effect, Reply};
use amends_core::inquiry::Telling;
use amends_core::walk::{LegOf, Part};
use amends_core::{
    Attempt, CallId, Certainty, ClaimChange, ClaimState, Code, Digest, Event, Fact, Failure, Gates, Input, Outcome,
    Purpose, RefusalKind, Report, ReversalChange, Step, Timestamp, ToolName,
};
use amends_ledger::{Append, Appended, Closing, Commit, Error, OpenWork, StoredAnswer, StoredArguments, StoredUndo};
use bytes::Bytes;

use super::answer::{self, Answered, Form, Rendered};
use super::deliveries::Leaving;
use super::failpoint::{self, Point};
use super::session::{Live, Session};
use super::{Delivery, attempt, undo};
use crate::clock;
use crate::witness::Seen;

/// How long before the lease's end nothing is sent any more.
const LEASE_MARGIN_MS: u64 = 1_000;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How long an answer is kept that somebody may come back for much later.
const KEPT_MS: u64 = 30 * DAY_MS;

/// A turn whose step is being made durable.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) input: Input,
    pub(super) gates: Gates,
    pub(super) last_seq: u64,
    /// What is still to be done; nothing where it was done without waiting.
    effects: Vec<Act>,
    commit: Option<Commit>,
    /// What was seen of it, to be told once it is recorded.
    seen: Option<Seen>,
    /// The tokens of other sessions' writes that it redeems.
    redeemed: Vec<Digest>,
    /// Those that it tried to redeem, and that surely undid nothing.
    rearmed: Vec<Digest>,
    /// The answer whose arrival it records.
    pub(super) leaving: Option<Leaving>,
}

impl Turn {
    /// Whether something is sent once it is durable.
    pub(super) fn sends(&self) -> bool {
        self.effects.iter().any(|act| matches!(act, Act::Do(Effect::Send(_))))
    }

    /// Whether that call is answered once it is durable.
    pub(super) fn answers(&self, call: &CallId) -> bool {
        self.effects.iter().any(|act| matches!(act, Act::Reply(reply, _) if reply.call == *call))
    }
}

/// An effect with its payload filled in.
#[derive(Debug)]
pub(super) enum Act {
    Do(Effect),
    Reply(Box<Reply>, Box<Rendered>),
}

impl Act {
    /// Whether it touches nothing outside, so that it waits for nothing.
    const fn is_inner(&self) -> bool {
        matches!(self, Self::Do(Effect::Begin(_) | Effect::Weigh { .. } | Effect::Join { .. }))
    }
}

/// Whether a step's effects wait until it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Durable,
    NoWait,
}

impl Session {
    /// Lets the dispatcher decide and hands the step to the ledger. The effects of a read need not wait for it.
    pub(super) fn take(&mut self, input: Input, gates: Gates) {
        let mut waits = self.waits(&input, &gates);
        if let Input::Call(call) = &input
            && call.repeat_of.as_ref().is_some_and(|held| held.state != ClaimState::Granted)
            && let Some(live) = self.live.get_mut(&call.id)
        {
            // What it repeats was counted.
            live.reserved = None;
        }
        let expected_seq = self.dispatcher.seq();
        let step = self.dispatcher.handle(self.now(), &gates, input.clone());
        if step.events.is_empty() {
            return;
        }
        if step.claims.iter().any(|claim| matches!(claim, ClaimChange::Absent { .. })) {
            // What is refused only where it is no repeat is told once that is known.
            waits = Waits::Durable;
        }
        let last_seq = self.dispatcher.seq();
        let fields = self.follow(&step.events);
        let (acts, at_once): (Vec<Act>, Vec<Act>) =
            self.fill_in(&input, &step).into_iter().partition(|act| !act.is_inner());
        self.keep_results(&acts);
        if acts.iter().any(|act| matches!(act, Act::Do(Effect::Send(attempt)) if self.is_write(attempt))) {
            failpoint::reach(Point::BeforeIntent);
        }
        let (redeemed, rearmed) = (redeemed(&step.events), rearmed(&step.reversals));
        let append = Append { fields, ..self.append(&input, step, expected_seq, &acts) };
        let params = |call: &_| self.live.get(call).map(|live| &*live.params);
        let seen = self.witness.see(&self.gateway, &self.id, &append.events, params);
        // What waits for nothing leads on at once, to a step that is queued behind this one before anything else is done: both are
        // written together. Should the process die before, neither was, and nothing was sent or said.
        let leads_on = acts.is_empty() && !at_once.is_empty();
        let commit = match waits {
            Waits::Durable if !leads_on => self.gateway.ledger.append(append),
            Waits::Durable | Waits::NoWait => self.gateway.ledger.append_soon(append),
        };
        let seen = Some(seen);
        let mut turn = Turn {
            input,
            gates,
            last_seq,
            effects: acts,
            commit: Some(commit),
            seen,
            redeemed,
            rearmed,
            leaving: None,
        };
        if waits == Waits::NoWait {
            for act in std::mem::take(&mut turn.effects) {
                self.perform(act, None);
            }
        }
        self.turns.push_back(turn);
        for act in at_once {
            if let Act::Do(effect) = act {
                self.at_once(effect);
            }
        }
    }

    /// Keeps what calls gave that are made for a move, or were for one that is not settled.
    fn keep_results(&mut self, acts: &[Act]) {
        for act in acts {
            if let Act::Reply(reply, rendered) = act {
                self.keep_result(&reply.call, rendered);
            }
        }
    }

    /// Waits for the oldest step to be durable. It never completes while there is none.
    pub(super) async fn first_commit(turns: &mut VecDeque<Turn>) -> Result<Appended, Error> {
        match turns.front_mut().and_then(|turn| turn.commit.as_mut()) {
            Some(commit) => commit.await,
            None => std::future::pending().await,
        }
    }

    /// The oldest step is durable, or never will be.
    pub(super) async fn committed(&mut self, fate: Result<Appended, Error>) {
        let Some(mut turn) = self.turns.pop_front() else {
            return;
        };
        match fate {
            Ok(appended) => {
                self.recorded = appended.seq;
                if let Input::Call(call) = &turn.input {
                    self.gateway.stored_rules.add(&call.rules_hash);
                }
                self.saw(&mut turn);
                for act in std::mem::take(&mut turn.effects) {
                    self.perform(act, Some(&appended));
                }
            }
            Err(error) => self.recover(turn, error).await,
        }
    }

    /// Performs what is left of a turn that turned out to be durable after all.
    pub(super) fn finish(&mut self, turn: &mut Turn) {
        self.saw(turn);
        for act in std::mem::take(&mut turn.effects) {
            self.perform(act, None);
        }
    }

    /// Tells what was seen of a turn that is recorded.
    fn saw(&self, turn: &mut Turn) {
        for token in std::mem::take(&mut turn.redeemed) {
            tokio::spawn(crate::walks::undone_with(self.gateway.clone(), token));
        }
        for token in std::mem::take(&mut turn.rearmed) {
            tokio::spawn(crate::walks::not_undone_with(self.gateway.clone(), token));
        }
        let Some(seen) = turn.seen.take() else { return };
        if !turn.effects.is_empty() {
            seen.waited_for(&self.gateway.metrics);
        }
        seen.recorded(&self.gateway);
    }

    fn waits(&self, input: &Input, gates: &Gates) -> Waits {
        let reads = |call: &CallId| {
            self.live.get(call).is_some_and(|live| live.rules.contract.effect.is_read() && !live.claimed)
        };
        // What is done in a walk is recorded first, its reads and what ends it among them.
        let walks = self.walking.is_some() && !matches!(input, Input::Delivery { .. });
        let only_reads = !walks
            && match input {
                Input::Call(call) => {
                    gates.refusal.is_some() || (call.rules.contract.effect.is_read() && call.claims.is_empty())
                }
                Input::Result { attempt, .. } | Input::Inquiry { attempt, .. } | Input::Name { attempt, .. } => {
                    reads(&attempt.call)
                }
                Input::Inputs { call, .. } | Input::Withdrawal { call, .. } => reads(call),
                Input::Cancel { call, .. } => reads(call),
                Input::Delivery { .. } => true,
                Input::Answer { .. }
                | Input::Drift(_)
                | Input::Approval { .. }
                | Input::Begin(_)
                | Input::Migrate { .. }
                | Input::Move(_)
                | Input::Weighed { .. }
                | Input::Unwound { .. }
                | Input::Retire { .. } => false,
                Input::Tick | Input::Resume => self.dispatcher.only_reads(),
            };
        if only_reads && self.gateway.config().ledger.async_reads { Waits::NoWait } else { Waits::Durable }
    }

    /// The effects with their payloads, by this process's time. What is sent must leave within the lease under which it was
    /// decided: a later heartbeat may come after the session was lost.
    fn fill_in(&self, input: &Input, step: &Step) -> Vec<Act> {
        let lease = self.gateway.lease_until() - LEASE_MARGIN_MS;
        let fill = |effect: &Effect| match effect {
            Effect::Reply(reply) => {
                if let Some(rendered) = self.render_move(reply) {
                    return Act::Reply(reply.clone(), Box::new(rendered));
                }
                let mut rendered = answer::render(reply, self.live.get(&reply.call));
                if let Input::Answer { answer, .. } = input {
                    rendered.given(answer.content.as_ref());
                }
                self.show_token(reply, &mut rendered);
                self.ask_back(reply, &mut rendered);
                Act::Reply(reply.clone(), Box::new(rendered))
            }
            Effect::Send(attempt) => {
                let send_by = (attempt.send_by - self.ahead_ms).min(lease);
                let deadline = attempt.deadline - self.ahead_ms;
                Act::Do(Effect::Send(Box::new(Attempt { send_by, deadline, ..(**attempt).clone() })))
            }
            Effect::Tell(telling) => {
                let send_by = (telling.send_by - self.ahead_ms).min(lease);
                Act::Do(Effect::Tell(Box::new(Telling { send_by, ..(**telling).clone() })))
            }
            Effect::Abort(_)
            | Effect::Ask(_)
            | Effect::Withdraw(_)
            | Effect::Inquire(_)
            | Effect::Begin(_)
            | Effect::Weigh { .. }
            | Effect::Join { .. }
            | Effect::Unwind { .. }
            | Effect::Retract { .. } => Act::Do(effect.clone()),
        };
        step.effects.iter().map(fill).collect()
    }

    /// Fills in the token of a call that can be undone. One nobody could redeem is not shown.
    fn show_token(&self, reply: &Reply, rendered: &mut Rendered) {
        let (Form::Forward { envelope, .. } | Form::Envelope { envelope, .. }) = &mut rendered.form else { return };
        let Some(note) = &mut envelope.reversal else { return };
        let live = self.live.get(&reply.call);
        let reverse = live.and_then(|live| live.rules.contract.reverse.as_ref().zip(Some(live)));
        if reverse.is_some_and(|(reverse, live)| undo::arguments(reverse, live).is_ok()) {
            note.token = undo::token(&self.gateway.secret, &reply.call);
        } else {
            envelope.reversal = None;
        }
    }

    fn append(&self, input: &Input, step: Step, expected_seq: u64, acts: &[Act]) -> Append {
        let now = clock::now();
        let mut append = Append {
            claims: step.claims,
            reversals: step.reversals,
            open: OpenWork {
                calls: self.dispatcher.open_calls() as u32,
                due: self.dispatcher.deadline().map(|deadline| deadline.at),
            },
            ..Append::of(self.id.clone(), self.epoch, expected_seq, step.events)
        };
        self.append_undo(&mut append);
        self.append_move(&mut append, input);
        append_questions(&mut append, input, acts);
        self.show_evidence(&mut append);
        self.show_output(&mut append);
        self.show_sign_in(&mut append);
        self.append_inquiry(&mut append, input, acts);
        self.mask(input, &mut append);
        if let Input::Call(call) = input
            && let Some(live) = self.live.get(&call.id)
        {
            if !self.gateway.stored_rules.holds(&live.rules_hash) {
                append.rules.push((live.rules_hash.clone(), live.rules.clone()));
            }
            if live.claimed && self.dispatcher.is_open(&call.id) {
                let body = Bytes::copy_from_slice(live.params.as_bytes());
                append.arguments.push(StoredArguments { call: call.id.clone(), body });
            }
        }
        for act in acts {
            let Act::Reply(reply, rendered) = act else { continue };
            if self.is_move(&reply.call) {
                append.answers.extend(stored(&append, reply, rendered, true, false, DAY_MS, now));
            } else if !self.dispatcher.is_open(&reply.call) && settles(&append.events, &reply.call) {
                // It had ended, and a person or a late result settled it.
                append.answers.extend(stored(&append, reply, rendered, true, false, DAY_MS, now));
            } else if reply.last
                && let Some(live) = self.live.get(&reply.call).filter(|live| live.claimed || live.leg.is_some())
            {
                append.forget.push(reply.call.clone());
                let mut answer = stored(
                    &append,
                    reply,
                    rendered,
                    live.keyed || live.listener.takes_tasks,
                    live.listener.task.is_some(),
                    live.rules.contract.repeat_window_ms,
                    now,
                );
                // What a move is about is kept as long as its claim: whoever takes the move again goes on with what it gave. What
                // only read beside it is part of that.
                let kept = |leg: &LegOf| leg.is_sibling() || (live.claimed && leg.part == Part::Act);
                if let Some(answer) = answer.as_mut().filter(|_| live.leg.as_ref().is_some_and(kept)) {
                    answer.until = now + KEPT_MS;
                }
                append.answers.extend(answer);
            }
        }
        append
    }

    /// Keeps how the writes are undone whose tokens this step arms.
    fn append_undo(&self, append: &mut Append) {
        for event in &append.events {
            if let Fact::ReversalArmed { call, token, .. } = &event.fact
                && let Some(live) = self.live.get(call)
                && let Some(reverse) = live.rules.contract.reverse.as_ref()
                && let Ok(arguments) = undo::arguments(reverse, live)
            {
                let listing = self.gateway.catalogue.now();
                let place = listing.find(&reverse.tool).map(|tool| tool.upstream.identity()).unwrap_or_default();
                append.undo.push(StoredUndo {
                    token: token.clone(),
                    place,
                    principal: self.principal.clone(),
                    tool: ToolName::new(reverse.tool.as_str()),
                    arguments: Bytes::from(serde_json::Value::Object(arguments).to_string()),
                });
            }
        }
    }

    fn perform(&mut self, act: Act, appended: Option<&Appended>) {
        match act {
            Act::Do(Effect::Send(attempt)) => {
                if self.is_write(&attempt) {
                    failpoint::reach(Point::AfterIntent);
                }
                // A join sends nothing, so that it is never too late for it.
                if attempt.purpose != Purpose::Join && clock::until(attempt.send_by).is_zero() {
                    // It took too long to record that it may be sent, or our lease is over.
                    let lost = clock::until(self.gateway.lease_until() - LEASE_MARGIN_MS).is_zero();
                    let code = if lost { Code::LeaseLost } else { Code::StoreUnavailable };
                    let report = Report::silent(Failure::of(code), Certainty::NotSent);
                    let gates = self.gates();
                    return self.take(Input::Result { attempt: attempt.id, report: Box::new(report) }, gates);
                }
                self.asked_enough(&attempt.id.call);
                attempt::send(self, *attempt);
            }
            Act::Do(Effect::Abort(attempt)) => {
                let sent = self.live.get_mut(&attempt.call).and_then(|live| live.attempts.remove(&attempt));
                if let Some(abort) = sent {
                    // Its exchange may have ended in the same moment.
                    let _ = abort.send(());
                }
            }
            // A question is on the ledger with its step; whoever answers looks there.
            Act::Do(Effect::Ask(interaction)) => self.wait_for_yes(&interaction),
            Act::Do(Effect::Inquire(asking)) => self.inquire(&asking),
            Act::Do(Effect::Tell(telling)) => self.tell(&telling),
            Act::Do(Effect::Retract { call, inquiry }) => self.retract(&call, inquiry),
            // What touches nothing outside was done at once.
            Act::Do(
                Effect::Reply(_) | Effect::Withdraw(_) | Effect::Begin(_) | Effect::Weigh { .. } | Effect::Join { .. },
            ) => {}
            Act::Do(Effect::Unwind { of, since }) => self.unwind(of, since),
            Act::Reply(reply, rendered) => self.reply(&reply, *rendered, appended),
        }
    }

    /// Whether that attempt does what an agent asked for, and changes something.
    fn is_write(&self, attempt: &Attempt) -> bool {
        let changes = |live: &Live| !live.rules.contract.effect.is_read();
        attempt.purpose == Purpose::Act && self.live.get(&attempt.id.call).is_some_and(changes)
    }

    /// Whether that is a move of the walk.
    fn is_move(&self, id: &CallId) -> bool {
        self.walking.as_ref().is_some_and(|walking| walking.moves.contains_key(id))
    }

    fn reply(&mut self, reply: &Reply, rendered: Rendered, appended: Option<&Appended>) {
        if self.is_move(&reply.call) {
            return self.reply_move(reply, rendered, appended);
        }
        let receipt = self.receipt(appended);
        let Some(live) = self.live.get_mut(&reply.call) else {
            return;
        };
        let matters = live.claimed && reply.last && !rendered.replayed;
        let doubtful = rendered.is_doubtful();
        if matters {
            failpoint::reach(Point::BeforeReply);
        }
        let delivery = matters.then(|| Delivery {
            call: reply.call.clone(),
            mail: self.mail.clone(),
            deliveries: self.gateway.deliveries.clone(),
            leaving: None,
            with: Vec::new(),
            user: None,
        });
        let declares_output = live.tool.as_ref().is_some_and(|tool| tool.output.is_some());
        for door in std::mem::take(&mut live.also) {
            let (rendered, receipt) = (rendered.clone(), Some(receipt.clone()));
            // Of several that wait for one answer, the last that came is the one that counts as having got it.
            let _ = door.send(Answered { rendered, receipt, last: reply.last, delivery: None, declares_output });
        }
        live.asking = None;
        if reply.last
            && let Some(live) = self.live.get(&reply.call).filter(|live| live.answer.is_none())
        {
            self.go_on_after(live, &rendered);
        }
        let Some(live) = self.live.get_mut(&reply.call) else { return };
        if let Some(door) = live.answer.take() {
            // Whoever asked may be gone; the answer then waits in the ledger for the repeat.
            let answered = Answered { rendered, receipt: Some(receipt), last: reply.last, delivery, declares_output };
            let _ = door.send(answered);
        }
        if reply.last {
            live.room = None;
            live.place = None;
            live.reserved = None;
            // What may still come of a doubt is read as it would have been in time.
            let heard = doubtful && self.listening.iter().any(|attempt| attempt.call == reply.call);
            if !heard {
                self.live.remove(&reply.call);
            }
            self.gateway.answered.notify_waiters();
        }
    }
}

/// Puts a step's questions on the queue, and takes those off it that are over.
fn append_questions(append: &mut Append, input: &Input, acts: &[Act]) {
    if let Input::Answer { interaction, .. } = input {
        append.closes.push((interaction.clone(), Closing::Answered));
    }
    for act in acts {
        match act {
            Act::Do(Effect::Ask(interaction)) => append.asks.push((**interaction).clone()),
            Act::Do(Effect::Withdraw(id)) => {
                let lapsed =
                    |fact: &Fact| matches!(fact, Fact::InteractionLapsed { interaction, .. } if interaction == id);
                let over = append.events.iter().any(|event| lapsed(&event.fact));
                append.closes.push((id.clone(), if over { Closing::Lapsed } else { Closing::Withdrawn }));
            }
            Act::Do(
                Effect::Send(_)
                | Effect::Abort(_)
                | Effect::Reply(_)
                | Effect::Inquire(_)
                | Effect::Tell(_)
                | Effect::Begin(_)
                | Effect::Weigh { .. }
                | Effect::Join { .. }
                | Effect::Unwind { .. }
                | Effect::Retract { .. },
            )
            | Act::Reply(..) => {}
        }
    }
}

/// The tokens of writes of other calls that were redeemed.
fn redeemed(events: &[Event]) -> Vec<Digest> {
    let by_another = |event: &Event| match &event.fact {
        Fact::ReversalRedeemed { call, token, of } if call != of => Some(token.clone()),
        _ => None,
    };
    events.iter().filter_map(by_another).collect()
}

/// The tokens that undid nothing, and can be redeemed again.
fn rearmed(changes: &[ReversalChange]) -> Vec<Digest> {
    let rearmed = |change: &ReversalChange| match change {
        ReversalChange::Rearm { token, .. } => Some(token.clone()),
        _ => None,
    };
    changes.iter().filter_map(rearmed).collect()
}

/// Whether those events say what became of a call that had ended in doubt.
fn settles(events: &[Event], of: &CallId) -> bool {
    events.iter().any(|event| matches!(&event.fact, Fact::DoubtResolved { call, .. } if call == of))
}

fn stored(
    append: &Append,
    reply: &Reply,
    rendered: &Rendered,
    keyed: bool,
    as_envelope: bool,
    repeat_window_ms: u64,
    now: Timestamp,
) -> Option<StoredAnswer> {
    let ended = append.events.iter().find_map(|event| match &event.fact {
        Fact::CallEnded { call, outcome, certainty, replayed: false, granted: false, .. } if *call == reply.call => {
            Some((*outcome, *certainty))
        }
        // An agent that was told to come back hears it then.
        Fact::CallRefused { call, refusal } if *call == reply.call => {
            let by_person = matches!(refusal.kind, RefusalKind::ApprovalDenied | RefusalKind::ApprovalExpired);
            by_person.then_some((Outcome::Refused, Certainty::NotSent))
        }
        Fact::DoubtResolved { call, certainty, .. } if *call == reply.call => {
            Some((Outcome::SucceededAfterCompensation, *certainty))
        }
        // Only what was done is found by its repeat.
        Fact::MoveEnded { of, outcome, certainty, .. } if *of == reply.call => {
            (*certainty == Certainty::Processed).then_some((*outcome, *certainty))
        }
        _ => None,
    });
    let (outcome, certainty) = ended?;
    let kept_ms = match certainty {
        amends_core::Certainty::InDoubt => KEPT_MS,
        _ if settles(&append.events, &reply.call) => KEPT_MS,
        _ if keyed => DAY_MS,
        _ => repeat_window_ms,
    };
    let (form, body) = if as_envelope { answer::store_envelope(rendered) } else { answer::store(rendered) };
    Some(StoredAnswer { call: reply.call.clone(), outcome, certainty, form, body, until: now + kept_ms })
}
