//! What is wrong with the text of a scenario: all of it, each mistake with its line.

use std::fmt;

use amends_core::nearest::unknown_key;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::expect::NoSpec;
use super::spec::{NO_STEPS, Scenario, StepSpec, ToolSpec};
use super::{AnswerSpec, ExpectSpec};

/// Something that is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl Mistake {
    pub(super) fn of(text: &str, error: &toml::de::Error) -> Self {
        Self { line: line(text, error.span().map_or(0, |span| span.start)), reason: unknown_key(error.message()) }
    }
}

/// Every mistake in a scenario, in the order of the lines; none in a text that is no TOML. Each key is read alone, so that one
/// that cannot be read hides no other.
pub(super) fn mistakes(text: &str) -> Vec<Mistake> {
    let Ok(document) = DeTable::parse(text) else { return Vec::new() };
    let mut look = Look { text, found: Vec::new() };
    let mut steps = false;
    for (key, value) in document.get_ref() {
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("steps", DeValue::Array(all)) => {
                steps = !all.is_empty();
                all.iter().enumerate().for_each(|(n, step)| look.step(n + 1, step));
            }
            ("tools", DeValue::Table(tools)) => {
                tools.iter().for_each(|(name, tool)| look.tool(name.get_ref(), tool));
            }
            _ => look.alone::<Scenario>(key, value),
        }
    }
    let lacks = |name: &&str| !document.get_ref().contains_key(*name);
    for name in ["config", "machine"].into_iter().filter(lacks) {
        look.found.push(Mistake { line: 1, reason: format!("it names no `{name}`") });
    }
    if !steps {
        look.found.push(Mistake { line: 1, reason: NO_STEPS.into() });
    }
    look.found.sort_by_key(|mistake| mistake.line);
    look.found
}

/// A name or a value, with the place where it is written.
type Key<'i> = Spanned<toml::de::DeString<'i>>;
type Written<'i> = Spanned<DeValue<'i>>;

struct Look<'t> {
    text: &'t str,
    found: Vec<Mistake>,
}

impl Look<'_> {
    /// A step: its keys, and whether they make sense together where all of them can be read.
    fn step(&mut self, n: usize, step: &Written<'_>) {
        let before = self.found.len();
        self.parts::<StepSpec>(step, |look, key, value| {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("answers", DeValue::Array(answers)) => {
                    answers.iter().for_each(|answer| look.parts::<AnswerSpec>(answer, |_, _, _| false));
                }
                ("expect", DeValue::Table(_)) => look.parts::<ExpectSpec>(value, |look, key, value| {
                    let refusal = key.get_ref() == "refusal" && value.get_ref().is_table();
                    if refusal {
                        look.parts::<NoSpec>(value, |_, _, _| false);
                    }
                    refusal
                }),
                _ => return false,
            }
            true
        });
        let DeValue::Table(keys) = step.get_ref() else { return };
        if self.found.len() > before {
            return;
        }
        let Some(read) = self.read::<StepSpec>(step.clone()) else { return };
        for wrong in read.senseless() {
            let value = keys.get(wrong.key).map(|value| match value.get_ref() {
                DeValue::Array(items) => items.get(wrong.item).unwrap_or(value),
                _ => value,
            });
            let line = line(self.text, value.unwrap_or(step).span().start);
            self.found.push(Mistake { line, reason: format!("step {n}: {}", wrong.reason) });
        }
    }

    /// What is said of a tool, whose schema has to be one that can be used.
    fn tool(&mut self, name: &str, tool: &Written<'_>) {
        let before = self.found.len();
        self.parts::<ToolSpec>(tool, |_, _, _| false);
        if self.found.len() > before {
            return;
        }
        let Some(Err(error)) = self.read::<ToolSpec>(tool.clone()).and_then(|read| read.schema()) else { return };
        let input = tool.get_ref().as_table().and_then(|keys| keys.get("input"));
        let line = line(self.text, input.unwrap_or(tool).span().start);
        self.found.push(Mistake { line, reason: format!("the `input` of `{name}` cannot be used: {error}") });
    }

    /// A table whose keys are read one by one, but for those that are looked into otherwise.
    fn parts<T: DeserializeOwned>(
        &mut self,
        table: &Written<'_>,
        otherwise: impl Fn(&mut Self, &Key<'_>, &Written<'_>) -> bool,
    ) {
        let DeValue::Table(keys) = table.get_ref() else {
            self.read::<T>(table.clone());
            return;
        };
        for (key, value) in keys {
            if !otherwise(self, key, value) {
                self.alone::<T>(key, value);
            }
        }
    }

    /// One key of a table of which every key may be left out.
    fn alone<T: DeserializeOwned>(&mut self, key: &Key<'_>, value: &Written<'_>) {
        let mut table = DeTable::new();
        table.insert(key.clone(), value.clone());
        self.read::<T>(Spanned::new(key.span(), DeValue::Table(table)));
    }

    fn read<T: DeserializeOwned>(&mut self, written: Written<'_>) -> Option<T> {
        let start = written.span().start;
        T::deserialize(ValueDeserializer::from(written))
            .map_err(|error| {
                let place = error.span().map_or(start, |span| span.start);
                self.found.push(Mistake { line: line(self.text, place), reason: unknown_key(error.message()) });
            })
            .ok()
    }
}

/// The line of a place in a text.
fn line(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "config = \"a.toml\"\nmachine = \"order\"\n";

    fn told(text: &str) -> Vec<String> {
        Scenario::read(text).unwrap_err().to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_mistake_is_told_with_its_line() {
        let text = "config = 3\nmachin = \"order\"\n\
                    [[steps]]\nacton = \"pay\"\nafter = \"soon\"\n\
                    [[steps]]\naction = \"a\"\nperson = \"aprove\"\nanswers = [\n  { tool = \"t\" },\n  { tool = \"t\", result = 1 },\n  { tool = \"t\", error = \"RateLimitd\" },\n]\n\
                    [[steps]]\naction = \"a\"\nexpect = { stat = \"z\", refusal = { knd = \"x\" } }\nanswers = [\n  { tol = \"t\" },\n]\n\
                    [[steps]]\nexpect = { refusal = { kind = \"invalid_transit\" } }\n";
        let found = told(text);
        for (n, said) in [
            "line 1: it names no `machine`",
            "line 1: invalid type: integer `3`, expected path string",
            "line 2: unknown key `machin`; did you mean `machine`?",
            "line 4: unknown key `acton`; did you mean `action`?",
            "line 5: ",
            "line 8: step 2: `aprove` is nothing that a person says; did you mean `approve`?",
            "line 10: step 2: the answer of `t` says nothing",
            "line 12: step 2: `RateLimitd` is not a failure code; did you mean `RateLimited`?",
            "line 16: unknown key `stat`; did you mean `state`?",
            "line 16: unknown key `knd`",
            "line 18: unknown key `tol`; did you mean `tool`?",
            "line 20: step 4: it has one of `action` and `reset = true`",
            "line 21: step 4: `invalid_transit` is no kind of refusal",
        ]
        .into_iter()
        .enumerate()
        {
            assert!(found.iter().any(|found| found.starts_with(said)), "{n}, {said}: {found:#?}");
        }
        assert_eq!(found.len(), 13, "{found:#?}");
        let torn = told("config = \"a.toml\"\nmachine = [\n");
        assert!(torn[0].starts_with("line "), "{torn:?}");
    }

    #[test]
    fn what_would_be_passed_over_is_a_mistake() {
        let reset = told(&format!("{HEAD}[[steps]]\nreset = true\ninputs = {{ n = 1 }}\n"));
        assert_eq!(reset, ["line 5: step 1: `reset` takes no `inputs`; drop them, or name the `action` they are for"]);
        let message = told(&format!(
            "{HEAD}[[steps]]\naction = \"a\"\nanswers = [\n  {{ tool = \"t\", result = 1, message = \"no\" }},\n]\n"
        ));
        assert_eq!(
            message,
            [
                "line 6: step 1: the answer of `t` has a `message` and fails with no `error`; say which: `error = \"InputInvalid\"`, or drop it"
            ]
        );
        let took = told(&format!(
            "{HEAD}[[steps]]\naction = \"a\"\nanswers = [\n  {{ tool = \"t\", timeout = true, took = \"9s\" }},\n]\n"
        ));
        assert!(
            took[0].starts_with("line 6: step 1: `t` does not answer, so it takes no time; drop `took`"),
            "{took:?}"
        );
        assert!(Scenario::read(&format!("{HEAD}[[steps]]\nreset = true\n")).is_ok());
    }
}
