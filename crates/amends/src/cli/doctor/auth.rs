//! Who may come in, and whether those who vouch for them can be reached.

use amends_gateway::Config;
use amends_gateway::identity;

use super::finding::Finding;

const ABOUT: &str = "auth";
/// Shorter tokens can be tried out.
const TOKEN_MIN: usize = 24;

/// Looks at whom the doors let in.
pub(super) async fn look(config: &Config) -> Vec<Finding> {
    let auth = &config.auth;
    if !auth.is_asked_for() {
        return vec![everybody(config)];
    }
    let mut found: Vec<Finding> = auth
        .tokens
        .iter()
        .map(|token| {
            let section = format!("`auth.tokens.{}`", token.name);
            match identity::token_length(token) {
                Ok(length) if length < TOKEN_MIN => Finding::warn(
                    ABOUT,
                    format!("{section} is {length} bytes long, and could be found by trying"),
                    "make it of at least 24 random letters, such as `openssl rand -base64 24` gives",
                ),
                Ok(_) => Finding::ok(ABOUT, format!("{section} can be read, for `{}`", token.caller.principal)),
                Err(error) => {
                    Finding::bad(ABOUT, format!("{section}: {error}"), "put it there, or take its section out")
                }
            }
        })
        .collect();
    if let Some(oauth) = &auth.oauth {
        found.push(match identity::issuer_keys(oauth).await {
            Ok(keys) => Finding::ok(ABOUT, format!("the issuer `{}` has {keys} keys that can be used", oauth.issuer)),
            Err(why) => Finding::bad(
                ABOUT,
                format!("the keys of the issuer `{}` cannot be read: {why}", oauth.issuer),
                "see that `auth.oauth.issuer` is spelled as its tokens spell it, or say where its keys are with `jwks`",
            ),
        });
    }
    found
}

/// What is said where nobody has to say who they are.
fn everybody(config: &Config) -> Finding {
    let address = config.http;
    match config.auth.may_listen(address) {
        Err(error) => Finding::bad(ABOUT, error.to_string(), "the gateway does not start like this"),
        Ok(()) if address.ip().to_canonical().is_loopback() => {
            Finding::ok(ABOUT, "whoever is on this machine may call, as `local`")
        }
        Ok(()) => Finding::warn(
            ABOUT,
            format!("whoever reaches {address} may call, as `local`: `auth.open` is set"),
            "name tokens or an issuer under `[auth]`, or keep others out by a firewall or a proxy",
        ),
    }
}
