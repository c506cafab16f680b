//! A small world: its state, and everything that can happen next.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use amends_core::interaction::Subject;
use amends_core::{AttemptId, Certainty, Digest, Fact, Interaction, Purpose, ReversalState, Rules};
use stateright::{Model, Property};

use crate::driver::{Driver, Known};
use crate::ledger::Ledger;
use crate::tools::{TOKEN, Tool, Wish, call_id, own_key};

/// A wrong behaviour that can be planted, to prove that the model finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The driver sends a request again by itself when its answer is overdue.
    ResendOnTimeout,
    /// The driver sends before the intent is durable.
    SendBeforeAppend,
    /// The driver records a step without its claims and tokens when one of them is held or spent.
    IgnoreHeld,
    /// The driver ends a call once more when a result comes after its end.
    EndAgain,
    /// The operator says that a request dies at once, and it does not.
    NegativeAtOnce,
    /// The upstream does not honour the keys it is sent.
    KeysForgotten,
    /// The driver answers before the result is durable.
    ReplyBeforeAppend,
}

/// How much of what is bounded may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    pub(crate) crashes: u8,
    pub(crate) cancels: u8,
    /// Deadlines that pass.
    pub(crate) ticks: u8,
    /// Connections that are refused before anything is sent.
    pub(crate) refusals: u8,
}

/// A world to explore.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) calls: Vec<Wish>,
    pub(crate) sessions: usize,
    pub(crate) left: Left,
    pub(crate) flaw: Option<Flaw>,
    rules: BTreeMap<Digest, Arc<Rules>>,
}

/// A request on its way to the upstream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Request {
    pub(crate) session: usize,
    pub(crate) life: u8,
    pub(crate) attempt: AttemptId,
    pub(crate) purpose: Purpose,
    /// Which call it serves.
    pub(crate) call: usize,
    /// The key of its effect.
    pub(crate) key: String,
    /// When it can no longer arrive.
    pub(crate) until: Option<u64>,
}

/// What an upstream, or the line to it, gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Response {
    Done,
    Status(bool),
    Refused,
}

/// What an agent was told of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Told {
    Done,
    Nothing,
    Doubt,
}

impl From<Certainty> for Told {
    fn from(certainty: Certainty) -> Self {
        match certainty {
            Certainty::Processed => Self::Done,
            Certainty::NotSent | Certainty::NotProcessed => Self::Nothing,
            Certainty::InDoubt => Self::Doubt,
        }
    }
}

/// Everything there is at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) now: u64,
    pub(crate) drivers: Vec<Driver>,
    pub(crate) ledger: Known<Ledger>,
    /// The requests that may still arrive.
    pub(crate) wire: BTreeSet<Request>,
    /// The answers that may still come back.
    pub(crate) back: BTreeSet<(Request, Response)>,
    /// How often each key took effect: the truth.
    pub(crate) effects: BTreeMap<String, u8>,
    /// What agents were told, by the key of the effect.
    pub(crate) told: BTreeSet<(String, Told)>,
    /// Which calls were made.
    pub(crate) made: Vec<bool>,
    pub(crate) left: Left,
    /// A request was sent whose intent was not durable.
    pub(crate) unrecorded: bool,
    /// An answer was given whose end was not durable.
    pub(crate) unfounded: bool,
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.now.hash(state);
        self.drivers.hash(state);
        self.ledger.hash(state);
        self.wire.hash(state);
        self.back.hash(state);
        self.effects.hash(state);
        self.told.hash(state);
        self.made.hash(state);
        self.left.hash(state);
        (self.unrecorded, self.unfounded).hash(state);
    }
}

/// One thing that can happen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// An agent makes its call.
    Make(usize),
    /// An agent wants its call stopped.
    Cancel(usize),
    /// The oldest step of a session goes to the ledger.
    Append(usize),
    /// The next thing that a session may do is done.
    Perform(usize),
    /// A session's process dies.
    Crash(usize),
    /// A session is taken up again.
    TakeUp(usize),
    /// A session's deadline passes.
    Tick(usize),
    /// A repeat finds that the call it waits for has ended.
    Join(usize, AttemptId),
    /// A request reaches the upstream.
    Arrive(Request),
    /// A request is lost for good.
    Lose(Request),
    /// A connection is refused, and nothing is sent.
    Refuse(Request),
    /// An answer comes back.
    Answer(Request, Response),
    /// A person who looked says whether it happened.
    Person(usize, Box<Interaction>, bool),
}

impl World {
    pub(crate) fn new(calls: Vec<Wish>, left: Left, flaw: Option<Flaw>) -> Self {
        let sessions = calls.iter().map(|wish| wish.session + 1).max().unwrap_or(1);
        let rules = Tool::ALL.into_iter().map(|tool| (tool.hash(), tool.rules(flaw))).collect();
        Self { calls, sessions, left, flaw, rules }
    }

    pub(crate) fn rules(&self, hash: &Digest) -> Option<Arc<Rules>> {
        self.rules.get(hash).cloned()
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 1_000,
            drivers: (0..self.sessions).map(Driver::new).collect(),
            ledger: Known::new(Ledger::default()),
            wire: BTreeSet::new(),
            back: BTreeSet::new(),
            effects: BTreeMap::new(),
            told: BTreeSet::new(),
            made: vec![false; self.calls.len()],
            left: self.left,
            unrecorded: false,
            unfounded: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (index, wish) in self.calls.iter().enumerate() {
            let Some(live) = &state.drivers[wish.session].live else {
                continue;
            };
            // The token is in the answer of the write.
            let armed = matches!(
                state.ledger.value.token(TOKEN),
                Some(ReversalState::Armed | ReversalState::Redeeming | ReversalState::Redeemed)
            );
            if !state.made[index] && (wish.tool != Tool::Undo || armed) {
                actions.push(Action::Make(index));
            }
            if state.left.cancels > 0 && live.is_open(&call_id(index)) {
                actions.push(Action::Cancel(index));
            }
        }
        for (index, driver) in state.drivers.iter().enumerate() {
            if !driver.queue.is_empty() {
                actions.push(Action::Append(index));
            }
            if !driver.justified.is_empty() {
                actions.push(Action::Perform(index));
            }
            match &driver.live {
                None => actions.push(Action::TakeUp(index)),
                Some(_) if state.left.crashes > 0 && driver.events().next().is_some() => {
                    actions.push(Action::Crash(index));
                }
                Some(_) => {}
            }
            let ended = driver.joins.iter().filter(|(_, holder)| state.answer(holder).is_some());
            actions.extend(ended.map(|(attempt, _)| Action::Join(index, attempt.clone())));
            for (question, happened) in state.questions(index) {
                actions.push(Action::Person(index, Box::new(question.clone()), happened));
            }
        }
        if state.left.ticks > 0 {
            actions.extend(state.due().into_iter().map(Action::Tick));
        }
        for request in &state.wire {
            actions.push(Action::Arrive(request.clone()));
            let act = request.purpose == Purpose::Act;
            if act && request.until.is_none() {
                actions.push(Action::Lose(request.clone()));
            }
            if act && state.left.refusals > 0 {
                actions.push(Action::Refuse(request.clone()));
            }
        }
        actions.extend(state.back.iter().map(|(request, response)| Action::Answer(request.clone(), *response)));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        state.happen(self, action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        crate::promises::of(self)
    }
}

impl State {
    /// The sessions whose deadline is the next to pass.
    fn due(&self) -> Vec<usize> {
        let deadline =
            |driver: &Driver| driver.live.as_ref()?.deadline().map(|deadline| deadline.at.ms().max(self.now));
        let next = self.drivers.iter().filter_map(deadline).min();
        (0..self.drivers.len()).filter(|index| next.is_some() && deadline(&self.drivers[*index]) == next).collect()
    }

    /// The open questions of a session that lives, each with the answer of a person who looked. As long as a request may
    /// still arrive nobody can say that it did not happen.
    fn questions(&self, index: usize) -> Vec<(&Interaction, bool)> {
        let driver = &self.drivers[index];
        if driver.live.is_none() {
            return Vec::new();
        }
        let over = |question: &Interaction| {
            driver.events().any(|event| match &event.fact {
                Fact::InteractionAnswered { interaction, .. } | Fact::InteractionWithdrawn { interaction } => {
                    *interaction == question.id
                }
                _ => false,
            })
        };
        let opened = driver.facts().filter_map(|fact| match fact {
            Fact::InteractionOpened { interaction } if interaction.subject == Subject::Doubt => Some(&**interaction),
            _ => None,
        });
        let answered = |question: &'_ Interaction| {
            let key = self.key(&question.call);
            let happened = self.effects.contains_key(&key);
            let quiet = !self.wire.iter().any(|request| request.purpose == Purpose::Act && request.key == key);
            (happened || quiet).then_some(happened)
        };
        opened.filter(|question| !over(question)).filter_map(|question| Some((question, answered(question)?))).collect()
    }

    /// The key of a call's effect: its own, or that of the call it goes on with.
    pub(crate) fn key(&self, call: &amends_core::CallId) -> String {
        let received = self.drivers.iter().flat_map(Driver::events).find_map(|event| match &event.fact {
            Fact::CallReceived { received, .. } if received.call == *call => Some(received.effect_key.clone()),
            _ => None,
        });
        let index = (0..self.made.len()).find(|index| call_id(*index) == *call);
        received.or_else(|| index.map(own_key)).unwrap_or_default()
    }
}
