//! The events of a `text/event-stream` body, as far as MCP uses them.

/// How long an event's id may be to be remembered.
const ID_MAX: usize = 1024;

/// Collects the data of events from a stream of bytes.
#[derive(Debug, Default)]
pub struct Events {
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no end of a line.
    searched: usize,
    data: Vec<u8>,
    id: Option<String>,
}

impl Events {
    /// The id of the last event that had one.
    pub fn last_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Takes more bytes and gives back the data of each event they complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.buffer.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut from = 0;
        while let Some(length) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + length;
            let line = &self.buffer[from..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            from = end + 1;
            self.searched = from;
            if line.is_empty() {
                if !self.data.is_empty() {
                    events.push(std::mem::take(&mut self.data));
                }
                continue;
            }
            if let Some(id) = line.strip_prefix(b"id:").filter(|id| id.len() <= ID_MAX) {
                let id = id.strip_prefix(b" ").unwrap_or(id);
                self.id = std::str::from_utf8(id).ok().filter(|id| !id.contains('\0')).map(str::to_owned);
            } else if let Some(data) = line.strip_prefix(b"data:") {
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            }
        }
        self.buffer.drain(..from);
        self.searched = self.buffer.len();
        events
    }

    /// How many bytes wait for the end of their event.
    pub fn waiting(&self) -> usize {
        self.buffer.len() + self.data.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_however_the_bytes_are_cut() {
        let text = b"event: message\r\ndata: {\"a\":1}\r\n\r\n: ping\n\ndata: {\n data: x\ndata:}\n\n";
        for cut in 1..text.len() {
            let mut events = Events::default();
            let mut found = Vec::new();
            for part in text.chunks(cut) {
                found.extend(events.feed(part));
            }
            assert_eq!(found, [b"{\"a\":1}".to_vec(), b"{\n}".to_vec()], "cut at {cut}");
            assert_eq!(events.last_id(), None);
        }
    }

    #[test]
    fn the_last_id_is_remembered() {
        let mut events = Events::default();
        events.feed(b"id: a-1\ndata: x\n\ndata: y\n\n");
        assert_eq!(events.last_id(), Some("a-1"));
        events.feed(format!("id: {}\n\n", "x".repeat(ID_MAX)).as_bytes());
        assert_eq!(events.last_id(), Some("a-1"));
    }
}
