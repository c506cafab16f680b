//! What a result says, in the words of a story.

use amends_core::attempt::{Payload, Recorded};
use amends_core::failure::UpstreamWords;
use amends_core::{Ask, AskKind, Certainty, Code, Contract, Failure, Inquiry, Outcome, Report, Way};

use super::GoldenError;

/// The report of those words, as a classifier builds it.
pub(super) fn report(says: &str, contract: &Contract) -> Result<Report, GoldenError> {
    let (words, wait) = match says.split_once(" after ") {
        Some((words, ms)) => (words, Some(ms.parse().map_err(|_| unknown(says))?)),
        None => (says, None),
    };
    let failure = |code: Code| Failure { retry_after_ms: wait, ..Failure::of(code) };
    let status = |code, status| Failure { status: Some(status), ..failure(code) };
    let quoted = |failure: Failure, text: &str| failure.saying(text);
    let rejected = |failure| Report::answered(failure, Certainty::NotProcessed, None);
    let doubted = |failure: Failure| {
        let believed = failure.status.is_some_and(|status| contract.rejects_before_effect.contains(&status));
        let certainty = if believed { Certainty::NotProcessed } else { Certainty::InDoubt };
        Report::answered(failure, certainty, None)
    };
    Ok(match words {
        "success" => Report::success(payload("result")),
        "lost" => Report::silent(failure(Code::ConnectionLost), Certainty::InDoubt),
        "refused" => Report::silent(failure(Code::ConnectRefused), Certainty::NotSent),
        "500" => doubted(quoted(status(Code::Provider5xx, 500), "internal error")),
        "503" => doubted(status(Code::Provider5xx, 503)),
        "429" => doubted(status(Code::RateLimited, 429)),
        "423" => doubted(status(Code::ResourceBusy, 423)),
        "403" => rejected(quoted(status(Code::Forbidden, 403), "refunds above 100 need a manager")),
        "422" => {
            let words = UpstreamWords {
                code: Some("invalid".into()),
                text: Some("amount must be positive".into()),
                field: Some("amount".into()),
            };
            rejected(Failure { upstream: Some(words), ..status(Code::InputInvalid, 422) })
        }
        "412" => rejected(status(Code::EvidenceStale, 412)),
        "409 in flight" => doubted(status(Code::KeyInFlight, 409)),
        "409 done" => Report::answered(status(Code::AlreadyProcessed, 409), Certainty::Processed, None),
        "409 reused" => rejected(status(Code::KeyReused, 409)),
        "malformed" => Report::answered(failure(Code::OutputMalformed), Certainty::Processed, payload("odd")),
        "error" => doubted(quoted(failure(Code::ActionError), "something went wrong")),
        "yes" => read(Some(true), "seen", false),
        "yes, fitting" => read(Some(true), "seen", true),
        "no" => read(Some(false), "nothing", false),
        "granted" => Report { certainty: Certainty::NotSent, granted: Some(String::new()), ..Report::success(None) },
        "no answer" => read(None, "nothing", false),
        other if other.starts_with("asks") => Report::asking(Box::new(inquiry(other)?)),
        other if other.starts_with("reads ") => Report::success(payload(&other[6..])),
        other => replayed(other).ok_or_else(|| unknown(says))?,
    })
}

/// What an upstream asks, such as `asks form url by line`.
pub(super) fn inquiry(says: &str) -> Result<Inquiry, GoldenError> {
    let words = says.strip_prefix("asks").and_then(|words| words.split_once("by ")).ok_or_else(|| unknown(says))?;
    let ask = |word: &str| {
        let kinds = [AskKind::Form, AskKind::Url, AskKind::Sampling, AskKind::Roots, AskKind::Other];
        let kind = kinds.into_iter().find(|kind| kind.as_str() == word)?;
        Some(Ask { kind, payload: Payload { digest: word.into(), size: 30 } })
    };
    let asks: Option<Vec<Ask>> = words.0.split_whitespace().map(ask).collect();
    let way = [Way::Line, Way::Return, Way::Undeclared, Way::Closed].into_iter().find(|way| way.as_str() == words.1);
    match (asks, way) {
        (Some(asks), Some(way)) => Ok(Inquiry::of(asks, way)),
        _ => Err(unknown(says)),
    }
}

fn unknown(says: &str) -> GoldenError {
    GoldenError::Senseless { what: format!("`says = \"{says}\"` is nothing that a result can say") }
}

fn payload(digest: &str) -> Option<Payload> {
    Some(Payload { digest: digest.into(), size: 20 })
}

fn read(happened: Option<bool>, digest: &str, fits: bool) -> Report {
    Report { happened, fits, ..Report::success(payload(digest)) }
}

/// `recorded OUTCOME CERTAINTY`: the stored answer of the call that was joined.
fn replayed(words: &str) -> Option<Report> {
    let mut words = words.strip_prefix("recorded ")?.split(' ');
    let outcome: Outcome = word(words.next())?;
    let certainty: Certainty = word(words.next())?;
    Some(Report {
        certainty,
        recorded: Some(Recorded { outcome, certainty, code: None, refused: None }),
        ..Report::success(None)
    })
}

fn word<T: serde::de::DeserializeOwned>(word: Option<&str>) -> Option<T> {
    serde_json::from_value(word?.into()).ok()
}
