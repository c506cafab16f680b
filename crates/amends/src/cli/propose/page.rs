//! The page that a person reads before they decide.

use std::fmt::Write;

use serde_json::Value;

/// The page of a proposal.
pub(super) fn page(proposal: &Value, whatif: &str) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut page = format!(
        "# A proposed change of the rules\n\nMade at {} UTC from `{}`. Hash of the proposal: `{}`; of the rules: `{}`.\n",
        text(&proposal["made_at"]),
        text(&proposal["playbook"]["file"]),
        text(&proposal["hash"]),
        text(&proposal["playbook"]["hash"]),
    );
    page.push_str("\n## What was observed\n\n| tool | verdict | attempts |\n|---|---|---|\n");
    for row in rows(&proposal["observed"]["verdicts"]) {
        let _ = writeln!(page, "| `{}` | `{}` | {} |", text(&row["tool"]), text(&row["verdict"]), row["attempts"]);
    }
    let gaps = proposal["observed"]["unclassified"].as_object().into_iter().flatten();
    for (tool, n) in gaps {
        let _ = writeln!(page, "\n{n} failures of `{tool}` that nothing recognises: a gap in the playbook.");
    }
    page.push_str("\nThe longest waits:\n\n");
    for row in rows(&proposal["observed"]["longest_waits"]) {
        let _ = writeln!(page, "- {} ms: `{}`, `{}`", row["told_after_ms"], text(&row["tool"]), text(&row["call"]));
    }
    page.push_str("\n## What changes\n\n| tool | verdict | codes | from | to | by |\n|---|---|---|---|---|---|\n");
    for row in rows(&proposal["change"]) {
        let codes: Vec<String> = rows(&row["codes"]).map(text).collect();
        let _ = writeln!(
            page,
            "| `{}` | `{}` | {} | {} | {} | {} |",
            text(&row["tool"]),
            text(&row["verdict"]),
            codes.join(", "),
            text(&row["from"]),
            text(&row["to"]),
            text(&row["place"]),
        );
    }
    let _ = write!(page, "\n## What it would have done\n\n```\n{whatif}\n```\n");
    page.push_str("\n## The goldens\n\n");
    match &proposal["goldens"] {
        Value::Null => page.push_str("None were told.\n"),
        goldens => {
            let failed = rows(&goldens["failed"]).count();
            let _ = writeln!(
                page,
                "{} were told, {failed} end otherwise. Hash: `{}`.",
                goldens["run"],
                text(&goldens["hash"])
            );
            for row in rows(&goldens["failed"]) {
                let _ = write!(page, "\n`{}`\n\n```\n{}\n```\n", text(&row["file"]), text(&row["difference"]));
            }
        }
    }
    let _ = write!(page, "\n## The rules\n\n```toml\n{}\n```\n", text(&proposal["playbook"]["text"]).trim_end());
    page
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
