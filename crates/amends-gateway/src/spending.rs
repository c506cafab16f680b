//! What principals have spent today. It is counted in memory, from what the ledger has of today when the process begins; other
//! processes over the same ledger count for themselves from then on. What a session has spent is in its trace.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amends_core::{CallId, ClaimState, Fact, Principal, Purpose, Timestamp};
use amends_ledger::{Error, Ledger};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How many principals are remembered before those who spent nothing today are forgotten.
const PRINCIPALS_MAX: usize = 10_000;

/// How many sessions are listed at once.
const SESSIONS_AT_ONCE: usize = 500;
/// How old a session may be that goes on today.
const OLDEST_MS: u64 = 30 * DAY_MS;

/// What principals have spent today.
#[derive(Clone, Debug, Default)]
pub struct Spending {
    held: Arc<Mutex<HashMap<Principal, Spent>>>,
}

#[derive(Debug)]
struct Spent {
    day: u64,
    milli: u64,
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
    /// Counts what was spent today by what is recorded: every call that costs something and was begun.
    pub(crate) async fn count(&self, ledger: &dyn Ledger, now: Timestamp) -> Result<(), Error> {
        let today = Timestamp::from_ms(now.ms() / DAY_MS * DAY_MS);
        let mut after = None;
        loop {
            let rows = ledger.sessions_after(today - OLDEST_MS, after.as_ref(), SESSIONS_AT_ONCE).await?;
            for row in rows.iter().filter(|row| row.updated >= today) {
                let Some(trace) = ledger.trace(&row.session).await? else { continue };
                let mut costs: HashMap<CallId, u64> = HashMap::new();
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
                            self.add(&row.principal, milli.unwrap_or_default(), today);
                        }
                        _ => {}
                    }
                }
            }
            after = rows.last().cloned();
            if rows.len() < SESSIONS_AT_ONCE {
                return Ok(());
            }
        }
    }

    fn add(&self, principal: &Principal, milli: u64, today: Timestamp) {
        if milli > 0 {
            let day = today.ms() / DAY_MS;
            self.held().entry(principal.clone()).or_insert(Spent { day, milli: 0 }).milli += milli;
        }
    }

    /// Sets the cost of a call aside, or says how much is left, which is less.
    pub fn reserve(&self, principal: &Principal, milli: u64, most: u64, now: Timestamp) -> Result<Reserved, u64> {
        let day = now.ms() / DAY_MS;
        let mut held = self.held();
        if held.len() >= PRINCIPALS_MAX && !held.contains_key(principal) {
            held.retain(|_, spent| spent.day == day && spent.milli > 0);
        }
        let spent = held.entry(principal.clone()).or_insert(Spent { day, milli: 0 });
        if spent.day != day {
            *spent = Spent { day, milli: 0 };
        }
        let left = most.saturating_sub(spent.milli);
        if milli > left {
            return Err(left);
        }
        spent.milli += milli;
        Ok(Reserved { spending: self.clone(), principal: principal.clone(), day, milli })
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Principal, Spent>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reserved {
    /// The call was begun: it has cost what it costs.
    pub fn keep(mut self) {
        self.milli = 0;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.milli == 0 {
            return;
        }
        if let Some(spent) = self.spending.held().get_mut(&self.principal).filter(|spent| spent.day == self.day) {
            spent.milli = spent.milli.saturating_sub(self.milli);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: u64) -> Timestamp {
        Timestamp::from_ms(day * DAY_MS + 5)
    }

    #[test]
    fn what_was_not_begun_is_given_back_and_a_day_begins_anew() {
        let spending = Spending::default();
        let (ada, bob) = (Principal::from("ada"), Principal::from("bob"));
        let reserve = |who: &Principal, milli, day| spending.reserve(who, milli, 10, at(day));
        reserve(&ada, 6, 1).unwrap().keep();
        let waiting = reserve(&ada, 4, 1).unwrap();
        assert_eq!(reserve(&ada, 1, 1).err(), Some(0));
        assert!(reserve(&bob, 10, 1).is_ok());
        drop(waiting);
        assert_eq!(reserve(&ada, 5, 1).err(), Some(4));
        let late = reserve(&ada, 4, 1).unwrap();
        reserve(&ada, 10, 2).unwrap().keep();
        drop(late);
        assert_eq!(reserve(&ada, 1, 2).err(), Some(0), "yesterday's gives nothing back today");
    }
}
