//! Machines written in Rust. What is built is a [`MachineSpec`], the same that a configuration gives.

use std::time::Duration;

use serde_json::Value;

use super::spec::{
    ActionSpec, BranchSpec, Drift, LegSpec, MachineSpec, Mode, ResolutionSpec, SiblingSpec, TargetSpec, TryAgainSpec,
};
use crate::span::Span;

/// ```
/// use amends_core::machine::{ActionSpec, Machine, MachineSpec};
/// use serde_json::json;
///
/// let order = MachineSpec::new("created")
///     .terminal(["paid", "dropped"])
///     .action(
///         "take_order",
///         ActionSpec::new(["created"], "ordered")
///             .input(json!({ "type": "object", "properties": { "item": { "type": "string" } }, "required": ["item"] }))
///             .guard("inputs.item != 'tea'")
///             .writes("item", "inputs.item"),
///     )
///     .action("pay", ActionSpec::new(["ordered"], "paid").tool("charge_card").arg("what", "state.item"))
///     .action("drop", ActionSpec::new(["created", "ordered"], "dropped"));
/// let order = Machine::read("order", &order).map_err(|found| found[0].to_string())?;
/// assert_eq!(order.moves(&order.begin()).len(), 2);
/// # Ok::<(), String>(())
/// ```
impl MachineSpec {
    /// A machine that begins in that state.
    pub fn new(initial: &str) -> Self {
        Self { initial: initial.to_owned(), ..Self::default() }
    }

    /// What it is for.
    pub fn description(mut self, text: &str) -> Self {
        self.description = Some(text.to_owned());
        self
    }

    /// The states in which it is over.
    pub fn terminal<'a>(mut self, states: impl IntoIterator<Item = &'a str>) -> Self {
        self.terminal.extend(states.into_iter().map(str::to_owned));
        self
    }

    /// How it is served.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// A field at the beginning.
    pub fn field(mut self, name: &str, value: Value) -> Self {
        self.fields.insert(name.to_owned(), value);
        self
    }

    /// How many actions it may take.
    pub fn steps(mut self, most: u32) -> Self {
        self.limits.steps = Some(most);
        self
    }

    /// How often it may take the same action.
    pub fn loops(mut self, most: u32) -> Self {
        self.limits.loops = Some(most);
        self
    }

    /// How long it may take, without the time that people take.
    pub fn time(mut self, most: Duration) -> Self {
        self.limits.time = Some(Span(most));
        self
    }

    /// The JSON Schema of its fields.
    pub fn state(mut self, schema: Value) -> Self {
        self.state = Some(schema);
        self
    }

    /// What becomes of its walks when it is declared otherwise.
    pub fn drift(mut self, drift: Drift) -> Self {
        self.drift = drift;
        self
    }

    /// One of its moves. A machine in which two have the same name is not read.
    pub fn action(mut self, name: &str, action: ActionSpec) -> Self {
        if self.actions.insert(name.to_owned(), action).is_some() {
            self.twice.push(name.to_owned());
        }
        self
    }
}

impl ActionSpec {
    /// A move from those states to that one.
    pub fn new<'a>(from: impl IntoIterator<Item = &'a str>, to: &str) -> Self {
        let from = from.into_iter().map(str::to_owned).collect();
        Self { from, to: TargetSpec::One(to.to_owned()), ..Self::default() }
    }

    /// Where it leads if that holds, before what was said so far; the state it was made with is the last.
    pub fn or_to(mut self, when: &str, state: &str) -> Self {
        let branch = BranchSpec { when: Some(when.to_owned()), state: state.to_owned() };
        self.to = TargetSpec::Choice(match self.to {
            TargetSpec::One(last) => vec![branch, BranchSpec { when: None, state: last }],
            TargetSpec::Choice(mut branches) => {
                branches.insert(branches.len().saturating_sub(1), branch);
                branches
            }
        });
        self
    }

    /// What it is for.
    pub fn description(mut self, text: &str) -> Self {
        self.description = Some(text.to_owned());
        self
    }

    /// The tool it calls.
    pub fn tool(mut self, tool: &str) -> Self {
        self.tool = Some(tool.to_owned());
        self
    }

    /// The Rust function it runs.
    pub fn function(mut self, name: &str) -> Self {
        self.function = Some(name.to_owned());
        self
    }

    /// The machine it runs to its end.
    pub fn machine(mut self, name: &str) -> Self {
        self.machine = Some(name.to_owned());
        self
    }

    /// An argument of its tool or function, or a field that its machine begins with.
    pub fn arg(mut self, name: &str, expression: &str) -> Self {
        self.args.insert(name.to_owned(), expression.to_owned());
        self
    }

    /// One of several calls that are made at the same time.
    pub fn parallel(mut self, name: &str, tool: &str, args: &[(&str, &str)]) -> Self {
        let sibling = SiblingSpec { tool: tool.to_owned(), args: owned(args) };
        self.parallel.get_or_insert_default().insert(name.to_owned(), sibling);
        self
    }

    /// The tools that the agent itself calls, and what it says when it is done.
    pub fn allowed<'a>(mut self, tools: impl IntoIterator<Item = &'a str>, completion: Value, turns: u32) -> Self {
        self.allowed = Some(tools.into_iter().map(str::to_owned).collect());
        (self.completion, self.turns) = (Some(completion), Some(turns));
        self
    }

    /// The JSON Schema of its inputs.
    pub fn input(mut self, schema: Value) -> Self {
        self.input = Some(schema);
        self
    }

    /// Whether it may be taken.
    pub fn guard(mut self, expression: &str) -> Self {
        self.guard = Some(expression.to_owned());
        self
    }

    /// A field it writes.
    pub fn writes(mut self, field: &str, expression: &str) -> Self {
        self.writes.insert(field.to_owned(), expression.to_owned());
        self
    }

    /// What is called first, and the name under which expressions find its result.
    pub fn setup(mut self, name: &str, tool: &str, args: &[(&str, &str)]) -> Self {
        self.setup.push(LegSpec { tool: tool.to_owned(), args: owned(args), name: Some(name.to_owned()) });
        self
    }

    /// What is called last, however it went.
    pub fn exit(mut self, name: &str, tool: &str, args: &[(&str, &str)]) -> Self {
        self.exit.push(LegSpec { tool: tool.to_owned(), args: owned(args), name: Some(name.to_owned()) });
        self
    }

    /// Whether to act: `'proceed'`, `'retry'` or `'skip'`.
    pub fn gate(mut self, expression: &str) -> Self {
        self.gate = Some(expression.to_owned());
        self
    }

    /// Whether it was well done: `'ok'`, `'retry'`, `'skip'` or `'fail'`.
    pub fn assert(mut self, expression: &str) -> Self {
        self.assert = Some(expression.to_owned());
        self
    }

    /// How often it is tried again, and after which waits.
    pub fn retry(mut self, retry: TryAgainSpec) -> Self {
        self.retry = Some(retry);
        self
    }

    /// What becomes of a failure that is not tried again.
    pub fn resolution(mut self, resolution: ResolutionSpec) -> Self {
        self.resolution = Some(resolution);
        self
    }

    /// When it can be taken again, where its failure is left for later.
    pub fn later(mut self, after: Duration) -> Self {
        self.later = Some(Span(after));
        self
    }

    /// How long it may take.
    pub fn timeout(mut self, most: Duration) -> Self {
        self.timeout = Some(Span(most));
        self
    }

    /// Whether what it does can be undone, where its tool's contract does not say.
    pub fn reversible(mut self, can_be_undone: bool) -> Self {
        self.reversible = Some(can_be_undone);
        self
    }

    /// How often it may be taken.
    pub fn times(mut self, most: u32) -> Self {
        self.times = Some(most);
        self
    }

    /// The queue of those who must approve it.
    pub fn queue(mut self, queue: &str) -> Self {
        self.queue = Some(queue.to_owned());
        self
    }
}

fn owned(args: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    args.iter().map(|(name, expression)| ((*name).to_owned(), (*expression).to_owned())).collect()
}
