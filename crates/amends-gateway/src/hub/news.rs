//! What one upstream says of its own accord, and what is known of its lists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amends_core::UpstreamName;
use amends_wire::mcp::lists::Kind;
use amends_wire::mcp::{Era, era, tasks};
use amends_wire::object::Object;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::{Hub, Level};

/// For how long a list is taken as it is, where its upstream does not say, and does not tell of changes either.
const FRESH: Duration = Duration::from_secs(1);

/// The notification by which an upstream says what it will tell.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// How long an upstream may take to say what it will tell.
const PROMISE_TIMEOUT: Duration = Duration::from_secs(3);

/// What one upstream says of its own accord, and what is known of its lists.
#[derive(Debug)]
pub struct News {
    name: UpstreamName,
    hub: Arc<Hub>,
    held: Mutex<Held>,
    /// Whether what it says of its own accord reaches us.
    hears: AtomicBool,
    told: Notify,
    /// The resources somebody wants to hear of are others now.
    wanted: Notify,
    /// What it said last that it will tell.
    promised: watch::Sender<Promise>,
    /// Held while its lists are read, so that several who ask at once ask once.
    pub(crate) listing: tokio::sync::Mutex<()>,
    /// How much of its log it was told to say since it was greeted. Held while it is told.
    pub(super) told_level: tokio::sync::Mutex<Option<Level>>,
}

/// What an upstream of the stateless era said that it will tell.
#[derive(Clone, Debug, Default)]
struct Promise {
    /// Which word about it this is.
    n: u64,
    /// Of which tasks.
    tasks: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Held {
    stale: BTreeSet<Kind>,
    fresh_until: BTreeMap<Kind, Instant>,
    greeting: Option<(Era, Arc<Value>)>,
    /// The `subscriptions/listen` that counts, by its id as it was written. Where another was opened before it was given up, both tell.
    subscription: Option<String>,
}

impl News {
    /// Nothing was heard yet of that upstream.
    pub fn new(name: UpstreamName, hub: Arc<Hub>) -> Self {
        let (hears, told, wanted) = (AtomicBool::new(false), Notify::new(), Notify::new());
        let (listing, told_level) = (tokio::sync::Mutex::default(), tokio::sync::Mutex::default());
        let promised = watch::Sender::default();
        Self { name, hub, held: Mutex::default(), hears, told, wanted, promised, listing, told_level }
    }

    /// Takes a notification to heart. Whatever it says, this keeps no more than a flag.
    pub fn hear(&self, method: &str, params: Option<&str>) {
        if !self.counts(method, params) {
            return;
        }
        let mut changed = Kind::ALL.into_iter().filter(|kind| kind.changed() == method).peekable();
        if changed.peek().is_some() {
            self.held().stale.extend(changed);
            self.told.notify_one();
            return;
        }
        let params = era::unsubscribed(params.unwrap_or("{}"));
        let word = |name: &str| Object::parse(&params).and_then(|object| object.string(name).map(|it| it.into_owned()));
        match method {
            "notifications/resources/updated" => {
                if let Some(uri) = word("uri") {
                    self.hub.updated(&self.name, &uri, &params);
                }
            }
            "notifications/message" => {
                if let Some(level) = word("level").as_deref().and_then(Level::parse) {
                    self.hub.logged(&self.name, level, &params);
                }
            }
            ACKNOWLEDGED => {
                let wishes = serde_json::from_str::<Value>(&params).unwrap_or_default();
                let ids = wishes["notifications"]["taskIds"].as_array().into_iter().flatten();
                let tasks = ids.filter_map(|id| id.as_str().map(str::to_owned)).collect();
                self.promised.send_modify(|promise| *promise = Promise { n: promise.n + 1, tasks });
            }
            method if tasks::is_status(method) => {
                if let Some(id) = word("taskId") {
                    self.hub.task(&self.name, &id, &params);
                }
            }
            _ => tracing::debug!(upstream = %self.name, method, "a notification for nobody"),
        }
    }

    /// Whether a notification came by the subscription that counts, or by none. What is acknowledged counts from then on.
    fn counts(&self, method: &str, params: Option<&str>) -> bool {
        let Some(by) = params.and_then(era::subscription) else { return true };
        let mut held = self.held();
        if method == ACKNOWLEDGED {
            held.subscription = Some(by);
            return true;
        }
        held.subscription.as_ref().is_none_or(|counts| *counts == by)
    }

    /// It is listened to anew, and nothing of before counts.
    pub fn listens_anew(&self) {
        self.held().subscription = None;
    }

    /// Waits until it says that a list of it changed, and gives those that did.
    pub async fn stale(&self) -> BTreeSet<Kind> {
        loop {
            let told = self.told.notified();
            let stale = std::mem::take(&mut self.held().stale);
            if !stale.is_empty() {
                return stale;
            }
            told.await;
        }
    }

    /// Waits until the resources that somebody wants to hear of are others.
    pub async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// The resources that somebody wants to hear of are others now.
    pub fn wants(&self) {
        self.wanted.notify_one();
    }

    /// How often it said what it will tell.
    pub fn promises(&self) -> u64 {
        self.promised.borrow().n
    }

    /// Waits until it has said more often than that what it will tell; for a moment at most.
    pub async fn promised_since(&self, n: u64) {
        let mut promised = self.promised.subscribe();
        let _ = tokio::time::timeout(PROMISE_TIMEOUT, promised.wait_for(|promise| promise.n > n)).await;
    }

    /// Whether it says that it will tell of a task; that is waited for, a moment at most.
    pub async fn will_tell_of(&self, task: &str) -> bool {
        let mut promised = self.promised.subscribe();
        let told = promised.wait_for(|promise| promise.tasks.contains(task));
        matches!(tokio::time::timeout(PROMISE_TIMEOUT, told).await, Ok(Ok(_)))
    }

    /// Whether it has tasks and tells how they are, in the words of either era.
    pub fn has_tasks(&self) -> bool {
        self.capability("tasks").is_some() || self.has_extension()
    }

    fn has_extension(&self) -> bool {
        self.capability("extensions").is_some_and(|extensions| extensions.get(tasks::EXTENSION).is_some())
    }

    /// The parameters of a `subscriptions/listen` for all that is wanted of it.
    pub fn wishes(&self) -> String {
        let mut wishes = json!({});
        for (name, kind) in [
            ("toolsListChanged", Kind::Tools),
            ("promptsListChanged", Kind::Prompts),
            ("resourcesListChanged", Kind::Resources),
        ] {
            if self.may_have(kind) {
                wishes[name] = json!(true);
            }
        }
        let uris = self.hub.wanted_of(&self.name);
        if !uris.is_empty() {
            wishes["resourceSubscriptions"] = json!(uris);
        }
        let ids = if self.has_extension() { self.hub.tasks_of(&self.name) } else { Vec::new() };
        let mut declared = json!({});
        if !ids.is_empty() {
            wishes["taskIds"] = json!(ids);
            declared["extensions"][tasks::EXTENSION] = json!({});
        }
        let wishes = json!({ "notifications": wishes }).to_string();
        era::with_meta(Some(&wishes), era::MODERN, &declared.to_string())
    }

    /// Whether what it says of its own accord reaches us from now on.
    pub fn hears(&self, hears: bool) {
        self.hears.store(hears, Ordering::Release);
    }

    /// It greeted us so.
    pub fn greeted(&self, era: Era, greeting: &str) {
        let mut held = self.held();
        held.greeting = serde_json::from_str(greeting).ok().map(|value| (era, Arc::new(value)));
        held.fresh_until.clear();
    }

    /// What it said of itself when it was last greeted, be it away by now.
    pub fn greeting(&self) -> Option<Arc<Value>> {
        self.held().greeting.as_ref().map(|(_, greeting)| greeting.clone())
    }

    /// A capability it has, with what it says of it; nothing where it has none or was never greeted.
    pub fn capability(&self, name: &str) -> Option<Value> {
        self.greeting()?.get("capabilities")?.get(name).cloned()
    }

    /// Whether it may have such a list: it said so, or nobody could ask it yet.
    pub fn may_have(&self, kind: Kind) -> bool {
        self.greeting().is_none() || self.capability(kind.capability()).is_some()
    }

    /// A list was read that may be kept for so many milliseconds, where that was said.
    pub fn listed(&self, kind: Kind, ttl_ms: Option<u64>) {
        let kept = ttl_ms.map_or(FRESH, Duration::from_millis).clamp(FRESH, Duration::from_secs(60 * 60));
        self.held().fresh_until.insert(kind, Instant::now() + kept);
    }

    /// Whether a list of it is as it was read: it tells of changes and told of none, or it was read just now.
    pub fn is_fresh(&self, kind: Kind) -> bool {
        let tells = self.capability(kind.capability()).is_some_and(|it| it["listChanged"] == true);
        let held = self.held();
        let Some(until) = held.fresh_until.get(&kind) else { return false };
        let tells = tells && self.hears.load(Ordering::Acquire);
        !held.stale.contains(&kind) && (tells || Instant::now() < *until)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_list_is_fresh_while_its_upstream_tells_of_changes_and_told_of_none() {
        let news = News::new(UpstreamName::new("a"), Arc::default());
        assert!(!news.is_fresh(Kind::Tools) && news.may_have(Kind::Prompts));
        news.greeted(Era::Legacy, r#"{"capabilities":{"tools":{"listChanged":true}}}"#);
        assert!(!news.may_have(Kind::Prompts) && news.may_have(Kind::Tools));
        news.listed(Kind::Tools, None);
        news.hears(true);
        assert!(news.is_fresh(Kind::Tools));
        for _ in 0..10_000 {
            news.hear("notifications/tools/list_changed", None);
        }
        assert!(!news.is_fresh(Kind::Tools));
        assert_eq!(news.stale().await, [Kind::Tools].into());
        news.hear("notifications/resources/list_changed", None);
        assert_eq!(news.stale().await, [Kind::Resources, Kind::Templates].into());
    }

    #[tokio::test]
    async fn while_two_subscriptions_are_open_each_word_is_heard_once() {
        let news = News::new(UpstreamName::new("a"), Arc::default());
        let by = |id: &str| format!(r#"{{"_meta":{{"{}":{id}}}}}"#, era::SUBSCRIPTION_ID);
        let hears = |id: &str| {
            news.hear("notifications/tools/list_changed", Some(&by(id)));
            std::mem::take(&mut news.held().stale).contains(&Kind::Tools)
        };
        assert!(hears("1"), "nothing was acknowledged");
        news.hear(ACKNOWLEDGED, Some(&by("1")));
        assert!(hears("1") && !hears("2"));
        let told = format!(r#"{{"notifications":{{"taskIds":["t"]}},"_meta":{{"{}":2}}}}"#, era::SUBSCRIPTION_ID);
        news.hear(ACKNOWLEDGED, Some(&told));
        assert!(!hears("1") && hears("2"), "the next one counts");
        assert!(news.will_tell_of("t").await);
        news.hear("notifications/tools/list_changed", None);
        assert_eq!(news.stale().await, [Kind::Tools].into(), "what comes by no subscription counts");
        news.listens_anew();
        assert!(hears("3"));
    }

    #[test]
    fn nonsense_is_for_nobody() {
        let news = News::new(UpstreamName::new("a"), Arc::default());
        for (method, params) in [
            ("notifications/resources/updated", None),
            ("notifications/resources/updated", Some("[]")),
            ("notifications/message", Some(r#"{"level":7}"#)),
            ("notifications/message", Some(r#"{"level":"loud"}"#)),
            ("x", Some("{")),
        ] {
            news.hear(method, params);
        }
        news.greeted(Era::Modern, "not JSON");
        assert!(news.greeting().is_none());
    }
}
