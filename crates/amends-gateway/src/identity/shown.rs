//! What the token of the request that is being handled is good for, in its issuer's words.

use std::collections::BTreeSet;
use std::sync::Arc;

tokio::task_local! {
    static SCOPES: Arc<BTreeSet<String>>;
}

/// Does something for whoever showed a token with those scopes.
pub(crate) async fn with<F: Future>(scopes: Arc<BTreeSet<String>>, work: F) -> F::Output {
    SCOPES.scope(scopes, work).await
}

/// The scopes of the request that is being handled; none where there is no token.
pub(crate) fn scopes() -> Arc<BTreeSet<String>> {
    SCOPES.try_with(Clone::clone).unwrap_or_default()
}
