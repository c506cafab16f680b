//! Who somebody is: an agent at a door, or a person who looks and answers.
//!
//! Where the configuration names neither tokens nor an issuer, everybody is `local`. Otherwise whoever comes shows a bearer
//! token, which is looked at here and nowhere else: it reaches no upstream, no record and no log.

mod account;
mod denied;
mod fetch;
mod keys;
mod metadata;
mod oauth;
mod oidc;
pub(crate) mod shown;
mod signature;
mod tokens;

use std::collections::BTreeSet;
use std::sync::Arc;

use amends_core::Principal;
use hyper::header::{AUTHORIZATION, HeaderMap};
use serde::Deserialize;
use thiserror::Error;

pub(crate) use account::{Account, Ready, sign_in_first};
pub use denied::Denied;
pub(crate) use metadata::{METADATA_PATH, metadata};
pub(crate) use oidc::{Oidc, Unwelcome};

use crate::config::{Config, OAuthConfig, TokenConfig};
use crate::upstream::CredentialError;
use oauth::OAuth;
use tokens::Tokens;

/// The longest name of a principal or a tenant, in bytes.
pub(crate) const NAME_MAX: usize = 256;
/// The longest token that is looked at.
const TOKEN_MAX: usize = 16 << 10;

/// What a person may do. Each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look.
    Viewer,
    /// Answer what is asked of people.
    Approver,
    /// Change what is in force.
    Operator,
}

/// What a token is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// Calling tools.
    Call,
    /// Reading the metrics, and administering.
    Admin,
}

/// A person who is signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The name under which answers are recorded.
    pub name: String,
    /// Whose calls they see; nothing where there is only one tenant.
    pub tenant: Option<String>,
    /// What they may do.
    pub role: Role,
}

/// Whoever shows a token, and what it is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// As whom they call.
    pub principal: Principal,
    /// What the token is good for.
    pub rights: BTreeSet<Right>,
    /// What they may do as a person.
    pub role: Option<Role>,
    /// The scopes of the token, in its issuer's words.
    pub scopes: BTreeSet<String>,
}

/// Why nobody could be told from anybody else.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// A token that is known here cannot be read.
    #[error("cannot read the token `auth.tokens.{name}.secret`")]
    Token {
        /// The token's name.
        name: String,
        /// Why.
        source: CredentialError,
    },
}

/// Tells who somebody is.
#[derive(Debug)]
pub struct Identity {
    tokens: Tokens,
    oauth: Option<Arc<OAuth>>,
    oidc: Option<Oidc>,
    /// Who everybody is, where nobody has to say so.
    everybody: Option<Caller>,
}

impl Person {
    /// Whether they may see what is that principal's: everything where they belong to no tenant, else what is their tenant's.
    pub fn sees(&self, principal: &Principal) -> bool {
        let theirs = |tenant: &String| principal.tenant().is_some_and(|of| of.as_str() == tenant);
        self.tenant.as_ref().is_none_or(theirs)
    }
}

impl Role {
    /// The word for it in configurations and on pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Approver => "approver",
            Self::Operator => "operator",
        }
    }

    /// The role of that name.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Viewer, Self::Approver, Self::Operator].into_iter().find(|role| role.as_str() == word)
    }
}

impl Right {
    /// The word for it in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Admin => "admin",
        }
    }
}

impl Caller {
    /// Everybody, where nobody has to say who they are. Beyond this machine they only look.
    fn everybody(config: &Config) -> Option<Self> {
        if config.auth.is_asked_for() {
            return None;
        }
        let here = config.http.ip().to_canonical().is_loopback();
        let (rights, role) = match here {
            true => ([Right::Call, Right::Admin].into(), Role::Operator),
            false => ([Right::Call].into(), Role::Viewer),
        };
        Some(Self { principal: Principal::new("local"), rights, role: Some(role), scopes: BTreeSet::new() })
    }

    /// The person this is. Whoever may administer is an operator.
    pub fn person(&self) -> Result<Person, Denied> {
        let role = self.role.max(self.rights.contains(&Right::Admin).then_some(Role::Operator));
        let tenant = self.principal.tenant().map(|tenant| tenant.to_string());
        Ok(Person { name: self.principal.name(), tenant, role: role.ok_or(Denied::Role)? })
    }
}

impl Identity {
    /// Reads what the configuration names. An issuer's keys are read from now on, while somebody holds this.
    pub fn start(config: &Config) -> Result<Arc<Self>, IdentityError> {
        let oauth = config.auth.oauth.clone().map(OAuth::new).map(Arc::new);
        if let Some(oauth) = &oauth {
            tokio::spawn(oauth::keep_fresh(Arc::downgrade(oauth)));
        }
        let tokens = Tokens::read(&config.auth.tokens)?;
        let oidc = config.console.oidc.clone().map(Oidc::start);
        Ok(Arc::new(Self { tokens, oauth, oidc, everybody: Caller::everybody(config) }))
    }

    /// Who sent a request with those headers.
    pub async fn caller(&self, headers: &HeaderMap) -> Result<Caller, Denied> {
        if let Some(everybody) = &self.everybody {
            return Ok(everybody.clone());
        }
        let shown = bearer(headers)?;
        match (self.tokens.find(shown), &self.oauth) {
            (Some(caller), _) => Ok(caller.clone()),
            // Its keys may have to be fetched: whoever is known here does not make room for that.
            (None, Some(oauth)) => Box::pin(oauth.caller(shown)).await,
            (None, None) => Err(Denied::Token("it is not known here")),
        }
    }

    /// The same, if they have that right.
    pub async fn caller_with(&self, headers: &HeaderMap, right: Right) -> Result<Caller, Denied> {
        let caller = self.caller(headers).await?;
        if caller.rights.contains(&right) {
            return Ok(caller);
        }
        let named = self.oauth.as_ref().and_then(|oauth| oauth.scope_of(right));
        Err(Denied::Scope(named.unwrap_or_else(|| right.as_str()).to_owned()))
    }

    /// The person who sent a request with those headers.
    pub async fn person(&self, headers: &HeaderMap) -> Result<Person, Denied> {
        self.caller(headers).await?.person()
    }

    /// The issuer at which people sign in.
    pub(crate) fn oidc(&self) -> Option<&Oidc> {
        self.oidc.as_ref()
    }

    /// Whether whoever comes has to say who they are.
    pub fn is_asked_for(&self) -> bool {
        self.everybody.is_none()
    }
}

/// The person who sent a request with those headers, by the tokens that the configuration names. An issuer's tokens are
/// for [`Identity::person`], which has its keys.
pub fn person(config: &Config, headers: &HeaderMap) -> Result<Person, Denied> {
    if let Some(everybody) = Caller::everybody(config) {
        return everybody.person();
    }
    let shown = bearer(headers)?;
    let tokens = Tokens::read(&config.auth.tokens).map_err(|_| Denied::Unavailable)?;
    tokens.find(shown).ok_or(Denied::Token("it is not known here"))?.person()
}

/// How many bytes a token has that is known here.
pub fn token_length(token: &TokenConfig) -> Result<usize, CredentialError> {
    tokens::length(token)
}

/// How many keys of an issuer can be used now; why it cannot be told, in words.
pub async fn issuer_keys(oauth: &OAuthConfig) -> Result<usize, String> {
    keys::Keys::of(oauth).count().await
}

/// The token that a request shows.
fn bearer(headers: &HeaderMap) -> Result<&str, Denied> {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let first = shown.next().ok_or(Denied::Missing)?;
    if shown.next().is_some() {
        return Err(Denied::Token("there is more than one"));
    }
    let text = first.to_str().map_err(|_| Denied::Token("it cannot be read"))?;
    let Some((scheme, token)) = text.split_once(' ') else { return Err(Denied::Missing) };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Denied::Missing);
    }
    match token.trim() {
        "" => Err(Denied::Missing),
        token if token.len() > TOKEN_MAX => Err(Denied::Token("it is too long")),
        token => Ok(token),
    }
}

/// Whether a text can name somebody.
pub(crate) fn is_sound(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_MAX && !name.chars().any(char::is_control)
}

/// Whether a name stands for somebody of ours, so that nobody else may have it.
pub(crate) fn is_reserved(name: &str) -> bool {
    matches!(name, "amends" | "operator")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Spec, settle};

    fn config(text: &str) -> Config {
        settle(Spec::parse(text, "test").unwrap()).unwrap()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn where_nobody_is_asked_everybody_is_local_and_beyond_this_machine_only_looks() {
        let here = person(&config(""), &headers(&[("authorization", "Bearer whatever")])).unwrap();
        assert_eq!(here, Person { name: "local".into(), tenant: None, role: Role::Operator });
        let open = config("[auth]\nopen = true\n[listen]\nhttp = \"0.0.0.0:7070\"");
        assert_eq!(person(&open, &headers(&[])).unwrap().role, Role::Viewer);
    }

    #[test]
    fn a_person_is_who_shows_a_token_with_a_role() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, format!("s3cret-of-{name}\n")).unwrap();
            path.display().to_string()
        };
        let text = format!(
            "[auth.tokens.mary]\nsecret = {{ file = {:?} }}\ntenant = \"acme\"\nrole = \"approver\"\n\
             [auth.tokens.ci]\nsecret = {{ file = {:?} }}\n\
             [auth.tokens.root]\nsecret = {{ file = {:?} }}\nscopes = [\"admin\"]\n",
            file("mary"),
            file("ci"),
            file("root")
        );
        let config = config(&text);
        let as_whom = |value: &str| person(&config, &headers(&[("authorization", value)]));
        let mary = Person { name: "mary".into(), tenant: Some("acme".into()), role: Role::Approver };
        assert_eq!(as_whom("Bearer s3cret-of-mary"), Ok(mary.clone()));
        assert_eq!(as_whom("bearer  s3cret-of-mary"), Ok(mary));
        assert_eq!(as_whom("Bearer s3cret-of-ci"), Err(Denied::Role), "an agent is no person");
        assert_eq!(as_whom("Bearer s3cret-of-root").unwrap().role, Role::Operator);
        for odd in ["s3cret-of-mary", "Bearer", "Bearer ", "Basic s3cret-of-mary"] {
            assert_eq!(as_whom(odd), Err(Denied::Missing), "{odd}");
        }
        for wrong in ["Bearer s3cret-of-mar", "Bearer s3cret-of-mary2", "Bearer x"] {
            assert_eq!(as_whom(wrong), Err(Denied::Token("it is not known here")), "{wrong}");
        }
        assert_eq!(person(&config, &headers(&[])), Err(Denied::Missing));
        let twice = headers(&[("authorization", "Bearer s3cret-of-mary"), ("authorization", "Bearer x")]);
        assert_eq!(person(&config, &twice), Err(Denied::Token("there is more than one")));
        let long = format!("Bearer {}", "x".repeat(TOKEN_MAX + 1));
        assert_eq!(as_whom(&long), Err(Denied::Token("it is too long")));
    }
}
