//! The one writer of a stdio door. It knows when an answer has been written.

use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::door::mcp::Out;
use crate::driver::Delivery;

/// How many lines may wait for an agent that reads slowly.
const WAITING_MAX: usize = 256;

/// Starts a writer. It ends when the last sender is gone or the agent takes no more.
pub(super) fn start(output: impl AsyncWrite + Unpin + Send + 'static) -> (mpsc::Sender<Out>, JoinHandle<()>) {
    let (sender, mut queue) = mpsc::channel::<Out>(WAITING_MAX);
    let task = tokio::spawn(async move {
        let mut output = BufWriter::new(output);
        let mut written = Vec::new();
        while let Some(mut out) = queue.recv().await {
            if let Some(delivery) = &mut out.delivery {
                delivery.leaves();
            }
            let mut line = amends_wire::message::one_line(&out.line).into_owned().into_bytes();
            line.push(b'\n');
            if output.write_all(&line).await.is_err() {
                return;
            }
            written.extend(out.delivery);
            if queue.is_empty() {
                if output.flush().await.is_err() {
                    return;
                }
                written.drain(..).for_each(Delivery::confirm);
            }
        }
    });
    (sender, task)
}
