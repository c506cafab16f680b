//! Whether the upstreams start, take a greeting and list their tools.

use std::time::Duration;

use amends_gateway::Config;
use amends_gateway::config::Reach;
use anyhow::Result;

use super::finding::Finding;
use crate::cli::live::{self, Absence, Presence, Seen};

/// An upstream that takes longer to start than this makes agents wait.
const SLOW_MS: u64 = 5_000;
/// How many of an upstream's last words are shown.
const WORDS_MAX: usize = 5;

pub(super) async fn look(config: &Config, patience: Duration) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for (name, upstream) in &config.upstreams {
        if let Reach::Stdio { env_pass, .. } = &upstream.reach {
            for variable in env_pass.iter().filter(|variable| std::env::var_os(variable).is_none()) {
                found.push(Finding::warn(
                    &format!("upstream {name}"),
                    format!("`env_pass` names `{variable}`, which is not set here"),
                    "set it in the environment that `amends` is started in",
                ));
            }
        }
    }
    if config.upstreams.is_empty() {
        found.push(Finding::warn(
            "upstreams",
            "none is declared, so no tool is served",
            "add `[upstreams.NAME]`, or run `amends init`",
        ));
        return Ok(found);
    }
    for (name, seen) in live::look(config.clone(), patience).await? {
        let about = format!("upstream {name}");
        found.push(match seen {
            Seen::Up(presence) => up(&about, &presence),
            Seen::Down(absence) => down(&about, &absence),
        });
    }
    Ok(found)
}

fn up(about: &str, presence: &Presence) -> Finding {
    let Presence { software, era, greeted_ms, listed_ms, tools } = presence;
    let software = software.as_deref().unwrap_or("it");
    let words = format!(
        "{software} answers: {era}, {} tools; greeted in {greeted_ms} ms, listed in {listed_ms} ms",
        tools.len()
    );
    if tools.is_empty() {
        return Finding::warn(about, words, "it has no tools, or `expose` and `hide` leave none");
    }
    if greeted_ms + listed_ms > SLOW_MS {
        return Finding::warn(about, words, "it is slow to start; an agent that comes first waits for it");
    }
    Finding::ok(about, words)
}

fn down(about: &str, absence: &Absence) -> Finding {
    let mut words = format!("it does not answer: {}", absence.reason);
    let last: Vec<&str> = absence.last_words.iter().rev().take(WORDS_MAX).rev().map(String::as_str).collect();
    // Its last words may be part of the reason already.
    if !last.is_empty() && !last.iter().all(|line| absence.reason.contains(line)) {
        words.push_str(&format!("; it said last: {}", last.join(" | ")));
    }
    Finding::bad(
        about,
        words,
        "run its command by hand, in an environment as bare as the one it gets: see `env` and `env_pass`",
    )
}
