//! One configuration takes the place of another while calls go on.
//!
//! An upstream that is declared as before keeps its process, its connections and its session. One that is reached in another way
//! is started anew and takes over once it has listed what it has; until then, and for the calls that are open, the one before goes
//! on. A call keeps the rules it began with: it holds them, and they are on the ledger under their digest.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use amends_core::UpstreamName;
use amends_core::id::MachineName;

use crate::config::Config;
use crate::gateway::{Gateway, Serving, StartError, Upstreams};
use crate::hub::News;
use crate::identity::Identity;
use crate::upstream::Upstream;

/// How long an upstream that was replaced is still called, where the one in its place has not listed anything.
const HAND_OVER_WITHIN: Duration = Duration::from_secs(30);
/// How long an upstream that is no longer called lives for the calls that are open. What is open for longer waits for people.
const LEAVE_WITHIN: Duration = Duration::from_secs(10 * 60);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What a reload did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// The upstreams that are new, or reached in another way.
    pub started: Vec<UpstreamName>,
    /// The upstreams that go on under other rules.
    pub changed: Vec<UpstreamName>,
    /// The upstreams that are gone.
    pub removed: Vec<UpstreamName>,
    /// The machines that are new, gone, or declared otherwise.
    pub machines: Vec<MachineName>,
    /// What is written differently and stays as it was until a restart.
    pub fixed: Vec<&'static str>,
}

impl fmt::Display for Reloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = false;
        for (what, names) in [("started", &self.started), ("changed", &self.changed), ("removed", &self.removed)] {
            if !names.is_empty() {
                let names: Vec<&str> = names.iter().map(UpstreamName::as_str).collect();
                write!(f, "{}{what} `{}`", if said { ", " } else { "" }, names.join("`, `"))?;
                said = true;
            }
        }
        if !self.machines.is_empty() {
            let names: Vec<&str> = self.machines.iter().map(MachineName::as_str).collect();
            write!(f, "{}declared the machines `{}` anew", if said { ", " } else { "" }, names.join("`, `"))?;
            said = true;
        }
        if !said {
            write!(f, "every upstream goes on as it is")?;
        }
        if !self.fixed.is_empty() {
            write!(f, "; only a restart changes `{}`", self.fixed.join("`, `"))?;
        }
        Ok(())
    }
}

impl Gateway {
    /// Goes on under another configuration. Nothing that is open is given up for it. Where an upstream of it cannot be started,
    /// nothing changes.
    pub fn reload(self: &Arc<Self>, mut config: Config) -> Result<Reloaded, StartError> {
        let _one_at_a_time = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.serving.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut reloaded = Reloaded { fixed: keep_fixed(&mut config, &before.config), ..Reloaded::default() };
        config.auth.may_listen(config.http)?;
        // What the operator changed of who may come in counts for the next request.
        let identity = (config.auth != before.config.auth || config.console != before.config.console)
            .then(|| Identity::start(&config))
            .transpose()?;
        let mut upstreams = Upstreams::new();
        for (name, declared) in &config.upstreams {
            let upstream = match before.upstreams.get(name) {
                Some(known) if known.config == *declared => known.clone(),
                Some(known) if known.config.reach == declared.reach => {
                    reloaded.changed.push(name.clone());
                    Arc::new(known.again(declared.clone()))
                }
                Some(_) | None => {
                    reloaded.started.push(name.clone());
                    let news = Arc::new(News::new(name.clone(), self.hub.clone()));
                    let (limits, unasked) = (config.limits, self.unasked.clone());
                    let started = Upstream::start(name.clone(), declared.clone(), self.greeting, limits, unasked, news);
                    Arc::new(started.map_err(|source| StartError::Upstream { name: name.clone(), source })?)
                }
            };
            upstreams.insert(name.clone(), upstream);
        }
        let gone = before.upstreams.keys().filter(|name| !upstreams.contains_key(*name));
        reloaded.removed.extend(gone.cloned());
        reloaded.machines.extend(config.machines.differences(&before.config.machines));
        if let Some(identity) = identity {
            self.identify_by(identity);
        }
        let serving = Serving { config: Arc::new(config), upstreams: Arc::new(upstreams) };
        *self.serving.write().unwrap_or_else(PoisonError::into_inner) = serving.clone();
        self.hub.meet(&serving.upstreams, &serving.config);
        let changed = self.catalogue.reload(serving.config, &serving.upstreams);
        reloaded.removed.iter().for_each(|name| self.leave(name));
        reloaded.started.iter().for_each(|name| self.tend(&serving.upstreams[name]));
        reloaded.changed.iter().for_each(|name| self.tend_on(&serving.upstreams[name]));
        self.hub.lists_changed(changed.into_iter().collect::<BTreeSet<_>>());
        for name in reloaded.started.iter().chain(&reloaded.removed) {
            if let Some(known) = before.upstreams.get(name) {
                tokio::spawn(retire(Arc::downgrade(self), Arc::downgrade(known)));
            }
        }
        self.reloads.fetch_add(1, Ordering::Relaxed);
        self.refused.store(false, Ordering::Relaxed);
        Ok(reloaded)
    }

    /// Another configuration was refused; the one from before goes on.
    pub fn reload_refused(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }
}

/// Keeps what was decided once for all when the gateway started, and says what is written differently.
fn keep_fixed(config: &mut Config, before: &Config) -> Vec<&'static str> {
    let mut fixed = Vec::new();
    let mut keep = |name, differs: bool| {
        if differs {
            fixed.push(name);
        }
    };
    keep("ledger", config.ledger != before.ledger);
    // Port 0 asks for any, and one was given.
    let listens_here = config.http.ip() == before.http.ip() && [0, before.http.port()].contains(&config.http.port());
    keep("listen.http", !listens_here);
    keep("limits.answer_bytes", config.limits.answer_bytes != before.limits.answer_bytes);
    keep("telemetry", config.telemetry != before.telemetry);
    config.ledger = before.ledger.clone();
    config.telemetry = before.telemetry.clone();
    config.http = before.http;
    config.limits.answer_bytes = before.limits.answer_bytes;
    fixed
}

/// Waits until nobody uses an upstream that has no name any more; it ends with its last user.
async fn retire(gateway: Weak<Gateway>, upstream: Weak<Upstream>) {
    let began = Instant::now();
    let mut handed_over = false;
    while upstream.strong_count() > 0 {
        if !handed_over && began.elapsed() > HAND_OVER_WITHIN {
            handed_over = true;
            let Some(gateway) = gateway.upgrade() else { return };
            let changed = gateway.catalogue.hand_over(&upstream);
            gateway.hub.lists_changed(changed.into_iter().collect());
        }
        if began.elapsed() > LEAVE_WITHIN {
            let Some(left) = upstream.upgrade() else { return };
            tracing::warn!(upstream = %left.name, "calls are still open for an upstream that was replaced; it is ended");
            return left.stop().await;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Spec, settle};

    fn config(text: &str) -> Config {
        settle(Spec::parse(text, "test").unwrap()).unwrap()
    }

    #[test]
    fn what_only_a_restart_changes_is_kept_and_named() {
        let before = config("[limits]\nanswer_bytes = 5000\n");
        let mut other = config(
            "[ledger]\nreads = \"sync\"\n[listen]\nhttp = \"127.0.0.1:1\"\nhosts = [\"a\"]\n[limits]\nbody_bytes = 9\n",
        );
        let fixed = keep_fixed(&mut other, &before);
        assert_eq!(fixed, ["ledger", "listen.http", "limits.answer_bytes"]);
        assert_eq!((other.http, other.limits.answer_bytes), (before.http, 5000));
        assert_eq!((other.limits.body_bytes, other.hosts.len()), (9, 1), "the rest is taken");
        assert!(keep_fixed(&mut before.clone(), &before).is_empty());
        let mut any = config("[listen]\nhttp = \"127.0.0.1:0\"\n[limits]\nanswer_bytes = 5000\n");
        assert_eq!((keep_fixed(&mut any, &before).len(), any.http), (0, before.http), "any port was asked for");
    }

    #[test]
    fn what_was_done_is_said_in_a_sentence() {
        assert_eq!(Reloaded::default().to_string(), "every upstream goes on as it is");
        let names = |names: &[&str]| names.iter().map(|name| UpstreamName::new(*name)).collect::<Vec<_>>();
        let reloaded = Reloaded {
            started: names(&["a", "b"]),
            removed: names(&["c"]),
            fixed: vec!["ledger"],
            ..Reloaded::default()
        };
        let said = "started `a`, `b`, removed `c`; only a restart changes `ledger`";
        assert_eq!(reloaded.to_string(), said);
    }
}
