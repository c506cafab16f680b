//! A visit: one tool call, from the moment it is in the book until it is answered or given up.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::answer::{Answer, ToolResult};
use super::book::{self, Note, RequestId};
use super::clerk::Clerk;
use super::fault::Plan;
use super::job::Job;
use super::problem::Problem;
use super::progress::Progress;
use super::tool::Tool;

/// One tool call that is in the book.
///
/// Dropping a visit that was not finished means that the agent gave it up, and the book says so.
#[derive(Debug)]
pub(crate) struct Visit {
    clerk: Arc<Clerk>,
    request: RequestId,
    tool: Tool,
    job: Result<Job, Problem>,
    plan: Plan,
    open: bool,
}

impl Visit {
    /// Writes the call into the book and learns from the script how it will go.
    ///
    /// Wrong arguments do not use up a fault: the script counts only calls that could have worked.
    pub(crate) fn begin(clerk: &Arc<Clerk>, tool: Tool, arguments: &Map<String, Value>) -> Result<Visit, book::Error> {
        let job = Job::parse(tool, arguments);
        let (fault, note) = match &job {
            Ok(_) => (clerk.script.fault_for(tool, arguments), Note::Nothing),
            Err(_) => (None, Note::InvalidArguments),
        };
        let words = Value::Object(arguments.clone()).to_string();
        let (request, plan) = clerk.book.arrive(tool.name(), &words, fault, note)?;
        Ok(Visit { clerk: Arc::clone(clerk), request, tool, job, plan, open: true })
    }

    /// Does what was asked, or fails on cue.
    pub(crate) async fn serve(&self, progress: Option<Progress>) -> Answer {
        match &self.job {
            Ok(job) => self.clerk.serve(self.tool, job, self.plan, progress).await,
            Err(problem) => Answer::Result(ToolResult::problem(problem)),
        }
    }

    /// Ends the visit without a cancellation.
    pub(crate) fn finish(mut self) {
        self.open = false;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if self.open
            && let Err(cause) = self.clerk.book.note(self.request, Note::Cancelled)
        {
            eprintln!("shop: a cancellation could not be noted: {cause}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::book::Book;
    use super::super::fault::Kind;
    use super::super::script::Script;
    use super::*;

    struct Shop {
        clerk: Arc<Clerk>,
        _folder: tempfile::TempDir,
    }

    impl Shop {
        fn new(faults: &[&str]) -> Shop {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let book = Book::open(&folder.path().join("shop.db")).expect("the book opens");
            let mut script = Script::default();
            for fault in faults {
                script.add_flag(fault).expect("the flag is sound");
            }
            let clerk = Clerk::new(book, script, Duration::from_millis(1));
            Shop { clerk: Arc::new(clerk), _folder: folder }
        }

        async fn call(&self, tool: Tool, arguments: Value) -> Value {
            let arguments = arguments.as_object().expect("an object literal");
            let visit = Visit::begin(&self.clerk, tool, arguments).expect("the book is writable");
            let answer = visit.serve(None).await;
            visit.finish();
            match answer {
                Answer::Result(result) => json!(result),
                Answer::Fault(problem) => json!(ToolResult::problem(&problem)),
                Answer::Silence => json!("silence"),
                Answer::Garbage => json!("garbage"),
                Answer::Broken(cause) => panic!("{cause}"),
            }
        }

        fn count(&self, question: &str) -> i64 {
            let connection = self.clerk.book.connection();
            connection.query_row(question, [], |row| row.get(0)).expect("the question is sound")
        }

        fn effects(&self) -> i64 {
            self.count("SELECT count(*) FROM effects")
        }
    }

    #[tokio::test]
    async fn every_kind_of_fault_leaves_the_effects_it_promises() {
        let effects = |kind: Kind| match kind {
            Kind::Ok
            | Kind::LoseResponse
            | Kind::Late
            | Kind::LateEffect
            | Kind::ErrorAfterEffect
            | Kind::Malformed
            | Kind::Garbage => Some(1),
            Kind::LoseRequest
            | Kind::ConflictInFlight
            | Kind::ConflictDone
            | Kind::Precondition
            | Kind::Forbidden
            | Kind::Unprocessable
            | Kind::RateLimited
            | Kind::Status500
            | Kind::Status503
            | Kind::PlainError => Some(0),
            Kind::CrashBefore | Kind::CrashAfter => None,
        };
        for kind in Kind::ALL {
            let Some(effects) = effects(kind) else {
                continue;
            };
            let shop = Shop::new(&[&format!("charge_card={}", kind.name())]);
            shop.call(Tool::ChargeCard, json!({"order": "ord_1", "amount": 5})).await;
            assert_eq!(shop.effects(), effects, "{}", kind.name());
        }
    }

    #[tokio::test]
    async fn a_lost_refund_is_found_by_its_key_and_not_issued_again() {
        let shop = Shop::new(&["issue_refund=lose_response"]);
        let refund = json!({"order": "ord_1", "amount": 5, "idempotency_key": "k"});
        assert_eq!(shop.call(Tool::IssueRefund, refund.clone()).await, "silence");
        let found = shop.call(Tool::GetRefund, json!({"key": "k"})).await;
        assert_eq!(found["structuredContent"]["found"], true);
        let again = shop.call(Tool::IssueRefund, refund).await;
        assert_eq!(again["structuredContent"]["id"], found["structuredContent"]["id"]);
        let other = json!({"order": "ord_1", "amount": 6, "idempotency_key": "k"});
        let reused = shop.call(Tool::IssueRefund, other).await;
        assert_eq!(reused["structuredContent"]["code"], "idempotency_key_reused");
        assert_eq!(shop.effects(), 1);
    }

    #[tokio::test]
    async fn problems_carry_a_status_a_code_and_the_time_to_wait() {
        let shop = Shop::new(&["get_order=status_503"]);
        let down = shop.call(Tool::GetOrder, json!({"order": "ord_1"})).await;
        assert_eq!(down["isError"], true);
        assert_eq!(down["structuredContent"]["status"], 503);
        assert_eq!(down["structuredContent"]["retry_after"], 1);
        let missing = shop.call(Tool::GetOrder, json!({"order": "x"})).await;
        assert_eq!(missing["structuredContent"]["code"], "not_found");
        let found = shop.call(Tool::GetOrder, json!({"order": "ord_1"})).await;
        assert_eq!(found["structuredContent"]["state"], "paid");
    }

    #[tokio::test]
    async fn a_malformed_result_breaks_the_promise_its_tool_made() {
        let shop = Shop::new(&["charge_card=malformed", "send_email=malformed"]);
        let charge = json!({"order": "ord_1", "amount": 5});
        let charge = shop.call(Tool::ChargeCard, charge).await;
        assert_eq!(charge["structuredContent"], json!({"id": 7}));
        let email = shop.call(Tool::SendEmail, json!({"to": "a", "subject": "b"}));
        assert!(email.await["content"].is_string());
    }

    #[tokio::test]
    async fn wrong_arguments_do_not_use_up_a_fault() {
        let shop = Shop::new(&["charge_card=status_500"]);
        let wrong = shop.call(Tool::ChargeCard, json!({"order": "ord_1"})).await;
        assert_eq!(wrong["structuredContent"]["status"], 422);
        let right = json!({"order": "ord_1", "amount": 5});
        let failed = shop.call(Tool::ChargeCard, right).await;
        assert_eq!(failed["structuredContent"]["status"], 500);
    }

    #[tokio::test]
    async fn a_visit_that_is_dropped_is_noted_as_cancelled() {
        let shop = Shop::new(&[]);
        let visit = Visit::begin(&shop.clerk, Tool::SlowReport, &Map::new());
        drop(visit.expect("the book is writable"));
        let cancelled = "SELECT count(*) FROM requests WHERE note = 'cancelled'";
        assert_eq!(shop.count(cancelled), 1);
    }
}
