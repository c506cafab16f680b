//! What a driver does for a move at once, since it touches nothing outside: the next call is made up, what a move hangs on is
//! evaluated. Some drivers do so within the turn, others a little later.

use std::collections::BTreeMap;

use amends_core::attempt::Payload;
use amends_core::claim::ClaimKind;
use amends_core::id::{ActionName, MachineName, StateName};
use amends_core::machine::{Action, Does};
use amends_core::walk::{Arrival, LegWish, Part, Weighed, Weighing};
use amends_core::{
    Call, CallId, CallKey, Certainty, Claim, Digest, Effect, Event, Fact, Input, SessionId, Step, ToolName,
};

use crate::chance::Chance;
use crate::driver::Driver;
use crate::flaw::Flaw;
use crate::tokens::token_of;
use crate::watch::Broken;
use crate::world::{Asked, World};

/// The number of the first intention; those of wishes for calls are below.
const INTENTIONS: u64 = 50_000_000;

impl World {
    /// Does what a step wants done for a move.
    pub(super) fn go_on(&mut self, node: usize, session: &SessionId, effects: Vec<Effect>) -> Result<(), Box<Broken>> {
        for effect in effects {
            let input = match effect {
                Effect::Begin(wish) => self.leg(node, session, &wish),
                Effect::Weigh { of, what } => {
                    let weighed = self.weigh(node, session, &of, what);
                    weighed.map(|weighed| Input::Weighed { of, weighed })
                }
                _ => None,
            };
            let Some(input) = input else { continue };
            if self.chance.percent(60) {
                self.handle(node, session, input)?;
            } else {
                self.arrives_at(node, session, input);
            }
        }
        Ok(())
    }

    /// The call that a move wants made.
    fn leg(&mut self, node: usize, session: &SessionId, wish: &LegWish) -> Option<Input> {
        let driver = self.nodes[node].drivers.get(session)?;
        let look = driver.dispatcher.walk()?;
        let (_, action) = look.machines.get(&wish.machine)?.action(wish.action.as_str())?;
        let name = tool_of(action, wish)?;
        let tool = self.tools.iter().position(|tool| tool.name == *name)?;
        let inputs = self.walks.moves.get(&wish.leg.of)?.inputs;
        let (part, leg) = (wish.leg.part.as_str(), &wish.leg.name);
        let Tries { since, redone, .. } = Tries::of(&driver.history, &wish.machine, &wish.action);
        let taken = look.frames.last().and_then(|frame| frame.taken.get(&wish.action)).copied().unwrap_or_default();
        let intention = match wish.leg.part {
            Part::Exit => format!("{session}/{}/{part}/{leg}/{}", wish.leg.of, wish.leg.attempt),
            Part::Setup | Part::Act => {
                format!("{session}/{since}/{taken}/{}/{}/{inputs}/{part}/{leg}/{redone}", wish.machine, wish.action)
            }
        };
        let next = INTENTIONS + self.walks.intentions.len() as u64;
        let intended = *self.walks.intentions.entry(intention).or_insert(next);
        let id = CallId::new(format!("c{:03}", self.asked.len()));
        self.watch.asks(&id, intended);
        self.asked.insert(id.clone(), Asked { slot: None, wish: intended, tool, args: intended, undoes: None });
        Some(Input::Call(Box::new(self.leg_call(id, tool, session, wish))))
    }

    fn leg_call(&self, id: CallId, tool: usize, session: &SessionId, wish: &LegWish) -> Call {
        let tool = &self.tools[tool];
        let fingerprint = Digest::new(format!("f-{}-{}", tool.name, wish.key));
        let key = match self.flaw {
            Some(Flaw::LegUnnamed) => format!("{session}-{id}"),
            _ => format!("{session}-{}", wish.key),
        };
        let claim = |kind, name: String| Claim { name: Digest::new(name), fingerprint: fingerprint.clone(), kind };
        let mut claims = Vec::new();
        if !tool.effect().is_read() || (self.asks_first && tool.persons() > 0) {
            claims.push(claim(ClaimKind::Key, format!("k-{key}")));
        }
        claims.extend(tool.object.map(|object| claim(ClaimKind::Object, format!("o-{object}"))));
        Call {
            tool: tool.name.clone(),
            upstream: tool.upstream.clone(),
            rules: tool.rules.clone(),
            rules_hash: tool.hash.clone(),
            arguments: Payload { digest: fingerprint.clone(), size: 2 },
            principal: "agent".into(),
            deadline: wish.deadline,
            key: Some(CallKey(key)),
            claims,
            effect_key: format!("e-{id}"),
            repeat_of: None,
            evidence: Vec::new(),
            reversal: tool.undo.map(|_| token_of(&id)),
            redeems: None,
            view: None,
            leg: Some(wish.leg.clone()),
            id,
        }
    }

    /// What the machine's expressions say. Asked again about the same, they say the same.
    fn weigh(&self, node: usize, session: &SessionId, of: &CallId, what: Weighing) -> Option<Weighed> {
        let driver = self.nodes[node].drivers.get(session)?;
        let look = driver.dispatcher.walk()?;
        let open = look.open.as_ref().filter(|open| open.id == of)?;
        let (_, action) = look.machines.get(open.machine)?.action(open.action.as_str())?;
        let tries =
            driver.history.iter().filter(|event| matches!(&event.fact, Fact::MoveWaits { of: it, .. } if it == of));
        let mut chance = Chance::new(self.seed ^ hash(of.as_str()) ^ ((tries.count() as u64) << 8) ^ what as u64);
        let unclear = || Weighed::Unclear { why: "a field is missing".into() };
        let roll = chance.between(0, 99);
        Some(match what {
            Weighing::Gate => match roll {
                0..=69 => Weighed::Proceed,
                70..=84 => Weighed::Retry,
                _ => Weighed::Skip,
            },
            Weighing::Act if action.stage.assert.is_some() && roll < 40 => match roll {
                0..=17 => Weighed::Retry,
                18..=24 => Weighed::Skip,
                25..=32 => Weighed::Fail,
                _ => unclear(),
            },
            Weighing::Act | Weighing::Skip if roll >= 96 => unclear(),
            Weighing::Act | Weighing::Skip => {
                Weighed::Arrives { arrival: arrival(of, targets(driver, action, &mut chance)?) }
            }
            Weighing::Enter => Weighed::Arrives { arrival: arrival(of, Vec::new()) },
        })
    }
}

/// What a driver does for a move at once, of what a step wants done.
pub(super) fn at_once(step: &Step) -> Vec<Effect> {
    let is = |effect: &&Effect| matches!(effect, Effect::Begin(_) | Effect::Weigh { .. });
    step.effects.iter().filter(is).cloned().collect()
}

fn tool_of<'a>(action: &'a Action, wish: &LegWish) -> Option<&'a ToolName> {
    let named = |legs: &'a [(String, amends_core::machine::ToolUse)]| {
        legs.iter().find(|(name, _)| *name == wish.leg.name).map(|(_, used)| &used.tool)
    };
    match (wish.leg.part, &action.does) {
        (Part::Setup, _) => named(&action.stage.setup),
        (Part::Exit, _) => named(&action.stage.exit),
        (Part::Act, Does::Tool(used)) => Some(&used.tool),
        (Part::Act, Does::Parallel(siblings)) => siblings.get(&wish.leg.name).map(|used| &used.tool),
        (Part::Act, Does::Nothing | Does::Function(_) | Does::Machine(_) | Does::Allowed(_)) => None,
    }
}

fn arrival(of: &CallId, to: Vec<StateName>) -> Arrival {
    Arrival { to, fields: Payload { digest: Digest::new(format!("fields-{of}")), size: 2 } }
}

/// Where an action leads: if that ends the machine, the one that waits for it goes on, and so forth.
fn targets(driver: &Driver, action: &Action, chance: &mut Chance) -> Option<Vec<StateName>> {
    let look = driver.dispatcher.walk()?;
    let mut to = Vec::new();
    let mut action = action;
    let mut depth = look.frames.len();
    // Ends: each turn leaves one machine.
    loop {
        let frame = look.frames.get(depth.checked_sub(1)?)?;
        let machine = look.machines.get(&frame.machine)?;
        let states: Vec<&StateName> = action.to.states().collect();
        let state = states[chance.between(0, states.len() as u64 - 1) as usize];
        to.push(state.clone());
        if depth == 1 || !machine.is_terminal(state) {
            return Some(to);
        }
        depth -= 1;
        let below = look.machines.get(&look.frames.get(depth.checked_sub(1)?)?.machine)?;
        action = below.action(frame.via.as_ref()?.as_str())?.1;
    }
}

/// The wishes for one action since it was last taken.
#[derive(Default)]
struct Tries {
    action: Option<ActionName>,
    /// When the machine was entered last, or the walk began again.
    since: usize,
    /// How often what had been done was to be done again: the machine said so after it looked at it.
    redone: u32,
    /// The wish that is being made, and the calls that it was made with in this try.
    wish: Option<(CallId, Digest)>,
    acts: Vec<CallId>,
    /// Whether it goes on with what an equal one did.
    goes_on: bool,
    last: Option<Part>,
    wanted: bool,
    /// The calls that earlier wishes were made with.
    earlier: BTreeMap<Digest, Vec<CallId>>,
    known: BTreeMap<CallId, Certainty>,
}

impl Tries {
    fn of(history: &[Event], machine: &MachineName, action: &ActionName) -> Self {
        let mut tries = Self { action: Some(action.clone()), ..Self::default() };
        for (n, event) in history.iter().enumerate() {
            let enters = matches!(&event.fact, Fact::MoveMade { enters: Some(entered), .. } if entered == machine);
            if enters || matches!(event.fact, Fact::WalkReset { .. }) {
                tries.begin_again();
                tries.since = n;
            }
            tries.take(&event.fact);
        }
        tries
    }

    fn begin_again(&mut self) {
        let (action, known) = (self.action.take(), std::mem::take(&mut self.known));
        *self = Self { action, since: self.since, known, ..Self::default() };
    }

    fn take(&mut self, fact: &Fact) {
        match fact {
            Fact::MoveMade { action, .. } if self.action.as_ref() == Some(action) => self.begin_again(),
            Fact::CallEnded { call, certainty, .. } | Fact::DoubtSettled { call, certainty, .. } => {
                self.known.insert(call.clone(), *certainty);
            }
            Fact::MoveReceived { taking, .. }
                if self.wish.is_none() && self.action.as_ref() == Some(&taking.action) =>
            {
                let done = |call| self.known.get(call) == Some(&Certainty::Processed);
                self.goes_on = self.earlier.get(&taking.fingerprint).is_some_and(|calls| calls.iter().all(done));
                self.wish = Some((taking.id.clone(), taking.fingerprint.clone()));
            }
            Fact::MoveRefused { of, .. } | Fact::MoveJoined { of, .. } => {
                self.wish.take_if(|(id, _)| id == of);
            }
            Fact::CallReceived { received, .. } if self.wish.is_some() => {
                let Some(leg) = &received.leg else { return };
                self.last = Some(leg.part);
                if leg.part == Part::Act {
                    self.acts.push(received.call.clone());
                }
            }
            // What others do is none of this.
            _ if self.wish.is_none() => {}
            // What comes after the setup is the gate, which was passed before by a move that goes on with what was done.
            Fact::MoveWeighed { weighed: Weighed::Retry, .. } => {
                self.wanted = self.goes_on || self.last != Some(Part::Setup);
            }
            Fact::MoveWeighed { weighed, .. } => self.wanted = *weighed == Weighed::Fail,
            Fact::MoveWaits { .. } => {
                self.redone += u32::from(self.wanted);
                (self.last, self.wanted, self.goes_on) = (None, false, false);
                self.acts.clear();
            }
            Fact::MoveEnded { certainty, .. } => {
                let acts = std::mem::take(&mut self.acts);
                let in_vain = self.wanted && *certainty == Certainty::Processed;
                self.redone += u32::from(in_vain);
                if let Some((_, wish)) = self.wish.take().filter(|_| !acts.is_empty() && !in_vain) {
                    self.earlier.insert(wish, acts);
                }
                (self.last, self.wanted) = (None, false);
            }
            _ => {}
        }
    }
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
