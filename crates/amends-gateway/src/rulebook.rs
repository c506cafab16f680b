//! The rules that are in force for a tool: one for each verdict and the codes that share it, and where each comes from.

use amends_core::contract::Contract;
use amends_core::playbook::Rule;
use amends_core::{Code, Compensation, EffectKind, Playbook, Verdict};
use serde_json::{Value, json};

use crate::config::{Released, Source};

/// One rule, and the codes of its verdict that it is for.
#[derive(Clone, Debug)]
pub struct Row {
    /// The verdict.
    pub verdict: Verdict,
    codes: Vec<Code>,
    /// The rule.
    pub rule: Rule,
    place: Option<(String, Option<usize>)>,
    /// The file of the release it stands in, rather than the configuration.
    released: Option<String>,
}

/// The rules for every verdict and code that can meet at a tool with that contract.
pub fn of(
    tool: &str,
    contract: &Contract,
    playbook: &Playbook,
    source: &Source,
    release: Option<&Released>,
) -> Vec<Row> {
    let release = release.map(|released| released.rules.source());
    let mut rows: Vec<Row> = Vec::new();
    for verdict in Verdict::ALL {
        for code in Code::ALL.into_iter().filter(|code| meets(*code, verdict, contract.effect)) {
            let rule = playbook.rule(verdict, code);
            let section = rule.origin.section(tool, verdict, code);
            let released = release.filter(|release| section.as_ref().is_some_and(|section| release.has(section)));
            let place = section.map(|section| (section.clone(), released.unwrap_or(source).line(&section)));
            let released = released.map(|release| release.origin().to_owned());
            let same = |row: &&mut Row| row.verdict == verdict && row.rule == *rule && row.place == place;
            match rows.iter_mut().find(same) {
                Some(row) => row.codes.push(code),
                None => rows.push(Row { verdict, codes: vec![code], rule: rule.clone(), place, released }),
            }
        }
    }
    rows
}

/// Whether an attempt that failed with that code can be judged so.
fn meets(code: Code, verdict: Verdict, effect: EffectKind) -> bool {
    use amends_core::Certainty::{InDoubt, NotProcessed, NotSent, Processed};
    let certainties = code.implies().map_or(vec![NotSent, NotProcessed, Processed, InDoubt], |only| vec![only]);
    certainties.into_iter().any(|certainty| Verdict::judge(code, certainty, effect) == verdict)
}

/// The table we ship, for any tool at all.
pub fn shipped() -> Vec<Row> {
    let contract = Contract::undeclared(0, 0, 0);
    of("", &contract, &Playbook::default(), &Source::of(String::new(), ""), None)
}

impl Row {
    /// Whether the file says so, rather than the table we ship.
    pub fn is_written(&self) -> bool {
        self.place.is_some()
    }

    /// The codes it is for.
    pub fn codes(&self) -> &[Code] {
        &self.codes
    }

    /// Where it stands: a section of the configuration or of a release; nothing for the table we ship.
    pub fn section(&self) -> Option<&str> {
        self.place.as_ref().map(|(section, _)| section.as_str())
    }

    /// The file of the release it stands in, rather than the configuration.
    pub fn release(&self) -> Option<&str> {
        self.released.as_deref()
    }

    /// It in a line.
    pub fn line(&self) -> String {
        let done = done(&self.rule.compensation);
        let codes: Vec<&str> = self.codes.iter().map(|code| code.as_str()).collect();
        let codes = if self.verdict == Verdict::InDoubt { "whatever the code".to_owned() } else { codes.join(", ") };
        let from = match &self.place {
            None => String::new(),
            Some((section, None)) => format!(" from [{section}]"),
            Some((section, Some(line))) => format!(" from [{section}], line {line}"),
        };
        let from = self.released.as_ref().map_or(from.clone(), |file| format!("{from} of {file}"));
        format!("{:<21} {done:<42} {codes}{from}", self.verdict.as_str())
    }

    /// It for programs, once for each code.
    pub fn to_json(&self) -> Vec<Value> {
        let ladder = match &self.rule.compensation {
            Compensation::RetryWithBackoff(ladder) | Compensation::Wait(ladder) => Some(ladder),
            _ => None,
        };
        let (section, line) = self.place.clone().map_or((None, None), |(section, line)| (Some(section), line));
        let one = |code: &Code| {
            let mut rule = json!({
                "verdict": self.verdict,
                "code": code,
                "class": code.class(),
                "compensation": self.rule.compensation.as_str(),
                "origin": self.rule.origin,
            });
            if let Some(ladder) = ladder {
                rule["backoff_ms"] = json!(ladder.backoff_ms);
                rule["jitter_percent"] = json!(ladder.jitter_percent);
                rule["max_attempts"] = json!(ladder.sends_max.map_or(ladder.backoff_ms.len() + 1, |max| max as usize));
            }
            if let Some(section) = &section {
                rule["section"] = json!(section);
            }
            if let Some(line) = line {
                rule["line"] = json!(line);
            }
            if let Some(file) = &self.released {
                rule["file"] = json!(file);
            }
            rule
        };
        self.codes.iter().map(one).collect()
    }
}

/// What a compensation does, in a few words.
pub fn done(compensation: &Compensation) -> String {
    let name = compensation.as_str();
    match compensation {
        Compensation::RetryWithBackoff(ladder) | Compensation::Wait(ladder) => {
            let waits: Vec<String> = ladder.backoff_ms.iter().map(|wait| span(*wait)).collect();
            format!("{name} {} ±{}%", waits.join(" "), ladder.jitter_percent)
        }
        Compensation::EscalateToHuman { queue } => format!("{name} {queue}"),
        Compensation::RefreshEvidence
        | Compensation::Reconcile
        | Compensation::IssueReversal
        | Compensation::DeprecateToolCall
        | Compensation::Surface
        | Compensation::FailFast => name.to_owned(),
    }
}

/// A length of time as a person would write it.
pub fn span(ms: u64) -> String {
    if !ms.is_multiple_of(1000) {
        return format!("{ms}ms");
    }
    let mut seconds = ms / 1000;
    if seconds < 120 {
        return format!("{seconds}s");
    }
    let mut parts = Vec::new();
    for (unit, length) in [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)] {
        // Hours read better than a day and some hours.
        if seconds >= length && !(unit == "d" && seconds < 2 * length) {
            parts.push(format!("{}{unit}", seconds / length));
            seconds %= length;
        }
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_people_write_them() {
        for (ms, said) in [
            (0, "0s"),
            (1800, "1800ms"),
            (80_000, "80s"),
            (600_000, "10m"),
            (86_400_000, "24h"),
            (86_365_000, "23h 59m 25s"),
            (7 * 86_400_000, "7d"),
        ] {
            assert_eq!(span(ms), said);
        }
    }
}
