//! What a machine's declaration is checked with, made once for all its walks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use amends_core::Digest;
use amends_core::id::{ActionName, MachineName};
use amends_core::machine::Machines;
use amends_wire::schema::Schema;

/// How many declarations are kept at once.
const KITS_MAX: usize = 256;

/// Machines and their compiled schemas.
#[derive(Debug, Default)]
pub(crate) struct Kit {
    /// The machines themselves, which all walks through them share.
    pub(crate) machines: Arc<Machines>,
    inputs: HashMap<MachineName, HashMap<ActionName, Schema>>,
    fields: HashMap<MachineName, Schema>,
}

/// The kits of the declarations that walks go by, by their digests.
#[derive(Debug, Default)]
pub(crate) struct Kits(Mutex<HashMap<Digest, Arc<Kit>>>);

impl Kits {
    /// The kit of that declaration, where there is one.
    pub(crate) fn known(&self, hash: &Digest) -> Option<Arc<Kit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned()
    }

    /// The kit of that declaration.
    pub(crate) fn of(&self, hash: &Digest, machines: &Arc<Machines>) -> Arc<Kit> {
        let mut kits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kit) = kits.get(hash) {
            return kit.clone();
        }
        if kits.len() >= KITS_MAX {
            kits.clear();
        }
        let kit = Arc::new(Kit::of(machines));
        kits.insert(hash.clone(), kit.clone());
        kit
    }
}

impl Kit {
    fn of(machines: &Arc<Machines>) -> Self {
        let mut kit = Self { machines: machines.clone(), ..Self::default() };
        for machine in machines.all() {
            // A schema that cannot be compiled was refused when the configuration was read.
            let schema = |source: &serde_json::Value| Schema::from_value(source.clone()).ok();
            let inputs =
                machine.actions().filter_map(|(name, action)| Some((name.clone(), schema(action.input.as_ref()?)?)));
            kit.inputs.insert(machine.name().clone(), inputs.collect());
            if let Some(fields) = machine.schema().and_then(schema) {
                kit.fields.insert(machine.name().clone(), fields);
            }
        }
        kit
    }

    /// What an action's inputs are checked with.
    pub(crate) fn inputs(&self, machine: &MachineName, action: &ActionName) -> Option<&Schema> {
        self.inputs.get(machine)?.get(action)
    }

    /// What a machine's fields are checked with.
    pub(crate) fn fields(&self, machine: &MachineName) -> Option<&Schema> {
        self.fields.get(machine)
    }
}
