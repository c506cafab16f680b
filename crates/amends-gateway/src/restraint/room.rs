//! How many calls are open at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use amends_core::Tenant;

/// How many tenants are counted; those that have nothing open are forgotten then.
const TENANTS_MAX: usize = 10_000;

/// Counts the open calls. How many there may be is said anew with each of them, so that it can change while some are open.
#[derive(Debug, Default)]
pub struct Room {
    open: Arc<AtomicUsize>,
    by_tenant: Mutex<HashMap<Tenant, Arc<AtomicUsize>>>,
}

/// A call is open, until this is dropped.
#[derive(Debug)]
pub struct Occupied {
    /// The counts that it is part of.
    counts: Vec<Arc<AtomicUsize>>,
}

impl Room {
    /// Room for one call more; nothing where as many as that are open.
    pub fn take(&self, most: usize) -> Option<Occupied> {
        Occupied::of(&self.open, most)
    }

    /// The same for a call of that tenant, which may have so many open itself.
    pub fn take_for(&self, tenant: Tenant, most: usize, of_tenant: usize) -> Option<Occupied> {
        let counted = {
            let mut by_tenant = self.by_tenant.lock().unwrap_or_else(PoisonError::into_inner);
            if by_tenant.len() >= TENANTS_MAX {
                by_tenant.retain(|_, open| open.load(Ordering::Acquire) > 0);
            }
            by_tenant.entry(tenant).or_default().clone()
        };
        // Where there is no room among all, the place among the tenant's is given up again.
        let mut theirs = Occupied::of(&counted, of_tenant)?;
        let mut taken = Occupied::of(&self.open, most)?;
        taken.counts.append(&mut theirs.counts);
        Some(taken)
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }
}

impl Occupied {
    fn of(open: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let more = |open: usize| (open < most).then_some(open + 1);
        open.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Self { counts: vec![open.clone()] })
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        for open in &self.counts {
            open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_as_many_as_are_allowed_by_now() {
        let room = Room::default();
        let (one, two) = (room.take(2), room.take(2));
        assert!(one.is_some() && two.is_some() && room.take(2).is_none());
        let three = room.take(3);
        assert!(three.is_some() && room.open() == 3);
        drop((two, three));
        assert!(room.take(1).is_none(), "fewer are allowed by now");
        drop(one);
        assert!(room.take(1).is_some() && room.open() == 0);
    }

    #[test]
    fn a_tenant_takes_no_more_room_than_its_own() {
        let room = Room::default();
        let take = |tenant: &str| room.take_for(Tenant::new(tenant), 3, 2);
        let (one, two) = (take("acme"), take("acme"));
        assert!(one.is_some() && two.is_some() && take("acme").is_none());
        let other = take("rival");
        assert!(other.is_some() && room.open() == 3);
        assert!(take("rival").is_none(), "there is no more room for anybody");
        drop(one);
        assert!(take("acme").is_some(), "what was refused took nothing");
        drop((two, other));
        assert_eq!(room.open(), 0);
    }
}
