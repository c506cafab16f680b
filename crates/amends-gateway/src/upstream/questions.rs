//! The questions of an upstream that wait for an answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amends_core::failure::bounded;
use amends_wire::object::Object;
use tokio::sync::oneshot;

use super::exchange::Said;

/// The notification by which an upstream takes a question back.
pub(super) const CANCELLED: &str = "notifications/cancelled";

/// The questions of an upstream that wait for an answer, by their ids as it wrote them.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: Mutex<HashMap<String, Open>>,
}

/// A question that waits. Dropped, it is not waited for any more.
#[derive(Debug)]
struct Open {
    withdraw: oneshot::Sender<Option<String>>,
    _waited_for: oneshot::Sender<()>,
}

impl Questions {
    /// A question of that id waits. What it is told is handed to `answered`, unless it is taken back first; that is told by what
    /// this gives beside the way for the answer.
    pub(super) fn wait<F>(
        self: &Arc<Self>,
        id: &str,
        answered: impl FnOnce(Said) -> F + Send + 'static,
    ) -> (oneshot::Sender<Said>, oneshot::Receiver<Option<String>>)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (answer, said) = oneshot::channel();
        let (withdraw, withdrawn) = oneshot::channel();
        let (waited_for, over) = oneshot::channel();
        self.open().insert(id.to_owned(), Open { withdraw, _waited_for: waited_for });
        let (questions, id) = (self.clone(), id.to_owned());
        tokio::spawn(async move {
            tokio::select! {
                said = said => {
                    questions.open().remove(&id);
                    if let Ok(said) = said {
                        answered(said).await;
                    }
                }
                _ = over => {}
            }
        });
        (answer, withdrawn)
    }

    /// The upstream takes something back; `false` where that is no question that waits.
    pub(super) fn take_back(&self, params: Option<&str>) -> bool {
        let params = params.and_then(Object::parse);
        let Some(id) = params.as_ref().and_then(|params| params.get("requestId")) else { return false };
        let Some(open) = self.open().remove(id.get()) else { return false };
        // Whoever was asked may not have begun to listen, and then finds that nobody waits.
        let _ = open.withdraw.send(params.and_then(|params| Some(bounded(&params.string("reason")?))));
        true
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn a_question_is_answered_or_taken_back_once() {
        let questions = Arc::new(Questions::default());
        let (told, mut tells) = tokio::sync::mpsc::unbounded_channel();
        let wait = |id: &'static str| {
            let told = told.clone();
            questions.wait(id, move |said| async move { told.send((id, said.answer.unwrap())).unwrap() })
        };
        let (answer, withdrawn) = wait("7");
        answer.send(Said { answer: Ok("{}".into()), send_by: Instant::now() }).unwrap();
        assert_eq!(tells.recv().await, Some(("7", "{}".to_owned())));
        assert!(!questions.take_back(Some(r#"{"requestId":7}"#)) && withdrawn.await.is_err());
        let (mut answer, withdrawn) = wait("\"a\"");
        for odd in [None, Some("[]"), Some("{}"), Some(r#"{"requestId":"b"}"#), Some(r#"{"requestId":7}"#)] {
            assert!(!questions.take_back(odd), "{odd:?}");
        }
        assert!(questions.take_back(Some(r#"{"requestId":"a","reason":"x"}"#)));
        assert_eq!(withdrawn.await, Ok(Some("x".to_owned())));
        answer.closed().await;
        assert!(!questions.take_back(Some(r#"{"requestId":"a"}"#)) && questions.open().is_empty());
    }
}
