//! How tasks are, on its way to the clients they belong to, and to nobody else.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use amends_core::UpstreamName;
use amends_wire::mcp::{Era, tasks};

use super::{Hub, Mailbox};
use crate::upstream::Upstream;

/// How many tasks one client hears of.
const TASKS_MAX: usize = 1000;
/// How many tasks an upstream is asked to tell of.
const WANTED_MAX: usize = 10_000;
/// How much is kept of tasks that nobody knows of yet, and for how long: a task may be over before the answer to its call has
/// been recorded.
const EARLY_MAX: usize = 256;
const EARLY_BYTES_MAX: usize = 1 << 20;
const EARLY_FOR: Duration = Duration::from_secs(60);

/// What was said of tasks that nobody knows of yet, in its order.
#[derive(Debug, Default)]
pub(super) struct Early {
    kept: VecDeque<Said>,
    bytes: usize,
}

#[derive(Debug)]
struct Said {
    upstream: UpstreamName,
    id: String,
    params: String,
    at: Instant,
}

impl Early {
    fn keep(&mut self, said: Said) {
        self.bytes += said.params.len();
        self.kept.push_back(said);
        let old = |said: &Said| said.at.elapsed() > EARLY_FOR;
        while self.kept.len() > EARLY_MAX || self.bytes > EARLY_BYTES_MAX || self.kept.front().is_some_and(old) {
            let Some(first) = self.kept.pop_front() else { return };
            self.bytes -= first.params.len();
        }
    }

    fn take(&mut self, upstream: &UpstreamName, id: &str) -> Vec<String> {
        let is = |said: &Said| said.upstream == *upstream && said.id == id;
        let (found, others) = std::mem::take(&mut self.kept).into_iter().partition(is);
        self.kept = others;
        let found: VecDeque<Said> = found;
        self.bytes -= found.iter().map(|said| said.params.len()).sum::<usize>();
        found.into_iter().filter(|said| said.at.elapsed() <= EARLY_FOR).map(|said| said.params).collect()
    }
}

impl Hub {
    /// An upstream says how a task is, by its own id of it.
    pub fn task(&self, upstream: &UpstreamName, id: &str, params: &str) {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let shown = rules.and_then(|rules| rules.pii.shared().task(params));
        let params = shown.as_deref().unwrap_or(params);
        let mut heard = false;
        self.each(|mailbox| heard |= mailbox.task(upstream, id, params));
        if !heard {
            let said =
                Said { upstream: upstream.clone(), id: id.to_owned(), params: params.to_owned(), at: Instant::now() };
            self.early.lock().unwrap_or_else(PoisonError::into_inner).keep(said);
        }
    }

    /// A client has just been told of a task of its own: it hears how that is from now on, and what was said of it before.
    pub fn begun(&self, mailbox: &Mailbox, upstream: &Arc<Upstream>, id: &str, given: &str) {
        if self.hears_of(mailbox, upstream, id, given) {
            let early = self.early.lock().unwrap_or_else(PoisonError::into_inner).take(&upstream.name, id);
            for params in &early {
                mailbox.task(&upstream.name, id, params);
            }
        }
    }

    /// A client hears how a task is from now on, under the id by which it knows it; `false` where it hears of too many.
    pub fn hears_of(&self, mailbox: &Mailbox, upstream: &Arc<Upstream>, id: &str, given: &str) -> bool {
        let name = (upstream.name.clone(), id.to_owned());
        let added = mailbox.change(|wants| {
            if wants.tasks.len() >= TASKS_MAX && !wants.tasks.contains_key(&name) {
                return None;
            }
            Some(wants.tasks.insert(name, given.to_owned()).is_none())
        });
        match added {
            Some(true) if upstream.era() == Some(Era::Modern) => upstream.news.wants(),
            Some(_) => {}
            None => tracing::warn!(upstream = %upstream.name, "a client has too many tasks to hear of all of them"),
        }
        added.is_some()
    }

    /// The tasks of an upstream that somebody wants to hear of.
    pub fn tasks_of(&self, upstream: &UpstreamName) -> Vec<String> {
        let mut ids = Vec::new();
        self.each(|mailbox| {
            let of = mailbox.change(|wants| wants.tasks.keys().filter(|(at, _)| at == upstream).cloned().collect());
            let of: Vec<(UpstreamName, String)> = of;
            ids.extend(of.into_iter().map(|(_, id)| id));
        });
        ids.sort_unstable();
        ids.dedup();
        ids.truncate(WANTED_MAX);
        ids
    }
}

impl Mailbox {
    /// Whether the client hears of that task; then it is told how it is, in the words of its era.
    pub(super) fn task(&self, upstream: &UpstreamName, id: &str, params: &str) -> bool {
        let name = (upstream.clone(), id.to_owned());
        let over = tasks::status_of(params).is_some_and(|status| tasks::is_over(&status));
        let given = self.change(|wants| match over {
            true => wants.tasks.remove(&name),
            false => wants.tasks.get(&name).cloned(),
        });
        let Some(given) = given else { return false };
        let era = self.era();
        let told = tasks::renamed(&tasks::told_in(params, era), |_| given.clone());
        self.say(tasks::status(era), &told);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Wants;

    const WORKING: &str = r#"{"taskId":"t","status":"working","ttl":7}"#;
    const DONE: &str = r#"{"taskId":"t","status":"completed","ttl":7}"#;

    fn wants(given: &str) -> Wants {
        let tasks = [((UpstreamName::new("shop"), "t".to_owned()), given.to_owned())].into();
        Wants { tasks, ..Wants::default() }
    }

    #[tokio::test]
    async fn a_task_is_told_to_whom_it_belongs_under_the_id_it_has_there_and_to_nobody_else() {
        let (hub, shop) = (Hub::default(), UpstreamName::new("shop"));
        let (ada, bob) = (hub.open(wants("ours"), None), hub.open(Wants::lists(), None));
        let alone = hub.open(wants("other"), Some("7".into()));
        assert_eq!((hub.tasks_of(&shop), hub.tasks_of(&UpstreamName::new("x"))), (vec!["t".to_owned()], vec![]));
        let (mut first, mut second) = (ada.first_reader(), alone.first_reader());
        let mut none = bob.first_reader();
        hub.task(&UpstreamName::new("other"), "t", DONE);
        hub.task(&shop, "u", DONE);
        for said in [WORKING, WORKING, DONE, DONE] {
            hub.task(&shop, "t", said);
        }
        for status in ["working", "working", "completed"] {
            let line = first.next().await.unwrap().unwrap().1;
            assert!(line.contains(r#""method":"notifications/tasks/status""#), "{line}");
            assert!(
                line.contains(r#""taskId":"ours""#) && line.contains(status) && line.contains("\"ttl\":7"),
                "{line}"
            );
            let line = second.next().await.unwrap().unwrap().1;
            assert!(line.contains(r#""method":"notifications/tasks""#), "{line}");
            assert!(line.contains(r#""taskId":"other""#) && line.contains("\"ttlMs\":7"), "{line}");
            assert!(line.contains("subscriptionId\":7"), "{line}");
        }
        hub.lists_changed([amends_wire::mcp::lists::Kind::Tools].into());
        assert!(none.next().await.unwrap().unwrap().1.contains("list_changed"), "nothing came before it");
        assert!(hub.tasks_of(&shop).is_empty(), "it is over");
    }

    #[test]
    fn what_was_said_of_a_task_before_anybody_knew_of_it_is_kept_within_bounds() {
        let (mut early, shop) = (Early::default(), UpstreamName::new("shop"));
        let said = |id: &str, size: usize| Said {
            upstream: shop.clone(),
            id: id.to_owned(),
            params: "x".repeat(size),
            at: Instant::now(),
        };
        early.keep(said("a", 1));
        early.keep(said("b", 2));
        early.keep(said("a", 3));
        assert_eq!(early.take(&shop, "a"), ["x", "xxx"]);
        assert_eq!((early.take(&shop, "a").len(), early.take(&UpstreamName::new("y"), "b").len()), (0, 0));
        for n in 0..2 * EARLY_MAX {
            early.keep(said(&n.to_string(), 1));
        }
        assert_eq!((early.kept.len(), early.bytes), (EARLY_MAX, EARLY_MAX));
        early.keep(said("large", EARLY_BYTES_MAX + 1));
        assert_eq!((early.kept.len(), early.bytes), (0, 0));
    }
}
