//! Who somebody is: an agent at a door, or a person who looks and answers.

/// What a person may do. Each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Look.
    Viewer,
    /// Answer what is asked of people.
    Approver,
    /// Change what is in force.
    Operator,
}

/// A person who is signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The name under which answers are recorded.
    pub name: String,
    /// Whose calls they see; nothing where there is only one tenant.
    pub tenant: Option<String>,
    /// What they may do.
    pub role: Role,
}

impl Role {
    /// The word for it in configurations and on pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Approver => "approver",
            Self::Operator => "operator",
        }
    }
}
