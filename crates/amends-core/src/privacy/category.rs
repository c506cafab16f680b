//! The kinds of data that can be masked.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

macro_rules! categories {
    ($($(#[$doc:meta])* $category:ident = $name:literal, $pattern:literal;)*) => {
        /// The closed set of kinds of data that can be masked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Category {
            $($(#[$doc])* #[serde(rename = $name)] $category,)*
        }

        impl Category {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$category),*];

            /// The word for it in the configuration and in a mask.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$category => $name,)* }
            }

            /// What stands in its place.
            pub const fn mask(self) -> &'static str {
                match self { $(Self::$category => concat!("[redacted:", $name, "]"),)* }
            }

            /// Whether it can be told by its shape. The others are found in declared fields only.
            pub const fn has_pattern(self) -> bool {
                match self { $(Self::$category => $pattern,)* }
            }
        }
    };
}

categories! {
    /// What lets somebody in: passwords, tokens, keys.
    Credential = "credential", true;
    /// Numbers of payment cards.
    PaymentCard = "payment_card", true;
    /// Numbers that a state gave to a person.
    GovernmentId = "government_id", true;
    /// How a person is reached.
    Contact = "contact", true;
    /// Accounts and what is on them.
    Financial = "financial", true;
    /// How a person or a device is told apart on a network.
    OnlineIdentifier = "online_identifier", true;
    /// Where a person is.
    Location = "location", true;
    /// A person's health.
    Health = "health", false;
    /// A person's genes.
    Genetic = "genetic", false;
    /// What a body is recognised by.
    Biometric = "biometric", false;
    /// What a person does.
    Behavioral = "behavioral", false;
    /// What the law protects a person for.
    DemographicProtected = "demographic_protected", false;
}

impl Category {
    /// What is always masked.
    pub const FLOOR: [Self; 3] = [Self::Credential, Self::PaymentCard, Self::GovernmentId];

    /// The category of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.as_str() == name)
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A category that cannot be told by its shape.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("`{0}` has no shape by which it could be found; declare the fields that hold it")]
pub struct NoPattern(pub Category);
