//! A scenario as it is written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use amends_core::interaction::choice;
use amends_core::nearest::nearest;
use amends_core::span::Span;
use amends_wire::{Schema, SchemaError};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::mistakes::mistakes;
use super::{AnswerSpec, ExpectSpec, Mistake, ScenarioError};

/// What is said of a scenario without steps.
pub(super) const NO_STEPS: &str = "it has no `[[steps]]`";

/// A scenario file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, in a sentence.
    pub story: String,
    /// The configuration that declares the machine, beside this file.
    pub config: PathBuf,
    /// The machine.
    pub machine: String,
    /// An export beside this file, from which `recorded` answers are taken.
    pub export: Option<PathBuf>,
    /// What is known of tools, by their served names.
    pub tools: BTreeMap<String, ToolSpec>,
    /// What is done, one after the other.
    pub steps: Vec<StepSpec>,
}

/// `[tools.NAME]`: what a faked tool takes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSpec {
    /// The JSON Schema of its arguments, as agents are shown it. Without one, it takes anything.
    pub input: Option<Value>,
}

impl ToolSpec {
    /// What its arguments are checked with.
    pub(super) fn schema(&self) -> Option<Result<Schema, SchemaError>> {
        self.input.clone().map(Schema::from_value)
    }
}

/// What a person can say in a scenario.
const PERSON: [&str; 7] = [
    choice::APPROVE,
    choice::APPROVE_SESSION,
    choice::APPROVE_ARGUMENTS,
    choice::DENY,
    choice::HAPPENED,
    choice::DID_NOT_HAPPEN,
    choice::SEEN,
];

/// `[[steps]]`: an action is taken, or the machine is reset, and something is expected after it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepSpec {
    /// The action.
    pub action: Option<String>,
    /// Whether the machine goes back to its beginning instead.
    pub reset: bool,
    /// What the agent gives.
    pub inputs: Map<String, Value>,
    /// After how many moves the agent thinks that the machine is.
    pub expect_seq: Option<u64>,
    /// The agent's own key.
    pub key: Option<String>,
    /// How much time passes first.
    pub after: Option<Span>,
    /// How long the agent waits for the answer. The default is `60s`.
    pub patience: Option<Span>,
    /// After how long the agent's turn is stopped, and with it what is being done.
    pub stopped: Option<Span>,
    /// What a person says if one is asked: `approve`, `deny`, `happened` or `did_not_happen`. Without it, nobody answers. They are
    /// asked before the action is taken, while it is, or about what became of it.
    pub person: Option<String>,
    /// What the person says that the call gave which happened.
    pub content: Option<Value>,
    /// What the tools answer, in the order of the calls to each.
    pub answers: Vec<AnswerSpec>,
    /// What is expected after it.
    pub expect: ExpectSpec,
}

impl Scenario {
    /// Reads a scenario. What is wrong with it is given back all at once.
    pub fn read(text: &str) -> Result<Self, ScenarioError> {
        let mistakes = mistakes(text);
        match toml::from_str(text) {
            Ok(scenario) if mistakes.is_empty() => Ok(scenario),
            Err(error) if mistakes.is_empty() => Err(ScenarioError::Malformed(vec![Mistake::of(text, &error)])),
            Ok(_) | Err(_) => Err(ScenarioError::Malformed(mistakes)),
        }
    }

    /// The same, if its steps make sense.
    pub(crate) fn checked(self) -> Result<Self, ScenarioError> {
        if self.steps.is_empty() {
            return Err(ScenarioError::Malformed(vec![Mistake { line: 1, reason: NO_STEPS.into() }]));
        }
        let wrong =
            self.steps.iter().enumerate().find_map(|(n, step)| Some((n + 1, step.senseless().into_iter().next()?)));
        match wrong {
            Some((step, Senseless { reason, .. })) => Err(ScenarioError::Senseless { step, reason }),
            None => Ok(self),
        }
    }
}

/// Something about a step that makes no sense.
pub(super) struct Senseless {
    /// The key it is about.
    pub(super) key: &'static str,
    /// Which of several, where that is a list.
    pub(super) item: usize,
    pub(super) reason: String,
}

impl StepSpec {
    /// What about it makes no sense.
    pub(super) fn senseless(&self) -> Vec<Senseless> {
        let mut found = Vec::new();
        let mut wrong = |key, item, reason: String| found.push(Senseless { key, item, reason });
        if self.action.is_some() == self.reset {
            wrong("reset", 0, "it has one of `action` and `reset = true`".into());
        } else if self.reset && !self.inputs.is_empty() {
            let reason = "`reset` takes no `inputs`; drop them, or name the `action` they are for";
            wrong("inputs", 0, reason.into());
        }
        if let Some(said) = self.person.as_deref().filter(|said| !PERSON.contains(said)) {
            let near = nearest(said, PERSON).into_iter().next();
            let hint = near
                .map_or_else(|| format!("known: `{}`", PERSON.join("`, `")), |near| format!("did you mean `{near}`?"));
            wrong("person", 0, format!("`{said}` is nothing that a person says; {hint}"));
        }
        if self.content.is_some() && self.person.as_deref() != Some(choice::HAPPENED) {
            wrong(
                "content",
                0,
                "`content` is what a person says that a call gave: say `person = \"happened\"` with it".into(),
            );
        }
        for (item, answer) in self.answers.iter().enumerate() {
            if let Some(reason) = answer.wrong() {
                wrong("answers", item, reason);
            }
        }
        if let Some(reason) = self.expect.wrong() {
            wrong("expect", 0, reason);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        Scenario::read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_scenario_is_read_and_its_mistakes_are_named() {
        let head = "config = \"a.toml\"\nmachine = \"order\"\n";
        let sound = format!(
            "{head}[[steps]]\naction = \"pay\"\ninputs = {{ amount = 3 }}\nafter = \"10m\"\n\
             answers = [{{ tool = \"charge\", result = {{ ok = true }}, with = {{ amount = 3 }} }}]\n\
             expect = {{ state = \"paid\", valid_next_actions = [], fields = {{ amount = 3 }} }}\n"
        );
        assert_eq!(Scenario::read(&sound).unwrap().steps.len(), 1);
        for (text, said) in [
            (format!("{head}steps = []"), "line 1: it has no `[[steps]]`"),
            (format!("{head}[[steps]]\nacton = \"pay\""), "line 4: unknown key `acton`; did you mean `action`?"),
            (format!("{head}[[steps]]"), "line 3: step 1: it has one of `action` and `reset = true`"),
            (
                format!("{head}[[steps]]\naction = \"a\"\nperson = \"aprove\""),
                "line 5: step 1: `aprove` is nothing that a person says; did you mean `approve`?",
            ),
            (
                format!("{head}[[steps]]\naction = \"a\"\nanswers = [{{ tool = \"t\" }}]"),
                "line 5: step 1: the answer of `t` says nothing",
            ),
            (
                format!("{head}[[steps]]\naction = \"a\"\nanswers = [{{ tool = \"t\", error = \"RateLimitd\" }}]"),
                "line 5: step 1: `RateLimitd` is not a failure code; did you mean `RateLimited`?",
            ),
            (
                format!("{head}[[steps]]\naction = \"a\"\nexpect = {{ refusal = {{ kind = \"invalid_transit\" }} }}"),
                "line 5: step 1: `invalid_transit` is no kind of refusal; did you mean `invalid_transition`?",
            ),
        ] {
            assert!(wrong(&text).starts_with(said), "{said}: {}", wrong(&text));
        }
    }
}
