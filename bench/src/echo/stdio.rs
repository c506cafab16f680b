//! The echo on standard input and output: one thread, no runtime.

use std::io::{BufRead, BufReader, BufWriter, Write};

use anyhow::Result;

pub(super) fn serve() -> Result<()> {
    let mut input = BufReader::with_capacity(64 * 1024, std::io::stdin().lock());
    let mut output = BufWriter::with_capacity(64 * 1024, std::io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(answer) = super::answer(&line) {
            output.write_all(answer.as_bytes())?;
            output.write_all(b"\n")?;
        }
        line.clear();
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    Ok(())
}
