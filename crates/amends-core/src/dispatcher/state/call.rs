//! An open call: its attempts, what it waits for, and what is known of its effect.

use std::sync::Arc;

use crate::attempt::{Purpose, Recorded, Report};
use crate::call::{Received, Rules};
use crate::certainty::Certainty;
use crate::claim::{ClaimState, Held};
use crate::contract::{Contract, EffectKind};
use crate::dispatcher::Deadline;
use crate::dispatcher::admit::key_usable_ms;
use crate::dispatcher::cancel::CancelReason;
use crate::dispatcher::state::moving::Told;
use crate::evidence::Changed;
use crate::gates::{Approval, Cost, Gates, Patience, Ruling};
use crate::id::{Digest, InteractionId, ToolName};
use crate::inquiry::{Inquiry, Way};
use crate::interaction::PersonAnswer;
use crate::time::Timestamp;
use crate::verdict::Verdict;
use crate::walk::Part;

/// An open call.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct CallState {
    pub(in crate::dispatcher) received: Received,
    /// Missing only while a trace is folded past calls that end within it.
    pub(super) rules: Option<Arc<Rules>>,
    pub(in crate::dispatcher) at: Timestamp,
    pub(in crate::dispatcher) attempts: Vec<AttemptState>,
    pub(in crate::dispatcher) phase: Phase,
    /// The agent has its answer, though the call is not over.
    pub(in crate::dispatcher) answered: bool,
    pub(in crate::dispatcher) cancel: Option<CancelReason>,
    /// What is known of the effect of the call whose key it goes on with, which ended in doubt.
    pub(in crate::dispatcher) inherited: Option<Certainty>,
    /// When the agent's patience is over. A wait for a person does not count.
    pub(in crate::dispatcher) deadline: Timestamp,
    /// How often its evidence was compared.
    pub(in crate::dispatcher) compared: u32,
    /// What its evidence says that it did not say before.
    pub(in crate::dispatcher) changed: Vec<Changed>,
    /// The last question about it.
    pub(in crate::dispatcher) asked: Option<InteractionId>,
    /// Whether it was done and then undone.
    pub(in crate::dispatcher) undone: bool,
    /// When it was last taken up after a crash, or by another node.
    pub(super) resumed: Option<Timestamp>,
    /// Whether nobody knows any more how long ago its key was first sent.
    pub(super) key_age_lost: bool,
    /// What its upstream asked of the agent.
    pub(in crate::dispatcher) inquiries: Vec<InquiryState>,
    /// Since when the work clock stands.
    pub(in crate::dispatcher) paused: Option<Timestamp>,
    /// Nobody gave what its upstream asked for last.
    pub(in crate::dispatcher) unanswered: bool,
    /// Who must say yes before it is sent.
    pub(in crate::dispatcher) approval: Option<Box<Approval>>,
    /// How the wait for that is spent.
    pub(in crate::dispatcher) patience: Patience,
    /// Whether they did.
    pub(in crate::dispatcher) approved: bool,
    /// The persons who said yes so far.
    pub(in crate::dispatcher) said_yes: Vec<PersonAnswer>,
    /// When its agent is told that a person is asked, once one is.
    pub(super) told_at: Option<Timestamp>,
    /// What the yes is based on that was given to an equal call, and that this one spends.
    pub(in crate::dispatcher) grant: Option<String>,
    /// Whether somebody is asked to sign in, so that it can go on.
    pub(in crate::dispatcher) signing_in: bool,
    /// Whether it joined that call, and goes on in its place.
    pub(in crate::dispatcher) succeeds: bool,
    /// What it costs, where that is counted.
    pub(in crate::dispatcher) cost: Option<Cost>,
    /// What the policies said of it, where that is not a plain yes.
    pub(in crate::dispatcher) ruling: Option<Box<Ruling>>,
}

/// What an upstream asked of the agent.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct InquiryState {
    pub(in crate::dispatcher) n: u32,
    pub(in crate::dispatcher) attempt: u32,
    /// Whether the upstream waits, so that the attempt goes on.
    pub(in crate::dispatcher) held: bool,
    pub(in crate::dispatcher) way: Way,
    pub(in crate::dispatcher) due: Timestamp,
    pub(in crate::dispatcher) ended: Option<Timestamp>,
}

/// What an open call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dispatcher) enum Phase {
    /// Nothing yet: it was just received.
    Received,
    /// The attempt of that number.
    Attempting(u32),
    /// The time of its next attempt.
    Waiting { until: Timestamp, next: Purpose },
    /// A person's answer.
    Asking,
    /// What the agent has to give before it is sent again.
    Inquiring,
    /// A person's yes, before anything is sent.
    Approving,
}

/// One attempt of an open call.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct AttemptState {
    pub(in crate::dispatcher) n: u32,
    pub(in crate::dispatcher) purpose: Purpose,
    pub(in crate::dispatcher) started: Timestamp,
    pub(in crate::dispatcher) deadline: Timestamp,
    pub(in crate::dispatcher) send_by: Timestamp,
    pub(in crate::dispatcher) run: Option<u64>,
    pub(in crate::dispatcher) item: Option<u32>,
    pub(in crate::dispatcher) end: Option<AttemptEnd>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::dispatcher) struct AttemptEnd {
    pub(in crate::dispatcher) at: Timestamp,
    pub(in crate::dispatcher) report: Report,
    /// What is known by now, which a later status read may have settled.
    pub(in crate::dispatcher) certainty: Certainty,
    pub(in crate::dispatcher) verdict: Option<Verdict>,
}

impl CallState {
    /// What it costs, while nothing was done for it. It is counted with its first attempt, and only then.
    pub(in crate::dispatcher) fn unbegun_cost(&self) -> Option<u64> {
        self.cost.filter(|_| self.attempts.is_empty()).map(|cost| cost.milli)
    }

    pub(super) fn new(received: &Received, gates: &Gates, rules: Option<Arc<Rules>>, at: Timestamp) -> Self {
        // Only a call that goes on with the holder's key has the holder's key.
        let taken_over = received
            .repeat_of
            .as_ref()
            .is_some_and(|held| is_doubt(held.state) && held.effect_key == received.effect_key);
        Self {
            received: received.clone(),
            rules,
            at,
            attempts: Vec::new(),
            phase: Phase::Received,
            answered: false,
            cancel: None,
            inherited: taken_over.then_some(Certainty::InDoubt),
            deadline: received.deadline,
            compared: 0,
            changed: Vec::new(),
            asked: None,
            undone: false,
            resumed: None,
            key_age_lost: false,
            inquiries: Vec::new(),
            paused: None,
            unanswered: false,
            // What it goes on with was let through when it was begun, and a yes to it would not be one to a second effect.
            approval: gates.approval.clone().filter(|_| !taken_over),
            patience: gates.patience.as_deref().cloned().unwrap_or_default(),
            approved: false,
            said_yes: Vec::new(),
            told_at: None,
            grant: received.repeat_of.as_ref().filter(|held| is_spent(held)).map(|held| held.effect_key.clone()),
            signing_in: false,
            succeeds: false,
            cost: None,
            ruling: None,
        }
    }

    /// Whether it still needs a yes before it is sent.
    pub(in crate::dispatcher) fn needs_yes(&self) -> bool {
        self.approval.is_some() && !self.approved
    }

    /// How long somebody is waited for who signs in is said with what is asked for.
    pub(super) fn wait_as_said(&mut self, inquiry: &Inquiry) {
        if let Some(sign_in) = inquiry.sign_in.as_deref().filter(|_| !self.patience.goes_on) {
            self.patience = sign_in.patience.clone();
        }
    }

    /// How long a person has who is asked about it.
    pub(in crate::dispatcher) fn answer_within_ms(&self) -> u64 {
        self.patience.answer_within_ms.unwrap_or(self.contract().answer_within_ms)
    }

    /// Whether nobody waits for its answer any more: its agent was told that a person is asked, or is gone.
    pub(in crate::dispatcher) fn is_left(&self) -> bool {
        self.answered || self.cancel.is_some()
    }

    /// When its agent is told that a person is asked. That of a move is told before its patience is over.
    pub(in crate::dispatcher) fn told_at(&self) -> Option<Timestamp> {
        let leg = self.received.leg.is_some();
        self.told_at.map(|at| if leg { at.min(self.deadline) } else { at })
    }

    /// Whether a move waits for the person who is asked about it. What is called last is done without, if it must be.
    pub(in crate::dispatcher) fn holds_its_move_up(&self) -> bool {
        let leg = self.received.leg.as_ref();
        self.waits_for_a_yes() && leg.is_some_and(|leg| leg.part != Part::Exit)
    }

    /// Whether a person is asked whether it is sent, or, where it is of a move, sent again: their time is not its own.
    pub(in crate::dispatcher) fn waits_for_a_yes(&self) -> bool {
        self.phase == Phase::Approving || (self.phase == Phase::Asking && self.received.leg.is_some())
    }

    /// What a yes to it is based on: the hashes of what was read for it last.
    pub(in crate::dispatcher) fn basis(&self) -> String {
        let reads: Vec<&str> = self.read_last().map(|(_, hash)| hash.as_str()).collect();
        reads.join(" ")
    }

    /// What was read for it last, by the tool that read it.
    pub(in crate::dispatcher) fn read_last(&self) -> impl Iterator<Item = (&ToolName, &Digest)> {
        let round = (self.compared as usize).saturating_sub(1);
        let evidence = (0..).zip(&self.received.evidence);
        evidence.filter_map(move |(item, evidence)| Some((&evidence.tool, self.evidence_read(item, round)?)))
    }

    /// How often its evidence is compared before it is sent: once more after a person was asked, who had only seen what it
    /// said before.
    pub(in crate::dispatcher) fn comparisons(&self) -> u32 {
        if self.said_yes.is_empty() { 1 } else { 2 }
    }

    /// A person said yes to the call that this one joined, which ended: this one goes on in its place. The wait for that is
    /// not the tool's.
    pub(super) fn spends(&mut self, join: u32, basis: &str, at: Timestamp) {
        self.grant = Some(basis.to_owned());
        self.succeeds = true;
        let began = self.attempts.iter().find(|attempt| attempt.n == join).map_or(at, |join| join.started);
        self.deadline = self.deadline + at.since_ms(began);
    }

    /// The call whose claims it takes: one whose doubt or whose grant it goes on with.
    pub(in crate::dispatcher) fn over(&self) -> Option<&Held> {
        let held = self.received.repeat_of.as_ref()?;
        (self.succeeds || is_doubt(held.state) || is_spent(held)).then_some(held)
    }

    /// Since when its key may have been sent.
    pub(in crate::dispatcher) fn since(&self) -> Timestamp {
        self.received.repeat_of.as_ref().filter(|held| is_doubt(held.state)).map_or(self.at, |held| held.since)
    }

    /// Whether what it does for a move stays when the walk is given up: no token undoes it.
    pub(in crate::dispatcher) fn lasts(&self, certainty: Certainty) -> bool {
        let acts = self.received.leg.as_ref().is_some_and(|leg| leg.part == Part::Act);
        let writes = acts && !self.effect().is_read() && !self.is_repeat();
        writes && self.received.reversal.is_none() && !certainty.nothing_happened()
    }

    /// Whether it only waits for another call's answer, and holds nothing itself.
    pub(in crate::dispatcher) fn is_repeat(&self) -> bool {
        !self.succeeds && self.attempts.iter().any(|attempt| attempt.purpose == Purpose::Join)
    }

    pub(in crate::dispatcher) fn rules(&self) -> &Rules {
        self.rules.as_ref().expect("`restore` refuses a trace in which an open call has no rules")
    }

    pub(in crate::dispatcher) fn contract(&self) -> &Contract {
        &self.rules().contract
    }

    pub(in crate::dispatcher) fn effect(&self) -> EffectKind {
        self.contract().effect
    }

    /// The attempts that did, or may have done, what the agent asked for.
    pub(in crate::dispatcher) fn acts(&self) -> impl DoubleEndedIterator<Item = &AttemptState> {
        self.attempts.iter().filter(|attempt| attempt.purpose == Purpose::Act)
    }

    /// The attempts that may have had an effect nobody knows of. A read has none.
    pub(in crate::dispatcher) fn doubts(&self) -> impl Iterator<Item = &AttemptState> {
        let read = self.effect().is_read();
        self.acts()
            .filter(move |attempt| !read && attempt.end.as_ref().is_none_or(|end| end.certainty == Certainty::InDoubt))
    }

    pub(in crate::dispatcher) fn in_doubt(&self) -> bool {
        self.inherits_doubt() || self.doubts().next().is_some()
    }

    /// The attempts of which nobody knows what they did; 0 stands for those of the call whose key it goes on with.
    pub(super) fn doubted(&self) -> Vec<u32> {
        let inherited = self.inherits_doubt().then_some(0);
        let own = self.acts().filter(|act| act.end.as_ref().is_none_or(|end| end.certainty == Certainty::InDoubt));
        inherited.into_iter().chain(own.map(|act| act.n)).collect()
    }

    /// Whether the call whose key it goes on with may have done it.
    pub(in crate::dispatcher) fn inherits_doubt(&self) -> bool {
        self.inherited == Some(Certainty::InDoubt)
    }

    /// Whether something that was sent may still arrive although it is known what became of the call: an earlier send of
    /// what may be sent twice, or an undoing that nobody answered.
    pub(in crate::dispatcher) fn lingers(&self) -> bool {
        let twice = self.effect() == EffectKind::Idempotent;
        let silent = |attempt: &AttemptState| match &attempt.end {
            Some(end) => !end.report.answered && end.report.certainty == Certainty::InDoubt,
            None => true,
        };
        // What the call sent that this one took over from may arrive as well.
        let inherits = twice && self.inherited.is_some();
        inherits
            || self.attempts.iter().any(|attempt| match attempt.purpose {
                Purpose::Act => twice && silent(attempt),
                Purpose::Reverse => silent(attempt),
                Purpose::Baseline | Purpose::Status | Purpose::Join | Purpose::Evidence => false,
            })
    }

    /// Whether it did something to the world, or may have.
    pub(in crate::dispatcher) fn may_have_acted(&self) -> bool {
        !self.effect().is_read() && !self.certainty().nothing_happened()
    }

    /// Whether what is in doubt is left to the agent: nobody declared the tool, and the upstream itself ended every attempt in
    /// doubt, with an error that proves nothing.
    pub(in crate::dispatcher) fn agent_decides(&self) -> bool {
        let answered = |doubt: &AttemptState| doubt.end.as_ref().is_some_and(|end| end.report.answered);
        !self.contract().declared && self.doubts().next().is_some() && self.doubts().all(answered)
    }

    /// What is known of the call's effect, over all its attempts.
    pub(in crate::dispatcher) fn certainty(&self) -> Certainty {
        let of = |attempt: &AttemptState| attempt.end.as_ref().map_or(Certainty::InDoubt, |end| end.certainty);
        let done = self.acts().any(|attempt| of(attempt) == Certainty::Processed);
        if done || self.inherited == Some(Certainty::Processed) {
            Certainty::Processed
        } else if self.in_doubt() {
            Certainty::InDoubt
        } else if self.acts().all(|attempt| of(attempt) == Certainty::NotSent) {
            Certainty::NotSent
        } else {
            Certainty::NotProcessed
        }
    }

    /// The last attempt to act, and how it ended.
    pub(in crate::dispatcher) fn last_act(&self) -> Option<(&AttemptState, &AttemptEnd)> {
        self.acts().rev().find_map(|attempt| attempt.end.as_ref().map(|end| (attempt, end)))
    }

    /// What failed last, where something did.
    pub(in crate::dispatcher) fn last_failed(&self) -> Option<crate::registry::Code> {
        let failed = |attempt: &AttemptState| attempt.end.as_ref()?.report.failure.as_ref().map(|failure| failure.code);
        let found = self.acts().rev().find_map(failed).or_else(|| self.attempts.iter().rev().find_map(failed));
        // A repeat failed as the call did whose answer it was given.
        found.or_else(|| self.recorded()?.code)
    }

    /// What its last attempt told of a failure that leaves it in doubt.
    pub(super) fn told_of_doubt(&self) -> Option<Told> {
        let (_, end) = self.last_act()?;
        Some(Told { verdict: end.verdict, failure: end.report.failure.clone()? })
    }

    /// How the call ended whose answer it was given.
    pub(in crate::dispatcher) fn recorded(&self) -> Option<Recorded> {
        self.attempts.iter().rev().find_map(|attempt| attempt.end.as_ref()?.report.recorded)
    }

    /// When none of the attempts in doubt can take effect any more.
    pub(in crate::dispatcher) fn quiet_at(&self) -> Option<Timestamp> {
        Some(self.last_sent()? + self.contract().settles_within_ms?)
    }

    /// When the last byte of an attempt had left at the latest. An upstream that waited for the agent may have gone on by
    /// itself, but not before it gave up waiting.
    fn last_byte(&self, attempt: &AttemptState) -> Timestamp {
        let of = |asked: &&InquiryState| asked.held && asked.attempt == attempt.n;
        let waited = self.inquiries.iter().filter(of).map(|asked| asked.due).max();
        match &attempt.end {
            // An orphan was perhaps sent by a process that only stalled, as late as its send deadline.
            Some(end) if end.report.answered => end.at.min(attempt.send_by),
            Some(_) | None => waited.map_or(attempt.send_by, |due| due.max(attempt.send_by)),
        }
    }

    /// How often it was sent for that purpose. One that led to an inquiry was not in vain, and does not count.
    pub(in crate::dispatcher) fn sends(&self, purpose: Purpose) -> usize {
        let asked = |attempt: &AttemptState| attempt.end.as_ref().is_some_and(|end| end.report.inquiry.is_some());
        self.attempts.iter().filter(|attempt| attempt.purpose == purpose && !asked(attempt)).count()
    }

    /// What the agent is being asked.
    pub(in crate::dispatcher) fn open_inquiries(&self) -> impl Iterator<Item = &InquiryState> {
        self.inquiries.iter().filter(|inquiry| inquiry.ended.is_none())
    }

    /// The number of the next inquiry.
    pub(in crate::dispatcher) fn next_inquiry(&self) -> u32 {
        self.inquiries.len() as u32 + 1
    }

    /// Whether the agent may still be asked: it does not want the call stopped.
    pub(in crate::dispatcher) fn may_ask(&self) -> bool {
        !self.cancel.is_some_and(CancelReason::is_wish)
    }

    /// An inquiry of which the agent never hears; it counts among those that were made.
    pub(super) fn refuse_inquiry(&mut self, n: u32, at: Timestamp) {
        let (held, way) = (true, Way::Closed);
        self.inquiries.push(InquiryState { n, attempt: 0, held, way, due: at, ended: Some(at) });
    }

    /// An inquiry is over. When it was the last one, the clock goes on: all that is due is due as much later.
    pub(super) fn close_inquiry(&mut self, n: u32, at: Timestamp) {
        let Some(inquiry) = self.inquiries.iter_mut().find(|inquiry| inquiry.n == n && inquiry.ended.is_none()) else {
            return;
        };
        inquiry.ended = Some(at);
        if self.open_inquiries().next().is_some() {
            return;
        }
        let stood_ms = self.paused.take().map_or(0, |since| at.since_ms(since));
        self.deadline = self.deadline + stood_ms;
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.end.is_none()) {
            attempt.deadline = attempt.deadline + stood_ms;
            attempt.send_by = attempt.send_by + stood_ms;
        }
    }

    /// Until when what was sent may still arrive, as far as anybody can say.
    pub(in crate::dispatcher) fn arrives_by(&self) -> Timestamp {
        self.last_sent().map_or(self.at, |at| at + self.contract().request_life_ms())
    }

    /// When the last byte of everything that is in doubt had left, at the latest.
    fn last_sent(&self) -> Option<Timestamp> {
        let sent = self.doubts().map(|attempt| {
            let taken_up = self.sent_before_taken_up(attempt).unwrap_or_default();
            self.last_byte(attempt).max(taken_up)
        });
        // Whatever the call before this one sent had left when it ended, before this one arrived.
        let inherited = self.inherits_doubt().then_some(self.at.max(self.resumed.unwrap_or_default()));
        sent.chain(inherited).max()
    }

    /// The same for an attempt of whoever drove the session before, by the clock of whoever does now: the two clocks may tell
    /// any two times, but an attempt leaves within its own time after it was recorded, or not at all.
    fn sent_before_taken_up(&self, attempt: &AttemptState) -> Option<Timestamp> {
        let resumed = self.resumed.filter(|resumed| attempt.started <= *resumed)?;
        let ended = attempt.end.as_ref().map(|end| end.at).filter(|at| *at < resumed);
        Some(resumed + self.last_byte(attempt).since_ms(ended.unwrap_or(attempt.started)))
    }

    pub(in crate::dispatcher) fn deadline(&self) -> Option<Deadline> {
        let call = || self.received.call.clone();
        if let Some(at) = self.open_inquiries().map(|inquiry| inquiry.due).min() {
            let told = self.told_at().filter(|told| self.signing_in && !self.is_left() && *told < at);
            if let Some(at) = told {
                return Some(Deadline { at, call: call(), reason: "the agent is told that a person is asked" });
            }
            return Some(Deadline { at, call: call(), reason: "what the upstream asked is due" });
        }
        let own = match self.phase {
            Phase::Received | Phase::Inquiring => return None,
            Phase::Attempting(n) => {
                let attempt = self.attempts.get((n as usize).checked_sub(1)?)?;
                Deadline { at: attempt.deadline, call: call(), reason: "an attempt's answer is due" }
            }
            Phase::Waiting { until, .. } => Deadline { at: until, call: call(), reason: "the next attempt is due" },
            Phase::Approving | Phase::Asking if self.waits_for_a_yes() => {
                let at = self.told_at().filter(|_| !self.is_left())?;
                return Some(Deadline { at, call: call(), reason: "the agent is told that a person is asked" });
            }
            Phase::Approving | Phase::Asking if self.answered => return None,
            Phase::Approving | Phase::Asking => {
                Deadline { at: self.deadline, call: call(), reason: "the agent's answer is due" }
            }
        };
        if !self.answered && self.deadline < own.at {
            return Some(Deadline { at: self.deadline, call: call(), reason: "the agent's answer is due" });
        }
        Some(own)
    }

    pub(super) fn settle(&mut self, certainty: Certainty) {
        if self.inherits_doubt() {
            self.inherited = Some(certainty);
        }
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.purpose == Purpose::Act) {
            if let Some(end) = attempt.end.as_mut().filter(|end| end.certainty == Certainty::InDoubt) {
                end.certainty = certainty;
            }
        }
    }

    /// Whether nobody knows any more how long ago its key was first sent: the clock fell behind while nobody drove it.
    pub(in crate::dispatcher) fn key_age_lost(&self) -> bool {
        self.key_age_lost
    }

    /// The piece of evidence that is to be read next, in this round of reading.
    pub(in crate::dispatcher) fn next_evidence(&self) -> Option<u32> {
        let read = |item: u32| {
            let of = |attempt: &&AttemptState| attempt.purpose == Purpose::Evidence && attempt.item == Some(item);
            self.attempts.iter().filter(of).filter(|attempt| attempt.succeeded()).count() as u32
        };
        (0..self.received.evidence.len() as u32).find(|item| read(*item) <= self.compared)
    }

    /// What that piece of evidence said when it was read for the n-th time, from 0.
    pub(in crate::dispatcher) fn evidence_read(&self, item: u32, n: usize) -> Option<&Digest> {
        let of = |attempt: &&AttemptState| attempt.purpose == Purpose::Evidence && attempt.item == Some(item);
        let reads = self.attempts.iter().filter(of).filter(|attempt| attempt.succeeded());
        reads.filter_map(|read| Some(&read.end.as_ref()?.report.payload.as_ref()?.digest)).nth(n)
    }

    /// Whether sending the same call again can do no harm.
    pub(in crate::dispatcher) fn safe_to_repeat(&self) -> bool {
        let contract = self.contract();
        match self.certainty() {
            _ if self.undone => true,
            Certainty::NotSent | Certainty::NotProcessed => true,
            Certainty::Processed => contract.effect.is_read(),
            Certainty::InDoubt => match contract.effect {
                EffectKind::Read | EffectKind::Idempotent => true,
                EffectKind::Keyed => self.key_outlives_the_wait(),
                EffectKind::Write => false,
            },
        }
    }

    /// Whether the upstream still knows the key when the agent, which waits as long as it was asked to, comes back.
    fn key_outlives_the_wait(&self) -> bool {
        let contract = self.contract();
        let Some(key) = contract.key.as_ref().filter(|key| key.durable && !self.key_age_lost) else {
            return false;
        };
        let since = self.since();
        let asked = |end: &AttemptEnd| end.report.failure.as_ref().and_then(|failure| failure.retry_after_ms);
        let back = self.last_act().map_or(self.at, |(_, end)| end.at + asked(end).unwrap_or_default());
        key_usable_ms(contract, key).is_some_and(|usable_ms| back.since_ms(since) < usable_ms)
    }

    /// Whether only a person can say what became of it. Where nobody declared anything there is none.
    pub(in crate::dispatcher) fn needs_person(&self) -> bool {
        self.certainty() == Certainty::InDoubt && !self.safe_to_repeat() && self.contract().declared
    }
}

/// Whether it is a yes that was given to another call, once.
fn is_spent(held: &Held) -> bool {
    held.state == ClaimState::Granted && !held.is_standing()
}

fn is_doubt(state: ClaimState) -> bool {
    matches!(state, ClaimState::InDoubt | ClaimState::Resumable)
}

impl AttemptState {
    /// Whether it did what it should.
    pub(in crate::dispatcher) fn succeeded(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.report.failure.is_none())
    }
}
