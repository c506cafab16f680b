//! Who is on the other side of an MCP door.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::{Principal, SessionId};
use amends_wire::mcp::{ClientTraits, Era, era};
use amends_wire::object::Object;
use serde_json::value::RawValue;
use tokio::sync::{oneshot, watch};

use super::{Asked, Wrapped};
use crate::door::walk::OwnWalks;
use crate::driver::SessionHandle;
use crate::gateway::Gateway;
use crate::hub::{Level, Mailbox, Subscribed, Wants};

/// How many resources one client may want to hear of.
pub(super) const SUBSCRIPTIONS_MAX: usize = 1000;

/// Who is on the other side: for as long as a stateful session or a line lasts, or for one stateless request.
#[derive(Debug)]
pub struct Client {
    /// The gateway it came to.
    pub gateway: Arc<Gateway>,
    /// Whom it acts for.
    pub principal: Principal,
    door: &'static str,
    session: OnceLock<SessionHandle>,
    said: Mutex<Said>,
    running: Mutex<HashMap<String, (u64, oneshot::Sender<CancelReason>)>>,
    open: watch::Sender<usize>,
    questions: Mutex<HashMap<String, oneshot::Sender<String>>>,
    next: AtomicU64,
    wrapped: Option<Wrapped>,
    mailbox: OnceLock<Arc<Mailbox>>,
    subscribed: Mutex<BTreeMap<String, Subscribed>>,
    walks: OwnWalks,
}

/// What a client said of itself.
#[derive(Clone, Debug)]
pub struct Said {
    /// What follows from its era and its name.
    pub traits: ClientTraits,
    /// What it can do, as it was written; nothing where it did not say.
    pub capabilities: Option<Box<RawValue>>,
}

impl Said {
    /// What a client that said nothing is taken for.
    pub fn nothing() -> Self {
        Self { traits: ClientTraits::of(Era::Legacy, None), capabilities: None }
    }

    /// What the parameters of an `initialize` say.
    pub fn in_greeting(params: Option<&RawValue>) -> Self {
        let params = params.and_then(|params| Object::parse(params.get()));
        let info = params.as_ref().and_then(|params| Object::parse(params.get("clientInfo")?.get()));
        let name = info.and_then(|info| info.string("name").map(|name| name.into_owned()));
        let capabilities = params.and_then(|params| params.get("capabilities")).map(ToOwned::to_owned);
        Self { traits: ClientTraits::of(Era::Legacy, name.as_deref()), capabilities }
    }

    /// What the `_meta` of a request that stands alone says; nothing where it does not name its version.
    pub fn in_meta(params: Option<&RawValue>) -> Option<Self> {
        let meta = Object::parse(params?.get())?.get("_meta")?;
        let meta = Object::parse(meta.get())?;
        let era = Era::of_version(&meta.string(era::PROTOCOL_VERSION)?);
        let info = meta.get(era::CLIENT_INFO).and_then(|info| Object::parse(info.get()));
        let name = info.and_then(|info| info.string("name").map(|name| name.into_owned()));
        let capabilities = meta.get(era::CLIENT_CAPABILITIES).map(ToOwned::to_owned);
        Some(Self { traits: ClientTraits::of(era, name.as_deref()), capabilities })
    }

    /// Whether it says that it can do that, such as `elicitation`.
    pub fn can(&self, capability: &str) -> bool {
        let declared = self.capabilities.as_ref().and_then(|declared| Object::parse(declared.get()));
        declared.and_then(|declared| declared.get(capability)).is_some_and(|it| it.get().starts_with('{'))
    }
}

impl Client {
    /// A client at that door of the gateway, of which that is known.
    pub fn new(gateway: Arc<Gateway>, principal: Principal, door: &'static str, said: Said) -> Self {
        Self {
            gateway,
            principal,
            door,
            session: OnceLock::new(),
            said: Mutex::new(said),
            running: Mutex::default(),
            open: watch::Sender::new(0),
            questions: Mutex::default(),
            next: AtomicU64::new(1),
            wrapped: None,
            mailbox: OnceLock::new(),
            subscribed: Mutex::default(),
            walks: OwnWalks::default(),
        }
    }

    /// The same client in front of a single server, to which everything but tool calls is passed as it is.
    #[must_use]
    pub fn before(self, wrapped: Wrapped) -> Self {
        Self { wrapped: Some(wrapped), ..self }
    }

    /// The server it is in front of, where everything but tool calls is passed through.
    pub fn wrapped(&self) -> Option<&Wrapped> {
        self.wrapped.as_ref().filter(|wrapped| !wrapped.is_bridged())
    }

    /// The session its calls belong to, begun with the first of them.
    pub fn session(&self) -> &SessionHandle {
        self.session.get_or_init(|| self.gateway.open_session(self.principal.clone(), self.door))
    }

    /// It greeted.
    pub fn greets(&self, said: Said) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = said;
    }

    /// What it said of itself: with this request, where that stands alone, else when it greeted.
    pub fn said(&self, asked: &Asked) -> Said {
        let greeting = || self.said.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Said::in_meta(asked.params.as_deref()).unwrap_or_else(greeting)
    }

    /// The era in which it wants that answered.
    pub fn era(&self, asked: &Asked) -> Era {
        asked.era().unwrap_or_else(|| self.said.lock().unwrap_or_else(PoisonError::into_inner).traits.era)
    }

    /// A request of it runs, and can be stopped by its id.
    pub fn runs(self: &Arc<Self>, id: &str) -> Running {
        let (stop, stopped) = oneshot::channel();
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        self.running().insert(id.to_owned(), (n, stop));
        self.open.send_modify(|open| *open += 1);
        Running { client: self.clone(), id: id.to_owned(), n, stopped }
    }

    /// It wants a request stopped; `false` where that is over.
    pub fn cancels(&self, id: &str) -> bool {
        let stop = self.running().remove(id);
        stop.is_some_and(|(_, stop)| stop.send(CancelReason::Asked).is_ok())
    }

    /// Stops everything it asked for.
    pub fn stop_all(&self, reason: CancelReason) {
        for (_, stop) in std::mem::take(&mut *self.running()).into_values() {
            // A request that is over by now needs no stopping.
            let _ = stop.send(reason);
        }
    }

    /// Waits until nothing it asked for is open any more.
    pub async fn settled(&self) {
        // The sender lives as long as we do.
        let _ = self.open.subscribe().wait_for(|open| *open == 0).await;
    }

    /// An id for a question to it, and where its answer will come.
    pub fn expects(&self) -> (String, oneshot::Receiver<String>) {
        let id = self.question_id();
        let (sender, receiver) = oneshot::channel();
        self.questions().insert(id.clone(), sender);
        (id, receiver)
    }

    /// An id of ours that no other question to it has.
    pub fn question_id(&self) -> String {
        format!("\"amends-{}\"", self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// An answer to a question is not waited for any more.
    pub fn forgets(&self, id: &str) {
        self.questions().remove(id);
    }

    /// It answered a question of ours; `false` where nobody waits for that.
    pub fn answers(&self, id: &str, message: &str) -> bool {
        let asker = self.questions().remove(id);
        asker.is_some_and(|asker| asker.send(message.to_owned()).is_ok())
    }

    /// What waits to be told to it of upstreams' own accord. A stateful client hears of the lists without asking.
    pub fn mailbox(&self) -> &Arc<Mailbox> {
        self.mailbox.get_or_init(|| self.gateway.hub.open(Wants::lists(), None))
    }

    /// How much of the log it said it wants to hear.
    pub fn level(&self) -> Option<Level> {
        self.mailbox.get().and_then(|mailbox| mailbox.change(|wants| wants.level))
    }

    /// It wants to hear of a resource; `false` where it wants to hear of too many.
    pub fn subscribes(&self, uri: &str, subscribed: Subscribed) -> bool {
        let mut all = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SUBSCRIPTIONS_MAX && !all.contains_key(uri) {
            return false;
        }
        self.mailbox().change(|wants| wants.uris.insert(uri.to_owned(), subscribed.upstream().clone()));
        all.insert(uri.to_owned(), subscribed);
        true
    }

    /// It does not want to hear of a resource any more; `false` where it did not before.
    pub fn unsubscribes(&self, uri: &str) -> bool {
        self.mailbox().change(|wants| wants.uris.remove(uri));
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).remove(uri).is_some()
    }

    /// Its connection is known by that id, here and wherever else it comes.
    pub(crate) fn known_by(&self, id: &str) {
        self.walks.known_by(id);
    }

    /// The walks of its connection, where it has one: what stands alone has none.
    pub(crate) fn own_walks(&self, era: Era) -> Option<&OwnWalks> {
        (era == Era::Legacy).then_some(&self.walks)
    }

    /// Addresses that name no walk mean that one from now on.
    pub(crate) fn walks(&self, session: &SessionId) {
        self.mailbox().change(|wants| wants.walk = Some(session.clone()));
    }

    /// The door it came through.
    pub(super) fn door(&self) -> &'static str {
        self.door
    }

    /// It is gone for good.
    pub fn ends(&self, reason: CancelReason) {
        self.stop_all(reason);
        if let Some(mailbox) = self.mailbox.get() {
            mailbox.close();
            if mailbox.change(|wants| wants.level.take()).is_some() {
                self.gateway.hub.hears_less(&self.gateway.upstreams());
            }
        }
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, (u64, oneshot::Sender<CancelReason>)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<String>>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that runs, until this is dropped.
#[derive(Debug)]
pub struct Running {
    client: Arc<Client>,
    id: String,
    n: u64,
    stopped: oneshot::Receiver<CancelReason>,
}

impl Running {
    /// Waits until the client wants it stopped, for ever where it never does.
    pub async fn stopped(&mut self) -> CancelReason {
        match (&mut self.stopped).await {
            Ok(reason) => reason,
            // Another request took its id, and cannot be told from it any more.
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = self.client.running();
        if running.get(&self.id).is_some_and(|(n, _)| *n == self.n) {
            running.remove(&self.id);
        }
        drop(running);
        self.client.open.send_modify(|open| *open -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn what_a_client_says_of_itself_is_read_in_both_eras() {
        let greeting = raw(r#"{"capabilities":{"elicitation":{},"roots":true},"clientInfo":{"name":"mcp"}}"#);
        let said = Said::in_greeting(Some(&greeting));
        assert_eq!((said.traits.era, said.traits.validates_errors), (Era::Legacy, false));
        assert!(said.can("elicitation") && !said.can("roots") && !said.can("sampling"));
        let meta = raw(&format!(
            r#"{{"_meta":{{"{}":"2026-07-28","{}":{{"sampling":{{}}}}}}}}"#,
            era::PROTOCOL_VERSION,
            era::CLIENT_CAPABILITIES
        ));
        let said = Said::in_meta(Some(&meta)).unwrap();
        assert!(said.traits.era == Era::Modern && said.can("sampling") && !said.can("elicitation"));
        assert!(Said::in_meta(Some(&greeting)).is_none());
        for odd in ["[]", "{}", r#"{"capabilities":7,"clientInfo":[]}"#] {
            assert!(!Said::in_greeting(Some(&raw(odd))).can("elicitation"), "{odd}");
        }
    }
}
