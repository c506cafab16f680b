//! What was recorded, in words: the command line and the console say the same.

use amends_core::gates::Ruling;
use amends_core::interaction::SignInAt;
use amends_core::walk::Weighed;
use amends_core::{Event, Fact, Inquiry, PersonAnswer, Timestamp};
use amends_ledger::{Closing, QueueEntry, QueueState};
use serde_json::Value;

/// What the policies said, and why.
fn ruled(ruling: &Ruling) -> String {
    let by = match ruling.policies.as_slice() {
        [] => "no policy permits it".to_owned(),
        policies => format!("denied by policy `{}`", policies.join("`, `")),
    };
    let why = ruling.reasons.iter().map(|reason| format!("; {reason}")).collect::<String>();
    format!("{by}{why}")
}

/// What happened, in a word and a line.
pub fn sentence(event: &Event) -> (&'static str, String) {
    let words = match &event.fact {
        Fact::SessionOpened { principal, door, .. } => format!("by {principal} through {door}"),
        Fact::CallReceived { received, gates } => {
            let key = received.key.as_ref().map(|key| format!(", key `{}`", key.0)).unwrap_or_default();
            let repeat = received.repeat_of.as_ref().map(|held| format!(", repeats {}", held.call)).unwrap_or_default();
            let view = received.view.as_ref().map(|view| format!("  {view}")).unwrap_or_default();
            let size = received.arguments.size;
            let ruling = gates.ruling.as_ref().map(|ruling| format!("  {}", ruled(ruling))).unwrap_or_default();
            format!("{}  `{}`, {size} bytes{key}{repeat}{view}{ruling}", received.call, received.tool)
        }
        Fact::CallRefused { refusal, .. } => format!("{}: {}", refusal.kind.as_str(), refusal.message),
        Fact::AttemptStarted { attempt, purpose, tool, .. } => {
            format!("attempt {} to {}: `{tool}`", attempt.n, purpose.as_str())
        }
        Fact::AttemptEnded { attempt, report, .. } => match &report.failure {
            Some(failure) => {
                let status = failure.status.map(|status| format!(" ({status})")).unwrap_or_default();
                let wait = failure.retry_after_ms.map(|ms| format!(", asks for {ms} ms")).unwrap_or_default();
                let code = failure.code.as_str();
                format!("attempt {}: {code}{status}, {}{wait}", attempt.n, report.certainty.as_str())
            }
            None if report.inquiry.is_some() => {
                let inquiry = report.inquiry.as_deref().map(asks).unwrap_or_default();
                format!("attempt {}: the upstream asks {inquiry}, {}", attempt.n, report.certainty.as_str())
            }
            None => {
                let happened = report.happened.map(|yes| if yes { ", it happened" } else { ", it did not happen" });
                format!("attempt {}: ok, {}{}", attempt.n, report.certainty.as_str(), happened.unwrap_or(""))
            }
        },
        Fact::AttemptTimedOut { attempt, certainty } => {
            format!("attempt {}: no answer in time, {}", attempt.n, certainty.as_str())
        }
        Fact::AttemptOrphaned { attempt, certainty } => {
            format!("attempt {}: found without a result, {}", attempt.n, certainty.as_str())
        }
        Fact::FailureJudged { attempt, verdict, compensation, rule, retry, held_back } => {
            let retry = retry.map(|n| format!(", further send {n}")).unwrap_or_default();
            let held = held_back.map(|by| format!(", held back by the {}", by.as_str())).unwrap_or_default();
            let (verdict, rule) = (verdict.as_str(), rule.as_str());
            format!("attempt {}: {verdict} -> {compensation} ({rule} rule){retry}{held}", attempt.n)
        }
        Fact::WaitBegan { until, next, .. } => {
            format!("{} ms, then {}", until.since_ms(event.at), next.as_str())
        }
        Fact::DoubtSettled { certainty, by, .. } => format!("{} by attempt {}", certainty.as_str(), by.n),
        Fact::InterimAnswered { .. } => "the agent was told; settling goes on".to_owned(),
        Fact::CallEnded { outcome, certainty, replayed, granted, .. } => {
            let replayed = if *replayed { ", the recorded answer of an equal call" } else { "" };
            let granted = if *granted { ", the next equal call may be sent" } else { "" };
            format!("{}, {}{replayed}{granted}", outcome.as_str(), certainty.as_str())
        }
        Fact::CallApproved { yes, interaction, of, .. } => {
            let asked = interaction.as_ref().map(|id| format!(", {id}")).unwrap_or_default();
            let of = of.as_ref().map(|call| format!(", given to {call}")).unwrap_or_default();
            format!("by {}{asked}{of}", yes.as_str())
        }
        Fact::EvidenceCompared { changed, .. } => match changed.as_slice() {
            [] => "as it was".to_owned(),
            changed => {
                let names: Vec<&str> = changed.iter().map(|changed| changed.reference.as_str()).collect();
                format!("changed: `{}`", names.join("`, `"))
            }
        },
        Fact::InteractionOpened { interaction } => {
            format!("{} on `{}`: {}", interaction.id, interaction.queue, interaction.question)
        }
        Fact::InteractionAnswered { interaction, answer, .. } => {
            let note = answer.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
            format!("{interaction}: {} by {}{note}", answer.choice, answer.by)
        }
        Fact::InteractionLapsed { interaction, default } => format!("{interaction}: nobody answered, {default}"),
        Fact::InteractionWithdrawn { interaction } => format!("{interaction}: pointless by now"),
        Fact::InquiryMade { attempt, inquiry, .. } => {
            format!("attempt {}: the upstream asks {}", attempt.n, asks(inquiry))
        }
        Fact::InquiryOpened { attempt, inquiry, due, .. } => {
            format!("inquiry {inquiry} of attempt {}: the agent has {} ms", attempt.n, due.since_ms(event.at))
        }
        Fact::InputsGiven { inquiry, inputs, .. } => format!("inquiry {inquiry}: {} bytes", inputs.size),
        Fact::InquiryWithdrawn { inquiry, .. } => format!("inquiry {inquiry}: the upstream took it back"),
        Fact::WorkNamed { attempt, name } => format!("attempt {}: the upstream calls it {name}", attempt.n),
        Fact::InquiryClosed { inquiry, why, .. } => format!("inquiry {inquiry}: {}", why.as_str()),
        Fact::DoubtResolved { call, certainty, by: None, .. } => {
            format!("{call}: {}, a person says", certainty.as_str())
        }
        Fact::DoubtResolved { call, certainty, by: Some(by), .. } => {
            format!("{call}: {}, by the late result of attempt {}", certainty.as_str(), by.n)
        }
        Fact::ReversalMinted { .. } | Fact::ReversalVoided { .. } => String::new(),
        Fact::ReversalArmed { until, .. } => format!("for {} ms", until.since_ms(event.at)),
        Fact::ReversalRefused { reason, .. } => reason.clone(),
        Fact::ReversalRedeemed { call, of, .. } => format!("{call} undid {of}"),
        Fact::CancelRequested { reason, .. } => match reason {
            amends_core::dispatcher::cancel::CancelReason::Asked => "the agent asked".to_owned(),
            amends_core::dispatcher::cancel::CancelReason::TurnEnded => "the agent's turn was stopped".to_owned(),
            amends_core::dispatcher::cancel::CancelReason::SessionEnded => "the agent ended its session".to_owned(),
            amends_core::dispatcher::cancel::CancelReason::Disconnected => "the agent is gone".to_owned(),
        },
        Fact::LateResult { attempt, report } => format!("attempt {}: {}", attempt.n, report.certainty.as_str()),
        Fact::SchemaDrifted { drift } => format!("`{}` of `{}`", drift.tool, drift.upstream),
        Fact::SchemaApproved { drift, by } => format!("`{}` of `{}` by {by}", drift.tool, drift.upstream),
        Fact::WalkBegan { beginning } => match &beginning.from {
            Some(fork) => format!("`{}`, from move {} of {}", beginning.machine, fork.seq, fork.session),
            None => format!("`{}`", beginning.machine),
        },
        Fact::WalkMigrated { hash, .. } => format!("under the declaration {hash}"),
        Fact::MoveReceived { taking, .. } => {
            let view = taking.view.as_ref().map(|view| format!("  {view}")).unwrap_or_default();
            let what = if taking.reset { "back to the beginning".to_owned() } else { format!("`{}`", taking.action) };
            format!("{}  {what}, {} bytes{view}", taking.id, taking.inputs.size)
        }
        Fact::MoveRefused { refusal, .. } => format!("{}: {}", refusal.kind.as_str(), refusal.message),
        Fact::MoveJoined { first, .. } => format!("the answer of {first}"),
        Fact::MoveWeighed { weighed, .. } => said(weighed),
        Fact::MoveWaits { until, attempt, .. } => format!("{} ms, then try {attempt}", until.since_ms(event.at)),
        Fact::MoveMade { action, from, to, enters, .. } => {
            let to: Vec<&str> = to.iter().map(|state| state.as_str()).collect();
            let enters = enters.as_ref().map(|machine| format!(", into `{machine}`")).unwrap_or_default();
            format!("`{action}`: `{from}` -> {}{enters}", to.join(", then "))
        }
        Fact::MoveEnded { outcome, certainty, .. } => format!("{}, {}", outcome.as_str(), certainty.as_str()),
        Fact::WalkReset { moves, .. } => format!("to its beginning, as move {moves}"),
        Fact::WalkAborted { .. } => "what was done in it is being undone, as far as it can be".to_owned(),
        Fact::WalkUnwound { undone, failed, doubtful, left, more, .. } => {
            let stayed = failed.iter().map(ToString::to_string);
            let stayed: Vec<String> =
                stayed.chain(left.iter().map(|left| format!("`{}` ({})", left.tool, left.call))).collect();
            let named = if stayed.is_empty() { String::new() } else { format!(": {}", stayed.join(", ")) };
            let in_doubt = match doubtful.len() {
                0 => String::new(),
                count => format!(" or in doubt ({count})"),
            };
            format!("{undone} undone, {} not{in_doubt}{named}", stayed.len() + *more as usize)
        }
        Fact::Ignored { why } => why.clone(),
        Fact::SuppressedError { doing, reason } => format!("{doing}: {reason}"),
        Fact::SessionRetired { events, reason, .. } => format!("{events} events were dropped: {}", reason.as_str()),
        Fact::Ticked { .. } | Fact::Resumed { .. } | Fact::AnswerDelivered { .. } => String::new(),
    };
    (event.fact.name(), words)
}

/// What an upstream asks of the agent, by its kinds.
fn asks(inquiry: &Inquiry) -> String {
    match inquiry.asks.as_slice() {
        [] => "it to come back".to_owned(),
        asks => asks.iter().map(|ask| ask.kind.as_str()).collect::<Vec<_>>().join(", "),
    }
}

fn said(weighed: &Weighed) -> String {
    match weighed {
        Weighed::Proceed => "proceed".to_owned(),
        Weighed::Retry => "retry".to_owned(),
        Weighed::Skip => "skip".to_owned(),
        Weighed::Fail => "fail".to_owned(),
        Weighed::Arrives { arrival } => {
            let to: Vec<&str> = arrival.to.iter().map(|state| state.as_str()).collect();
            format!("it leads to {}", to.join(", then "))
        }
        Weighed::Unclear { why } => format!("unclear: {why}"),
    }
}

/// Where a question to a person stands, in a word.
pub const fn standing(state: QueueState) -> &'static str {
    match state {
        QueueState::Open => "open",
        QueueState::Answered => "answered",
        QueueState::Closed(closing) => over(closing),
    }
}

/// Why a question is over, in a word.
pub const fn over(closing: Closing) -> &'static str {
    match closing {
        Closing::Answered => "settled",
        Closing::Lapsed => "lapsed",
        Closing::Withdrawn => "withdrawn",
    }
}

/// A question for programs: as it was asked, where it stands, and the answer that counts.
pub fn question(entry: &QueueEntry) -> Value {
    let mut json = serde_json::to_value(&entry.interaction).unwrap_or_default();
    json["state"] = standing(entry.state).into();
    if let Some(answer) = &entry.answer {
        // What was asked for is for the call.
        let answer = PersonAnswer { content: None, ..answer.clone() };
        json["answer"] = serde_json::to_value(answer).unwrap_or_default();
    }
    json
}

/// Where somebody has to sign in, in a line.
pub fn sign_in(at: &SignInAt) -> String {
    let code = at.code.as_ref().map(|code| format!(" with the code {code}")).unwrap_or_default();
    let until = at.expires_at.map(|until| format!(", until {}", utc(until))).unwrap_or_default();
    let says = at.says.as_ref().map(|says| format!("\n  it says: {says:?}")).unwrap_or_default();
    format!("sign in for `{}` at {}{code}{until}{says}", at.upstream, at.url)
}

/// A point in time in UTC, such as `2026-03-01 09:30:05.250`.
pub fn utc(at: Timestamp) -> String {
    let ms = at.ms();
    let days = i64::try_from(ms / 86_400_000).unwrap_or(0);
    let of_day = ms % 86_400_000;
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{:03}", ms % 1000)
}

/// The time that a text in the form of RFC 3339 names; nothing where it names none, or one before 1970. What is finer than a
/// millisecond is left out.
pub fn since_1970(text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let number = |text: &str, digits: usize| {
        let is_plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse::<i64>().ok()).flatten()
    };
    let mut parts = date.split('-');
    let (year, month, day) = (number(parts.next()?, 4)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = time.split_at(zone);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut hands = clock.split(':');
    let (hour, minute, second) = (number(hands.next()?, 2)?, number(hands.next()?, 2)?, number(hands.next()?, 2)?);
    let offset = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => 0,
        (sign, rest) => {
            let (hours, minutes) = rest.split_once(':')?;
            let minutes = number(hours, 2)? * 60 + number(minutes, 2)?;
            if sign == "-" { -minutes } else { minutes }
        }
    };
    let is_there = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    if !is_there || parts.next().is_some() || hands.next().is_some() || fraction.is_empty() {
        return None;
    }
    let ms: String = fraction.chars().chain("000".chars()).take(3).collect();
    let seconds = days_of(year, month, day) * 86_400 + (hour * 60 + minute - offset) * 60 + second;
    u64::try_from(seconds * 1_000 + number(&ms, 3)?).ok().map(Timestamp::from_ms)
}

/// The day of a calendar date counted from 1970: the other way round than [`civil`].
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The calendar date of a day counted from 1970, by counting in eras of 400 years that begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(Timestamp::from_ms(0)), "1970-01-01 00:00:00.000");
        assert_eq!(utc(Timestamp::from_ms(951_782_400_000)), "2000-02-29 00:00:00.000");
        assert_eq!(utc(Timestamp::from_ms(1_772_357_405_250)), "2026-03-01 09:30:05.250");
    }

    #[test]
    fn a_time_is_read_as_it_is_written_and_in_other_zones() {
        for ms in [0, 951_782_400_000, 1_772_357_405_250, 4_102_444_799_999] {
            let text = format!("{}Z", utc(Timestamp::from_ms(ms)).replace(' ', "T"));
            assert_eq!(since_1970(&text), Some(Timestamp::from_ms(ms)), "{text}");
        }
        let at = Some(Timestamp::from_ms(1_772_357_405_000));
        for same in ["2026-03-01T09:30:05Z", "2026-03-01T11:30:05.000999+02:00", "2026-03-01T04:00:05.0-05:30"] {
            assert_eq!(since_1970(same), at, "{same}");
        }
        for odd in [
            "",
            "now",
            "2026-03-01",
            "2026-03-01T09:30:05",
            "2026-13-01T09:30:05Z",
            "2026-03-01T09:30Z",
            "1960-01-01T00:00:00Z",
            "2026-03-01T09:30:05.Z",
            "2026-03-01T09:30:05+2",
        ] {
            assert_eq!(since_1970(odd), None, "{odd}");
        }
    }
}
