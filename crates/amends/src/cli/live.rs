//! Looking at a configuration's upstreams while they run: they are started or greeted, list their tools, and are let go again.
//! Nothing is called, and nothing is recorded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::UpstreamName;
use amends_gateway::config::{AuthConfig, LedgerConfig, LedgerPlace};
use amends_gateway::upstream::{Greeting, Health, Upstream};
use amends_gateway::{Config, Gateway, open_ledger};
use anyhow::Result;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{guard, up};

/// How often it is looked whether an upstream has listed its tools.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What came of looking at an upstream.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    /// It answers.
    Up(Presence),
    /// It does not.
    Down(Absence),
}

/// An upstream that answers.
#[derive(Clone, Debug, Default)]
pub(super) struct Presence {
    /// What it calls itself, and its version.
    pub(super) software: Option<String>,
    /// How it speaks.
    pub(super) era: String,
    /// How long it took until it was greeted.
    pub(super) greeted_ms: u64,
    /// How long its lists took after that.
    pub(super) listed_ms: u64,
    /// Its tools, in the order of the names under which they are served.
    pub(super) tools: Vec<LiveTool>,
}

/// An upstream that does not answer.
#[derive(Clone, Debug)]
pub(super) struct Absence {
    /// Why, in words.
    pub(super) reason: String,
    /// The last lines of its standard error, for people.
    pub(super) last_words: Vec<String>,
}

/// A tool as it is served.
#[derive(Clone, Debug)]
pub(super) struct LiveTool {
    /// The name under which it is served.
    pub(super) served: String,
    /// Its name at its upstream.
    pub(super) local: String,
    /// What its upstream lists of it.
    pub(super) entry: Value,
}

/// Looks at every upstream of a configuration, each for at most that long.
pub(super) async fn look(config: Config, patience: Duration) -> Result<BTreeMap<String, Seen>> {
    // Nobody calls, so nobody is let in either.
    let auth = AuthConfig::default();
    let config = Config { ledger: LedgerConfig::at(LedgerPlace::Memory), auth, ..config };
    guard::appoint();
    let ledger = open_ledger(&config.ledger).await?;
    let (unasked_to, unasked) = mpsc::unbounded_channel();
    let gateway = Gateway::start(config, ledger, Greeting::Ours, unasked_to).await?;
    let follower = tokio::spawn(up::follow(gateway.clone(), unasked));
    let mut looks = JoinSet::new();
    for upstream in gateway.upstreams().values() {
        let (gateway, upstream) = (gateway.clone(), upstream.clone());
        looks.spawn(async move {
            let seen = match look_at(&gateway, &upstream, patience).await {
                Ok(presence) => Seen::Up(presence),
                Err(reason) => Seen::Down(Absence { reason, last_words: upstream.last_words() }),
            };
            (upstream.name.clone(), seen)
        });
    }
    let mut seen = BTreeMap::new();
    while let Some(look) = looks.join_next().await {
        let (name, found) = look?;
        seen.insert(name, found);
    }
    let seen = seen.into_iter().map(|(name, found)| (name.as_str().to_owned(), with_tools(&gateway, &name, found)));
    let seen = seen.collect();
    follower.abort();
    gateway.stop_upstreams().await;
    Ok(seen)
}

async fn look_at(gateway: &Arc<Gateway>, upstream: &Arc<Upstream>, patience: Duration) -> Result<Presence, String> {
    let began = Instant::now();
    let mut health = upstream.health();
    let settled = tokio::time::timeout(patience, health.wait_for(|health| !matches!(health, Health::Starting))).await;
    let settled = settled.map(|health| health.map(|health| health.clone()));
    let presence = match settled {
        Ok(Ok(Health::Ready { greeting, .. })) => presence(&greeting, began.elapsed()),
        Ok(Ok(Health::Down { reason })) => return Err(reason),
        Ok(Ok(Health::Starting) | Err(_)) => return Err("it was given up".into()),
        Err(_) => return Err(format!("it did not answer a greeting in {} s", patience.as_secs())),
    };
    let ready = Instant::now();
    while !gateway.catalogue.now().has_listed(&upstream.name) {
        if let Health::Down { reason } = &*upstream.health().borrow() {
            return Err(reason.clone());
        }
        if began.elapsed() > patience {
            return Err(format!("it did not list its tools in {} s", patience.as_secs()));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(Presence { listed_ms: ms(ready.elapsed()), ..presence })
}

/// The tools are taken once all have listed theirs: their names depend on each other.
fn with_tools(gateway: &Gateway, name: &UpstreamName, seen: Seen) -> Seen {
    let Seen::Up(presence) = seen else { return seen };
    let listing = gateway.catalogue.now();
    let own = listing.tools().filter(|tool| tool.upstream.name == *name);
    let tools = own.map(|tool| LiveTool {
        served: tool.name.as_str().to_owned(),
        local: tool.local.clone(),
        entry: serde_json::from_str(&tool.entry).unwrap_or_default(),
    });
    Seen::Up(Presence { tools: tools.collect(), ..presence })
}

/// What a greeting says of whoever gave it.
fn presence(greeting: &str, took: Duration) -> Presence {
    let said: Value = serde_json::from_str(greeting).unwrap_or_default();
    let info = said.get("serverInfo").or_else(|| said.pointer("/_meta/io.modelcontextprotocol~1serverInfo"));
    let software = info.and_then(|info| {
        let part = |key: &str| info.get(key).and_then(Value::as_str).unwrap_or_default();
        let named = format!("{} {}", part("name"), part("version")).trim().to_owned();
        (!named.is_empty()).then_some(named)
    });
    let era = match (said["protocolVersion"].as_str(), said["supportedVersions"].is_array()) {
        (Some(version), _) => format!("MCP {version}, with a session"),
        (None, true) => "MCP 2026-07-28 or later, without sessions".to_owned(),
        (None, false) => "no MCP greeting".to_owned(),
    };
    Presence { software, era, greeted_ms: ms(took), ..Presence::default() }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
