//! Writing data to standard output.

use std::io::Write;

use anyhow::Result;

/// Writes data to standard output. A reader that has seen enough is no error.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        wrote => Ok(wrote?),
    }
}
