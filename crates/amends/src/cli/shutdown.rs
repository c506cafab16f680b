//! Waiting for the end, and what is done then.

use std::time::Duration;

use amends_gateway::Gateway;
use anyhow::Result;

/// How long the end waits for a last checkpoint. What it does not cover is covered by the next process.
const CHECKPOINT_WITHIN: Duration = Duration::from_secs(5);

/// Lets the last spans go, and signs a last checkpoint, if that does not take long.
pub(super) async fn checkpoint(gateway: &Gateway) {
    gateway.flush().await;
    if tokio::time::timeout(CHECKPOINT_WITHIN, gateway.checkpoint()).await.is_err() {
        tracing::warn!("the last checkpoint took too long and was left");
    }
}

/// Waits until somebody interrupts or ends the process.
pub(super) async fn asked() -> Result<()> {
    #[cfg(unix)]
    {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    Ok(())
}
