//! What arrives through the ledger rather than through a door: people's answers, and what an operator asks for.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::{CallId, Certainty, InteractionId, PersonAnswer, Principal, ReversalState, SessionId, Timestamp};
use amends_ledger::{Error, Letter, LetterId, ReversalRow};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::admission::not_known_yet;
use super::answer::Answered;
use super::listener::Listener;
use super::orphans::adopt;
use super::redeem::Redeemer;
use super::relay;
use super::retire::{self, Retirement};
use super::session::Mail;
use super::{stop, undo};
use crate::clock;
use crate::gateway::Gateway;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long it is waited before what could not be looked up is looked up again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const AT_ONCE: usize = 64;
/// How long an unwinding waits for a call in doubt to be settled before it goes on without it.
const SETTLE_WAIT: Duration = Duration::from_secs(60);
/// How long an undoing waits for an upstream that has not said yet what tools it has.
const KNOWN_WAIT: Duration = Duration::from_secs(60);

/// What an operator asks for, from another process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Redeem that token.
    Reverse {
        /// The token.
        token: String,
    },
    /// Redeem every token of that session, newest first.
    Unwind {
        /// The session.
        session: SessionId,
    },
    /// Drop the events of that session.
    Forget {
        /// The session.
        session: SessionId,
    },
    /// Stop that call, as its agent asked elsewhere.
    Stop {
        /// The session of the call.
        session: SessionId,
        /// The call.
        call: CallId,
    },
    /// Go on with a call that waits for its agent, which came back elsewhere.
    Return {
        /// What it brought, sealed.
        sealed: String,
    },
    /// The agent that came back elsewhere is gone again, or wants the call stopped.
    Left {
        /// The session of its call.
        session: SessionId,
        /// The call.
        call: CallId,
        /// Which of the two.
        #[serde(default = "gone")]
        reason: CancelReason,
    },
    /// Stop what runs in the AG-UI thread that the letter is for.
    StopRun {
        /// That run only.
        run: Option<String>,
        /// Who asked waits no longer than that; a later run is not meant.
        until: Timestamp,
    },
}

/// What earlier versions meant by it.
const fn gone() -> CancelReason {
    CancelReason::Disconnected
}

/// Looks for answers and letters, a few times a second, and at once when the ledger hints at some.
pub async fn read_post(gateway: Weak<Gateway>) {
    loop {
        let Some(strong) = gateway.upgrade() else {
            return;
        };
        let ledger = strong.ledger.clone();
        // From before the look: what comes while we look is looked for again.
        let hint = ledger.hint();
        if let Err(error) = look(&strong).await {
            tracing::warn!(%error, "the post could not be read");
        }
        drop(strong);
        tokio::select! {
            () = hint => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// An answer with what was given with it, which is sealed where answers are listed. What cannot be opened was not given.
pub(super) async fn opened(
    gateway: &Gateway,
    id: &InteractionId,
    mut answer: PersonAnswer,
) -> Result<PersonAnswer, Error> {
    if answer.content.is_some() {
        let entry = match gateway.ledger.interaction(id).await {
            Err(error @ Error::Unavailable { .. }) => return Err(error),
            found => found.ok().flatten(),
        };
        answer.content = entry.and_then(|entry| entry.answer?.content);
    }
    Ok(answer)
}

async fn look(gateway: &Arc<Gateway>) -> Result<(), Error> {
    let now = clock::now();
    let ledger = &gateway.ledger;
    let mut woken = HashSet::new();
    for (session, interaction, answer) in ledger.answered(AT_ONCE).await? {
        let answer = opened(gateway, &interaction, answer).await?;
        let mail = Mail::Answer { interaction, answer: Box::new(answer) };
        match gateway.driver_of(&session) {
            // Should it end just now, the answer is found again the next time.
            Some(driver) => drop(driver.send(mail)),
            None if woken.insert(session.clone()) => adopt(gateway, &session, Some(mail)).await?,
            None => {}
        }
    }
    for session in ledger.due(now, AT_ONCE).await? {
        if gateway.driver_of(&session).is_none() && woken.insert(session.clone()) {
            adopt(gateway, &session, None).await?;
        }
    }
    let mut places: Vec<String> = gateway.upstreams().values().map(|upstream| upstream.identity()).collect();
    places.extend(gateway.runs.addresses());
    for (id, letter) in ledger.collect(&places, now, AT_ONCE).await? {
        tokio::spawn(act(gateway.clone(), id, letter));
    }
    Ok(())
}

async fn act(gateway: Arc<Gateway>, id: LetterId, letter: Letter) {
    let Letter { place, body, .. } = letter;
    let reply = match serde_json::from_value(body) {
        Ok(Request::Reverse { token }) => redeem(&gateway, &token).await,
        Ok(Request::Unwind { session }) => unwind(&gateway, &session, Timestamp::default()).await,
        Ok(Request::Forget { session }) => forgotten(retire::forget(&gateway, &session).await),
        Ok(Request::Return { sealed }) => relay::take_in(&gateway, &sealed).await,
        Ok(Request::Left { session, call, reason }) => relay::leave(&gateway, &session, call, reason),
        Ok(Request::StopRun { run, until }) => {
            let meant = place.filter(|_| clock::now() <= until);
            let stopped = meant.is_some_and(|address| gateway.runs.stop_at(&address, run.as_deref()));
            json!({ "stopped": stopped })
        }
        Ok(Request::Stop { session, call }) => stop::stop_here(&gateway, &session, &call).await,
        Err(error) => json!({ "error": format!("the request cannot be read: {error}") }),
    };
    if let Err(error) = gateway.ledger.reply_letter(id, reply, clock::now()).await {
        tracing::warn!(%error, letter = %id, "a letter could not be replied to");
    }
}

/// What became of the wish to forget a session.
fn forgotten(fate: Result<Retirement, Error>) -> Value {
    match fate {
        Ok(Retirement::Done { events }) => json!({ "forgotten": events }),
        Ok(Retirement::Before) => json!({ "refused": "it was retired before" }),
        Ok(Retirement::Unknown) => json!({ "refused": "there is no such session" }),
        Ok(Retirement::Elsewhere) => json!({ "refused": "another gateway may be driving it" }),
        Ok(Retirement::NotYet { why }) => json!({ "refused": why }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

/// Redeems a token for the operator and says how that ended, as an envelope.
async fn redeem(gateway: &Arc<Gateway>, token: &str) -> Value {
    let session = gateway.open_session(Principal::new("operator"), "operator");
    match session.redeem(Some(token), Redeemer::Operator, Listener::of_the_answer()).answer.await {
        Ok(answered) => envelope(answered),
        Err(_) => json!({ "error": "the gateway stopped before the call ended" }),
    }
}

/// Redeems a token once the tool that undoes it is known, which it may not be right after a start.
async fn redeem_once_known(gateway: &Arc<Gateway>, row: &ReversalRow) -> Value {
    let began = tokio::time::Instant::now();
    let tool = row.undo.as_ref().map(|undo| undo.tool.as_str());
    let awaits = |tool| not_known_yet(gateway, &gateway.catalogue.now(), tool).is_some();
    while tool.is_some_and(awaits) && began.elapsed() < KNOWN_WAIT {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    redeem(gateway, &undo::token(&gateway.secret, &row.call)).await
}

fn envelope(answered: Answered) -> Value {
    let value = answered.rendered.envelope_json();
    if let Some(delivery) = answered.delivery {
        delivery.confirm();
    }
    value
}

/// Undoes what a walk did since then that was given up: how many calls were undone, which were not, and of which of those nobody
/// knows.
pub(super) async fn unwind_for(
    gateway: &Arc<Gateway>,
    session: &SessionId,
    since: Timestamp,
) -> (u32, Vec<CallId>, Vec<CallId>) {
    let mut told = unwind(gateway, session, since).await;
    // What could not be looked up was not undone either.
    while told.get("error").is_some() {
        tokio::time::sleep(LOOK_AGAIN).await;
        told = unwind(gateway, session, since).await;
    }
    let redeemed = redeemed(gateway, session).await;
    let before = told["before"].as_u64().and_then(|before| u32::try_from(before).ok());
    let (mut undone, mut failed, mut doubtful) = (before.unwrap_or_default(), Vec::new(), Vec::new());
    for one in told["undone"].as_array().into_iter().flatten() {
        match one["call"].as_str() {
            // Whatever was answered, it is the ledger that says what was undone.
            Some(call) if redeemed.contains(&CallId::new(call)) => undone += 1,
            Some(call) => {
                failed.push(CallId::new(call));
                if one["result"]["error"]["certainty"] == Certainty::InDoubt.as_str() {
                    doubtful.push(CallId::new(call));
                }
            }
            None => {}
        }
    }
    (undone, failed, doubtful)
}

/// What was done in a session and is undone, as its tokens say.
async fn redeemed(gateway: &Gateway, session: &SessionId) -> HashSet<CallId> {
    loop {
        match gateway.ledger.reversals_of(session).await {
            Ok(rows) => {
                let undone = rows.into_iter().filter(|row| row.state == ReversalState::Redeemed);
                return undone.map(|row| row.call).collect();
            }
            Err(error) => tracing::warn!(%error, %session, "what was undone cannot be read"),
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Redeems a session's tokens since then, newest first. One that fails is recorded, and the others go on.
async fn unwind(gateway: &Arc<Gateway>, session: &SessionId, since: Timestamp) -> Value {
    let rows = match settled(gateway, session, since).await {
        Ok(rows) => rows,
        Err(error) => return json!({ "error": error.to_string() }),
    };
    let (mut undone, mut before) = (Vec::new(), 0_u32);
    for row in rows {
        let result = match row.state {
            ReversalState::Redeeming => redeem_once_known(gateway, &row).await,
            ReversalState::Armed if !is_over(&row, clock::now()) => redeem_once_known(gateway, &row).await,
            ReversalState::Armed => json!({ "refused": "its time is over" }),
            ReversalState::Minted => json!({ "refused": "it is in doubt" }),
            // An unwinding that a crash cut short had come so far, or the agent itself undid it.
            ReversalState::Redeemed => {
                before += 1;
                continue;
            }
            ReversalState::Void => continue,
        };
        undone.push(json!({ "call": row.call, "result": result }));
    }
    json!({ "session": session, "undone": undone, "before": before })
}

/// The session's tokens since then once nothing of that is in doubt any more, or after a bounded wait for that.
async fn settled(gateway: &Arc<Gateway>, session: &SessionId, since: Timestamp) -> Result<Vec<ReversalRow>, Error> {
    let began = tokio::time::Instant::now();
    loop {
        let mut rows = gateway.ledger.reversals_of(session).await?;
        rows.retain(|row| row.minted >= since);
        let doubt = rows.iter().any(|row| row.state == ReversalState::Minted);
        if !doubt || began.elapsed() > SETTLE_WAIT || gateway.driver_of(session).is_none() {
            return Ok(rows);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn is_over(row: &ReversalRow, now: Timestamp) -> bool {
    row.until.is_some_and(|until| until <= now)
}
