//! How an upstream is reached: a command, an endpoint, the document of an API, or an agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::access::{self, Access};
use super::settle::invalid;
use super::spec::UpstreamSpec;
use super::{ApiConfig, ConfigError, Reach};
use crate::upstream::openapi::Api;

pub(super) fn settle(name: &str, spec: &UpstreamSpec) -> Result<Reach, ConfigError> {
    let section = format!("upstreams.{name}");
    let misplaced = |part: &str, of: &str| Err(invalid(&format!("{section}.{part}"), format!("is for {of} only")));
    let api_only = [
        ("base_url", spec.base_url.is_some()),
        ("credentials", !spec.credentials.is_empty()),
        ("deadline_header", spec.deadline_header.is_some()),
    ];
    if let Some((part, _)) = api_only.iter().find(|(_, given)| *given && spec.openapi.is_none()) {
        return misplaced(part, "an upstream with `openapi`");
    }
    let http_only =
        [("ca", spec.ca.is_some()), ("headers", !spec.headers.is_empty()), ("sign_in", spec.sign_in.is_some())];
    if let Some((part, _)) = http_only.iter().find(|(_, given)| *given && spec.command.is_some()) {
        return misplaced(part, "an upstream over HTTP");
    }
    let child_only = [("env_pass", !spec.env_pass.is_empty()), ("cwd", spec.cwd.is_some())];
    if let Some((part, _)) = child_only.iter().find(|(_, given)| *given && spec.command.is_none()) {
        return misplaced(part, "an upstream with `command`");
    }
    let access = || Access::settle(&section, &spec.headers, spec.ca.as_ref(), spec.sign_in.as_ref());
    match (&spec.command, &spec.url, &spec.openapi, &spec.a2a) {
        (Some(command), None, None, None) if !command.is_empty() => {
            let (env, env_pass, cwd) =
                (spec.env.clone(), passed(&format!("{section}.env_pass"), spec)?, spec.cwd.clone());
            Ok(Reach::Stdio { command: command.clone(), env, env_pass, cwd, inherit_env: false })
        }
        (None, Some(url), None, None) => {
            let key = format!("{section}.url");
            Ok(Reach::Http { url: address(&key, url)?.to_owned(), access: access()? })
        }
        (None, None, Some(file), None) => {
            let api = Api::read(file)?;
            let key = format!("{section}.base_url");
            let base_url = match spec.base_url.as_deref().or(api.base_url.as_deref()) {
                Some(url) => address(&key, url)?.trim_end_matches('/').to_owned(),
                None => return Err(invalid(&key, "is needed: the document names no server with an address".into())),
            };
            if base_url.contains(['?', '#']) {
                return Err(invalid(&key, format!("`{base_url}` has more than a path after its host")));
            }
            let mut credentials = BTreeMap::new();
            for (scheme, credential) in &spec.credentials {
                let key = format!("{section}.credentials.{scheme}");
                if !api.schemes.contains_key(scheme) {
                    return Err(invalid(
                        &key,
                        format!("the document has no security scheme `{scheme}` that can be used"),
                    ));
                }
                credentials.insert(scheme.clone(), access::credential(&key, credential)?);
            }
            let deadline_header = spec.deadline_header.as_ref().map(|name| name.to_ascii_lowercase());
            if deadline_header.as_deref().is_some_and(|name| !access::is_header(name)) {
                return Err(invalid(&format!("{section}.deadline_header"), "is no name of a header".into()));
            }
            let access = access()?;
            let api = Arc::new(if spec.base_url.is_some() { api.at_one_server() } else { api });
            Ok(Reach::OpenApi(Box::new(ApiConfig { api, base_url, access, credentials, deadline_header })))
        }
        (None, None, None, Some(url)) => {
            let key = format!("{section}.a2a");
            Ok(Reach::A2a { url: address(&key, url)?.to_owned(), access: access()? })
        }
        _ => Err(invalid(&section, "needs one of `command`, `url`, `openapi` and `a2a`".into())),
    }
}

/// An address that something can be sent to.
fn address<'a>(key: &str, url: &'a str) -> Result<&'a str, ConfigError> {
    let wrong = |reason: &str| Err(invalid(key, format!("`{url}` {reason}")));
    let Ok(uri) = url.parse::<hyper::Uri>() else { return wrong("is not an address") };
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(authority)) if authority.as_str().contains('@') => {
            wrong("holds a name or a password; say where they are read from with `headers`")
        }
        (Some("http" | "https"), Some(authority)) if !authority.host().is_empty() => Ok(url),
        _ => wrong("is not an `http://` or `https://` address"),
    }
}

/// The names of variables that a command gets.
fn passed(key: &str, spec: &UpstreamSpec) -> Result<Vec<String>, ConfigError> {
    match spec.env_pass.iter().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        Some(name) => Err(invalid(key, format!("`{}` is no name of a variable", name.escape_default()))),
        None => Ok(spec.env_pass.clone()),
    }
}
