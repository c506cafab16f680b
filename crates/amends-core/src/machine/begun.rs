//! How a machine is begun. One that others run is begun by them and by nobody else: with what they give it, and within their
//! bounds.

use std::collections::BTreeSet;

use super::inputs::requires;
use super::{Action, Does, Drift, Machine, Machines};
use crate::id::{ActionName, MachineName};

impl Machines {
    /// The actions that run that machine, with the machines they are of. A walk begins only with a machine that no other runs.
    pub fn runners<'a>(
        &'a self,
        run: &'a MachineName,
    ) -> impl Iterator<Item = (&'a Machine, &'a ActionName, &'a Action)> {
        let all =
            self.declared().flat_map(|machine| machine.actions().map(move |(name, action)| (machine, name, action)));
        all.filter(move |(.., action)| matches!(&action.does, Does::Machine(named) if named == run))
    }

    /// The fields that are there for sure when that machine is begun.
    pub(super) fn begun_with<'a>(&'a self, machine: &'a Machine) -> BTreeSet<&'a str> {
        let own = machine.fields.keys().map(String::as_str);
        let given = self.runners(&machine.name).map(|(.., action)| action.args.keys().map(String::as_str).collect());
        let by_all: Option<BTreeSet<&str>> = given.reduce(|one: BTreeSet<&str>, other| &one & &other);
        own.chain(by_all.into_iter().flatten()).collect()
    }

    /// The machines in which nothing bounds how much is done in all: neither their own `steps` and `time`, nor those of what runs
    /// them, which what is done within counts for.
    pub(super) fn unbounded(&self) -> BTreeSet<&MachineName> {
        let run: BTreeSet<&MachineName> = self.declared().flat_map(Machine::runs).map(|(_, run)| run).collect();
        let is_bounded = |machine: &Machine| machine.bounds.steps_max.is_some() || machine.bounds.time_ms_max.is_some();
        let mut left: Vec<&Machine> = self.declared().filter(|machine| !run.contains(&machine.name)).collect();
        let mut unbounded = BTreeSet::new();
        // Ends: a machine is looked into only when it is new, and there are finitely many.
        while let Some(machine) = left.pop() {
            if !is_bounded(machine) && unbounded.insert(&machine.name) {
                left.extend(machine.runs().filter_map(|(_, run)| self.declared.get(run)));
            }
        }
        unbounded
    }

    /// Whether walks of another declaration may go on in that machine, with the fields that they have.
    pub(super) fn takes_over(&self, machine: &Machine) -> bool {
        let mut seen = BTreeSet::new();
        let mut left = vec![machine];
        // Ends: a machine is looked at only when it is new, and there are finitely many.
        while let Some(machine) = left.pop() {
            if machine.drift == Drift::Migrate {
                return true;
            }
            if seen.insert(&machine.name) {
                left.extend(self.runners(&machine.name).map(|(runner, ..)| runner));
            }
        }
        false
    }
}

impl Machine {
    /// Whether that field is there in whatever state it is, since its fields have to fit their schema at every moment.
    pub(super) fn always_has(&self, field: &str) -> bool {
        self.schema.as_ref().is_some_and(|schema| requires(schema, field))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use crate::machine::{MachineSpec, Machines, ToolFacts};

    /// What is said of a machine that runs another, and of that one.
    fn told(outer: Value, run: Value, inner: Value) -> Vec<String> {
        let mut machines = json!({
            "m": { "initial": "a", "terminal": ["z"], "actions": { "go": { "from": ["a"], "to": "z", "machine": "inner" } } },
            "inner": { "initial": "s", "terminal": ["t"], "actions": { "pay": { "from": ["s"], "to": "t" } } },
        });
        let mut extend = |at: &str, more: &Value| {
            machines.pointer_mut(at).unwrap().as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        };
        extend("/m", &outer);
        extend("/m/actions/go", &run);
        extend("/inner", &inner);
        let specs: BTreeMap<crate::id::MachineName, MachineSpec> = serde_json::from_value(machines).unwrap();
        let machines = match Machines::read(&specs) {
            Ok(machines) => machines,
            Err(found) => return found.iter().map(ToString::to_string).collect(),
        };
        let known = |_: &crate::ToolName| Some(ToolFacts { reads: true, reversible: false, undoes: false });
        let found = machines.declared().flat_map(|machine| machines.look(machine, known));
        found.map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn what_a_machine_is_always_begun_with_is_there() {
        let reads = json!({
            "state": { "properties": { "order": { "type": "string" } } },
            "actions": { "pay": { "from": ["s"], "to": "t", "writes": { "note": "state.order" } } },
        });
        let given = json!({ "args": { "order": "'o1'" } });
        assert_eq!(told(json!({}), given.clone(), reads.clone()), Vec::<String>::new());
        let lacks = told(json!({}), json!({}), reads.clone());
        assert!(
            lacks.len() == 1 && lacks[0].contains("reads `state.order`, which may not be there in `s`"),
            "{lacks:?}"
        );
        // What is given by one and not by another may lack.
        let twice = json!({ "actions": {
            "go": { "from": ["a"], "to": "b", "machine": "inner" }, "more": { "from": ["b"], "to": "z", "machine": "inner" },
        } });
        assert_eq!(told(twice, given.clone(), reads).len(), 1);
        let guarded = |guard: &str| {
            json!({
                "state": { "properties": { "order": {} } },
                "actions": { "pay": { "from": ["s"], "to": "t", "guard": guard }, "end": { "from": ["s"], "to": "t" } },
            })
        };
        assert_eq!(told(json!({}), given.clone(), guarded("state.order == 'o1'")), Vec::<String>::new());
        let never = told(json!({}), given, guarded("state.order == 'o2'"));
        assert!(never.len() == 1 && never[0].contains("`state.order == 'o2'` never holds"), "{never:?}");
    }

    #[test]
    fn what_bounds_a_machine_bounds_what_it_runs() {
        let circle =
            json!({ "actions": { "say": { "from": ["s"], "to": "s" }, "stop": { "from": ["s"], "to": "t" } } });
        for limits in [json!({ "steps": 4 }), json!({ "time": "1h" })] {
            let found = told(json!({ "limits": limits }), json!({}), circle.clone());
            assert!(!found.iter().any(|found| found.contains("without an end")), "{limits}: {found:?}");
        }
        // How often the same action is taken is counted in each machine by itself.
        for limits in [json!({}), json!({ "loops": 4 })] {
            let found = told(json!({ "limits": limits }), json!({}), circle.clone());
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with("inner.limits: it can go round `s` without an end"), "{found:?}");
        }
    }

    #[test]
    fn a_field_is_known_wherever_its_schema_names_it() {
        let given = json!({ "args": { "kind": "'gift'" } });
        let named = json!({ "properties": { "kind": { "type": "string" } } });
        let lacks = |schema: Value| {
            let found = told(json!({}), given.clone(), json!({ "state": schema }));
            found.iter().any(|found| found.contains("`inner` has no field `kind`"))
        };
        assert!(!lacks(json!({ "allOf": [named] })));
        assert!(!lacks(json!({ "anyOf": [{ "required": ["kind"] }, {}] })));
        assert!(!lacks(json!({ "$defs": { "k": named }, "allOf": [{ "$ref": "#/$defs/k" }] })));
        assert!(!lacks(json!({ "patternProperties": { "^k": {} } })));
        assert!(lacks(json!({ "allOf": [{ "properties": { "kid": {} } }] })));
    }
}
