//! How much of the log somebody wants to hear.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_wire::mcp::Era;
use serde_json::json;

use super::Hub;
use crate::upstream::{Reply, Request, Upstream};

const TELL_TIMEOUT: Duration = Duration::from_secs(5);

/// The levels of a log message, the least important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For whoever looks for a fault.
    Debug,
    /// What goes on.
    Info,
    /// What is normal but worth knowing.
    Notice,
    /// What may become a fault.
    Warning,
    /// What failed.
    Error,
    /// What needs a look soon.
    Critical,
    /// What needs a look now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl Level {
    const NAMES: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    /// The level of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map(|(level, _)| level)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.into_iter().find(|(level, _)| *level == self).map_or("debug", |(_, name)| name)
    }
}

/// What an upstream is told to say that was told to say more than anybody wants to hear by now. There is no way to take a word about
/// levels back.
const NOBODY_ASKS: Level = Level::Info;

impl Hub {
    /// Tells an upstream that was greeted anew the most that anybody wants to hear of its log.
    pub async fn tell_level_anew(&self, upstream: &Arc<Upstream>) {
        *upstream.news.told_level.lock().await = None;
        self.tell_level(upstream).await;
    }

    /// Tells an upstream the most that anybody wants to hear of its log, where it has one, takes such a word, and was told otherwise.
    pub async fn tell_level(&self, upstream: &Arc<Upstream>) {
        if upstream.era() != Some(Era::Legacy) || upstream.news.capability("logging").is_none() {
            return;
        }
        // One word at a time, so that the last is what is wanted last.
        let mut told = upstream.news.told_level.lock().await;
        let wanted = self.level(&upstream.name);
        let Some(level) = wanted.or(told.map(|_| NOBODY_ASKS)).filter(|level| *told != Some(*level)) else { return };
        let request = Request {
            method: "logging/setLevel".to_owned(),
            subject: None,
            params: Some(json!({ "level": level.as_str() }).to_string()),
            headers: Vec::new(),
            asides: None,
            send_by: Instant::now() + TELL_TIMEOUT,
            run: None,
        };
        let mut exchange = upstream.send(upstream.ticket(), request);
        match tokio::time::timeout(TELL_TIMEOUT, exchange.reply()).await {
            Ok(Reply::Result(_)) => *told = Some(level),
            Ok(_) | Err(_) => {
                tracing::debug!(upstream = %upstream.name, "it was not told how much of its log is wanted");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_by_their_names_and_compared_by_their_weight() {
        for (level, name) in Level::NAMES {
            assert_eq!((Level::parse(name), level.as_str()), (Some(level), name));
        }
        assert!(Level::NAMES.is_sorted_by_key(|(level, _)| *level));
        assert_eq!(Level::parse("loud"), None);
    }
}
