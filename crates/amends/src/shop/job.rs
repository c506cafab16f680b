//! A job: a tool call whose arguments are known to make sense.

use serde_json::{Map, Number, Value};

use super::problem::Problem;
use super::tool::Tool;

pub(crate) const STEPS_MAX: u64 = 5000;
pub(crate) const STEP_MS_MAX: u64 = 60_000;

/// What an agent asks of the shop, with every argument checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Job {
    GetOrder { order: String },
    IssueRefund { order: String, amount: Number, key: Option<String> },
    GetRefund(RefundQuery),
    CancelRefund { id: String },
    ChargeCard { order: String, amount: Number, card: Option<String> },
    SendEmail { to: String, subject: String, body: Option<String> },
    SlowReport { steps: u64, step_ms: u64 },
}

/// What a refund is looked up by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RefundQuery {
    Key(String),
    Order(String),
}

impl Job {
    /// Checks the arguments of a call; the problem names the field that is wrong.
    pub(crate) fn parse(tool: Tool, arguments: &Map<String, Value>) -> Result<Job, Problem> {
        let fields = Fields(arguments);
        match tool {
            Tool::GetOrder => {
                fields.only(&["order"])?;
                Ok(Job::GetOrder { order: fields.text("order")? })
            }
            Tool::IssueRefund => {
                fields.only(&["order", "amount", "idempotency_key"])?;
                Ok(Job::IssueRefund {
                    order: fields.text("order")?,
                    amount: fields.amount("amount")?,
                    key: fields.optional_text("idempotency_key")?,
                })
            }
            Tool::GetRefund => {
                fields.only(&["order", "key"])?;
                let order = fields.optional_text("order")?;
                let query = match (fields.optional_text("key")?, order) {
                    (Some(key), _) => RefundQuery::Key(key),
                    (None, Some(order)) => RefundQuery::Order(order),
                    (None, None) => {
                        return Err(Problem::invalid_argument("order", "or `key` is required"));
                    }
                };
                Ok(Job::GetRefund(query))
            }
            Tool::CancelRefund => {
                fields.only(&["id"])?;
                Ok(Job::CancelRefund { id: fields.text("id")? })
            }
            Tool::ChargeCard => {
                fields.only(&["order", "amount", "card"])?;
                Ok(Job::ChargeCard {
                    order: fields.text("order")?,
                    amount: fields.amount("amount")?,
                    card: fields.optional_text("card")?,
                })
            }
            Tool::SendEmail => {
                fields.only(&["to", "subject", "body"])?;
                Ok(Job::SendEmail {
                    to: fields.text("to")?,
                    subject: fields.text("subject")?,
                    body: fields.optional_text("body")?,
                })
            }
            Tool::SlowReport => {
                fields.only(&["steps", "step_ms"])?;
                Ok(Job::SlowReport {
                    steps: fields.integer("steps", 1, STEPS_MAX, 10)?,
                    step_ms: fields.integer("step_ms", 0, STEP_MS_MAX, 50)?,
                })
            }
        }
    }
}

/// The arguments of a call, read field by field.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => Err(Problem::invalid_argument(unknown, "is not an argument")),
            None => Ok(()),
        }
    }

    fn text(&self, name: &str) -> Result<String, Problem> {
        self.optional_text(name)?.ok_or_else(|| Problem::invalid_argument(name, "is required"))
    }

    fn optional_text(&self, name: &str) -> Result<Option<String>, Problem> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Err(Problem::invalid_argument(name, "is empty")),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Problem::invalid_argument(name, "is not a string")),
        }
    }

    fn amount(&self, name: &str) -> Result<Number, Problem> {
        match self.0.get(name) {
            None => Err(Problem::invalid_argument(name, "is required")),
            Some(Value::Number(amount)) if amount.as_f64().is_some_and(|amount| amount > 0.0) => Ok(amount.clone()),
            Some(Value::Number(_)) => Err(Problem::invalid_argument(name, "is not above zero")),
            Some(_) => Err(Problem::invalid_argument(name, "is not a number")),
        }
    }

    fn integer(&self, name: &str, min: u64, max: u64, default: u64) -> Result<u64, Problem> {
        let Some(given) = self.0.get(name) else {
            return Ok(default);
        };
        match whole(given) {
            Some(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(Problem::invalid_argument(name, &format!("is not an integer from {min} to {max}"))),
        }
    }
}

/// JSON Schema counts `3.0` as an integer, so the shop does too.
fn whole(given: &Value) -> Option<u64> {
    let small = |number: &f64| number.fract() == 0.0 && (0.0..=1e9).contains(number);
    given.as_u64().or_else(|| given.as_f64().filter(small).map(|number| number as u64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(tool: Tool, arguments: Value) -> Result<Job, Problem> {
        Job::parse(tool, arguments.as_object().expect("an object literal"))
    }

    #[test]
    fn wrong_arguments_are_named() {
        let wrong = [
            (Tool::GetOrder, json!({}), "order"),
            (Tool::GetOrder, json!({"order": 7}), "order"),
            (Tool::GetOrder, json!({"order": "ord_1", "x": 1}), "x"),
            (Tool::IssueRefund, json!({"order": "ord_1"}), "amount"),
            (Tool::IssueRefund, json!({"order": "ord_1", "amount": 0}), "amount"),
            (Tool::IssueRefund, json!({"order": "ord_1", "amount": "5"}), "amount"),
            (Tool::IssueRefund, json!({"order": "ord_1", "amount": 5, "idempotency_key": null}), "idempotency_key"),
            (Tool::GetRefund, json!({}), "order"),
            (Tool::CancelRefund, json!({"id": ""}), "id"),
            (Tool::SendEmail, json!({"to": "a@b"}), "subject"),
            (Tool::SlowReport, json!({"steps": 0}), "steps"),
            (Tool::SlowReport, json!({"steps": 1.5}), "steps"),
            (Tool::SlowReport, json!({"step_ms": 60001}), "step_ms"),
        ];
        for (tool, arguments, field) in wrong {
            let problem = parse(tool, arguments.clone()).expect_err("the arguments are wrong");
            assert_eq!((problem.status, problem.code), (422, "invalid_argument"), "{arguments}");
            assert!(problem.detail.contains(&format!("`{field}`")), "{problem:?}");
        }
    }

    #[test]
    fn absent_numbers_have_defaults_and_a_key_outranks_an_order() {
        assert_eq!(parse(Tool::SlowReport, json!({"steps": 3.0})), Ok(Job::SlowReport { steps: 3, step_ms: 50 }));
        assert_eq!(
            parse(Tool::GetRefund, json!({"order": "ord_1", "key": "k"})),
            Ok(Job::GetRefund(RefundQuery::Key("k".to_owned())))
        );
    }
}
