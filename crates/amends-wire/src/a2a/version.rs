//! The versions of the protocol that are spoken.

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 0.3: `message/send`, lower-case states, parts with a `kind`.
    V03,
    /// 1.0: `SendMessage`, states that begin with `TASK_STATE_`.
    V1,
}

/// The header that names the version.
pub const HEADER: &str = "a2a-version";
/// The current version, as it is named.
pub const CURRENT: &str = "1.0";

impl Version {
    /// The version of a header's value, in its major and minor part; nothing where it is not spoken here.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('.');
        match (parts.next(), parts.next()) {
            (Some("1"), Some("0")) | (Some("1"), None) => Some(Self::V1),
            (Some("0"), Some("3")) => Some(Self::V03),
            _ => None,
        }
    }

    /// The version that has a method of that name.
    pub fn of_method(method: &str) -> Self {
        if method.contains('/') { Self::V03 } else { Self::V1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_two_parts_of_a_version_count() {
        assert_eq!(
            ["1.0", "1.0.1", "0.3", "0.3.0"].map(Version::parse),
            [Some(Version::V1), Some(Version::V1), Some(Version::V03), Some(Version::V03)]
        );
        for odd in ["", "2.0", "1.1", "0.2.5", "one", "99.0"] {
            assert_eq!(Version::parse(odd), None, "{odd}");
        }
    }
}
