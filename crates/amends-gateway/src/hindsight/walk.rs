//! Walking over the ledger, a session at a time.

use std::sync::Arc;

use amends_core::dispatcher::redecide::paths;
use amends_core::{Fact, Timestamp};
use amends_ledger::{Error, Ledger, SessionRow};

use super::change::Change;
use super::decided::{Again, Recorded};
use super::tally::WhatIf;
use crate::config::ConfigError;

/// How many sessions are listed at once.
const PIECE: usize = 200;

/// Decides every session again that began since then, and says before each how many sessions and events it is past. Rules that a
/// tool's contract forbids are given back.
pub async fn walk(
    ledger: &Arc<dyn Ledger>,
    change: &Change,
    since: Timestamp,
    examples: usize,
    mut progress: impl FnMut(u64, u64),
) -> Result<Result<WhatIf, ConfigError>, Error> {
    let mut found = WhatIf { file: change.file().to_owned(), since, ..WhatIf::default() };
    let mut last: Option<SessionRow> = None;
    let mut events = 0;
    loop {
        let rows = ledger.sessions_after(since, last.as_ref(), PIECE).await?;
        let Some(row) = rows.last() else { break };
        last = Some(row.clone());
        for row in &rows {
            progress(found.sessions, events);
            found.sessions += 1;
            events += row.events;
            let Some(recorded) = Recorded::read(ledger, &row.session).await? else { continue };
            if let Err(refused) = session(&mut found, &recorded, change, examples) {
                return Ok(Err(refused));
            }
        }
    }
    if let Some(fragment) = change.fragment() {
        let called = |tool: &&str| found.had.keys().any(|name| name.as_str() == *tool);
        found.not_called = fragment.tools().filter(|tool| !called(tool)).map(str::to_owned).collect();
    }
    Ok(Ok(found))
}

fn session(found: &mut WhatIf, recorded: &Recorded, change: &Change, examples: usize) -> Result<(), ConfigError> {
    let was = recorded.paths();
    for (call, path) in &was {
        found.observe(call, path);
    }
    for event in &recorded.events {
        if let Fact::CallReceived { received, .. } = &event.fact
            && let Some(rules) = recorded.rules.get(&received.rules)
        {
            if let (Change::Fragment(_), Some(release)) = (change, rules.playbook.release()) {
                *found.released.entry(release.version).or_default() += 1;
            }
            found.had.insert(received.tool.clone(), (received.upstream.clone(), rules.clone()));
        }
    }
    let reason = match recorded.again() {
        Again::Same => match recorded.under(change)? {
            Ok(rerun) => {
                let is = paths(&rerun.events);
                for (call, path) in &was {
                    found.add(call, path, is.get(call), rerun.beyond.get(call), examples);
                }
                return Ok(());
            }
            Err(why) => why,
        },
        Again::Otherwise(_) => "its own rules decide it otherwise than was recorded (see `amends replay`)".to_owned(),
        Again::NotDecidable(why) => why,
    };
    *found.not_decidable.entry(reason).or_default() += was.len() as u64;
    Ok(())
}
