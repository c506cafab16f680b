//! How many calls are open at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the open calls. How many there may be is said anew with each of them, so that it can change while some are open.
#[derive(Debug, Default)]
pub struct Room {
    open: Arc<AtomicUsize>,
}

/// A call is open, until this is dropped.
#[derive(Debug)]
pub struct Occupied {
    open: Arc<AtomicUsize>,
}

impl Room {
    /// Room for one call more; nothing where as many as that are open.
    pub fn take(&self, most: usize) -> Option<Occupied> {
        let more = |open: usize| (open < most).then_some(open + 1);
        self.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok()?;
        Some(Occupied { open: self.open.clone() })
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
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
}
