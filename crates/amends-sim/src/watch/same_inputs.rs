//! Same inputs, same decisions.

use amends_core::dispatcher::redecide::redecide;
use amends_core::{Dispatcher, Event};

use crate::watch::{Broken, Verdicts, Watch};

impl Watch {
    /// Folding the trace gives the live state, after every step.
    pub(crate) fn same_inputs(&self, dispatcher: &Dispatcher, history: &[Event]) -> Verdicts {
        if history.is_empty() {
            return Ok(());
        }
        let folded = self.restored(history)?;
        if folded != *dispatcher {
            let what = format!("the trace folds to {folded:?}, the live one is {dispatcher:?}");
            return Err(self.broken("same_inputs", None, what));
        }
        Ok(())
    }

    /// Folds a trace; one that we wrote ourselves always can be.
    pub(crate) fn restored(&self, events: &[Event]) -> Result<Dispatcher, Box<Broken>> {
        Dispatcher::restore(events, self.rules())
            .map_err(|error| self.broken("same_inputs", None, format!("it cannot be folded: {error}")))
    }

    /// Every trace, decided again from its inputs, gives the events that were recorded.
    pub(crate) fn decided_again(&self) -> Verdicts {
        for (session, view) in &self.sessions {
            if view.events.is_empty() {
                continue;
            }
            let what = match redecide(&view.events, self.rules()) {
                Ok(None) => continue,
                Ok(Some(difference)) => format!("{session} is decided otherwise: {difference:?}"),
                Err(error) => format!("{session} cannot be decided again: {error}"),
            };
            return Err(self.broken("same_inputs", None, what));
        }
        Ok(())
    }
}
