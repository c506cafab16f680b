//! What must not be copied from one file into another.

use amends_core::privacy::Mask;

/// Words in a name that say that its value is nobody's business.
const SECRET_WORDS: [&str; 22] = [
    "token",
    "tokens",
    "secret",
    "secrets",
    "password",
    "passwd",
    "pwd",
    "pass",
    "passphrase",
    "key",
    "keys",
    "apikey",
    "credential",
    "credentials",
    "auth",
    "authorization",
    "cookie",
    "dsn",
    "pat",
    "bearer",
    "jwt",
    "signature",
];

/// What known services' secrets begin with.
const SECRET_STARTS: [&str; 16] = [
    "sk-",
    "sk_",
    "rk_",
    "pk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "eyJ",
    "Bearer ",
    "Basic ",
];

/// A text of letters and digits this long is rather a secret than a word.
const RANDOM_MIN: usize = 20;

/// Whether a value looks like a secret, by its name or by itself. In doubt it does.
pub(in crate::cli) fn looks_secret(name: &str, value: &str) -> bool {
    let value = value.trim();
    if value.is_empty() || is_plain_value(value) {
        return false;
    }
    let by_name = words(name).iter().any(|word| SECRET_WORDS.contains(&word.as_str()));
    let by_start = SECRET_STARTS.iter().any(|start| value.starts_with(start));
    let in_address = value.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        authority.contains('@')
    });
    by_name || by_start || in_address || is_random(value) || Mask::default().finds(value)
}

/// The variable that a value refers to rather than being one: `${NAME}`, `${env:NAME}`, `$NAME`; `${input:…}` has none.
pub(in crate::cli) fn referred(value: &str) -> Option<Option<&str>> {
    let value = value.trim();
    if let Some(inner) = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
        if inner.contains(['$', '{', '}']) {
            return None;
        }
        return Some(match inner.split_once(':') {
            Some(("env", name)) => Some(name),
            // A default after `:-` is not the variable's name.
            Some((name, rest)) if rest.starts_with('-') => Some(name),
            Some(_) => None,
            None => Some(inner),
        });
    }
    let name = value.strip_prefix('$')?;
    let sound = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    sound.then_some(Some(name))
}

/// A switch, a number or a place: nothing that could be a secret.
fn is_plain_value(value: &str) -> bool {
    let switch = ["true", "false", "yes", "no", "on", "off", "none"].contains(&value.to_ascii_lowercase().as_str());
    switch || (value.len() < 12 && value.parse::<f64>().is_ok())
}

/// A long run of letters and digits that is no word and no path.
fn is_random(value: &str) -> bool {
    let run = |part: &str| {
        part.len() >= RANDOM_MIN
            && part.bytes().any(|byte| byte.is_ascii_digit())
            && part.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    value.split(|c: char| !c.is_ascii_alphanumeric()).any(run)
}

/// The words of a name, in lower case: `GITHUB_TOKEN`, `apiKey` and `api-key` have two each.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && before_lower) {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().expect("there is one").extend(c.to_lowercase());
        }
        before_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_by_name_by_start_and_by_look() {
        for (name, value) in [
            ("GITHUB_TOKEN", "x"),
            ("apiKey", "abc"),
            ("X", "sk-live-1"),
            ("DATABASE_URL", "postgres://me:word@host/db"),
            ("ANYTHING", "a8f5f167f44f4964e6c998dee827110c"),
            ("Authorization", "Bearer abc"),
            ("db.password", "hunter2"),
        ] {
            assert!(looks_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("REGION", "eu-central-1"),
            ("LOG_LEVEL", "debug"),
            ("ROOT", "/home/me/some/long/path/to/a/folder"),
            ("API_KEY", ""),
            ("USE_TOKEN", "true"),
            ("MAX_TOKENS", "4096"),
            ("KEYBOARD", "de"),
            ("URL", "https://example.com/a/b"),
        ] {
            assert!(!looks_secret(name, value), "{name}");
        }
    }

    #[test]
    fn references_are_told_from_values() {
        assert_eq!(referred("${TOKEN}"), Some(Some("TOKEN")));
        assert_eq!(referred("${env:TOKEN}"), Some(Some("TOKEN")));
        assert_eq!(referred("${TOKEN:-x}"), Some(Some("TOKEN")));
        assert_eq!(referred("$TOKEN"), Some(Some("TOKEN")));
        assert_eq!(referred("${input:token}"), Some(None));
        assert_eq!(referred("Bearer ${TOKEN}"), None);
        assert_eq!(referred("$"), None);
    }
}
