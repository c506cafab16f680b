//! Somebody who hears an upstream's log for as long as one request of it lasts: a client without a session.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use amends_core::UpstreamName;
use amends_wire::message;

use super::{Hub, Level};
use crate::gateway::Upstreams;
use crate::upstream::{Aside, AsideSender, Upstream};

/// How long an upstream goes on saying more than anybody wants to hear, so that it is not told with every request.
const LINGER: Duration = Duration::from_secs(2);

/// What somebody wants to hear.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) upstream: UpstreamName,
    pub(super) level: Level,
    to: AsideSender,
}

impl Wish {
    pub(super) fn hears(&self, upstream: &UpstreamName, level: Level, params: &str) {
        if self.upstream == *upstream && level >= self.level {
            let method = "notifications/message".to_owned();
            let line = message::notification(&method, Some(params));
            // Nobody hears it any more once the request is given up.
            let _ = self.to.send(Aside::Notification { method, line });
        }
    }
}

/// Somebody hears an upstream's log, until this is dropped.
#[derive(Debug)]
pub struct Hearing {
    hub: Arc<Hub>,
    upstream: Arc<Upstream>,
    n: u64,
}

impl Hub {
    /// Somebody wants to hear that much of an upstream's log. It is told so, where it says less.
    pub async fn hears(self: &Arc<Self>, upstream: &Arc<Upstream>, level: Level, to: AsideSender) -> Hearing {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        self.hearing().insert(n, Wish { upstream: upstream.name.clone(), level, to });
        let hearing = Hearing { hub: self.clone(), upstream: upstream.clone(), n };
        self.tell_level(upstream).await;
        hearing
    }
}

impl Hub {
    /// Somebody who heard logs is gone: those upstreams need not say more than the others want.
    pub fn hears_less(self: &Arc<Self>, upstreams: &Upstreams) {
        for upstream in upstreams.values() {
            self.says_less(upstream);
        }
    }

    fn says_less(self: &Arc<Self>, upstream: &Arc<Upstream>) {
        let (hub, upstream) = (self.clone(), upstream.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(LINGER).await;
                hub.tell_level(&upstream).await;
            });
        }
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.hub.hearing().remove(&self.n);
        self.hub.says_less(&self.upstream);
    }
}
