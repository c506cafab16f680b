//! `[upstreams.NAME.sign_in]`: an account that a person signs in to, by which an upstream believes us.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::auth::{self, sound_address};
use super::console::base;
use super::settle::invalid;
use super::{ConfigError, KeySource, OAuthConfig};

/// `[upstreams.NAME.sign_in]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignInSpec {
    /// The issuer at which a person signs in, exactly as it describes itself.
    pub issuer: String,
    /// As whom the issuer knows this gateway.
    pub client_id: String,
    /// The secret that the issuer knows it by, and from where it is read: `{ env = "…" }` or `{ file = "…" }`. Without one, the gateway
    /// is a public client.
    pub secret: Option<KeySource>,
    /// What is asked of the issuer.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// How a person signs in: with a `code` that is entered at an address (the default), or at a `url` that leads back to this
    /// gateway.
    #[serde(default)]
    pub by: By,
    /// The address of what the token is for, where the issuer wants to know it.
    pub resource: Option<String>,
    /// The queue on which a person is asked. The default is `default`.
    pub queue: Option<String>,
    /// The address by which browsers reach this gateway, such as `https://amends.example`. The default is that of `listen.http`.
    pub url: Option<String>,
    /// The file of the only certificate authority that is believed. The default is whom the system believes.
    pub ca: Option<PathBuf>,
}

/// How a person signs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// With a code that is entered at an address.
    #[default]
    Code,
    /// At an address that leads back to this gateway.
    Url,
}

/// An account that a person signs in to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountConfig {
    /// The issuer; its audience is this gateway.
    pub issuer: OAuthConfig,
    /// Where the secret is that the issuer knows us by.
    pub secret: Option<KeySource>,
    /// What is asked of the issuer.
    pub scopes: BTreeSet<String>,
    /// How a person signs in.
    pub by: By,
    /// What the token is for.
    pub resource: Option<String>,
    /// The queue on which a person is asked.
    pub queue: String,
    /// The address by which browsers reach this gateway, without a slash at its end.
    pub url: Option<String>,
}

impl SignInSpec {
    /// The files it names are beside the configuration, unless they say where they are.
    pub(super) fn look_beside(&mut self, folder: &Path) {
        if let Some(KeySource::File(file)) = &mut self.secret {
            *file = folder.join(&*file);
        }
        if let Some(file) = &mut self.ca {
            *file = folder.join(&*file);
        }
    }

    pub(super) fn settle(&self, section: &str) -> Result<AccountConfig, ConfigError> {
        let key = |part: &str| format!("{section}.{part}");
        sound_address(&key("issuer"), &self.issuer)?;
        if self.client_id.is_empty() {
            return Err(invalid(&key("client_id"), "is how the issuer knows this gateway".into()));
        }
        if self.scopes.iter().any(|scope| scope.is_empty() || !scope.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(invalid(&key("scopes"), "are words without blanks".into()));
        }
        if let Some(resource) = &self.resource {
            sound_address(&key("resource"), resource)?;
        }
        if self.queue.as_deref() == Some("") {
            return Err(invalid(&key("queue"), "names the queue that the question is put on".into()));
        }
        if self.url.is_some() && self.by == By::Code {
            return Err(invalid(&key("url"), "is for `by = \"url\"` only: nobody is led back with a code".into()));
        }
        let issuer = auth::issuer(self.issuer.clone(), self.client_id.clone());
        Ok(AccountConfig {
            issuer: OAuthConfig { ca: self.ca.clone(), ..issuer },
            secret: self.secret.clone(),
            scopes: self.scopes.iter().cloned().collect(),
            by: self.by,
            resource: self.resource.clone(),
            queue: self.queue.clone().unwrap_or_else(|| "default".into()),
            url: self.url.as_deref().map(|url| base(&key("url"), url)).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{By, Reach, Spec, settle};

    fn settled(more: &str) -> Result<crate::config::Config, crate::config::ConfigError> {
        let text = format!(
            "[upstreams.crm]\nurl = \"https://crm.example/mcp\"\n[upstreams.crm.sign_in]\n\
             issuer = \"https://id.example\"\nclient_id = \"amends\"\n{more}"
        );
        settle(Spec::parse(&text, "test")?)
    }

    #[test]
    fn an_account_is_an_issuer_and_a_client_and_agents_can_have_somebody_sign_in_to_it() {
        let config = settled("scopes = [\"crm.read\"]\nby = \"url\"\nurl = \"https://amends.example/\"").unwrap();
        let Reach::Http { access, .. } = &config.upstreams[&"crm".into()].reach else { panic!() };
        let account = access.sign_in.as_ref().unwrap();
        assert_eq!((account.by, account.queue.as_str()), (By::Url, "default"));
        assert_eq!(account.url.as_deref(), Some("https://amends.example"));
        assert!(config.tools.contains_key("sign_in_crm"));
    }

    #[test]
    fn mistakes_are_refused_with_the_key_they_are_in() {
        for (more, says) in [
            ("scopes = [\"a b\"]", "upstreams.crm.sign_in.scopes"),
            ("by = \"song\"", "song"),
            ("url = \"https://amends.example\"", "upstreams.crm.sign_in.url"),
            ("queue = \"\"", "upstreams.crm.sign_in.queue"),
            ("resource = \"crm\"", "upstreams.crm.sign_in.resource"),
            ("scope = \"x\"", "scopes"),
        ] {
            let refused = settled(more).map(|_| ()).unwrap_err().to_string();
            assert!(refused.contains(says), "{more}: {refused}");
        }
        let child = "[upstreams.a]\ncommand = [\"x\"]\n[upstreams.a.sign_in]\nissuer = \"https://i.example\"\nclient_id = \"c\"";
        let refused = Spec::parse(child, "test").and_then(settle).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("upstreams.a.sign_in"), "{refused}");
        let twice = "headers = { Authorization = { env = \"X\" } }";
        let text = format!(
            "[upstreams.crm]\nurl = \"https://crm.example/mcp\"\n{twice}\n[upstreams.crm.sign_in]\n\
             issuer = \"https://id.example\"\nclient_id = \"amends\""
        );
        let refused = Spec::parse(&text, "test").and_then(settle).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains("authorization"), "{refused}");
    }
}
