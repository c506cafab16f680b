//! The agent: a plain loop around one call, and what it does about an error.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::line::Line;
use super::told::{Told, Words};
use super::wish::Wish;

/// The pauses before each repeat.
const PAUSES: [Duration; 3] = [Duration::from_millis(200), Duration::from_millis(600), Duration::from_millis(1800)];

/// What an agent does about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Nothing.
    Once,
    /// It calls again, up to three times, whatever the error says.
    Repeats,
    /// It calls again, up to three times, where the answer says that this is safe and can work, and not earlier than it says.
    Follows,
}

/// Where an agent puts a key of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Nowhere,
    /// Into the tool's argument for it, if the tool has one.
    Argument,
    /// Into `_meta`, as `amends/key`.
    Meta,
}

/// How an agent behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent {
    pub(crate) manner: Manner,
    pub(crate) key: Key,
}

/// How a wish ended for its agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    /// The last answer.
    pub(crate) told: Told,
    /// The agent repeated the call after a field had said not to.
    pub(crate) against_advice: bool,
}

impl Agent {
    /// Pursues one wish to its end.
    pub(crate) async fn pursue(self, wish: &Wish, line: &mut Line, words: Words) -> Ending {
        let arguments = wish.arguments(self.key == Key::Argument);
        let meta = (self.key == Key::Meta).then(|| json!({ "amends/key": wish.key() }));
        let mut against_advice = false;
        let mut pauses = PAUSES.into_iter();
        loop {
            let told = Told::read(&line.call(wish.tool.name(), &arguments, meta.clone()).await, words);
            match pauses.next().and_then(|pause| self.pause(&told, pause)) {
                Some(pause) => sleep(pause).await,
                None => return Ending { told, against_advice },
            }
            against_advice |= told.warned;
        }
    }

    /// How long it waits before it calls again; `None` where it does not.
    fn pause(self, told: &Told, pause: Duration) -> Option<Duration> {
        if told.success {
            return None;
        }
        match self.manner {
            Manner::Once => None,
            Manner::Repeats => Some(pause),
            Manner::Follows => told.again.map(|least| least.max(pause)),
        }
    }
}
