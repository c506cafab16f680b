//! Upstreams: they do what they are sent, honour keys as they declared, and break on cue.

mod book;
mod fault;
mod report;

pub use book::{Book, Done};
pub use fault::Fault;
pub(crate) use report::refused;

use std::collections::{BTreeMap, BTreeSet};

use amends_core::gates::UNSEEN_RUN;
use amends_core::{AttemptId, CallId, EffectKind, Purpose, Report, SessionId, ToolName};

use crate::catalog::{SHOP, Tool};
use crate::chance::Chance;
use crate::flaw::Flaw;

/// One request on its way.
#[derive(Clone, Debug)]
pub struct Request {
    /// The attempt it is.
    pub attempt: AttemptId,
    /// What it is for.
    pub purpose: Purpose,
    /// The tool of its call, or the one that undoes it, as an index.
    pub tool: usize,
    /// The arguments, as a number.
    pub args: u64,
    /// The key of the effect. Only keyed tools tell the upstream.
    pub effect_key: String,
    /// What is read, for a piece of evidence.
    pub fact: Option<ToolName>,
    /// The call whose write it undoes.
    pub undoes: Option<CallId>,
    /// The wish it comes from.
    pub wish: u64,
    /// Which run of the upstream it was sent to.
    pub run: u64,
    /// When its first byte left.
    pub sent: u64,
    /// The session that sent it.
    pub session: SessionId,
    /// The node that sent it, and in which of its lives.
    pub from: (usize, u32),
    /// What befalls it.
    pub fault: Fault,
}

/// What an upstream does about a request.
#[derive(Clone, Debug)]
pub enum Reaction {
    /// It answers, or the line breaks, after that time.
    Answer(u64, Box<Report>),
    /// It takes effect after that time, and perhaps answers then.
    Later(u64, bool),
}

/// One upstream: its run, the keys it remembers, and what it is at.
#[derive(Debug)]
pub struct Upstream {
    place: usize,
    /// Its run; another one after each crash.
    pub run: u64,
    keys: BTreeMap<String, (u64, usize)>,
    busy: BTreeSet<String>,
}

impl Upstream {
    /// An upstream that has just started.
    pub const fn new(place: usize) -> Self {
        Self { place, run: 1, keys: BTreeMap::new(), busy: BTreeSet::new() }
    }

    /// The run that a driver can see.
    pub const fn seen_run(&self) -> u64 {
        if self.place == SHOP { self.run } else { UNSEEN_RUN }
    }

    /// The process dies and starts again: what it was at is gone, and so are the keys it did not store.
    pub fn crash(&mut self, tools: &[Tool]) {
        self.run += 1;
        self.busy.clear();
        if self.place == SHOP {
            self.keys.retain(|_, (_, tool)| {
                let key = tools[*tool].contract().key.as_ref();
                key.is_some_and(|key| key.durable)
            });
        }
    }

    /// Whether a request that was sent earlier still reaches it: the pipe to an earlier run is gone.
    pub const fn reaches(&self, request: &Request) -> bool {
        self.place != SHOP || request.run == self.run
    }

    /// Takes a request that arrived.
    pub fn arrive(
        &mut self,
        now: u64,
        request: &Request,
        tools: &[Tool],
        book: &mut Book,
        chance: &mut Chance,
        flaw: Option<Flaw>,
    ) -> Vec<Reaction> {
        let tool = &tools[request.tool];
        let soon = chance.between(1, 40);
        if !self.reaches(request) {
            return vec![Reaction::Answer(soon, report::lost())];
        }
        let writes = matches!(request.purpose, Purpose::Act | Purpose::Reverse);
        if !writes || tool.effect() == EffectKind::Read {
            return self.read(request, tool, book, chance, soon);
        }
        let keyed = tool.effect() == EffectKind::Keyed;
        let known = keyed && self.knows(now, request, tools, flaw);
        if keyed && !known && self.busy.contains(&request.effect_key) {
            return vec![Reaction::Answer(soon, report::in_flight(flaw))];
        }
        let fault = request.fault;
        if fault == Fault::Stale
            && chance.percent(50)
            && let Some(reading) = tool.contract().evidence.first()
        {
            book.change(&reading.tool.as_str().into());
        }
        if let Some(report) = report::before_effect(fault, tool, keyed, flaw) {
            if fault == (Fault::Crash { after: false }) {
                self.crash(tools);
            }
            return vec![Reaction::Answer(soon, report)];
        }
        if let Fault::LateEffect { after, answers } = fault
            && !known
        {
            if keyed {
                self.busy.insert(request.effect_key.clone());
            }
            let left = (request.sent + tool.life_ms - 1).saturating_sub(now);
            return vec![Reaction::Later(after.min(left), answers)];
        }
        self.apply(now, request, tools, book, flaw);
        let reaction = match fault {
            Fault::LoseResponse { broken: true } => Reaction::Answer(soon, report::lost()),
            Fault::LoseResponse { broken: false } => return Vec::new(),
            Fault::LateAnswer { after } => Reaction::Answer(after, report::success(book, request)),
            Fault::Crash { .. } => {
                self.crash(tools);
                Reaction::Answer(soon, report::lost())
            }
            Fault::Done if known => Reaction::Answer(soon, report::done()),
            _ => match report::after_effect(fault, flaw) {
                Some(report) => Reaction::Answer(soon, report),
                None => Reaction::Answer(soon, report::success(book, request)),
            },
        };
        vec![reaction]
    }

    /// Takes the effect of a request now, unless its key was seen before. Says what it answers.
    pub fn apply(
        &mut self,
        now: u64,
        request: &Request,
        tools: &[Tool],
        book: &mut Book,
        flaw: Option<Flaw>,
    ) -> Box<Report> {
        self.busy.remove(&request.effect_key);
        let keyed = tools[request.tool].effect() == EffectKind::Keyed;
        if !(keyed && self.knows(now, request, tools, flaw)) {
            book.record(now, request);
            if keyed {
                self.keys.insert(request.effect_key.clone(), (now, request.tool));
            }
        }
        report::success(book, request)
    }

    fn knows(&self, now: u64, request: &Request, tools: &[Tool], flaw: Option<Flaw>) -> bool {
        if flaw == Some(Flaw::KeysForgotten) {
            return false;
        }
        let window = tools[request.tool].contract().key.as_ref();
        let window_ms = window.map_or(0, |key| key.window_ms);
        let first = self.keys.get(&request.effect_key);
        first.is_some_and(|(first, _)| now < first + window_ms)
    }

    fn read(&self, request: &Request, tool: &Tool, book: &Book, chance: &mut Chance, soon: u64) -> Vec<Reaction> {
        let fits = chance.percent(50);
        let answer = report::reading(book, request, tool, fits);
        match request.fault {
            Fault::LoseResponse { broken: false } => Vec::new(),
            Fault::LoseResponse { broken: true } | Fault::Crash { .. } => {
                vec![Reaction::Answer(soon, report::lost())]
            }
            Fault::LateAnswer { after } | Fault::LateEffect { after, .. } => {
                vec![Reaction::Answer(after, answer)]
            }
            fault => match report::of_read(fault) {
                Some(report) => vec![Reaction::Answer(soon, report)],
                None => vec![Reaction::Answer(soon, answer)],
            },
        }
    }
}
