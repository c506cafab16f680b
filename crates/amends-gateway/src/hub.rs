//! What upstreams say of their own accord, on its way to the clients that want to hear it.

mod ear;
mod hearing;
mod level;
mod mailbox;
mod news;
mod subscription;
mod tasks;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use amends_core::{SessionId, UpstreamName};
use amends_wire::mcp::lists::Kind;

use crate::config::Config;
use crate::gateway::Upstreams;
use crate::upstream::Upstream;

pub use ear::listen;
pub use hearing::Hearing;
pub use level::Level;
pub use mailbox::{Mailbox, Overrun, Reader, Wants};
pub use news::News;
pub use subscription::{SubscribeError, Subscribed, subscribe, subscribe_own};

/// Where everything that upstreams say of their own accord comes together.
#[derive(Debug, Default)]
pub struct Hub {
    mailboxes: Mutex<Vec<Weak<Mailbox>>>,
    /// How many clients want to hear of a resource.
    subscribed: Mutex<HashMap<UpstreamName, HashMap<String, usize>>>,
    /// Who hears a log for the time of one request.
    hearing: Mutex<BTreeMap<u64, hearing::Wish>>,
    next: AtomicU64,
    /// Who has which name now.
    here: Mutex<HashMap<UpstreamName, Weak<Upstream>>>,
    /// What was said of tasks that nobody knows of yet.
    early: Mutex<tasks::Early>,
    /// By which is known what may not pass.
    rules: Mutex<Option<Arc<Config>>>,
}

impl Hub {
    /// A mailbox for a client that wants to hear that, until it is dropped. With the id of a `subscriptions/listen`, everything in
    /// it names that.
    pub fn open(&self, wants: Wants, listen: Option<String>) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::new(wants, listen));
        let mut mailboxes = self.mailboxes();
        mailboxes.retain(|mailbox| mailbox.strong_count() > 0);
        mailboxes.push(Arc::downgrade(&mailbox));
        mailbox
    }

    /// Lists of ours are different now.
    pub fn lists_changed(&self, mut kinds: BTreeSet<Kind>) {
        // Both are told by the same word.
        if kinds.remove(&Kind::Templates) {
            kinds.insert(Kind::Resources);
        }
        for kind in kinds {
            self.each(|mailbox| mailbox.list_changed(kind));
        }
    }

    /// An upstream says that a resource is different now.
    pub fn updated(&self, upstream: &UpstreamName, uri: &str, params: &str) {
        self.each(|mailbox| mailbox.updated(upstream, uri, params));
    }

    /// A walk moved.
    pub fn moved(&self, session: &SessionId) {
        self.each(|mailbox| mailbox.moved(session));
    }

    /// An upstream has something for the log.
    pub fn logged(&self, upstream: &UpstreamName, level: Level, params: &str) {
        self.each(|mailbox| mailbox.logged(level, params));
        self.hearing().values().for_each(|wish| wish.hears(upstream, level, params));
    }

    /// The most that any client wants to hear of that upstream's log.
    pub fn level(&self, upstream: &UpstreamName) -> Option<Level> {
        let hearing = self.hearing();
        let mut most = hearing.values().filter(|wish| wish.upstream == *upstream).map(|wish| wish.level).min();
        drop(hearing);
        self.each(|mailbox| most = most.into_iter().chain(mailbox.level()).min());
        most
    }

    /// These are the upstreams from now on, and that governs what passes.
    pub fn meet(&self, upstreams: &Upstreams, rules: &Arc<Config>) {
        *self.rules.lock().unwrap_or_else(PoisonError::into_inner) = Some(rules.clone());
        let here = upstreams.iter().map(|(name, upstream)| (name.clone(), Arc::downgrade(upstream))).collect();
        *self.here.lock().unwrap_or_else(PoisonError::into_inner) = here;
    }

    /// Who has that name now.
    fn here(&self, name: &UpstreamName) -> Option<Arc<Upstream>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner).get(name)?.upgrade()
    }

    fn each(&self, mut tell: impl FnMut(&Mailbox)) {
        let mailboxes: Vec<_> = self.mailboxes().iter().filter_map(Weak::upgrade).collect();
        mailboxes.iter().for_each(|mailbox| tell(mailbox));
    }

    fn mailboxes(&self) -> MutexGuard<'_, Vec<Weak<Mailbox>>> {
        self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hearing(&self) -> MutexGuard<'_, BTreeMap<u64, hearing::Wish>> {
        self.hearing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn subscribed(&self) -> MutexGuard<'_, HashMap<UpstreamName, HashMap<String, usize>>> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The resources of an upstream that somebody wants to hear of.
    pub fn wanted_of(&self, upstream: &UpstreamName) -> Vec<String> {
        let mut uris: Vec<_> = self.subscribed().get(upstream).into_iter().flat_map(HashMap::keys).cloned().collect();
        uris.sort_unstable();
        uris
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_anybody_wants_of_the_log_counts() {
        let (hub, shop) = (Hub::default(), UpstreamName::new("shop"));
        assert_eq!(hub.level(&shop), None);
        let quiet = hub.open(Wants { level: Some(Level::Error), ..Wants::default() }, None);
        let none = hub.open(Wants::default(), None);
        assert_eq!(hub.level(&shop), Some(Level::Error));
        let loud = hub.open(Wants { level: Some(Level::Debug), ..Wants::default() }, None);
        assert_eq!(hub.level(&shop), Some(Level::Debug));
        drop(loud);
        assert_eq!(hub.level(&shop), Some(Level::Error));
        drop((quiet, none));
        assert_eq!(hub.level(&shop), None);
    }
}
