//! Names and ids: newtypes, so that one kind is never taken for another.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it is.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text of it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", &self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    };
}

name!(
    /// A session: the unit of order and ownership. Minted by us, unguessable.
    SessionId
);
name!(
    /// An agent's wish to use one tool. Minted by us, unguessable.
    CallId
);
name!(
    /// A tool as the agent sees it, with its upstream's prefix where there is one.
    ToolName
);
name!(
    /// An upstream, as the operator named it.
    UpstreamName
);
name!(
    /// Who calls: authenticated by the door, `local` on a loopback door without authentication. One of a tenant is written
    /// with the tenant before it, `acme/ada`, so that whatever is bound to a principal is bound to its tenant.
    Principal
);
name!(
    /// Whose calls are kept apart from everybody else's: an organisation, a customer.
    Tenant
);
name!(
    /// One question to a person.
    InteractionId
);
name!(
    /// A declared order of work.
    MachineName
);
name!(
    /// Where a machine can be.
    StateName
);
name!(
    /// A move of a machine.
    ActionName
);
name!(
    /// A digest in lower-case hexadecimal; keyed wherever its subject could be guessed.
    Digest
);

impl Principal {
    /// The principal of that name, in that tenant where there is one. No two pairs give the same.
    pub fn of(tenant: Option<&Tenant>, name: &str) -> Self {
        match tenant {
            Some(tenant) => Self::new(format!("{}/{}", escaped(tenant.as_str()), escaped(name))),
            None => Self::new(escaped(name)),
        }
    }

    /// The tenant it belongs to.
    pub fn tenant(&self) -> Option<Tenant> {
        self.0.split_once('/').map(|(tenant, _)| Tenant::new(unescaped(tenant)))
    }

    /// Its name among those of its tenant.
    pub fn name(&self) -> String {
        unescaped(self.0.split_once('/').map_or(&self.0, |(_, name)| name))
    }
}

/// A name in which nothing separates a tenant from what follows.
fn escaped(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}

fn unescaped(name: &str) -> String {
    name.replace("%2F", "/").replace("%25", "%")
}

/// One sending of a call, or of a compensation for it: the call and the number of the attempt, from 1.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptId {
    /// The call it belongs to.
    pub call: CallId,
    /// Its number among the call's attempts, from 1.
    pub n: u32,
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.call, self.n)
    }
}

impl fmt::Debug for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_names_its_tenant_and_no_two_are_written_alike() {
        let names = ["ada", "a/b", "a", "b", "%2F", "a%2Fb", "/", "", "%", "%25"];
        let mut written = std::collections::BTreeSet::new();
        for name in names {
            for tenant in names.map(Tenant::new).iter().map(Some).chain([None]) {
                let principal = Principal::of(tenant, name);
                assert_eq!((principal.tenant().as_ref(), principal.name().as_str()), (tenant, name), "{principal}");
                assert!(written.insert(principal));
            }
        }
        assert_eq!(Principal::of(Some(&Tenant::new("acme")), "ada").as_str(), "acme/ada");
        assert_eq!(Principal::of(None, "local"), Principal::new("local"));
    }
}
