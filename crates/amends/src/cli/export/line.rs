//! The lines of an export: a header, then for each session a line of its own, one for each of its events, and one for what each
//! of its calls gave, where that was wanted. Rules have a line before the first session that was decided by them.

use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};

use amends_core::{CallId, Digest, Event, Principal, SessionId, Timestamp};
use amends_ledger::chain::canonical;
use amends_ledger::{SessionRow, StoredEvent, Trace};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The version of the lines. The first had no rules, the second no answers.
const VERSION: u32 = 3;

/// How long a line is at most.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line<'a> {
    Export {
        version: u32,
    },
    Rules {
        hash: Digest,
        #[serde(borrow)]
        body: &'a RawValue,
    },
    Session(Box<SessionLine>),
    Event {
        hash: Digest,
        #[serde(borrow)]
        body: &'a RawValue,
    },
    Answer {
        call: CallId,
        gave: Value,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionLine {
    id: SessionId,
    principal: Principal,
    door: String,
    opened: Timestamp,
    updated: Timestamp,
    events: u64,
    cut: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut_link: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
}

/// What an export holds.
#[derive(Debug)]
pub(crate) enum Exported {
    /// Rules, and the digest under which calls name them.
    Rules(Digest, String),
    /// A session, and what its calls gave, as far as that was exported.
    Session(Box<SessionRow>, Trace, Answers),
}

/// What calls gave.
pub(crate) type Answers = BTreeMap<CallId, Value>;

/// A line that is not what it should be.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub(crate) struct BadLine {
    pub(crate) line: u64,
    pub(crate) reason: String,
}

pub(super) fn write_header(out: &mut dyn Write) -> Result<()> {
    write(&Line::Export { version: VERSION }, out)
}

pub(super) fn write_rules(hash: &Digest, body: &str, out: &mut dyn Write) -> Result<()> {
    let body = RawValue::from_string(body.to_owned())?;
    write(&Line::Rules { hash: hash.clone(), body: &body }, out)
}

pub(super) fn write_session(row: &SessionRow, trace: &Trace, out: &mut dyn Write) -> Result<()> {
    let last = trace.events.last().map(|stored| &stored.event);
    let line = SessionLine {
        id: row.session.clone(),
        principal: row.principal.clone(),
        door: row.door.clone(),
        opened: row.opened,
        updated: last.map_or(row.updated, |last| last.at.max(row.updated)),
        events: trace.cut + trace.events.len() as u64,
        cut: trace.cut,
        cut_link: trace.cut_link.clone(),
        machine: row.machine.clone(),
    };
    write(&Line::Session(Box::new(line)), out)?;
    for stored in &trace.events {
        let body = RawValue::from_string(canonical(&stored.event)?)?;
        write(&Line::Event { hash: stored.hash.clone(), body: &body }, out)?;
    }
    Ok(())
}

/// Writes what a call gave, and says whether it did: a line that is too long to be read is not written.
pub(super) fn write_answer(call: CallId, gave: Value, out: &mut dyn Write) -> Result<bool> {
    let mut line = serde_json::to_vec(&Line::Answer { call, gave })?;
    line.push(b'\n');
    let fits = line.len() as u64 <= LINE_BYTES_MAX;
    if fits {
        out.write_all(&line)?;
    }
    Ok(fits)
}

fn write(line: &Line<'_>, out: &mut dyn Write) -> Result<()> {
    serde_json::to_writer(&mut *out, line).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}

/// Reads an export, one session at a time.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    from: R,
    line: u64,
    /// The line that was read while the events of the session before it were.
    next: Option<Owned>,
    begun: bool,
}

impl<R: BufRead> Reader<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, line: 0, next: None, begun: false }
    }

    /// The next session or rules. Nothing at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Exported>, BadLine> {
        if !self.begun {
            self.begin()?;
        }
        let next = match self.next.take() {
            Some(next) => Some(next),
            None => self.read()?,
        };
        match next {
            None => Ok(None),
            Some(Owned::Rules(hash, body)) => Ok(Some(Exported::Rules(hash, body))),
            Some(Owned::Session(head)) => self.session(*head).map(Some),
            Some(Owned::Export(_) | Owned::Event(_) | Owned::Answer(..)) => {
                Err(self.bad("a session's line should be here"))
            }
        }
    }

    fn session(&mut self, head: SessionLine) -> Result<Exported, BadLine> {
        let mut events = Vec::new();
        let wanted = head.events.saturating_sub(head.cut);
        while (events.len() as u64) < wanted {
            match self.read()? {
                Some(Owned::Event(stored)) => {
                    if stored.event.seq != head.cut + events.len() as u64 + 1 {
                        let expected = head.cut + events.len() as u64 + 1;
                        let words = format!("event {} stands where event {expected} should be", stored.event.seq);
                        return Err(self.bad(&words));
                    }
                    events.push(*stored);
                }
                Some(_) => return Err(self.bad("an event of the session above is missing here")),
                None => {
                    self.line += 1;
                    return Err(self.bad("the file ends before its session does"));
                }
            }
        }
        let answers = self.answers()?;
        let SessionLine { id, principal, door, opened, updated, events: count, cut, cut_link, machine } = head;
        let row = SessionRow {
            session: id.clone(),
            principal,
            door,
            opened,
            updated,
            events: count,
            cut,
            open_calls: 0,
            machine,
        };
        Ok(Exported::Session(Box::new(row), Trace { session: id, epoch: 1, cut, cut_link, events }, answers))
    }

    /// What the calls of a session gave whose events were read, up to the next session.
    fn answers(&mut self) -> Result<Answers, BadLine> {
        let mut answers = Answers::new();
        loop {
            match self.read()? {
                Some(Owned::Answer(call, gave)) => drop(answers.insert(call, gave)),
                Some(next @ (Owned::Session(_) | Owned::Rules(..))) => {
                    self.next = Some(next);
                    return Ok(answers);
                }
                Some(Owned::Export(_) | Owned::Event(_)) => {
                    return Err(self.bad("the session above has no such event"));
                }
                None => return Ok(answers),
            }
        }
    }

    /// The line that was read last.
    pub(crate) const fn line(&self) -> u64 {
        self.line
    }

    fn begin(&mut self) -> Result<(), BadLine> {
        self.begun = true;
        match self.read()? {
            Some(Owned::Export(1..=VERSION)) => Ok(()),
            Some(Owned::Export(version)) => {
                Err(self.bad(&format!("this is an export of version {version}, and this program knows {VERSION}")))
            }
            Some(_) => Err(self.bad("this is not an export: it does not say so in its first line")),
            None => {
                self.line = 1;
                Err(self.bad("the file is empty"))
            }
        }
    }

    fn read(&mut self) -> Result<Option<Owned>, BadLine> {
        let mut bytes = Vec::new();
        let read = (&mut self.from).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut bytes);
        match read {
            Ok(0) => return Ok(None),
            Ok(_) => self.line += 1,
            Err(error) => return Err(BadLine { line: self.line + 1, reason: error.to_string() }),
        }
        if bytes.last() != Some(&b'\n') {
            let long = bytes.len() as u64 > LINE_BYTES_MAX;
            return Err(self.bad(if long { "it is longer than any that is written" } else { "it is torn off" }));
        }
        let text = str::from_utf8(&bytes).map_err(|_| self.bad("it is not UTF-8"))?;
        let line = serde_json::from_str(text).map_err(|error| self.bad(&format!("it cannot be read: {error}")))?;
        Ok(Some(match line {
            Line::Export { version } => Owned::Export(version),
            Line::Rules { hash, body } => Owned::Rules(hash, body.get().to_owned()),
            Line::Session(head) => Owned::Session(head),
            Line::Event { hash, body } => {
                let event: Event = serde_json::from_str(body.get())
                    .map_err(|error| self.bad(&format!("its event cannot be read: {error}")))?;
                // Written anew it must be the same, byte for byte, or its hash would say nothing of what is kept.
                if canonical(&event).ok().as_deref() != Some(body.get()) {
                    return Err(self.bad("its event is not as this program would write it"));
                }
                Owned::Event(Box::new(StoredEvent { event, hash }))
            }
            Line::Answer { call, gave } => Owned::Answer(call, gave),
        }))
    }

    fn bad(&self, reason: &str) -> BadLine {
        BadLine { line: self.line, reason: reason.to_owned() }
    }
}

/// A line without what it was read from.
#[derive(Debug)]
enum Owned {
    Export(u32),
    Rules(Digest, String),
    Session(Box<SessionLine>),
    Event(Box<StoredEvent>),
    Answer(CallId, Value),
}
