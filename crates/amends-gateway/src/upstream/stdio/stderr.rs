//! What a child writes to its standard error: words for people, of which the last are kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::ChildStderr;

use super::Shared;

/// How many lines are kept, and how many bytes of each.
const LINES_MAX: usize = 20;
const LINE_BYTES_MAX: usize = 400;

/// The last lines that a child wrote to its standard error, without anything that could move a cursor.
#[derive(Debug, Default)]
pub(super) struct LastWords {
    lines: Mutex<VecDeque<String>>,
}

impl LastWords {
    /// The last lines, oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.held().iter().cloned().collect()
    }

    fn add(&self, line: String) {
        let mut lines = self.held();
        if lines.len() >= LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn held(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads until the other end is closed. Where one agent wrapped the child, it gets every byte on our own standard error, as it
/// would without us.
pub(super) async fn listen(shared: Arc<Shared>, stderr: ChildStderr) {
    let mut reader = BufReader::new(stderr);
    let mut own = shared.wrapped.then(tokio::io::stderr);
    let mut line = Kept::default();
    loop {
        let chunk = match reader.fill_buf().await {
            Ok(chunk) if !chunk.is_empty() => chunk,
            Ok(_) | Err(_) => break,
        };
        if let Some(own) = &mut own {
            // Nobody may be there to read it.
            let _ = own.write_all(chunk).await;
            let _ = own.flush().await;
        }
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            line.take(part);
            if part.ends_with(b"\n") {
                said(&shared, &mut line);
            }
        }
        let used = chunk.len();
        reader.consume(used);
    }
    said(&shared, &mut line);
}

fn said(shared: &Shared, line: &mut Kept) {
    if let Some(line) = line.finish() {
        tracing::debug!(upstream = %shared.name, %line, "standard error");
        shared.last_words.add(line);
    }
}

/// A line, as far as it is kept.
#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    cut: bool,
}

impl Kept {
    fn take(&mut self, part: &[u8]) {
        let part = part.strip_suffix(b"\n").unwrap_or(part);
        let room = LINE_BYTES_MAX.saturating_sub(self.bytes.len());
        self.cut |= part.len() > room;
        self.bytes.extend_from_slice(&part[..part.len().min(room)]);
    }

    /// The line in characters that only show; nothing where there is nothing to see.
    fn finish(&mut self) -> Option<String> {
        let Self { bytes, cut } = std::mem::take(self);
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end();
        if text.is_empty() {
            return None;
        }
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\t' => shown.push(' '),
                c if c.is_control() || turns_text(c) => shown.extend(c.escape_default()),
                c => shown.push(c),
            }
        }
        if cut {
            shown.push('…');
        }
        Some(shown)
    }
}

/// Whether a character changes how others around it are shown.
fn turns_text(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(bytes: &[u8]) -> Option<String> {
        let mut line = Kept::default();
        line.take(bytes);
        line.finish()
    }

    #[test]
    fn a_line_shows_and_does_nothing_else() {
        assert_eq!(kept(b"plain\r\n").as_deref(), Some("plain"));
        assert_eq!(kept(b"\x1b[2Jgone\x07").as_deref(), Some("\\u{1b}[2Jgone\\u{7}"));
        assert_eq!(kept("a\u{202e}b".as_bytes()).as_deref(), Some("a\\u{202e}b"));
        assert_eq!(kept(b"\xff\xfe").as_deref(), Some("\u{fffd}\u{fffd}"));
        assert_eq!(kept(b" \n"), None);
    }

    #[test]
    fn neither_a_long_line_nor_many_lines_fill_memory() {
        let mut line = Kept::default();
        for _ in 0..10_000 {
            line.take(&[b'x'; 1000]);
        }
        assert!(line.bytes.capacity() < 10 * LINE_BYTES_MAX);
        let shown = line.finish().unwrap();
        assert!(shown.starts_with("xxx") && shown.ends_with('…') && shown.chars().count() == LINE_BYTES_MAX + 1);
        let words = LastWords::default();
        (0..1000).for_each(|n| words.add(n.to_string()));
        assert_eq!(words.lines().len(), LINES_MAX);
        assert_eq!(words.lines().last().map(String::as_str), Some("999"));
    }
}
