//! What we serve: the tools, prompts and resources of all upstreams, where each lives, and what governs the tools.

mod machines;
mod served;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use amends_core::{Digest, EffectKind, Rules, ToolName, UpstreamName};
use amends_wire::mcp::lists::{self, Entry, Kind};
use amends_wire::mcp::mirror::{MirrorError, Mirrors};
use amends_wire::mcp::{Era, ToolListing, tools};
use amends_wire::schema::Schema;

pub use machines::ServedMachines;
pub(crate) use machines::{names, schema};
pub use served::{Listing, Served, ServedTemplate};

use crate::config::{Config, ConfigError};
use crate::gateway::Upstreams;
use crate::policy::Shape;
use crate::router::names::{self, Offered};
use crate::upstream::Upstream;

/// What we serve, replaced as a whole when an upstream lists its own anew. What an upstream listed last is kept while it is away.
#[derive(Debug)]
pub struct Catalogue {
    held: Mutex<Held>,
    listing: RwLock<Arc<Listing>>,
}

/// What the catalogue is put together from.
#[derive(Debug)]
struct Held {
    config: Arc<Config>,
    /// Whose lists are taken. One that was replaced may still be listing.
    here: BTreeMap<UpstreamName, Weak<Upstream>>,
    offers: BTreeMap<UpstreamName, Offer>,
    /// Whether walks were met that go by what was declared of their machine before.
    kept: bool,
}

/// What one upstream listed last.
#[derive(Debug)]
struct Offer {
    upstream: Arc<Upstream>,
    tools: Vec<ToolListing>,
    lists: BTreeMap<Kind, Vec<Entry>>,
}

/// One tool we serve.
#[derive(Debug)]
pub struct ServedTool {
    /// Its name as agents know it.
    pub name: ToolName,
    /// Its name at its upstream.
    pub local: String,
    /// Where it lives.
    pub upstream: Arc<Upstream>,
    /// What governs its calls.
    pub rules: Arc<Rules>,
    /// The digest of that.
    pub rules_hash: Digest,
    /// What it takes, where it says so and we understand it.
    pub input: Option<Schema>,
    /// What it gives, where it says so and we understand it.
    pub output: Option<Schema>,
    /// What it takes, in the types of policies.
    pub shape: Shape,
    /// The arguments that it wants repeated in headers.
    pub mirrors: Mirrors,
    /// Its entry in a list, as its upstream wrote it but for the name.
    pub entry: String,
    /// How its upstream wrote it.
    raw: String,
}

impl Catalogue {
    /// An empty catalogue of those upstreams under that configuration.
    pub fn new(config: Arc<Config>, upstreams: &Upstreams) -> Self {
        let held = Held { config, here: weak(upstreams), offers: BTreeMap::new(), kept: false };
        let catalogue = Self { held: Mutex::new(held), listing: RwLock::default() };
        // Machines are served before any upstream has listed anything.
        catalogue.rebuild(&catalogue.held(), false);
        catalogue
    }

    /// What is served now.
    pub fn now(&self) -> Arc<Listing> {
        self.listing.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over a list of an upstream; gives the lists of ours that are different now.
    pub fn update(&self, upstream: &Arc<Upstream>, kind: Kind, entries: Vec<Entry>) -> Vec<Kind> {
        let mut held = self.held();
        if held.here.get(&upstream.name).is_none_or(|here| here.as_ptr() != Arc::as_ptr(upstream)) {
            return Vec::new();
        }
        let fresh = || Offer { upstream: upstream.clone(), tools: Vec::new(), lists: BTreeMap::new() };
        let offer = held.offers.entry(upstream.name.clone()).or_insert_with(fresh);
        offer.upstream = upstream.clone();
        if kind == Kind::Tools {
            let listings = entries.iter().filter_map(|entry| ToolListing::parse(&entry.raw));
            offer.tools = listings.filter(|listing| is_callable(upstream, listing)).collect();
        }
        offer.lists.insert(kind, if kind == Kind::Tools { Vec::new() } else { entries });
        self.rebuild(&held, false)
    }

    /// Goes on with those upstreams under that configuration; gives the lists of ours that are different now. An upstream that
    /// was replaced by another process is served on until that one has listed its own.
    pub fn reload(&self, config: Arc<Config>, upstreams: &Upstreams) -> Vec<Kind> {
        let mut held = self.held();
        held.config = config;
        held.here = weak(upstreams);
        held.offers.retain(|name, offer| match upstreams.get(name) {
            Some(upstream) => {
                if offer.upstream.is_same_link(upstream) {
                    offer.upstream = upstream.clone();
                }
                true
            }
            None => false,
        });
        self.rebuild(&held, true)
    }

    /// Stops serving an upstream that was replaced, whether or not the one in its place has listed anything; gives the lists of
    /// ours that are different now.
    pub fn hand_over(&self, from: &Weak<Upstream>) -> Vec<Kind> {
        let mut held = self.held();
        let Held { here, offers, .. } = &mut *held;
        for (name, offer) in offers {
            let next = here.get(name).and_then(Weak::upgrade);
            if let Some(next) = next.filter(|_| Arc::as_ptr(&offer.upstream) == from.as_ptr()) {
                offer.upstream = next;
            }
        }
        self.rebuild(&held, false)
    }

    /// A walk was met that goes by what was declared of its machine before: it is to be moved though that has no tools any more.
    /// Gives the lists of ours that are different now.
    pub fn keep(&self) -> Vec<Kind> {
        let mut held = self.held();
        if held.kept {
            return Vec::new();
        }
        held.kept = true;
        self.rebuild(&held, false)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts together what the upstreams offer. They are taken in the order of their names, so that who was listed first changes
    /// nothing.
    fn rebuild(&self, held: &Held, other_rules: bool) -> Vec<Kind> {
        let Held { config, offers, kept, .. } = held;
        let before = self.now();
        let mut listing = Listing::default();
        let named = |names: fn(&Offer) -> Vec<&str>| -> Vec<Vec<Option<String>>> {
            let offered = offers.iter().map(|(upstream, offer)| Offered {
                upstream: upstream.as_str(),
                prefix: &offer.upstream.config.prefix,
                names: names(offer),
            });
            names::assign(&offered.collect::<Vec<_>>())
        };
        let tool_names = named(|offer| offer.shown().map(|tool| tool.name.as_str()).collect());
        let prompt_names = named(|offer| offer.entries(Kind::Prompts).iter().map(|it| it.key.as_str()).collect());
        for ((upstream, offer), (tools, prompts)) in offers.iter().zip(tool_names.into_iter().zip(prompt_names)) {
            for kind in offer.lists.keys() {
                listing.listed.insert((upstream.clone(), *kind));
            }
            for (tool, name) in offer.shown().zip(tools) {
                let Some(name) = name else {
                    tracing::warn!(%upstream, tool = tool.name, "the tool is not served: there is no name left for it");
                    continue;
                };
                match serve(config, &offer.upstream, tool, name, &before, other_rules) {
                    Ok(tool) => drop(listing.tools.insert(tool.name.clone(), tool)),
                    Err(error) => tracing::error!(tool = tool.name, %error, "the tool is not served"),
                }
            }
            for (entry, name) in offer.entries(Kind::Prompts).iter().zip(prompts) {
                let Some(name) = name else {
                    tracing::warn!(%upstream, prompt = entry.key, "the prompt is not served: there is no name left for it");
                    continue;
                };
                let text = if name == entry.key {
                    entry.raw.get().to_owned()
                } else {
                    lists::renamed(Kind::Prompts, &entry.raw, &name)
                };
                let local = entry.key.clone();
                listing.add_prompt(Served { key: name, local, upstream: offer.upstream.clone(), entry: text });
            }
            for entry in offer.entries(Kind::Resources) {
                if !listing.add_resource(Served::as_it_is(entry, &offer.upstream)) {
                    tracing::warn!(%upstream, uri = entry.key, "another upstream comes first with this resource");
                }
            }
            for entry in offer.entries(Kind::Templates) {
                if !listing.add_template(Served::as_it_is(entry, &offer.upstream)) {
                    tracing::warn!(%upstream, template = entry.key, "another upstream comes first with this template");
                }
            }
        }
        listing.machines = ServedMachines::of(config, &listing.tools, *kept);
        let changed = listing.changed_since(&before);
        *self.listing.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(listing);
        changed
    }
}

/// The tool of that name as it is served: the one from before where nothing about it is different, since its schemas are
/// compiled once and not whenever some other upstream lists something.
fn serve(
    config: &Config,
    upstream: &Arc<Upstream>,
    listing: &ToolListing,
    name: String,
    before: &Listing,
    other_rules: bool,
) -> Result<Arc<ServedTool>, ConfigError> {
    let same = |known: &&Arc<ServedTool>| Arc::ptr_eq(&known.upstream, upstream) && known.raw == listing.raw.get();
    let known = before.find(&name).filter(same);
    if let Some(known) = known.filter(|_| !other_rules) {
        return Ok(known.clone());
    }
    // A hint is the upstream's own word; it counts only where the operator vouches for the upstream.
    let hints = listing.annotations;
    let hinted = match (hints.read_only, hints.idempotent) {
        (Some(true), _) => EffectKind::Read,
        (_, Some(true)) => EffectKind::Idempotent,
        _ => EffectKind::Write,
    };
    let rules = config.rules(&name, &upstream.config, hinted)?;
    let canonical = serde_json_canonicalizer::to_vec(&rules).unwrap_or_default();
    let rules_hash = amends_ledger::digest(&canonical);
    if let Some(known) = known.filter(|known| known.rules_hash == rules_hash) {
        return Ok(known.clone());
    }
    let compiled = |schema: &Option<Box<serde_json::value::RawValue>>| {
        let schema = schema.as_ref()?;
        Schema::compile(schema)
            .inspect_err(|error| tracing::warn!(tool = name, %error, "a schema that we cannot check"))
            .ok()
    };
    Ok(Arc::new(ServedTool {
        local: listing.name.clone(),
        upstream: upstream.clone(),
        rules_hash,
        rules: Arc::new(rules),
        input: compiled(&listing.input_schema),
        output: compiled(&listing.output_schema),
        shape: shape(listing),
        mirrors: mirrors(listing).unwrap_or_default(),
        entry: if name == listing.name { listing.raw.get().to_owned() } else { tools::rename(&listing.raw, &name) },
        raw: listing.raw.get().to_owned(),
        name: ToolName::new(name),
    }))
}

fn weak(upstreams: &Upstreams) -> BTreeMap<UpstreamName, Weak<Upstream>> {
    upstreams.iter().map(|(name, upstream)| (name.clone(), Arc::downgrade(upstream))).collect()
}

/// What a tool takes, in the types of policies.
fn shape(listing: &ToolListing) -> Shape {
    let schema = listing.input_schema.as_ref().and_then(|schema| serde_json::from_str(schema.get()).ok());
    schema.map(|schema| Shape::of_schema(&schema)).unwrap_or_default()
}

fn mirrors(listing: &ToolListing) -> Result<Mirrors, MirrorError> {
    listing.input_schema.as_deref().map_or_else(|| Ok(Mirrors::default()), Mirrors::of)
}

/// Whether a tool can be called at all: the stateless era over HTTP wants headers that some schemas make impossible.
fn is_callable(upstream: &Upstream, listing: &ToolListing) -> bool {
    if upstream.era() != Some(Era::Modern) || !upstream.is_remote() {
        return true;
    }
    let wanted = mirrors(listing);
    if let Err(error) = &wanted {
        tracing::warn!(upstream = %upstream.name, tool = listing.name, %error, "the tool is not served");
    }
    wanted.is_ok()
}

impl Offer {
    /// The tools that agents may see.
    fn shown(&self) -> impl Iterator<Item = &ToolListing> {
        let shows = &self.upstream.config.patterns;
        self.tools.iter().filter(|listing| shows.shows(&listing.name))
    }

    fn entries(&self, kind: Kind) -> &[Entry] {
        self.lists.get(&kind).map_or(&[], Vec::as_slice)
    }
}
