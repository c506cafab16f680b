//! Reading messages line by line, with a bound that a flood cannot break.

use amends_wire::scan::{Scanned, Scanner};
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// One line of a peer that speaks newline-delimited JSON.
#[derive(Debug)]
pub enum Line {
    /// A line within the bounds.
    Whole(String),
    /// A line that is too long, too deep or not UTF-8. It was read to its end and thrown away.
    Broken {
        /// What is wrong with it.
        why: Broken,
        /// What can be told of it all the same.
        scanned: Box<Scanned>,
        /// How it begins.
        start: String,
    },
    /// There is no further line.
    End,
}

/// What can be wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It is longer than we take.
    TooLong,
    /// It nests deeper than we take.
    TooDeep,
    /// It is not UTF-8.
    NotUtf8,
}

/// The bounds of a line.
#[derive(Clone, Copy, Debug)]
pub struct LineBounds {
    /// How long it may be.
    pub bytes: usize,
    /// How deep it may nest.
    pub depth: usize,
}

/// Reads one line. Memory stays within the bound whatever the peer sends.
pub async fn read_line<R: AsyncBufRead + Unpin>(reader: &mut R, bounds: LineBounds) -> std::io::Result<Line> {
    let mut kept: Vec<u8> = Vec::new();
    let mut scanner = Scanner::new(bounds.depth);
    let (mut deep, mut long, mut any) = (false, false, false);
    loop {
        let chunk = reader.fill_buf().await?;
        if chunk.is_empty() {
            if !any {
                return Ok(Line::End);
            }
            break;
        }
        any = true;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        deep |= scanner.feed(part).is_err();
        let room = bounds.bytes.saturating_sub(kept.len());
        long |= part.len() > room;
        kept.extend_from_slice(&part[..part.len().min(room)]);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            break;
        }
    }
    if kept.last() == Some(&b'\r') {
        kept.pop();
    }
    let why = match (long, deep) {
        (true, _) => Some(Broken::TooLong),
        (false, true) => Some(Broken::TooDeep),
        (false, false) => None,
    };
    let broken = |why, bytes: &[u8]| {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        Line::Broken { why, scanned: Box::new(scanner.finish()), start }
    };
    Ok(match why {
        Some(why) => broken(why, &kept),
        None => match String::from_utf8(kept) {
            Ok(line) => Line::Whole(line),
            Err(error) => broken(Broken::NotUtf8, error.as_bytes()),
        },
    })
}
