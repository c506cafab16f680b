//! One deadline, and everything comes to its end.

use amends_core::{Dispatcher, Gates, Input, Step, Timestamp};

use crate::driver::Driver;
use crate::watch::{Verdicts, Watch};

impl Watch {
    /// A tick before the deadline gives an empty step and changes nothing.
    pub(crate) fn an_early_tick_does_nothing(&self, dispatcher: &Dispatcher, gates: &Gates) -> Verdicts {
        let now = Timestamp::from_ms(self.now);
        let early = match dispatcher.deadline() {
            Some(deadline) if deadline.at > now => deadline.at - 1,
            Some(_) => return Ok(()),
            None => now + 1_000_000,
        };
        let mut probe = dispatcher.clone();
        let step = probe.handle(early, gates, Input::Tick);
        if step != Step::default() || probe != *dispatcher {
            let what = format!("a tick at {early:?} gives {step:?}");
            return Err(self.broken("deadline", None, what));
        }
        Ok(())
    }

    /// A tick at the deadline moves it, so that no driver ever spins.
    pub(crate) fn a_tick_moves_the_deadline(&self, driver: &Driver, step: &Step, now: Timestamp) -> Verdicts {
        let after = driver.dispatcher.deadline();
        if let Some(deadline) = after.filter(|deadline| deadline.at <= now) {
            let what = format!("after a tick at {now:?} the deadline is still {deadline:?}; {step:?}");
            return Err(self.broken("deadline", Some(deadline.call), what));
        }
        Ok(())
    }

    /// When things no longer break and time runs on, no call stays open.
    pub(crate) fn liveness(&self) -> Verdicts {
        match self.calls.iter().find(|(_, view)| view.is_open()) {
            Some((call, view)) => {
                let what = format!("it is open for good in {}", view.session);
                Err(self.broken("liveness", Some(call.clone()), what))
            }
            None => Ok(()),
        }
    }
}
