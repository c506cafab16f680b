//! A scenario being told: the dispatcher, the time, and what is on its way.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use amends_core::call::CallKey;
use amends_core::dispatcher::cancel::CancelReason;
use amends_core::dispatcher::redecide::redecide;
use amends_core::id::{ActionName, MachineName};
use amends_core::machine::{Course, Known, Machines, Written};
use amends_core::nearest::nearest;
use amends_core::walk::{Beginning, Taking};
use amends_core::{
    AttemptId, CallId, Deadline, Digest, Dispatcher, Envelope, Event, Fact, Gates, Input, Interaction, Report as Ended,
    Rules, Step, Timestamp, ToolName,
};
use amends_wire::Schema;
use serde_json::{Map, Value};

use super::answer::payload;
use super::expect::Became;
use super::gates::takes;
use super::spec::StepSpec;
use super::undo::Token;
use super::{AnswerSpec, Mismatch, Report, Scenario, ScenarioError, Sent, StepReport};

/// When every scenario begins.
pub(crate) const BEGIN: Timestamp = Timestamp::from_ms(1_000_000);
const PATIENCE_MS: u64 = 60_000;
/// How many things may happen in one step.
const HAPPENINGS_MAX: usize = 10_000;

/// What a scenario takes from outside.
pub struct Cast<'a> {
    /// The machines that are declared.
    pub machines: &'a Machines,
    /// What governs the calls of a tool.
    pub rules: &'a dyn Fn(&ToolName) -> Arc<Rules>,
    /// What came of each attempt of a recorded call; nothing for a call that is not known.
    pub recorded: &'a dyn Fn(&str) -> Option<Vec<Sent>>,
}

impl std::fmt::Debug for Cast<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cast").field("machines", self.machines).finish_non_exhaustive()
    }
}

/// Tells a scenario, and compares.
pub fn tell(scenario: &Scenario, cast: &Cast<'_>) -> Result<Report, ScenarioError> {
    let mut telling = Telling::begin(scenario, cast)?;
    let mut report = Report { story: scenario.story.clone(), steps: Vec::new() };
    for (n, step) in scenario.steps.iter().enumerate() {
        let wrong = |reason: String| ScenarioError::Senseless { step: n + 1, reason };
        let (became, mut mismatches) = telling.step(step).map_err(wrong)?;
        mismatches.extend(step.expect.compare(&became));
        let action = step.action.clone().unwrap_or_else(|| "reset".to_owned());
        let over = telling.stuck;
        report.steps.push(StepReport { action, state: became.state, mismatches });
        if over {
            break;
        }
    }
    telling.decided_again().map_err(|reason| ScenarioError::Senseless { step: report.steps.len(), reason })?;
    Ok(report)
}

/// One step of the dispatcher, as it was told.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    /// When.
    pub(crate) at: Timestamp,
    /// What followed.
    pub(crate) step: Step,
    /// What is due after it.
    pub(crate) due: Option<Deadline>,
}

/// Tells a scenario without comparing, and gives back every step of the dispatcher. What its tools answer has to be written.
pub(crate) fn retell(scenario: &Scenario, cast: &Cast<'_>) -> Result<Vec<Happened>, ScenarioError> {
    let mut telling = Telling::begin(scenario, cast)?;
    for (n, step) in scenario.steps.iter().enumerate() {
        let wrong = |reason: String| ScenarioError::Senseless { step: n + 1, reason };
        let (_, mismatches) = telling.step(step).map_err(wrong)?;
        if let Some(Mismatch { what, expected, got }) = mismatches.first() {
            return Err(wrong(format!("{what}: {expected}, but {got}")));
        }
    }
    telling.decided_again().map_err(|reason| ScenarioError::Senseless { step: scenario.steps.len(), reason })?;
    Ok(telling.happened)
}

/// A scenario being told.
pub(super) struct Telling<'a> {
    pub(super) cast: &'a Cast<'a>,
    pub(super) machines: Arc<Machines>,
    pub(super) dispatcher: Dispatcher,
    pub(super) trace: Vec<Event>,
    pub(super) happened: Vec<Happened>,
    pub(super) now: Timestamp,
    pub(super) course: Course,
    root: MachineName,
    /// What the arguments of tools are checked with, as far as the scenario says what they take.
    pub(super) takes: HashMap<ToolName, Schema>,
    /// What the agent gave for each move.
    pub(super) inputs: HashMap<CallId, Value>,
    /// The calls, by their ids.
    pub(super) calls: HashMap<CallId, Called>,
    /// What each attempt gave, and each call in the end.
    pub(super) bodies: HashMap<AttemptId, Value>,
    pub(super) results: HashMap<CallId, Value>,
    /// What was given for each intention that was carried out.
    pub(super) kept: HashMap<String, Value>,
    /// Answers that are on their way.
    pub(super) coming: BTreeMap<(Timestamp, u64), (AttemptId, Ended)>,
    /// What the open move leaves, once it is made.
    pub(super) leaves: Option<Written>,
    pub(super) replies: HashMap<CallId, Envelope>,
    pub(super) joins: HashMap<CallId, CallId>,
    pub(super) questions: VecDeque<Interaction>,
    /// The tokens of what can be undone, oldest first, and those that are to be redeemed.
    pub(super) tokens: Vec<Token>,
    pub(super) undoing: Vec<Token>,
    /// The move with which the walk was given up, until that is undone, and how much there is to undo.
    pub(super) unwinds: Option<(CallId, u32)>,
    /// What is written for this step.
    pub(super) answers: Vec<AnswerSpec>,
    pub(super) called: Vec<String>,
    pub(super) mismatches: Vec<Mismatch>,
    pub(super) person: Option<String>,
    /// What they say that the call gave.
    pub(super) content: Option<Value>,
    /// Whether they were asked.
    pub(super) spoke: bool,
    /// The guard that did not hold, if one did not.
    pub(super) guard: Option<String>,
    /// Why it cannot go on.
    pub(super) stuck: bool,
    minted: u64,
}

/// A call of a move.
#[derive(Clone, Debug)]
pub(super) struct Called {
    pub(super) args: Value,
    pub(super) rules: Arc<Rules>,
    /// Whether others are made at the same time.
    pub(super) sibling: bool,
    /// What it shares with every other call of the same intention, where it changes something for a move.
    pub(super) intention: Option<String>,
}

impl<'a> Telling<'a> {
    fn begin(scenario: &Scenario, cast: &'a Cast<'a>) -> Result<Self, ScenarioError> {
        let root = MachineName::new(scenario.machine.as_str());
        let declared = |name: &str| cast.machines.declared().find(|machine| machine.name().as_str() == name);
        let Some(machine) = declared(&scenario.machine) else {
            let stage = scenario.machine.split_once('.').filter(|_| cast.machines.get(&root).is_some());
            let known: Vec<&str> = cast.machines.declared().map(|machine| machine.name().as_str()).collect();
            let near = nearest(&scenario.machine, known.iter().copied());
            let hint = match (stage, near.first()) {
                (Some((machine, action)), _) => {
                    format!("; it is a stage of `{machine}`: say `machine = \"{machine}\"`, and take `{action}` first")
                }
                (None, Some(near)) => format!("; did you mean `{near}`?"),
                (None, None) if known.is_empty() => "; none is declared".to_owned(),
                (None, None) => format!("; known: `{}`", known.join("`, `")),
            };
            return Err(ScenarioError::Unknown { machine: scenario.machine.clone(), hint });
        };
        let takes = takes(scenario, cast.machines)?;
        let definition = cast.machines.definition(&root);
        let course = Course::begin(machine, Map::new());
        let fields = payload(course.fields());
        let mut telling = Self {
            cast,
            machines: Arc::new(cast.machines.clone()),
            dispatcher: Dispatcher::open("scenario".into(), 7, "agent".into(), "scenario"),
            trace: Vec::new(),
            happened: Vec::new(),
            now: BEGIN,
            course,
            root: root.clone(),
            takes,
            inputs: HashMap::new(),
            calls: HashMap::new(),
            bodies: HashMap::new(),
            results: HashMap::new(),
            kept: HashMap::new(),
            coming: BTreeMap::new(),
            leaves: None,
            replies: HashMap::new(),
            joins: HashMap::new(),
            questions: VecDeque::new(),
            tokens: Vec::new(),
            undoing: Vec::new(),
            unwinds: None,
            answers: Vec::new(),
            called: Vec::new(),
            mismatches: Vec::new(),
            person: None,
            content: None,
            spoke: false,
            guard: None,
            stuck: false,
            minted: 0,
        };
        let beginning = Beginning { machine: root, definition, hash: "scenario".into(), from: None, fields };
        telling.put(&Gates::default(), Input::Begin(Box::new(beginning)));
        Ok(telling)
    }

    fn step(&mut self, step: &StepSpec) -> Result<(Became, Vec<Mismatch>), String> {
        self.called.clear();
        self.answers.extend(self.written(&step.answers)?);
        self.person.clone_from(&step.person);
        self.content.clone_from(&step.content);
        self.spoke = false;
        let wait_ms = step.after.map_or(0, |span| ms(span.0));
        self.pass(self.now + wait_ms);
        let id = self.mint("move");
        let inputs = Value::Object(step.inputs.clone());
        let gates = self.gates(step, &inputs);
        let action = step.action.as_deref().unwrap_or("reset");
        let taking = Taking {
            id: id.clone(),
            action: ActionName::new(action),
            expect_seq: step.expect_seq,
            inputs: payload(&inputs),
            fingerprint: Digest::new(format!("{action} {inputs}")),
            principal: "agent".into(),
            key: step.key.clone().map(CallKey),
            deadline: self.now + step.patience.map_or(PATIENCE_MS, |span| ms(span.0)),
            view: None,
            reset: step.reset,
        };
        self.inputs.insert(id.clone(), inputs);
        self.put(&gates, Input::Move(Box::new(taking)));
        if let Some(after) = step.stopped {
            self.pass(self.now + ms(after.0));
            let stop = Input::Cancel { call: id.clone(), reason: CancelReason::TurnEnded };
            self.put(&Gates::default(), stop);
        }
        let envelope = self.answer_of(&id);
        self.settle();
        let became = self.became(&id, envelope.as_ref());
        self.put(&Gates::default(), Input::Delivery { call: id });
        for unused in std::mem::take(&mut self.answers) {
            // What comes late is written with the step that it comes late in.
            let got = "it was not called again".to_owned();
            self.mismatches.push(Mismatch { what: "calls".into(), expected: format!("`{}`", unused.tool), got });
        }
        if let Some(person) = step.person.as_ref().filter(|_| !self.spoke) {
            let got = "nobody was asked that".to_owned();
            self.mismatches.push(Mismatch { what: "person".into(), expected: format!("`{person}`"), got });
        }
        Ok((became, std::mem::take(&mut self.mismatches)))
    }

    /// Lets things happen until a move is answered.
    fn answer_of(&mut self, id: &CallId) -> Option<Envelope> {
        for _ in 0..HAPPENINGS_MAX {
            let first = self.joins.get(id).unwrap_or(id);
            if let Some(envelope) = self.replies.get(first) {
                return Some(envelope.clone());
            }
            if self.stuck || !self.happen(None) {
                break;
            }
        }
        self.stuck = true;
        None
    }

    /// Lets what is being undone come to its end, and a person say what they are asked about it once it was answered.
    fn settle(&mut self) {
        for _ in 0..HAPPENINGS_MAX {
            let undoing = !self.undoing.is_empty() || self.tokens.iter().any(|token| token.by.is_some());
            let asked = !self.spoke && self.asked().is_some();
            if self.stuck || !(undoing || asked) || !self.happen(None) {
                break;
            }
        }
        if let Some((of, undone)) = self.unwinds.take() {
            self.put(&Gates::default(), Input::Unwound { of, undone, failed: Vec::new(), doubtful: Vec::new() });
        }
    }

    /// Lets time pass until then.
    fn pass(&mut self, until: Timestamp) {
        for _ in 0..HAPPENINGS_MAX {
            if self.stuck || !self.happen(Some(until)) {
                break;
            }
        }
        self.now = self.now.max(until);
    }

    /// Lets the next thing happen, if it happens by then.
    fn happen(&mut self, by: Option<Timestamp>) -> bool {
        if let Some(token) = self.undoing.pop() {
            self.undo(token);
            return true;
        }
        let asked = self.asked().and_then(|at| self.questions.remove(at)).zip(self.person.clone());
        if let Some((question, choice)) = asked {
            return self.say(&question, choice);
        }
        let coming = self.coming.keys().next().copied();
        let due = self.dispatcher.deadline().map(|deadline| deadline.at);
        let in_time = |at: Timestamp| by.is_none_or(|by| at <= by);
        match (coming, due) {
            (Some((at, n)), due) if due.is_none_or(|due| at <= due) && in_time(at) => {
                self.now = self.now.max(at);
                if let Some((attempt, report)) = self.coming.remove(&(at, n)) {
                    self.put(&Gates::default(), Input::Result { attempt, report: Box::new(report) });
                }
                true
            }
            (_, Some(due)) if in_time(due) => {
                self.now = self.now.max(due);
                self.put(&Gates::default(), Input::Tick);
                true
            }
            _ => false,
        }
    }

    /// The question that a person answers now. Without one, or with one who has something else to say, nobody answers.
    fn asked(&self) -> Option<usize> {
        let choice = self.person.as_ref()?;
        self.questions.iter().position(|question| question.options.contains(choice))
    }

    /// Goes where a fact leads.
    pub(super) fn follow(&mut self, fact: &Fact) {
        match fact {
            Fact::MoveMade { to, enters, .. } => {
                let leaves = self.leaves.take().unwrap_or_default();
                match enters.as_ref().and_then(|machine| self.machines.get(machine)) {
                    Some(machine) => self.course.enter(machine, leaves),
                    None => self.course.arrive(to.len(), leaves),
                }
            }
            Fact::WalkReset { .. } => {
                if let Some(machine) = self.machines.get(&self.root) {
                    self.course = Course::begin(machine, Map::new());
                }
            }
            _ => {}
        }
    }

    /// What is known of the open move.
    pub(super) fn known(&self) -> Known {
        use amends_core::walk::Part;
        let Some(open) = self.dispatcher.walk().and_then(|walk| walk.open) else { return Known::default() };
        let result = |call: &CallId| self.results.get(call).cloned().unwrap_or_default();
        let of = |wanted: Part| {
            open.legs.iter().filter(move |leg| leg.part == wanted).map(|leg| (leg.name.to_owned(), result(leg.call)))
        };
        let acts: Map<String, Value> = of(Part::Act).collect();
        let result = match (acts.len(), acts.get("act")) {
            (0, _) => Value::Null,
            (1, Some(only)) => only.clone(),
            _ => Value::Object(acts),
        };
        let inputs = self.inputs.get(open.id).cloned().unwrap_or_default();
        Known { inputs, setup: Value::Object(of(Part::Setup).collect()), result }
    }

    pub(super) fn mint(&mut self, what: &str) -> CallId {
        self.minted += 1;
        CallId::new(format!("{what}_{}", self.minted))
    }

    pub(super) fn later(&mut self, after_ms: u64, attempt: AttemptId, report: Ended) {
        self.minted += 1;
        self.coming.insert((self.now + after_ms, self.minted), (attempt, report));
    }

    /// What was told folds to the live state, and is decided again as it was.
    fn decided_again(&self) -> Result<(), String> {
        let rules = |hash: &Digest| Some((self.cast.rules)(&ToolName::new(hash.as_str())));
        if Dispatcher::restore(&self.trace, rules).as_ref() != Ok(&self.dispatcher) {
            return Err("its trace does not fold to the live state, which is a bug of ours".into());
        }
        match redecide(&self.trace, rules) {
            Ok(None) => Ok(()),
            _ => Err("its trace is decided otherwise the second time, which is a bug of ours".into()),
        }
    }
}

fn ms(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
