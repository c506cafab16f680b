//! Walks whose machine is declared otherwise by now: whether they keep to what it was, follow, or do not go on.

use std::sync::Arc;

use amends_core::dispatcher::walk::{Look, Standing};
use amends_core::machine::{Course, Drift, Machines};
use amends_core::refusal::ArgumentFault;
use amends_core::walk::{Declared, Frame};
use amends_core::{Digest, Refusal, RefusalKind, SessionId, Timestamp};

use super::kit::Kit;
use super::view::{View, Waits, view};
use crate::gateway::Gateway;

/// What the declaration of today means for a walk.
pub(crate) enum Drifted {
    /// It goes on as it is.
    No,
    /// It goes on under the declaration of today.
    Follows(Declared, Arc<Kit>),
    /// It does not go on.
    Stops {
        /// Why.
        why: String,
        /// The fields that do not fit.
        details: Vec<ArgumentFault>,
        /// Whether it may begin again, under the declaration of today.
        resets: bool,
    },
}

/// A walk as it is shown, and the machines it is shown in: its own, or those that it follows with its next move.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) view: View,
    pub(crate) machines: Arc<Machines>,
}

impl Drifted {
    /// Our No to whoever wants a move of it, where it does not go on.
    pub(crate) fn refusal(self) -> Option<Refusal> {
        let Self::Stops { why, details, resets } = self else { return None };
        let then = if resets { "; reset it to begin again as the machine is declared now" } else { "" };
        let refusal = Refusal::of(RefusalKind::SchemaDrift, format!("the walk does not go on: {why}{then}"));
        Some(Refusal { details, ..refusal })
    }
}

/// What the declaration of today means for a walk that is there. One that is busy follows when it is not any more.
pub(crate) fn drifted(gateway: &Gateway, look: &Look<'_>, course: &Course, busy: bool) -> Drifted {
    let config = gateway.config();
    let hash = config.machine_digests.get(look.root);
    if hash == Some(look.hash) {
        return Drifted::No;
    }
    let root = look.root;
    let stops = |why, details, resets| Drifted::Stops { why, details, resets };
    let (Some(hash), Some(machine)) = (hash, config.machines.get(root)) else {
        // Nobody says any more what becomes of its walks, but for the walk's own declaration.
        return match look.machines.get(root).map(amends_core::machine::Machine::drift) {
            Some(Drift::Keep) | None => Drifted::No,
            Some(Drift::Migrate | Drift::Refuse) => {
                stops(format!("the machine `{root}` is not declared any more"), Vec::new(), false)
            }
        };
    };
    match machine.drift() {
        Drift::Keep => Drifted::No,
        Drift::Refuse => stops(format!("the machine `{root}` is declared otherwise by now"), Vec::new(), true),
        Drift::Migrate if busy => Drifted::No,
        Drift::Migrate => {
            let definition = config.machines.definition(root);
            let kit = match gateway.kits.known(hash) {
                Some(kit) => kit,
                None => match Machines::read(&definition) {
                    Ok(machines) => gateway.kits.of(hash, &Arc::new(machines)),
                    // What cannot be read is not served.
                    Err(_) => return Drifted::No,
                },
            };
            let but = |why: &str| format!("the machine `{root}` is declared otherwise by now, and {why}");
            if let Some(why) = look.unfit(&kit.machines) {
                return stops(but(&why), Vec::new(), true);
            }
            if let Some((frame, faults)) = faulty(look.frames, course, &kit) {
                let first = faults.first().map(|fault| format!("`state.{}` is not {}", fault.field, fault.expected));
                let why = format!("the fields do not fit `{}`: {}", frame.machine, first.unwrap_or_default());
                return stops(but(&why), faults, true);
            }
            Drifted::Follows(Declared { definition, hash: hash.clone() }, kit)
        }
    }
}

/// What is wrong with the first fields that are not what is declared of them.
fn faulty<'a>(frames: &'a [Frame], course: &Course, kit: &Kit) -> Option<(&'a Frame, Vec<ArgumentFault>)> {
    frames.iter().zip(course.levels()).find_map(|(frame, fields)| {
        let faults = kit.fields(&frame.machine)?.check(fields);
        (!faults.is_empty()).then_some((frame, faults))
    })
}

/// The declaration under which a walk begins again, where that is another than its own.
pub(crate) fn begins_under(gateway: &Gateway, look: &Look<'_>) -> Option<Declared> {
    let config = gateway.config();
    let hash: &Digest = config.machine_digests.get(look.root).filter(|hash| *hash != look.hash)?;
    let machine = config.machines.get(look.root)?;
    let definition = || config.machines.definition(look.root);
    (machine.drift() != Drift::Keep).then(|| Declared { definition: definition(), hash: hash.clone() })
}

/// Whether something is being done in a walk, or is not settled.
pub(crate) fn is_busy(look: &Look<'_>) -> bool {
    let undoing = look.given_up.as_ref().is_some_and(|given_up| given_up.undone.is_none());
    look.standing != Standing::Free || undoing
}

/// A walk as agents are shown it.
pub(crate) fn seen(
    gateway: &Gateway,
    session: &SessionId,
    look: &Look<'_>,
    course: &Course,
    now: Timestamp,
) -> Option<Seen> {
    let drifted = drifted(gateway, look, course, is_busy(look));
    if matches!(drifted, Drifted::No) && gateway.config().machine_digests.get(look.root) != Some(look.hash) {
        let changed = gateway.catalogue.keep();
        if !changed.is_empty() {
            gateway.hub.lists_changed(changed.into_iter().collect());
        }
    }
    let machines = match &drifted {
        Drifted::Follows(_, kit) => kit.machines.clone(),
        Drifted::No | Drifted::Stops { .. } => look.machines.clone(),
    };
    let fields = course.fields().as_object().cloned().unwrap_or_default();
    let look = Look { machines: &machines, ..look.clone() };
    let mut view = view(session, &look, fields, now)?;
    // What is on its way comes to its end, and what is over begins again in any case.
    let waits = matches!(look.standing, Standing::Open(_) | Standing::InDoubt(_)) || view.over;
    if let Drifted::Stops { why, resets, .. } = drifted
        && !waits
    {
        (view.next, view.waits) = (Vec::new(), Some(Waits::Drifted { why, resets }));
    }
    gateway.config().pii.shared().hide(&mut view.fields);
    super::fill_in_schemas(&mut view, &look, &gateway.catalogue.now());
    Some(Seen { view, machines })
}
