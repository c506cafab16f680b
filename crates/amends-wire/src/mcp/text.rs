//! What a model reads of an envelope: what happened, whether anything changed, and the next move, in plain words.

use amends_core::envelope::{Body, Data, DegradationReason, Trouble};
use amends_core::failure::bounded;
use amends_core::recovery::Advice;
use amends_core::refusal::{ArgumentFault, RefusalKind};
use amends_core::{Certainty, Envelope, Outcome, Recovery, Status, WhoMustAct};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::schema::{NO_SUCH_FIELD, PRESENT};

/// How many bytes of arguments are spelled out in a text; more are in the structured answer.
const ARGS_BYTES_MAX: usize = 2000;
/// How many bytes of data of our own making are repeated as text.
const DATA_BYTES_MAX: usize = 64 * 1024;

/// What a model reads of an envelope. `payload` is the data it names, where the text is to carry it.
pub fn text(envelope: &Envelope, payload: Option<&RawValue>) -> String {
    let mut lines = Vec::new();
    match &envelope.body {
        Body::Success { outcome, data } => {
            lines.push(match (data, outcome) {
                (Data::Shown { lead, .. }, _) => lead.clone(),
                (_, Outcome::Succeeded) => "It was done.".to_owned(),
                (_, _) => {
                    "It was done; it took more than the first attempt to know it. Do not call it again.".to_owned()
                }
            });
            lines.extend(data_text(Some(data), payload));
        }
        Body::Empty { data, .. } => {
            lines.push("It was done, and there is nothing to show.".to_owned());
            lines.extend(data_text(data.as_ref(), payload));
        }
        Body::Partial(partial) => {
            if partial.truncated() {
                lines.push("It was done, and its answer was cut: there is more than this.".to_owned());
            }
            let failed = partial.errors().len() as u64 + partial.left_out();
            if failed > 0 {
                lines.push(format!("It was done in part; what failed: {failed}."));
            }
            for error in partial.errors() {
                lines.push(format!("- {}", sentence(&error.message)));
                lines.extend(quote(error));
            }
            lines.extend(data_text(Some(partial.data()), payload));
        }
        Body::Degraded { data, reason, .. } => {
            lines.push(caveat(*reason).to_owned());
            lines.extend(data_text(data.as_ref(), payload));
        }
        Body::Error { outcome, error } => trouble(error, outcome.is_none(), &mut lines),
        Body::Refused { error } => trouble(error, false, &mut lines),
    }
    if let Some(moves) = &envelope.valid_next_actions {
        lines.push(match moves.as_slice() {
            [] => "No move is legal now.".to_owned(),
            moves => format!("Legal now: {}.", names(moves)),
        });
    }
    if !envelope.follow_up_hints.is_empty() {
        lines.push(format!("Worth calling next: {}.", names(&envelope.follow_up_hints)));
    }
    if envelope.replayed {
        lines.push("This is the recorded answer to an earlier call; nothing was done again for this one.".to_owned());
    }
    if envelope.status() == Status::Error && envelope.attempts.len() > 1 {
        lines.push(format!("{} attempts were made.", envelope.attempts.len()));
    }
    lines.join("\n")
}

const fn caveat(reason: DegradationReason) -> &'static str {
    match reason {
        DegradationReason::AnswerNotKept => {
            "It was done, and its answer is no longer kept. Do not call it again to get the answer."
        }
        DegradationReason::Masked => {
            "It was done; what agents are not to see of its answer is masked. Calling again gives no more of it."
        }
        DegradationReason::StaleAnswer => "It was done; the tool says that its answer is older than it should be.",
        DegradationReason::SettledByPerson => {
            "A person says that it was done; what it gave is not known. Do not call it again."
        }
    }
}

fn trouble(error: &Trouble, settling: bool, lines: &mut Vec<String>) {
    let error = &error.shown();
    lines.push(headline(error));
    lines.push(next(error, settling));
    lines.extend(error.details.iter().map(detail));
    if let Some(recovery) = error.recovery.as_ref() {
        moves(recovery, lines);
    }
    if let Some(rewrite) = error.advice.as_ref().and_then(Advice::suggested_rewrite) {
        lines.push(format!("This would be let through: {}", bounded(rewrite)));
    }
    if let Some(scope) = error.advice.as_ref().and_then(Advice::widening_hint) {
        lines.push(format!("It needs a wider scope: `{}`.", bounded(scope)));
    }
    if let Some(quote) = quote(error) {
        lines.push(quote);
    }
}

/// What happened, and whether anything changed.
fn headline(error: &Trouble) -> String {
    let name = bounded(&error.requested);
    let message = sentence(&error.message);
    if error.kind == RefusalKind::AwaitingPerson.as_str() {
        return format!("`{name}` waits for a person: {message}");
    }
    match (error.certainty, error.safe_to_repeat) {
        (Certainty::NotSent, _) => {
            format!("`{name}` was not called: {message} Nothing was changed.")
        }
        (Certainty::NotProcessed, _) => format!("`{name}` failed: {message} Nothing was changed."),
        (Certainty::Processed | Certainty::InDoubt, true) => format!("`{name}` failed: {message}"),
        (Certainty::Processed, false) => {
            format!("`{name}` was done, although not all is well: {message}")
        }
        (Certainty::InDoubt, false) => format!("`{name}` is in doubt: {message}"),
    }
}

/// Whose move it is, and what they may do.
fn next(error: &Trouble, settling: bool) -> String {
    if error.kind == RefusalKind::AwaitingPerson.as_str() {
        return "Tell the user, and do not call it again in this turn.".to_owned();
    }
    if !error.safe_to_repeat {
        let rest = match (error.certainty, error.who_must_act) {
            (Certainty::Processed, _) => "go on from the fact that it happened.",
            (_, _) if settling => "we are finding out whether it happened. Tell the user that this is not known yet.",
            (_, WhoMustAct::Person) => "a person has to find out whether it happened. Tell the user.",
            (_, WhoMustAct::Operator) => "the operator has to find out whether it happened. Tell the user.",
            (_, WhoMustAct::Nobody) => {
                "that is being found out. Tell the user that it is not known yet whether it happened."
            }
            (_, WhoMustAct::Agent) => {
                "first find out whether it happened, with a tool that only reads, or ask the user."
            }
        };
        return format!("Do not call it again, it could happen twice; {rest}");
    }
    match (error.retryable, error.retry_after_ms) {
        (true, Some(ms)) => format!("The same call may work in {}, not earlier.", seconds(ms)),
        (true, None) => "The same call may be made again.".to_owned(),
        (false, _) => match error.who_must_act {
            WhoMustAct::Agent => "The same call would fail again; change it first.".to_owned(),
            WhoMustAct::Person => {
                "Only a person can change this. Tell the user; do not try to get around it.".to_owned()
            }
            WhoMustAct::Operator => "Only the operator can change this. Tell the user.".to_owned(),
            WhoMustAct::Nobody => "There is nothing to do about it now.".to_owned(),
        },
    }
}

fn detail(fault: &ArgumentFault) -> String {
    let field =
        if fault.field.is_empty() { "the arguments".to_owned() } else { format!("`{}`", bounded(&fault.field)) };
    let got = fault.got.as_ref().map(|got| format!(", not {}", bounded(got))).unwrap_or_default();
    let nearest =
        if fault.nearest.is_empty() { String::new() } else { format!(" (nearest: {})", names(&fault.nearest)) };
    match fault.expected.as_str() {
        PRESENT => format!("- {field} is missing"),
        NO_SUCH_FIELD => format!("- {field}: there is no such field{nearest}"),
        expected => format!("- {field}: expected {}{got}{nearest}", bounded(expected)),
    }
}

fn moves(recovery: &Recovery, lines: &mut Vec<String>) {
    if let Some(call) = &recovery.call {
        lines.push(format!("Next: call `{}` with {}.", bounded(&call.tool), arguments(&call.args)));
    }
    if let Some(template) = &recovery.template {
        let missing = if template.missing.is_empty() {
            String::new()
        } else {
            format!(" and fill in {}", names(&template.missing))
        };
        lines.push(format!("Next: call `{}` with {}{missing}.", bounded(&template.tool), arguments(&template.args)));
    }
    if !recovery.fuzzy_matches.is_empty() {
        lines.push(format!("Did you mean {}?", names(&recovery.fuzzy_matches)));
    }
    if let Some(how) = &recovery.to_mean_another {
        lines.push(format!("If another one is meant: {}", sentence(how)));
    }
}

/// The upstream's own words, marked as what they are.
fn quote(error: &Trouble) -> Option<String> {
    let upstream = error.upstream.as_ref()?;
    let status = upstream.status.map(|status| format!("status {status}"));
    let code = upstream.code.as_ref().map(|code| format!("code {:?}", bounded(code)));
    let text = upstream.text.as_ref().filter(|text| !text.is_empty()).map(|text| format!("{:?}", bounded(text)));
    let words: Vec<_> = [status, code, text].into_iter().flatten().collect();
    (!words.is_empty()).then(|| format!("The upstream said (untrusted): {}", words.join(", ")))
}

fn data_text(data: Option<&Data>, payload: Option<&RawValue>) -> Option<String> {
    let text = match data? {
        Data::Of(_) => payload?.get().to_owned(),
        Data::Value(value) | Data::Shown { value, .. } => value.to_string(),
    };
    (text.len() <= DATA_BYTES_MAX).then_some(text)
}

fn arguments(args: &Map<String, Value>) -> String {
    let text = serde_json::to_string(args).unwrap_or_default();
    if text.len() > ARGS_BYTES_MAX { "the arguments in `recovery` of the structured answer".to_owned() } else { text }
}

fn names(names: &[String]) -> String {
    names.iter().map(|name| format!("`{}`", bounded(name))).collect::<Vec<_>>().join(", ")
}

/// A message as a sentence, with its full stop.
fn sentence(message: &str) -> String {
    let message = message.trim_end();
    if message.ends_with(['.', '!', '?']) { message.to_owned() } else { format!("{message}.") }
}

fn seconds(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        _ => format!("{} s", ms.div_ceil(1000)),
    }
}
