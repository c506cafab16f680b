//! The pages of `docs/codes`: an index, a page for each class, and one for the refusals.

use std::fmt::Write as _;

use amends_core::refusal::RefusalKind;
use amends_core::registry::{Class, Code};
use amends_core::{Certainty, Compensation, Playbook};

const NOTE: &str = "<!-- Generated from the registry by `UPDATE=1 cargo nextest run -p amends --test registry`. -->\n";

/// Every page, by its path.
pub(crate) fn pages() -> Vec<(String, String)> {
    let mut pages =
        vec![("docs/codes/README.md".to_owned(), index()), ("docs/codes/refusals.md".to_owned(), refusals())];
    pages.extend(Class::ALL.map(|class| (format!("docs/codes/{}", file(class)), page(class))));
    pages
}

fn index() -> String {
    let mut out = format!(
        "{NOTE}# Codes\n\n\
         Every failure has one of these codes, and every refusal a kind of its own. They are stable: \
         [the charter](../charter.md) says what may change. `amends schema codes` prints the same table as JSON, \
         `amends schema` the JSON Schema of the envelope.\n\n\
         - [refusals](refusals.md): our No, before anything was sent\n\
         - [decisions](decisions.md): which signal leads to which verdict, compensation and outcome\n\n\
         A code says what happened; `certainty` says what is known of the effect, and it outranks the code: a write in \
         doubt has the verdict `in_doubt` and is not sent again, whatever its code. *Proves* is what the code alone tells \
         of the effect; where it is empty, only the signal can tell.\n\n"
    );
    for class in Class::ALL {
        let _ = write!(
            out,
            "## [{}]({})\n\n{}\n\n| code | means | verdict | who must act | retryable | proves |\n|---|---|---|---|---|---|\n",
            class.as_str(),
            file(class),
            class.means()
        );
        for code in of(class) {
            let _ = writeln!(
                out,
                "| [{}]({}#{}) | {} | `{}` | {} | {} | {} |",
                code.as_str(),
                file(class),
                code.as_str().to_lowercase(),
                code.means(),
                code.verdict().as_str(),
                code.who_must_act().as_str(),
                yes(code.retryable()),
                proves(code.implies()),
            );
        }
        out.push('\n');
    }
    out.push_str(
        "## Doors\n\n\
         Each page says what the doors make of a code. On A2A the envelope is in the status of the task; on AG-UI it is in the \
         metadata of the `TOOL_CALL_RESULT`, whatever ends the run. On MCP a call that was forwarded is always answered with a result; \
         the number of a JSON-RPC error is for what the protocol itself needs: it is the number by which an upstream's error \
         is known, and by which the door answers a message that never became a call.\n",
    );
    out
}

fn page(class: Class) -> String {
    let mut out = format!("{NOTE}# {}\n\n{}\n", class.as_str(), class.means());
    for code in of(class) {
        let shows: Vec<String> = code.shows().iter().map(|field| format!("`{}`", field.as_str())).collect();
        let _ = write!(
            out,
            "\n## {}\n\n{}\n\n**What to do.** {}\n\n\
             | | |\n|---|---|\n\
             | kind | `{}` |\n| verdict | `{}`; by default {} |\n| who must act | {} |\n| retryable | {} |\n\
             | proves | {} |\n| the agent also sees | {} |\n| HTTP | {} |\n| MCP | {} |\n| A2A | {} |\n| AG-UI | {} |\n\
             | since | charter {} |\n",
            code.as_str(),
            code.means(),
            code.then(),
            code.kind(),
            code.verdict().as_str(),
            default_for(code),
            code.who_must_act().as_str(),
            if code.retryable() { "yes, when nothing is in doubt" } else { "no" },
            proves(code.implies()),
            shows.join(", "),
            code.http_status(),
            code.mcp().words(),
            code.a2a().words(),
            code.ag_ui().words(),
            code.since(),
        );
    }
    out
}

fn refusals() -> String {
    let mut out = format!(
        "{NOTE}# Refusals\n\n\
         A refusal is our No, before anything was sent (`action_timeout` and `action_error` ran, and `retry_later` may end what \
         was tried; they answer in the same shape). Its `kind` is its own name, and it has the code and class it belongs to.\n\n\
         | kind | means | what to do | who must act | code | HTTP | MCP | A2A | AG-UI |\n|---|---|---|---|---|---|---|---|---|\n"
    );
    for kind in RefusalKind::ALL {
        let code = kind.code();
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | [{}]({}#{}) | {} | {} | {} | {} |",
            kind.as_str(),
            kind.means(),
            kind.then(),
            kind.who_must_act().as_str(),
            code.as_str(),
            file(code.class()),
            code.as_str().to_lowercase(),
            kind.http_status(),
            kind.mcp().words(),
            kind.a2a().words(),
            kind.ag_ui().words(),
        );
    }
    out
}

fn of(class: Class) -> impl Iterator<Item = Code> {
    Code::ALL.into_iter().filter(move |code| code.class() == class)
}

/// `ProviderTransient` is on `provider-transient.md`.
fn file(class: Class) -> String {
    let mut name = String::new();
    for c in class.as_str().chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(c.to_ascii_lowercase());
    }
    name + ".md"
}

/// Where a code is told of, within `docs/codes`.
pub(crate) fn anchor(code: Code) -> String {
    format!("{}#{}", file(code.class()), code.as_str().to_lowercase())
}

fn default_for(code: Code) -> String {
    let playbook = Playbook::default();
    let compensation = &playbook.rule(code.verdict(), code).compensation;
    let waits = match compensation {
        Compensation::RetryWithBackoff(ladder) | Compensation::Wait(ladder) => {
            let waits: Vec<String> = ladder.backoff_ms.iter().map(u64::to_string).collect();
            format!(" after {} ms", waits.join(", "))
        }
        _ => String::new(),
    };
    format!("`{}`{waits}", compensation.as_str())
}

fn proves(certainty: Option<Certainty>) -> String {
    certainty.map(|certainty| format!("`{}`", certainty.as_str())).unwrap_or_default()
}

const fn yes(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}
