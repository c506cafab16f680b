//! The clerk: does what a job asks, or fails at it in the way the script says.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::answer::{Answer, ToolResult};
use super::book::{self, Book, Effect, Keyed};
use super::fault::{Kind, Plan};
use super::job::Job;
use super::problem::Problem;
use super::progress::Progress;
use super::script::Script;
use super::tool::Tool;

/// The exit code of a crash on cue.
const CRASH_CODE: i32 = 70;

/// What a job gives: a value for the agent, or a problem with what was asked.
type Done = Result<Value, Problem>;

/// The one who works in the shop.
#[derive(Debug)]
pub(crate) struct Clerk {
    pub(crate) book: Book,
    pub(crate) script: Script,
    late: Duration,
}

impl Clerk {
    pub(crate) fn new(book: Book, script: Script, late: Duration) -> Clerk {
        Clerk { book, script, late }
    }

    /// Serves a checked job the way `plan` says.
    pub(crate) async fn serve(
        self: &Arc<Self>,
        tool: Tool,
        job: &Job,
        plan: Plan,
        progress: Option<Progress>,
    ) -> Answer {
        let served = self.follow(tool, job, plan, progress).await;
        served.unwrap_or_else(|cause| Answer::Broken(format!("the book failed: {cause}")))
    }

    async fn follow(
        self: &Arc<Self>,
        tool: Tool,
        job: &Job,
        plan: Plan,
        progress: Option<Progress>,
    ) -> Result<Answer, book::Error> {
        let late = plan.late.unwrap_or(self.late);
        match plan.kind {
            Kind::Ok => Ok(told(tool, self.perform(job, progress).await?)),
            Kind::LoseResponse => {
                self.perform(job, progress).await?.ok();
                Ok(Answer::Silence)
            }
            Kind::LoseRequest => Ok(Answer::Silence),
            Kind::Late => {
                let done = self.perform(job, progress).await?;
                tokio::time::sleep(late).await;
                Ok(told(tool, done))
            }
            Kind::LateEffect => {
                self.perform_later(job.clone(), late, progress).await;
                Ok(Answer::Silence)
            }
            Kind::ConflictInFlight
            | Kind::ConflictDone
            | Kind::Precondition
            | Kind::Forbidden
            | Kind::Unprocessable
            | Kind::RateLimited
            | Kind::Status500
            | Kind::Status503 => Ok(refused(plan)),
            Kind::ErrorAfterEffect => {
                self.perform(job, progress).await?.ok();
                Ok(refused(plan))
            }
            Kind::Malformed => {
                self.perform(job, progress).await?.ok();
                Ok(Answer::Result(if tool.promises_shape() { ToolResult::misshapen() } else { ToolResult::unlisted() }))
            }
            Kind::PlainError => Ok(Answer::Result(ToolResult::plain_error())),
            Kind::Garbage => {
                self.perform(job, progress).await?.ok();
                Ok(Answer::Garbage)
            }
            Kind::CrashBefore => std::process::exit(CRASH_CODE),
            Kind::CrashAfter => {
                self.perform(job, progress).await?.ok();
                std::process::exit(CRASH_CODE)
            }
        }
    }

    /// Performs the job in a task of its own, because an agent that gives up does not stop a late effect:
    /// the request stands for one that is already on its way to another system.
    async fn perform_later(self: &Arc<Self>, job: Job, late: Duration, progress: Option<Progress>) {
        let clerk = Arc::clone(self);
        let task = tokio::spawn(async move {
            tokio::time::sleep(late).await;
            if let Err(cause) = clerk.perform(&job, progress).await {
                eprintln!("shop: a late effect did not happen: {cause}");
            }
        });
        task.await.ok();
    }

    /// Does the job, without any fault. Once a write has begun, nothing cancels it half way.
    async fn perform(&self, job: &Job, progress: Option<Progress>) -> Result<Done, book::Error> {
        match job {
            Job::GetOrder { order } => Ok(look_up(order)),
            Job::IssueRefund { order, amount, key } => {
                let keyed = self.book.issue_refund(order, amount, key.as_deref())?;
                Ok(match keyed {
                    Keyed::Done(refund) => Ok(refund),
                    Keyed::Reused => Err(Problem::new(
                        422,
                        "idempotency_key_reused",
                        "this key belongs to a request with other arguments",
                    )),
                })
            }
            Job::GetRefund(query) => {
                let Some(refund) = self.book.refund(query)? else {
                    return Ok(Ok(json!({ "found": false })));
                };
                let mut found = refund.body;
                found["found"] = Value::from(true);
                if refund.cancelled {
                    found["cancelled"] = Value::from(true);
                }
                Ok(Ok(found))
            }
            Job::CancelRefund { id } => Ok(if self.book.cancel_refund(id)? {
                Ok(json!({ "id": id, "cancelled": true }))
            } else {
                Err(Problem::not_found(format!("there is no refund `{id}`")))
            }),
            Job::ChargeCard { order, amount, card } => {
                let effect = Effect { tool: Tool::ChargeCard, order: Some(order), key: None, prefix: "ch" };
                let mut body = json!({ "order": order, "amount": amount });
                if let Some(card) = card {
                    body["card"] = Value::from(card.as_str());
                }
                let charge = self.book.add(effect, body)?;
                Ok(Ok(json!({ "id": charge["id"], "order": order, "amount": amount })))
            }
            Job::SendEmail { to, subject, body } => {
                let effect = Effect { tool: Tool::SendEmail, order: None, key: None, prefix: "em" };
                let letter = json!({ "to": to, "subject": subject, "body": body });
                let sent = self.book.add(effect, letter)?;
                Ok(Ok(json!({ "id": sent["id"] })))
            }
            Job::SlowReport { steps, step_ms } => {
                for step in 1..=*steps {
                    if *step_ms > 0 {
                        tokio::time::sleep(Duration::from_millis(*step_ms)).await;
                    }
                    if let Some(progress) = &progress {
                        progress.report(step, *steps).await;
                    }
                }
                Ok(Ok(json!({ "steps": steps })))
            }
        }
    }
}

/// The answer that tells the agent how its job ended.
fn told(tool: Tool, done: Done) -> Answer {
    Answer::Result(match done {
        Ok(value) if tool == Tool::GetOrder => ToolResult::success(value).on_a_shelf(),
        Ok(value) => ToolResult::success(value),
        Err(problem) => ToolResult::problem(&problem),
    })
}

fn refused(plan: Plan) -> Answer {
    let problem = plan.problem();
    Answer::Fault(problem.expect("every kind that is refused has a problem"))
}

/// Every order whose id begins with `ord_` exists, and is always the same.
fn look_up(order: &str) -> Done {
    const ITEMS: [&str; 4] = ["lamp", "kettle", "desk", "umbrella"];
    if order.strip_prefix("ord_").is_none_or(str::is_empty) {
        return Err(Problem::not_found(format!("there is no order `{order}`")));
    }
    let sum: usize = order.bytes().map(usize::from).sum();
    Ok(json!({
        "order": order,
        "item": ITEMS[sum % ITEMS.len()],
        "amount": 20 + sum % 80,
        "state": "paid",
    }))
}
