//! What the ledger looks like, and whether the clocks agree with it.

use amends_core::Timestamp;
use amends_gateway::config::{LedgerConfig, LedgerPlace};
use amends_ledger::{Error, Glance};

use super::disk;
use super::finding::Finding;
use crate::cli::stamp::utc;

const LEDGER: &str = "ledger";
const CLOCK: &str = "clock";
/// How far a clock may be off.
const CLOCK_MS_MAX: u64 = 2_000;
/// How long a node's lease is at most in front of its clock.
const LEASE_MS: u64 = 10_000;

/// Looks at a ledger without touching it.
pub(super) async fn look(config: &LedgerConfig, now: Timestamp) -> Vec<Finding> {
    let (place, file) = disk::place(&config.place);
    if matches!(config.place, LedgerPlace::Memory) {
        return vec![Finding::warn(
            LEDGER,
            "it is in memory, and gone with the process",
            "name a file or a database with `ledger.url`",
        )];
    }
    if file.is_some_and(|file| !file.exists()) {
        return vec![Finding::ok(LEDGER, format!("{place} is not there yet; it is made at the first start"))];
    }
    let before = std::time::Instant::now();
    match glance(&config.place).await {
        Ok(Some(glance)) => {
            let took_ms = u64::try_from(before.elapsed().as_millis()).unwrap_or(u64::MAX);
            seen(&place, config, &glance, now, took_ms)
        }
        Ok(None) => vec![Finding::ok(LEDGER, format!("{place} holds nothing yet"))],
        Err(error) => vec![Finding::bad(
            LEDGER,
            format!("{place} cannot be looked at: {error}"),
            "see that it is a ledger and that this user may read it; for PostgreSQL, that it can be reached",
        )],
    }
}

async fn glance(place: &LedgerPlace) -> Result<Option<Glance>, Error> {
    match place {
        LedgerPlace::Memory => Ok(None),
        LedgerPlace::Sqlite(path) => {
            let path = path.clone();
            let looked = tokio::task::spawn_blocking(move || Glance::sqlite(&path)).await;
            looked.unwrap_or_else(|error| Err(Error::Unavailable { reason: error.to_string() }))
        }
        LedgerPlace::Postgres(url) => Glance::postgres(url).await,
    }
}

fn seen(place: &str, config: &LedgerConfig, glance: &Glance, now: Timestamp, took_ms: u64) -> Vec<Finding> {
    let Glance { version, version_known, .. } = glance;
    let tables = format!("{place}: tables of version {version}");
    let mut found = vec![match version.cmp(version_known) {
        std::cmp::Ordering::Equal => Finding::ok(LEDGER, tables),
        std::cmp::Ordering::Less => Finding::warn(
            LEDGER,
            format!("{tables}; this program knows {version_known}"),
            "they are brought up to date at the next start",
        ),
        std::cmp::Ordering::Greater => Finding::bad(
            LEDGER,
            format!("{tables}; this program knows up to {version_known}"),
            "a newer `amends` wrote it: use that one",
        ),
    }];
    if version != version_known {
        return found;
    }
    found.push(open(glance, now));
    found.extend(checkpoint(config, glance, now));
    found.push(chains(glance));
    found.extend(clock(glance, now, took_ms));
    found
}

fn open(glance: &Glance, now: Timestamp) -> Finding {
    let Glance { sessions, open_calls, questions, .. } = glance;
    let alive = glance.leases.iter().filter(|lease| **lease > now).count();
    let words = format!(
        "{sessions} sessions, {open_calls} calls open, {questions} questions for a person, {alive} nodes alive"
    );
    match (*open_calls, alive) {
        (1.., 0) => Finding::warn(LEDGER, words, "calls are open and nobody drives them; the next start takes them up"),
        _ if *questions > 0 => Finding::warn(LEDGER, words, "`amends queue` lists the questions"),
        _ => Finding::ok(LEDGER, words),
    }
}

fn checkpoint(config: &LedgerConfig, glance: &Glance, now: Timestamp) -> Option<Finding> {
    config.signing_key.as_ref()?;
    let every_ms = u64::try_from(config.checkpoint_every.as_millis()).unwrap_or(u64::MAX);
    let Some(at) = glance.checkpoint else {
        return (glance.sessions > 0).then(|| {
            Finding::warn(LEDGER, "no checkpoint was signed yet, so nothing is proven", "`amends checkpoint` signs one")
        });
    };
    let words = format!("the newest checkpoint is of {} UTC; {} sessions went on since", utc(at), glance.unlogged);
    let late = glance.unlogged > 0 && now.since_ms(at) > every_ms.saturating_mul(10);
    Some(match late {
        true => Finding::warn(
            LEDGER,
            words,
            "see why the gateway does not sign (its log says so), or run `amends checkpoint`",
        ),
        false => Finding::ok(LEDGER, words),
    })
}

fn chains(glance: &Glance) -> Finding {
    match glance.faults.first() {
        None if glance.checked == 0 => {
            Finding::ok(LEDGER, "no chain was recomputed; `amends verify` does that for all")
        }
        None => Finding::ok(LEDGER, format!("the chains of the newest {} sessions are whole", glance.checked)),
        Some(fault) => {
            let session = fault.session.as_ref().map_or("", |session| session.as_str());
            let words =
                format!("{} faults in the newest sessions; first: {session}: {}", glance.faults.len(), fault.words);
            Finding::bad(
                LEDGER,
                words,
                "somebody or something changed the ledger: run `amends verify --anchor FILE`, and keep a copy",
            )
        }
    }
}

/// Whether our clock agrees with the store's, with what was recorded, and with the nodes.
fn clock(glance: &Glance, now: Timestamp, took_ms: u64) -> Vec<Finding> {
    let mut found = Vec::new();
    let apart = |one: Timestamp, other: Timestamp| one.ms().abs_diff(other.ms());
    if let Some(theirs) = glance.clock {
        // Asking took a while, which may have been on either side of the answer.
        let off = apart(theirs, now).saturating_sub(took_ms);
        found.push(match off > CLOCK_MS_MAX {
            true => Finding::warn(
                CLOCK,
                format!("the database's clock differs from ours by {off} ms"),
                "keep both machines' clocks by NTP",
            ),
            false => Finding::ok(CLOCK, "the database's clock agrees with ours"),
        });
    }
    let ahead = glance.updated.filter(|at| at.ms() > now.ms() + CLOCK_MS_MAX + took_ms);
    let leased = glance.leases.iter().max().filter(|lease| lease.ms() > now.ms() + LEASE_MS + CLOCK_MS_MAX + took_ms);
    if let Some(at) = ahead {
        found.push(Finding::bad(
            CLOCK,
            format!("something was recorded at {} UTC, which is still to come", utc(at)),
            "this machine's clock was set back, or another's is ahead; keep them by NTP",
        ));
    } else if let Some(lease) = leased {
        found.push(Finding::warn(
            CLOCK,
            format!("a node may send until {} UTC, longer than any lease from now", utc(*lease)),
            "another machine's clock is ahead of this one; keep them by NTP",
        ));
    } else {
        found.push(Finding::ok(CLOCK, "nothing that was recorded lies in the future"));
    }
    found
}
