//! Who looks at the console or asks the API, and what they may do.

use amends_ledger::digest;
use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderValue, ORIGIN};

use super::Door;
use super::api::problem::Problem;
use crate::clock;
use crate::config::{CredentialConfig, KeySource};
use crate::identity::{Person, Role};
use crate::upstream::credential_now;

/// The cookie that a session is kept in.
pub(super) const COOKIE_NAME: &str = "amends_console";
/// The header in which a page shows that it is ours.
const PAGE_HEADER: &str = "x-amends-page";

/// Somebody who is signed in.
#[derive(Clone, Debug)]
pub(super) struct SignedIn {
    /// Who it is.
    pub(super) person: Person,
    /// What pages of their session show with everything they want done; nothing for a token, which no browser shows by itself.
    pub(super) page: Option<String>,
}

impl SignedIn {
    /// Refuses somebody whose role does not reach.
    pub(super) fn at_least(&self, role: Role) -> Result<(), Problem> {
        if self.person.role >= role {
            return Ok(());
        }
        let has = self.person.role.as_str();
        Err(Problem::forbidden(format!("this is for the role `{}`, and yours is `{has}`", role.as_str())))
    }

    /// Refuses somebody who may see only one tenant's.
    pub(super) fn of_the_house(&self) -> Result<(), Problem> {
        match &self.person.tenant {
            None => Ok(()),
            Some(_) => Err(Problem::forbidden("this shows what is every tenant's, and you see only your own's")),
        }
    }

    /// Refuses what another page made this browser send. `shown` is what a form held.
    pub(super) fn is_own_page(&self, headers: &HeaderMap, shown: Option<&str>) -> Result<(), Problem> {
        let Some(wanted) = &self.page else { return Ok(()) };
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let authority = header(ORIGIN.as_str()).map(|origin| origin.split_once("://").map_or(origin, |(_, rest)| rest));
        if authority.is_some_and(|authority| header(HOST.as_str()) != Some(authority)) {
            return Err(Problem::forbidden("this comes from a page that is not ours"));
        }
        let shown = shown.or_else(|| header(PAGE_HEADER)).unwrap_or_default();
        if digest(shown.as_bytes()) == digest(wanted.as_bytes()) {
            return Ok(());
        }
        Err(Problem::forbidden("the page does not show that it is ours; load it again"))
    }
}

/// Who asks: by a token in the header, or by the session that the browser keeps.
pub(super) async fn who(door: &Door, headers: &HeaderMap) -> Result<SignedIn, Problem> {
    if headers.contains_key(AUTHORIZATION) {
        let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let token = shown.strip_prefix("Bearer ").ok_or_else(Problem::nobody)?;
        let person = by_token(door, token).await.ok_or_else(Problem::nobody)?;
        return Ok(SignedIn { person, page: None });
    }
    let session = session(headers).ok_or_else(Problem::nobody)?;
    let person = door.gateway.sign_in.who(session, clock::now()).ok_or_else(Problem::nobody)?;
    Ok(SignedIn { person, page: Some(door.gateway.sign_in.proof_of_page(session)) })
}

/// The person of a token, where it is somebody's.
pub(super) async fn by_token(door: &Door, token: &str) -> Option<Person> {
    let config = door.gateway.config();
    if config.console.token.as_ref().is_some_and(|source| is_token(source, token)) {
        return Some(operator());
    }
    if !config.auth.is_asked_for() {
        return None;
    }
    let shown = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    let shown = HeaderMap::from_iter([(AUTHORIZATION, shown)]);
    door.gateway.identity().person(&shown).await.ok()
}

/// Whoever shows the link or the token of the console.
pub(super) fn operator() -> Person {
    let name = std::env::var("USER").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "operator".to_owned());
    Person { name, tenant: None, role: Role::Operator }
}

fn is_token(source: &KeySource, shown: &str) -> bool {
    match credential_now(&CredentialConfig { source: source.clone(), prefix: String::new() }) {
        Ok(wanted) => digest(shown.as_bytes()) == digest(wanted.as_bytes()),
        Err(error) => {
            tracing::warn!(%error, "nobody can sign in with a token");
            false
        }
    }
}

/// The session that the browser keeps.
fn session(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, COOKIE_NAME)
}

/// What the browser keeps under that name.
pub(super) fn cookie<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut named = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    named.find(|(name, _)| *name == wanted).map(|(_, session)| session)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn the_session_is_found_among_other_cookies() {
        assert_eq!(session(&headers(&[("cookie", "a=b; amends_console=x.y; c=d")])), Some("x.y"));
        assert_eq!(session(&headers(&[("cookie", "amends_console2=x")])), None);
        assert_eq!(session(&headers(&[])), None);
    }

    #[test]
    fn a_page_of_somebody_else_cannot_have_anything_done() {
        let person = Person { name: "ada".into(), tenant: None, role: Role::Operator };
        let signed_in = SignedIn { person: person.clone(), page: Some("proof".into()) };
        let own = headers(&[("host", "127.0.0.1:7070"), ("origin", "http://127.0.0.1:7070")]);
        assert!(signed_in.is_own_page(&own, Some("proof")).is_ok());
        assert!(signed_in.is_own_page(&own, None).is_err() && signed_in.is_own_page(&own, Some("")).is_err());
        let other = headers(&[("host", "127.0.0.1:7070"), ("origin", "http://127.0.0.1:3000")]);
        assert!(signed_in.is_own_page(&other, Some("proof")).is_err(), "another port is another page");
        let by_header = headers(&[("host", "a"), ("x-amends-page", "proof")]);
        assert!(signed_in.is_own_page(&by_header, None).is_ok());
        assert!(
            SignedIn { person, page: None }.is_own_page(&other, None).is_ok(),
            "no browser shows a token by itself"
        );
    }

    #[test]
    fn a_role_reaches_what_is_below_it() {
        let of = |role| SignedIn { person: Person { name: "a".into(), tenant: None, role }, page: None };
        assert!(of(Role::Operator).at_least(Role::Approver).is_ok());
        assert!(of(Role::Viewer).at_least(Role::Viewer).is_ok());
        let refused = of(Role::Viewer).at_least(Role::Approver).unwrap_err();
        assert_eq!(refused.status.as_u16(), 403);
    }
}
