//! The page `docs/translation.md`: what every failure and refusal is called in every protocol and framework.

use std::fmt::Write as _;

use amends_core::refusal::RefusalKind;
use amends_core::registry::{AgUi, Code, Meaning};

use crate::pages::anchor;

const HEAD: &str = "\
<!-- Generated from the registry by `UPDATE=1 cargo nextest run -p amends --test registry`. -->
# Translation

One failure, told at every boundary. Everywhere the whole envelope goes along: in `structuredContent` over MCP, in the body over HTTP,
in a data part over A2A, in the metadata of the result over AG-UI. So nothing is lost on the way from one gateway to the next. This
page says what a peer sees that does not read envelopes, and what it cannot tell apart.

What is known of the effect outranks the code: whatever the code, a write in doubt means *doubt*, and nobody is told to try again.

## By meaning

";

const DOORS: &str = "
The columns for A2A and AG-UI list the words of all codes and refusals with that meaning. A run of AG-UI also has the typed error in
its `TOOL_CALL_RESULT`. [Frameworks](frameworks.md) says how the others are used: they have one word for all of it, and get the
sentence.

";

const CODES: &str = "## By code\n\n\
When nothing is in doubt.\n\n\
| code | meaning | MCP | HTTP | A2A | AG-UI | PydanticAI |\n|---|---|---|---|---|---|---|\n";

const REFUSALS: &str = "\n## By refusal\n\n\
| kind | meaning | MCP | HTTP | A2A | AG-UI | PydanticAI |\n|---|---|---|---|---|---|---|\n";

const ANSWERS: &str = "
## What a person says

| | MCP, a form | MCP, `_meta` of the repeat | A2A, a data part | AG-UI, `resume` | PydanticAI | the call is told |
|---|---|---|---|---|---|---|
| yes | `accept` with `approve: true` | `amends/answer` with `approve` | `choice` is `approve` | `approved: true` | `ToolApproved` | its result, once |
| no | `accept` with `approve: false`, or `decline` | `amends/answer` with `deny` | `choice` is `deny` | `approved: false`, or `cancelled` | `ToolDenied`, and `AmendsToolset.deny` | `approval_denied` |
| what a form asks for | `accept` with its fields, where they are plain | | `choice` is `answer`, `content` has the fields | the fields | | its result, with what was filled in |
| nothing | `cancel`: the form was put away | | | a `payload` without an answer | the run is not taken up again | `awaiting_person`, until its time is over: `approval_expired` |

A yes of whoever called counts only on queues that let them: see [people](people.md). Over MCP, declining and saying no are the same;
over AG-UI, putting the form away is a no; PydanticAI cannot tell a no from a form that was put away.
";

/// The whole page.
pub(crate) fn page() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("| meaning | | MCP | A2A | AG-UI | PydanticAI | what is lost |\n|---|---|---|---|---|---|---|\n");
    for meaning in Meaning::ALL {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            meaning.as_str(),
            meaning.means(),
            words(meaning, |code| code.mcp().words(), |kind| kind.mcp().words()),
            words(meaning, |code| code.a2a().words(), |kind| kind.a2a().words()) + asked_meanwhile(meaning),
            match meaning {
                // The door looks at the certainty before the code.
                Meaning::Doubt => AgUi::RunError.words().to_owned(),
                meaning =>
                    words(meaning, |code| code.ag_ui().words().to_owned(), |kind| kind.ag_ui().words().to_owned()),
            },
            meaning.pydantic_ai(),
            lost(meaning),
        );
    }
    out.push_str(DOORS);
    out.push_str(CODES);
    for code in Code::ALL {
        let _ = writeln!(
            out,
            "| [{}](codes/{}) | {} | {} | {} | {} | {} | {} |",
            code.as_str(),
            anchor(code),
            code.meaning().as_str(),
            code.mcp().words(),
            code.http_status(),
            code.a2a().words(),
            code.ag_ui().words(),
            code.meaning().pydantic_ai(),
        );
    }
    out.push_str(REFUSALS);
    for kind in RefusalKind::ALL {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} | {} |",
            kind.as_str(),
            kind.meaning().as_str(),
            kind.mcp().words(),
            kind.http_status(),
            kind.a2a().words(),
            kind.ag_ui().words(),
            kind.meaning().pydantic_ai(),
        );
    }
    out.push_str(ANSWERS);
    out
}

/// The words of everything that has that meaning, each once. A doubt has those of the code that it hangs on.
fn words(meaning: Meaning, of_code: fn(Code) -> String, of_kind: fn(RefusalKind) -> String) -> String {
    let codes = Code::ALL.into_iter().filter(|code| match meaning {
        Meaning::Doubt => code.implies().is_none() && code.meaning() != Meaning::Cancelled,
        meaning => code.meaning() == meaning,
    });
    let kinds = RefusalKind::ALL.into_iter().filter(|kind| kind.meaning() == meaning);
    let mut words: Vec<String> = codes.map(of_code).chain(kinds.map(of_kind)).collect();
    words.sort();
    words.dedup();
    words.join("; ")
}

/// What A2A says of a doubt before it is final.
const fn asked_meanwhile(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Doubt => "; TASK_STATE_INPUT_REQUIRED while a person is asked",
        Meaning::Correct
        | Meaning::Permanent
        | Meaning::Infrastructure
        | Meaning::Cancelled
        | Meaning::Input
        | Meaning::Approval => "",
    }
}

const fn lost(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Correct => "A2A has no such class: failed and rejected are also what is final",
        Meaning::Permanent => "MCP has no flag that tells it from what the model can correct",
        Meaning::Infrastructure => {
            "A2A and MCP tell it as they tell what is final. Over MCP it is still a result, so that a model may read it"
        }
        Meaning::Cancelled => "MCP acknowledges nothing to whoever cancelled",
        Meaning::Input => "A2A has no schema of its own for what is wanted: it is in a data part",
        Meaning::Approval => "over A2A and AG-UI it is the same as input, by its schema a yes or no",
        Meaning::Doubt => "every protocol: only the envelope's `certainty` says it",
    }
}
