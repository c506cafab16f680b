//! A connection over HTTP that takes as little of the time that is measured as it can: a request is one write, and of what comes
//! back no more is read than where it ends.

use std::io::Write as _;

use anyhow::{Context, Result, bail, ensure};
use httparse::Status;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// More headers than any of the servers sends.
const HEADERS_MAX: usize = 64;

/// A connection, opened again where it was closed while nothing was on its way: some servers do so after a few idle seconds.
#[derive(Debug)]
pub(crate) struct Line {
    address: String,
    stream: TcpStream,
    /// How every request begins.
    head: String,
    sent: Vec<u8>,
    came: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) body: Vec<u8>,
    /// The session that the server has begun.
    pub(crate) session: Option<String>,
}

/// What the head of a reply says.
#[derive(Debug)]
struct Head {
    status: u16,
    session: Option<String>,
    /// Where the body begins.
    at: usize,
    length: Length,
}

#[derive(Clone, Copy, Debug)]
enum Length {
    Known(usize),
    Chunked,
}

impl Line {
    pub(crate) async fn open(address: &str) -> Result<Self> {
        let stream = dial(address).await?;
        let head = format!("POST /mcp HTTP/1.1\r\nhost: {address}\r\n");
        Ok(Self { address: address.to_owned(), stream, head, sent: Vec::new(), came: Vec::new() })
    }

    /// From now on every request has that header.
    pub(crate) fn wear(&mut self, name: &str, value: &str) {
        self.head.extend([name, ": ", value, "\r\n"]);
    }

    pub(crate) async fn post(&mut self, body: &str) -> Result<Reply> {
        // Nothing comes unasked but the end.
        if self.stream.try_read(&mut [0]).is_ok() {
            self.stream = dial(&self.address).await?;
        }
        self.sent.clear();
        write!(self.sent, "{}content-length: {}\r\n\r\n{body}", self.head, body.len())?;
        self.stream.write_all(&self.sent).await?;
        self.came.clear();
        let head = loop {
            self.more().await?;
            if let Some(head) = Head::read(&self.came)? {
                break head;
            }
        };
        let body = loop {
            if let Some(body) = head.length.body(&self.came[head.at..])? {
                break body;
            }
            self.more().await?;
        };
        let status = head.status;
        ensure!((200..300).contains(&status), "status {status}: {}", String::from_utf8_lossy(&body));
        Ok(Reply { body, session: head.session })
    }

    async fn more(&mut self) -> Result<()> {
        self.came.reserve(16 * 1024);
        let read = self.stream.read_buf(&mut self.came).await?;
        ensure!(read > 0, "the connection ended before the answer did: {}", String::from_utf8_lossy(&self.came));
        Ok(())
    }
}

impl Head {
    /// The head of a reply, once all of it is there.
    fn read(came: &[u8]) -> Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut reply = httparse::Response::new(&mut headers);
        let Status::Complete(at) = reply.parse(came)? else { return Ok(None) };
        let (mut session, mut length) = (None, Length::Known(0));
        for header in reply.headers.iter() {
            let value = || std::str::from_utf8(header.value).map(str::trim);
            if header.name.eq_ignore_ascii_case("content-length") {
                length = Length::Known(value()?.parse()?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                length = Length::Chunked;
            } else if header.name.eq_ignore_ascii_case("mcp-session-id") {
                session = Some(value()?.to_owned());
            }
        }
        Ok(Some(Self { status: reply.code.context("no status")?, session, at, length }))
    }
}

impl Length {
    /// The body, once all of it is there.
    fn body(self, came: &[u8]) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Known(length) => Ok(came.get(..length).map(<[u8]>::to_vec)),
            Self::Chunked => chunks(came),
        }
    }
}

fn chunks(mut came: &[u8]) -> Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    loop {
        let (at, size) = match httparse::parse_chunk_size(came) {
            Ok(Status::Complete((at, size))) => (at, usize::try_from(size)?),
            Ok(Status::Partial) => return Ok(None),
            Err(_) => bail!("a chunk without a size"),
        };
        // The chunk, and the end of its line.
        let Some(chunk) = came[at..].get(..size + 2) else { return Ok(None) };
        if size == 0 {
            return Ok(Some(body));
        }
        body.extend_from_slice(&chunk[..size]);
        came = &came[at + size + 2..];
    }
}

async fn dial(address: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).await.with_context(|| format!("no `{address}`"))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_whole_only_once_its_end_is_there() {
        let known = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nmcp-session-id: s1\r\n\r\nhello";
        let head = Head::read(known).unwrap().unwrap();
        assert_eq!((head.status, head.session.as_deref()), (200, Some("s1")));
        assert_eq!(head.length.body(&known[head.at..known.len() - 1]).unwrap(), None);
        assert_eq!(head.length.body(&known[head.at..]).unwrap().unwrap(), b"hello");
        let chunked = b"HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
        let head = Head::read(chunked).unwrap().unwrap();
        for end in head.at..chunked.len() {
            assert_eq!(head.length.body(&chunked[head.at..end]).unwrap(), None, "{end}");
        }
        assert_eq!(head.length.body(&chunked[head.at..]).unwrap().unwrap(), b"hello");
        assert!(Head::read(b"HTTP/1.1 200 OK\r\ncontent-len").unwrap().is_none());
    }
}
