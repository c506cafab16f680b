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
    /// Who calls: authenticated by the door, `local` on a loopback door without authentication.
    Principal
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
