//! The reader of event streams: the same messages however the bytes are cut, and what was written comes back.

use amends_gateway::upstream::sse::Events;

/// Reads the bytes as an event stream, and their lines as messages that an event stream carried.
pub fn target(data: &[u8]) {
    let whole = read(data, data.len());
    for cut in [1, 2, 3, 5, 17] {
        assert_eq!(read(data, cut), whole, "in pieces of {cut}");
    }
    assert!(whole.iter().all(|event| !event.is_empty()));
    assert!(whole.iter().map(Vec::len).sum::<usize>() <= data.len());

    let messages: Vec<&[u8]> =
        data.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty()).collect();
    for end in [&b"\n"[..], b"\r\n"] {
        let mut stream = Vec::new();
        for message in &messages {
            for part in [&b": ping"[..], end, end, b"event: message", end, b"data: ", message, end, b"id: 1", end, end]
            {
                stream.extend_from_slice(part);
            }
        }
        assert_eq!(read(&stream, 13), messages, "with lines that end in {end:?}");
    }
}

fn read(data: &[u8], cut: usize) -> Vec<Vec<u8>> {
    let mut events = Events::default();
    let mut out = Vec::new();
    let mut fed = 0;
    for piece in data.chunks(cut.max(1)) {
        out.extend(events.feed(piece));
        fed += piece.len();
        assert!(events.waiting() <= fed, "more waits than came");
    }
    out
}
