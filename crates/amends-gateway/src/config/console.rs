//! Whether there is a console, and who may sign in at it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hyper::Uri;
use serde::Deserialize;

use super::auth::{self, sound_address};
use super::settle::invalid;
use super::spec::ConsoleSpec;
use super::{ConfigError, KeySource, OAuthConfig};
use crate::identity::Role;

/// `[console.oidc]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcSpec {
    /// The issuer at which people sign in, exactly as it describes itself.
    pub issuer: String,
    /// As whom the issuer knows this console.
    pub client_id: String,
    /// The secret that the issuer knows it by, and from where it is read: `{ env = "…" }` or `{ file = "…" }`. Without one, the
    /// console is a public client.
    pub secret: Option<KeySource>,
    /// What is asked of the issuer beside `openid`. The default is `["profile"]`.
    pub scopes: Option<Vec<String>>,
    /// The address by which people reach the console, such as `https://amends.example`. The default is the one that the browser
    /// asked for.
    pub url: Option<String>,
    /// The claim under whose name answers are recorded. The default is `sub`.
    pub name_claim: Option<String>,
    /// The claim that says whose calls somebody sees. Without it, everybody who signs in sees every tenant's.
    pub tenant_claim: Option<String>,
    /// The claim that lists what somebody is. The default is `roles`.
    pub role_claim: Option<String>,
    /// Which role each word of that claim gives. Without any, our own words count: `viewer`, `approver`, `operator`.
    #[serde(default)]
    pub roles: BTreeMap<String, Role>,
    /// Where the issuer's keys are. The default is where the issuer's own description says.
    pub jwks: Option<String>,
    /// The file of the only certificate authority that is believed. The default is whom the system believes.
    pub ca: Option<PathBuf>,
}

/// The console of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleConfig {
    /// Whether there are pages and an API.
    pub enabled: bool,
    /// Where the token of an operator is read from.
    pub token: Option<KeySource>,
    /// The folder that proposals are written to.
    pub proposals: PathBuf,
    /// The issuer at which people sign in.
    pub oidc: Option<OidcConfig>,
}

/// An issuer at which people sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcConfig {
    /// The issuer; its audience is this console.
    pub issuer: OAuthConfig,
    /// Where the secret is that the issuer knows this console by.
    pub secret: Option<KeySource>,
    /// What is asked of the issuer, `openid` included.
    pub scopes: BTreeSet<String>,
    /// The address by which people reach the console, without a slash at its end.
    pub url: Option<String>,
    /// Which role each word gives; our own words where there is none.
    pub roles: BTreeMap<String, Role>,
}

impl ConsoleSpec {
    /// The files it names are beside the configuration, unless they say where they are.
    pub(super) fn look_beside(&mut self, folder: &Path) {
        let Some(oidc) = &mut self.oidc else { return };
        if let Some(KeySource::File(file)) = &mut oidc.secret {
            *file = folder.join(&*file);
        }
        if let Some(file) = &mut oidc.ca {
            *file = folder.join(&*file);
        }
    }
}

impl ConsoleConfig {
    pub(super) fn settle(spec: ConsoleSpec) -> Result<Self, ConfigError> {
        Ok(Self {
            enabled: spec.enabled.unwrap_or(true),
            token: spec.token,
            proposals: spec.proposals.unwrap_or_else(|| "amends-proposals".into()),
            oidc: spec.oidc.map(OidcConfig::settle).transpose()?,
        })
    }

    /// Whether it has nothing of its own to sign in with.
    pub(super) fn has_link(&self) -> bool {
        self.enabled && self.token.is_none() && self.oidc.is_none()
    }
}

impl OidcConfig {
    fn settle(spec: OidcSpec) -> Result<Self, ConfigError> {
        let key = |part: &str| format!("console.oidc.{part}");
        sound_address(&key("issuer"), &spec.issuer)?;
        if spec.client_id.is_empty() {
            return Err(invalid(&key("client_id"), "is how the issuer knows this console".into()));
        }
        let named =
            [("name_claim", &spec.name_claim), ("tenant_claim", &spec.tenant_claim), ("role_claim", &spec.role_claim)];
        if let Some((part, _)) = named.iter().find(|(_, claim)| claim.as_deref() == Some("")) {
            return Err(invalid(&key(part), "names a claim".into()));
        }
        let mut scopes: BTreeSet<String> = spec.scopes.unwrap_or_else(|| vec!["profile".into()]).into_iter().collect();
        if scopes.iter().any(|scope| scope.is_empty() || !scope.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(invalid(&key("scopes"), "are words without blanks".into()));
        }
        scopes.insert("openid".into());
        let jwks = spec.jwks.as_deref().map(|jwks| sound_address(&key("jwks"), jwks)).transpose()?;
        Ok(Self {
            url: spec.url.as_deref().map(|url| base(&key("url"), url)).transpose()?,
            issuer: OAuthConfig {
                jwks,
                principal_claim: spec.name_claim.unwrap_or_else(|| "sub".into()),
                tenant_claim: spec.tenant_claim,
                role_claim: Some(spec.role_claim.unwrap_or_else(|| "roles".into())),
                ca: spec.ca,
                ..auth::issuer(spec.issuer, spec.client_id)
            },
            secret: spec.secret,
            scopes,
            roles: spec.roles,
        })
    }
}

/// The address of a host and nothing below it.
pub(super) fn base(key: &str, url: &str) -> Result<String, ConfigError> {
    let uri: Uri = sound_address(key, url)?;
    if uri.query().is_some() || !matches!(uri.path(), "" | "/") {
        return Err(invalid(key, "is the address of a host, without a path".into()));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::{Spec, settle};
    use super::*;

    fn settled(more: &str) -> Result<ConsoleConfig, ConfigError> {
        let text = format!("[console.oidc]\nissuer = \"https://id.example\"\nclient_id = \"amends\"\n{more}");
        Ok(settle(Spec::parse(&text, "test")?)?.console)
    }

    #[test]
    fn an_issuer_is_named_with_what_its_words_mean() {
        let console = settled("roles = { leads = \"approver\" }\nurl = \"https://amends.example/\"").unwrap();
        assert!(!console.has_link(), "there is another way in");
        let oidc = console.oidc.unwrap();
        assert_eq!((oidc.issuer.audience.as_str(), oidc.issuer.principal_claim.as_str()), ("amends", "sub"));
        assert_eq!(oidc.scopes, ["openid".to_owned(), "profile".to_owned()].into());
        assert_eq!(oidc.roles["leads"], Role::Approver);
        assert_eq!(oidc.url.as_deref(), Some("https://amends.example"));
    }

    #[test]
    fn mistakes_are_refused_with_the_key_they_are_in() {
        for (more, says) in [
            ("url = \"https://amends.example/console\"", "console.oidc.url"),
            ("url = \"http://amends.example\"", "console.oidc.url"),
            ("scopes = [\"a b\"]", "console.oidc.scopes"),
            ("role_claim = \"\"", "console.oidc.role_claim"),
            ("roles = { leads = \"king\" }", "king"),
            ("secrets = 1", "secret"),
        ] {
            let refused = settled(more).unwrap_err().to_string();
            assert!(refused.contains(says), "{more}: {refused}");
        }
    }
}
