//! The tools we serve: where each lives, what it takes, and what governs it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use amends_core::{Digest, EffectKind, Rules, ToolName, UpstreamName};
use amends_wire::mcp::ToolListing;
use amends_wire::mcp::tools;
use amends_wire::schema::Schema;

use crate::config::{Config, ConfigError};
use crate::upstream::Upstream;

/// The longest name that model providers take.
const NAME_MAX: usize = 64;

/// The tools we serve, replaced as a whole when an upstream lists its own anew.
#[derive(Debug)]
pub struct Catalogue {
    config: Arc<Config>,
    listing: RwLock<Arc<Listing>>,
}

/// The tools as they are at one moment.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    tools: BTreeMap<ToolName, Arc<ServedTool>>,
    listed: BTreeSet<UpstreamName>,
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
}

impl Catalogue {
    /// An empty catalogue under that configuration.
    pub fn new(config: Arc<Config>) -> Self {
        Self { config, listing: RwLock::default() }
    }

    /// The tools as they are now.
    pub fn now(&self) -> Arc<Listing> {
        self.listing.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over what an upstream lists.
    pub fn update(&self, upstream: &Arc<Upstream>, listings: &[ToolListing]) {
        let served: Vec<Arc<ServedTool>> = listings
            .iter()
            .filter_map(|listing| match self.serve(upstream, listing) {
                Ok(tool) => Some(Arc::new(tool)),
                Err(error) => {
                    tracing::error!(tool = listing.name, %error, "the tool is not served");
                    None
                }
            })
            .collect();
        let mut held = self.listing.write().unwrap_or_else(PoisonError::into_inner);
        let mut listing = (**held).clone();
        listing.tools.retain(|_, tool| tool.upstream.name != upstream.name);
        for tool in served {
            listing.tools.entry(tool.name.clone()).or_insert(tool);
        }
        listing.listed.insert(upstream.name.clone());
        *held = Arc::new(listing);
    }

    fn serve(&self, upstream: &Arc<Upstream>, listing: &ToolListing) -> Result<ServedTool, ConfigError> {
        let name = upstream.served_name(&listing.name);
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
        Ok(ServedTool {
            local: listing.name.clone(),
            upstream: upstream.clone(),
            rules_hash: amends_ledger::digest(&canonical),
            rules: Arc::new(rules),
            input: compiled(&listing.input_schema),
            output: compiled(&listing.output_schema),
            entry: if upstream.config.prefix.is_empty() {
                listing.raw.get().to_owned()
            } else {
                tools::rename(&listing.raw, &name)
            },
            name: ToolName::new(name),
        })
    }
}

impl Upstream {
    /// The name under which a tool of it is served.
    pub(crate) fn served_name(&self, local: &str) -> String {
        let mut name = format!("{}{local}", self.config.prefix);
        if !self.config.prefix.is_empty() && name.len() > NAME_MAX {
            let tail = amends_ledger::digest(local.as_bytes());
            name.truncate(name.floor_char_boundary(NAME_MAX - 9));
            name = format!("{name}_{}", &tail.as_str()[..8]);
        }
        name
    }
}

impl Listing {
    /// The tool of that name.
    pub fn find(&self, name: &str) -> Option<&Arc<ServedTool>> {
        self.tools.get(&ToolName::new(name))
    }

    /// Every tool, in the order of the names.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<ServedTool>> {
        self.tools.values()
    }

    /// Every name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(ToolName::as_str)
    }

    /// Whether that upstream has listed its tools.
    pub fn has_listed(&self, upstream: &UpstreamName) -> bool {
        self.listed.contains(upstream)
    }
}
