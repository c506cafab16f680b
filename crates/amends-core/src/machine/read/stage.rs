//! What an action does besides acting: from what was written to what it means.

use std::collections::BTreeSet;

use super::{Reader, ms};
use crate::compensation::Ladder;
use crate::expression::Expression;
use crate::id::ToolName;
use crate::limits::{STAGE_LEGS_MAX, STAGE_TURNS, STAGE_TURNS_MAX, WAIT_MS_MAX};
use crate::machine::spec::{ActionSpec, LegSpec, ResolutionSpec};
use crate::machine::stages::COMPLETE;
use crate::machine::{Allowed, Resolution, Stage, ToolUse};
use crate::nearest::nearest;

/// What a gate may say.
const GATE: [&str; 3] = ["proceed", "retry", "skip"];
/// What an assert may say.
const ASSERT: [&str; 4] = ["ok", "retry", "skip", "fail"];
/// When an action that is to be taken again later can be, where nothing is said: ten minutes.
const LATER_MS: u64 = 10 * 60 * 1000;

impl Reader {
    pub(super) fn stage(&mut self, name: &str, spec: &ActionSpec) -> Stage {
        let at = |part| ["actions", name, part];
        let (before, after) = (spec.before(), spec.after());
        let stage = Stage {
            setup: self.legs(name, "setup", &spec.setup, &before),
            gate: self.judge(&at("gate"), spec.gate.as_deref(), &before, &GATE),
            assert: self.judge(&at("assert"), spec.assert.as_deref(), &after, &ASSERT),
            exit: self.legs(name, "exit", &spec.exit, &after),
            retry: self.again(name, spec),
            resolution: self.resolution(name, spec),
        };
        let enters = spec.machine.is_some() || spec.allowed.is_some();
        for (part, said) in [("assert", spec.assert.is_some()), ("exit", !spec.exit.is_empty())] {
            if said && enters {
                let fix = "choose by `result` in `to`, or make an action of it that comes next";
                self.wrong(&at(part), "the action is over once the other machine is entered", fix);
            }
        }
        for (part, judge) in [("gate", &stage.gate), ("assert", &stage.assert)] {
            let says = judge.as_ref().and_then(Expression::answers).unwrap_or_default();
            if stage.retry.is_none() && says.contains("retry") {
                let fix = "say how often and when: `retry = { max_attempts = 3 }`";
                self.wrong(&at(part), "it may say `'retry'`, and nothing says how often it is tried again", fix);
            }
        }
        stage
    }

    pub(super) fn allowed(&mut self, name: &str, spec: &ActionSpec) -> Allowed {
        let at = |part| ["actions", name, part];
        let tools = spec.allowed.as_deref().unwrap_or_default();
        if tools.is_empty() {
            self.wrong(&at("allowed"), "no tool is allowed", "name the tools: `allowed = [\"search\"]`");
        }
        if tools.iter().any(|tool| tool == COMPLETE) {
            let found = format!("`{COMPLETE}` is the action that ends the stage, and cannot be a tool of it");
            self.wrong(&at("allowed"), found, "serve the tool under another name: its upstream's `prefix`");
        }
        if spec.turns.is_some_and(|turns| turns == 0 || turns > STAGE_TURNS_MAX) {
            let fix = format!("give a number from 1 to {STAGE_TURNS_MAX}");
            self.wrong(&at("turns"), "so many calls cannot be allowed", fix);
        }
        Allowed {
            tools: tools.iter().map(|tool| ToolName::new(tool.as_str())).collect(),
            completion: spec.completion.clone(),
            turns_max: Some(spec.turns.unwrap_or(STAGE_TURNS)),
        }
    }

    fn legs(&mut self, action: &str, part: &str, specs: &[LegSpec], may: &[&str]) -> Vec<(String, ToolUse)> {
        if specs.len() > STAGE_LEGS_MAX {
            let fix = format!("keep {STAGE_LEGS_MAX} at most, or make actions of them");
            self.wrong(&["actions", action, part], format!("there are {} calls in it", specs.len()), fix);
        }
        let mut names = BTreeSet::new();
        let mut legs = Vec::new();
        for spec in specs {
            let name = spec.name.as_deref().unwrap_or(&spec.tool);
            let at = ["actions", action, part, name];
            if spec.tool.is_empty() {
                self.wrong(&at[..3], "it names no tool", "name it: `{ tool = \"get_order\" }`");
            }
            if !names.insert(name) {
                let fix = "give each a name of its own: `{ tool = …, as = \"before\" }`";
                self.wrong(&at[..3], format!("two results would be called `{name}`"), fix);
            }
            let args = self.expressions(&at, &spec.args, may);
            legs.push((name.to_owned(), ToolUse { tool: ToolName::new(spec.tool.as_str()), args, whole: false }));
        }
        legs
    }

    /// An expression whose answer is one of a few words, the first of which lets the action go on.
    fn judge(&mut self, at: &[&str], source: Option<&str>, may: &[&str], words: &[&str]) -> Option<Expression> {
        let expression = self.expression(at, source?, may)?;
        let answers = expression.answers().unwrap_or_default();
        for answer in answers.iter().filter(|answer| !words.contains(&answer.as_str())) {
            let fix = match nearest(answer, words.iter().copied()).first() {
                Some(near) => format!("did you mean `'{near}'`?"),
                None => format!("known here: `'{}'`", words.join("'`, `'")),
            };
            self.wrong(at, format!("`'{answer}'` is not among what it may say"), fix);
        }
        if !answers.is_empty() && !answers.contains(words[0]) {
            let found = format!("it never says `'{}'`, so the action can never be done", words[0]);
            self.wrong(at, found, "let it say so where all is well");
        }
        Some(expression)
    }

    fn again(&mut self, name: &str, spec: &ActionSpec) -> Option<Ladder> {
        let retry = spec.retry.as_ref()?;
        let at = ["actions", name, "retry"];
        if !spec.can_fail() {
            self.wrong(&at, "there is nothing to try again", "drop it, or add a `tool`, a `gate` or an `assert`");
        }
        retry.policy().alone().map_err(|error| self.wrong(&at, error.to_string(), "mend the policy")).ok()
    }

    fn resolution(&mut self, name: &str, spec: &ActionSpec) -> Option<Resolution> {
        let at = |part| ["actions", name, part];
        if spec.later.is_some() && spec.resolution != Some(ResolutionSpec::RetryLater) {
            let fix = "drop it, or add `resolution = \"retry_later\"`";
            self.wrong(&at("later"), "nothing is taken again later", fix);
        }
        let resolution = spec.resolution?;
        if !spec.can_fail() {
            let fix = "drop it, or add a `tool`, a `gate` or an `assert`";
            self.wrong(&at("resolution"), "there is nothing that could fail", fix);
        }
        let after_ms = spec.later.map_or(LATER_MS, |later| ms(later.0));
        if after_ms == 0 || after_ms > WAIT_MS_MAX {
            self.wrong(&at("later"), "it is no time at all, or longer than a day", "give a time such as `10m`");
        }
        Some(match resolution {
            ResolutionSpec::Skip => Resolution::Skip,
            ResolutionSpec::RetryLater => Resolution::RetryLater { after_ms },
            ResolutionSpec::AbortWorkflow => Resolution::AbortWorkflow,
        })
    }
}

impl ActionSpec {
    /// What expressions may speak of before it is done.
    pub(super) fn before(&self) -> Vec<&'static str> {
        if self.setup.is_empty() { vec!["state", "inputs"] } else { vec!["state", "inputs", "setup"] }
    }

    /// What expressions may speak of once it is done.
    pub(super) fn after(&self) -> Vec<&'static str> {
        [self.before(), vec!["result"]].concat()
    }

    /// Whether there is anything in it that could fail.
    fn can_fail(&self) -> bool {
        let acts = self.tool.is_some() || self.function.is_some() || self.machine.is_some() || self.allowed.is_some();
        acts || self.parallel.is_some() || !self.setup.is_empty() || self.gate.is_some() || self.assert.is_some()
    }
}
