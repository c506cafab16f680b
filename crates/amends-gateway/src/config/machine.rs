//! The machines of a configuration.

mod schemas;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use amends_core::id::MachineName;
use amends_core::machine::{Finding, Machine, MachineSpec, Machines, ToolFacts, Weight};
use amends_core::{Digest, ToolName, UpstreamName};

use super::{Config, ConfigError, Mistake, Source, ToolConfig, UpstreamConfig};
use schemas::schemas;

/// What is wrong with the machines of a configuration, and what may surprise about them: each with its line where that is known, in
/// their order. Its words are those of what is wrong.
#[derive(Debug, PartialEq, Eq)]
pub struct WrongMachines {
    origin: String,
    found: Vec<(Option<usize>, Finding)>,
}

impl WrongMachines {
    fn of(found: Vec<Finding>) -> Self {
        Self { origin: String::new(), found: found.into_iter().map(|finding| (None, finding)).collect() }
    }

    /// Each finding, with the line it is about where that is known.
    pub fn findings(&self) -> impl Iterator<Item = (Option<usize>, &Finding)> {
        self.found.iter().map(|(line, finding)| (*line, finding))
    }

    /// Those of them that are wrong.
    pub(super) fn errors(&self) -> impl Iterator<Item = (Option<usize>, &Finding)> {
        self.findings().filter(|(_, finding)| finding.weight == Weight::Error)
    }

    /// The same with the lines of a source, in their order.
    pub(super) fn placed(self, source: &Source) -> Self {
        let found = source.in_order(self.found.into_iter().map(|(_, finding)| finding));
        Self { origin: source.origin().to_owned(), found }
    }
}

impl fmt::Display for WrongMachines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (line, finding)) in self.errors().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            if let Some(line) = line {
                write!(f, "{}:{line}: ", self.origin)?;
            }
            write!(f, "`{}`: {}; {}", key(finding), finding.message, finding.fix)?;
        }
        Ok(())
    }
}

impl std::error::Error for WrongMachines {}

/// The key of the configuration that a finding names.
fn key(finding: &Finding) -> String {
    format!("machines.{}", finding.at.join("."))
}

/// Reads the machines that are declared. `facts` says what is known of a tool.
pub(super) fn settle(
    specs: BTreeMap<String, MachineSpec>,
    facts: impl Fn(&ToolName) -> Option<ToolFacts>,
) -> Result<Machines, ConfigError> {
    let specs = named(specs);
    Machines::read(&specs).map_err(|_| {
        let (machines, mut found) = mistakes(&specs);
        found.extend(machines.surprises(&found, facts));
        wrong(found)
    })
}

/// What is wrong with machines of which some keys could not be read, or others of the same file. Nothing where that is not known.
pub(super) fn beside(specs: BTreeMap<String, MachineSpec>, unread: &[Mistake]) -> Option<WrongMachines> {
    let keys: Option<Vec<&str>> = unread.iter().map(|mistake| mistake.key.as_deref()).collect();
    let of_machines = keys?.into_iter().filter_map(|key| key.strip_prefix("machines."));
    let unread: Vec<Finding> =
        of_machines.map(|key| Finding::error(&key.split('.').collect::<Vec<_>>(), "", "")).collect();
    let specs = named(specs);
    let found = if unread.is_empty() { mistakes(&specs).1 } else { Machines::mistakes_beside(&specs, &unread) };
    (!found.is_empty()).then(|| WrongMachines::of(found))
}

/// What could be read of machines, and all that is wrong with them.
fn mistakes(specs: &BTreeMap<MachineName, MachineSpec>) -> (Machines, Vec<Finding>) {
    let (machines, mut found) = Machines::mistakes(specs);
    let schemas = machines.declared().flat_map(|machine| schemas(machine, &machines));
    let schemas = schemas.filter(|finding| !finding.may_follow(&found));
    let schemas: Vec<Finding> = schemas.collect();
    found.extend(schemas);
    (machines, found)
}

fn named(specs: BTreeMap<String, MachineSpec>) -> BTreeMap<MachineName, MachineSpec> {
    specs.into_iter().map(|(name, spec)| (MachineName::new(name), spec)).collect()
}

/// The digest of each machine that is declared, with all it uses. Walks are compared by it at every step.
pub(super) fn digests(machines: &Machines) -> BTreeMap<MachineName, Digest> {
    let digest = |machine: &Machine| {
        let canonical = serde_json_canonicalizer::to_vec(&machines.definition(machine.name())).unwrap_or_default();
        (machine.name().clone(), amends_ledger::digest(&canonical))
    };
    machines.declared().map(digest).collect()
}

/// Refuses machines that cannot work by what is declared of their tools.
pub(super) fn fit(config: &Config) -> Result<(), ConfigError> {
    let found = config.look_at_machines(|tool| config.facts(tool.as_str()));
    let (mut errors, mut warnings): (Vec<Finding>, Vec<Finding>) =
        found.into_iter().partition(|finding| finding.weight == Weight::Error);
    errors.extend(config.machines.declared().flat_map(|machine| schemas(machine, &config.machines)));
    if errors.is_empty() {
        return Ok(());
    }
    warnings.retain(|finding| !finding.is_where(&errors));
    Err(wrong([errors, warnings].concat()))
}

fn wrong(found: Vec<Finding>) -> ConfigError {
    ConfigError::Machines(WrongMachines::of(found))
}

impl Config {
    /// What is found by looking at each machine with what is known of its tools; each place begins with the machine's name.
    pub fn look_at_machines(&self, tools: impl Fn(&ToolName) -> Option<ToolFacts>) -> Vec<Finding> {
        let found = |machine: &Machine| {
            let name = machine.name().as_str().to_owned();
            self.look_at_machine(machine, &tools).into_iter().map(move |finding| finding.of(&name))
        };
        self.machines.declared().flat_map(found).collect()
    }

    /// The same of one machine.
    pub fn look_at_machine(&self, machine: &Machine, tools: impl Fn(&ToolName) -> Option<ToolFacts>) -> Vec<Finding> {
        let mut found = self.machines.look(machine, &tools);
        found.extend(self.renamed(machine, tools));
        found
    }

    /// The actions of a machine whose tools are served under other names than their own.
    pub fn renamed(&self, machine: &Machine, tools: impl Fn(&ToolName) -> Option<ToolFacts>) -> Vec<Finding> {
        let mut found = Vec::new();
        // A tool that machines write with is not served, and leaves its name to them.
        let used = self.machine_tools();
        let taken = |name: &str| {
            let name = ToolName::new(name);
            tools(&name).is_some_and(|facts| facts.reads || !used.contains(&name))
        };
        let names = crate::catalogue::names(&self.machines, taken);
        for (action, _) in machine.actions() {
            let called = names.action(machine.name(), action.as_str());
            if let Some(called) = called.filter(|called| *called != action.as_str()) {
                let message = format!("its tool is served as `{called}`: there is another `{action}`");
                let fix = "call the action otherwise, if agents should find it under its own name";
                found.push(Finding::warning(&["actions", action.as_str()], message, fix));
            }
        }
        found
    }

    /// What the file says of the tool of that served name; nothing where it says nothing.
    pub fn facts(&self, tool: &str) -> Option<ToolFacts> {
        facts(&self.tools, &self.upstreams, tool)
    }

    /// Whether the tool of that served name is not served beside the machines that use it: those it would go past. One that its
    /// upstream exposes by name is, and so is one that only reads; the caller knows that.
    pub fn encloses(&self, tool: &ToolName, local: &str, upstream: &UpstreamConfig) -> bool {
        !upstream.exposes(local) && self.machine_tools().contains(tool)
    }

    /// The tools that machines call, by their served names.
    pub fn machine_tools(&self) -> BTreeSet<&ToolName> {
        self.machines.declared().flat_map(|machine| machine.actions()).flat_map(|(_, action)| action.tools()).collect()
    }
}

/// The same before there is a configuration.
pub(super) fn facts(
    tools: &BTreeMap<String, ToolConfig>,
    upstreams: &BTreeMap<UpstreamName, UpstreamConfig>,
    tool: &str,
) -> Option<ToolFacts> {
    let promised = || upstreams.values().find_map(|upstream| upstream.promised(tool));
    let undoes =
        tools.values().any(|other| other.spec().reverse.as_ref().is_some_and(|reverse| reverse.tool.as_str() == tool));
    match tools.get(tool) {
        Some(declared) => {
            let spec = declared.spec();
            let effect = spec.effect.or_else(promised).unwrap_or_default();
            Some(ToolFacts { reads: effect.is_read(), reversible: spec.reverse.is_some(), undoes })
        }
        None => Some(ToolFacts { reads: promised()?.is_read(), reversible: false, undoes }),
    }
}

impl UpstreamConfig {
    /// Whether it names that tool among those it exposes.
    pub(crate) fn exposes(&self, local: &str) -> bool {
        !self.patterns.expose.is_empty() && self.patterns.shows(local)
    }
}

#[cfg(test)]
mod sound;
#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use amends_core::machine::{ActionSpec, Drift, Mode, ResolutionSpec, TryAgainSpec};
    use amends_core::playbook::Backoff;
    use amends_core::span::Span;
    use serde_json::json;

    const ORDER: &str = r#"
[tools.charge]
effect = "write"

[machines.order]
initial = "new"
terminal = ["paid"]

[machines.order.actions.pay]
from = ["new"]
to = "paid"
tool = "charge"
args = { amount = "inputs.amount" }
input = { type = "object", properties = { amount = { type = "integer" } }, required = ["amount"] }
"#;

    fn settled(text: &str) -> Result<Config, ConfigError> {
        Source::of(text.to_owned(), "test").settle()
    }

    #[test]
    fn machines_are_read_with_the_rest() {
        let config = settled(ORDER).unwrap();
        let machine = config.machines.get(&"order".into()).unwrap();
        assert_eq!(machine.action("pay").unwrap().1.input.as_ref().unwrap()["required"][0], "amount");
        let (mut upstream, charge) = (UpstreamConfig::undeclared(), ToolName::new("charge"));
        assert!(config.encloses(&charge, "charge", &upstream) && !config.encloses(&"other".into(), "other", &upstream));
        upstream.patterns.expose = vec!["char*".into()];
        assert!(!config.encloses(&charge, "charge", &upstream));
        assert_eq!(config.machine_tools().into_iter().map(ToolName::as_str).collect::<Vec<_>>(), ["charge"]);
    }

    #[test]
    fn a_machine_that_is_built_in_rust_is_the_one_that_is_written() {
        let written = r#"
            description = "A rug, from order to door."
            initial = "new"
            terminal = ["sent", "dropped"]
            mode = "tools"
            fields = { tries = 0 }
            limits = { steps = 20, loops = 3, time = "2h" }
            state = { type = "object", properties = { tries = { type = "integer" } } }
            drift = "migrate"

            [actions.pay]
            description = "Charges the card."
            from = ["new"]
            to = [{ when = "result.ok", state = "paid" }, { when = "result.stolen", state = "dropped" }, { state = "new" }]
            tool = "charge"
            args = { amount = "inputs.amount" }
            input = { type = "object", properties = { amount = { type = "integer" } }, required = ["amount"] }
            guard = "inputs.amount > 0"
            writes = { tries = "state.tries + 1" }
            times = 3
            queue = "billing"
            timeout = "30s"
            reversible = true

            [actions.send]
            from = ["paid"]
            to = "sent"
            parallel = { one = { tool = "pack", args = { n = "1" } }, two = { tool = "label" } }
            setup = [{ tool = "stock", as = "before", args = { of = "'rug'" } }]
            gate = "setup.before.n > 0 ? 'proceed' : 'retry'"
            assert = "result.one.ok ? 'ok' : 'fail'"
            exit = [{ tool = "note", as = "log" }]
            retry = { max_attempts = 2, backoff = "fixed", initial = "5s" }
            resolution = "abort_workflow"

            [actions.look]
            from = ["new"]
            to = "new"
            allowed = ["stock"]
            completion = { type = "object" }
            turns = 3

            [actions.weigh]
            from = ["new"]
            to = "new"
            function = "weigh"
            args = { what = "'rug'" }
            resolution = "retry_later"
            later = "90s"

            [actions.insure]
            from = ["paid"]
            to = "paid"
            machine = "insurance"
            args = { worth = "state.tries" }
        "#;
        let amount =
            json!({ "type": "object", "properties": { "amount": { "type": "integer" } }, "required": ["amount"] });
        let pay = ActionSpec::new(["new"], "new")
            .or_to("result.ok", "paid")
            .or_to("result.stolen", "dropped")
            .description("Charges the card.")
            .tool("charge")
            .arg("amount", "inputs.amount")
            .input(amount)
            .guard("inputs.amount > 0")
            .writes("tries", "state.tries + 1")
            .times(3)
            .queue("billing")
            .timeout(Duration::from_secs(30))
            .reversible(true);
        let retry = TryAgainSpec {
            max_attempts: Some(2),
            backoff: Some(Backoff::Fixed),
            initial: Span::parse("5s"),
            ..TryAgainSpec::default()
        };
        let send = ActionSpec::new(["paid"], "sent")
            .parallel("one", "pack", &[("n", "1")])
            .parallel("two", "label", &[])
            .setup("before", "stock", &[("of", "'rug'")])
            .gate("setup.before.n > 0 ? 'proceed' : 'retry'")
            .assert("result.one.ok ? 'ok' : 'fail'")
            .exit("log", "note", &[])
            .retry(retry)
            .resolution(ResolutionSpec::AbortWorkflow);
        let weigh = ActionSpec::new(["new"], "new")
            .function("weigh")
            .arg("what", "'rug'")
            .resolution(ResolutionSpec::RetryLater)
            .later(Duration::from_secs(90));
        let built = MachineSpec::new("new")
            .description("A rug, from order to door.")
            .terminal(["sent", "dropped"])
            .mode(Mode::Tools)
            .field("tries", json!(0))
            .steps(20)
            .loops(3)
            .time(Duration::from_secs(7200))
            .state(json!({ "type": "object", "properties": { "tries": { "type": "integer" } } }))
            .drift(Drift::Migrate)
            .action("pay", pay)
            .action("send", send)
            .action("look", ActionSpec::new(["new"], "new").allowed(["stock"], json!({ "type": "object" }), 3))
            .action("weigh", weigh)
            .action("insure", ActionSpec::new(["paid"], "paid").machine("insurance").arg("worth", "state.tries"));
        let written: MachineSpec = toml::from_str(written).unwrap();
        assert_eq!(built, written);
        assert_eq!(Machine::read("rug", &built).unwrap(), Machine::read("rug", &written).unwrap());
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once_with_its_line() {
        let text = ORDER.replace("to = \"paid\"", "to = \"payed\"").replace("inputs.amount", "input.amount");
        let refused = settled(&text).unwrap_err().to_string();
        let lines: Vec<&str> = refused.lines().collect();
        assert_eq!(
            lines,
            [
                "test:7: `machines.order.terminal`: nothing leads to `paid`; did you mean `payed`?",
                "test:11: `machines.order.actions.pay.to`: `payed` is a dead end: nothing leads away from it; did you mean `paid`?",
                "test:13: `machines.order.actions.pay.args.amount`: nothing is called `input` here; did you mean `inputs`?",
            ]
        );
    }

    #[test]
    fn a_machine_that_cannot_be_read_does_not_hide_what_is_wrong_with_another() {
        let bad = "[machines.bad]\ninitial = \"a\"\nterminal = [\"z\"]\n[machines.bad.actions.go]\nfrom = [\"a\"]\nto = \"z\"\nguard = \"state.x ==\"\n";
        let text = ORDER.replace("{ type = \"integer\" }", "{ type = \"intger\" }") + bad;
        let refused = settled(&text).unwrap_err().to_string();
        let told = |place: &str| refused.lines().any(|line| line.starts_with("test:") && line.contains(place));
        assert!(told("`machines.bad.actions.go.guard`: "), "{refused}");
        assert!(told("`machines.order.actions.pay.input`: the schema cannot be used"), "{refused}");
    }

    #[test]
    fn schemas_that_cannot_be_used_and_fields_that_do_not_fit_are_refused() {
        let text = ORDER.replace("{ type = \"integer\" }", "{ type = \"intger\" }").replace(
            "terminal = [\"paid\"]",
            "terminal = [\"paid\"]\nfields = { n = \"x\" }\nstate = { properties = { n = { type = \"integer\" } }, required = [\"later\"] }",
        );
        let refused = settled(&text).unwrap_err().to_string();
        let lines: Vec<&str> = refused.lines().collect();
        assert!(
            lines[2].starts_with("test:16: `machines.order.actions.pay.input`: the schema cannot be used"),
            "{lines:?}"
        );
        let fields = |line: &&&str| line.starts_with("test:8: `machines.order.fields`: ");
        assert_eq!(lines[..2].iter().filter(fields).count(), 2, "{lines:?}");
        for said in
            ["`n` does not fit `state`: expected a whole number", "`later` does not fit `state`: expected present"]
        {
            assert!(refused.contains(said), "{said}: {refused}");
        }
    }

    #[test]
    fn what_runs_a_machine_gives_it_what_its_fields_must_have() {
        let told = |args: &str, more: &str| {
            let text = format!(
                "[machines.m]\ninitial = \"a\"\nterminal = [\"z\"]\n\
                 [machines.m.actions.go]\nfrom = [\"a\"]\nto = \"b\"\nmachine = \"inner\"\nargs = {{ {args} }}\n\
                 [machines.m.actions.more]\nfrom = [\"b\"]\nto = \"z\"\n{more}\
                 [machines.inner]\ninitial = \"s\"\nterminal = [\"t\"]\n\
                 state = {{ properties = {{ order = {{ type = \"string\", minLength = 1 }} }}, required = [\"order\"] }}\n\
                 [machines.inner.actions.pay]\nfrom = [\"s\"]\nto = \"t\"\nwrites = {{ note = \"state.order\" }}\n"
            );
            let config = match settled(&text) {
                Ok(config) => config,
                Err(error) => return error.to_string(),
            };
            let found = config.look_at_machines(|tool| config.facts(tool.as_str()));
            found.iter().map(|found| format!("warning: {found}\n")).collect()
        };
        assert_eq!(told("order = \"'o1'\"", ""), "");
        let lacks = "`machines.inner.fields`: `order` does not fit `state`: expected present";
        assert!(told("", "").contains(lacks));
        let twice = told("order = \"'o1'\"", "machine = \"inner\"\n");
        assert!(twice.contains(lacks) && twice.ends_with("or give it wherever this machine is run"), "{twice}");
        assert!(told("order = \"''\"", "").contains("`''` does not fit the `order` that `state` of `inner` describes"));
    }

    #[test]
    fn a_setup_that_writes_is_refused_by_what_is_declared_of_its_tool() {
        let text =
            ORDER.replace("tool = \"charge\"", "tool = \"charge\"\nsetup = [{ tool = \"charge\", as = \"first\" }]");
        let refused = settled(&text).unwrap_err().to_string();
        assert!(
            refused.starts_with("test:13: `machines.order.actions.pay.setup`: `charge` changes something"),
            "{refused}"
        );
        settled(&text.replace("effect = \"write\"", "effect = \"read\"")).unwrap();
    }

    #[test]
    fn a_key_that_is_not_known_is_refused_with_the_nearest() {
        let refused = settled(&ORDER.replace("args =", "arg =")).unwrap_err().to_string();
        assert_eq!(refused, "test:13: unknown key `arg`; did you mean `args`?");
        let refused = settled(&ORDER.replace("to = \"paid\"", "to = 3")).unwrap_err().to_string();
        assert!(refused.ends_with("the name of a state, or a list such as `[{ when = \"result.ok\", state = \"paid\" }, { state = \"failed\" }]`"), "{refused}");
    }

    #[test]
    fn a_constant_that_does_not_fit_the_fields_is_refused_where_it_is_written() {
        let typed =
            "terminal = [\"paid\"]\nfields = { n = 1 }\nstate = { properties = { n = { type = \"integer\" } } }";
        let text = ORDER.replace("terminal = [\"paid\"]", typed);
        let refused = settled(&format!("{text}writes = {{ n = \"'x'\" }}\n")).unwrap_err().to_string();
        let said = "test:17: `machines.order.actions.pay.writes.n`: `'x'` does not fit `state`: `n` is expected to be a whole number";
        assert!(refused.starts_with(said), "{refused}");
        settled(&format!("{text}writes = {{ n = \"2\" }}\n")).unwrap();
    }

    #[test]
    fn an_action_whose_tool_gets_another_name_is_warned_of() {
        let text = ORDER.replace("initial = \"new\"", "initial = \"new\"\nmode = \"tools\"");
        let warnings = |text: &str| {
            let config = settled(text).unwrap();
            let found = config.look_at_machines(|tool| config.facts(tool.as_str()));
            found.iter().map(Finding::to_string).filter(|found| found.contains("is served as")).collect::<Vec<_>>()
        };
        assert_eq!(warnings(&text), Vec::<String>::new());
        let said = "order.actions.reset: its tool is served as `order_reset`: there is another `reset`; call the action otherwise, \
                    if agents should find it under its own name";
        assert_eq!(warnings(&text.replace("actions.pay]", "actions.reset]")), [said]);
        let taken = format!("{text}[tools.pay]\neffect = \"read\"\n");
        assert!(warnings(&taken)[0].contains("`amends_pay`: there is another `pay`"), "{:?}", warnings(&taken));
        let used = text.replace("actions.pay]", "actions.charge]");
        assert_eq!(warnings(&used), Vec::<String>::new(), "what only the machine calls leaves it its name");
    }
}
