//! What we serve: the tools, prompts and resources of all upstreams, where each lives, and what governs the tools.

mod served;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use amends_core::{Digest, EffectKind, Rules, ToolName, UpstreamName};
use amends_wire::mcp::lists::{self, Entry, Kind};
use amends_wire::mcp::{ToolListing, tools};
use amends_wire::schema::Schema;

pub use served::{Listing, Served, ServedTemplate};

use crate::config::{Config, ConfigError};
use crate::router::names::{self, Offered};
use crate::upstream::Upstream;

/// What we serve, replaced as a whole when an upstream lists its own anew. What an upstream listed last is kept while it is away.
#[derive(Debug)]
pub struct Catalogue {
    config: Arc<Config>,
    offers: Mutex<BTreeMap<UpstreamName, Offer>>,
    listing: RwLock<Arc<Listing>>,
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
    /// Its entry in a list, as its upstream wrote it but for the name.
    pub entry: String,
    /// How its upstream wrote it.
    raw: String,
}

impl Catalogue {
    /// An empty catalogue under that configuration.
    pub fn new(config: Arc<Config>) -> Self {
        Self { config, offers: Mutex::default(), listing: RwLock::default() }
    }

    /// What is served now.
    pub fn now(&self) -> Arc<Listing> {
        self.listing.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over a list of an upstream; gives the lists of ours that are different now.
    pub fn update(&self, upstream: &Arc<Upstream>, kind: Kind, entries: Vec<Entry>) -> Vec<Kind> {
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Offer { upstream: upstream.clone(), tools: Vec::new(), lists: BTreeMap::new() };
        let offer = offers.entry(upstream.name.clone()).or_insert_with(fresh);
        offer.upstream = upstream.clone();
        if kind == Kind::Tools {
            let shows = &upstream.config.patterns;
            let listings = entries.iter().filter_map(|entry| ToolListing::parse(&entry.raw));
            offer.tools = listings.filter(|listing| shows.shows(&listing.name)).collect();
        }
        offer.lists.insert(kind, if kind == Kind::Tools { Vec::new() } else { entries });
        self.rebuild(&offers)
    }

    /// Forgets an upstream that is no longer served; gives the lists of ours that are different now.
    pub fn forget(&self, upstream: &UpstreamName) -> Vec<Kind> {
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        offers.remove(upstream);
        self.rebuild(&offers)
    }

    /// Puts together what the upstreams offer. They are taken in the order of their names, so that who was listed first changes
    /// nothing.
    fn rebuild(&self, offers: &BTreeMap<UpstreamName, Offer>) -> Vec<Kind> {
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
        let tool_names = named(|offer| offer.tools.iter().map(|tool| tool.name.as_str()).collect());
        let prompt_names = named(|offer| offer.entries(Kind::Prompts).iter().map(|it| it.key.as_str()).collect());
        for ((upstream, offer), (tools, prompts)) in offers.iter().zip(tool_names.into_iter().zip(prompt_names)) {
            for kind in offer.lists.keys() {
                listing.listed.insert((upstream.clone(), *kind));
            }
            for (tool, name) in offer.tools.iter().zip(tools) {
                let Some(name) = name else {
                    tracing::warn!(%upstream, tool = tool.name, "the tool is not served: there is no name left for it");
                    continue;
                };
                match self.serve(&before, &offer.upstream, tool, name) {
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
        let changed = listing.changed_since(&before);
        *self.listing.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(listing);
        changed
    }

    fn serve(
        &self,
        before: &Listing,
        upstream: &Arc<Upstream>,
        listing: &ToolListing,
        name: String,
    ) -> Result<Arc<ServedTool>, ConfigError> {
        // Schemas are compiled once, not whenever some other upstream lists something.
        if let Some(known) = before.find(&name)
            && Arc::ptr_eq(&known.upstream, upstream)
            && known.raw == listing.raw.get()
        {
            return Ok(known.clone());
        }
        // A hint is the upstream's own word; it counts only where the operator vouches for the upstream.
        let hints = listing.annotations;
        let hinted = match (hints.read_only, hints.idempotent) {
            (Some(true), _) => EffectKind::Read,
            (_, Some(true)) => EffectKind::Idempotent,
            _ => EffectKind::Write,
        };
        let rules = self.config.rules(&name, &upstream.config, hinted)?;
        let canonical = serde_json_canonicalizer::to_vec(&rules).unwrap_or_default();
        let compiled = |schema: &Option<Box<serde_json::value::RawValue>>| {
            let schema = schema.as_ref()?;
            Schema::compile(schema)
                .inspect_err(|error| tracing::warn!(tool = name, %error, "a schema that we cannot check"))
                .ok()
        };
        Ok(Arc::new(ServedTool {
            local: listing.name.clone(),
            upstream: upstream.clone(),
            rules_hash: amends_ledger::digest(&canonical),
            rules: Arc::new(rules),
            input: compiled(&listing.input_schema),
            output: compiled(&listing.output_schema),
            entry: if name == listing.name { listing.raw.get().to_owned() } else { tools::rename(&listing.raw, &name) },
            raw: listing.raw.get().to_owned(),
            name: ToolName::new(name),
        }))
    }
}

impl Offer {
    fn entries(&self, kind: Kind) -> &[Entry] {
        self.lists.get(&kind).map_or(&[], Vec::as_slice)
    }
}
