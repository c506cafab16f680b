//! How an upstream over HTTP is spoken to: whom we believe, and what we show.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::account::{AccountConfig, SignInSpec};
use super::settle::invalid;
use super::{ConfigError, KeySource};

/// `{ env = "…" }` or `{ file = "…" }`, with a `prefix` where what is kept there is not all that is shown.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CredentialSpec {
    /// The variable of the environment that holds it.
    pub env: Option<String>,
    /// The file that holds it.
    pub file: Option<PathBuf>,
    /// What goes before it, such as `Bearer `.
    pub prefix: String,
}

/// How an upstream over HTTP is spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The headers of every request, by their names.
    pub headers: BTreeMap<String, CredentialConfig>,
    /// The only certificate authority that is believed, where it is not the system's.
    pub ca: Option<PathBuf>,
    /// The account whose token is shown.
    pub sign_in: Option<Box<AccountConfig>>,
}

/// Where a credential is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialConfig {
    /// The place.
    pub source: KeySource,
    /// What goes before it.
    pub prefix: String,
}

/// The headers that say how a request is framed or what protocol it is in; those are not the operator's.
const OURS: [&str; 9] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "accept",
    "mcp-session-id",
    "mcp-protocol-version",
    "upgrade",
];

impl Access {
    pub(super) fn settle(
        key: &str,
        headers: &BTreeMap<String, CredentialSpec>,
        ca: Option<&PathBuf>,
        sign_in: Option<&SignInSpec>,
    ) -> Result<Self, ConfigError> {
        let mut settled = BTreeMap::new();
        for (name, spec) in headers {
            let place = format!("{key}.headers.{name}");
            let lower = name.to_ascii_lowercase();
            if !is_header(&lower) {
                return Err(invalid(&place, format!("`{name}` is no name of a header")));
            }
            if OURS.contains(&lower.as_str()) {
                return Err(invalid(&place, "this header is not the operator's to set".into()));
            }
            if settled.insert(lower, credential(&place, spec)?).is_some() {
                return Err(invalid(&place, "is there twice; the case of a header's name does not matter".into()));
            }
        }
        if sign_in.is_some() && settled.contains_key("authorization") {
            let place = format!("{key}.headers.authorization");
            return Err(invalid(&place, "is there already: `sign_in` shows its token in it".into()));
        }
        let sign_in = sign_in.map(|spec| spec.settle(&format!("{key}.sign_in"))).transpose()?.map(Box::new);
        Ok(Self { headers: settled, ca: ca.cloned(), sign_in })
    }
}

pub(super) fn credential(key: &str, spec: &CredentialSpec) -> Result<CredentialConfig, ConfigError> {
    let source = match (&spec.env, &spec.file) {
        (Some(variable), None) if !variable.is_empty() => KeySource::Env(variable.clone()),
        (None, Some(file)) => KeySource::File(file.clone()),
        _ => return Err(invalid(key, "says where it is read from: `{ env = … }` or `{ file = … }`".into())),
    };
    if spec.prefix.chars().any(char::is_control) {
        return Err(invalid(&format!("{key}.prefix"), "has a control character".into()));
    }
    Ok(CredentialConfig { source, prefix: spec.prefix.clone() })
}

/// Whether a text can be the name of a header.
pub(super) fn is_header(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
