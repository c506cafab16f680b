//! Machines that are declared together: each may run another to its end.

use std::collections::{BTreeMap, BTreeSet};

use super::{Does, Finding, Machine, MachineSpec};
use crate::id::{ActionName, MachineName};
use crate::limits::MACHINE_DEPTH_MAX;
use crate::nearest::nearest;
use crate::registry::Code;

/// Machines that are declared together, in which every machine that one of them runs is known, and none runs itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machines {
    specs: BTreeMap<MachineName, MachineSpec>,
    pub(super) declared: BTreeMap<MachineName, Machine>,
    stages: BTreeMap<MachineName, Machine>,
}

impl Machines {
    /// Reads all of them. What is wrong is given back at once, each finding with the machine's name before its place.
    pub fn read(specs: &BTreeMap<MachineName, MachineSpec>) -> Result<Self, Vec<Finding>> {
        let (machines, found) = Self::attempt(specs);
        if found.is_empty() { Ok(machines) } else { Err(found) }
    }

    /// All that is wrong with them as they are written today, where they cannot be read: also what only a look at a machine
    /// finds. What follows from a mistake that is told already is not told beside it. Beside that, what could be read of them,
    /// to be looked at and never to be served.
    pub fn mistakes(specs: &BTreeMap<MachineName, MachineSpec>) -> (Self, Vec<Finding>) {
        let (machines, mut found) = Self::attempt(specs);
        if found.iter().any(|finding| finding.code == Code::DependencyCycle) {
            return (machines, found);
        }
        let mut beside = Vec::new();
        for (name, machine) in &machines.declared {
            let faults = machine.faults(&machines).into_iter().map(|finding| finding.of(name.as_str()));
            beside.extend(faults.filter(|fault| !fault.may_follow(&found)));
        }
        found.extend(beside);
        (machines, found)
    }

    /// What is wrong with them beside the keys that could not be read, which were left out. Whatever may follow from what was left
    /// out is not told: neither how machines fit each other nor, of a machine that lacks a key, how its actions do.
    pub fn mistakes_beside(specs: &BTreeMap<MachineName, MachineSpec>, unread: &[Finding]) -> Vec<Finding> {
        let mut found = Vec::new();
        for (name, spec) in specs {
            let lacks: Vec<&Finding> =
                unread.iter().filter(|key| key.at.first().is_some_and(|of| of == name.as_str())).collect();
            let is_run = || {
                specs
                    .values()
                    .flat_map(|spec| spec.actions.values())
                    .any(|it| it.machine.as_deref() == Some(name.as_str()))
            };
            let told = match lacks.is_empty() {
                false => Machine::unreadable(spec),
                true if is_run() => Machine::attempt(name.as_str(), spec).1,
                true => Machine::attempt_alone(name.as_str(), spec).1,
            };
            let told = told.into_iter().map(|finding| finding.of(name.as_str()));
            found.extend(told.filter(|told| !lacks.iter().any(|key| key.action() == told.action())));
        }
        found
    }

    /// What can be read of all of them, and what is wrong.
    fn attempt(specs: &BTreeMap<MachineName, MachineSpec>) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let mut machines = Self { specs: specs.clone(), ..Self::default() };
        for (name, spec) in specs {
            let (machine, found) = Machine::attempt(name.as_str(), spec);
            findings.extend(found.into_iter().map(|finding| finding.of(name.as_str())));
            let Some(machine) = machine else { continue };
            let stages = machine.actions().filter_map(|(action, _)| machine.stage(action));
            machines.stages.extend(stages.map(|stage| (stage.name().clone(), stage)));
            machines.declared.insert(name.clone(), machine);
        }
        let unbounded = machines.unbounded();
        for (name, machine) in &machines.declared {
            let endless = if unbounded.contains(name) { machine.endless() } else { Vec::new() };
            let unfit = machines.unfit(machine).into_iter().chain(endless);
            findings.extend(unfit.map(|finding| finding.of(name.as_str())));
        }
        (machines, findings)
    }

    /// The machine of that name; that of a stage is named `MACHINE.ACTION`.
    pub fn get(&self, name: &MachineName) -> Option<&Machine> {
        self.declared.get(name).or_else(|| self.stages.get(name))
    }

    /// The machines that were declared, by name, without those of stages.
    pub fn declared(&self) -> impl Iterator<Item = &Machine> {
        self.declared.values()
    }

    /// All of them, those of stages among them.
    pub fn all(&self) -> impl Iterator<Item = &Machine> {
        self.declared.values().chain(self.stages.values())
    }

    /// Whether none is declared.
    pub fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    /// What was written of a machine and of every other that it uses, itself among them.
    pub fn definition(&self, name: &MachineName) -> BTreeMap<MachineName, MachineSpec> {
        let used = self.used(name).into_iter();
        used.filter_map(|name| Some((name.clone(), self.specs.get(name)?.clone()))).collect()
    }

    /// A machine and every other that it uses.
    fn used(&self, name: &MachineName) -> BTreeSet<&MachineName> {
        let mut used = BTreeSet::new();
        let mut left: Vec<&MachineName> = self.declared.get_key_value(name).map(|(name, _)| name).into_iter().collect();
        // Ends: a machine is looked at only when it is new, and there are finitely many.
        while let Some(name) = left.pop() {
            if used.insert(name) {
                left.extend(self.declared.get(name).into_iter().flat_map(Machine::runs).map(|(_, run)| run));
            }
        }
        used
    }

    /// The machines that are declared in only one of them, or otherwise, or use one that is.
    pub fn differences(&self, other: &Self) -> BTreeSet<MachineName> {
        let names = self.declared.keys().chain(other.declared.keys());
        names.filter(|name| self.definition(name) != other.definition(name)).cloned().collect()
    }

    /// What is wrong with the machines that one runs.
    fn unfit(&self, machine: &Machine) -> Vec<Finding> {
        let mut found = Vec::new();
        for (name, run) in machine.runs() {
            let mut wrong_as = |code, part, message, fix: String| {
                found.push(Finding::error(&["actions", name.as_str(), part], message, fix).coded(code));
            };
            let Some(other) = self.declared.get(run) else {
                if !self.specs.contains_key(run) {
                    let fix = match nearest(run.as_str(), self.specs.keys().map(MachineName::as_str)).first() {
                        Some(near) => format!("did you mean `{near}`?"),
                        None if run.as_str().is_empty() => "name the machine that it runs, or drop the key".to_owned(),
                        None => format!("declare it: `[machines.{run}]`"),
                    };
                    wrong_as(Code::DependencyMissing, "machine", format!("there is no machine `{run}`"), fix);
                }
                continue;
            };
            if self.used(run).contains(&machine.name) {
                let fix = "make it an action that leads back, with a bound".to_owned();
                let message = format!("`{}` would run itself by way of `{run}`", machine.name);
                wrong_as(Code::DependencyCycle, "machine", message, fix);
                continue;
            }
            let mut wrong = |part, message, fix| wrong_as(Code::ConfigSchemaViolation, part, message, fix);
            if self.is_deep(machine) {
                let message = format!("more than {MACHINE_DEPTH_MAX} machines would run in each other");
                wrong("machine", message, "run some of them one after the other".into());
            }
            if other.terminal.is_empty() {
                let fix = format!("say where it is over: `[machines.{run}]` `terminal = [\"done\"]`");
                wrong("machine", format!("`{run}` never ends, so what waits for it never goes on"), fix);
            }
            let known = other.known_fields();
            for field in machine.actions[name].args.keys().filter(|field| known.lacks(field)) {
                let fix = match nearest(field, known.names.iter().copied()).first() {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("declare it in `fields` or `state` of `[machines.{run}]`, or drop it"),
                };
                wrong("args", format!("`{run}` has no field `{field}`"), fix);
            }
        }
        found
    }

    /// Whether too many machines would run in each other.
    fn is_deep(&self, machine: &Machine) -> bool {
        let mut level = BTreeSet::from([&machine.name]);
        for _ in 0..MACHINE_DEPTH_MAX {
            let next = level.iter().filter_map(|name| self.declared.get(*name)).flat_map(Machine::runs);
            level = next.map(|(_, run)| run).collect();
        }
        !level.is_empty()
    }
}

impl Machine {
    /// The machines that its actions run, with the actions.
    pub(super) fn runs(&self) -> impl Iterator<Item = (&ActionName, &MachineName)> {
        self.actions.iter().filter_map(|(name, action)| match &action.does {
            Does::Machine(run) => Some((name, run)),
            Does::Nothing | Does::Tool(_) | Does::Function(_) | Does::Parallel(_) | Does::Allowed(_) => None,
        })
    }
}
