//! Tools are pinned to what they were when they were first seen, so that one that changes later is noticed: a description is
//! read by a model, and a changed one may ask for other things than the one somebody looked at.

mod definition;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use amends_core::{Digest, Dispatcher, Drift, Gates, Input, Principal, Refusal, RefusalKind, ToolName, UpstreamName};
use amends_ledger::{Append, Definition, Error, Ledger, PinnedTool, digest, keyed_digest};
use amends_wire::mcp::ToolListing;
use amends_wire::mcp::lists::{Entry, Kind};
use amends_wire::{Object, Splice};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::catalogue::ServedTool;
use crate::clock;
use crate::gateway::Gateway;
use crate::listing;
use crate::mint;
use crate::router::names;
use crate::upstream::Upstream;

/// How many tools of one upstream are pinned.
const PINS_MAX: usize = 2_000;
/// How often the pins are looked at anew when another process changed one at the same time.
const TRIES: usize = 3;
/// How often a gateway looks whether somebody approved a tool that drifted.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What is done about a tool that is no longer what it was pinned to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PinMode {
    /// It is recorded, and the tool is served as it is.
    #[default]
    Warn,
    /// It is recorded, its calls are refused, and agents go on reading what it was, until somebody approves what it is.
    Refuse,
}

/// The tools of this gateway that are not what they were pinned to, and are not called.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    refused: RwLock<HashMap<UpstreamName, HashMap<String, Digest>>>,
    any: AtomicBool,
    /// The lists that were found to be what is pinned, so that the same list need not be compared again.
    known: RwLock<HashMap<UpstreamName, Digest>>,
    /// What was done about drifts when each upstream was last listed.
    modes: RwLock<HashMap<UpstreamName, PinMode>>,
}

impl Pins {
    /// The refusal of a call to a tool that is not what it was pinned to.
    pub(crate) fn refusal(&self, tool: &ServedTool) -> Option<Refusal> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let held = self.refused.read().unwrap_or_else(PoisonError::into_inner);
        held.get(&tool.upstream.name)?.get(&tool.local)?;
        let words = format!(
            "`{}` is no longer what it was when it was approved; nothing is sent until an operator has looked at it",
            tool.name
        );
        Some(Refusal::of(RefusalKind::SchemaDrift, words))
    }

    fn is_known(&self, upstream: &UpstreamName, whole: &Digest) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(upstream) == Some(whole)
    }

    fn know(&self, upstream: &UpstreamName, whole: Option<Digest>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        match whole {
            Some(whole) => drop(known.insert(upstream.clone(), whole)),
            None => drop(known.remove(upstream)),
        }
    }

    fn mode(&self, upstream: &UpstreamName) -> Option<PinMode> {
        self.modes.read().unwrap_or_else(PoisonError::into_inner).get(upstream).copied()
    }

    fn refuse(&self, upstream: &UpstreamName, tools: HashMap<String, Digest>) {
        let mut held = self.refused.write().unwrap_or_else(PoisonError::into_inner);
        if tools.is_empty() {
            held.remove(upstream);
        } else {
            held.insert(upstream.clone(), tools);
        }
        self.any.store(!held.is_empty(), Ordering::Release);
    }

    fn refused(&self) -> HashMap<UpstreamName, HashMap<String, Digest>> {
        self.refused.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Takes the tools that an upstream lists into the catalogue, after they were compared with what is pinned; gives the lists of
/// ours that are different now.
pub async fn take_in(gateway: &Gateway, upstream: &Arc<Upstream>, entries: Vec<Entry>) -> Result<Vec<Kind>, Error> {
    let mode = upstream.config.pin;
    gateway.pins.modes.write().unwrap_or_else(PoisonError::into_inner).insert(upstream.name.clone(), mode);
    let whole = digest_of(&entries);
    let listings: Vec<ToolListing> = entries.iter().filter_map(|entry| ToolListing::parse(&entry.raw)).collect();
    let found = match look(gateway, upstream, &listings, &whole).await {
        Ok(found) => found,
        Err(error) if upstream.config.pin == PinMode::Warn => {
            tracing::warn!(upstream = %upstream.name, %error, "its tools could not be compared with what is pinned");
            Found::default()
        }
        Err(error) => return Err(error),
    };
    if upstream.config.pin == PinMode::Warn || found.drifted.is_empty() {
        let changed = gateway.catalogue.update(upstream, Kind::Tools, entries);
        // Only now may it be called: with the schemas that were compared.
        gateway.pins.refuse(&upstream.name, HashMap::new());
        return Ok(changed);
    }
    let refused = found.drifted.iter().map(|(tool, drifted)| (tool.clone(), drifted.seen.clone())).collect();
    gateway.pins.refuse(&upstream.name, refused);
    let shown = entries.into_iter().filter_map(|entry| found.shown(entry)).collect();
    Ok(gateway.catalogue.update(upstream, Kind::Tools, shown))
}

/// A digest of a whole list, byte for byte.
fn digest_of(entries: &[Entry]) -> Digest {
    let raw: Vec<&str> = entries.iter().map(|entry| entry.raw.get()).collect();
    digest(raw.join("\n").as_bytes())
}

/// The result of an upstream's `tools/list` as agents may read it: with what was approved of a tool that is refused. All other
/// bytes stay as they are.
pub(crate) fn as_approved(gateway: &Gateway, upstream: &Upstream, result: String) -> String {
    let Some(refused) = gateway.pins.refused().remove(&upstream.name) else { return result };
    let Some(tools) = Object::parse(&result).and_then(|result| result.get("tools")) else { return result };
    let entries: Vec<&RawValue> = serde_json::from_str(tools.get()).unwrap_or_default();
    let listing = gateway.catalogue.now();
    let served: HashMap<&str, &str> = listing
        .tools()
        .filter(|tool| tool.upstream.name == upstream.name)
        .map(|tool| (&*tool.local, &*tool.entry))
        .collect();
    let shown = entries.iter().filter_map(|entry| match ToolListing::parse(entry) {
        Some(tool) if refused.contains_key(&tool.name) => served.get(tool.name.as_str()).copied(),
        _ => Some(entry.get()),
    });
    let shown = format!("[{}]", shown.collect::<Vec<_>>().join(","));
    let mut splice = Splice::new(&result);
    match splice.replace(tools.get(), shown) {
        Ok(()) => splice.finish(),
        Err(_) => result.clone(),
    }
}

/// What came of comparing a list with what is pinned.
#[derive(Debug, Default)]
struct Found {
    /// The tools that are something else, by their names over there.
    drifted: HashMap<String, Drifted>,
    /// How the pins change.
    keep: Vec<PinnedTool>,
    /// What was not recorded before.
    news: Vec<Drift>,
}

#[derive(Debug)]
struct Drifted {
    seen: Digest,
    /// What agents go on reading, where that was kept.
    pinned: Option<String>,
}

impl Found {
    /// What is served for an entry: what is pinned where it drifted, nothing where that is not known.
    fn shown(&self, entry: Entry) -> Option<Entry> {
        let Some(drifted) = self.drifted.get(&entry.key) else { return Some(entry) };
        let raw = RawValue::from_string(drifted.pinned.clone()?).ok()?;
        Some(Entry { raw, ..entry })
    }
}

/// Compares a list with what is pinned, and pins what is seen for the first time.
async fn look(
    gateway: &Gateway,
    upstream: &Upstream,
    listings: &[ToolListing],
    whole: &Digest,
) -> Result<Found, Error> {
    if gateway.pins.is_known(&upstream.name, whole) {
        return Ok(Found::default());
    }
    let place = place(gateway, upstream);
    let served = served_names(gateway, upstream);
    for _ in 0..TRIES {
        let held = gateway.ledger.pins(Some(&place), PINS_MAX).await?;
        let mut found = compare(&place, upstream, &served, listings, held);
        record(gateway, upstream, std::mem::take(&mut found.news)).await?;
        let keeping: Vec<_> = found.keep.drain(..).map(|pin| gateway.ledger.keep_pin(pin)).collect();
        let kept = futures_util::future::try_join_all(keeping).await?;
        if kept.into_iter().all(|kept| kept) {
            gateway.pins.know(&upstream.name, found.drifted.is_empty().then(|| whole.clone()));
            return Ok(found);
        }
    }
    Err(Error::Unavailable { reason: "its pinned tools are being changed by others all the time".into() })
}

fn compare(
    place: &Digest,
    upstream: &Upstream,
    names: &HashMap<String, String>,
    listings: &[ToolListing],
    held: Vec<PinnedTool>,
) -> Found {
    let mut held: HashMap<String, PinnedTool> = held.into_iter().map(|pin| (pin.tool.clone(), pin)).collect();
    let mut room = PINS_MAX.saturating_sub(held.len());
    let (mut found, mut looked_at) = (Found::default(), HashSet::new());
    for listing in listings {
        if !looked_at.insert(listing.name.as_str()) {
            continue;
        }
        let says = definition::of(listing, clock::now());
        let served = names.get(&listing.name).cloned();
        let served = served.unwrap_or_else(|| names::served(&upstream.config.prefix, &listing.name));
        match held.remove(&listing.name) {
            None if room == 0 => {
                tracing::warn!(upstream = %upstream.name, tool = listing.name, "too many tools; this one is not pinned");
                found.drifted.insert(listing.name.clone(), Drifted { seen: says.digest, pinned: None });
            }
            None => {
                room -= 1;
                found.keep.push(PinnedTool {
                    place: place.clone(),
                    upstream: upstream.name.to_string(),
                    tool: listing.name.clone(),
                    served,
                    version: 1,
                    pinned: says,
                    seen: None,
                });
            }
            Some(pin) if pin.pinned.digest == says.digest => {
                if pin.seen.is_some() || pin.served != served {
                    found.keep.push(PinnedTool { seen: None, served, version: pin.version + 1, ..pin });
                }
            }
            Some(pin) => {
                let (seen, pinned) = (says.digest.clone(), pin.pinned.text.clone());
                found.drifted.insert(listing.name.clone(), Drifted { seen, pinned });
                if pin.seen.as_ref().is_none_or(|seen| seen.digest != says.digest) {
                    found.news.push(Drift {
                        upstream: upstream.name.clone(),
                        tool: ToolName::new(served.as_str()),
                        pinned: pin.pinned.digest.clone(),
                        seen: says.digest.clone(),
                    });
                    found.keep.push(PinnedTool { seen: Some(says), served, version: pin.version + 1, ..pin });
                }
            }
        }
    }
    found
}

/// The names under which an upstream's tools are served already.
fn served_names(gateway: &Gateway, upstream: &Upstream) -> HashMap<String, String> {
    let listing = gateway.catalogue.now();
    let of_it = listing.tools().filter(|tool| tool.upstream.name == upstream.name);
    of_it.map(|tool| (tool.local.clone(), tool.name.to_string())).collect()
}

/// Records drifts in a session of the gateway's own. This comes before the pins say so: a drift may be recorded twice, and is
/// never left out.
async fn record(gateway: &Gateway, upstream: &Upstream, drifts: Vec<Drift>) -> Result<(), Error> {
    if drifts.is_empty() {
        return Ok(());
    }
    let inputs = drifts.iter().map(|drift| Input::Drift(Box::new(drift.clone())));
    let names = append(&*gateway.ledger, "gateway", inputs).await?;
    names.into_iter().for_each(|name| gateway.metrics.event(name));
    for drift in &drifts {
        gateway.metrics.drifted(&drift.tool, &drift.upstream);
        let refused = upstream.config.pin == PinMode::Refuse;
        tracing::warn!(upstream = %drift.upstream, tool = %drift.tool, refused, "it is no longer what it was pinned to");
    }
    Ok(())
}

/// Appends a session of its own with those inputs, and gives the names of its events.
async fn append(
    ledger: &dyn Ledger,
    door: &str,
    inputs: impl Iterator<Item = Input>,
) -> Result<Vec<&'static str>, Error> {
    let (session, now) = (mint::session(), clock::now());
    let mut dispatcher = Dispatcher::open(session.clone(), mint::seed(), Principal::from("amends"), door);
    let step = |input| dispatcher.handle(now, &Gates::default(), input).events;
    let events: Vec<_> = inputs.flat_map(step).collect();
    let names = events.iter().map(|event| event.fact.name()).collect();
    ledger.append(Append::of(session, 1, 0, events)).await?;
    Ok(names)
}

/// Pins a tool to what it was last seen to be, if it is still that. `false` where it changed in the meantime, or did not
/// drift at all.
pub async fn approve(ledger: &dyn Ledger, pin: PinnedTool, by: &str) -> Result<bool, Error> {
    let Some(seen) = pin.seen.clone() else { return Ok(false) };
    let drift = Drift {
        upstream: UpstreamName::new(pin.upstream.as_str()),
        tool: ToolName::new(pin.served.as_str()),
        pinned: pin.pinned.digest.clone(),
        seen: seen.digest.clone(),
    };
    append(ledger, "cli", [Input::Approval { drift: Box::new(drift), by: by.to_owned() }].into_iter()).await?;
    let pinned = Definition { at: clock::now(), ..seen };
    ledger.keep_pin(PinnedTool { version: pin.version + 1, pinned, seen: None, ..pin }).await
}

/// What tells an upstream from any other, as the pins name it.
fn place(gateway: &Gateway, upstream: &Upstream) -> Digest {
    keyed_digest(&gateway.secret, &[b"pin", upstream.identity().as_bytes()])
}

/// Lists an upstream's tools anew once somebody approved one of those that are refused, or wants it otherwise.
pub(crate) async fn follow(gateway: Weak<Gateway>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(gateway) = gateway.upgrade() else { return };
        for upstream in gateway.upstreams().values() {
            if !is_outdated(&gateway, upstream).await {
                continue;
            }
            match listing::refresh(&gateway, upstream, Kind::Tools, None).await {
                Ok(changed) => gateway.hub.lists_changed(changed.into_iter().collect()),
                Err(error) => {
                    tracing::warn!(upstream = %upstream.name, %error, "its tools cannot be looked at anew yet");
                }
            }
        }
    }
}

/// Whether what is refused of an upstream is not what should be.
async fn is_outdated(gateway: &Gateway, upstream: &Upstream) -> bool {
    if gateway.pins.mode(&upstream.name).is_some_and(|mode| mode != upstream.config.pin) {
        return true;
    }
    let Some(refused) = gateway.pins.refused().remove(&upstream.name) else { return false };
    match gateway.ledger.pins(Some(&place(gateway, upstream)), PINS_MAX).await {
        Ok(held) => held.iter().any(|pin| refused.get(&pin.tool) == Some(&pin.pinned.digest)),
        Err(error) => {
            tracing::warn!(%error, "whether a tool was approved cannot be told");
            false
        }
    }
}
