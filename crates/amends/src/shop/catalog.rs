//! The catalog: the tools as `tools/list` describes them.

use serde_json::{Value, json};

use super::job::{STEP_MS_MAX, STEPS_MAX};
use super::tool::Tool;

/// Every tool with its schemas and its annotations.
pub(crate) fn tools() -> Value {
    Tool::ALL.into_iter().map(describe).collect()
}

fn describe(tool: Tool) -> Value {
    let order = || json!({ "type": "string", "minLength": 1, "description": "The order's id, such as `ord_1001`." });
    let amount =
        || json!({ "type": "number", "exclusiveMinimum": 0, "description": "How much, in the order's currency." });
    let mut entry = match tool {
        Tool::GetOrder => json!({
            "title": "Look up an order",
            "description": "Reads one order: what was bought, for how much, and its state. Changes nothing.",
            "inputSchema": input(json!({ "order": order() }), &["order"]),
            "annotations": reads(),
        }),
        Tool::IssueRefund => json!({
            "title": "Refund an order",
            "description": "Pays money back for an order. With an `idempotency_key`, a repeated request returns the first \
                refund and pays nothing more; without one, every request pays again. `cancel_refund` takes it back.",
            "inputSchema": input(
                json!({
                    "order": order(),
                    "amount": amount(),
                    "idempotency_key": {
                        "type": "string",
                        "minLength": 1,
                        "description": "A name for this refund; requests with the same name are one refund.",
                    },
                }),
                &["order", "amount"],
            ),
            "outputSchema": money_moved("re_000001"),
            "annotations": writes(false, false),
        }),
        Tool::GetRefund => json!({
            "title": "Find a refund",
            "description": "Says whether a refund exists, by its idempotency key or else by its order; the newest if there \
                are several. Changes nothing.",
            "inputSchema": input(
                json!({
                    "order": order(),
                    "key": { "type": "string", "minLength": 1, "description": "The key the refund was issued with." },
                }),
                &[],
            ),
            "annotations": reads(),
        }),
        Tool::CancelRefund => json!({
            "title": "Cancel a refund",
            "description": "Takes back a refund by its id. Cancelling it again changes nothing more.",
            "inputSchema": input(
                json!({ "id": { "type": "string", "minLength": 1, "description": "The refund's id, such as `re_000001`." } }),
                &["id"],
            ),
            "annotations": writes(true, true),
        }),
        Tool::ChargeCard => json!({
            "title": "Charge a card",
            "description": "Takes money from a card for an order. Every request is a new charge; there is no key to repeat \
                one safely.",
            "inputSchema": input(
                json!({
                    "order": order(),
                    "amount": amount(),
                    "card": { "type": "string", "minLength": 1, "description": "Which card; the one on file if absent." },
                }),
                &["order", "amount"],
            ),
            "outputSchema": money_moved("ch_000001"),
            "annotations": writes(true, false),
        }),
        Tool::SendEmail => json!({
            "title": "Send an email",
            "description": "Sends one email to a customer. It cannot be taken back, and every request sends another.",
            "inputSchema": input(
                json!({
                    "to": { "type": "string", "minLength": 1, "description": "The address." },
                    "subject": { "type": "string", "minLength": 1, "description": "The subject line." },
                    "body": { "type": "string", "minLength": 1, "description": "The text; none if absent." },
                }),
                &["to", "subject"],
            ),
            "annotations": writes(true, false),
        }),
        Tool::SlowReport => json!({
            "title": "Make a slow report",
            "description": "Counts to `steps`, waiting `step_ms` before each, and reports progress at every step. Changes \
                nothing.",
            "inputSchema": input(
                json!({
                    "steps": { "type": "integer", "minimum": 1, "maximum": STEPS_MAX, "default": 10 },
                    "step_ms": { "type": "integer", "minimum": 0, "maximum": STEP_MS_MAX, "default": 50 },
                }),
                &[],
            ),
            "annotations": reads(),
        }),
    };
    entry["name"] = Value::from(tool.name());
    entry
}

fn input(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The shape of a refund's or a charge's result.
fn money_moved(example: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "examples": [example] },
            "order": { "type": "string" },
            "amount": { "type": "number" },
        },
        "required": ["id", "order", "amount"],
    })
}

fn reads() -> Value {
    json!({ "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false })
}

/// `destructive` where something the customer had is taken or cannot be taken back.
fn writes(destructive: bool, idempotent: bool) -> Value {
    json!({
        "readOnlyHint": false,
        "destructiveHint": destructive,
        "idempotentHint": idempotent,
        "openWorldHint": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tools_that_promise_a_shape_have_an_output_schema() {
        for tool in Tool::ALL {
            let entry = describe(tool);
            assert_eq!(entry["name"], tool.name());
            assert_eq!(entry.get("outputSchema").is_some(), tool.promises_shape(), "{}", tool.name());
            assert_eq!(entry["inputSchema"]["additionalProperties"], false);
        }
    }
}
