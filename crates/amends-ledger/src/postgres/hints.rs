//! Hints from other nodes, by `LISTEN` and `NOTIFY`. Nothing depends on one: whoever waits looks by itself as well.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_postgres::AsyncMessage;

use super::connection::{Connection, Target};
use super::trouble::Trouble;

/// How long after a failure listening is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Listens on a connection of its own, from the first time that somebody waits.
#[derive(Debug)]
pub(super) struct Hints {
    target: Target,
    heard: Arc<Notify>,
    listening: OnceLock<JoinHandle<()>>,
}

impl Hints {
    pub(super) fn new(target: Target) -> Self {
        Self { target, heard: Arc::default(), listening: OnceLock::new() }
    }

    /// Waits for the next hint, counted from this call.
    pub(super) fn next(&self) -> impl Future<Output = ()> + Send + '_ {
        self.listening.get_or_init(|| tokio::spawn(listen(self.target.clone(), Arc::clone(&self.heard))));
        self.heard.notified()
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        if let Some(listening) = self.listening.get() {
            listening.abort();
        }
    }
}

/// Gives the other nodes a hint.
pub(super) async fn give(connection: &Connection) -> Result<(), Trouble> {
    connection.run("NOTIFY amends").await
}

async fn listen(target: Target, heard: Arc<Notify>) {
    // Ends with the ledger.
    loop {
        drop(listen_once(&target, &heard).await);
        sleep(AGAIN_AFTER).await;
    }
}

async fn listen_once(target: &Target, heard: &Notify) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = target.open().await?;
    let asking = tokio::spawn(async move {
        let asked = client.batch_execute("LISTEN amends").await;
        // The connection lives as long as its client.
        asked.map(|()| client)
    });
    // Ends when the connection does.
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        if matches!(message?, AsyncMessage::Notification(_)) {
            heard.notify_waiters();
        }
    }
    drop(asking.await);
    Ok(())
}
