//! What we serve at one moment, and where a name or an address leads.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use amends_core::{ToolName, UpstreamName};
use amends_wire::mcp::lists::{self, Entry, Kind};
use amends_wire::mcp::steps::Address;
use amends_wire::mcp::uri::{self, Template};
use serde_json::json;

use super::{ServedMachines, ServedTool};
use crate::clock;
use crate::router::page::Listed;
use crate::upstream::{Health, Upstream};

/// The field of an entry's `_meta` that says that its upstream is away.
const UNAVAILABLE: &str = "amends/unavailable";

/// What we serve at one moment.
#[derive(Debug, Default)]
pub struct Listing {
    pub(super) tools: BTreeMap<ToolName, Arc<ServedTool>>,
    pub(super) listed: BTreeSet<(UpstreamName, Kind)>,
    pub(super) machines: ServedMachines,
    prompts: Vec<Served>,
    resources: Vec<Served>,
    templates: Vec<ServedTemplate>,
    prompt_at: HashMap<String, usize>,
    resource_at: HashMap<String, usize>,
    template_at: HashMap<String, usize>,
}

/// A prompt or a resource we serve.
#[derive(Clone, Debug)]
pub struct Served {
    /// What agents know it by.
    pub key: String,
    /// What its upstream knows it by.
    pub local: String,
    /// Where it lives.
    pub upstream: Arc<Upstream>,
    /// Its entry in a list.
    pub entry: String,
}

/// A template of resources we serve.
#[derive(Clone, Debug)]
pub struct ServedTemplate {
    /// Its entry.
    pub served: Served,
    /// The addresses it stands for, where it can be read.
    pub form: Option<Template>,
}

impl Served {
    pub(super) fn as_it_is(entry: &Entry, upstream: &Arc<Upstream>) -> Self {
        let (key, raw) = (entry.key.clone(), entry.raw.get().to_owned());
        Self { local: key.clone(), key, upstream: upstream.clone(), entry: raw }
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

    /// The name of every tool that an agent may call.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let shown = self.tools.keys().map(ToolName::as_str).filter(|name| !self.machines.encloses(name));
        shown.chain(self.machines.listed())
    }

    /// What is served of machines.
    pub fn machines(&self) -> &ServedMachines {
        &self.machines
    }

    /// Whether that upstream has listed its tools.
    pub fn has_listed(&self, upstream: &UpstreamName) -> bool {
        self.has(upstream, Kind::Tools)
    }

    /// Whether that list of that upstream is known.
    pub fn has(&self, upstream: &UpstreamName, kind: Kind) -> bool {
        self.listed.contains(&(upstream.clone(), kind))
    }

    /// The prompt of that name.
    pub fn prompt(&self, name: &str) -> Option<&Served> {
        self.prompt_at.get(name).map(|at| &self.prompts[*at])
    }

    /// The resource of that address, where it is listed.
    pub fn resource(&self, uri: &str) -> Option<&Served> {
        self.resource_at.get(uri).map(|at| &self.resources[*at])
    }

    /// The template written like that.
    pub fn template(&self, text: &str) -> Option<&Served> {
        self.template_at.get(text).map(|at| &self.templates[*at].served)
    }

    /// The template that stands for that address: of several, the one that fixes most of it, and of those the first.
    pub fn template_for(&self, uri: &str) -> Option<&Served> {
        let fits = |template: &&ServedTemplate| template.form.as_ref().is_some_and(|form| form.fits(uri));
        let fixed = |template: &&ServedTemplate| template.form.as_ref().map_or(0, Template::fixed);
        let best = self.templates.iter().filter(fits).rev().max_by_key(fixed);
        best.map(|template| &template.served)
    }

    /// Whether that upstream lists addresses, or templates of them, with that scheme.
    pub fn has_scheme(&self, upstream: &UpstreamName, scheme: &str) -> bool {
        let templates = self.templates.iter().map(|template| &template.served);
        self.resources
            .iter()
            .chain(templates)
            .any(|served| served.upstream.name == *upstream && uri::scheme(&served.key).as_deref() == Some(scheme))
    }

    /// The entries of a list: tools in the order of their names, the others in the order of their upstreams' names and then in
    /// their upstream's own, and what we have ourselves last. What an upstream that is away listed last is marked so.
    pub fn entries(&self, kind: Kind) -> Box<dyn Iterator<Item = Listed<'_>> + '_> {
        let own = self.machines.entries(kind);
        // Where we have machines, our own addresses are nobody else's.
        let theirs = |served: &&Served| self.machines.is_empty() || !Address::is_ours(&served.key);
        match kind {
            Kind::Tools => {
                let shown = self.tools.values().filter(|tool| !self.machines.encloses(tool.name.as_str()));
                Box::new(shown.map(|tool| (tool.name.as_str(), marked(&tool.entry, &tool.upstream))).chain(own))
            }
            Kind::Prompts => Box::new(self.prompts.iter().map(Served::listed)),
            Kind::Resources => Box::new(self.resources.iter().filter(theirs).map(Served::listed).chain(own)),
            Kind::Templates => {
                let templates = self.templates.iter().map(|template| &template.served);
                Box::new(templates.filter(theirs).map(Served::listed).chain(own))
            }
        }
    }

    /// Whether there is anything in a list.
    pub fn has_any(&self, kind: Kind) -> bool {
        match kind {
            Kind::Tools => !self.tools.is_empty(),
            Kind::Prompts => !self.prompts.is_empty(),
            Kind::Resources => !self.resources.is_empty(),
            Kind::Templates => !self.templates.is_empty(),
        }
    }

    pub(super) fn add_prompt(&mut self, served: Served) {
        self.prompt_at.insert(served.key.clone(), self.prompts.len());
        self.prompts.push(served);
    }

    /// Adds a resource, unless an upstream before lists it too: an address means the same thing to every agent.
    pub(super) fn add_resource(&mut self, served: Served) -> bool {
        if self.resource_at.contains_key(&served.key) {
            return false;
        }
        self.resource_at.insert(served.key.clone(), self.resources.len());
        self.resources.push(served);
        true
    }

    /// Adds a template, unless an upstream before lists the same.
    pub(super) fn add_template(&mut self, served: Served) -> bool {
        if self.template(&served.key).is_some() {
            return false;
        }
        let form = Template::parse(&served.key);
        self.template_at.insert(served.key.clone(), self.templates.len());
        self.templates.push(ServedTemplate { served, form });
        true
    }

    /// The lists in which an agent would see something else than before.
    pub(super) fn changed_since(&self, before: &Self) -> Vec<Kind> {
        let same = |a: &Served, b: &Served| a.entry == b.entry && a.upstream.name == b.upstream.name;
        let all_same = |a: &[Served], b: &[Served]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b));
        let is_same = |kind: &Kind| match kind {
            Kind::Tools => {
                self.tools.len() == before.tools.len()
                    && self.tools.values().zip(before.tools.values()).all(|(a, b)| a.entry == b.entry)
            }
            Kind::Prompts => all_same(&self.prompts, &before.prompts),
            Kind::Resources => all_same(&self.resources, &before.resources),
            Kind::Templates => {
                self.templates.len() == before.templates.len()
                    && self.templates.iter().zip(&before.templates).all(|(a, b)| same(&a.served, &b.served))
            }
        };
        let ours = |kind: &Kind| self.machines.is_same(&before.machines, *kind);
        Kind::ALL.into_iter().filter(|kind| !(is_same(kind) && ours(kind))).collect()
    }
}

impl Served {
    fn listed(&self) -> Listed<'_> {
        (self.key.as_str(), marked(&self.entry, &self.upstream))
    }
}

/// An entry as it is listed now.
fn marked<'a>(entry: &'a str, upstream: &Upstream) -> Cow<'a, str> {
    let now = clock::now();
    let until = upstream.restraint.open_until(now);
    let reason = match (upstream.state(), until) {
        (Health::Ready { .. }, None) => return Cow::Borrowed(entry),
        (Health::Ready { .. }, Some(_)) => "it failed too often and is left alone for a while".to_owned(),
        (Health::Starting, _) => "it is being started".to_owned(),
        (Health::Down { reason }, _) => reason,
    };
    let mut note = json!({ "upstream": upstream.name.as_str(), "reason": reason });
    if let Some(until) = until {
        note["retry_after_ms"] = json!(until.since_ms(now));
    }
    Cow::Owned(lists::with_meta(entry, UNAVAILABLE, &note.to_string()))
}
