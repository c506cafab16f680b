//! The tools, which answer what is written.

use std::collections::BTreeMap;

use amends_core::expression::Expression;
use amends_core::{Attempt, Certainty, Code, Failure, Purpose, Report};
use serde_json::{Map, Value};

use super::answer::payload;
use super::expect::same;
use super::telling::{Sent, Telling};
use super::{AnswerSpec, Mismatch};

/// How long a faked tool takes.
const TOOK_MS: u64 = 10;

impl Telling<'_> {
    /// The answers of a step; a recorded call has one for each of its attempts.
    pub(super) fn written(&self, answers: &[AnswerSpec]) -> Result<Vec<AnswerSpec>, String> {
        let mut written = Vec::new();
        for answer in answers {
            let Some(call) = &answer.recorded else {
                written.push(answer.clone());
                continue;
            };
            let recorded = (self.cast.recorded)(call).ok_or_else(|| format!("no export knows the call `{call}`"))?;
            let Some((first, _)) = recorded.first() else {
                return Err(format!("nothing was ever sent for the call `{call}`"));
            };
            // What was asked of other tools for it, such as whether it happened, is written as their answer.
            let tool = &answer.tool;
            let own = |(to, report): &Sent| (to.as_str() == tool).then(|| report.clone());
            let reports: Vec<Option<Report>> = recorded.iter().filter_map(own).collect();
            if reports.is_empty() {
                return Err(format!(
                    "the answer of `{tool}` is that of `{call}`, which called `{first}` and not `{tool}`"
                ));
            }
            let again = |report: Option<Report>| AnswerSpec {
                timeout: report.is_none(),
                report: report.map(Box::new),
                ..answer.clone()
            };
            written.extend(reports.into_iter().map(again));
        }
        Ok(written)
    }

    /// Calls a tool.
    pub(super) fn send(&mut self, attempt: &Attempt) {
        if let Some(body) = self.given_before(attempt) {
            let again = Report::success(Some(payload(&body)));
            self.bodies.insert(attempt.id.clone(), body);
            self.later(TOOK_MS, attempt.id.clone(), again);
            return;
        }
        let args = self.given(attempt);
        self.called.push(attempt.tool.to_string());
        let Some(at) = self.answers.iter().position(|answer| answer.tool == attempt.tool.as_str()) else {
            let got = format!("`{}` was called with `{args}`", attempt.tool);
            self.mismatches.push(Mismatch { what: "calls".into(), expected: "no further call".into(), got });
            self.stuck = true;
            return;
        };
        let answer = self.answers.remove(at);
        if let Some(with) = answer.with.as_ref().filter(|with| !same(with, &args)) {
            let what = format!("`{}` is given", attempt.tool);
            self.mismatches.push(Mismatch { what, expected: with.to_string(), got: args.to_string() });
        }
        let Some(mut report) = answer.report() else { return };
        let body = answer.result.clone().unwrap_or_default();
        if matches!(attempt.purpose, Purpose::Status | Purpose::Baseline) && report.failure.is_none() {
            let called = &self.calls[&attempt.id.call];
            let happened = called.rules.contract.status.as_ref().map(|status| &status.happened);
            let said = happened.and_then(|it| it.evaluate(&[("result", &body), ("args", &called.args)]).ok());
            report.happened = said.and_then(|said| said.as_bool());
        }
        let intention = self.calls.get(&attempt.id.call).and_then(|called| called.intention.clone());
        if let Some(intention) = intention.filter(|_| attempt.purpose == Purpose::Act && report.failure.is_none()) {
            self.kept.insert(intention, body.clone());
        }
        self.bodies.insert(attempt.id.clone(), body);
        let took_ms = answer.took.map_or(TOOK_MS, |span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX));
        self.later(took_ms, attempt.id.clone(), report);
    }

    /// What the same intention was given when it was done: it is not done again.
    fn given_before(&self, attempt: &Attempt) -> Option<Value> {
        let called = self.calls.get(&attempt.id.call).filter(|_| attempt.purpose == Purpose::Act)?;
        self.kept.get(called.intention.as_ref()?).cloned()
    }

    /// What a tool is given.
    fn given(&self, attempt: &Attempt) -> Value {
        let Some(called) = self.calls.get(&attempt.id.call) else { return Value::Null };
        let contract = &called.rules.contract;
        let key = Value::from(attempt.effect_key.clone());
        let result = self.results.get(&attempt.id.call).cloned().unwrap_or_default();
        let over = |args: &BTreeMap<String, Expression>| {
            let variables = [("args", &called.args), ("key", &key), ("result", &result)];
            let given: Map<String, Value> = args
                .iter()
                .filter_map(|(name, expression)| Some((name.clone(), expression.evaluate(&variables).ok()?)))
                .collect();
            Value::Object(given)
        };
        match attempt.purpose {
            Purpose::Act | Purpose::Join => called.args.clone(),
            Purpose::Status | Purpose::Baseline => {
                contract.status.as_ref().map(|status| over(&status.args)).unwrap_or_default()
            }
            Purpose::Reverse => contract.reverse.as_ref().map(|reverse| over(&reverse.args)).unwrap_or_default(),
            Purpose::Evidence => {
                let item = attempt.item.and_then(|item| contract.evidence.get(item as usize));
                item.map(|reading| over(&reading.args)).unwrap_or_default()
            }
        }
    }
}

/// What came of each attempt of a recorded call, with the tool it went to.
pub fn reports(events: &[amends_core::Event], call: &str) -> Option<Vec<Sent>> {
    use amends_core::Fact;
    let mut known = false;
    let mut tools = BTreeMap::new();
    let mut reports = Vec::new();
    for event in events.iter().filter(|event| event.fact.call().is_some_and(|of| of.as_str() == call)) {
        known = true;
        let (attempt, report) = match &event.fact {
            Fact::AttemptStarted { attempt, tool, .. } => {
                tools.insert(attempt, tool);
                continue;
            }
            Fact::AttemptEnded { attempt, report, .. } => (attempt, Some((**report).clone())),
            // What was judged then was that nobody answered, and so it is again.
            Fact::AttemptTimedOut { attempt, .. } => (attempt, None),
            Fact::AttemptOrphaned { attempt, .. } => {
                (attempt, Some(Report::silent(Failure::of(Code::ConnectionLost), Certainty::InDoubt)))
            }
            _ => continue,
        };
        reports.extend(tools.get(attempt).map(|tool| ((*tool).clone(), report)));
    }
    known.then_some(reports)
}
