//! Somebody in the program who calls tools.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use amends_core::{Principal, SessionId};
use amends_gateway::Gateway;
use amends_gateway::door::inside::Inside;
use serde_json::{Map, Value};

use super::told::{Stopping, Told};

/// Somebody in the program who calls tools. Clones share one session.
#[derive(Clone, Debug)]
pub struct Agent {
    inside: Arc<Inside>,
}

/// A call that is made when it is awaited.
#[must_use = "a call is made when it is awaited"]
#[derive(Debug)]
pub struct Call<'a> {
    agent: &'a Agent,
    tool: String,
    arguments: Value,
    meta: Map<String, Value>,
}

impl Agent {
    pub(super) fn new(gateway: &Arc<Gateway>, name: &str) -> Self {
        Self { inside: Arc::new(Inside::new(gateway, Principal::new(name))) }
    }

    /// Its session, whose trace tells what it did.
    pub fn session(&self) -> &SessionId {
        self.inside.session()
    }

    /// A call of a tool: a function, a tool of an upstream, or `step` of a machine.
    pub fn call(&self, tool: &str, arguments: Value) -> Call<'_> {
        Call { agent: self, tool: tool.to_owned(), arguments, meta: Map::new() }
    }
}

impl Call<'_> {
    /// The same call again has the same key; another key is another call.
    pub fn key(self, key: &str) -> Self {
        self.meta(amends_gateway::door::inside::KEY, key.into())
    }

    /// How long the agent waits at most. What was sent by then is settled without it.
    pub fn within(self, time: Duration) -> Self {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.meta(amends_gateway::door::inside::DEADLINE, ms.into())
    }

    fn meta(mut self, name: &str, value: Value) -> Self {
        self.meta.insert(name.to_owned(), value);
        self
    }
}

impl<'a> IntoFuture for Call<'a> {
    type Output = Result<Told, Stopping>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let told = self.agent.inside.call(&self.tool, &self.arguments, self.meta).await;
            told.map(Told::new).ok_or(Stopping)
        })
    }
}
