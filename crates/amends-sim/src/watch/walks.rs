//! A walk goes where its machine leads, one move at a time, each once for what was wished and only after it was done.

mod doubts;
mod stages;

use std::collections::{BTreeMap, BTreeSet};

use amends_core::dispatcher::walk::Standing as LookStanding;
use amends_core::id::{ActionName, MachineName, StateName};
use amends_core::machine::{Action, Does, Machines};
use amends_core::walk::{Beginning, Frame, LegOf, Taking, Weighed};
use amends_core::{CallId, Certainty, Digest, Dispatcher, Event, Fact, Reply, SessionId, Step};
use bytes::Bytes;

use crate::watch::{Verdicts, Watch};

/// A walk, as its durable events tell.
#[derive(Debug)]
pub(crate) struct WalkView {
    machines: Machines,
    root: MachineName,
    frames: Vec<Frame>,
    moves: u64,
    /// Where it was after each number of moves. A turn of a stage that failed is no move.
    been: BTreeMap<u64, Vec<Vec<Frame>>>,
    open: Option<CallId>,
    /// The moves that were begun since the last one that was made.
    tried: Vec<CallId>,
    aborted: bool,
    /// What was done in it is not undone yet.
    unwinding: bool,
    /// What was told to stay when it was given up, and everything from before it began again.
    stays: BTreeSet<CallId>,
    /// Who wrote into the fields, by the number of the move.
    written: BTreeMap<u64, String>,
}

/// A move, as the durable events tell.
#[derive(Debug)]
pub(crate) struct MoveView {
    session: SessionId,
    action: ActionName,
    fingerprint: Digest,
    legs: Vec<(LegOf, CallId)>,
    keyed: bool,
    /// It repeats another one.
    joined: bool,
    /// Its agent was told that a person is asked.
    awaited: bool,
    passed_over: bool,
    told: Told,
    /// Nothing more is heard of it but its delivery.
    over: bool,
}

/// What an agent is told of its wish to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Nothing yet.
    Nothing,
    /// It was refused.
    Refused,
    /// A person is asked.
    Awaited,
    /// It was made.
    Made,
    /// It was not made, and that is known of what it did.
    Ended(Certainty),
}

/// What a refused wish must leave as it was.
#[derive(Debug, PartialEq)]
pub(crate) struct Standing {
    frames: Vec<Frame>,
    moves: u64,
    over: bool,
    stands: String,
    later: usize,
}

impl Standing {
    pub(crate) fn of(dispatcher: &Dispatcher) -> Option<Self> {
        let look = dispatcher.walk()?;
        Some(Self {
            frames: look.frames.to_vec(),
            moves: look.moves,
            over: look.over,
            stands: format!("{:?} {:?}", look.standing, look.open),
            later: look.later.len(),
        })
    }
}

impl Watch {
    /// An agent wishes for a move, and may say after how many moves it thinks the walk is.
    pub(crate) fn strides(&mut self, of: &CallId, wish: u64, expect: Option<u64>) {
        self.strode.insert(of.clone(), (wish, expect));
    }

    /// What an agent is told of a move in the end.
    pub(crate) fn move_told(&self, of: &CallId) -> Told {
        self.moves.get(of).map_or(Told::Nothing, |view| view.told)
    }

    /// A wish that is refused, or that repeats another, leaves the walk as it is.
    pub(crate) fn refusal_changes_nothing(
        &self,
        before: Option<Standing>,
        after: &Dispatcher,
        step: &Step,
    ) -> Verdicts {
        let changes = |fact: &Fact| {
            !matches!(fact, Fact::MoveReceived { .. } | Fact::MoveRefused { .. } | Fact::MoveJoined { .. })
        };
        let received = step.events.iter().any(|event| matches!(event.fact, Fact::MoveReceived { .. }));
        if !received || step.events.iter().any(|event| changes(&event.fact)) {
            return Ok(());
        }
        let refused = step.events.iter().find_map(|event| match &event.fact {
            Fact::MoveRefused { of, .. } | Fact::MoveJoined { of, .. } => Some(of.clone()),
            _ => None,
        });
        let after = Standing::of(after);
        if refused.is_some() && before != after {
            let what = format!("before it was {before:?}, after it {after:?}");
            return Err(self.broken("refusal_changes_nothing", refused, what));
        }
        Ok(())
    }

    /// What is kept of a walk's fields was written by the moves that were made, and by nothing else.
    pub(crate) fn fields_follow(&self, session: &SessionId, stored: &[(u64, Bytes)]) -> Verdicts {
        let Some(view) = self.walks.get(session) else {
            return Ok(());
        };
        let kept: BTreeMap<u64, String> =
            stored.iter().map(|(seq, body)| (*seq, String::from_utf8_lossy(body).into_owned())).collect();
        if kept == view.written {
            return Ok(());
        }
        let what = format!("{session}: kept are {kept:?}, written were {:?}", view.written);
        Err(self.broken("refusal_changes_nothing", None, what))
    }

    /// No answer to a wish is given before what it says is durable.
    pub(crate) fn move_before_answer(&self, reply: &Reply) -> Verdicts {
        let told = self.move_told(&reply.call);
        let view = self.moves.get(&reply.call);
        let recorded = match reply.last {
            // A repeat hears what whom it repeats was told: that a person is asked.
            true => !matches!(told, Told::Nothing | Told::Awaited) || view.is_some_and(|view| view.joined),
            false => view.is_some_and(|view| view.awaited),
        };
        if recorded {
            return Ok(());
        }
        let what = format!("the move is answered before that is durable: {told:?}");
        Err(self.broken("result_before_answer", Some(reply.call.clone()), what))
    }

    /// The sessions that walk.
    pub(crate) fn walking(&self) -> impl Iterator<Item = &SessionId> {
        self.walks.keys()
    }

    /// A walk is held up only while a write of it may have been done and nobody could say yet.
    fn held_up(&self, session: &SessionId, dispatcher: &Dispatcher) -> Verdicts {
        let doubtful = dispatcher
            .walk()
            .is_some_and(|look| matches!(look.standing, LookStanding::InDoubt(_) | LookStanding::Unknown(_)));
        let reason = self.walks.get(session).is_some_and(|walk| walk.tried.iter().any(|tried| self.in_doubt(tried)));
        if doubtful && !reason {
            let what = format!("{session} is held up, and nothing in it is in doubt");
            return Err(self.broken("liveness", None, what));
        }
        Ok(())
    }

    /// No move is open for good, and no walk held up for nothing.
    pub(crate) fn every_move_over(&self) -> Verdicts {
        for session in self.walks.keys() {
            let events = self.sessions.get(session).map(|view| view.events.as_slice()).unwrap_or_default();
            self.held_up(session, &self.restored(events)?)?;
        }
        match self.walks.iter().find_map(|(session, view)| view.open.as_ref().map(|of| (session, of))) {
            Some((session, of)) => {
                Err(self.broken("liveness", Some(of.clone()), format!("the move is open for good in {session}")))
            }
            None => Ok(()),
        }
    }

    /// One durable event of a walk, and the one that follows it in its step.
    pub(crate) fn walks_on(&mut self, session: &SessionId, event: &Event, next: Option<&Event>) -> Verdicts {
        match &event.fact {
            Fact::WalkBegan { beginning } => self.begins(session, beginning),
            Fact::MoveReceived { taking, .. } => {
                let taken = !matches!(
                    next.map(|next| &next.fact),
                    Some(Fact::MoveRefused { of, .. } | Fact::MoveJoined { of, .. }) if *of == taking.id
                );
                self.receives(session, taking, taken)
            }
            Fact::CallReceived { received, .. } => match &received.leg {
                Some(leg) => self.leg_begins(session, leg, &received.call),
                None => Ok(()),
            },
            Fact::MoveJoined { of, first } => self.joins(of, first),
            Fact::MoveRefused { of, .. } => self.closes(session, of, Told::Refused),
            Fact::MoveWeighed { of, weighed } => {
                self.still_open(session, of, "it is weighed")?;
                if let (Weighed::Skip, Some(view)) = (weighed, self.moves.get_mut(of)) {
                    view.passed_over = true;
                }
                Ok(())
            }
            Fact::MoveWaits { of, .. } => {
                self.still_open(session, of, "it is tried again")?;
                self.clears_up(session, of)
            }
            Fact::InterimAnswered { call } => {
                if let Some(view) = self.moves.get_mut(call) {
                    (view.told, view.awaited) = (Told::Awaited, true);
                }
                Ok(())
            }
            Fact::MoveMade { of, action, from, to, enters, moves, .. } => {
                self.still_open(session, of, "it is made")?;
                self.one_move_one_wish(of)?;
                self.act_before_move(session, of)?;
                self.clears_up(session, of)?;
                self.follows_declaration(session, of, (action, from, *moves))?;
                self.arrives(session, of, action, to, enters.as_ref())
            }
            Fact::MoveEnded { of, certainty, outcome, .. } => {
                let made = self.moves.get(of).is_some_and(|view| view.told == Told::Made);
                if !made {
                    self.clears_up(session, of)?;
                    self.spends_turn(session, of, *outcome, *certainty);
                }
                self.closes(session, of, if made { Told::Made } else { Told::Ended(*certainty) })
            }
            Fact::WalkReset { of, moves } => {
                // Without a key, a wish to begin again that comes after other moves is another one.
                if self.moves.get(of).is_some_and(|view| view.keyed) {
                    self.one_move_one_wish(of)?;
                }
                self.closes(session, of, Told::Made)?;
                self.restarts(session, *moves);
                self.leaves_behind(session);
                Ok(())
            }
            Fact::WalkAborted { of } => self.aborts(session, of),
            Fact::WalkUnwound { of, left, more, .. } => {
                self.tells_what_stays(session, of, left, *more)?;
                match self.walks.get_mut(session).filter(|view| view.unwinding) {
                    Some(view) => {
                        view.unwinding = false;
                        Ok(())
                    }
                    None => Err(self.broken("follows_declaration", Some(of.clone()), "nothing is being undone".into())),
                }
            }
            _ => Ok(()),
        }
    }

    /// A walk that goes on from another's past begins exactly where that one was.
    fn begins(&mut self, session: &SessionId, beginning: &Beginning) -> Verdicts {
        let Ok(machines) = Machines::read(&beginning.definition) else {
            return Err(self.broken("follows_declaration", None, format!("{session} cannot be walked")));
        };
        let first = first_frame(&machines, &beginning.machine);
        let (frames, moves) = match &beginning.from {
            Some(fork) => {
                let was = self.walks.get(&fork.session).and_then(|view| view.been.get(&fork.seq));
                if !was.is_some_and(|was| was.contains(&fork.frames)) {
                    let what = format!("{session} begins at {:?}, {} was at {was:?}", fork.frames, fork.session);
                    return Err(self.broken("fork_begins_there", None, what));
                }
                (fork.frames.clone(), fork.seq)
            }
            None => (first.into_iter().collect(), 0),
        };
        let view = WalkView {
            machines,
            root: beginning.machine.clone(),
            been: BTreeMap::from([(moves, vec![frames.clone()])]),
            frames,
            moves,
            open: None,
            tried: Vec::new(),
            aborted: false,
            unwinding: false,
            stays: BTreeSet::new(),
            written: BTreeMap::from([(0, "began".to_owned())]),
        };
        self.walks.insert(session.clone(), view);
        self.seen.walks += 1;
        Ok(())
    }

    fn receives(&mut self, session: &SessionId, taking: &Taking, taken: bool) -> Verdicts {
        let view = MoveView {
            session: session.clone(),
            action: taking.action.clone(),
            fingerprint: taking.fingerprint.clone(),
            legs: Vec::new(),
            keyed: taking.key.is_some(),
            joined: false,
            awaited: false,
            passed_over: false,
            told: Told::Nothing,
            over: false,
        };
        self.moves.insert(taking.id.clone(), view);
        if !taken {
            return Ok(());
        }
        let of = &taking.id;
        let Some(walk) = self.walks.get(session) else {
            return Err(self.broken("follows_declaration", Some(of.clone()), "a move without a walk".into()));
        };
        if let Some(open) = &walk.open {
            let what = format!("it is begun while {open} is open");
            return Err(self.broken("one_move_at_a_time", Some(of.clone()), what));
        }
        let goes_on = |tried: &CallId| {
            let same = self.moves.get(tried).is_some_and(|other| other.fingerprint == taking.fingerprint);
            (same || taking.reset) && !self.settling(tried)
        };
        let mut doubtful = walk.tried.iter().filter(|tried| self.may_have_been_done(tried));
        if let Some(doubtful) = doubtful.find(|tried| !goes_on(tried)) {
            let what = format!("it is begun while {doubtful} may have been done");
            return Err(self.broken("one_move_at_a_time", Some(of.clone()), what));
        }
        if let Some((_, Some(expect))) = self.strode.get(of).filter(|(_, expect)| *expect != Some(walk.moves)) {
            let what = format!("its agent thought of {expect} moves, and {} were made", walk.moves);
            return Err(self.broken("expected_place", Some(of.clone()), what));
        }
        if walk.unwinding {
            let what = "it is begun while what was done is being undone".into();
            return Err(self.broken("one_move_at_a_time", Some(of.clone()), what));
        }
        if walk.aborted && !taking.reset {
            return Err(self.broken("follows_declaration", Some(of.clone()), "the walk was given up".into()));
        }
        if let Some(walk) = self.walks.get_mut(session) {
            walk.open = Some(of.clone());
            walk.tried.push(of.clone());
        }
        Ok(())
    }

    fn leg_begins(&mut self, session: &SessionId, leg: &LegOf, call: &CallId) -> Verdicts {
        self.still_open(session, &leg.of, "a call is made for it")?;
        let Some(view) = self.moves.get_mut(&leg.of) else {
            return Ok(());
        };
        let twice = view.legs.iter().find(|(other, _)| other == leg).map(|(_, call)| call.clone());
        view.legs.push((leg.clone(), call.clone()));
        match twice {
            Some(first) => {
                let what = format!("{call} is made for what {first} was made for");
                Err(self.broken("one_leg", Some(leg.of.clone()), what))
            }
            None => Ok(()),
        }
    }

    fn joins(&mut self, of: &CallId, first: &CallId) -> Verdicts {
        let (Some(view), Some(other)) = (self.moves.get(of), self.moves.get(first)) else {
            return Err(self.broken(
                "one_move_one_wish",
                Some(of.clone()),
                format!("it repeats {first}, which is not known"),
            ));
        };
        // Of what was done and was not well done, whoever was not told hears so before it is done again.
        let answered =
            matches!(other.told, Told::Nothing | Told::Awaited | Told::Made | Told::Ended(Certainty::Processed));
        if view.fingerprint != other.fingerprint || view.action != other.action || !answered {
            let what = format!("it repeats {first}, which is {other:?}");
            return Err(self.broken("one_move_one_wish", Some(of.clone()), what));
        }
        // Without a key, whoever gets an answer is the one it was for: an equal wish after that is another one.
        let wish = |of: &CallId| self.strode.get(of).map(|(wish, _)| *wish);
        if let Some(its) = wish(first).filter(|its| !other.keyed && wish(of) != Some(*its)) {
            self.shared.insert(its);
        }
        self.seen.repeats += 1;
        if let Some(view) = self.moves.get_mut(of) {
            (view.over, view.joined) = (true, true);
        }
        Ok(())
    }

    /// Nothing happens for a move that is over: what comes late does not move the walk.
    fn still_open(&self, session: &SessionId, of: &CallId, what: &str) -> Verdicts {
        let open = self.walks.get(session).is_some_and(|walk| walk.open.as_ref() == Some(of));
        let over = self.moves.get(of).is_none_or(|view| view.over);
        if open && !over {
            return Ok(());
        }
        Err(self.broken("late_moves_nothing", Some(of.clone()), format!("{what}, and it is not open")))
    }

    fn closes(&mut self, session: &SessionId, of: &CallId, told: Told) -> Verdicts {
        let over = self.moves.get(of).is_none_or(|view| view.over);
        if over {
            return Err(self.broken("one_end", Some(of.clone()), format!("the move is over, and ends as {told:?}")));
        }
        if let Some(view) = self.moves.get_mut(of) {
            (view.told, view.over) = (told, true);
        }
        if let Some(walk) = self.walks.get_mut(session).filter(|walk| walk.open.as_ref() == Some(of)) {
            walk.open = None;
        }
        match told {
            Told::Refused => self.seen.unmoved += 1,
            Told::Made => self.seen.moves += 1,
            Told::Nothing | Told::Awaited | Told::Ended(_) => {}
        }
        Ok(())
    }

    /// What an agent wished for once, however often it asked, is done at most once.
    fn one_move_one_wish(&mut self, of: &CallId) -> Verdicts {
        let Some((wish, _)) = self.strode.get(of) else {
            return Ok(());
        };
        if self.shared.contains(wish) {
            return Ok(());
        }
        let count = self.strides_made.entry(*wish).or_default();
        *count += 1;
        if *count > 1 {
            let what = format!("the wish {wish} moved the walk {count} times");
            return Err(self.broken("one_move_one_wish", Some(of.clone()), what));
        }
        Ok(())
    }

    /// A move is one that the machine has, from where it is, and the next by its number.
    fn follows_declaration(
        &self,
        session: &SessionId,
        of: &CallId,
        (action, from, moves): (&ActionName, &StateName, u64),
    ) -> Verdicts {
        let Some(walk) = self.walks.get(session) else {
            return Ok(());
        };
        let state = walk.frames.last().map(|frame| &frame.state);
        let known = walk.action(action).is_some_and(|action| action.from.contains(from));
        let same = self.moves.get(of).is_some_and(|view| view.action == *action && view.session == *session);
        if known && same && state == Some(from) && moves == walk.moves + 1 {
            return Ok(());
        }
        let what =
            format!("`{action}` from `{from}` as move {moves}; the walk is in {state:?} after {} moves", walk.moves);
        Err(self.broken("follows_declaration", Some(of.clone()), what))
    }

    fn arrives(
        &mut self,
        session: &SessionId,
        of: &CallId,
        action: &ActionName,
        to: &[StateName],
        enters: Option<&MachineName>,
    ) -> Verdicts {
        let Some(walk) = self.walks.get_mut(session) else {
            return Ok(());
        };
        let led = walk.go(action, to, enters);
        walk.moves += 1;
        walk.been.entry(walk.moves).or_default().push(walk.frames.clone());
        walk.written.insert(walk.moves, of.to_string());
        walk.tried.clear();
        if !led {
            let what = format!("`{action}` does not lead to {to:?} or into {enters:?}");
            return Err(self.broken("follows_declaration", Some(of.clone()), what));
        }
        if let Some(view) = self.moves.get_mut(of) {
            view.told = Told::Made;
        }
        Ok(())
    }

    fn restarts(&mut self, session: &SessionId, moves: u64) {
        // Without a key, an equal wish after that is another one.
        let unkeyed = |(_, view): &(&CallId, &MoveView)| view.session == *session && !view.keyed;
        for (of, _) in self.moves.iter().filter(unkeyed) {
            if let Some((wish, _)) = self.strode.get(of) {
                self.strides_made.remove(wish);
            }
        }
        if let Some(walk) = self.walks.get_mut(session) {
            walk.frames = first_frame(&walk.machines, &walk.root).into_iter().collect();
            walk.moves = moves;
            walk.been.entry(moves).or_default().push(walk.frames.clone());
            walk.tried.clear();
            walk.aborted = false;
        }
    }
}

impl WalkView {
    /// An action of the machine that the walk is in.
    fn action(&self, name: &ActionName) -> Option<&Action> {
        let frame = self.frames.last()?;
        self.machines.get(&frame.machine)?.action(name.as_str()).map(|(_, action)| action)
    }

    /// Goes where a move leads; says whether its machine allows that.
    fn go(&mut self, action: &ActionName, to: &[StateName], enters: Option<&MachineName>) -> bool {
        if let Some(entered) = enters {
            let runs = self.action(action).is_some_and(|it| match &it.does {
                Does::Machine(machine) => machine == entered,
                Does::Allowed(_) => entered.as_str().ends_with(&format!(".{action}")),
                Does::Nothing | Does::Tool(_) | Does::Function(_) | Does::Parallel(_) => false,
            });
            let frame = first_frame(&self.machines, entered).map(|frame| Frame { via: Some(action.clone()), ..frame });
            self.frames.extend(frame);
            return runs && to.is_empty();
        }
        let mut action = action.clone();
        for (n, state) in to.iter().enumerate() {
            let leads = self.action(&action).is_some_and(|it| it.to.states().any(|target| target == state));
            let ends = self.frames.len() > 1 && self.is_terminal(state);
            if !leads || ends == (n + 1 == to.len()) {
                return false;
            }
            let Some(frame) = self.frames.last_mut() else { return false };
            *frame.taken.entry(action.clone()).or_default() += 1;
            frame.moves += 1;
            frame.state = state.clone();
            if ends {
                let Some(Frame { via: Some(via), moves, .. }) = self.frames.pop() else { return false };
                // What was done in it counts for the one that ran it.
                self.frames.iter_mut().last().into_iter().for_each(|outer| outer.moves += moves);
                action = via;
            }
        }
        !to.is_empty()
    }

    fn is_terminal(&self, state: &StateName) -> bool {
        let machine = self.frames.last().and_then(|frame| self.machines.get(&frame.machine));
        machine.is_some_and(|machine| machine.is_terminal(state))
    }
}

fn first_frame(machines: &Machines, name: &MachineName) -> Option<Frame> {
    let machine = machines.get(name)?;
    let (state, taken) = (machine.initial().clone(), BTreeMap::new());
    Some(Frame { machine: name.clone(), state, moves: 0, taken, via: None })
}
