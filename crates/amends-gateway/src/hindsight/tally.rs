//! What is counted over all sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use amends_core::dispatcher::redecide::{Beyond, CallPath};
use amends_core::{CallId, Rules, Timestamp, ToolName, UpstreamName, Verdict};

/// How many of the slowest calls are named.
const WORST_MAX: usize = 5;

/// What a change would have done.
#[derive(Debug, Default)]
pub struct WhatIf {
    /// The file of the changed rules.
    pub file: String,
    /// How far back was looked.
    pub since: Timestamp,
    /// How many sessions there were.
    pub sessions: u64,
    /// All calls that were compared.
    pub all: Tally,
    /// The same by tool, and by the verdict of the last failed attempt.
    pub by: BTreeMap<(String, &'static str), Tally>,
    /// How calls end otherwise: from, to, how many, and some of them.
    pub otherwise: BTreeMap<(String, String), Named>,
    /// Why calls go beyond what was recorded.
    pub beyond: BTreeMap<String, Named>,
    /// Why sessions could not be decided again, and how many calls they have.
    pub not_decidable: BTreeMap<String, u64>,
    /// The tools that the rules name and nobody called.
    pub not_called: Vec<String>,
    /// How many calls had rules of which release, where a fragment would be released in its place: what it does not repeat of
    /// that release would be dropped, and is taken as it was here.
    pub released: BTreeMap<u64, u64>,
    /// What was observed.
    pub observed: Observed,
    /// The rules that each tool had last.
    pub had: BTreeMap<ToolName, (UpstreamName, Arc<Rules>)>,
}

/// A number of calls, and some of them by name.
#[derive(Debug, Default)]
pub struct Named {
    /// How many.
    pub calls: u64,
    /// Some of them.
    pub examples: Vec<CallId>,
}

/// What was observed, whatever the change.
#[derive(Debug, Default)]
pub struct Observed {
    /// How often each verdict was given, by tool.
    pub verdicts: BTreeMap<(String, &'static str), u64>,
    /// The failures that nothing recognised, by tool.
    pub unclassified: BTreeMap<String, u64>,
    /// The calls whose agent waited longest, the worst first.
    pub worst: Vec<(u64, CallId, String)>,
}

/// The numbers of some calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// How many were compared.
    pub calls: u64,
    /// How many end the same.
    pub same: u64,
    /// How many end otherwise.
    pub otherwise: u64,
    /// How many go beyond what was recorded.
    pub beyond: u64,
    /// How many are still open.
    pub open: u64,
    /// How many sends fewer there are.
    pub sends_fewer: u64,
    /// How many sends more there are.
    pub sends_more: u64,
    /// How many questions to people fewer.
    pub asked_fewer: u64,
    /// How many more.
    pub asked_more: u64,
    /// How many milliseconds less agents wait, over all calls.
    pub waits_less_ms: u64,
    /// How many more.
    pub waits_more_ms: u64,
}

impl Tally {
    fn add(&mut self, was: &CallPath, is: Option<&CallPath>, beyond: bool) {
        self.calls += 1;
        let Some(is) = is.filter(|_| was.end.is_some()) else {
            self.open += 1;
            return;
        };
        // What is known of a call that goes beyond the record: it is sent, or somebody is asked, at least so often.
        let less = |was: u64, is: u64| if beyond { 0 } else { was.saturating_sub(is) };
        let (sends, asked) = ((u64::from(was.sends), u64::from(is.sends)), (u64::from(was.asked), u64::from(is.asked)));
        self.sends_fewer += less(sends.0, sends.1);
        self.asked_fewer += less(asked.0, asked.1);
        if beyond {
            self.beyond += 1;
            return;
        }
        self.sends_more += sends.1.saturating_sub(sends.0);
        self.asked_more += asked.1.saturating_sub(asked.0);
        if let (Some(was), Some(is)) = (was.told_after_ms, is.told_after_ms) {
            self.waits_less_ms += was.saturating_sub(is);
            self.waits_more_ms += is.saturating_sub(was);
        }
        if was.end == is.end {
            self.same += 1;
        } else {
            self.otherwise += 1;
        }
    }
}

impl WhatIf {
    /// Counts one call.
    pub(super) fn add(
        &mut self,
        call: &CallId,
        was: &CallPath,
        is: Option<&CallPath>,
        beyond: Option<&Beyond>,
        examples: usize,
    ) {
        let last = was.judged.last().map_or("-", |(verdict, _)| verdict.as_str());
        self.all.add(was, is, beyond.is_some());
        self.by.entry((was.tool.to_string(), last)).or_default().add(was, is, beyond.is_some());
        let ended = was.end.zip(is);
        match (beyond, ended) {
            (Some(beyond), Some(_)) => self.beyond.entry(beyond.words()).or_default().add(call, examples),
            (None, Some((end, is))) if is.end != Some(end) => {
                let to =
                    is.end.map_or_else(|| "still open".to_owned(), amends_core::dispatcher::redecide::CallEnd::words);
                self.otherwise.entry((end.words(), to)).or_default().add(call, examples);
            }
            _ => {}
        }
    }

    /// Looks at one call as it was.
    pub(super) fn observe(&mut self, call: &CallId, path: &CallPath) {
        for (verdict, _) in &path.judged {
            *self.observed.verdicts.entry((path.tool.to_string(), verdict.as_str())).or_default() += 1;
            if *verdict == Verdict::Unclassified {
                *self.observed.unclassified.entry(path.tool.to_string()).or_default() += 1;
            }
        }
        if let Some(waited) = path.told_after_ms {
            let worst = &mut self.observed.worst;
            let at = worst.partition_point(|(other, ..)| *other >= waited);
            worst.insert(at, (waited, call.clone(), path.tool.to_string()));
            worst.truncate(WORST_MAX);
        }
    }
}

impl Named {
    fn add(&mut self, call: &CallId, examples: usize) {
        self.calls += 1;
        if self.examples.len() < examples {
            self.examples.push(call.clone());
        }
    }
}
