//! The world: a heap of things that will happen, and the one loop that lets them happen.

mod alter;
mod happening;
mod inquiries;
mod legs;
mod line;
mod misled;
mod nodes;
mod people;
pub(crate) mod record;
mod recover;
mod turn;
mod undo;
mod walks;
mod wishes;

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use amends_core::{AttemptId, CallId, SessionId, Timestamp};
use amends_ledger::{Ledger as _, MemoryLedger, Node};

use crate::agent::{Agent, Wish};
use crate::catalog::{self, Tool};
use crate::chance::Chance;
use crate::driver::Driver;
use crate::flaw::Flaw;
use crate::queue::Queue;
use crate::tokens::Tokens;
use crate::upstream::{Book, Request, Upstream};
use crate::watch::{Broken, Watch};
use happening::Due;
pub(crate) use happening::{Happening, News};
use misled::Misled;
pub(crate) use people::GRANTED_FOR_MS;
use walks::Walks;

/// When a world begins, in milliseconds since 1970.
const BEGIN_MS: u64 = 1_000_000;
/// For how long agents wish and things break.
const TROUBLE_MS: u64 = 100_000;
/// How long after that everything must be settled.
const CALM_MS: u64 = 400_000;
/// How many things happen in one world at most.
const HAPPENINGS_MAX: u64 = 60_000;
/// The worlds of seeds from here on have walks in them, and the others have none. In some of them people are asked before calls
/// are sent.
pub const WALKS_FROM: u64 = 1 << 32;
/// In the worlds of seeds from here on people are asked before calls are sent, and there are no walks.
pub const APPROVALS_FROM: u64 = 1 << 33;
/// How long a node's heartbeat counts.
const LEASE_MS: u64 = 3_000;

/// What a world that kept every promise amounted to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many calls agents made.
    pub calls: u64,
    /// How many events became durable.
    pub events: u64,
    /// How many effects happened.
    pub effects: u64,
    /// How many things happened.
    pub happenings: u64,
    /// How many questions people answered.
    pub answers: u64,
    /// How many questions nobody answered in time.
    pub lapses: u64,
    /// How many writes were undone.
    pub undone: u64,
    /// How many redemptions were refused.
    pub unredeemed: u64,
    /// How many calls were given up since what they were based on had changed.
    pub stale: u64,
    /// How many calls were refused since their object was held.
    pub busy: u64,
    /// How many inquiries agents answered.
    pub given: u64,
    /// How many ended without an answer.
    pub unanswered: u64,
    /// How many walks began.
    pub walks: u64,
    /// How many moves were made in them.
    pub moves: u64,
    /// How many were refused.
    pub unmoved: u64,
    /// How many repeated another.
    pub repeats: u64,
}

/// A seeded world.
#[derive(Debug)]
pub struct World {
    pub(crate) now: u64,
    /// By how much the clock that nodes read when they start is ahead of the world's.
    pub(crate) ahead_ms: u64,
    /// Where jumps of that clock come from, in worlds in which it jumps.
    jumps: Option<Chance>,
    pub(crate) order: u64,
    heap: BinaryHeap<Due>,
    pub(crate) chance: Chance,
    pub(crate) flaw: Option<Flaw>,
    /// What a flawed dispatcher remembers.
    misled: Misled,
    pub(crate) tools: &'static [Tool],
    pub(crate) fault_percent: u64,
    pub(crate) slow_ms: u64,
    pub(crate) root: MemoryLedger,
    pub(crate) nodes: Vec<Machine>,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) book: Book,
    pub(crate) tokens: Tokens,
    pub(crate) queue: Queue,
    /// The calls whose token did not count.
    pub(crate) unredeemed: BTreeSet<CallId>,
    pub(crate) agents: Vec<Agent>,
    pub(crate) wishes: Vec<Wish>,
    pub(crate) walks: Walks,
    /// What each call stands for.
    pub(crate) asked: BTreeMap<CallId, Asked>,
    pub(crate) sessions: u64,
    pub(crate) tickets: u64,
    /// How many things are due that are not heartbeats.
    pub(crate) live: u64,
    pub(crate) sent: BTreeMap<AttemptId, Request>,
    pub(crate) aborted: BTreeSet<AttemptId>,
    /// The attempts that a driver was asked to send and has not sent yet; true for those it was then asked to stop.
    pub(crate) unsent: BTreeMap<AttemptId, bool>,
    /// The requests whose upstream waits for what it asked.
    pub(crate) parked: BTreeMap<AttemptId, Request>,
    /// The number of what an attempt's upstream asked last.
    pub(crate) asking: BTreeMap<AttemptId, u32>,
    /// Whether its upstreams ask something of their agents.
    pub(crate) curious: bool,
    /// Whether people are asked before calls are sent.
    pub(crate) asks_first: bool,
    /// The answers and results whose step wanted what another call had taken.
    pub(crate) lost: BTreeSet<String>,
    pub(crate) seed: u64,
    /// The judge of all of it.
    pub watch: Watch,
}

/// What the world remembers of a call.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The place of its wish; nothing for a call that is made for a move.
    pub(crate) slot: Option<usize>,
    pub(crate) wish: u64,
    pub(crate) tool: usize,
    pub(crate) args: u64,
    pub(crate) undoes: Option<CallId>,
}

/// A machine that runs one node after the other.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) alive: bool,
    pub(crate) life: u32,
    pub(crate) stalled_until: u64,
    pub(crate) lease_until: u64,
    pub(crate) ledger: MemoryLedger,
    pub(crate) drivers: BTreeMap<SessionId, Driver>,
}

impl World {
    /// The world of that seed.
    pub fn new(seed: u64, flaw: Option<Flaw>, logged: bool) -> Self {
        let mut chance = Chance::new(seed);
        let tools = catalog::tools(flaw);
        let machines = chance.between(1, 2) as usize;
        let root = MemoryLedger::new(Node { id: "root".into(), place: String::new(), lease_ms: LEASE_MS });
        let nodes = (0..machines).map(|n| Machine::new(&root, n)).collect();
        let mut world = Self {
            now: BEGIN_MS,
            ahead_ms: 0,
            jumps: (machines == 1 && seed.is_multiple_of(2)).then(|| Chance::new(!seed)),
            order: 0,
            heap: BinaryHeap::new(),
            fault_percent: chance.pick(&[5, 20, 40, 70]),
            slow_ms: chance.pick(&[0, 3, 3, 200]),
            chance,
            flaw,
            misled: Misled::default(),
            tools,
            root,
            nodes,
            upstreams: (0..catalog::UPSTREAMS.len()).map(Upstream::new).collect(),
            book: Book::default(),
            tokens: Tokens::default(),
            queue: Queue::default(),
            unredeemed: BTreeSet::new(),
            agents: Vec::new(),
            wishes: Vec::new(),
            walks: Walks::default(),
            asked: BTreeMap::new(),
            sessions: 0,
            tickets: 0,
            live: 0,
            sent: BTreeMap::new(),
            aborted: BTreeSet::new(),
            unsent: BTreeMap::new(),
            parked: BTreeMap::new(),
            asking: BTreeMap::new(),
            curious: seed % 4 == 3,
            asks_first: seed >= APPROVALS_FROM || (seed >= WALKS_FROM && seed % 4 == 1),
            lost: BTreeSet::new(),
            seed,
            watch: Watch::new(tools, logged),
        };
        world.watch.asks_first = world.asks_first;
        world.plan();
        world
    }

    /// Lets everything happen. Gives the first promise that was broken.
    pub fn run(&mut self) -> Result<Summary, Box<Broken>> {
        let mut happenings = 0;
        while let Some(Due { at, what, .. }) = self.heap.pop() {
            if at > BEGIN_MS + TROUBLE_MS + CALM_MS {
                break;
            }
            happenings += 1;
            if happenings > HAPPENINGS_MAX {
                return Err(self.watch.broken("liveness", None, "the world does not come to rest".into()));
            }
            self.live -= u64::from(!what.is_beat());
            self.now = at;
            self.watch.tick(happenings, at + self.ahead_ms);
            self.happen(what)?;
        }
        self.check_fields()?;
        self.watch.finish()?;
        let seen = self.watch.seen_so_far();
        Ok(Summary { calls: self.asked.len() as u64, effects: self.book.done().len() as u64, happenings, ..seen })
    }

    fn happen(&mut self, what: Happening) -> Result<(), Box<Broken>> {
        match what {
            Happening::Ask(slot) => self.ask(slot)?,
            Happening::Disconnect(agent, session) => self.disconnect(agent, &session)?,
            Happening::Stop(call, session) => self.stop(call, &session)?,
            Happening::Node(node, life, news) => self.news(node, life, news)?,
            Happening::Arrive(request) => self.arrive(*request)?,
            Happening::Effect(request, answers) => self.late_effect(*request, answers)?,
            Happening::Crash(node) => self.crash(node),
            Happening::Start(node) => self.start(node),
            Happening::Stall(node, ms) => self.nodes[node].stalled_until = self.now + ms,
            Happening::Away(node, ms, in_doubt) => self.ledger_away(node, ms, in_doubt),
            Happening::Back(node, life) => self.ledger_back(node, life),
            Happening::Perish(place) => {
                self.watch.note(|| format!("upstream {place} restarts"));
                let tools = self.tools;
                self.upstreams[place].crash(tools);
            }
            Happening::Change(fact) => {
                self.watch.note(|| format!("{fact} changes"));
                self.book.change(&fact);
            }
            Happening::Look(interaction) => self.look(*interaction),
            Happening::Second(place, answer) => self.second_answer(&place, *answer),
            Happening::Unwind(session) => self.unwind(&session, Timestamp::default()),
            Happening::Undoing(node, session, of, calls, left) => self.undoing(node, session, of, calls, left),
            Happening::Tired(attempt) => self.tired(&attempt),
            Happening::Stride(walker) => self.stride(walker)?,
            Happening::Weary(walker, of) => self.weary(walker, &of),
            Happening::Halt(of, session, wish) => self.halt(of, &session, wish),
            Happening::Give(session, call, inquiry, way) => self.give(&session, call, inquiry, way),
        }
        Ok(())
    }

    fn news(&mut self, node: usize, life: u32, news: News) -> Result<(), Box<Broken>> {
        let machine = &self.nodes[node];
        if !machine.alive || machine.life != life {
            return Ok(());
        }
        if machine.stalled_until > self.now {
            let at = machine.stalled_until;
            self.at(at, Happening::Node(node, life, news));
            return Ok(());
        }
        match news {
            News::Input(session, input) => self.input(node, &session, *input),
            News::Append(session, ticket) => self.append(node, &session, ticket),
            News::Durable(session, justified) => self.durable(node, &session, *justified),
            News::Perform(session, effect, run, lease_until) => self.perform(node, &session, *effect, run, lease_until),
            News::Timer(session) => self.timer(node, &session),
            News::Answer(session, attempt, report) => self.answered(node, &session, attempt, report),
            News::Poll(session, attempt, holder) => self.poll(node, &session, attempt, holder),
            News::Ask(session) => self.ask_ledger(node, &session),
            News::Beat => self.beat(node),
        }
    }

    pub(crate) fn at(&mut self, at: u64, what: Happening) {
        self.order += 1;
        self.live += u64::from(!what.is_beat());
        let order = self.order;
        self.heap.push(Due { at, order, what });
    }

    pub(crate) fn later(&mut self, ms: u64, what: Happening) {
        self.at(self.now + ms, what);
    }

    pub(crate) fn tell(&mut self, at: u64, node: usize, news: News) {
        let life = self.nodes[node].life;
        self.at(at, Happening::Node(node, life, news));
    }

    /// The time as nodes read it.
    pub(crate) const fn time(&self) -> Timestamp {
        Timestamp::from_ms(self.now + self.ahead_ms)
    }

    /// Whether things still break.
    pub(crate) const fn troubled(&self) -> bool {
        self.now < BEGIN_MS + TROUBLE_MS
    }

    /// Draws when everything begins: nodes, agents, and what breaks by itself.
    fn plan(&mut self) {
        for node in 0..self.nodes.len() {
            self.start(node);
        }
        self.plan_wishes();
        if (WALKS_FROM..APPROVALS_FROM).contains(&self.seed) {
            self.plan_walks();
        }
        let percent = self.fault_percent;
        for node in 0..self.nodes.len() {
            if self.chance.percent(percent) {
                let at = BEGIN_MS + self.chance.between(0, TROUBLE_MS / 2);
                self.at(at, Happening::Crash(node));
            }
            if self.chance.percent(percent) {
                let at = BEGIN_MS + self.chance.between(0, TROUBLE_MS / 2);
                let ms = self.chance.between(10, 12_000);
                self.at(at, Happening::Stall(node, ms));
            }
            if self.chance.percent(percent) {
                let at = BEGIN_MS + self.chance.between(0, TROUBLE_MS / 2);
                let (ms, in_doubt) = (self.chance.between(1, 9_000), self.chance.percent(40));
                self.at(at, Happening::Away(node, ms, in_doubt));
            }
        }
        for place in 0..self.upstreams.len() {
            if self.chance.percent(percent) {
                let at = BEGIN_MS + self.chance.between(0, TROUBLE_MS / 2);
                self.at(at, Happening::Perish(place));
            }
        }
    }
}

impl Machine {
    fn new(root: &MemoryLedger, n: usize) -> Self {
        let ledger = root.share(Node { id: format!("node-{n}-0"), place: String::new(), lease_ms: LEASE_MS });
        Self { alive: false, life: 0, stalled_until: 0, lease_until: 0, ledger, drivers: BTreeMap::new() }
    }

    /// A new process on this machine.
    fn renew(&mut self, root: &MemoryLedger, n: usize) {
        self.life += 1;
        self.alive = true;
        self.stalled_until = 0;
        self.ledger =
            root.share(Node { id: format!("node-{n}-{}", self.life), place: String::new(), lease_ms: LEASE_MS });
        self.drivers.clear();
    }

    fn heartbeat(&mut self, now: Timestamp) {
        if let Some(Ok(until)) = record::now(self.ledger.heartbeat(now)) {
            self.lease_until = until.ms();
        }
    }
}
