//! Access tokens of an issuer: signed for us, in their time, by one of its keys.

use std::collections::BTreeSet;
use std::sync::Weak;

use amends_core::{Principal, Tenant};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::keys::Keys;
use super::signature::{self, ALGORITHMS};
use super::{Caller, Denied, Right, Role, is_reserved, is_sound};
use crate::config::OAuthConfig;

/// How many scopes of a token are looked at.
const SCOPES_MAX: usize = 256;

/// An issuer, and what is known of its keys.
#[derive(Debug)]
pub(super) struct OAuth {
    config: OAuthConfig,
    keys: Keys,
}

/// Reads an issuer's keys again and again, for as long as somebody needs them.
pub(super) async fn keep_fresh(oauth: Weak<OAuth>) {
    loop {
        let Some(strong) = oauth.upgrade() else { return };
        let wait = if strong.keys.read_again().await { strong.config.refresh } else { strong.config.refresh_min };
        drop(strong);
        tokio::time::sleep(wait).await;
    }
}

impl OAuth {
    pub(super) fn new(config: OAuthConfig) -> Self {
        signature::install();
        Self { keys: Keys::of(&config), config }
    }

    /// Whoever shows that token.
    pub(super) async fn caller(&self, token: &str) -> Result<Caller, Denied> {
        self.who(&self.claims(token).await?)
    }

    /// What a token says that the issuer signed for us, in its time.
    pub(super) async fn claims(&self, token: &str) -> Result<Map<String, Value>, Denied> {
        let header = decode_header(token).map_err(|_| Denied::Token("it cannot be read"))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(Denied::Token("its algorithm is not taken"));
        }
        if header.crit.is_some() {
            return Err(Denied::Token("it wants something understood that we do not know"));
        }
        let mut wanted = Validation::new(header.alg);
        wanted.leeway = self.config.leeway.as_secs();
        wanted.validate_nbf = true;
        wanted.set_issuer(&[&self.config.issuer]);
        wanted.set_audience(&[&self.config.audience]);
        wanted.set_required_spec_claims(&["exp", "iss", "aud"]);
        for key in self.keys.suitable(header.kid.as_deref(), header.alg).await? {
            match decode::<Map<String, Value>>(token, &key, &wanted) {
                Ok(token) => return Ok(token.claims),
                Err(error) if matches!(error.kind(), ErrorKind::InvalidSignature) => {}
                Err(error) => return Err(Denied::Token(why(error.kind()))),
            }
        }
        Err(Denied::Token("its signature is not the issuer's"))
    }

    /// The issuer's word for a right.
    pub(super) fn scope_of(&self, right: Right) -> Option<&str> {
        match right {
            Right::Call => self.config.scopes.call.as_deref(),
            Right::Admin => self.config.scopes.admin.as_deref(),
        }
    }

    /// Who the claims of a token that counts speak of.
    fn who(&self, claims: &Map<String, Value>) -> Result<Caller, Denied> {
        let text = |name: &str| claim(claims, name).and_then(Value::as_str).filter(|text| is_sound(text));
        let name = text(&self.config.principal_claim).ok_or(Denied::Token("it does not say who calls"))?;
        let tenant = match &self.config.tenant_claim {
            Some(named) => Some(Tenant::new(text(named).ok_or(Denied::Token("it does not say for which tenant"))?)),
            None => None,
        };
        if tenant.is_none() && (is_reserved(name) || name == "local") {
            return Err(Denied::Token("it names somebody of ours"));
        }
        let scopes = scopes(claims);
        let has = |scope: &Option<String>| scope.as_ref().is_some_and(|scope| scopes.contains(scope));
        let wanted = &self.config.scopes;
        let mut rights = BTreeSet::new();
        if wanted.call.is_none() || has(&wanted.call) {
            rights.insert(Right::Call);
        }
        if has(&wanted.admin) {
            rights.insert(Right::Admin);
        }
        let by_scope = [
            (has(&wanted.viewer), Role::Viewer),
            (has(&wanted.approver), Role::Approver),
            (has(&wanted.operator), Role::Operator),
        ];
        let by_scope = by_scope.into_iter().filter_map(|(has, role)| has.then_some(role));
        let named = self.config.role_claim.as_ref().and_then(|named| claim(claims, named));
        let by_claim = named.into_iter().flat_map(words).filter_map(|word| Role::parse(&word));
        let role = by_scope.chain(by_claim).max();
        Ok(Caller { principal: Principal::of(tenant.as_ref(), name), rights, role, scopes })
    }
}

/// A claim by its name, or by its path through claims within claims.
pub(super) fn claim<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| {
        let mut path = name.split('.');
        let first = claims.get(path.next()?)?;
        path.try_fold(first, |value, part| value.get(part))
    })
}

/// The scopes of a token: one text of words, or a list.
fn scopes(claims: &Map<String, Value>) -> BTreeSet<String> {
    ["scope", "scp"].into_iter().filter_map(|name| claims.get(name)).flat_map(words).take(SCOPES_MAX).collect()
}

fn words(value: &Value) -> Vec<String> {
    let split = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    match value {
        Value::String(text) => split(text),
        Value::Array(items) => items.iter().filter_map(Value::as_str).flat_map(split).collect(),
        _ => Vec::new(),
    }
}

/// Why a token does not count, in words that say nothing of it.
fn why(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ExpiredSignature => "its time is over",
        ErrorKind::ImmatureSignature => "its time has not come",
        ErrorKind::InvalidIssuer => "it is of another issuer",
        ErrorKind::InvalidAudience => "it is for somebody else",
        ErrorKind::MissingRequiredClaim(_) => "it lacks a claim that it must have",
        ErrorKind::InvalidClaimFormat(_) => "a claim of it cannot be read",
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidKeyFormat => "its algorithm is not that of its key",
        _ => "it cannot be read",
    }
}
