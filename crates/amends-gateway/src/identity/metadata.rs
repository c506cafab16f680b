//! The description of us that tells agents where to get a token: RFC 9728.

use serde_json::{Value, json};

use crate::config::OAuthConfig;

/// Where it is; what follows is the path of the resource.
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The description of the resource that an issuer's tokens are for.
pub(crate) fn metadata(oauth: &OAuthConfig) -> Value {
    let mut described = json!({
        "resource": oauth.audience,
        "authorization_servers": [oauth.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "Amends",
    });
    let scopes = oauth.scopes();
    if !scopes.is_empty() {
        described["scopes_supported"] = json!(scopes);
    }
    described
}
