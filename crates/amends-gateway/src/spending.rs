//! What principals have spent today: what was set aside or begun here, and what is recorded of everybody else. The ledger is looked
//! at from time to time, so that several processes over one ledger hold a cap together. What a session has spent is in its trace.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use amends_core::{CallId, ClaimState, Fact, Principal, Purpose, SessionId, Timestamp};
use amends_ledger::{Error, Ledger, SessionRow, Trace};

use crate::clock;
use crate::gateway::Gateway;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How many principals are remembered before those who spent nothing today are forgotten.
const PRINCIPALS_MAX: usize = 10_000;
/// Of how many sessions it is known what they spent, before those at rest are forgotten. Should one of them go on, what it spent
/// before counts twice: a cap may then hold too early, and never too late.
const KNOWN_MAX: usize = 100_000;

/// How many sessions are listed at once.
const SESSIONS_AT_ONCE: usize = 500;
/// How old a session may be that goes on today.
const OLDEST_MS: u64 = 30 * DAY_MS;
/// How often new sessions are looked at, and how often all of them. Looking takes no more than a tenth of the time.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const LOOK_AT_ALL_EVERY: Duration = Duration::from_secs(60);
const LOOK_SHARE: u32 = 10;
/// For how long a session is new.
const NEW_MS: u64 = 2 * 60 * 1000;
/// By how much the clocks of the processes may differ.
const SKEW_MS: u64 = 60 * 1000;

/// What principals have spent today.
#[derive(Clone, Debug, Default)]
pub struct Spending {
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    day: u64,
    /// What was set aside or begun here.
    here: HashMap<Principal, u64>,
    /// What others began.
    elsewhere: HashMap<Principal, u64>,
    /// What was begun here, by its session.
    own: HashMap<SessionId, u64>,
    /// What others began, by its session.
    others: HashMap<SessionId, u64>,
    /// The sessions that were looked at a while ago: how long they were, and when they went on.
    seen: HashMap<SessionId, (u64, Timestamp)>,
    /// When the ledger was looked at.
    looked: Option<Timestamp>,
}

impl Held {
    /// Another day begins with nothing spent.
    fn turn_to(&mut self, day: u64) {
        if self.day != day {
            *self = Self { day, looked: self.looked, ..Self::default() };
        }
    }

    /// That session spent so much in all.
    fn take_in(&mut self, row: &SessionRow, milli: u64) {
        let others = milli.saturating_sub(self.own.get(&row.session).copied().unwrap_or_default());
        let before = match others {
            0 => self.others.remove(&row.session),
            _ => self.others.insert(row.session.clone(), others),
        };
        if others > 0 || before.is_some() {
            let spent = self.elsewhere.entry(row.principal.clone()).or_default();
            *spent = spent.saturating_sub(before.unwrap_or_default()) + others;
        }
        self.seen.insert(row.session.clone(), (row.events, row.updated));
    }

    /// Forgets what cannot matter any more.
    fn forget(&mut self, now: Timestamp) {
        self.seen.retain(|_, (_, updated)| *updated >= now - (NEW_MS + 2 * SKEW_MS));
        let seen = &self.seen;
        for known in [&mut self.own, &mut self.others] {
            if known.len() > KNOWN_MAX {
                known.retain(|session, _| seen.contains_key(session));
            }
        }
    }
}

/// What a call will have cost. It is given back when this is dropped, unless the call was begun.
#[derive(Debug)]
pub struct Reserved {
    spending: Spending,
    principal: Principal,
    day: u64,
    milli: u64,
}

impl Spending {
    /// Counts what is recorded of today: every call that costs something and was begun. Sessions that are driven here are left to
    /// another time; of the others, those that are new, or all of them.
    pub(crate) async fn look(
        &self,
        ledger: &dyn Ledger,
        now: Timestamp,
        all: bool,
        driven: impl Fn(&SessionId) -> bool,
    ) -> Result<(), Error> {
        let today = Timestamp::from_ms(now.ms() / DAY_MS * DAY_MS);
        let looked = {
            let mut held = self.held();
            held.turn_to(now.ms() / DAY_MS);
            held.looked
        };
        let all = all || looked.is_none_or(|looked| looked < today);
        let since = if all { today - OLDEST_MS } else { now - NEW_MS };
        let gone_on = looked.map_or(today, |looked| today.max(looked - SKEW_MS));
        let mut after = None;
        // Ends: each page begins after the one before, and there are only so many sessions.
        loop {
            let rows = ledger.sessions_after(since, after.as_ref(), SESSIONS_AT_ONCE).await?;
            for row in rows.iter().filter(|row| row.updated >= gone_on && row.cut == 0 && !driven(&row.session)) {
                let known = self.held().seen.get(&row.session).is_some_and(|(events, _)| *events == row.events);
                if !known && let Some(trace) = ledger.trace(&row.session).await? {
                    let milli = spent(trace, today);
                    self.held().take_in(row, milli);
                }
            }
            after = rows.last().cloned();
            if rows.len() < SESSIONS_AT_ONCE {
                break;
            }
        }
        let mut held = self.held();
        // What was not looked at now is looked at with all.
        if all {
            held.looked = Some(now);
        }
        held.forget(now);
        Ok(())
    }

    /// Sets the cost of a call aside, or says how much is left, which is less.
    pub fn reserve(&self, principal: &Principal, milli: u64, most: u64, now: Timestamp) -> Result<Reserved, u64> {
        let day = now.ms() / DAY_MS;
        let mut held = self.held();
        held.turn_to(day);
        if held.here.len() >= PRINCIPALS_MAX && !held.here.contains_key(principal) {
            held.here.retain(|_, spent| *spent > 0);
        }
        let elsewhere = held.elsewhere.get(principal).copied().unwrap_or_default();
        let here = held.here.entry(principal.clone()).or_default();
        let left = most.saturating_sub(*here).saturating_sub(elsewhere);
        if milli > left {
            return Err(left);
        }
        *here += milli;
        drop(held);
        Ok(Reserved { spending: self.clone(), principal: principal.clone(), day, milli })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a session spent today.
fn spent(trace: Trace, today: Timestamp) -> u64 {
    let mut costs: HashMap<CallId, u64> = HashMap::new();
    let mut spent = 0_u64;
    for event in trace.events.into_iter().map(|stored| stored.event) {
        match event.fact {
            Fact::CallReceived { received, gates } => {
                // A repeat is the call that it repeats, and that was counted.
                let held = received.repeat_of.as_ref();
                let counts = held.is_none_or(|held| held.state == ClaimState::Granted);
                let cost = gates.cost.filter(|_| counts);
                costs.extend(cost.map(|cost| (received.call.clone(), cost.milli)));
            }
            Fact::AttemptStarted { attempt, purpose, .. } if purpose != Purpose::Join => {
                let milli = costs.remove(&attempt.call).filter(|_| event.at >= today);
                spent = spent.saturating_add(milli.unwrap_or_default());
            }
            _ => {}
        }
    }
    spent
}

/// Looks at what others spend, until the gateway is gone.
pub(crate) async fn follow(gateway: Weak<Gateway>) {
    let (mut wait, mut all_at) = (LOOK_EVERY, Instant::now() + LOOK_AT_ALL_EVERY);
    loop {
        tokio::time::sleep(wait).await;
        let Some(gateway) = gateway.upgrade() else { return };
        if gateway.config().cost.day_max_milli.is_none() {
            continue;
        }
        let began = Instant::now();
        let driven = |session: &SessionId| gateway.driver_of(session).is_some();
        let all = began >= all_at;
        if let Err(error) = gateway.spending.look(&*gateway.ledger, clock::now(), all, driven).await {
            tracing::warn!(%error, "what others spend is not known");
        }
        if all {
            all_at = Instant::now() + LOOK_AT_ALL_EVERY;
        }
        wait = LOOK_EVERY.max(began.elapsed() * LOOK_SHARE);
    }
}

impl Reserved {
    /// The call was begun in that session: it has cost what it costs.
    pub fn keep(mut self, session: &SessionId) {
        let milli = std::mem::take(&mut self.milli);
        let mut held = self.spending.held();
        if held.day == self.day {
            *held.own.entry(session.clone()).or_default() += milli;
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.milli == 0 {
            return;
        }
        let mut held = self.spending.held();
        if held.day == self.day
            && let Some(spent) = held.here.get_mut(&self.principal)
        {
            *spent = spent.saturating_sub(self.milli);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: u64) -> Timestamp {
        Timestamp::from_ms(day * DAY_MS + 5)
    }

    fn session(name: &str) -> SessionId {
        SessionId::new(name)
    }

    #[test]
    fn what_was_not_begun_is_given_back_and_a_day_begins_anew() {
        let spending = Spending::default();
        let (ada, bob) = (Principal::from("ada"), Principal::from("bob"));
        let reserve = |who: &Principal, milli, day| spending.reserve(who, milli, 10, at(day));
        reserve(&ada, 6, 1).unwrap().keep(&session("s"));
        let waiting = reserve(&ada, 4, 1).unwrap();
        assert_eq!(reserve(&ada, 1, 1).err(), Some(0));
        assert!(reserve(&bob, 10, 1).is_ok());
        drop(waiting);
        assert_eq!(reserve(&ada, 5, 1).err(), Some(4));
        let late = reserve(&ada, 4, 1).unwrap();
        reserve(&ada, 10, 2).unwrap().keep(&session("s"));
        drop(late);
        assert_eq!(reserve(&ada, 1, 2).err(), Some(0), "yesterday's gives nothing back today");
    }

    #[test]
    fn what_is_recorded_counts_once_whoever_began_it() {
        let spending = Spending::default();
        let ada = Principal::from("ada");
        let left = || spending.reserve(&ada, 1000, 100, at(1)).err();
        let row = |name: &str, events: u64| SessionRow {
            session: session(name),
            principal: ada.clone(),
            door: "http".into(),
            opened: at(1),
            updated: at(1),
            events,
            cut: 0,
            open_calls: 0,
            machine: None,
        };
        spending.reserve(&ada, 6, 100, at(1)).unwrap().keep(&session("ours"));
        spending.held().take_in(&row("ours", 5), 6);
        assert_eq!(left(), Some(94), "what was begun here is known");
        spending.held().take_in(&row("theirs", 5), 10);
        spending.held().take_in(&row("theirs", 5), 10);
        assert_eq!(left(), Some(84));
        // A session that went on at another node, and one of another's that goes on here.
        spending.held().take_in(&row("ours", 9), 8);
        spending.reserve(&ada, 2, 100, at(1)).unwrap().keep(&session("theirs"));
        spending.held().take_in(&row("theirs", 9), 12);
        assert_eq!(left(), Some(80));
        spending.held().forget(at(1));
        assert_eq!(left(), Some(80));
        assert_eq!(spending.reserve(&ada, 1000, 100, at(2)).err(), Some(100), "another day");
    }
}
