//! The tools, which answer what is written.

use std::collections::BTreeMap;

use amends_core::expression::Expression;
use amends_core::{Attempt, Purpose, Report};
use serde_json::{Map, Value};

use super::answer::payload;
use super::expect::same;
use super::telling::Telling;
use super::{AnswerSpec, Mismatch, Sent};

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
            written.extend(again(answer, call, &recorded)?);
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
        let Some(at) = self.answer_for(attempt, &args) else {
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
            // What was recorded was asked of what the tool said then.
            report.happened = report.happened.or_else(|| said.and_then(|said| said.as_bool()));
        }
        let intention = self.calls.get(&attempt.id.call).and_then(|called| called.intention.clone());
        if let Some(intention) = intention.filter(|_| attempt.purpose == Purpose::Act && report.failure.is_none()) {
            self.kept.insert(intention, body.clone());
        }
        self.bodies.insert(attempt.id.clone(), body);
        let took_ms = answer.took.map_or(TOOK_MS, |span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX));
        self.later(took_ms, attempt.id.clone(), report);
    }

    /// Which of the answers a call gets: the first of its tool, or of those that name its arguments, where others are made at the same
    /// time and nobody can say which comes first.
    fn answer_for(&self, attempt: &Attempt, args: &Value) -> Option<usize> {
        let of_tool = |answer: &AnswerSpec| answer.tool == attempt.tool.as_str();
        let fits = |answer: &AnswerSpec| of_tool(answer) && answer.with.as_ref().is_none_or(|with| same(with, args));
        let sibling = self.calls.get(&attempt.id.call).is_some_and(|called| called.sibling);
        let own = self.answers.iter().position(fits).filter(|_| sibling);
        own.or_else(|| self.answers.iter().position(of_tool))
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

/// The answers that say again what came of a call's attempts to the answer's tool. What was asked of other tools for it, such as
/// whether it happened, is written as their answer.
fn again(answer: &AnswerSpec, call: &str, recorded: &[Sent]) -> Result<Vec<AnswerSpec>, String> {
    let tool = &answer.tool;
    let Some(first) = recorded.first() else {
        return Err(format!("nothing was ever sent for the call `{call}`"));
    };
    let own: Vec<&Sent> = recorded.iter().filter(|sent| sent.tool.as_str() == tool).collect();
    if own.is_empty() {
        let first = &first.tool;
        return Err(format!("the answer of `{tool}` is that of `{call}`, which called `{first}` and not `{tool}`"));
    }
    let mut again = Vec::new();
    for Sent { report, gives, body, .. } in own {
        let result = answer.result.clone().or_else(|| body.clone());
        if *gives && result.is_none() {
            return Err(format!(
                "what `{call}` gave is not in the export: write it in `result`, or export with `--answers` while the ledger keeps it"
            ));
        }
        let report = report.clone().map(Box::new);
        again.push(AnswerSpec { timeout: report.is_none(), report, result, ..answer.clone() });
    }
    Ok(again)
}
