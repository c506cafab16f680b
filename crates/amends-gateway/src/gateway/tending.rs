//! Those who look after the upstreams: who read their lists, hear what they say, and find out whether they are back.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use amends_core::UpstreamName;
use tokio::task::JoinHandle;

use super::Gateway;
use crate::upstream::{Greeting, Upstream};
use crate::{hub, identity, listing, restraint};

/// Those who look after one upstream. They stop when this is dropped.
#[derive(Debug)]
pub(super) struct Tending {
    listening: Option<JoinHandle<()>>,
    others: Vec<JoinHandle<()>>,
}

impl Drop for Tending {
    fn drop(&mut self) {
        self.listening.iter().chain(&self.others).for_each(JoinHandle::abort);
    }
}

impl Gateway {
    /// Looks after an upstream from now on, and no longer after another of its name.
    pub(crate) fn tend(self: &Arc<Self>, upstream: &Arc<Upstream>) {
        self.leave(&upstream.name);
        if let Some(account) = upstream.account() {
            account.belongs(self, &upstream.name);
        }
        let listens = hub::listen(Arc::downgrade(self), upstream.clone());
        let listening = (self.greeting == Greeting::Ours).then(|| tokio::spawn(listens));
        self.tending().insert(upstream.name.clone(), Tending { listening, others: self.look_after(upstream) });
    }

    /// Looks after an upstream that goes on under other rules. What it says of its own accord is heard on.
    pub(crate) fn tend_on(self: &Arc<Self>, upstream: &Arc<Upstream>) {
        let others = self.look_after(upstream);
        if let Some(tending) = self.tending().get_mut(&upstream.name) {
            let before = std::mem::replace(&mut tending.others, others);
            before.iter().for_each(JoinHandle::abort);
        }
    }

    fn look_after(self: &Arc<Self>, upstream: &Arc<Upstream>) -> Vec<JoinHandle<()>> {
        let mut tasks = vec![tokio::spawn(restraint::look_after(Arc::downgrade(self), upstream.clone()))];
        if self.greeting == Greeting::Ours {
            tasks.push(tokio::spawn(listing::follow(Arc::downgrade(self), upstream.clone())));
        }
        if upstream.account().is_some() && !upstream.is_described() {
            tasks.push(tokio::spawn(identity::sign_in_first(Arc::downgrade(self), upstream.clone())));
        }
        tasks
    }

    /// Follows what an upstream offers that is greeted by us from now on.
    pub(crate) fn follows(self: &Arc<Self>, upstream: &Arc<Upstream>) {
        self.keep(tokio::spawn(listing::follow(Arc::downgrade(self), upstream.clone())));
        self.keep(tokio::spawn(hub::listen(Arc::downgrade(self), upstream.clone())));
    }

    /// Stops looking after the upstream of that name.
    pub(crate) fn leave(&self, upstream: &UpstreamName) {
        drop(self.tending().remove(upstream));
    }

    /// Stops looking after all of them.
    pub(super) fn leave_all(&self) {
        self.tending().clear();
    }

    fn tending(&self) -> MutexGuard<'_, HashMap<UpstreamName, Tending>> {
        self.tending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
