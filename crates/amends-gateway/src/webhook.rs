//! Questions that are posted to an address of the operator's, signed, until they are taken or over.
//!
//! What is posted is read from the ledger's queue, and so is who posts it and that it was taken: one node at a time tries, and what was
//! taken is not posted again by whichever node, whenever it was started. Where a node dies after the receiver took a question and
//! before that is recorded, it is posted once more, with the same id, by which the receiver tells that it has it. So a crash loses none.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use amends_core::{Interaction, InteractionId};
use amends_ledger::{Posting, QueueFilter, keyed_digest};
use bytes::Bytes;
use futures_util::future::join_all;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use ring::hmac;
use serde_json::json;

use crate::clock;
use crate::config::{Access, CredentialConfig, WebhookConfig};
use crate::gateway::Gateway;
use crate::upstream::credential_now;
use crate::upstream::http::pool as connections;
use crate::upstream::http::pool::{Departure, Pool, Sent};

/// How often the queues are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How many open questions of a queue are looked at.
const OPEN_MAX: usize = 256;
/// How many are posted at once.
const AT_ONCE: usize = 16;
/// How long a receiver may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How much of its answer is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The waits before a question is posted again: each twice as long as the one before, up to the last.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(300);
/// For how long a node that posts a question keeps the others from it: longer than one try takes.
const MINE_FOR_MS: u64 = 30_000;
/// When it is looked at again whether another node's try came to nothing.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// After which time a question is posted by whichever node, and not only by the one that asks.
const ANYBODY_AFTER_MS: u64 = 5_000;
/// The header that signs a question: `t=MILLISECONDS,v1=HEX`.
const SIGNATURE: HeaderName = HeaderName::from_static("amends-signature");

/// How far a question's posting is.
#[derive(Debug, Default)]
struct Tries {
    failed: u32,
    not_before: Option<Instant>,
    taken: bool,
}

/// Posts what is asked, until the gateway is gone.
pub(crate) async fn post_questions(gateway: Weak<Gateway>) {
    let mut tries: HashMap<InteractionId, Tries> = HashMap::new();
    let mut pools: HashMap<String, Pool> = HashMap::new();
    loop {
        let Some(strong) = gateway.upgrade() else {
            return;
        };
        look(&strong, &mut tries, &mut pools).await;
        drop(strong);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn look(gateway: &Arc<Gateway>, tries: &mut HashMap<InteractionId, Tries>, pools: &mut HashMap<String, Pool>) {
    let config = gateway.config();
    let mut open: Vec<(WebhookConfig, Interaction)> = Vec::new();
    for (name, queue) in &config.people.queues {
        let Some(webhook) = &queue.webhook else { continue };
        let filter = QueueFilter { queue: Some(name.clone()), tenant: None, all: false };
        match gateway.ledger.queue(&filter, OPEN_MAX).await {
            Ok(entries) => open.extend(entries.into_iter().map(|entry| (webhook.clone(), entry.interaction))),
            Err(error) => {
                tracing::warn!(%error, queue = name, "a queue cannot be read");
                return;
            }
        }
    }
    tries.retain(|id, _| open.iter().any(|(_, interaction)| interaction.id == *id));
    let now = Instant::now();
    let is_due = |interaction: &Interaction| match tries.get(&interaction.id) {
        Some(tried) => !tried.taken && tried.not_before.is_none_or(|at| at <= now),
        None => {
            let old = clock::now().since_ms(interaction.opened) >= ANYBODY_AFTER_MS;
            old || gateway.driver_of(&interaction.session).is_some()
        }
    };
    let due: Vec<_> = open.iter().filter(|(_, interaction)| is_due(interaction)).take(AT_ONCE).collect();
    for (webhook, _) in &due {
        if !pools.contains_key(&webhook.url)
            && let Some(pool) = pool_of(&webhook.url)
        {
            pools.insert(webhook.url.clone(), pool);
        }
    }
    let posts = due.iter().map(|(webhook, interaction)| {
        let pool = pools.get(&webhook.url);
        async move { (interaction.id.clone(), tried(gateway, pool, webhook, interaction).await) }
    });
    for (id, came) in join_all(posts).await {
        let tried = tries.entry(id).or_default();
        tried.taken = came == Came::Taken;
        let wait = match came {
            Came::Taken => continue,
            Came::NotOurs => LOOK_AGAIN_AFTER,
            Came::Failed => {
                let wait = AGAIN_AFTER.saturating_mul(1 << tried.failed.min(16)).min(AGAIN_AFTER_MAX);
                tried.failed = tried.failed.saturating_add(1);
                wait
            }
        };
        tried.not_before = Some(Instant::now() + wait);
    }
}

/// What came of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Taken,
    Failed,
    /// Another node posts it, or it was taken before.
    NotOurs,
}

/// Posts a question, if nobody else does or did.
async fn tried(gateway: &Gateway, pool: Option<&Pool>, webhook: &WebhookConfig, interaction: &Interaction) -> Came {
    let Some(pool) = pool else { return Came::Failed };
    match recorded(gateway, interaction, Posting::Begun { until: clock::now() + MINE_FOR_MS }).await {
        Some(true) => {}
        Some(false) => return Came::NotOurs,
        None => return Came::Failed,
    }
    if !post(gateway, pool, webhook, interaction).await {
        return Came::Failed;
    }
    // Where that cannot be recorded, it may be posted once more.
    let _ = recorded(gateway, interaction, Posting::Done).await;
    Came::Taken
}

/// Records how far a question is, and says whether that is ours to say; nothing where the ledger is away.
async fn recorded(gateway: &Gateway, interaction: &Interaction, posting: Posting) -> Option<bool> {
    let recorded = gateway.ledger.posting(&interaction.id, posting, clock::now()).await;
    recorded.inspect_err(|error| tracing::warn!(%error, "how far a question is cannot be recorded")).ok()
}

fn pool_of(url: &str) -> Option<Pool> {
    let uri: Uri = url.parse().ok()?;
    connections(&uri, &Access::default())
        .inspect_err(|error| tracing::warn!(%error, url, "questions cannot be posted there"))
        .ok()
}

/// Posts one question. Only a receiver that says so has taken it.
async fn post(gateway: &Gateway, pool: &Pool, webhook: &WebhookConfig, interaction: &Interaction) -> bool {
    let secret = CredentialConfig { source: webhook.secret.clone(), prefix: String::new() };
    let secret = match credential_now(&secret) {
        Ok(secret) => secret,
        Err(error) => {
            tracing::warn!(%error, url = webhook.url, "a question cannot be signed");
            return false;
        }
    };
    let body = json!({
        "id": interaction.id,
        "interaction": interaction,
        "callback": { "path": "/callback/interaction", "token": token(gateway, &interaction.id) },
    })
    .to_string();
    let signature = signature(secret.as_bytes(), clock::now().ms(), &body);
    let Some(request) = request(&webhook.url, body, &signature) else { return false };
    let departure = Departure::default();
    let send = pool.send(request, Instant::now() + ANSWER_WITHIN, &departure);
    match tokio::time::timeout(ANSWER_WITHIN, send).await {
        Ok(Ok(Sent { response, connection })) => {
            let (parts, body) = response.into_parts();
            // Read to its end, so that the connection can be used again.
            let read = tokio::time::timeout(ANSWER_WITHIN, Limited::new(body, ANSWER_BYTES_MAX).collect()).await;
            if matches!(read, Ok(Ok(_))) {
                pool.keep(connection);
            }
            if !parts.status.is_success() {
                tracing::warn!(status = %parts.status, url = webhook.url, "a question was not taken");
            }
            parts.status.is_success()
        }
        Ok(Err(_)) | Err(_) => {
            tracing::warn!(url = webhook.url, "a question could not be posted");
            false
        }
    }
}

fn request(url: &str, body: String, signature: &str) -> Option<Request<Full<Bytes>>> {
    let uri: Uri = url.parse().ok()?;
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.path_and_query().map_or("/", |path| path.as_str()).parse().ok()?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(uri.authority()?.as_str()).ok()?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(SIGNATURE, HeaderValue::from_str(signature).ok()?);
    Some(request)
}

/// What proves that we posted that at that time: the HMAC-SHA256 of `MILLISECONDS.BODY`.
fn signature(secret: &[u8], at_ms: u64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let tag = hmac::sign(&key, format!("{at_ms}.{body}").as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={at_ms},v1={hex}")
}

/// The token by which the receiver of a question answers it. The question takes one answer, so it is good once.
pub(crate) fn token(gateway: &Gateway, id: &InteractionId) -> String {
    keyed_digest(&gateway.secret, &[b"callback", id.as_str().as_bytes()]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_hmac_of_the_time_and_the_body() {
        // By `printf '12.{}' | openssl dgst -sha256 -hmac key`.
        let hex = "043e30e1e15664dc97494d18e4110984bcbd2c4e6f3e19de9569dc1ea6d9b03e";
        assert_eq!(signature(b"key", 12, "{}"), format!("t=12,v1={hex}"));
    }
}
