//! Whom the doors let in, explained.

use amends_gateway::Config;
use amends_gateway::config::{KeySource, OAuthConfig, TokenConfig};
use serde_json::{Value, json};

/// Whom the doors let in.
pub(super) struct CheckedAuth {
    lines: Vec<String>,
    tokens: Vec<Value>,
    oauth: Option<Value>,
    asked: bool,
    /// What is worth a second look.
    pub(super) warnings: Vec<String>,
}

impl CheckedAuth {
    pub(super) fn of(config: &Config) -> Self {
        let auth = &config.auth;
        let mut lines: Vec<String> = auth.tokens.iter().map(token_line).collect();
        lines.extend(auth.oauth.iter().flat_map(oauth_lines));
        let mut warnings = Vec::new();
        if !auth.is_asked_for() {
            lines.push(format!("whoever reaches {} may call, as `local`", config.http));
            match auth.may_listen(config.http) {
                Err(error) => warnings.push(format!("`serve` and `up` do not start like this: {error}")),
                Ok(()) if auth.open && !config.http.ip().to_canonical().is_loopback() => {
                    warnings.push("`auth.open` lets everybody in, from other machines too".to_owned());
                }
                Ok(()) => {}
            }
        }
        if auth.oauth.as_ref().is_some_and(|oauth| oauth.scopes.call.is_none()) {
            warnings.push("no `auth.oauth.scopes.call`: every token of the issuer that is for us may call".to_owned());
        }
        Self {
            lines,
            tokens: auth.tokens.iter().map(token_json).collect(),
            oauth: auth.oauth.as_ref().map(oauth_json),
            asked: auth.is_asked_for(),
            warnings,
        }
    }

    /// Whether there is more to say than that whoever is on this machine may call.
    pub(super) fn is_worth_a_word(&self) -> bool {
        self.asked || !self.warnings.is_empty()
    }

    pub(super) fn write(&self, text: &mut String) {
        text.push_str("auth\n");
        for line in &self.lines {
            text.push_str(&format!("  {line}\n"));
        }
        for warning in &self.warnings {
            text.push_str(&format!("  warning: {warning}\n"));
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut shown = json!({ "asked": self.asked, "tokens": self.tokens });
        if let Some(oauth) = &self.oauth {
            shown["oauth"] = oauth.clone();
        }
        shown
    }
}

fn place(source: &KeySource) -> String {
    match source {
        KeySource::Env(variable) => format!("the variable `{variable}`"),
        KeySource::File(path) => format!("the file `{}`", path.display()),
    }
}

fn good_for(token: &TokenConfig) -> String {
    let mut words: Vec<&str> = token.caller.rights.iter().map(|right| right.as_str()).collect();
    words.extend(token.caller.role.map(|role| role.as_str()));
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

fn token_line(token: &TokenConfig) -> String {
    let caller = &token.caller;
    format!("token {}  from {}: `{}`, good for {}", token.name, place(&token.secret), caller.principal, good_for(token))
}

fn token_json(token: &TokenConfig) -> Value {
    let caller = &token.caller;
    json!({
        "name": token.name,
        "principal": caller.principal,
        "tenant": caller.principal.tenant(),
        "scopes": caller.rights.iter().map(|right| right.as_str()).collect::<Vec<_>>(),
        "role": caller.role.map(|role| role.as_str()),
    })
}

fn oauth_lines(oauth: &OAuthConfig) -> Vec<String> {
    let keys = oauth.jwks.as_ref().map_or_else(|| "where the issuer says".to_owned(), ToString::to_string);
    let tenant = oauth.tenant_claim.as_ref().map(|claim| format!(", of the tenant in `{claim}`")).unwrap_or_default();
    let call = oauth.scopes.call.as_ref().map(|scope| format!(" with the scope `{scope}`")).unwrap_or_default();
    vec![
        format!("tokens of {}  for `{}`{call}; keys: {keys}", oauth.issuer, oauth.audience),
        format!("  whoever is in `{}`{tenant}; described at {}", oauth.principal_claim, oauth.metadata_url()),
    ]
}

fn oauth_json(oauth: &OAuthConfig) -> Value {
    json!({
        "issuer": oauth.issuer,
        "audience": oauth.audience,
        "principal_claim": oauth.principal_claim,
        "tenant_claim": oauth.tenant_claim,
        "scopes": oauth.scopes(),
        "metadata": oauth.metadata_url(),
    })
}
