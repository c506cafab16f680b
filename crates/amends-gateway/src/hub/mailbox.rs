//! What waits for one client: a small ring, so that one that does not read costs no more than that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amends_core::{SessionId, UpstreamName};
use amends_wire::mcp::lists::{Kind, with_meta};
use amends_wire::mcp::steps::{Address, What};
use amends_wire::mcp::{Era, era};
use amends_wire::message;
use tokio::sync::Notify;

use super::Level;
use crate::mint;

/// How many messages are kept for a client.
const KEPT_MAX: usize = 256;

/// What a client wants to hear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// That the tools changed.
    pub tools: bool,
    /// That the prompts changed.
    pub prompts: bool,
    /// That the resources changed.
    pub resources: bool,
    /// Which resources it wants to hear of, and where they live.
    pub uris: BTreeMap<String, UpstreamName>,
    /// How much of the log.
    pub level: Option<Level>,
    /// Which tasks, by their upstreams and their own ids, and the ids by which the client knows them.
    pub tasks: BTreeMap<(UpstreamName, String), String>,
    /// The walk that addresses of ours mean where they name none.
    pub walk: Option<SessionId>,
}

impl Wants {
    /// What a stateful client hears without asking for it.
    pub fn lists() -> Self {
        Self { tools: true, prompts: true, resources: true, ..Self::default() }
    }

    /// Hears of the lists from now on.
    pub fn hear_of_lists(&mut self) {
        (self.tools, self.prompts, self.resources) = (true, true, true);
    }

    fn hears_of(&self, kind: Kind) -> bool {
        match kind {
            Kind::Tools => self.tools,
            Kind::Prompts => self.prompts,
            Kind::Resources | Kind::Templates => self.resources,
        }
    }
}

/// Messages were lost: as many as this, because the client did not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun(pub u64);

/// What waits for one client.
#[derive(Debug)]
pub struct Mailbox {
    wants: Mutex<Wants>,
    listen: Option<String>,
    /// What tells the numbers of this mailbox from those of another.
    token: String,
    ring: Mutex<Ring>,
    told: Notify,
    readers: AtomicU64,
}

#[derive(Debug, Default)]
struct Ring {
    kept: VecDeque<Arc<str>>,
    /// The number of the first that is kept.
    first: u64,
    /// The number of the first that nobody has read.
    unread: u64,
}

impl Mailbox {
    pub(super) fn new(wants: Wants, listen: Option<String>) -> Self {
        let (wants, ring) = (Mutex::new(wants), Mutex::default());
        Self { wants, listen, token: mint::token(), ring, told: Notify::new(), readers: AtomicU64::new(0) }
    }

    /// Changes what the client wants to hear.
    pub fn change<T>(&self, change: impl FnOnce(&mut Wants) -> T) -> T {
        change(&mut self.wants.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn level(&self) -> Option<Level> {
        self.change(|wants| wants.level)
    }

    pub(super) fn list_changed(&self, kind: Kind) {
        if self.change(|wants| wants.hears_of(kind)) {
            self.put(kind.changed(), None, true);
        }
    }

    pub(super) fn updated(&self, upstream: &UpstreamName, uri: &str, params: &str) {
        // It may be a part of what the client named.
        let named = |wants: &mut Wants| wants.uris.iter().any(|(named, at)| at == upstream && uri.starts_with(named));
        if self.change(named) {
            self.put("notifications/resources/updated", Some(params), true);
        }
    }

    /// A walk moved: whatever of it the client named is different now.
    pub(super) fn moved(&self, session: &SessionId) {
        let named = self.change(|wants| {
            // Most name nothing, and walks move often.
            if wants.uris.is_empty() {
                return Vec::new();
            }
            let own = super::subscription::own();
            let ours = |what: What, session: Option<String>| {
                let uri = Address { session, what }.to_string();
                (wants.uris.get(&uri) == Some(&own)).then_some(uri)
            };
            let is_own = wants.walk.as_ref() == Some(session);
            let by_name = What::ALL.into_iter().filter_map(|what| ours(what, Some(session.to_string())));
            let plain = What::ALL.into_iter().filter(|_| is_own).filter_map(|what| ours(what, None));
            by_name.chain(plain).collect::<Vec<String>>()
        });
        for uri in named {
            self.put("notifications/resources/updated", Some(&serde_json::json!({ "uri": uri }).to_string()), true);
        }
    }

    pub(super) fn logged(&self, level: Level, params: &str) {
        if self.change(|wants| wants.level.is_some_and(|least| level >= least)) {
            self.say("notifications/message", params);
        }
    }

    /// The era of whoever reads it.
    pub(super) fn era(&self) -> Era {
        if self.listen.is_some() { Era::Modern } else { Era::Legacy }
    }

    /// Puts in what is said once for each time that it is.
    pub(super) fn say(&self, method: &str, params: &str) {
        self.put(method, Some(params), false);
    }

    fn put(&self, method: &str, params: Option<&str>, once: bool) {
        let params = match &self.listen {
            Some(id) => Some(with_meta(params.unwrap_or("{}"), era::SUBSCRIPTION_ID, id)),
            None => params.map(str::to_owned),
        };
        let line: Arc<str> = message::notification(method, params.as_deref()).into();
        let mut ring = self.ring();
        // That something changed is news once, until it is read.
        let unread = ring.unread.saturating_sub(ring.first) as usize;
        if once && ring.kept.iter().skip(unread).any(|kept| *kept == line) {
            return;
        }
        if ring.kept.len() >= KEPT_MAX {
            ring.kept.pop_front();
            ring.first += 1;
        }
        ring.kept.push_back(line);
        drop(ring);
        self.told.notify_waiters();
    }

    /// A reader begins; any other one ends. It reads what comes from now on, or after the event of that id, as far as it is kept.
    pub fn reader(self: &Arc<Self>, after: Option<&str>) -> Reader {
        let n = self.readers.fetch_add(1, Ordering::AcqRel) + 1;
        self.told.notify_waiters();
        let mut ring = self.ring();
        let end = ring.first + ring.kept.len() as u64;
        let known = after.and_then(|id| id.strip_prefix(&self.token)?.strip_prefix('-')?.parse::<u64>().ok());
        let next = known.map_or(end, |seen| (seen.saturating_add(1)).clamp(ring.first, end));
        // What comes before is read by nobody any more, and equal news after it is news.
        ring.unread = next;
        drop(ring);
        Reader { mailbox: self.clone(), n, next }
    }

    /// Ends whoever reads.
    pub fn close(&self) {
        self.readers.fetch_add(1, Ordering::AcqRel);
        self.told.notify_waiters();
    }

    /// A reader that begins with what nobody has read.
    pub fn first_reader(self: &Arc<Self>) -> Reader {
        let mut reader = self.reader(None);
        let mut ring = self.ring();
        ring.unread = ring.first;
        reader.next = ring.first;
        drop(ring);
        reader
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who reads a mailbox.
#[derive(Debug)]
pub struct Reader {
    mailbox: Arc<Mailbox>,
    n: u64,
    next: u64,
}

impl Reader {
    /// Waits for the next message and gives its id and itself; nothing once another reads.
    pub async fn next(&mut self) -> Result<Option<(String, Arc<str>)>, Overrun> {
        loop {
            let mailbox = self.mailbox.clone();
            let told = mailbox.told.notified();
            tokio::pin!(told);
            // From here on it hears of what is put in.
            told.as_mut().enable();
            if self.mailbox.readers.load(Ordering::Acquire) != self.n {
                return Ok(None);
            }
            if let Some(found) = self.take()? {
                return Ok(Some(found));
            }
            told.await;
        }
    }

    fn take(&mut self) -> Result<Option<(String, Arc<str>)>, Overrun> {
        let mut ring = self.mailbox.ring();
        if self.next < ring.first {
            return Err(Overrun(ring.first - self.next));
        }
        let Some(line) = ring.kept.get((self.next - ring.first) as usize).cloned() else { return Ok(None) };
        let id = format!("{}-{}", self.mailbox.token, self.next);
        self.next += 1;
        ring.unread = ring.unread.max(self.next);
        Ok(Some((id, line)))
    }

    /// Waits until what comes next is lost.
    pub async fn overrun(&self) -> Overrun {
        loop {
            let told = self.mailbox.told.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            let first = self.mailbox.ring().first;
            if self.next < first {
                return Overrun(first - self.next);
            }
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox(wants: Wants, listen: Option<&str>) -> Arc<Mailbox> {
        Arc::new(Mailbox::new(wants, listen.map(str::to_owned)))
    }

    async fn read(reader: &mut Reader) -> (String, String) {
        let (id, line) = reader.next().await.unwrap().unwrap();
        (id, line.to_string())
    }

    #[tokio::test]
    async fn a_client_hears_what_it_wants_and_news_once() {
        let shop = UpstreamName::new("shop");
        let wants = Wants { uris: [("a://x".to_owned(), shop.clone())].into(), ..Wants::lists() };
        let mailbox = mailbox(wants, None);
        let mut reader = mailbox.reader(None);
        mailbox.list_changed(Kind::Resources);
        mailbox.list_changed(Kind::Templates);
        mailbox.updated(&shop, "a://x/part", r#"{"uri":"a://x/part"}"#);
        mailbox.updated(&shop, "b://y", "{}");
        mailbox.updated(&UpstreamName::new("other"), "a://x", "{}");
        mailbox.logged(Level::Emergency, "{}");
        mailbox.list_changed(Kind::Tools);
        assert!(read(&mut reader).await.1.contains("resources/list_changed"));
        assert!(read(&mut reader).await.1.contains(r#""params":{"uri":"a://x/part"}"#));
        assert!(read(&mut reader).await.1.contains("tools/list_changed"));
        mailbox.list_changed(Kind::Tools);
        assert!(read(&mut reader).await.1.contains("tools/list_changed"), "read once, it is news again");
    }

    #[tokio::test]
    async fn a_move_is_told_to_whoever_named_that_walk_or_means_it() {
        let own = crate::hub::subscription::own();
        let uris = ["amends://next", "amends://ses_2/state", "amends://ses_3/next"];
        let uris = uris.into_iter().map(|uri| (uri.to_owned(), own.clone())).collect();
        let mailbox = mailbox(Wants { uris, walk: Some(SessionId::new("ses_1")), ..Wants::default() }, None);
        let mut reader = mailbox.reader(None);
        for session in ["ses_4", "ses_2", "ses_1"] {
            mailbox.moved(&SessionId::new(session));
        }
        assert!(read(&mut reader).await.1.contains(r#""params":{"uri":"amends://ses_2/state"}"#));
        assert!(read(&mut reader).await.1.contains(r#""params":{"uri":"amends://next"}"#));
        mailbox.updated(&UpstreamName::new("shop"), "amends://next", "{}");
        mailbox.moved(&SessionId::new("ses_3"));
        assert!(read(&mut reader).await.1.contains("amends://ses_3/next"), "an upstream does not speak for us");
    }

    #[tokio::test]
    async fn a_listen_names_itself_in_everything_it_gets() {
        let mailbox = mailbox(Wants { tools: true, ..Wants::default() }, Some("\"l-1\""));
        mailbox.list_changed(Kind::Prompts);
        mailbox.list_changed(Kind::Tools);
        let line = read(&mut mailbox.first_reader()).await.1;
        assert!(line.contains(r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"l-1"}}"#), "{line}");
    }

    #[tokio::test]
    async fn a_reader_that_comes_back_gets_what_it_missed_as_far_as_it_is_kept() {
        let mailbox = mailbox(Wants { level: Some(Level::Debug), ..Wants::default() }, None);
        let mut reader = mailbox.reader(None);
        let log = |n: usize| mailbox.logged(Level::Info, &format!(r#"{{"n":{n}}}"#));
        (0..3).for_each(log);
        let (seen, _) = read(&mut reader).await;
        let mut again = mailbox.reader(Some(&seen));
        assert_eq!(reader.next().await, Ok(None), "another reads");
        assert!(read(&mut again).await.1.contains(r#"{"n":1}"#));
        for odd in ["", "x", "x-1", &format!("{}-x", mailbox.token), &format!("{}-99999999999999999999", mailbox.token)]
        {
            let mut fresh = mailbox.reader(Some(odd));
            log(7);
            assert!(read(&mut fresh).await.1.contains(r#"{"n":7}"#), "{odd}");
        }
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_loses_messages_and_is_told_how_many() {
        let mailbox = mailbox(Wants { level: Some(Level::Debug), ..Wants::default() }, None);
        let mut reader = mailbox.reader(None);
        (0..KEPT_MAX + 5).for_each(|n| mailbox.logged(Level::Info, &n.to_string()));
        assert_eq!(reader.overrun().await, Overrun(5));
        assert_eq!(reader.next().await, Err(Overrun(5)));
        assert_eq!(mailbox.ring().kept.len(), KEPT_MAX);
    }
}
