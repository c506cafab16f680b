//! A walk as the ledger has it, for whoever looks without driving anything.

use std::sync::Arc;

use amends_core::machine::Machines;
use amends_core::machine::graph::Marks;
use amends_core::{Contract, Dispatcher, Event, Playbook, Rules};
use amends_ledger::{Error, Ledger, Trace};
use amends_wire::mcp::steps::{Names, Tool};

use super::undone::{hindsight, undone_in};
use super::view::View;
use crate::driver::{look_from_outside, since};

/// A walk as the ledger has it.
#[derive(Debug)]
pub struct Recorded {
    /// Where it is.
    pub view: View,
    /// What its tools are called where no upstream has such names.
    pub names: Names,
    machines: Arc<Machines>,
}

impl Recorded {
    /// The machine it is in as a picture, with where it is and the actions that were taken.
    pub fn svg(&self) -> String {
        let Some(machine) = self.machines.get(&self.view.machine) else { return String::new() };
        machine.svg(&self.marks())
    }

    /// The machine it is in as a Mermaid diagram, with where it is.
    pub fn mermaid(&self) -> String {
        let Some(machine) = self.machines.get(&self.view.machine) else { return String::new() };
        machine.mermaid(&self.marks())
    }

    fn marks(&self) -> Marks {
        let taken = self.view.frames.last().map(|frame| frame.taken.keys().cloned().collect()).unwrap_or_default();
        Marks { now: Some(self.view.state.clone()), taken }
    }
}

/// The walk of a trace; nothing where its session walks through no machine.
pub async fn recorded(ledger: &Arc<dyn Ledger>, trace: &Trace) -> Result<Option<Recorded>, Error> {
    let events: Vec<Event> = trace.events.iter().map(|stored| stored.event.clone()).collect();
    // Rules are only needed to go on with calls, which nobody does here.
    let rules =
        |_: &_| Some(Arc::new(Rules { contract: Contract::undeclared(0, 0, 0), playbook: Playbook::default() }));
    let folded = Dispatcher::restore(&events, rules).map_err(|error| Error::Corrupt { reason: error.to_string() })?;
    let undone = undone_in(ledger, &trace.session).await?;
    let folded = hindsight(folded, &undone);
    let Some(look) = folded.walk() else { return Ok(None) };
    let written = ledger.fields(&trace.session).await?;
    let Some(mut view) = look_from_outside(&trace.session, &look, &events, &written)? else { return Ok(None) };
    let since = since(events.iter());
    view.tells_undone(undone.iter().filter(|undone| undone.made >= since).count());
    let machines = look.machines.clone();
    let names = Names::assign(&Tool::ALL, &[], |_| false).knowing(machines.declared());
    Ok(Some(Recorded { view, names, machines }))
}
