//! The names under which the tools of machines are served.

use std::collections::BTreeMap;

use amends_core::id::{ActionName, MachineName};
use amends_core::machine::Machine;

/// One of our own tools for machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// Takes an action.
    Step,
    /// Begins a walk again.
    Reset,
    /// Begins another walk at a past point of one.
    Fork,
    /// Stops the move that is being made.
    Cancel,
    /// Looks at a walk.
    Walk,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Step, Self::Reset, Self::Fork, Self::Cancel, Self::Walk];

    /// Its name, where no upstream has that.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Reset => "reset",
            Self::Fork => "fork",
            Self::Cancel => "cancel",
            Self::Walk => "walk",
        }
    }
}

/// The names under which the tools of machines are served. A name that is taken gets the prefix `amends_`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    own: BTreeMap<Tool, String>,
    actions: BTreeMap<(MachineName, ActionName), String>,
    known: BTreeMap<MachineName, Vec<String>>,
}

impl Names {
    /// The names of those of our tools, and of those actions that are tools of their own, where `taken` says which are not free.
    ///
    /// The name of an action that two machines have is given to neither: each gets its machine's before it. So does an action of a
    /// stage whose name a tool has, since that is most often the tool it calls.
    pub fn assign(tools: &[Tool], actions: &[(MachineName, ActionName)], taken: impl Fn(&str) -> bool) -> Self {
        let free = |name: String| if taken(&name) { format!("amends_{name}") } else { name };
        let own: BTreeMap<Tool, String> = tools.iter().map(|tool| (*tool, free(tool.as_str().to_owned()))).collect();
        let mut names = Self { own, ..Self::default() };
        for (machine, action) in actions {
            let alike = actions.iter().filter(|(_, other)| other == action).count();
            let ours = names.own.values().any(|name| name == action.as_str());
            // The name of a stage has a dot in it, which not every client takes in a tool's name.
            let (stage, of) = (machine.as_str().contains('.'), machine.as_str().replace('.', "_"));
            let whole = alike > 1 || ours || (stage && taken(action.as_str()));
            let plain = if whole { format!("{of}_{action}") } else { action.as_str().to_owned() };
            names.actions.insert((machine.clone(), action.clone()), free(plain));
        }
        names
    }

    /// The same with the actions of those machines, for whoever asks for one that there is not.
    #[must_use]
    pub fn knowing<'a>(mut self, machines: impl IntoIterator<Item = &'a Machine>) -> Self {
        let known = |machine: &Machine| machine.actions().map(|(name, _)| name.to_string()).collect();
        self.known = machines.into_iter().map(|machine| (machine.name().clone(), known(machine))).collect();
        self
    }

    /// Every action of a machine.
    pub fn known(&self, machine: &MachineName) -> Vec<&str> {
        self.known.get(machine).into_iter().flatten().map(String::as_str).collect()
    }

    /// The name of one of our tools, where it is served.
    pub fn own(&self, tool: Tool) -> Option<&str> {
        self.own.get(&tool).map(String::as_str)
    }

    /// The tool of an action, where it has one.
    pub fn action(&self, machine: &MachineName, action: &str) -> Option<&str> {
        self.actions.get(&(machine.clone(), ActionName::new(action))).map(String::as_str)
    }

    /// What an agent calls to take an action: its own tool where it has one, else the action's name, which another tool is given.
    pub fn called<'a>(&'a self, machine: &MachineName, action: &'a str) -> &'a str {
        self.action(machine, action).unwrap_or(action)
    }

    /// Which of our tools has that name.
    pub fn find(&self, name: &str) -> Option<Tool> {
        self.own.iter().find(|(_, own)| *own == name).map(|(tool, _)| *tool)
    }

    /// Which action's tool has that name.
    pub fn find_action(&self, name: &str) -> Option<(&MachineName, &ActionName)> {
        self.actions.iter().find(|(_, tool)| *tool == name).map(|((machine, action), _)| (machine, action))
    }

    /// Every name.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.own.values().chain(self.actions.values()).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_gets_a_prefix_and_one_that_two_have_is_neithers() {
        let action = |machine: &str, action: &str| (MachineName::new(machine), ActionName::new(action));
        let actions = [action("order", "pay"), action("order", "drop"), action("trip", "pay"), action("trip", "reset")];
        let names = Names::assign(&Tool::ALL, &actions, |name| name == "step" || name == "drop");
        assert_eq!((names.own(Tool::Step), names.own(Tool::Walk)), (Some("amends_step"), Some("walk")));
        let of = |machine: &str, action: &str| names.action(&MachineName::new(machine), action);
        assert_eq!((of("order", "pay"), of("trip", "pay")), (Some("order_pay"), Some("trip_pay")));
        assert_eq!((of("order", "drop"), of("trip", "reset")), (Some("amends_drop"), Some("trip_reset")));
        assert_eq!(names.find("amends_step"), Some(Tool::Step));
        assert_eq!(names.find("step"), None);
        assert_eq!(names.find_action("trip_pay").map(|(machine, _)| machine.as_str()), Some("trip"));
        assert_eq!(names.all().count(), 9);
        assert_eq!(names.called(&MachineName::new("trip"), "reset"), "trip_reset");
        assert_eq!(names.called(&MachineName::new("alone"), "go"), "go", "one that has no tool is called by its name");
    }

    #[test]
    fn the_actions_of_a_stage_are_called_so_that_nobody_takes_them_for_the_tools() {
        let action = |machine: &str, action: &str| (MachineName::new(machine), ActionName::new(action));
        let actions = [action("trip", "look"), action("trip.look", "search"), action("trip.look", "complete")];
        let names = Names::assign(&[Tool::Walk], &actions, |name| name == "search");
        let of = |action: &str| names.action(&MachineName::new("trip.look"), action);
        assert_eq!((of("search"), of("complete")), (Some("trip_look_search"), Some("complete")));
        let two = [action("trip.look", "complete"), action("trip.stay", "complete")];
        let names = Names::assign(&[], &two, |_| false);
        assert_eq!(names.all().collect::<Vec<_>>(), ["trip_look_complete", "trip_stay_complete"]);
    }
}
