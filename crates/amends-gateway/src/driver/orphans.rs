//! Sessions that a dead process left open are taken up and settled.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use amends_core::{CallId, Digest, Dispatcher, Fact, Gates, Input, Rules, SessionId};
use amends_ledger::{Error, StoredEvent, Trace};
use tokio::sync::mpsc;

use super::interrupted::{AfterFailure, drive};
use super::listener::Listener;
use super::session::{Live, Mail, Session};
use super::{admission, basis, walk};
use crate::clock;
use crate::gateway::Gateway;
use crate::witness::Witness;

const LOOK_EVERY: Duration = Duration::from_secs(1);
const AT_ONCE: usize = 64;
/// By how much the clock may be behind a session's last event before it counts as behind. Two machines never agree quite.
const CLOCK_BEHIND_MS: u64 = 1_000;
/// How long the first look waits for the upstreams to list their tools.
const LISTING_WAIT: Duration = Duration::from_secs(5);

/// Looks for orphans, at the start and then every second.
pub async fn settle_orphans(gateway: Weak<Gateway>) {
    let began = tokio::time::Instant::now();
    loop {
        let Some(strong) = gateway.upgrade() else {
            return;
        };
        let listed = strong.upstreams().keys().all(|name| strong.catalogue.now().has_listed(name));
        if !listed && began.elapsed() < LISTING_WAIT {
            drop(strong);
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        }
        for session in strong.take_given_up() {
            if let Err(error) = adopt(&strong, &session, None).await {
                tracing::warn!(%session, %error, "a session that was given up could not be taken up yet");
                strong.gives_up(&session);
            }
        }
        match strong.ledger.orphans(clock::now(), AT_ONCE).await {
            Ok(orphans) => {
                for session in orphans {
                    if let Err(error) = adopt(&strong, &session, None).await {
                        tracing::error!(%session, %error, "an orphan could not be taken up");
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "orphans could not be looked for"),
        }
        drop(strong);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// From whom a session is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    /// From a dead node, or from ourselves.
    Orphaned,
    /// Also from a living one, where nothing is open in it.
    Idle,
}

/// Takes up one orphan, if its open calls are for upstreams of ours: a ledger may be shared by processes with others.
pub(super) async fn adopt(gateway: &Arc<Gateway>, id: &SessionId, first: Option<Mail>) -> Result<(), Error> {
    raise(gateway, id, first, Take::Orphaned).await.map(drop)
}

/// What the upstream of a call called its work last.
fn named(trace: &Trace, call: &CallId) -> Option<String> {
    let named = |stored: &StoredEvent| match &stored.event.fact {
        Fact::WorkNamed { attempt, name } if attempt.call == *call => Some(name.clone()),
        _ => None,
    };
    trace.events.iter().rev().find_map(named)
}

/// Takes up a session and drives it. Nothing where it cannot be taken.
pub(super) async fn raise(
    gateway: &Arc<Gateway>,
    id: &SessionId,
    first: Option<Mail>,
    from: Take,
) -> Result<Option<mpsc::UnboundedSender<Mail>>, Error> {
    // Of two that take up the same session at once, the second would fence the first.
    let _one_at_a_time = gateway.adopting.lock().await;
    if let Some(driver) = gateway.driver_of(id).filter(|driver| !driver.is_closed()) {
        if let Some(first) = first {
            // Should it end just now, whoever waits for it looks again.
            let _ = driver.send(first);
        }
        return Ok(Some(driver));
    }
    let ledger = &gateway.ledger;
    let Some(trace) = ledger.trace(id).await? else { return Ok(None) };
    let mut rules: HashMap<Digest, Arc<Rules>> = HashMap::new();
    for stored in &trace.events {
        if let Fact::CallReceived { received, .. } = &stored.event.fact
            && !rules.contains_key(&received.rules)
            && let Some(found) = ledger.rules(&received.rules).await?
        {
            rules.insert(received.rules.clone(), found);
        }
    }
    let restored =
        Dispatcher::restore(trace.events.iter().map(|stored| &stored.event), |hash| rules.get(hash).cloned());
    let mut dispatcher = match restored {
        Ok(dispatcher) => dispatcher,
        Err(error) => {
            return Err(Error::Corrupt { reason: error.to_string() });
        }
    };
    let Some(Fact::SessionOpened { seed, principal, door, .. }) = trace.events.first().map(|e| &e.event.fact) else {
        return Ok(None);
    };
    let listing = gateway.catalogue.now();
    let mut live = HashMap::new();
    for (call, received) in dispatcher.calls() {
        let params = match ledger.arguments(call).await? {
            Some(stored) => String::from_utf8_lossy(&stored.body).into_owned(),
            None => "{}".to_owned(),
        };
        let tool = listing.find(received.tool.as_str()).cloned();
        let ours = received.claims.is_empty()
            || tool.as_ref().is_some_and(|tool| admission::is_for(gateway, principal, tool, &params, &received.claims));
        let Some(rules) = rules.get(&received.rules).filter(|_| ours) else {
            tracing::debug!(session = %id, %call, "an orphan of another process's upstream, or of one that is not up");
            return Ok(None);
        };
        live.insert(
            call.clone(),
            Live {
                tool,
                rules: rules.clone(),
                rules_hash: received.rules.clone(),
                effect_key: received.effect_key.clone(),
                claimed: !received.claims.is_empty(),
                keyed: received.key.is_some(),
                evidence: basis::of_call(&listing, &rules.contract, &params),
                params: params.into(),
                read_first: None,
                answer: None,
                listener: Listener::of_the_answer(),
                inquiries: BTreeMap::new(),
                also: Vec::new(),
                results: HashMap::new(),
                shown: HashMap::new(),
                recorded: HashMap::new(),
                attempts: HashMap::new(),
                sent: true,
                room: None,
                place: None,
                made: None,
                leg: received.leg.clone(),
                approval: None,
                asking: None,
                // What it cost was counted by whoever began it.
                reserved: None,
                wanted: None,
                named: named(&trace, call),
                sign_in: None,
            },
        );
    }
    let walking = walk::walking(gateway, &trace, &dispatcher).await?;
    if let Some(walking) = &walking {
        dispatcher.share_machines(&walking.kit.machines);
    }
    let now = clock::now();
    let lease = match (ledger.take(id, now).await?, from) {
        (Some(lease), _) => lease,
        (None, Take::Orphaned) => return Ok(None),
        (None, Take::Idle) => match ledger.take_idle(id, now).await? {
            Some(lease) => lease,
            None => return Ok(None),
        },
    };
    if lease.seq != dispatcher.seq() {
        // Its node was only slow, and appended once more before we fenced it; the next look finds it whole.
        return Ok(None);
    }
    let open = dispatcher.open_calls() + dispatcher.open_questions();
    if open > 0 {
        tracing::info!(session = %id, open = dispatcher.open_calls(), "taken up after a crash");
    }
    let witness = Witness::of_trace(gateway, &trace, |call| live.get(call).map(|live: &Live| &*live.params));
    let (mail, inbox) = mpsc::unbounded_channel();
    let session = Session {
        gateway: gateway.clone(),
        id: id.clone(),
        principal: principal.clone(),
        door: door.clone(),
        seed: *seed,
        epoch: lease.epoch,
        recorded: lease.seq,
        dispatcher,
        live,
        turns: std::collections::VecDeque::new(),
        rules,
        listening: HashSet::new(),
        mail,
        witness,
        reads: HashMap::new(),
        ahead_ms: trace.events.last().map_or(0, |last| last.event.at.since_ms(clock::now())),
        walking,
        resting: false,
    };
    let reached = session.mail.clone();
    if let Some(first) = first {
        // Its own inbox is a few lines above.
        let _ = session.mail.send(first);
    }
    let driven = gateway.drives(id, session.mail.clone());
    let resumes = move |session: &mut Session| {
        session.weigh_again();
        let gates = Gates { clock_behind: session.ahead_ms > CLOCK_BEHIND_MS, ..session.gates() };
        // What nothing is open in has nothing to be judged.
        if open > 0 || from == Take::Orphaned {
            session.take(Input::Resume, gates);
        }
    };
    drive(session, inbox, false, driven, AfterFailure::Left, resumes);
    Ok(Some(reached))
}
