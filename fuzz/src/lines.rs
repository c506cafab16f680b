//! Reading line by line: the same lines however the bytes arrive, and never more of one than its bound.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use amends_gateway::upstream::line::{Broken, Line, LineBounds, read_line};
use tokio::io::BufReader;

const BOUNDS: LineBounds = LineBounds { bytes: 120, depth: 6 };

/// Reads the bytes as lines, in buffers of several sizes.
pub fn target(data: &[u8]) {
    let whole = lines(data, data.len().max(1));
    for capacity in [1, 3, 16, 121] {
        assert_eq!(lines(data, capacity), whole, "with a buffer of {capacity}");
    }
    let mut meant: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    if meant.last().is_some_and(|rest| rest.is_empty()) {
        meant.pop();
    }
    assert_eq!(whole.len(), meant.len());
    for (read, meant) in whole.iter().zip(meant) {
        match read {
            Read::Whole(line) => {
                assert!(line.len() <= BOUNDS.bytes);
                assert_eq!(line.as_bytes(), meant.strip_suffix(b"\r").unwrap_or(meant));
            }
            Read::Broken(Broken::TooLong, ..) => assert!(meant.len() > BOUNDS.bytes),
            Read::Broken(Broken::TooDeep, ..) => {
                assert!(meant.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() > BOUNDS.depth);
            }
            Read::Broken(Broken::NotUtf8, ..) => assert!(std::str::from_utf8(meant).is_err()),
        }
    }
}

/// A line as it was read; like [`Line`], but it can be compared.
#[derive(Debug, PartialEq)]
enum Read {
    Whole(String),
    /// With what is known of it: its id, its tool and its session.
    Broken(Broken, [Option<String>; 3], String),
}

fn lines(data: &[u8], capacity: usize) -> Vec<Read> {
    let mut reader = BufReader::with_capacity(capacity, data);
    let mut out = Vec::new();
    loop {
        let line = pin!(read_line(&mut reader, BOUNDS));
        // Bytes in memory are always ready.
        let Poll::Ready(line) = line.poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("bytes in memory were waited for");
        };
        match line.expect("bytes in memory can be read") {
            Line::Whole(line) => out.push(Read::Whole(line)),
            Line::Broken { why, scanned, start } => {
                let id = scanned.id().map(str::to_owned);
                out.push(Read::Broken(why, [id, scanned.tool, scanned.session], start));
            }
            Line::End => return out,
        }
    }
}
