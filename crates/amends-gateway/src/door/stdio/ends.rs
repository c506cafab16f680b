//! Standard input and output, as an agent is connected to them.

use tokio::io::{AsyncRead, AsyncWrite};

/// Where an agent is read from.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;
/// Where an agent is written to.
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Both ends. A pipe is waited for with all else; what is none is read and written by threads of its own, to which each message is
/// handed and from which it is fetched.
pub fn ends() -> (Input, Output) {
    let input = pipe::input().unwrap_or_else(|| Box::new(tokio::io::stdin()));
    let output = pipe::output().unwrap_or_else(|| Box::new(tokio::io::stdout()));
    (input, output)
}

/// Pipes are opened once more by their names: whoever else has the one that was handed to us must not find that it does not wait
/// any longer.
#[cfg(target_os = "linux")]
mod pipe {
    use tokio::net::unix::pipe::OpenOptions;

    use super::{Input, Output};

    pub(super) fn input() -> Option<Input> {
        Some(Box::new(OpenOptions::new().open_receiver("/proc/self/fd/0").ok()?))
    }

    pub(super) fn output() -> Option<Output> {
        Some(Box::new(OpenOptions::new().open_sender("/proc/self/fd/1").ok()?))
    }
}

#[cfg(not(target_os = "linux"))]
mod pipe {
    use super::{Input, Output};

    pub(super) fn input() -> Option<Input> {
        None
    }

    pub(super) fn output() -> Option<Output> {
        None
    }
}
