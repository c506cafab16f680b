//! `[auth]`: whom the doors let in, and as whom.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use amends_core::{Principal, Tenant};
use hyper::Uri;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::settle::invalid;
use super::{ConfigError, KeySource, Span};
use crate::identity::{Caller, NAME_MAX, Right, Role, is_reserved, is_sound};

/// How often an issuer's keys are read again, where nothing is said.
const REFRESH: Duration = Duration::from_secs(10 * 60);
/// How often a token of an unknown key may have them read again.
const REFRESH_MIN: Duration = Duration::from_secs(10);
/// For how long keys count that could not be read again.
const KEEP: Duration = Duration::from_secs(24 * 60 * 60);
/// By how much an issuer's clock may differ from ours.
const LEEWAY: Duration = Duration::from_secs(60);
const LEEWAY_MAX: Duration = Duration::from_secs(10 * 60);

/// `[auth]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthSpec {
    /// Whether anybody who reaches the doors may call, without a token, although they listen beyond this machine. The default
    /// is `false`: without tokens and without an issuer, only an address of this machine is listened on.
    pub open: bool,
    /// Tokens that are known here, by names of their own.
    pub tokens: BTreeMap<String, TokenSpec>,
    /// The issuer whose access tokens count.
    pub oauth: Option<OAuthSpec>,
}

/// `[auth.tokens.NAME]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenSpec {
    /// Where the token is read from: `{ env = "…" }` or `{ file = "…" }`.
    #[serde(deserialize_with = "place")]
    pub secret: KeySource,
    /// As whom somebody calls who shows it. The default is the token's name.
    pub principal: Option<String>,
    /// The tenant of whoever shows it.
    pub tenant: Option<String>,
    /// What it is good for: `call` (the default) and `admin`.
    pub scopes: Option<BTreeSet<Right>>,
    /// What a person may do who shows it: `viewer`, `approver` or `operator`. The default is nothing: it is an agent's.
    pub role: Option<Role>,
}

/// `[auth.oauth]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuthSpec {
    /// The issuer, exactly as its tokens name it.
    pub issuer: String,
    /// The address by which agents know us, such as `https://amends.example/mcp`. Tokens must be for it.
    pub audience: String,
    /// Where the issuer's keys are. The default is where the issuer's own description says.
    pub jwks: Option<String>,
    /// The scopes that tokens must have: for calling, for administering, and for each role of a person.
    #[serde(default)]
    pub scopes: ScopeSpec,
    /// The claim that says who calls. The default is `sub`.
    pub principal_claim: Option<String>,
    /// The claim that says for which tenant. There are no tenants by default; a token without the claim is refused.
    pub tenant_claim: Option<String>,
    /// The claim that lists a person's roles, by our words for them.
    pub role_claim: Option<String>,
    /// The file of the only certificate authority that is believed. The default is whom the system believes.
    pub ca: Option<PathBuf>,
    /// How often the keys are read again. The default is `10m`.
    pub refresh: Option<Span>,
    /// How often a token of an unknown key may have them read again. The default is `10s`.
    pub refresh_min: Option<Span>,
    /// For how long keys count that could not be read again. The default is `24h`.
    pub keep: Option<Span>,
    /// By how much the issuer's clock may differ from ours. The default is `60s`.
    pub leeway: Option<Span>,
}

/// `scopes = { call = "…", admin = "…", viewer = "…", approver = "…", operator = "…" }`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScopeSpec {
    /// The scope of whoever calls tools. By default every token of the issuer that is for us will do.
    pub call: Option<String>,
    /// The scope of whoever reads the metrics and administers. By default nobody has it.
    pub admin: Option<String>,
    /// The scope of people who look.
    pub viewer: Option<String>,
    /// The scope of people who answer.
    pub approver: Option<String>,
    /// The scope of people who change what is in force.
    pub operator: Option<String>,
}

/// Whom the doors let in. Without tokens and without an issuer, everybody is `local`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthConfig {
    /// Whether the doors may be open to more than this machine.
    pub open: bool,
    /// The tokens that are known here.
    pub tokens: Vec<TokenConfig>,
    /// The issuer whose tokens count.
    pub oauth: Option<OAuthConfig>,
}

/// A token that is known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenConfig {
    /// What the operator calls it.
    pub name: String,
    /// Where it is read from.
    pub secret: KeySource,
    /// Who shows it.
    pub caller: Caller,
}

/// An issuer whose tokens count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthConfig {
    /// The issuer.
    pub issuer: String,
    /// The address by which agents know us.
    pub audience: String,
    /// Where its keys are, where the operator says so.
    pub jwks: Option<Uri>,
    /// The scopes that tokens must have.
    pub scopes: ScopeSpec,
    /// The claim that says who calls.
    pub principal_claim: String,
    /// The claim that says for which tenant.
    pub tenant_claim: Option<String>,
    /// The claim that lists a person's roles.
    pub role_claim: Option<String>,
    /// The only certificate authority that is believed, where it is not the system's.
    pub ca: Option<PathBuf>,
    /// How often the keys are read again.
    pub refresh: Duration,
    /// How often a token of an unknown key may have them read again.
    pub refresh_min: Duration,
    /// For how long keys count that could not be read again.
    pub keep: Duration,
    /// By how much the issuer's clock may differ from ours.
    pub leeway: Duration,
}

impl AuthSpec {
    /// The files it names are beside the configuration, unless they say where they are.
    pub(super) fn look_beside(&mut self, folder: &Path) {
        for token in self.tokens.values_mut() {
            if let KeySource::File(file) = &mut token.secret {
                *file = folder.join(&*file);
            }
        }
        if let Some(file) = self.oauth.as_mut().and_then(|oauth| oauth.ca.as_mut()) {
            *file = folder.join(&*file);
        }
    }
}

impl AuthConfig {
    pub(super) fn settle(spec: AuthSpec) -> Result<Self, ConfigError> {
        if spec.open && (!spec.tokens.is_empty() || spec.oauth.is_some()) {
            return Err(invalid(
                "auth.open",
                "lets everybody in, and tokens or an issuer would keep nobody out".into(),
            ));
        }
        let tokens = spec.tokens.into_iter().map(|(name, token)| self::token(name, token));
        Ok(Self {
            open: spec.open,
            tokens: tokens.collect::<Result<_, _>>()?,
            oauth: spec.oauth.map(oauth).transpose()?,
        })
    }

    /// Whether whoever calls has to say who they are.
    pub fn is_asked_for(&self) -> bool {
        !self.tokens.is_empty() || self.oauth.is_some()
    }

    /// Refuses to let the world in by accident: doors beyond this machine need tokens, an issuer, or `open`.
    pub fn may_listen(&self, address: SocketAddr) -> Result<(), ConfigError> {
        if self.open || self.is_asked_for() || address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        let reason = format!(
            "{address} is reached from beyond this machine, and anybody could call; name tokens or an issuer under `[auth]`, or \
             say `open = true` there"
        );
        Err(invalid("listen.http", reason))
    }
}

impl OAuthConfig {
    /// The address of the description that tells agents where to get a token.
    pub fn metadata_url(&self) -> String {
        let (origin, path) = split(&self.audience);
        format!("{origin}{}{}", crate::identity::METADATA_PATH, path.trim_end_matches('/'))
    }

    /// The scopes that are worth asking for.
    pub fn scopes(&self) -> BTreeSet<&str> {
        let ScopeSpec { call, admin, viewer, approver, operator } = &self.scopes;
        [call, admin, viewer, approver, operator].into_iter().filter_map(Option::as_deref).collect()
    }
}

/// Where a token is read from. What is written in its place may be the token, so that it is not repeated.
fn place<'de, D: Deserializer<'de>>(written: D) -> Result<KeySource, D::Error> {
    KeySource::deserialize(written).map_err(|_| {
        D::Error::custom("`secret` says where the token is read from: `{ env = \"…\" }` or `{ file = \"…\" }`")
    })
}

/// Scheme and host of an address, and its path.
fn split(address: &str) -> (&str, &str) {
    let host = address.find("://").map_or(0, |at| at + 3);
    let path = address[host..].find('/').map_or(address.len(), |at| host + at);
    address.split_at(path)
}

fn token(name: String, spec: TokenSpec) -> Result<TokenConfig, ConfigError> {
    let key = |part: &str| format!("auth.tokens.{name}.{part}");
    let principal = spec.principal.as_deref().unwrap_or(&name);
    for (part, text) in [("principal", Some(principal)), ("tenant", spec.tenant.as_deref())] {
        if text.is_some_and(|text| !is_sound(text)) {
            return Err(invalid(&key(part), format!("is a text of 1 to {NAME_MAX} bytes on one line")));
        }
    }
    if spec.tenant.is_none() && is_reserved(principal) {
        return Err(invalid(&key("principal"), format!("`{principal}` is a name of ours; choose another")));
    }
    let tenant = spec.tenant.map(Tenant::new);
    let rights = spec.scopes.unwrap_or_else(|| [Right::Call].into());
    let scopes = rights.iter().map(|right| right.as_str().to_owned()).collect();
    let caller = Caller { principal: Principal::of(tenant.as_ref(), principal), rights, role: spec.role, scopes };
    Ok(TokenConfig { secret: spec.secret, caller, name })
}

fn oauth(spec: OAuthSpec) -> Result<OAuthConfig, ConfigError> {
    let key = |part: &str| format!("auth.oauth.{part}");
    let issuer = sound_address(&key("issuer"), &spec.issuer)?;
    if issuer.query().is_some() {
        return Err(invalid(&key("issuer"), "has no query".into()));
    }
    let audience = sound_address(&key("audience"), &spec.audience)?;
    if audience.query().is_some() {
        return Err(invalid(&key("audience"), "is the address of this gateway, without a query".into()));
    }
    let jwks = spec.jwks.as_deref().map(|jwks| sound_address(&key("jwks"), jwks)).transpose()?;
    let claims = [
        ("principal_claim", &spec.principal_claim),
        ("tenant_claim", &spec.tenant_claim),
        ("role_claim", &spec.role_claim),
    ];
    if let Some((part, _)) = claims.iter().find(|(_, claim)| claim.as_deref() == Some("")) {
        return Err(invalid(&key(part), "names a claim".into()));
    }
    let ScopeSpec { call, admin, viewer, approver, operator } = &spec.scopes;
    let scopes = [("call", call), ("admin", admin), ("viewer", viewer), ("approver", approver), ("operator", operator)];
    for (part, scope) in scopes {
        let sound =
            |scope: &str| !scope.is_empty() && scope.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\');
        if scope.as_deref().is_some_and(|scope| !sound(scope)) {
            return Err(invalid(&format!("auth.oauth.scopes.{part}"), "is one word, without quotes".into()));
        }
    }
    let span = |part: &str, span: Option<Span>, default: Duration| match span {
        Some(Span(Duration::ZERO)) => Err(invalid(&key(part), "must be longer than no time at all".into())),
        Some(Span(time)) => Ok(time),
        None => Ok(default),
    };
    let leeway = spec.leeway.map_or(LEEWAY, |Span(time)| time);
    if leeway > LEEWAY_MAX {
        return Err(invalid(&key("leeway"), "is ten minutes at most: for that long an expired token counts".into()));
    }
    Ok(OAuthConfig {
        refresh: span("refresh", spec.refresh, REFRESH)?,
        refresh_min: span("refresh_min", spec.refresh_min, REFRESH_MIN)?,
        keep: span("keep", spec.keep, KEEP)?,
        leeway,
        issuer: spec.issuer,
        audience: spec.audience,
        jwks,
        scopes: spec.scopes,
        principal_claim: spec.principal_claim.unwrap_or_else(|| "sub".to_owned()),
        tenant_claim: spec.tenant_claim,
        role_claim: spec.role_claim,
        ca: spec.ca,
    })
}

/// An issuer whose tokens are for that audience, with nothing said of it.
pub(super) fn issuer(issuer: String, audience: String) -> OAuthConfig {
    OAuthConfig {
        issuer,
        audience,
        jwks: None,
        scopes: ScopeSpec::default(),
        principal_claim: "sub".to_owned(),
        tenant_claim: None,
        role_claim: None,
        ca: None,
        refresh: REFRESH,
        refresh_min: REFRESH_MIN,
        keep: KEEP,
        leeway: LEEWAY,
    }
}

/// An address over TLS; on this machine it may be without.
pub(super) fn sound_address(key: &str, address: &str) -> Result<Uri, ConfigError> {
    let wrong = |reason: &str| Err(invalid(key, format!("`{}` {reason}", address.escape_debug())));
    let Ok(uri) = address.parse::<Uri>() else { return wrong("is not an address") };
    let host = uri.host().unwrap_or_default();
    if host.is_empty() || uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return wrong("is not the address of a host");
    }
    match uri.scheme_str() {
        Some("https") => Ok(uri),
        Some("http") if is_here(host) => Ok(uri),
        Some("http") => wrong("must begin with `https://`; only on this machine may it be `http://`"),
        _ => wrong("is not an `https://` address"),
    }
}

/// Whether a host's name can only mean this machine.
pub(crate) fn is_here(host: &str) -> bool {
    let bare = host.trim_matches(['[', ']']);
    bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::super::{Spec, settle};
    use super::*;

    fn settled(text: &str) -> Result<AuthConfig, ConfigError> {
        Ok(settle(Spec::parse(text, "test")?)?.auth)
    }

    #[test]
    fn a_token_says_who_shows_it_and_what_it_is_good_for() {
        let text = r#"
            [auth.tokens.ci]
            secret = { env = "CI_TOKEN" }
            [auth.tokens.ops]
            secret = { file = "ops.token" }
            principal = "mary"
            tenant = "acme"
            scopes = ["admin"]
            role = "operator"
        "#;
        let auth = settled(text).unwrap();
        assert!(auth.is_asked_for());
        let [ci, ops] = &auth.tokens[..] else { panic!("{auth:?}") };
        assert_eq!((ci.caller.principal.as_str(), ci.caller.role), ("ci", None));
        assert_eq!(ci.caller.rights, [Right::Call].into());
        assert_eq!((ops.caller.principal.as_str(), ops.caller.role), ("acme/mary", Some(Role::Operator)));
        assert_eq!(ops.caller.rights, [Right::Admin].into());
    }

    #[test]
    fn beyond_this_machine_somebody_must_say_who_may_call() {
        let (here, beyond) = ("127.0.0.1:7070".parse().unwrap(), "0.0.0.0:7070".parse().unwrap());
        let nothing = settled("").unwrap();
        assert!(nothing.may_listen(here).is_ok() && nothing.may_listen("[::1]:7070".parse().unwrap()).is_ok());
        let refused = nothing.may_listen(beyond).unwrap_err().to_string();
        assert!(refused.contains("listen.http") && refused.contains("open = true"), "{refused}");
        assert!(settled("[auth]\nopen = true").unwrap().may_listen(beyond).is_ok());
        assert!(settled("[auth.tokens.a]\nsecret = { env = \"A\" }").unwrap().may_listen(beyond).is_ok());
    }

    #[test]
    fn mistakes_are_refused_with_the_key_they_are_in() {
        let oauth = |more: &str| {
            format!("[auth.oauth]\nissuer = \"https://id.example\"\naudience = \"https://a.example/mcp\"\n{more}")
        };
        for (text, says) in [
            ("[auth]\nopen = true\n[auth.tokens.a]\nsecret = { env = \"A\" }".to_owned(), "auth.open"),
            ("[auth.tokens.a]\nprincipal = \"a\"".into(), "secret"),
            ("[auth.tokens.a]\nsecret = \"hunter2\"".into(), "secret"),
            ("[auth.tokens.a]\nsecret = { env = \"A\" }\nscopes = [\"all\"]".into(), "all"),
            ("[auth.tokens.a]\nsecret = { env = \"A\" }\nrole = \"king\"".into(), "king"),
            ("[auth.tokens.operator]\nsecret = { env = \"A\" }".into(), "auth.tokens.operator.principal"),
            ("[auth.tokens.a]\nsecret = { env = \"A\" }\ntenant = \"\"".into(), "auth.tokens.a.tenant"),
            (
                "[auth.oauth]\nissuer = \"http://id.example\"\naudience = \"https://a.example\"".into(),
                "auth.oauth.issuer",
            ),
            ("[auth.oauth]\nissuer = \"https://id.example\"\naudience = \"amends\"".into(), "auth.oauth.audience"),
            (oauth("jwks = \"ftp://x\""), "auth.oauth.jwks"),
            (oauth("scopes = { call = \"a b\" }"), "auth.oauth.scopes.call"),
            (oauth("tenant_claim = \"\""), "auth.oauth.tenant_claim"),
            (oauth("keep = \"0s\""), "auth.oauth.keep"),
            (oauth("leeway = \"1h\""), "auth.oauth.leeway"),
        ] {
            let refused = settled(&text).unwrap_err().to_string();
            assert!(refused.contains(says) && !refused.contains("hunter2"), "{refused}");
        }
        assert!(settled("[auth.oauth]\nissuer = \"http://127.0.0.1:1\"\naudience = \"http://localhost/mcp\"").is_ok());
    }

    #[test]
    fn the_description_of_a_resource_is_beside_its_host() {
        for (audience, url) in [
            ("https://a.example/mcp", "https://a.example/.well-known/oauth-protected-resource/mcp"),
            ("https://a.example", "https://a.example/.well-known/oauth-protected-resource"),
            ("https://a.example:8443/", "https://a.example:8443/.well-known/oauth-protected-resource"),
        ] {
            let text = format!("[auth.oauth]\nissuer = \"https://id.example\"\naudience = \"{audience}\"");
            assert_eq!(settled(&text).unwrap().oauth.unwrap().metadata_url(), url);
        }
    }
}
