//! Whom we call: an upstream sends requests and gives back replies, and knows no rule about failures.

pub mod a2a;
mod asides;
mod credential;
mod exchange;
pub mod functions;
pub mod http;
pub mod line;
pub mod openapi;
mod questions;
pub mod sse;
pub mod stdio;

use std::sync::Arc;

use amends_core::UpstreamName;
use amends_core::restraint::Sign;
use amends_wire::mcp::Era;
use thiserror::Error;
use tokio::sync::{Semaphore, mpsc, watch};

pub use asides::{AsideReceiver, AsideSender, asides};
pub use credential::CredentialError;
pub(crate) use credential::value as credential_now;
pub use exchange::{
    AgentFault, Aside, Asides, Asking, Exchange, Fault, HttpAnswer, Progress, Reply, Request, RpcFault, Said,
};

use crate::config::{Limits, Reach, UpstreamConfig};
use crate::hub::News;
use crate::identity::Account;
use crate::restraint::Restraint;

/// Somebody whose tools are called.
#[derive(Debug)]
pub struct Upstream {
    /// Its name.
    pub name: UpstreamName,
    /// How it was declared.
    pub config: UpstreamConfig,
    /// How many calls it may have at once; the others wait, within their own time.
    pub(crate) permits: Arc<Semaphore>,
    /// The places of the calls that are open for it: those it has, and those that wait.
    pub(crate) places: Arc<Semaphore>,
    /// What is known of its troubles.
    pub(crate) restraint: Arc<Restraint>,
    /// What it says of its own accord.
    pub news: Arc<News>,
    link: Arc<Link>,
}

#[derive(Debug)]
enum Link {
    Stdio(stdio::Child),
    Http(http::Endpoint),
    OpenApi(openapi::Service),
    A2a(a2a::Peer),
    Functions(functions::Host),
}

/// Why an upstream cannot be spoken to at all.
#[derive(Debug, Error)]
pub enum StartFault {
    /// What it wants to be shown is not there.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// It cannot be told from anybody else.
    #[error(transparent)]
    Tls(#[from] http::TlsError),
}

/// What an upstream sends of its own accord.
#[derive(Debug)]
pub enum Unasked {
    /// A notification, as it came.
    Notification {
        /// Its method.
        method: String,
        /// The whole message.
        line: String,
    },
    /// A request to the agent, as it came.
    Request {
        /// Its id, as it was written.
        id: String,
        /// Its method.
        method: String,
        /// Its parameters, as they were written.
        params: Option<String>,
    },
}

/// How an upstream is, as far as we know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It is being started, or started again.
    Starting,
    /// It answers.
    Ready {
        /// Which run of it this is.
        run: u64,
        /// How it speaks.
        era: Era,
        /// What it said of itself when it was greeted.
        greeting: Arc<str>,
    },
    /// It could not be started or greeted; we keep trying.
    Down {
        /// Why.
        reason: String,
    },
}

/// How an upstream is greeted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// By us, as its client.
    Ours,
    /// By the agent, whose greeting is passed through and said again after a restart.
    Forwarded,
}

impl Upstream {
    /// Starts an upstream. What it sends of its own accord goes to `unasked`.
    pub fn start(
        name: UpstreamName,
        config: UpstreamConfig,
        greeting: Greeting,
        limits: Limits,
        unasked: mpsc::UnboundedSender<(UpstreamName, Unasked)>,
        news: Arc<News>,
    ) -> Result<Self, StartFault> {
        let link = match &config.reach {
            Reach::Stdio { .. } => {
                let reach = config.reach.clone();
                Link::Stdio(stdio::Child::start(name.clone(), reach, greeting, limits, unasked, news.clone()))
            }
            Reach::Http { url, access } => Link::Http(http::Endpoint::start(url, access, limits, news.clone())?),
            Reach::OpenApi(api) => Link::OpenApi(openapi::Service::start(api, limits)?),
            Reach::A2a { url, access } => Link::A2a(a2a::Peer::start(url, access, limits, news.clone())?),
            Reach::Functions(functions) => Link::Functions(functions::Host::start(functions.clone())),
        };
        Ok(Self {
            name,
            permits: permits(&config),
            places: places(&config),
            restraint: Arc::new(Restraint::new(config.retry_budget, config.breaker)),
            config,
            news,
            link: Arc::new(link),
        })
    }

    /// The same upstream under other rules: its process, its connections and its session go on, and so does what is known of it,
    /// as far as the rules for that are the same.
    pub fn again(&self, config: UpstreamConfig) -> Self {
        let before = &self.config;
        let crowd = |config: &UpstreamConfig| (config.concurrency, config.queue);
        let trouble = |config: &UpstreamConfig| (config.breaker, config.retry_budget);
        let is_crowd = crowd(before) == crowd(&config);
        let restraint = match trouble(before) == trouble(&config) {
            true => self.restraint.clone(),
            false => Arc::new(Restraint::new(config.retry_budget, config.breaker)),
        };
        Self {
            name: self.name.clone(),
            permits: if is_crowd { self.permits.clone() } else { permits(&config) },
            places: if is_crowd { self.places.clone() } else { places(&config) },
            restraint,
            config,
            news: self.news.clone(),
            link: self.link.clone(),
        }
    }

    /// Whether both are the same process or endpoint.
    pub fn is_same_link(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.link, &other.link)
    }

    /// The last lines that it wrote to its standard error, where it is a child. They are words for people, and nobody vouches for
    /// them.
    pub fn last_words(&self) -> Vec<String> {
        match &*self.link {
            Link::Stdio(child) => child.last_words(),
            Link::Http(_) | Link::OpenApi(_) | Link::A2a(_) | Link::Functions(_) => Vec::new(),
        }
    }

    /// A number for a request: its id, and the token of its progress.
    pub fn ticket(&self) -> u64 {
        match &*self.link {
            Link::Stdio(child) => child.ticket(),
            Link::Http(endpoint) => endpoint.ticket(),
            Link::OpenApi(service) => service.ticket(),
            Link::A2a(peer) => peer.ticket(),
            Link::Functions(host) => host.ticket(),
        }
    }

    /// Sends a request. Nothing is ever sent twice in here.
    pub fn send(&self, ticket: u64, request: Request) -> Exchange {
        match &*self.link {
            Link::Stdio(child) => child.send(ticket, request),
            Link::Http(endpoint) => endpoint.send(ticket, request),
            Link::OpenApi(service) => service.send(request),
            Link::A2a(peer) => peer.send(request),
            Link::Functions(host) => host.send(request),
        }
    }

    /// Sends a message that has no answer, as it is.
    pub fn tell(&self, line: String) {
        match &*self.link {
            Link::Stdio(child) => child.tell(line),
            Link::Http(endpoint) => endpoint.tell(line),
            // There is no message without an answer in HTTP, none to an agent, and none to a function.
            Link::OpenApi(_) | Link::A2a(_) | Link::Functions(_) => {}
        }
    }

    /// One thing that it said of its own accord has been passed on to the agent.
    pub fn passed_on(&self) {
        if let Link::Stdio(child) = &*self.link {
            child.passed_on();
        }
    }

    /// Waits until all that it said of its own accord so far has been passed on to the agent.
    pub async fn caught_up(&self) {
        if let Link::Stdio(child) = &*self.link {
            child.caught_up().await;
        }
    }

    /// Refuses what it asked of an agent, where there is none it could ask. Whether we are there it may ask at any time.
    pub fn refuse(&self, id: &str, method: &str) {
        if method == "ping" {
            return self.tell(amends_wire::message::success(id, "{}"));
        }
        let text = format!("nobody here answers `{method}`");
        let code = amends_wire::message::METHOD_NOT_FOUND;
        self.tell(amends_wire::message::failure(Some(id), code, &text, None));
    }

    /// How it is.
    pub fn health(&self) -> watch::Receiver<Health> {
        match &*self.link {
            Link::Stdio(child) => child.health(),
            Link::Http(endpoint) => endpoint.health(),
            Link::OpenApi(service) => service.health(),
            Link::A2a(peer) => peer.health(),
            Link::Functions(host) => host.health(),
        }
    }

    /// How it is, and down where nobody can be reached at its address though it was greeted before.
    pub fn state(&self) -> Health {
        let away = match &*self.link {
            Link::Stdio(_) | Link::Functions(_) => None,
            Link::Http(endpoint) => endpoint.away(),
            Link::OpenApi(service) => service.away(),
            Link::A2a(peer) => peer.away(),
        };
        match (self.health().borrow().clone(), away) {
            (Health::Ready { .. }, Some(reason)) => Health::Down { reason: reason.to_string() },
            (health, _) => health,
        }
    }

    /// Whether a document lists its tools, so that listing them says nothing of the upstream itself.
    pub fn is_described(&self) -> bool {
        matches!(&*self.link, Link::OpenApi(_))
    }

    /// Whether it answers, where listing its tools would not show that.
    pub async fn probe(&self, within: std::time::Duration) -> Option<Sign> {
        match &*self.link {
            Link::Stdio(_) | Link::Http(_) | Link::A2a(_) | Link::Functions(_) => None,
            Link::OpenApi(service) => Some(service.probe(within).await),
        }
    }

    /// Which run of it would be sent to; nothing while it is down.
    pub fn run(&self) -> Option<u64> {
        match &*self.health().borrow() {
            Health::Ready { run, .. } => Some(*run),
            Health::Starting | Health::Down { .. } => None,
        }
    }

    /// How it speaks, once that is known.
    pub fn era(&self) -> Option<Era> {
        match &*self.health().borrow() {
            Health::Ready { era, .. } => Some(*era),
            Health::Starting | Health::Down { .. } => None,
        }
    }

    /// Whether what it wants to be shown is not there any more, so that nothing is sent to it.
    pub fn lacks_credential(&self) -> bool {
        match &*self.link {
            Link::Stdio(_) | Link::Functions(_) => false,
            Link::Http(endpoint) => endpoint.lacks_credential(),
            Link::OpenApi(service) => service.lacks_credential(),
            Link::A2a(peer) => peer.lacks_credential(),
        }
    }

    /// The account that a person signs in to, by whose token it believes us.
    pub(crate) fn account(&self) -> Option<Arc<Account>> {
        match &*self.link {
            Link::Stdio(_) | Link::Functions(_) => None,
            Link::Http(endpoint) => endpoint.account(),
            Link::OpenApi(service) => service.account(),
            Link::A2a(peer) => peer.account(),
        }
    }

    /// Whether it is behind an address.
    pub fn is_remote(&self) -> bool {
        matches!(*self.link, Link::Http(_))
    }

    /// Greets it ourselves, in its own era, where the agent's greeting was to be passed through and was not taken; `false`
    /// where it takes ours no more than that.
    pub async fn greet(&self) -> bool {
        match &*self.link {
            Link::Stdio(child) => child.greet().await,
            Link::Http(_) | Link::OpenApi(_) | Link::A2a(_) | Link::Functions(_) => true,
        }
    }

    /// Whether it is of the stateful era, so that what only a stateless request carries is not for it. Where the agent itself
    /// greeted it, they understand each other.
    pub fn takes_no_stamps(&self) -> bool {
        let ours = match &*self.link {
            Link::Stdio(child) => child.is_ours(),
            Link::Http(_) | Link::OpenApi(_) | Link::A2a(_) | Link::Functions(_) => true,
        };
        ours && self.era() == Some(Era::Legacy)
    }

    /// Ends it: a child gets its input closed, a moment to leave, is told to, and is then killed with all that it started.
    pub async fn stop(&self) {
        match &*self.link {
            Link::Stdio(child) => child.stop().await,
            Link::Http(_) | Link::OpenApi(_) | Link::A2a(_) | Link::Functions(_) => {}
        }
    }

    /// What tells it from any other, in the name of a claim: its command or its address.
    pub fn identity(&self) -> String {
        match &self.config.reach {
            Reach::Stdio { command, .. } => command.join("\u{1f}"),
            Reach::Http { url, .. } => url.clone(),
            Reach::OpenApi(api) => api.base_url.clone(),
            Reach::A2a { url, .. } => url.clone(),
            Reach::Functions(_) => functions::IDENTITY.to_owned(),
        }
    }
}

/// How many calls it may have at once.
fn permits(config: &UpstreamConfig) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(config.concurrency.min(Semaphore::MAX_PERMITS)))
}

/// How many calls may be open for it.
fn places(config: &UpstreamConfig) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(config.concurrency.saturating_add(config.queue).min(Semaphore::MAX_PERMITS)))
}
