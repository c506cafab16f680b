//! From what was written to what it means.

mod stage;

use std::collections::{BTreeMap, BTreeSet};

use super::spec::{ActionSpec, MachineSpec, TargetSpec};
use super::{Action, Bounds, Branch, Does, Finding, Machine, Target, ToolUse, Weight};
use crate::expression::Expression;
use crate::id::{ActionName, MachineName, StateName, ToolName};
use crate::limits::{EXPRESSION_BYTES_MAX, MACHINE_ACTIONS_MAX, MACHINE_NAME_MAX, MACHINE_STATES_MAX};
use crate::nearest::nearest;

impl Machine {
    /// Reads a machine. What is wrong with it is given back all at once.
    pub fn read(name: &str, spec: &MachineSpec) -> Result<Self, Vec<Finding>> {
        match Self::attempt_alone(name, spec) {
            (Some(machine), found) if found.is_empty() => Ok(machine),
            (_, found) => Err(found),
        }
    }

    /// The same of a machine that no other runs, so that nothing but its own bounds ends it.
    pub(super) fn attempt_alone(name: &str, spec: &MachineSpec) -> (Option<Self>, Vec<Finding>) {
        let (machine, mut found) = Self::attempt(name, spec);
        found.extend(machine.iter().flat_map(Self::endless));
        (machine, found)
    }

    /// What can be read of a machine, unless it is too large to be looked at, and what is wrong with it as far as that does not
    /// depend on others.
    pub(super) fn attempt(name: &str, spec: &MachineSpec) -> (Option<Self>, Vec<Finding>) {
        let mut reader = Reader::default();
        let machine = reader.machine(name, spec);
        let states = machine.states().len();
        if states > MACHINE_STATES_MAX {
            let found = format!("there are {states} states, more than {MACHINE_STATES_MAX}");
            let fix = "split the machine, and run one from the other with `machine`";
            return (None, vec![Finding::error(&["actions"], found, fix)]);
        }
        reader.findings.extend(machine.unfit());
        reader.findings.retain(|finding| finding.weight == Weight::Error);
        (Some(machine).filter(|machine| machine.actions.len() <= MACHINE_ACTIONS_MAX), reader.findings)
    }

    /// What of its actions cannot be read, each looked at alone.
    pub(super) fn unreadable(spec: &MachineSpec) -> Vec<Finding> {
        let mut reader = Reader::default();
        for (name, action) in &spec.actions {
            reader.action(name, action);
        }
        reader.findings
    }
}

#[derive(Default)]
struct Reader {
    findings: Vec<Finding>,
}

impl Reader {
    fn machine(&mut self, name: &str, spec: &MachineSpec) -> Machine {
        self.named(&["name"], name, "machine");
        if spec.initial.is_empty() {
            self.wrong(&["initial"], "there is no state to begin in", "name one: `initial = \"created\"`");
        }
        if spec.actions.is_empty() {
            self.wrong(
                &["actions"],
                "there is nothing to do",
                "declare an action that leads away from the initial state",
            );
        }
        if spec.actions.len() > MACHINE_ACTIONS_MAX {
            let found = format!("there are {} actions, more than {MACHINE_ACTIONS_MAX}", spec.actions.len());
            self.wrong(&["actions"], found, "split the machine, and run one from the other with `machine`");
        }
        for name in &spec.twice {
            self.wrong(&["actions", name], "two actions have this name", "call one of them otherwise");
        }
        let known: BTreeSet<&str> =
            spec.actions.values().flat_map(|action| action.from.iter().map(String::as_str)).collect();
        for terminal in spec.terminal.iter().filter(|state| known.contains(state.as_str())) {
            let found = format!("`{terminal}` is terminal, and actions lead away from it");
            self.wrong(&["terminal"], found, "take it out of `terminal`, or out of their `from`");
        }
        let actions =
            spec.actions.iter().map(|(name, action)| (ActionName::new(name.as_str()), self.action(name, action)));
        Machine {
            actions: actions.collect(),
            name: MachineName::new(name),
            description: spec.description.clone(),
            initial: StateName::new(spec.initial.as_str()),
            terminal: spec.terminal.iter().map(|state| StateName::new(state.as_str())).collect(),
            mode: spec.mode,
            drift: spec.drift,
            schema: spec.state.clone(),
            fields: spec.fields.clone(),
            bounds: Bounds {
                steps_max: spec.limits.steps,
                time_ms_max: spec.limits.time.map(|span| ms(span.0)),
                loops_max: spec.limits.loops,
            },
        }
    }

    fn action(&mut self, name: &str, spec: &ActionSpec) -> Action {
        let at = ["actions", name];
        self.named(&at, name, "action");
        if spec.from.is_empty() {
            self.wrong(
                &[&at[..], &["from"]].concat(),
                "it leads away from nowhere",
                "name its states: `from = [\"created\"]`",
            );
        }
        let guard = spec.guard.as_ref();
        let guard =
            guard.and_then(|source| self.expression(&[&at[..], &["guard"]].concat(), source, &["state", "inputs"]));
        Action {
            description: spec.description.clone(),
            from: spec.from.iter().map(|state| StateName::new(state.as_str())).collect(),
            to: self.target(name, &spec.to, &spec.after()),
            does: self.does(name, spec),
            args: self.given(name, spec),
            input: spec.input.clone(),
            guard_over_fields: guard.as_ref().map(over_fields).unwrap_or_default(),
            guard,
            timeout_ms: spec.timeout.map(|span| ms(span.0)),
            keeps_inputs: false,
            writes: self.expressions(&[&at[..], &["writes"]].concat(), &spec.writes, &spec.after()),
            reversible: spec.reversible,
            queue: spec.queue.clone(),
            times_max: spec.times,
            stage: self.stage(name, spec),
        }
    }

    fn target(&mut self, action: &str, spec: &TargetSpec, may: &[&str]) -> Target {
        let at = ["actions", action, "to"];
        match spec {
            TargetSpec::One(state) => {
                if state.is_empty() {
                    self.wrong(&at, "it leads nowhere", "name a state: `to = \"paid\"`");
                }
                Target::One(StateName::new(state.as_str()))
            }
            TargetSpec::Choice(branches) if branches.is_empty() => {
                self.wrong(&at, "it leads nowhere: there is no target in it", "name a state: `to = \"paid\"`");
                Target::Choice(Vec::new())
            }
            TargetSpec::Choice(branches) => {
                let last = branches.len().saturating_sub(1);
                for (n, branch) in branches.iter().enumerate() {
                    if branch.when.is_none() && n != last {
                        let found = format!("nothing after `{}` is ever chosen", branch.state);
                        self.wrong(&at, found, "put the target without `when` last");
                    }
                }
                if branches.last().is_none_or(|branch| branch.when.is_some()) {
                    let fix = "end the choice with a target that has no `when`, so that a call that was made always leads somewhere";
                    self.wrong(&at, "every target has a condition, and none may hold", fix);
                }
                let read = |(n, branch): (usize, &super::BranchSpec)| {
                    let known = self.findings.len();
                    let when = branch.when.as_ref().and_then(|when| self.expression(&at, when, may));
                    self.findings[known..]
                        .iter_mut()
                        .for_each(|new| new.within = vec![n.to_string(), "when".to_owned()]);
                    Branch { when, state: StateName::new(branch.state.as_str()) }
                };
                Target::Choice(branches.iter().enumerate().map(read).collect())
            }
        }
    }

    fn does(&mut self, name: &str, spec: &ActionSpec) -> Does {
        let at = ["actions", name];
        let said = [
            spec.tool.as_ref().map(|_| "tool"),
            spec.function.as_ref().map(|_| "function"),
            spec.machine.as_ref().map(|_| "machine"),
            spec.parallel.as_ref().map(|_| "parallel"),
            spec.allowed.as_ref().map(|_| "allowed"),
        ];
        let said: Vec<&str> = said.into_iter().flatten().collect();
        if said.len() > 1 {
            self.wrong(
                &at,
                format!("it has `{}` at once", said.join("` and `")),
                "keep one, or make two actions of it",
            );
        }
        let besides = [
            (
                spec.completion.is_some(),
                "completion",
                "an agent says it when it calls tools itself, and none is allowed",
            ),
            (spec.turns.is_some(), "turns", "an agent has them when it calls tools itself, and none is allowed"),
        ];
        for (_, part, found) in besides.into_iter().filter(|(said, ..)| *said && spec.allowed.is_none()) {
            self.wrong(&["actions", name, part], found, "name the tools, `allowed = [\"search\"]`, or drop it");
        }
        if let Some(tool) = &spec.tool {
            let args = self.expressions(&[&at[..], &["args"]].concat(), &spec.args, &spec.before());
            return Does::Tool(ToolUse { tool: ToolName::new(tool.as_str()), args, whole: false });
        }
        if let Some(function) = &spec.function {
            return Does::Function(function.clone());
        }
        if let Some(machine) = &spec.machine {
            return Does::Machine(MachineName::new(machine.as_str()));
        }
        if spec.allowed.is_some() {
            return Does::Allowed(self.allowed(name, spec));
        }
        let Some(parallel) = &spec.parallel else { return Does::Nothing };
        match parallel.len() {
            // Refused where it is read: no trace has it, since it was not written down while it passed for no call.
            0 => self.wrong(
                &[&at[..], &["parallel"]].concat(),
                "it makes no call at all",
                "name the calls: `parallel = { stock = { tool = \"get_stock\" }, price = { tool = \"get_price\" } }`, or drop it",
            ),
            1 => self.wrong(
                &[&at[..], &["parallel"]].concat(),
                "there is only one of them",
                "make it the action's `tool`",
            ),
            _ => {}
        }
        let may = spec.before();
        let mut siblings = BTreeMap::new();
        for (sibling, spec) in parallel {
            let at = [&at[..], &["parallel", sibling, "args"]].concat();
            let args = self.expressions(&at, &spec.args, &may);
            siblings.insert(sibling.clone(), ToolUse { tool: ToolName::new(spec.tool.as_str()), args, whole: false });
        }
        Does::Parallel(siblings)
    }

    /// What the function is given, or the other machine begins with.
    fn given(&mut self, name: &str, spec: &ActionSpec) -> BTreeMap<String, Expression> {
        let at = ["actions", name, "args"];
        if spec.tool.is_some() {
            return BTreeMap::new();
        }
        if !spec.args.is_empty() && spec.function.is_none() && spec.machine.is_none() {
            self.wrong(&at, "there are arguments and nothing that takes them", "name the tool, or drop `args`");
        }
        self.expressions(&at, &spec.args, &spec.before())
    }

    fn expressions(
        &mut self,
        at: &[&str],
        specs: &BTreeMap<String, String>,
        may: &[&str],
    ) -> BTreeMap<String, Expression> {
        let mut read = BTreeMap::new();
        for (name, source) in specs {
            if let Some(expression) = self.expression(&[at, &[name]].concat(), source, may) {
                read.insert(name.clone(), expression);
            }
        }
        read
    }

    fn expression(&mut self, at: &[&str], source: &str, may: &[&str]) -> Option<Expression> {
        if source.len() > EXPRESSION_BYTES_MAX {
            self.wrong(at, format!("an expression has at most {EXPRESSION_BYTES_MAX} bytes"), "say it shorter");
            return None;
        }
        let expression = match Expression::parse(source) {
            Ok(expression) => expression,
            Err(error) => {
                self.wrong(at, error.to_string(), "mend the expression");
                return None;
            }
        };
        for unknown in expression.variables().iter().filter(|variable| !may.contains(&variable.as_str())) {
            let fix = match nearest(unknown, may.iter().copied()).first() {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: `{}`", may.join("`, `")),
            };
            self.wrong(at, format!("nothing is called `{unknown}` here"), fix);
        }
        Some(expression)
    }

    fn named(&mut self, at: &[&str], name: &str, what: &str) {
        let fits = !name.is_empty()
            && name.len() <= MACHINE_NAME_MAX
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        if !fits {
            let fix = format!("use 1 to {MACHINE_NAME_MAX} letters, digits, `_` and `-`");
            self.wrong(at, format!("the {what}'s name is not one that agents can say"), fix);
        }
    }

    fn wrong(&mut self, at: &[&str], message: impl Into<String>, fix: impl Into<String>) {
        self.findings.push(Finding::error(at, message, fix));
    }
}

fn ms(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The parts of a guard over the inputs that speak of the fields alone: parsed here, since they are looked at with every answer.
fn over_fields(guard: &Expression) -> Vec<Expression> {
    if !guard.mentions("inputs") {
        return Vec::new();
    }
    let parts = guard.conjuncts().into_iter().filter_map(|part| Expression::parse(part).ok());
    parts.filter(|part| !part.mentions("inputs")).collect()
}
