//! What a tool's name says: a verb, and what it is about.

/// What a verb suggests. Nobody vouches for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// It looks at something.
    Reads,
    /// It makes something that was not there.
    Makes,
    /// It changes what is there.
    Changes,
    /// It takes something back.
    Undoes,
}

/// A tool's name taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// The verb, where one is known, and what it suggests.
    pub(super) verb: Option<(String, Manner)>,
    /// The rest, in the singular, joined by `_`.
    pub(super) noun: String,
}

const READS: [&str; 27] = [
    "get", "read", "list", "search", "find", "fetch", "lookup", "query", "describe", "show", "view", "count", "check",
    "inspect", "browse", "whoami", "ping", "explain", "preview", "validate", "exists", "status", "stat", "tail",
    "grep", "compare", "info",
];
/// The verbs by which one thing is looked at, the best first.
pub(super) const READS_ONE: [&str; 10] =
    ["get", "read", "find", "fetch", "lookup", "show", "view", "describe", "check", "status"];
const MAKES: [&str; 31] = [
    "create",
    "add",
    "issue",
    "make",
    "open",
    "start",
    "book",
    "reserve",
    "place",
    "submit",
    "post",
    "send",
    "publish",
    "insert",
    "charge",
    "pay",
    "transfer",
    "schedule",
    "register",
    "upload",
    "deploy",
    "grant",
    "subscribe",
    "invite",
    "order",
    "refund",
    "buy",
    "run",
    "execute",
    "append",
    "import",
];
const CHANGES: [&str; 14] = [
    "update", "set", "edit", "patch", "put", "change", "modify", "rename", "move", "replace", "upsert", "assign",
    "write", "merge",
];
const UNDOES: [&str; 17] = [
    "cancel",
    "delete",
    "remove",
    "revoke",
    "undo",
    "revert",
    "void",
    "close",
    "stop",
    "unsubscribe",
    "release",
    "withdraw",
    "archive",
    "drop",
    "destroy",
    "unschedule",
    "reverse",
];

/// Verbs that are as often the names of things.
const THINGS: [&str; 14] = [
    "order", "issue", "book", "place", "post", "refund", "charge", "transfer", "schedule", "release", "status",
    "check", "view", "info",
];

impl Words {
    /// Takes a name apart: `issue_refund`, `issueRefund`, `refunds.issue` and `shop/issue-refund` alike.
    pub(super) fn of(name: &str) -> Self {
        let words = split(name);
        // The first verb counts; words that are as often the name of a thing only where there is no other.
        let verbs = || words.iter().enumerate().filter_map(|(at, word)| Some((at, manner(word)?)));
        let at = verbs().find(|(at, _)| !THINGS.contains(&words[*at].as_str())).or_else(|| verbs().next());
        let rest = words.iter().enumerate().filter(|(n, _)| at.is_none_or(|(at, _)| at != *n));
        let noun: Vec<String> = rest.map(|(_, word)| singular(word)).collect();
        let verb = at.map(|(at, manner)| (words[at].clone(), manner));
        Self { verb, noun: noun.join("_") }
    }

    /// What the verb suggests.
    pub(super) fn manner(&self) -> Option<Manner> {
        self.verb.as_ref().map(|(_, manner)| *manner)
    }

    /// Whether it begins or ends in that verb.
    pub(super) fn is(&self, verb: &str) -> bool {
        self.verb.as_ref().is_some_and(|(own, _)| own == verb)
    }
}

fn manner(word: &str) -> Option<Manner> {
    let of = [
        (&READS[..], Manner::Reads),
        (&UNDOES[..], Manner::Undoes),
        (&CHANGES[..], Manner::Changes),
        (&MAKES[..], Manner::Makes),
    ];
    of.into_iter().find(|(verbs, _)| verbs.contains(&word)).map(|(_, manner)| manner)
}

fn split(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in name.chars().take(256) {
        if !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

fn singular(word: &str) -> String {
    match word.strip_suffix("ies") {
        Some(stem) if stem.len() > 1 => format!("{stem}y"),
        _ if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") && !word.ends_with("us") => {
            word[..word.len() - 1].to_owned()
        }
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_many_styles_say_the_same() {
        for name in ["issue_refund", "issueRefund", "IssueRefund", "refunds.issue", "issue-refunds", "issue/refund"] {
            let words = Words::of(name);
            assert_eq!((words.manner(), words.noun.as_str()), (Some(Manner::Makes), "refund"), "{name}");
        }
        assert_eq!(
            Words::of("get_order_status"),
            Words { verb: Some(("get".into(), Manner::Reads)), noun: "order_status".into() }
        );
        assert_eq!(Words::of("charge_card").noun, "card");
        assert_eq!(Words::of("list_categories").noun, "category");
        assert_eq!(Words::of("frobnicate"), Words { verb: None, noun: "frobnicate".into() });
        assert_eq!(Words::of("").noun, "");
        assert_eq!(Words::of("github_create_issue").noun, "github_issue");
        assert_eq!(Words::of("order_get").manner(), Some(Manner::Reads));
    }
}
