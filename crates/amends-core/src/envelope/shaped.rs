//! The envelope of an answer, by what it looks like: whole, empty, cut, stale.

use super::{Body, Data, DegradationReason, Envelope, Partial, Trouble};
use crate::attempt::{ItemFailure, Shape};
use crate::certainty::Certainty;
use crate::contract::{Contract, EffectKind};
use crate::limits::FOLLOW_UPS_MAX;
use crate::outcome::Outcome;
use crate::registry::WhoMustAct;
use crate::verdict::Verdict;

impl Envelope {
    /// The envelope of a call of that tool that was done, with the data it gave, by what that looks like.
    pub fn shaped(tool: &str, contract: &Contract, outcome: Outcome, data: Data, shape: Option<&Shape>) -> Self {
        let mut envelope = Self::of(body(tool, contract, outcome, data, shape));
        if let Some(shape) = shape {
            envelope.confidence_permille = shape.confidence_permille.map(|permille| permille.min(1000));
            envelope.provenance.clone_from(&shape.provenance);
        }
        envelope.follow_up_hints = contract.answer.follow_up.iter().take(FOLLOW_UPS_MAX).cloned().collect();
        envelope
    }
}

fn body(tool: &str, contract: &Contract, outcome: Outcome, data: Data, shape: Option<&Shape>) -> Body {
    let Some(shape) = shape else { return Body::Success { outcome, data } };
    let errors = shape.errors.iter().map(|failed| item(tool, contract, failed)).collect();
    if let Some(partial) = Partial::new(outcome, data.clone(), errors, shape.errors_left_out, shape.truncated) {
        return Body::Partial(Box::new(partial));
    }
    if shape.rows == Some(0) {
        return Body::Empty { outcome, data: Some(data) };
    }
    if shape.stale {
        return Body::Degraded { outcome, data: Some(data), reason: DegradationReason::StaleAnswer };
    }
    if !shape.masked.is_empty() {
        return Body::Degraded { outcome, data: Some(data), reason: DegradationReason::Masked };
    }
    Body::Success { outcome, data }
}

/// The error of one item. The call itself was done, so repeating all of it for the item's sake is safe only where that does
/// no harm.
fn item(tool: &str, contract: &Contract, failed: &ItemFailure) -> Trouble {
    let code = failed.failure.code;
    let safe = matches!(contract.effect, EffectKind::Read | EffectKind::Idempotent);
    let certainty = match code.implies() {
        _ if contract.effect.is_read() => Certainty::NotProcessed,
        // The call was sent, and the item with it.
        Some(Certainty::NotSent) => Certainty::NotProcessed,
        Some(proven) => proven,
        None => Certainty::InDoubt,
    };
    let what = code.means_upstream().trim_end_matches('.');
    Trouble {
        kind: code.kind(),
        code,
        verdict: Some(Verdict::judge(code, certainty, contract.effect)),
        requested: tool.to_owned(),
        message: format!("item `{}`: {}{}", failed.item, what[..1].to_lowercase(), &what[1..]),
        certainty,
        retryable: code.retryable() && safe,
        safe_to_repeat: safe,
        who_must_act: if certainty == Certainty::InDoubt { WhoMustAct::Agent } else { code.who_must_act() },
        retry_after_ms: failed.failure.retry_after_ms,
        details: Vec::new(),
        recovery: None,
        upstream: Trouble::quote(&failed.failure),
        upstream_result: None,
        item: Some(failed.item.clone()),
        changed: Vec::new(),
        interaction: None,
        timeout_ms: None,
        advice: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Status;
    use crate::failure::Failure;
    use crate::registry::Code;
    use serde_json::{Value, json};

    fn json_of(shape: &Shape) -> Value {
        let mut contract = Contract { effect: EffectKind::Read, ..Contract::undeclared(0, 0, 0) };
        contract.answer.follow_up = vec!["next_page".into()];
        let data = Data::Value(json!({"rows": []}));
        let envelope = Envelope::shaped("search", &contract, Outcome::Succeeded, data, Some(shape));
        serde_json::from_str(envelope.to_json(None).get()).unwrap()
    }

    #[test]
    fn each_shape_has_its_status_and_keeps_its_outcome_and_data() {
        let failed = || ItemFailure { item: "7".into(), failure: Failure::of(Code::NotFound) };
        for (shape, status) in [
            (Shape::default(), "success"),
            (Shape { rows: Some(3), ..Shape::default() }, "success"),
            (Shape { rows: Some(0), ..Shape::default() }, "empty"),
            (Shape { stale: true, ..Shape::default() }, "degraded"),
            (Shape { rows: Some(0), truncated: true, ..Shape::default() }, "partial"),
            (Shape { stale: true, errors: vec![failed()], ..Shape::default() }, "partial"),
        ] {
            let json = json_of(&shape);
            assert_eq!(json["status"], status);
            assert_eq!((&json["outcome"], &json["data"]), (&json!("succeeded"), &json!({"rows": []})));
            assert_eq!(json["follow_up_hints"], json!(["next_page"]));
            assert_eq!(json.get("errors").is_some(), status == "partial");
            assert_eq!(json.get("degradation_reason").is_some(), status == "degraded");
            assert_eq!(json.get("truncated").is_some(), shape.truncated);
            assert!(json.get("error").is_none());
        }
    }

    #[test]
    fn a_failed_item_is_a_typed_error_with_its_name() {
        let failure = Failure { status: Some(404), ..Failure::of(Code::NotFound) };
        let shape = Shape {
            errors: vec![ItemFailure { item: "ord_7".into(), failure }],
            errors_left_out: 2,
            ..Shape::default()
        };
        let json = json_of(&shape);
        let error = &json["errors"][0];
        assert_eq!(
            (&error["item"], &error["code"], &error["kind"]),
            (&json!("ord_7"), &json!("NotFound"), &json!("not_found"))
        );
        assert_eq!(error["message"], "item `ord_7`: what the call names does not exist");
        assert_eq!(json["errors_left_out"], 2);
    }

    #[test]
    fn a_failed_item_of_a_write_invites_no_repeat() {
        let contract = Contract::undeclared(0, 0, 0);
        let failed = ItemFailure { item: "1".into(), failure: Failure::of(Code::RateLimited) };
        let error = item("send", &contract, &failed);
        assert!(!error.safe_to_repeat && !error.retryable);
        assert_eq!(error.certainty, Certainty::InDoubt);
    }

    #[test]
    fn what_the_tool_says_of_itself_is_passed_on() {
        let shape = Shape { confidence_permille: Some(875), ..Shape::default() };
        assert_eq!(json_of(&shape)["confidence"], json!(0.875));
    }

    #[test]
    fn a_partial_without_a_missing_part_cannot_be_built() {
        let data = || Data::Value(Value::Null);
        assert!(Partial::new(Outcome::Succeeded, data(), Vec::new(), 0, false).is_none());
        let cut = Partial::new(Outcome::Succeeded, data(), Vec::new(), 0, true).unwrap();
        let envelope = Envelope::of(Body::Partial(Box::new(cut)));
        let json: Value = serde_json::from_str(envelope.to_json(None).get()).unwrap();
        assert_eq!((envelope.status(), &json["errors"]), (Status::Partial, &json!([])));
    }
}
