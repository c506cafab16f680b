//! Times as a person reads them.

pub(super) use amends_gateway::clock::now;
pub(super) use amends_gateway::told::utc;
