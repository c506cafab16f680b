//! What is valid, and worth a second look.

use amends_core::contract::Contract;
use amends_core::playbook::Origin;
use amends_core::{Compensation, EffectKind};
use amends_gateway::Config;
use amends_gateway::config::{Reach, UpstreamConfig};
use amends_gateway::rulebook::{Row, span};

use super::doubt::resent_for;

/// What is worth a second look about a tool.
pub(super) fn of(config: &Config, upstream: Option<&UpstreamConfig>, contract: &Contract, rows: &[Row]) -> Vec<String> {
    let mut found = Vec::new();
    if upstream.is_none() {
        found.push("no upstream's prefix fits its name, so it is never served".to_owned());
    }
    doubt(upstream, contract, &mut found);
    others(config, contract, &mut found);
    time(contract, rows, &mut found);
    found
}

fn doubt(upstream: Option<&UpstreamConfig>, contract: &Contract, found: &mut Vec<String>) {
    if contract.effect == EffectKind::Write && contract.status.is_none() {
        found.push("a `write` without `status` or a key: every doubt goes to a person".to_owned());
    }
    if contract.status.is_some() && contract.settles_within_ms.is_none() {
        found.push("`status` without `settles_within`: its \"it did not happen\" never counts".to_owned());
    }
    let Some(key) = &contract.key else { return };
    let usable = resent_for(contract, key);
    if usable == 0 {
        found.push(format!(
            "the key's window of {} is over before a request is known to be dead: it is never sent again",
            span(key.window_ms)
        ));
    } else if usable < contract.deadline_ms {
        found.push(format!(
            "the key can be sent again for {} only, less than the deadline of {}",
            span(usable),
            span(contract.deadline_ms)
        ));
    }
    let child = upstream.is_some_and(|upstream| matches!(upstream.reach, Reach::Stdio { .. }));
    if child && !key.durable {
        found.push(
            "the key is not `durable`: it is not sent again once the upstream's process was restarted".to_owned(),
        );
    }
}

/// The tools that a contract rests on have to be declared for what they are.
fn others(config: &Config, contract: &Contract, found: &mut Vec<String>) {
    let is_read = |tool: &str| {
        let promised = || config.upstreams.values().find_map(|upstream| upstream.promised(tool));
        let effect = match config.tools.get(tool) {
            Some(declared) => declared.spec().effect.or_else(promised).unwrap_or_default(),
            None => promised()?,
        };
        Some(effect.is_read())
    };
    let reads = contract.status.iter().map(|status| ("status", &status.tool));
    let reads = reads.chain(contract.evidence.iter().map(|reading| ("evidence", &reading.tool)));
    for (part, tool) in reads {
        if is_read(tool) != Some(true) {
            found.push(format!("`{tool}`, named by `{part}`, is not declared as a `read`"));
        }
    }
    if let Some(reverse) = &contract.reverse {
        match is_read(&reverse.tool) {
            None => found.push(format!("`{}`, named by `reverse`, has no section of its own", reverse.tool)),
            Some(true) => found.push(format!("`{}`, named by `reverse`, is declared as a `read`", reverse.tool)),
            Some(false) => {}
        }
    }
}

fn time(contract: &Contract, rows: &[Row], found: &mut Vec<String>) {
    if contract.timeout_ms >= contract.deadline_ms {
        found.push("one attempt may take all of the `deadline`, so a timeout leaves no time for another".to_owned());
    }
    for row in rows.iter().filter(|row| row.rule.origin != Origin::Default) {
        if let Compensation::RetryWithBackoff(ladder) | Compensation::Wait(ladder) = &row.rule.compensation {
            let waits: u64 = ladder.backoff_ms.iter().sum();
            if waits >= contract.deadline_ms {
                found.push(format!(
                    "the waits for `{}` add up to {}, past the `deadline` of {}",
                    row.verdict.as_str(),
                    span(waits),
                    span(contract.deadline_ms)
                ));
            }
        }
    }
}
