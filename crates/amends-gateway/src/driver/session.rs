//! One session's driver: the only loop.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use amends_core::attempt::{Suppressed, Undo};
use amends_core::contract::{Contract, EffectKind};
use amends_core::dispatcher::cancel::CancelReason;
use amends_core::evidence::EvidenceSource;
use amends_core::failure::bounded;
use amends_core::interaction::SignInAt;
use amends_core::walk::LegOf;
use amends_core::{
    Approval, AttemptId, Call, CallId, Certainty, Code, Digest, Dispatcher, Gates, Input, Inquiry, InteractionId,
    PersonAnswer, Principal, Purpose, Report, Rules, SessionId, Timestamp, UpstreamName, Way,
};
use amends_ledger::StoredAnswer;
use amends_wire::mcp::InputRequired;
use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::admission::Admitted;
use super::answer::{Answered, status_arguments};
use super::approval::Asking;
use super::deliveries::{Leaving, Moment};
use super::failpoint::{self, Point};
use super::inquiry::{LiveInquiry, Return};
use super::listener::Listener;
use super::turn::Turn;
use super::walk::{MoveWish, Walking};
use super::{basis, privacy, sign_in, undo};
use crate::catalogue::ServedTool;
use crate::clock;
use crate::gateway::Gateway;
use crate::mint;
use crate::restraint::Occupied;
use crate::spending::Reserved;
use crate::upstream::openapi::etag;
use crate::upstream::{Aside, RpcFault, Upstream};
use crate::walks::Undone;
use crate::walks::drift::Seen;
use crate::walks::view::View;
use crate::witness::Witness;

/// What arrives at a session's driver.
#[derive(Debug)]
pub(crate) enum Mail {
    Call { call: Box<amends_core::Call>, gates: Box<Gates>, live: Box<Live> },
    Result { attempt: AttemptId, purpose: Purpose, report: Box<Report>, carried: Carried },
    Aside { attempt: AttemptId, aside: Aside },
    Inputs { call: CallId, inquiry: u32, answers: Vec<Result<String, RpcFault>> },
    Withdrawn { call: CallId, inquiry: u32, reason: Option<String> },
    Return(Box<Return>),
    Used,
    Cancel { call: CallId, reason: CancelReason },
    Answer { interaction: InteractionId, answer: Box<PersonAnswer> },
    Delivered { call: CallId, leaving: Option<Leaving> },
    Move(Box<MoveWish>),
    Look(oneshot::Sender<Option<Seen>>),
    Undone(Vec<Undone>),
    NotUndone(CallId),
    Stop(oneshot::Sender<Option<View>>),
    Unwound { of: CallId, undone: u32, failed: Vec<CallId>, doubtful: Vec<CallId> },
    Rest,
    Unused,
}

/// The bytes that came with an attempt's result and pass by the core.
#[derive(Debug)]
pub(crate) enum Carried {
    Nothing,
    Result(Bytes),
    Answer(StoredAnswer),
    Asked(Box<InputRequired>),
    /// Where somebody has to sign in before anything is sent, and on which queue that is asked for.
    SignIn(Box<SignInAt>, String),
}

/// What the driver holds of an open call: what passes by the core.
#[derive(Debug)]
pub(crate) struct Live {
    pub(super) tool: Option<Arc<ServedTool>>,
    pub(super) rules: Arc<Rules>,
    pub(super) rules_hash: Digest,
    pub(super) effect_key: String,
    pub(super) claimed: bool,
    pub(super) keyed: bool,
    pub(super) params: Arc<str>,
    /// The arguments with which each piece of evidence is read.
    pub(super) evidence: Vec<Map<String, Value>>,
    /// The newest attempt that read the first of them.
    pub(super) read_first: Option<AttemptId>,
    pub(super) answer: Option<oneshot::Sender<Answered>>,
    /// Whoever else came back for the same answer.
    pub(super) also: Vec<oneshot::Sender<Answered>>,
    pub(super) listener: Listener,
    /// What its upstream asked of the agent, by its number in the call.
    pub(super) inquiries: BTreeMap<u32, LiveInquiry>,
    pub(super) results: HashMap<AttemptId, Bytes>,
    /// What agents get in the place of results that hold what they must not.
    pub(super) shown: HashMap<AttemptId, Bytes>,
    pub(super) recorded: HashMap<AttemptId, StoredAnswer>,
    pub(super) attempts: HashMap<AttemptId, oneshot::Sender<()>>,
    /// Whether something was sent for it, or by the call it repeats, that may have changed something.
    pub(super) sent: bool,
    /// Held while the call is open.
    pub(super) room: Option<Occupied>,
    /// The same, for its upstream.
    pub(super) place: Option<tokio::sync::OwnedSemaphorePermit>,
    /// When it was made; nothing once it was held against the answers that may have been read before.
    pub(super) made: Option<Moment>,
    /// The move it is made for.
    pub(super) leg: Option<LegOf>,
    /// Who must say yes before it is sent.
    pub(super) approval: Option<Box<Approval>>,
    /// What asks its own agent for that.
    pub(super) asking: Option<Asking>,
    /// What it will have cost its principal, until it is begun.
    pub(super) reserved: Option<Reserved>,
    /// The tool and the arguments that its agent called with, where a person is asked before that call is made.
    pub(super) wanted: Option<(String, String)>,
    /// What its upstream calls what it does for it.
    pub(super) named: Option<String>,
    /// Where somebody has to sign in, so that it can go on.
    pub(super) sign_in: Option<Box<SignInAt>>,
}

/// A session's driver.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) gateway: Arc<Gateway>,
    pub(super) id: SessionId,
    pub(super) principal: Principal,
    pub(super) door: String,
    pub(super) seed: u64,
    pub(super) epoch: u64,
    /// The sequence of the last event that is known to be on the ledger.
    pub(super) recorded: u64,
    pub(super) dispatcher: Dispatcher,
    pub(super) live: HashMap<CallId, Live>,
    pub(super) turns: VecDeque<Turn>,
    /// The rules of every call so far, by their digest: a handful, since they are a tool's and not a call's.
    pub(super) rules: HashMap<Digest, Arc<Rules>>,
    /// The writes on their way. Their results are recorded even when nobody waits for them any more.
    pub(super) listening: HashSet<AttemptId>,
    pub(super) mail: mpsc::UnboundedSender<Mail>,
    /// Who sees every step.
    pub(super) witness: Witness,
    /// What this session read last of what calls are based on, by reference.
    pub(super) reads: HashMap<Digest, Digest>,
    /// By how much the session's time is ahead of this process's: it was driven before by one whose clock was.
    pub(super) ahead_ms: u64,
    /// Its way through a machine.
    pub(super) walking: Option<Walking>,
    /// Whether it ends as soon as it has nothing to do.
    pub(super) resting: bool,
}

/// For how long a step is waited for before it is looked at anew.
const COMMIT_WAIT: Duration = Duration::from_secs(60);

/// How many reads a session remembers for the calls that are based on them.
const READS_MAX: usize = 1024;

impl Mail {
    pub(super) fn call(
        admitted: Admitted,
        made: Moment,
        answer: oneshot::Sender<Answered>,
        listener: Listener,
    ) -> Self {
        let Admitted { call, gates, evidence, tool, params, room, place, reserved } = admitted;
        let live = Live::of(&call, evidence, tool, params, listener, (room, place));
        let approval = gates.approval.clone();
        let live = Box::new(Live { answer: Some(answer), made: Some(made), approval, reserved, ..live });
        Self::Call { call, gates: Box::new(gates), live }
    }
}

/// The room of a call, here and at its upstream.
type Rooms = (Option<Occupied>, Option<tokio::sync::OwnedSemaphorePermit>);

impl Live {
    /// A call that was just admitted, and for whose answer nobody waits.
    pub(super) fn of(
        call: &Call,
        evidence: Vec<Map<String, Value>>,
        tool: Option<Arc<ServedTool>>,
        params: Arc<str>,
        listener: Listener,
        (room, place): Rooms,
    ) -> Self {
        Self {
            tool,
            rules: call.rules.clone(),
            rules_hash: call.rules_hash.clone(),
            effect_key: call.effect_key.clone(),
            claimed: !call.claims.is_empty(),
            keyed: call.key.is_some(),
            params,
            evidence,
            read_first: None,
            answer: None,
            also: Vec::new(),
            listener,
            inquiries: BTreeMap::new(),
            results: HashMap::new(),
            shown: HashMap::new(),
            recorded: HashMap::new(),
            attempts: HashMap::new(),
            sent: false,
            room,
            place,
            made: None,
            leg: call.leg.clone(),
            approval: None,
            asking: None,
            reserved: None,
            wanted: None,
            named: None,
            sign_in: None,
        }
    }

    pub(super) fn contract(&self) -> Option<&Contract> {
        Some(&self.rules.contract)
    }

    /// The call's arguments, read.
    pub(super) fn arguments(&self) -> Option<Value> {
        let params: Value = serde_json::from_str(&self.params).ok()?;
        Some(params.get("arguments").cloned().unwrap_or_else(|| Value::Object(Map::new())))
    }

    /// The tag of what the call is based on. One that was read by another process is read again; without a tag nothing is
    /// sent, since the upstream could not compare.
    pub(super) fn tag(&self) -> Result<String, Code> {
        let read = self.read_first.as_ref().and_then(|attempt| self.results.get(attempt));
        let read = read.ok_or(Code::EvidenceStale)?;
        etag(&String::from_utf8_lossy(read)).ok_or(Code::MissingCapability)
    }

    /// The arguments that read the status of this call.
    pub(super) fn status_arguments(&self) -> Option<Map<String, Value>> {
        let status = self.rules.contract.status.as_ref()?;
        status_arguments(status, &self.arguments()?, &self.effect_key, self.named.as_deref())
    }
}

impl Session {
    pub(super) fn open(
        gateway: Arc<Gateway>,
        id: SessionId,
        principal: Principal,
        door: &str,
        mail: mpsc::UnboundedSender<Mail>,
    ) -> Self {
        let seed = mint::seed();
        Self {
            dispatcher: Dispatcher::open(id.clone(), seed, principal.clone(), door),
            gateway,
            id,
            principal,
            door: door.to_owned(),
            seed,
            epoch: 1,
            recorded: 0,
            live: HashMap::new(),
            turns: VecDeque::new(),
            rules: HashMap::new(),
            listening: HashSet::new(),
            mail,
            witness: Witness::default(),
            reads: HashMap::new(),
            ahead_ms: 0,
            walking: None,
            resting: false,
        }
    }

    /// The time in this session, which never runs backwards.
    pub(super) fn now(&self) -> Timestamp {
        clock::now() + self.ahead_ms
    }

    /// Drives the session until nobody uses it and nothing is open or on its way in it.
    pub(super) async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Mail>, mut used: bool) {
        loop {
            let busy = !self.turns.is_empty() || !self.listening.is_empty() || self.dispatcher.open_calls() > 0;
            let idle = !used && inbox.is_empty() && !busy;
            if idle && (self.walking.is_none() || self.resting) {
                return;
            }
            let deadline = self.dispatcher.deadline();
            let due = deadline
                .as_ref()
                .map_or(Duration::from_secs(3600), |deadline| clock::until(deadline.at - self.ahead_ms));
            // What is still being recorded was not sent, so that it did not time out either: first it is known whether it is.
            let due = if due.is_zero() && self.turns.iter().any(Turn::sends) { COMMIT_WAIT } else { due };
            // The clock decides, not the timer: a tick that is due comes before anything else is waited for.
            if deadline.is_some() && due.is_zero() {
                let gates = self.gates();
                self.take(Input::Tick, gates);
                self.yield_to_commits().await;
                continue;
            }
            // A walk is kept for a while: its agent thinks.
            let kept = idle.then(|| self.gateway.config().limits.walk_idle);
            let rests = kept.filter(|kept| *kept <= due);
            let due = rests.unwrap_or(due);
            tokio::select! {
                biased;
                fate = Self::first_commit(&mut self.turns) => self.committed(fate).await,
                mail = inbox.recv() => match mail {
                    Some(Mail::Unused) | None => used = false,
                    Some(Mail::Used) => used = true,
                    Some(mail) => self.open_mail(mail),
                },
                () = tokio::time::sleep(due) => {
                    if rests.is_some() {
                        // Whoever wants something from now on takes the walk up again; what came before is still done.
                        inbox.close();
                        self.resting = true;
                    }
                }
            }
        }
    }

    /// Gives commits their turn, so that a tick that cannot move its deadline yet does not spin.
    async fn yield_to_commits(&mut self) {
        match self.turns.front() {
            Some(_) => {
                let fate = Self::first_commit(&mut self.turns).await;
                self.committed(fate).await;
            }
            None => tokio::task::yield_now().await,
        }
    }

    fn open_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Call { mut call, gates, live } => {
                // Nothing is sent for an agent that is gone before its call is on the ledger: it may have been answered
                // elsewhere by now, and this one would do it again.
                if live.answer.as_ref().is_none_or(oneshot::Sender::is_closed) {
                    return;
                }
                self.remember_reads(&mut call);
                call.deadline = call.deadline + self.ahead_ms;
                self.rules.entry(call.rules_hash.clone()).or_insert_with(|| call.rules.clone());
                self.live.insert(call.id.clone(), *live);
                self.take(Input::Call(call), *gates);
            }
            Mail::Result { attempt, purpose, mut report, carried } => {
                self.listening.remove(&attempt);
                if let Some(live) = self.live.get_mut(&attempt.call) {
                    if live.claimed {
                        failpoint::reach(Point::AfterResult);
                    }
                    live.attempts.remove(&attempt);
                    let config = self.gateway.config();
                    privacy::mask_words(&config.pii, live, &mut report);
                    match carried {
                        Carried::Nothing => {}
                        Carried::Result(bytes) => {
                            if let Some(shown) = privacy::shown(&config.pii, live, purpose, &bytes, &mut report) {
                                live.shown.insert(attempt.clone(), shown);
                            }
                            live.results.insert(attempt.clone(), bytes);
                        }
                        Carried::Answer(answer) => drop(live.recorded.insert(attempt.clone(), answer)),
                        Carried::Asked(asked) => self.keep_round(&attempt, *asked, &mut report),
                        Carried::SignIn(at, queue) => {
                            live.sign_in = Some(at);
                            let sign_in = Some(Box::new(sign_in::wait(&self.gateway, live, queue)));
                            let inquiry = Inquiry { sign_in, ..Inquiry::of(Vec::new(), Way::Person) };
                            report.inquiry = Some(Box::new(inquiry));
                        }
                    }
                }
                self.remember(&attempt, &report);
                if purpose == Purpose::Act {
                    self.look_for_undo(&attempt, &mut report);
                }
                let mut gates = self.gates_of(&attempt.call);
                if let Some(tool) = self
                    .live
                    .get(&attempt.call)
                    .and_then(|live| live.tool.as_ref())
                    .filter(|_| report.failure.is_some())
                {
                    tool.upstream.restraint.sample(clock::now(), &tool.upstream.name, &tool.name, &mut gates);
                }
                let call = attempt.call.clone();
                let over = !self.dispatcher.is_open(&call);
                self.take(Input::Result { attempt, report }, gates);
                let heard = self.listening.iter().any(|attempt| attempt.call == call);
                if over && !heard && !self.turns.iter().any(|turn| turn.answers(&call)) {
                    self.live.remove(&call);
                }
            }
            Mail::Aside { attempt, aside: Aside::Named(name) } => {
                if let Some(live) = self.live.get_mut(&attempt.call) {
                    live.named = Some(name.clone());
                    self.take(Input::Name { attempt, name }, Gates::default());
                }
            }
            Mail::Aside { attempt, aside } => {
                let asking = self.live.get(&attempt.call).and_then(|live| live.listener.hear(aside));
                if let Some(asking) = asking {
                    self.asked(attempt, asking);
                }
            }
            Mail::Inputs { call, inquiry, answers } => self.given(call, inquiry, answers),
            Mail::Withdrawn { call, inquiry, reason } => self.withdrawn(call, inquiry, reason),
            Mail::Return(returned) => self.returned(*returned),
            Mail::Cancel { call, reason } => {
                // The answer overtook the cancel: nothing is left to stop.
                if self.dispatcher.is_open(&call) {
                    self.take(Input::Cancel { call, reason }, Gates::default());
                }
            }
            Mail::Answer { interaction, answer } => {
                let gates = self.gates();
                self.take(Input::Answer { interaction, answer }, gates);
            }
            Mail::Delivered { call, leaving } => {
                if self.dispatcher.knows(&call) {
                    self.take(Input::Delivery { call }, Gates::default());
                    if let Some(turn) = self.turns.back_mut() {
                        turn.leaving = leaving;
                    }
                }
            }
            Mail::Move(wish) => self.wished(*wish),
            Mail::Undone(undone) => self.hear_of_undone(&undone),
            Mail::Look(answer) => {
                // Whoever looks may be gone.
                let _ = answer.send(self.seen());
            }
            Mail::Stop(answer) => {
                let open = self.dispatcher.walk().and_then(|walk| walk.open.map(|open| open.id.clone()));
                if let Some(call) = open {
                    self.take(Input::Cancel { call, reason: CancelReason::TurnEnded }, Gates::default());
                }
                // Whoever looks may be gone.
                let _ = answer.send(self.view());
            }
            Mail::Unwound { of, undone, failed, doubtful } => {
                self.take(Input::Unwound { of, undone, failed, doubtful }, Gates::default());
            }
            Mail::NotUndone(call) => {
                if let Some(late) = self.dispatcher.not_undone_late(&call) {
                    self.take(late, Gates::default());
                }
            }
            Mail::Rest => self.resting = true,
            Mail::Unused | Mail::Used => {}
        }
    }

    /// Fills in what this session itself read last of what a call is based on.
    fn remember_reads(&self, call: &mut Call) {
        for evidence in call.evidence.iter_mut().filter(|evidence| evidence.from == EvidenceSource::Fresh) {
            if let Some(hash) = self.reads.get(&evidence.reference) {
                evidence.hash = Some(hash.clone());
                evidence.from = EvidenceSource::Session;
            }
        }
    }

    /// Says so if nobody could tell how to undo what was done: its token will not be shown. When its call is over, says how.
    fn look_for_undo(&self, attempt: &AttemptId, report: &mut Report) {
        let done = report.failure.is_none() && report.certainty == Certainty::Processed;
        let Some(live) = self.live.get(&attempt.call).filter(|_| done) else { return };
        let contract = &live.rules.contract;
        let Some(reverse) = contract.reverse.as_ref() else { return };
        if let Err(error) = undo::arguments(reverse, live) {
            let doing = "finding out how to undo it".to_owned();
            report.suppressed.push(Suppressed { doing, reason: bounded(&error.to_string()) });
        } else if contract.effect == EffectKind::Write && !self.dispatcher.is_open(&attempt.call) {
            // Nothing else can have been sent in its place: one effect, one token.
            report.undo = Some(Box::new(Undo { tool: reverse.tool.clone(), within_ms: reverse.within_ms }));
        }
    }

    /// Keeps what a read said that calls may be based on.
    fn remember(&mut self, attempt: &AttemptId, report: &Report) {
        let Some(shape) = report.shape.as_ref().filter(|_| report.failure.is_none()) else { return };
        let Some(live) = self.live.get(&attempt.call) else { return };
        let (Some(tool), Some(Value::Object(args))) = (&live.tool, live.arguments()) else { return };
        let own = shape.provenance.iter().find(|provenance| provenance.source == tool.name.as_str());
        if let Some(hash) = own.and_then(|provenance| provenance.hash.clone())
            && self.reads.len() < READS_MAX
        {
            self.reads.insert(basis::reference(tool.name.as_str(), &args), hash);
        }
    }

    /// The gates for a call that is open.
    pub(super) fn gates_of(&self, call: &CallId) -> Gates {
        match self.live.get(call) {
            Some(live) if !live.rules.contract.effect.is_read() => match &live.tool {
                Some(tool) => runs([&tool.upstream]),
                None => Gates::default(),
            },
            _ => Gates::default(),
        }
    }

    /// The gates for all calls that are open.
    pub(super) fn gates(&self) -> Gates {
        let named = self.gateway.upstreams();
        // A call stays with the upstream it began at, whatever has that name now.
        let at = |call: &CallId, name: &UpstreamName| {
            let own = self.live.get(call).and_then(|live| live.tool.as_ref()).map(|tool| &tool.upstream);
            own.or_else(|| named.get(name))
        };
        let upstreams = || self.dispatcher.calls().filter_map(|(call, received)| at(call, &received.upstream));
        let mut gates = if self.dispatcher.only_reads() { Gates::default() } else { runs(upstreams()) };
        let now = clock::now();
        for (call, received) in self.dispatcher.calls() {
            if let Some(upstream) = at(call, &received.upstream) {
                upstream.restraint.sample(now, &received.upstream, &received.tool, &mut gates);
            }
        }
        gates
    }
}

/// Which run of each upstream would be sent to. Where two of one name are used, since a reload replaced one by the other, nothing
/// is said of either.
fn runs<'a>(upstreams: impl IntoIterator<Item = &'a Arc<Upstream>>) -> Gates {
    let mut seen: BTreeMap<UpstreamName, Option<u64>> = BTreeMap::new();
    for upstream in upstreams {
        let run = upstream.run();
        let known = seen.entry(upstream.name.clone()).or_insert(run);
        *known = known.filter(|known| Some(*known) == run);
    }
    let runs = seen.into_iter().filter_map(|(name, run)| Some((name, run?))).collect();
    Gates { runs, ..Gates::default() }
}
