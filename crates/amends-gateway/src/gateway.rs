//! The gateway as a whole: its ledger, its upstreams, its tools, and the sessions it drives.

mod tending;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use amends_core::{Digest, Principal, SessionId, Timestamp, UpstreamName};
use amends_ledger::{Ledger, MemoryLedger, Node, PostgresLedger, SqliteLedger};
use futures_util::future::join_all;
use thiserror::Error;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use crate::catalogue::Catalogue;
use crate::clock;
use crate::config::{Config, ConfigError, LedgerConfig, LedgerPlace};
use crate::door::agui::Runs;
use crate::driver::{Deliveries, Mail, SessionHandle, read_post, retire_old, settle_orphans};
use crate::hub::{Hub, News};
use crate::identity::{Identity, IdentityError};
use crate::key::{self, KeyError};
use crate::live::Live;
use crate::metrics::Metrics;
use crate::pin::{self, Pins};
use crate::pulse::{self, Pulse};
use crate::request_state::Seal;
use crate::restraint::{Rates, Room};
use crate::sign_in::SignIn;
use crate::signer::{SignError, Signer, keep_signing};
use crate::spending::{self, Spending};
use crate::telemetry::Telemetry;
use crate::upstream::{Greeting, StartFault, Unasked, Upstream};
use crate::walks::beginnings::Beginnings;
use crate::walks::kit::Kits;
use crate::walks::owners::Owners;
use crate::webhook;
use tending::Tending;

/// How long a heartbeat counts.
const LEASE_MS: u64 = 10_000;
const HEARTBEAT: Duration = Duration::from_secs(2);
const SWEEP: Duration = Duration::from_secs(30);

/// A gateway that runs. Dropping it stops its upstreams.
#[derive(Debug)]
pub struct Gateway {
    /// Where it remembers.
    pub ledger: Arc<dyn Ledger>,
    /// The tools it serves.
    pub catalogue: Catalogue,
    /// Where what upstreams say of their own accord comes together.
    pub hub: Arc<Hub>,
    /// What it was told, and whom it calls.
    pub(crate) serving: RwLock<Serving>,
    /// Who tells who somebody is.
    identity: RwLock<Arc<Identity>>,
    /// Held while one configuration takes the place of another.
    pub(crate) reloading: std::sync::Mutex<()>,
    /// How many configurations took the place of the first, and whether the newest one was refused.
    pub(crate) reloads: AtomicU64,
    pub(crate) refused: AtomicBool,
    /// How its upstreams are greeted, and where what they send of their own accord goes.
    pub(crate) greeting: Greeting,
    pub(crate) unasked: mpsc::UnboundedSender<(UpstreamName, Unasked)>,
    /// The secret under which digests are keyed.
    pub(crate) secret: [u8; 32],
    /// What seals the states that agents bring back.
    pub(crate) seal: Seal,
    /// Told whenever an answer is stored.
    pub(crate) answered: Notify,
    /// How many calls are open.
    pub(crate) room: Room,
    /// How often each principal called.
    pub(crate) rates: Rates,
    pub(crate) session_rates: Rates,
    pub(crate) spending: Spending,
    /// The rules that are on the ledger.
    pub(crate) stored_rules: StoredRules,
    /// The answers that are leaving.
    pub(crate) deliveries: Arc<Deliveries>,
    /// What is counted.
    pub metrics: Metrics,
    /// Where spans go, where they do.
    pub(crate) telemetry: Option<Telemetry>,
    /// What was recorded just now, for whoever watches.
    pub(crate) live: Live,
    /// How much is going on.
    pub(crate) pulse: Pulse,
    /// Who may look and answer at the console.
    pub sign_in: SignIn,
    /// The tools that are not called since they are not what they were.
    pub(crate) pins: Pins,
    /// What the inputs and fields of machines are checked with.
    pub(crate) kits: Kits,
    /// Whose the walks are.
    pub(crate) owners: Owners,
    /// What the walks began with that were begun without a handle.
    pub(crate) beginnings: Beginnings,
    /// The runs that go on here.
    pub(crate) runs: Arc<Runs>,
    /// Who signs the log, where there is a key.
    signer: Option<Signer>,
    /// Where the HTTP doors listen, once they do.
    pub(crate) listening: OnceLock<SocketAddr>,
    /// How many sessions are driven right now.
    driven: watch::Sender<usize>,
    /// How to reach the drivers of the sessions that are driven here.
    drivers: std::sync::Mutex<HashMap<SessionId, mpsc::UnboundedSender<Mail>>>,
    /// Sessions of this node that it stopped driving while the ledger was away, to be taken up again.
    given_up: std::sync::Mutex<Vec<SessionId>>,
    /// Held while a session is taken up.
    pub(crate) adopting: tokio::sync::Mutex<()>,
    /// Whether the ledger recorded when it was last asked to.
    pub(crate) recording: AtomicBool,
    lease_until: AtomicU64,
    tasks: std::sync::Mutex<Vec<JoinHandle<()>>>,
    tending: std::sync::Mutex<HashMap<UpstreamName, Tending>>,
}

/// Whom a gateway calls, by name.
pub type Upstreams = BTreeMap<UpstreamName, Arc<Upstream>>;

/// What a gateway was told, and whom it calls: replaced as one.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    pub(crate) config: Arc<Config>,
    pub(crate) upstreams: Arc<Upstreams>,
}

/// Why a gateway did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The ledger could not be opened.
    #[error("cannot open the ledger {place:?}")]
    Ledger {
        /// Where it should be.
        place: LedgerPlace,
        /// Why.
        source: amends_ledger::Error,
    },
    /// An upstream cannot be spoken to at all.
    #[error("cannot speak to `upstreams.{name}`")]
    Upstream {
        /// Its name.
        name: UpstreamName,
        /// Why.
        source: StartFault,
    },
    /// It could not be told who calls.
    #[error("cannot tell who calls")]
    Identity(#[from] IdentityError),
    /// The doors would be open to more than this machine.
    #[error(transparent)]
    Exposed(#[from] ConfigError),
    /// The key that signs checkpoints is not there.
    #[error("cannot sign checkpoints")]
    Key(#[from] KeyError),
}

/// Opens a ledger for this process.
pub async fn open_ledger(config: &LedgerConfig) -> Result<Arc<dyn Ledger>, StartError> {
    let failed = |source| StartError::Ledger { place: config.place.clone(), source };
    let node = Node::this_process(LEASE_MS).map_err(failed)?;
    Ok(match &config.place {
        LedgerPlace::Memory => Arc::new(MemoryLedger::new(node)),
        LedgerPlace::Sqlite(path) => {
            let ledger = SqliteLedger::open(path, node).map_err(failed)?;
            if let Some(shown) = ledger.clock().await.map_err(failed)? {
                clock::begin_at(shown);
            }
            Arc::new(ledger.with_vault(config.vault().map_err(failed)?))
        }
        LedgerPlace::Postgres(url) => {
            let ledger = PostgresLedger::open(url, node).await.map_err(failed)?;
            clock::begin_at(ledger.clock().await.map_err(failed)?);
            Arc::new(ledger.with_vault(config.vault().map_err(failed)?))
        }
    })
}

impl Gateway {
    /// Starts a gateway over that ledger. What its upstreams send of their own accord goes to `unasked`.
    pub async fn start(
        config: Config,
        ledger: Arc<dyn Ledger>,
        greeting: Greeting,
        unasked: mpsc::UnboundedSender<(UpstreamName, Unasked)>,
    ) -> Result<Arc<Self>, StartError> {
        if let Some(words) = config.ledger.unsealed() {
            tracing::warn!("{words}");
        }
        let identity = Identity::start(&config)?;
        let config = Arc::new(config);
        let lease_until = ledger
            .heartbeat(clock::now())
            .await
            .map_err(|source| StartError::Ledger { place: config.ledger.place.clone(), source })?;
        let hub = Arc::new(Hub::default());
        let upstreams: Upstreams = config
            .upstreams
            .iter()
            .map(|(name, upstream)| {
                let news = Arc::new(News::new(name.clone(), hub.clone()));
                let started =
                    Upstream::start(name.clone(), upstream.clone(), greeting, config.limits, unasked.clone(), news);
                let started = started.map_err(|source| StartError::Upstream { name: name.clone(), source })?;
                Ok((name.clone(), Arc::new(started)))
            })
            .collect::<Result<_, StartError>>()?;
        hub.meet(&upstreams, &config);
        let signing_key = key::signing(&config.ledger, &amends_ledger::origin(&ledger.secret()))?;
        let signer = signing_key.map(|key| Signer::new(ledger.clone(), key, config.ledger.anchor.clone()));
        let spending = Spending::default();
        if config.cost.day_max_milli.is_some() {
            let counted = spending.look(&*ledger, clock::now(), true, |_| false).await;
            counted.map_err(|source| StartError::Ledger { place: config.ledger.place.clone(), source })?;
        }
        let metrics = Metrics::default();
        let ledger_secret = ledger.secret();
        let gateway = Arc::new(Self {
            signer,
            secret: ledger_secret,
            seal: Seal::new(ledger.secret()),
            sign_in: SignIn::new(ledger.secret()),
            ledger,
            catalogue: Catalogue::new(config.clone(), &upstreams),
            hub,
            identity: RwLock::new(identity),
            reloading: std::sync::Mutex::default(),
            reloads: AtomicU64::new(0),
            refused: AtomicBool::new(false),
            greeting,
            unasked,
            answered: Notify::new(),
            room: Room::default(),
            rates: Rates::default(),
            session_rates: Rates::default(),
            spending,
            stored_rules: StoredRules::default(),
            deliveries: Arc::default(),
            telemetry: Telemetry::start(&config.telemetry, metrics.exports()),
            metrics,
            live: Live::default(),
            pulse: Pulse::default(),
            pins: Pins::default(),
            kits: Kits::default(),
            owners: Owners::default(),
            beginnings: Beginnings::default(),
            runs: Arc::new(Runs::new(ledger_secret)),
            listening: OnceLock::new(),
            driven: watch::Sender::new(0),
            drivers: std::sync::Mutex::default(),
            given_up: std::sync::Mutex::default(),
            adopting: tokio::sync::Mutex::default(),
            recording: AtomicBool::new(true),
            lease_until: AtomicU64::new(lease_until.ms()),
            tasks: std::sync::Mutex::default(),
            tending: std::sync::Mutex::default(),
            serving: RwLock::new(Serving { config, upstreams: Arc::new(upstreams) }),
        });
        gateway.keep(tokio::spawn(beat(Arc::downgrade(&gateway))));
        gateway.keep(tokio::spawn(settle_orphans(Arc::downgrade(&gateway))));
        gateway.keep(tokio::spawn(read_post(Arc::downgrade(&gateway))));
        gateway.keep(tokio::spawn(webhook::post_questions(Arc::downgrade(&gateway))));
        gateway.keep(tokio::spawn(spending::follow(Arc::downgrade(&gateway))));
        gateway.keep(tokio::spawn(sweep(Arc::downgrade(&gateway))));
        gateway.keep(tokio::spawn(pin::follow(Arc::downgrade(&gateway))));
        gateway.keep(tokio::spawn(pulse::look(Arc::downgrade(&gateway))));
        if let Some(kept) = gateway.config().ledger.retention {
            gateway.keep(tokio::spawn(retire_old(Arc::downgrade(&gateway), kept)));
        }
        if gateway.signer.is_some() {
            let every = gateway.config().ledger.checkpoint_every;
            gateway.keep(tokio::spawn(keep_signing(Arc::downgrade(&gateway), every)));
        }
        for upstream in gateway.upstreams().values() {
            gateway.tend(upstream);
        }
        Ok(gateway)
    }

    /// What it was told.
    pub fn config(&self) -> Arc<Config> {
        self.serving.read().unwrap_or_else(PoisonError::into_inner).config.clone()
    }

    /// Who tells who somebody is.
    pub fn identity(&self) -> Arc<Identity> {
        self.identity.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has others tell who somebody is.
    pub(crate) fn identify_by(&self, identity: Arc<Identity>) {
        *self.identity.write().unwrap_or_else(PoisonError::into_inner) = identity;
    }

    /// Whom it calls.
    pub fn upstreams(&self) -> Arc<Upstreams> {
        self.serving.read().unwrap_or_else(PoisonError::into_inner).upstreams.clone()
    }

    /// Ends the runs of its clients, and waits a little until they have heard so: a stream that merely ends would pass for a run
    /// that went well. What was begun is on the ledger.
    pub async fn end_runs(&self) {
        self.runs.end().await;
    }

    /// Ends its upstreams, all at once.
    pub async fn stop_upstreams(&self) {
        // Whoever reads their lists just now would take their end for a failure.
        self.leave_all();
        let upstreams = self.upstreams();
        join_all(upstreams.values().map(|upstream| upstream.stop())).await;
    }

    /// Begins a session for that principal.
    pub fn open_session(self: &Arc<Self>, principal: Principal, door: &str) -> SessionHandle {
        SessionHandle::open(self.clone(), principal, door)
    }

    /// Ends the walks that only wait for their agents. They are on the ledger.
    pub fn rest(&self) {
        for driver in self.drivers().values() {
            // One that ends just now rests already.
            let _ = driver.send(Mail::Rest);
        }
    }

    /// Waits until no session is driven any more: nothing is open, and everything is recorded.
    pub async fn idle(&self) {
        // The sender lives as long as we do.
        let _ = self.driven.subscribe().wait_for(|driven| *driven == 0).await;
    }

    /// Waits until no call is open any more.
    pub async fn quiet(&self) {
        while self.room.open() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Signs what the ledger has become, where there is a key. What goes wrong is told and changes nothing for the calls.
    pub async fn checkpoint(&self) {
        let Some(signer) = &self.signer else {
            return;
        };
        match signer.sign().await {
            Ok(_) => {}
            Err(error @ (SignError::Forked(_) | SignError::Foreign(_))) => {
                tracing::error!(%error, "NO CHECKPOINT IS SIGNED: the ledger may be an older copy; run `amends verify`");
            }
            Err(error @ (SignError::Ledger(_) | SignError::Anchor { .. })) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "no checkpoint was signed");
            }
        }
    }

    /// Waits a moment for the last spans to go where they go.
    pub async fn flush(&self) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.flush().await;
        }
    }

    /// Who signs the log, where there is a key.
    pub(crate) fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }

    /// How many entries of the log the newest checkpoint covers, where one is known.
    pub(crate) fn newest_checkpoint(&self) -> Option<u64> {
        self.signer.as_ref().and_then(Signer::newest)
    }

    /// How many sessions are driven right now.
    pub(crate) fn sessions_driven(&self) -> usize {
        *self.driven.borrow()
    }

    /// A session is driven from now on, until what this gives is dropped.
    pub(crate) fn drives(self: &Arc<Self>, session: &SessionId, mail: mpsc::UnboundedSender<Mail>) -> Driven {
        self.driven.send_modify(|driven| *driven += 1);
        self.drivers().insert(session.clone(), mail.clone());
        Driven { gateway: self.clone(), session: session.clone(), mail }
    }

    /// A session is no longer driven here, though it is still ours and may have something open.
    pub(crate) fn gives_up(&self, session: &SessionId) {
        self.drivers().remove(session);
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner).push(session.clone());
    }

    /// A session is driven by another node from now on.
    pub(crate) fn leaves(&self, session: &SessionId) {
        self.drivers().remove(session);
    }

    /// The sessions that were given up since this was last asked.
    pub(crate) fn take_given_up(&self) -> Vec<SessionId> {
        std::mem::take(&mut *self.given_up.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How to reach the driver of a session, where it is driven here.
    pub(crate) fn driver_of(&self, session: &SessionId) -> Option<mpsc::UnboundedSender<Mail>> {
        self.drivers().get(session).cloned()
    }

    fn drivers(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, mpsc::UnboundedSender<Mail>>> {
        self.drivers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until when this node may send.
    pub(crate) fn lease_until(&self) -> Timestamp {
        Timestamp::from_ms(self.lease_until.load(Ordering::Relaxed))
    }

    fn keep(&self, task: JoinHandle<()>) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }
}

/// The rules that are on the ledger, so that they are handed to it once and not with every call.
#[derive(Debug, Default)]
pub(crate) struct StoredRules(RwLock<HashSet<Digest>>);

impl StoredRules {
    /// Whether the rules of that digest are there.
    pub(crate) fn holds(&self, hash: &Digest) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(hash)
    }

    /// The rules of that digest are there from now on.
    pub(crate) fn add(&self, hash: &Digest) {
        if !self.holds(hash) {
            self.0.write().unwrap_or_else(PoisonError::into_inner).insert(hash.clone());
        }
    }
}

/// A session that is driven.
#[derive(Debug)]
pub(crate) struct Driven {
    gateway: Arc<Gateway>,
    session: SessionId,
    mail: mpsc::UnboundedSender<Mail>,
}

impl Drop for Driven {
    fn drop(&mut self) {
        let mut drivers = self.gateway.drivers();
        // One that was given up may have another driver by now.
        if drivers.get(&self.session).is_some_and(|mail| mail.same_channel(&self.mail)) {
            drivers.remove(&self.session);
        }
        drop(drivers);
        self.gateway.driven.send_modify(|driven| *driven -= 1);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        for task in self.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }
}

/// By how much the machine's clock may move before it is worth a word.
const CLOCK_MOVED_MS: u64 = 5_000;

async fn beat(gateway: std::sync::Weak<Gateway>) {
    let mut ahead = clock::machine_ahead_ms();
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let seen = clock::machine_ahead_ms();
        if seen.abs_diff(ahead) > CLOCK_MOVED_MS {
            tracing::warn!(ahead_ms = seen, "the machine's clock was set; we go on by the one we began with");
            ahead = seen;
        }
        let Some(gateway) = gateway.upgrade() else {
            return;
        };
        match gateway.ledger.heartbeat(clock::now()).await {
            Ok(until) => {
                gateway.lease_until.store(until.ms(), Ordering::Relaxed);
                gateway.recording.store(true, Ordering::Relaxed);
            }
            Err(error) => {
                gateway.recording.store(false, Ordering::Relaxed);
                tracing::error!(%error, "no heartbeat; nothing is sent until the ledger records again");
            }
        }
    }
}

async fn sweep(gateway: std::sync::Weak<Gateway>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(gateway) = gateway.upgrade() else {
            return;
        };
        if let Err(error) = gateway.ledger.sweep(clock::now(), 10_000).await {
            tracing::warn!(%error, "what is over could not be swept");
        }
    }
}
