//! Who waits for a call's answer, and what else can be said to it meanwhile.

use amends_core::Way;
use amends_wire::mcp::{Askable, Question};
use amends_wire::object::Object;

use crate::hub::Level;
use crate::upstream::{Aside, AsideSender, Asking};

/// Who waits for a call's answer, and what else can be said to it meanwhile.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Where goes what is said before the answer, where it takes that.
    pub asides: Option<AsideSender>,
    /// Whether it wants to hear of progress.
    pub progress: bool,
    /// How much of what upstreams note down it wants to hear.
    pub notes: Option<Level>,
    /// How it can be asked something.
    pub way: Way,
    /// What it declared that it can do, as it was written.
    pub capabilities: Option<String>,
    /// What is said of its call, where that is a task.
    pub task: Option<Task>,
    /// Whether it takes a task for an answer, where a person is asked.
    pub takes_tasks: bool,
}

/// What is said of a call that is a task: its agent looks for what became of it, so that what it gave is kept, whatever it was;
/// and it goes on when a person says yes, whoever waits.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// The conversation it belongs to, as its agent names it.
    pub context: Option<String>,
}

impl Listener {
    /// Somebody who takes the answer and nothing else.
    pub const fn of_the_answer() -> Self {
        Self {
            asides: None,
            progress: false,
            notes: None,
            way: Way::Closed,
            capabilities: None,
            task: None,
            takes_tasks: false,
        }
    }

    /// How it can be asked that.
    pub(super) fn way_for(&self, questions: &[Question]) -> Way {
        let askable = Askable::of(self.capabilities.as_deref());
        let gone = self.way == Way::Line && self.asides.as_ref().is_none_or(AsideSender::is_closed);
        match self.way {
            way if !way.is_open() => way,
            _ if gone => Way::Closed,
            _ if questions.iter().any(|question| !askable.takes(question)) => Way::Undeclared,
            way => way,
        }
    }

    /// What an upstream may ask for on its behalf, as it was declared.
    pub(super) fn declared(&self) -> &str {
        self.capabilities.as_deref().filter(|_| self.way.is_open()).unwrap_or("{}")
    }

    /// Passes on what an upstream says, as far as it wants to hear it; a question is given back.
    pub(super) fn hear(&self, aside: Aside) -> Option<Asking> {
        let wanted = match &aside {
            Aside::Question(_) | Aside::Named(_) => false,
            Aside::Progress(_) => self.progress,
            Aside::Notification { method, line } => match method.as_str() {
                "notifications/message" => self.notes.is_some_and(|least| is_worth(line, least)),
                method => method == "notifications/elicitation/complete",
            },
        };
        match (aside, &self.asides) {
            (Aside::Question(asking), _) => return Some(asking),
            // Nobody listens any more where the agent is gone.
            (aside, Some(asides)) if wanted => drop(asides.send(aside)),
            _ => {}
        }
        None
    }
}

/// Whether a log message is at least of that level. What says no level is worth hearing.
fn is_worth(line: &str, least: Level) -> bool {
    if least == Level::Debug {
        return true;
    }
    let params = Object::parse(line).and_then(|message| Object::parse(message.get("params")?.get()));
    let level = params.and_then(|params| Level::parse(&params.string("level")?));
    level.is_none_or(|level| level >= least)
}
