//! What is served of machines: the tools that move them, and the tools that only they may write with.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use amends_core::id::{ActionName, MachineName};
use amends_core::machine::{Action, Does, Machine, Machines, Mode};
use amends_core::nearest::nearest;
use amends_core::recovery::Template;
use amends_core::{Recovery, Refusal, RefusalKind, ToolName};
use amends_wire::mcp::lists::Kind;
use amends_wire::mcp::steps::{Names, Tool, What, action_tool, definition, resource, template};
use serde_json::{Map, Value};

use super::ServedTool;
use crate::config::Config;
use crate::driver::REVERSE_TOOL;
use crate::router::page::Listed;

/// What is served of machines at one moment.
#[derive(Debug, Default)]
pub struct ServedMachines {
    names: Arc<Names>,
    roots: Vec<MachineName>,
    tools: Vec<(String, String)>,
    resources: Vec<(String, String)>,
    templates: Vec<(String, String)>,
    enclosed: BTreeMap<ToolName, Enclosed>,
    /// Whether walks were met that go by what was declared before.
    kept: bool,
    /// Whether anything that machines do can be undone.
    reverses: bool,
}

/// Who calls a tool that only machines call.
#[derive(Clone, Debug)]
struct Enclosed {
    machine: MachineName,
    action: ActionName,
    /// The tool that the action calls, where this one undoes what that did.
    undoes: Option<ToolName>,
}

impl ServedMachines {
    /// What is served of the machines that are declared, and of those that walks go by which were met, where any were.
    pub(super) fn of(config: &Config, served: &BTreeMap<ToolName, Arc<ServedTool>>, kept: bool) -> Self {
        let machines = &config.machines;
        let all: Vec<&Machine> = machines.declared().collect();
        let run: BTreeSet<&MachineName> = all.iter().flat_map(|machine| machine.actions()).filter_map(runs).collect();
        let roots: Vec<&Machine> = all.iter().copied().filter(|machine| !run.contains(machine.name())).collect();
        let enclosed = enclosed(config, &all, served);
        // What only machines call is not served, so that an action may have its name.
        let taken = |name: &str| {
            let name = ToolName::new(name);
            served.contains_key(&name) && !enclosed.contains_key(&name)
        };
        let names = names(machines, taken);
        // An action that has no tool any more is taken by the tool for all of them.
        let is_listed = |tool: &Tool| kept || (!machines.is_empty() && (*tool != Tool::Step || takes_steps(machines)));
        let own = Tool::ALL.into_iter().filter(is_listed).filter_map(|tool| Some((tool, names.own(tool)?)));
        let mut tools: Vec<(String, String)> =
            own.map(|(tool, name)| (name.to_owned(), definition(tool, name, &roots))).collect();
        for machine in in_tools(machines) {
            for (action, what) in machine.actions() {
                let Some(name) = names.action(machine.name(), action.as_str()) else { continue };
                let schema = schema(what, |tool| served.get(tool).cloned());
                tools.push((name.to_owned(), action_tool(name, machine, action.as_str(), what, schema.as_ref())));
            }
        }
        let shown = kept || !machines.is_empty();
        let called = all.iter().flat_map(|machine| machine.actions()).flat_map(|(_, action)| action.tools());
        let reverses =
            called.into_iter().filter_map(|tool| served.get(tool)).any(|tool| tool.rules.contract.reverse.is_some());
        Self {
            names: Arc::new(names),
            roots: roots.iter().map(|machine| machine.name().clone()).collect(),
            tools,
            resources: What::ALL.into_iter().filter(|_| shown).map(resource).collect(),
            templates: What::ALL.into_iter().filter(|_| shown).map(template).collect(),
            enclosed,
            kept,
            reverses,
        }
    }

    /// Whether there are none, declared or kept to.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty() && !self.kept
    }

    /// The names of their tools in a list.
    pub fn listed(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|(name, _)| name.as_str())
    }

    /// The names under which their tools can be called. Those that are not in a list are for walks through what is not declared
    /// any more.
    pub fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// The machines that a walk can begin with: those that no other runs.
    pub fn roots(&self) -> &[MachineName] {
        &self.roots
    }

    /// Whether that tool is called only by machines.
    pub fn encloses(&self, tool: &str) -> bool {
        self.enclosed.contains_key(&ToolName::new(tool))
    }

    /// The tool that an action calls and whose name is nearest to that one, where no tool in a list is nearer.
    pub fn nearly(&self, name: &str) -> Option<String> {
        let acts = self.enclosed.iter().filter(|(_, by)| by.undoes.is_none()).map(|(tool, _)| tool.as_str());
        let near = nearest(name, acts.chain(self.listed())).into_iter().next()?;
        self.encloser(&near).is_some().then_some(near)
    }

    /// The action that calls a tool which only machines call; nothing where that tool undoes something.
    pub fn encloser(&self, tool: &str) -> Option<&ActionName> {
        self.enclosed.get(&ToolName::new(tool)).filter(|by| by.undoes.is_none()).map(|by| &by.action)
    }

    /// Whether anything that machines do can be undone, as far as they are declared.
    pub fn reverses(&self) -> bool {
        self.reverses || self.kept
    }

    /// The refusal of a direct call of a tool that only machines call: it names the action that does.
    pub fn refusal(&self, tool: &str, machines: &Machines) -> Option<Refusal> {
        let Enclosed { machine, action, undoes } = self.enclosed.get(&ToolName::new(tool))?;
        if let Some(done) = undoes {
            let words = format!(
                "`{tool}` is called only to undo what `{done}` did for the action `{action}` of the machine `{machine}`, with \
                 the token of that"
            );
            let missing = vec!["token".to_owned()];
            let template = Template { tool: REVERSE_TOOL.to_owned(), args: Map::new(), missing };
            let recovery = Some(Recovery { template: Some(template), ..Recovery::default() });
            return Some(Refusal { recovery, ..Refusal::of(RefusalKind::InvalidTransition, words) });
        }
        let words = format!("`{tool}` is called only by the action `{action}` of the machine `{machine}`");
        let mut refusal = Refusal::of(RefusalKind::InvalidTransition, words);
        let schema = machines.get(machine).and_then(|machine| machine.action(action.as_str())?.1.input.as_ref());
        let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        let template = match self.names.action(machine, action.as_str()) {
            Some(own) => {
                Template { tool: own.to_owned(), args: Map::new(), missing: required.map(str::to_owned).collect() }
            }
            None => {
                let mut args = Map::from_iter([("action".to_owned(), Value::String(action.to_string()))]);
                if self.roots.len() > 1 && self.roots.contains(machine) {
                    args.insert("machine".into(), Value::String(machine.to_string()));
                }
                Template {
                    tool: self.names.own(Tool::Step)?.to_owned(),
                    args,
                    missing: required.map(|name| format!("inputs.{name}")).collect(),
                }
            }
        };
        refusal.recovery = Some(Recovery { template: Some(template), ..Recovery::default() });
        Some(refusal)
    }

    /// What they add to a list.
    pub(super) fn entries(&self, kind: Kind) -> impl Iterator<Item = Listed<'_>> {
        let entries = match kind {
            Kind::Tools => self.tools.as_slice(),
            Kind::Resources => &self.resources,
            Kind::Templates => &self.templates,
            Kind::Prompts => &[],
        };
        entries.iter().map(|(key, entry)| (key.as_str(), Cow::Borrowed(entry.as_str())))
    }

    /// Whether an agent would see the same in that list.
    pub(super) fn is_same(&self, other: &Self, kind: Kind) -> bool {
        let hidden = kind != Kind::Tools || self.enclosed.keys().eq(other.enclosed.keys());
        hidden && self.entries(kind).eq(other.entries(kind))
    }
}

/// The names under which the tools of machines are served, where `taken` says which are not free.
pub(crate) fn names(machines: &Machines, taken: impl Fn(&str) -> bool) -> Names {
    let actions: Vec<_> = in_tools(machines)
        .flat_map(|machine| machine.actions().map(|(action, _)| (machine.name().clone(), action.clone())))
        .collect();
    // An action comes before a tool of ours that nobody is shown: what is kept to then has only the tools of its own actions.
    let before = |name: &str| {
        name == Tool::Step.as_str()
            && !takes_steps(machines)
            && actions.iter().any(|(_, action)| action.as_str() == name)
    };
    let shown: Vec<Tool> = Tool::ALL.into_iter().filter(|tool| !before(tool.as_str())).collect();
    Names::assign(&shown, &actions, taken).knowing(machines.all())
}

/// Whether there is a machine whose actions are taken by one tool.
fn takes_steps(machines: &Machines) -> bool {
    machines.declared().any(|machine| machine.mode() == Mode::Step)
}

/// The machines whose actions are tools of their own, those of their stages among them.
fn in_tools(machines: &Machines) -> impl Iterator<Item = &Machine> {
    let is_in_tools = |machine: &Machine| {
        let declared = machine.name().as_str().split('.').next().unwrap_or_default();
        machines.get(&MachineName::new(declared)).is_some_and(|declared| declared.mode() == Mode::Tools)
    };
    machines.all().filter(move |machine| is_in_tools(machine))
}

/// The schema of an action's inputs: what was declared, or that of the tool that is called with them as they are.
pub(crate) fn schema(action: &Action, find: impl Fn(&ToolName) -> Option<Arc<ServedTool>>) -> Option<Value> {
    let whole = || {
        let tool = action.does.tools().find(|tool| tool.whole)?;
        find(&tool.tool)?.input.as_ref().map(|schema| schema.source().clone())
    };
    action.input.clone().or_else(whole)
}

fn runs<'a>((_, action): (&'a ActionName, &'a amends_core::machine::Action)) -> Option<&'a MachineName> {
    match &action.does {
        Does::Machine(run) => Some(run),
        Does::Nothing | Does::Tool(_) | Does::Function(_) | Does::Parallel(_) | Does::Allowed(_) => None,
    }
}

/// The tools that machines write with and that nobody exposed, and those that undo that: each with the first action that calls it.
fn enclosed(
    config: &Config,
    machines: &[&Machine],
    served: &BTreeMap<ToolName, Arc<ServedTool>>,
) -> BTreeMap<ToolName, Enclosed> {
    let mut enclosed = BTreeMap::new();
    let mut undoing = BTreeMap::new();
    for machine in machines {
        for (name, action) in machine.actions() {
            let function = match &action.does {
                Does::Function(function) => Some(ToolName::new(function.as_str())),
                Does::Nothing | Does::Tool(_) | Does::Machine(_) | Does::Parallel(_) | Does::Allowed(_) => None,
            };
            for tool in action.tools().chain(&function) {
                let Some(known) = served.get(tool) else { continue };
                let is_function = function.as_ref() == Some(tool);
                let within = is_function || config.encloses(tool, &known.local, &known.upstream.config);
                if within && !known.rules.contract.effect.is_read() {
                    let by = Enclosed { machine: machine.name().clone(), action: name.clone(), undoes: None };
                    let reverse =
                        known.rules.contract.reverse.as_ref().map(|reverse| ToolName::new(reverse.tool.as_str()));
                    let shut = |undo: &ToolName| {
                        let undo = served.get(undo);
                        undo.is_some_and(|undo| !undo.upstream.config.exposes(&undo.local))
                    };
                    if let Some(undo) = reverse.filter(shut) {
                        undoing.entry(undo).or_insert_with(|| Enclosed { undoes: Some(tool.clone()), ..by.clone() });
                    }
                    enclosed.entry(tool.clone()).or_insert(by);
                }
            }
        }
    }
    for (undo, by) in undoing {
        enclosed.entry(undo).or_insert(by);
    }
    enclosed
}
