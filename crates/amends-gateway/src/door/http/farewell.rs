//! The end of a connection: we close our side, and see whether the agent closes its own.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::connection::Connection;

/// How long an agent may take to close its side after we closed ours.
const FAREWELL: Duration = Duration::from_secs(5);

/// A socket whose shutdown succeeds only if the agent closes it cleanly too. What was written lies in buffers on the way: an
/// agent that closes without having read it resets the connection, and one that is gone never closes.
#[derive(Debug)]
pub(super) struct Farewell {
    stream: TcpStream,
    connection: Arc<Connection>,
    waits: Option<Pin<Box<Sleep>>>,
    /// A reset is told once and then looks like a clean end; between two requests nobody above us minds it.
    broken: bool,
}

impl Farewell {
    pub(super) fn new(stream: TcpStream, connection: Arc<Connection>) -> Self {
        Self { stream, connection, waits: None, broken: false }
    }
}

impl AsyncRead for Farewell {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.broken |= matches!(read, Poll::Ready(Err(_)));
        read
    }
}

impl AsyncWrite for Farewell {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.broken {
            return Poll::Ready(Err(ErrorKind::ConnectionReset.into()));
        }
        if this.waits.is_none() {
            // Before the agent can see that the connection is over: its next call may be quicker than our look at this one.
            let owes = this.connection.leaves();
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
            if !owes {
                return Poll::Ready(Ok(()));
            }
        }
        let waits = this.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep(FAREWELL)));
        let mut rest = [0; 512];
        // Ends when the agent closes, has nothing more to say, or the time is over.
        loop {
            if waits.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(ErrorKind::TimedOut.into()));
            }
            let mut buffer = ReadBuf::new(&mut rest);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(this.stream.take_error()?.map_or(Ok(()), Err));
            }
        }
    }
}
