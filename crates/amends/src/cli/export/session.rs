//! Sessions being written, with what belongs to them: the rules they were decided by, and what their calls gave.

use std::collections::BTreeSet;
use std::io::Write;

use amends_core::{CallId, Digest, Fact};
use amends_gateway::driver::gave;
use amends_ledger::{Ledger, SessionRow, Trace};
use anyhow::Result;

use super::{Format, clear_progress, line, table};

/// Writes sessions.
pub(super) struct Sessions<'a> {
    ledger: &'a dyn Ledger,
    format: Format,
    answers: bool,
    /// The rules that are written already. A ledger has few.
    rules: BTreeSet<Digest>,
    /// How many answers are too long for a line.
    left_out: u64,
}

impl<'a> Sessions<'a> {
    pub(super) fn of(ledger: &'a dyn Ledger, format: Format, answers: bool) -> Self {
        Self { ledger, format, answers, rules: BTreeSet::new(), left_out: 0 }
    }

    pub(super) async fn write(&mut self, row: &SessionRow, trace: &Trace, out: &mut dyn Write) -> Result<()> {
        match self.format {
            Format::Jsonl => {
                self.write_rules(trace, out).await?;
                line::write_session(row, trace, out)?;
                if self.answers {
                    self.write_answers(trace, out).await?;
                }
                Ok(())
            }
            Format::Csv => table::write_session(row, trace, out),
        }
    }

    /// The rules by which a session is decided again, each once.
    async fn write_rules(&mut self, trace: &Trace, out: &mut dyn Write) -> Result<()> {
        for stored in &trace.events {
            let Fact::CallReceived { received, .. } = &stored.event.fact else { continue };
            if self.rules.insert(received.rules.clone())
                && let Some(body) = self.ledger.stored_rules(&received.rules).await?
            {
                line::write_rules(&received.rules, &body, out)?;
            }
        }
        Ok(())
    }

    /// What the calls of a session gave, as far as that is kept.
    async fn write_answers(&mut self, trace: &Trace, out: &mut dyn Write) -> Result<()> {
        let received = trace.events.iter().filter_map(|stored| match &stored.event.fact {
            Fact::CallReceived { received, .. } => Some(&received.call),
            _ => None,
        });
        let calls: BTreeSet<&CallId> = received.collect();
        for call in calls {
            let Some(gave) = self.ledger.answer(call).await?.as_ref().and_then(gave) else { continue };
            if !line::write_answer(call.clone(), gave, out)? {
                self.left_out += 1;
            }
        }
        Ok(())
    }

    /// Says what was left out.
    pub(super) fn tell(&self) {
        if self.left_out > 0 {
            clear_progress();
            eprintln!("{} answers are too long for an export, and were left out", self.left_out);
        }
    }
}
