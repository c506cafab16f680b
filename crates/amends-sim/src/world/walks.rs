//! Agents that walk: they take actions, legal ones and others, repeat them, count moves or do not, stop, go back to the beginning,
//! and go on elsewhere from a past point.

use std::collections::BTreeMap;

use amends_core::attempt::Payload;
use amends_core::dispatcher::cancel::CancelReason;
use amends_core::id::ActionName;
use amends_core::walk::{Beginning, Fork, Taking};
use amends_core::{CallId, CallKey, Certainty, Digest, Dispatcher, Event, Fact, Input, SessionId, Timestamp};
use amends_ledger::Ledger as _;

use crate::catalog::machines::machines;
use crate::flaw::Flaw;
use crate::watch::{Broken, Told};
use crate::world::turn::NONSENSE;
use crate::world::{BEGIN_MS, Happening, TROUBLE_MS, World, record};

/// How long after its patience an agent takes a move for lost.
const WEARY_MS: u64 = 3_000;
/// How many walks a world has at most, those that went on from others included.
const COURSES_MAX: usize = 4;

/// What a world knows of its walks.
#[derive(Debug, Default)]
pub(crate) struct Walks {
    courses: Vec<Course>,
    walkers: Vec<Walker>,
    /// Every move that was ever wished for.
    pub(crate) moves: BTreeMap<CallId, Wished>,
    /// What each call of a move is meant to do once, by a name for it.
    pub(crate) intentions: BTreeMap<String, u64>,
    /// The moves that get the answer of another, by that other.
    joined: BTreeMap<CallId, Vec<CallId>>,
}

/// A walk.
#[derive(Debug)]
struct Course {
    declared: usize,
    session: Option<SessionId>,
    from: Option<Fork>,
}

/// An agent that walks. Several may share a walk.
#[derive(Debug)]
struct Walker {
    course: usize,
    /// How often it will still ask for something.
    left: u32,
    stride: Option<Stride>,
}

/// What an agent wants next.
#[derive(Clone, Debug)]
struct Stride {
    wish: u64,
    action: String,
    inputs: u64,
    key: Option<String>,
    expect: Option<u64>,
    reset: bool,
    patience_ms: u64,
    pending: Option<CallId>,
}

/// A move that was wished for.
#[derive(Debug)]
pub(crate) struct Wished {
    walker: usize,
    pub(crate) inputs: u64,
}

impl World {
    pub(super) fn plan_walks(&mut self) {
        for _ in 0..self.chance.between(1, 2) {
            let declared = self.chance.between(0, machines().len() as u64 - 1) as usize;
            self.walks.courses.push(Course { declared, session: None, from: None });
        }
        for course in 0..self.walks.courses.len() {
            for _ in 0..self.chance.between(1, 2) {
                self.set_out(course);
            }
        }
    }

    fn set_out(&mut self, course: usize) {
        let left = self.chance.between(4, 16) as u32;
        let walker = self.walks.walkers.len();
        self.walks.walkers.push(Walker { course, left, stride: None });
        let ms = self.chance.between(0, TROUBLE_MS / 4);
        let at = self.now.max(BEGIN_MS) + ms;
        self.at(at, Happening::Stride(walker));
    }

    /// An agent asks for what it wants, for the first time or again.
    pub(super) fn stride(&mut self, walker: usize) -> Result<(), Box<Broken>> {
        let busy = |stride: &Stride| stride.pending.is_some();
        let course = self.walks.walkers[walker].course;
        if self.walks.walkers[walker].left == 0 || self.walks.walkers[walker].stride.as_ref().is_some_and(busy) {
            return Ok(());
        }
        let Some((node, session)) = self.find_walk(course)? else {
            self.later(400, Happening::Stride(walker));
            return Ok(());
        };
        self.walks.walkers[walker].left -= 1;
        let mut stride = match self.walks.walkers[walker].stride.take() {
            Some(stride) => stride,
            None => match self.choose(node, &session, course) {
                Some(stride) => stride,
                None => {
                    self.later(500, Happening::Stride(walker));
                    return Ok(());
                }
            },
        };
        let id = CallId::new(format!("m{:03}", self.walks.moves.len()));
        stride.pending = Some(id.clone());
        self.walks.moves.insert(id.clone(), Wished { walker, inputs: stride.inputs });
        self.watch.strides(&id, stride.wish, stride.expect);
        let deadline = Timestamp::from_ms(self.now + self.ahead_ms + stride.patience_ms);
        let taking = self.taking(&id, &stride, deadline);
        if self.chance.percent(self.fault_percent / 4 + 3) {
            let ms = self.chance.between(0, 5_000);
            let wish = self.chance.percent(60);
            self.later(ms, Happening::Halt(id.clone(), session.clone(), wish));
        }
        self.later(stride.patience_ms + WEARY_MS, Happening::Weary(walker, id));
        self.walks.walkers[walker].stride = Some(stride);
        self.arrives_at(node, &session, Input::Move(Box::new(taking)));
        Ok(())
    }

    fn taking(&self, id: &CallId, stride: &Stride, deadline: Timestamp) -> Taking {
        let mut digest = Digest::new(format!("p-{}-{}", stride.action, stride.inputs));
        if self.flaw == Some(Flaw::RepeatsUnseen) {
            digest = Digest::new(format!("{digest}-{id}"));
        }
        let expect_seq = stride.expect.filter(|_| self.flaw != Some(Flaw::CountIgnored));
        Taking {
            id: id.clone(),
            action: ActionName::new(stride.action.as_str()),
            expect_seq,
            inputs: Payload { digest: digest.clone(), size: 2 },
            fingerprint: digest,
            principal: "agent".into(),
            key: stride.key.clone().filter(|_| self.flaw != Some(Flaw::RepeatsUnseen)).map(CallKey),
            deadline,
            view: None,
            reset: stride.reset,
        }
    }

    /// What an agent wants that looks at where the walk is, not always closely.
    fn choose(&mut self, node: usize, session: &SessionId, course: usize) -> Option<Stride> {
        let look = self.nodes[node].drivers.get(session)?.dispatcher.walk()?;
        let (moves, over) = (look.moves, look.over);
        let frame = look.frames.last()?;
        let machine = look.machines.get(&frame.machine)?;
        let names = |all: bool| -> Vec<String> {
            let takes = |from: &std::collections::BTreeSet<_>| all || from.contains(&frame.state);
            machine.actions().filter(|(_, action)| takes(&action.from)).map(|(name, _)| name.to_string()).collect()
        };
        let (legal, all) = (names(false), names(true));
        if moves > 0 && self.chance.percent(6) {
            self.fork(session, course, moves);
        }
        let reset = if over { self.chance.percent(60) } else { self.chance.percent(3) };
        let action = match self.chance.between(0, 99) {
            _ if reset => "reset".to_owned(),
            0..=84 if !legal.is_empty() => legal[self.chance.between(0, legal.len() as u64 - 1) as usize].clone(),
            0..=95 => all[self.chance.between(0, all.len() as u64 - 1) as usize].clone(),
            _ => "dance".to_owned(),
        };
        self.order += 1;
        let wish = self.order;
        let keyed = self.chance.percent(30);
        Some(Stride {
            wish,
            action,
            inputs: if self.chance.percent(3) { NONSENSE } else { self.chance.between(0, 1) },
            key: keyed.then(|| format!("w{wish}")),
            expect: match self.chance.between(0, 9) {
                0..=3 => Some(moves),
                4 => Some(moves.saturating_sub(1)),
                _ => None,
            },
            reset,
            patience_ms: self.chance.pick(&[20_000, 20_000, 8_000, 2_000, 700]),
            pending: None,
        })
    }

    /// A node that drives a walk, and its session: one that the agent comes to takes it if it can.
    fn find_walk(&mut self, course: usize) -> Result<Option<(usize, SessionId)>, Box<Broken>> {
        let alive: Vec<usize> = (0..self.nodes.len()).filter(|node| self.nodes[*node].alive).collect();
        if alive.is_empty() {
            return Ok(None);
        }
        let node = self.chance.pick(&alive);
        if let Some(session) = self.walks.courses[course].session.clone() {
            if self.nodes[node].drivers.contains_key(&session) {
                return Ok(Some((node, session)));
            }
            if let Some(driving) = self.driving(&session).filter(|_| self.chance.percent(50)) {
                return Ok(Some((driving, session)));
            }
            match record::now(self.root.trace(&session)) {
                Some(Ok(Some(_))) => {}
                _ if self.driving(&session).is_some() => return Ok(None),
                // Nothing of it was ever recorded.
                _ => {
                    self.walks.courses[course].session = None;
                    return Ok(None);
                }
            }
            self.take_rest(node, &session)?;
            let driven = self.nodes[node].drivers.contains_key(&session);
            return Ok(driven.then_some((node, session)));
        }
        let session = self.open(node);
        self.walks.courses[course].session = Some(session.clone());
        let declared = &machines()[self.walks.courses[course].declared];
        let beginning = Beginning {
            machine: declared.name.clone(),
            definition: declared.definition.clone(),
            hash: declared.hash.clone(),
            from: self.walks.courses[course].from.clone(),
            fields: Payload { digest: Digest::new("fields-at-the-beginning"), size: 2 },
        };
        self.handle(node, &session, Input::Begin(Box::new(beginning)))?;
        let driver = self.nodes[node].drivers.get(&session);
        if driver.is_some_and(|driver| driver.dispatcher.walk().is_none()) {
            let what = format!("{session} cannot walk through `{}`", declared.name);
            return Err(self.watch.broken("follows_declaration", None, what));
        }
        Ok(Some((node, session)))
    }

    /// An agent wants to go on from a past point of a walk, in another one.
    fn fork(&mut self, session: &SessionId, course: usize, moves: u64) {
        if self.walks.courses.len() >= COURSES_MAX {
            return;
        }
        let Some(Ok(Some(trace))) = record::now(self.root.trace(session)) else {
            return;
        };
        let seq = self.chance.between(0, moves);
        let events: Vec<Event> = trace.events.into_iter().map(|stored| stored.event).collect();
        let reached = |event: &Event| match &event.fact {
            Fact::WalkBegan { beginning } => beginning.from.as_ref().map_or(0, |fork| fork.seq) == seq,
            Fact::MoveMade { moves, .. } | Fact::WalkReset { moves, .. } => *moves == seq,
            _ => false,
        };
        let Some(at) = events.iter().position(reached) else {
            return;
        };
        let until = if self.flaw == Some(Flaw::ForkAstray) { events.len() - 1 } else { at };
        let Ok(past) = Dispatcher::restore(&events[..=until], self.watch.rules()) else {
            return;
        };
        let Some(look) = past.walk() else {
            return;
        };
        let (frames, spent_ms) = (look.frames.to_vec(), look.spent_ms.clone());
        let Some(today) = Dispatcher::restore(&events, self.watch.rules()).ok() else {
            return;
        };
        let later = today.walk().map(|look| look.postponed).unwrap_or_default();
        let from = Fork { session: session.clone(), seq, frames, spent_ms, later };
        let declared = self.walks.courses[course].declared;
        self.walks.courses.push(Course { declared, session: None, from: Some(from) });
        self.set_out(self.walks.courses.len() - 1);
    }

    /// The answer to a move is written to its agent, and to those whose moves repeat it.
    pub(crate) fn answer_move(&mut self, node: usize, session: &SessionId, of: &CallId) {
        self.receive_move(node, session, of, of);
        for joined in self.walks.joined.remove(of).unwrap_or_default() {
            self.receive_move(node, session, &joined, of);
        }
    }

    /// A move repeats another one, and gets its answer, now or once there is one.
    pub(crate) fn join_move(&mut self, node: usize, session: &SessionId, of: CallId, first: CallId) {
        match self.watch.move_told(&first) {
            Told::Made | Told::Ended(_) => self.receive_move(node, session, &of, &first),
            Told::Nothing | Told::Refused | Told::Awaited => self.walks.joined.entry(first).or_default().push(of),
        }
    }

    /// An agent reads what became of its wish, unless its connection breaks.
    fn receive_move(&mut self, node: usize, session: &SessionId, of: &CallId, first: &CallId) {
        let Some(walker) = self.walks.moves.get(of).map(|wished| wished.walker) else {
            return;
        };
        let Some(stride) = self.walks.walkers[walker].stride.as_mut().filter(|it| it.pending.as_ref() == Some(of))
        else {
            return;
        };
        stride.pending = None;
        if self.chance.percent(self.fault_percent / 3) {
            if self.chance.percent(50) {
                let input = Input::Cancel { call: of.clone(), reason: CancelReason::Disconnected };
                self.arrives_at(node, session, input);
            }
            return self.stride_again(walker, 90, 10_000);
        }
        if self.chance.percent(75) {
            self.arrives_at(node, session, Input::Delivery { call: first.clone() });
        }
        let again = match self.watch.move_told(first) {
            Told::Made => 0,
            Told::Refused => 40,
            Told::Awaited => 90,
            Told::Ended(Certainty::InDoubt) => 85,
            Told::Ended(_) | Told::Nothing => 60,
        };
        if again > 0 && self.chance.percent(again) {
            return self.stride_again(walker, 100, 12_000);
        }
        self.walks.walkers[walker].stride = None;
        self.stride_again(walker, 100, 4_000);
    }

    fn stride_again(&mut self, walker: usize, percent: u64, within_ms: u64) {
        if self.chance.percent(percent) {
            let ms = self.chance.between(1, within_ms);
            self.later(ms, Happening::Stride(walker));
        }
    }

    /// An agent has waited for longer than it would.
    pub(super) fn weary(&mut self, walker: usize, of: &CallId) {
        if let Some(stride) = self.walks.walkers[walker].stride.as_mut().filter(|it| it.pending.as_ref() == Some(of)) {
            stride.pending = None;
            self.stride_again(walker, 90, 6_000);
        }
    }

    /// An agent wants its move stopped, or is gone.
    pub(super) fn halt(&mut self, of: CallId, session: &SessionId, wish: bool) {
        if let Some(node) = self.driving(session) {
            let reason = if wish { CancelReason::Asked } else { CancelReason::Disconnected };
            self.arrives_at(node, session, Input::Cancel { call: of, reason });
        }
    }

    /// The driver says no by itself, since it could not record the wish.
    pub(crate) fn refuse_move_directly(&mut self, of: &CallId) {
        self.watch.note(|| format!("{of}: refused, no ledger"));
        if let Some(walker) = self.walks.moves.get(of).map(|wished| wished.walker) {
            self.weary(walker, of);
        }
    }

    /// Whether what an agent gave does not fit the action it wished for.
    pub(crate) fn is_unfit(&self, of: &CallId) -> bool {
        self.walks.moves.get(of).is_some_and(|wished| wished.inputs == NONSENSE)
    }
}
