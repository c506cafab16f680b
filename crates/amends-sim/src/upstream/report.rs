//! Reports, built as the classifier of a protocol builds them.

use amends_core::attempt::Payload;
use amends_core::{Certainty, Code, Failure, Purpose, Report};

use crate::catalog::Tool;
use crate::flaw::Flaw;
use crate::upstream::{Book, Fault, Request};

fn payload(text: &str) -> Payload {
    Payload { digest: text.into(), size: 2 }
}

fn failure(code: Code, status: u16) -> Failure {
    Failure { status: Some(status), ..Failure::of(code) }
}

/// The line broke before an answer.
pub(super) fn lost() -> Box<Report> {
    Box::new(Report::silent(Failure::of(Code::ConnectionLost), Certainty::InDoubt))
}

/// Nothing could be sent.
pub(crate) fn refused() -> Box<Report> {
    Box::new(Report::silent(Failure::of(Code::ConnectRefused), Certainty::NotSent))
}

/// It was done.
pub(super) fn success(book: &Book, request: &Request) -> Box<Report> {
    let count = book.count(request.tool, request.args);
    Box::new(Report::success(Some(payload(&format!("done-{count}")))))
}

pub(super) fn in_flight(flaw: Option<Flaw>) -> Box<Report> {
    if flaw == Some(Flaw::ConflictAsSuccess) {
        return Box::new(Report::success(None));
    }
    Box::new(Report::answered(failure(Code::KeyInFlight, 409), Certainty::InDoubt, None))
}

pub(super) fn done() -> Box<Report> {
    let failure = failure(Code::AlreadyProcessed, 409);
    Box::new(Report::answered(failure, Certainty::Processed, None))
}

/// What a request is answered that was turned away before its effect; nothing where it goes on.
pub(super) fn before_effect(fault: Fault, tool: &Tool, keyed: bool, flaw: Option<Flaw>) -> Option<Box<Report>> {
    let rejected = Certainty::NotProcessed;
    let said = |status| {
        if tool.believes(status) { rejected } else { Certainty::InDoubt }
    };
    let (failure, certainty) = match fault {
        Fault::InFlight if keyed => return Some(in_flight(flaw)),
        Fault::Stale => (failure(Code::EvidenceStale, 412), rejected),
        Fault::Forbidden => (failure(Code::Forbidden, 403), rejected),
        Fault::Invalid => (failure(Code::InputInvalid, 422), rejected),
        Fault::Limited { retry_after_ms } => (limited(retry_after_ms), said(429)),
        Fault::Busy => (failure(Code::Provider5xx, 503), said(503)),
        Fault::Failed { after: false } => (failure(Code::Provider5xx, 500), Certainty::InDoubt),
        Fault::Plain { after: false } => (Failure::of(Code::ActionError), plain(flaw)),
        Fault::Crash { after: false } => return Some(lost()),
        _ => return None,
    };
    Some(Box::new(Report::answered(failure, certainty, None)))
}

/// What a request is answered after its effect; nothing where that is a plain success.
pub(super) fn after_effect(fault: Fault, flaw: Option<Flaw>) -> Option<Box<Report>> {
    let (failure, certainty, payload) = match fault {
        Fault::Failed { after: true } => (failure(Code::Provider5xx, 500), Certainty::InDoubt, None),
        Fault::Plain { after: true } => (Failure::of(Code::ActionError), plain(flaw), None),
        Fault::Malformed => (Failure::of(Code::OutputMalformed), Certainty::Processed, Some(payload("odd"))),
        _ => return None,
    };
    Some(Box::new(Report::answered(failure, certainty, payload)))
}

fn plain(flaw: Option<Flaw>) -> Certainty {
    if flaw == Some(Flaw::ErrorAsNothingDone) { Certainty::NotProcessed } else { Certainty::InDoubt }
}

fn limited(retry_after_ms: u64) -> Failure {
    Failure { retry_after_ms: (retry_after_ms > 0).then_some(retry_after_ms), ..failure(Code::RateLimited, 429) }
}

/// What a read is answered that fails; nothing where it does not.
pub(super) fn of_read(fault: Fault) -> Option<Box<Report>> {
    let (failure, certainty) = match fault {
        Fault::Limited { retry_after_ms } => (limited(retry_after_ms), Certainty::InDoubt),
        Fault::Busy => (failure(Code::Provider5xx, 503), Certainty::InDoubt),
        Fault::Failed { .. } => (failure(Code::Provider5xx, 500), Certainty::InDoubt),
        Fault::Malformed => (Failure::of(Code::OutputMalformed), Certainty::Processed),
        Fault::Plain { .. } => (Failure::of(Code::ActionError), Certainty::InDoubt),
        Fault::InFlight => (failure(Code::KeyInFlight, 409), Certainty::InDoubt),
        Fault::Forbidden => (failure(Code::Forbidden, 403), Certainty::NotProcessed),
        Fault::Stale => (failure(Code::EvidenceStale, 412), Certainty::NotProcessed),
        Fault::Invalid => (failure(Code::InputInvalid, 422), Certainty::NotProcessed),
        _ => return None,
    };
    Some(Box::new(Report::answered(failure, certainty, None)))
}

/// What a read shows: for a status, whether the effect is in the book.
pub(super) fn reading(book: &Book, request: &Request, tool: &Tool, fits: bool) -> Box<Report> {
    let count = book.count(request.tool, request.args);
    if let Some(fact) = &request.fact {
        return Box::new(Report::success(Some(Payload { digest: book.fact(fact), size: 2 })));
    }
    let mut report = Report::success(Some(payload(&format!("seen-{count}"))));
    if matches!(request.purpose, Purpose::Status | Purpose::Baseline) {
        report.happened = Some(if tool.by_baseline() { count > 0 } else { book.has(&request.effect_key) });
        report.fits = fits;
    }
    Box::new(report)
}
