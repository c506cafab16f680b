//! A yes before a call is sent: whose it was, and for what it is good.

use serde::{Deserialize, Serialize};

/// Whose yes lets a call be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Yes {
    /// That of the persons who were asked about this call.
    Person,
    /// One that was given to an equal call when nobody waited for it any more. It is spent with this one.
    Grant,
    /// One that was given for the tool in this session.
    Session,
    /// One that was given for these arguments, for good.
    Arguments,
    /// The stated default of a gateway where nobody is there to be asked.
    Headless,
}

/// For what a yes is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// For one call.
    #[default]
    Once,
    /// For the tool, in the session of the call.
    Session,
    /// For the arguments of the call, until somebody takes it back.
    Arguments,
}

impl Yes {
    /// The word for it on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Grant => "grant",
            Self::Session => "session",
            Self::Arguments => "arguments",
            Self::Headless => "headless",
        }
    }
}

impl Scope {
    /// Whether it is good for nothing else.
    pub fn is_once(&self) -> bool {
        *self == Self::Once
    }
}
