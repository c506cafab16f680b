//! The table of the package `amends-pydantic-ai`: what each kind means.

use std::fmt::Write as _;

use amends_core::refusal::RefusalKind;
use amends_core::registry::{Code, Meaning};

const HEAD: &str = r#""""What each kind of failure and refusal means to whoever runs an agent, when nothing is in doubt.

Generated from the registry; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from ._envelope import Kind

"#;

/// The whole module.
pub(crate) fn module() -> String {
    let mut out = format!("{HEAD}Meaning: TypeAlias = Literal[\n");
    for meaning in Meaning::ALL {
        let _ = writeln!(out, "    # {}\n    {:?},", meaning.means(), meaning.as_str());
    }
    out.push_str("]\n\nMEANINGS: Final[Mapping[Kind, Meaning]] = {\n");
    let codes = Code::ALL.map(|code| (code.kind(), code.meaning()));
    // A few refusals have the kind of a code, and mean the same.
    let refusals = RefusalKind::ALL.map(|kind| (kind.as_str(), kind.meaning()));
    let refusals = refusals.into_iter().filter(|(kind, _)| !codes.iter().any(|(code, _)| code == kind));
    for (kind, meaning) in codes.into_iter().chain(refusals) {
        let _ = writeln!(out, "    {kind:?}: {:?},", meaning.as_str());
    }
    out.push_str("}\n");
    out
}
