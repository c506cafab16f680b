//! A proposal as it is written down, with its hash.

use std::path::Path;

use amends_core::{Code, Digest, Playbook, Verdict};
use amends_gateway::hindsight::{Change, Observed, WhatIf};
use amends_gateway::rulebook::done;
use amends_ledger::digest;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// A proposal whose hash fits what it says.
pub(in crate::cli) struct Proposal {
    value: Value,
}

impl Proposal {
    /// Gives a proposal its hash.
    pub(super) fn seal(mut value: Value) -> Result<Self> {
        value["hash"] = json!(hash(&value)?);
        Ok(Self { value })
    }

    /// Reads one, and refuses it where somebody changed it.
    pub(in crate::cli) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let value: Value =
            serde_json::from_str(&text).with_context(|| format!("`{}` is not a proposal", path.display()))?;
        ensure!(value["proposal"] == 1, "`{}` is not a proposal that this version understands", path.display());
        let stated = value["hash"].as_str().unwrap_or_default();
        let found = hash(&value)?;
        ensure!(stated == found.as_str(), "`{}` was changed after it was made; propose again", path.display());
        Ok(Self { value })
    }

    /// What it says.
    pub(in crate::cli) fn value(&self) -> &Value {
        &self.value
    }

    /// Its hash.
    pub(in crate::cli) fn hash(&self) -> Digest {
        Digest::new(self.value["hash"].as_str().unwrap_or_default())
    }
}

/// The digest of all but the hash itself; keys are in order whoever writes them.
fn hash(value: &Value) -> Result<Digest> {
    let mut value = value.clone();
    if let Some(object) = value.as_object_mut() {
        object.remove("hash");
    }
    Ok(digest(serde_json::to_string(&value)?.as_bytes()))
}

/// What was observed, for programs.
pub(super) fn observed(observed: &Observed) -> Value {
    let verdicts = observed.verdicts.iter();
    let verdicts: Vec<Value> =
        verdicts.map(|((tool, verdict), n)| json!({ "tool": tool, "verdict": verdict, "attempts": n })).collect();
    let worst = observed.worst.iter();
    let worst: Vec<Value> =
        worst.map(|(ms, call, tool)| json!({ "call": call, "tool": tool, "told_after_ms": ms })).collect();
    json!({ "verdicts": verdicts, "unclassified": observed.unclassified, "longest_waits": worst })
}

/// The rows of the rules' table that change, for each tool that was called.
pub(super) fn changes(found: &WhatIf, change: &Change) -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    for (tool, (upstream, had)) in &found.had {
        let Some(rules) = change.rules(tool, upstream, had)? else { continue };
        for verdict in Verdict::ALL {
            rows.extend(changed(tool.as_str(), verdict, &had.playbook, &rules.playbook, change));
        }
    }
    Ok(rows)
}

/// The codes of a verdict whose rule changes, those with the same change together.
fn changed(tool: &str, verdict: Verdict, was: &Playbook, is: &Playbook, change: &Change) -> Vec<Value> {
    let mut rows: Vec<(String, String, String, Vec<&'static str>)> = Vec::new();
    // Doubt outranks the code, so that one stands for all.
    let codes = Code::ALL.into_iter().filter(|code| code.verdict() == verdict);
    let codes: Vec<Code> = if verdict == Verdict::InDoubt { vec![Code::NetworkTimeout] } else { codes.collect() };
    for code in codes {
        let (old, new) = (was.rule(verdict, code), is.rule(verdict, code));
        if old == new {
            continue;
        }
        let row = (done(&old.compensation), done(&new.compensation), change.place(new.origin, tool, verdict, code));
        match rows.iter_mut().find(|(from, to, place, _)| (from, to, place) == (&row.0, &row.1, &row.2)) {
            Some((.., codes)) => codes.push(code.as_str()),
            None => rows.push((row.0, row.1, row.2, vec![code.as_str()])),
        }
    }
    let shown = rows.into_iter().map(|(from, to, place, codes)| {
        json!({ "tool": tool, "verdict": verdict, "codes": codes, "from": from, "to": to, "place": place })
    });
    shown.collect()
}
