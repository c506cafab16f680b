//! What policies say of calls.

use serde_json::json;

use super::*;
use crate::config::ConfigError;

fn policies(text: &str) -> Result<Policies, ConfigError> {
    let groups = BTreeMap::from([(Principal::from("ada"), vec!["finance".to_owned()])]);
    Policies::read(vec![PolicyText::of("test.cedar", text.to_owned())], groups)
}

fn refund() -> Shape {
    Shape::of_schema(&json!({
        "type": "object",
        "properties": { "order": { "type": "string" }, "amount": { "type": "number" } },
        "required": ["order", "amount"],
    }))
}

fn decided(text: &str, principal: &str, arguments: &Value) -> Decided {
    let (principal, shape) = (Principal::from(principal), refund());
    let tool = ToolFacts {
        name: "shop__issue_refund",
        upstream: "shop",
        effect: EffectKind::Keyed,
        reversible: true,
        declared: true,
        shape: &shape,
    };
    let origin = Origin { session: "ses_1", door: "mcp", step: None };
    let now = Timestamp::from_ms(1_772_357_405_250);
    policies(text).unwrap().decide(&Asked {
        principal: &principal,
        tenant: Some("acme"),
        tool,
        arguments,
        origin,
        scopes: &BTreeSet::new(),
        now,
    })
}

#[test]
fn a_policy_sees_what_the_token_is_good_for() {
    let (principal, shape) = (Principal::from("ada"), refund());
    let tool = ToolFacts {
        name: "shop__issue_refund",
        upstream: "shop",
        effect: EffectKind::Keyed,
        reversible: true,
        declared: true,
        shape: &shape,
    };
    let text = r#"permit (principal, action, resource) when { context.scopes.contains("refunds:write") };"#;
    let arguments = json!({ "order": "ord_1", "amount": 5 });
    let (origin, now) = (Origin::default(), Timestamp::from_ms(0));
    for (scope, denied) in [("refunds:write", false), ("refunds:read", true)] {
        let scopes = BTreeSet::from([scope.to_owned()]);
        let arguments = &arguments;
        let asked = Asked { principal: &principal, tenant: None, tool, arguments, origin, scopes: &scopes, now };
        assert_eq!(is_denied(&policies(text).unwrap().decide(&asked)), denied, "{scope}");
    }
}

fn is_denied(decided: &Decided) -> bool {
    matches!(decided, Decided::Denied(_))
}

#[test]
fn what_no_policy_permits_is_denied() {
    let arguments = json!({ "order": "o", "amount": 1 });
    let Decided::Denied(ruling) = decided("", "ada", &arguments) else { panic!("it is permitted") };
    assert_eq!(*ruling, Ruling::default());
    let reads = r#"permit (principal, action in Action::"read", resource);"#;
    assert!(is_denied(&decided(reads, "ada", &arguments)));
    let writes = r#"permit (principal, action in Action::"write", resource);"#;
    assert_eq!(decided(writes, "ada", &arguments), Decided::Permitted { by: vec!["test.cedar#1".to_owned()] });
}

#[test]
fn who_and_what_and_when_can_be_told() {
    let arguments = json!({ "order": "o", "amount": 12.5 });
    for condition in [
        r#"principal in Group::"finance""#,
        r#"principal in Tenant::"acme""#,
        r#"principal == Principal::"ada""#,
        r#"principal.groups.contains("finance")"#,
        r#"resource in Upstream::"shop""#,
        r#"resource == Tool::"shop__issue_refund""#,
        r#"resource.effect == "keyed" && resource.reversible && resource.declared"#,
        r#"action == Action::"shop__issue_refund""#,
        r#"context.args.amount.lessThan(decimal("12.51"))"#,
        r#"context.args.order like "o*""#,
        r#"context.weekday == "sunday" && context.hour == 9"#,
        r#"context.now > datetime("2026-01-01") && context.now < datetime("2027-01-01")"#,
        r#"context.door == "mcp" && context.session == "ses_1""#,
        "!(context has step)",
    ] {
        let text = format!("permit (principal, action, resource) when {{ {condition} }};");
        assert!(matches!(decided(&text, "ada", &arguments), Decided::Permitted { .. }), "{condition}");
    }
}

#[test]
fn what_is_forbidden_is_denied_whatever_permits_it_and_says_why() {
    let text = r#"
        permit (principal, action, resource);
        @id("no-large-refunds")
        @reason("refunds above 100 go through the office")
        forbid (principal, action == Action::"shop__issue_refund", resource)
        when { context.args.amount.greaterThan(decimal("100.0")) };
    "#;
    assert!(!is_denied(&decided(text, "ada", &json!({ "order": "o", "amount": 100 }))));
    let Decided::Denied(ruling) = decided(text, "ada", &json!({ "order": "o", "amount": 100.00001 })) else {
        panic!("it is permitted")
    };
    assert_eq!(ruling.policies, ["no-large-refunds"]);
    assert_eq!(ruling.reasons, ["refunds above 100 go through the office"]);
    assert!(is_denied(&decided(text, "ada", &json!({ "order": "o", "amount": 1e300 }))));
}

#[test]
fn what_cannot_be_evaluated_is_denied_even_where_another_policy_permits_it() {
    let text = r#"
        permit (principal, action, resource);
        @id("typo") forbid (principal, action, resource) when { context.args.amuont > 3 };
    "#;
    let Decided::Denied(ruling) = decided(text, "ada", &json!({ "order": "o", "amount": 1 })) else {
        panic!("it is permitted")
    };
    assert_eq!(ruling.policies, ["typo"]);
    assert!(ruling.reasons[0].contains("amuont"), "{ruling:?}");
}

#[test]
fn of_several_approvals_the_strictest_counts_and_a_plain_permit_removes_none() {
    let arguments = json!({ "order": "o", "amount": 1 });
    let plain = "permit (principal, action, resource);";
    let one = r#"@id("one") @approval("office") @requester("may") permit (principal, action, resource);"#;
    let two = r#"@id("two") @approval("finance") @persons("2") permit (principal, action, resource);"#;
    let approval = |text: &str| match decided(text, "ada", &arguments) {
        Decided::Approval(approval) => *approval,
        other => panic!("{other:?}"),
    };
    let of = |queue: &str, persons, policy: &str, requester_may| Approval {
        queue: queue.to_owned(),
        persons,
        policy: policy.to_owned(),
        requester_may,
        form: None,
    };
    assert_eq!(approval(one), of("office", 1, "one", true));
    assert_eq!(approval(&format!("{plain}{one}")), of("office", 1, "one", true));
    assert_eq!(approval(&format!("{one}{two}{plain}")), of("finance", 2, "two", false));
    let forbidden = format!("{one} forbid (principal, action, resource);");
    assert!(is_denied(&decided(&forbidden, "ada", &arguments)));
}

#[test]
fn a_tool_that_is_named_like_a_group_is_not_the_group() {
    let (principal, shape) = (Principal::from("ada"), Shape::Unknown);
    let tool = ToolFacts {
        name: "read",
        upstream: "shop",
        effect: EffectKind::Write,
        reversible: false,
        declared: false,
        shape: &shape,
    };
    let asked = Asked {
        principal: &principal,
        tenant: None,

        tool,
        arguments: &json!({}),
        origin: Origin::default(),
        scopes: &BTreeSet::new(),
        now: Timestamp::from_ms(0),
    };
    let reads = policies(r#"permit (principal, action in Action::"read", resource);"#).unwrap();
    assert!(is_denied(&reads.decide(&asked)));
    let named = policies(r#"permit (principal, action == Action::"tool:read", resource);"#).unwrap();
    assert!(!is_denied(&named.decide(&asked)));
}

#[test]
fn mistakes_are_refused_with_the_line_the_column_and_what_was_meant() {
    for (text, says) in [
        ("permit (principal, action, resource)\npermit", "test.cedar:2: column "),
        ("permit (principal == ?principal, action, resource);", "test.cedar:1: a template permits nothing"),
        (
            "\n@aproval(\"x\")\npermit (principal, action, resource);",
            "test.cedar:2: column 1: `@aproval` means nothing; did you mean `@approval`?",
        ),
        (
            "@approval(\"x\") forbid (principal, action, resource);",
            "test.cedar:1: column 1: `@approval` stands on a `permit`",
        ),
        ("@persons(\"2\") permit (principal, action, resource);", "test.cedar:1: column 1: `@persons` says how"),
        ("@approval(\"x\") @persons(\"3\") permit (principal, action, resource);", "`@persons` is \"1\" or \"2\""),
        (
            "@id(\"a\") permit (principal, action, resource);\n@id(\"a\") forbid (principal, action, resource);",
            "test.cedar:2: column 1: there are two policies `a`",
        ),
    ] {
        let refused = policies(text).unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
    }
}

#[test]
fn the_validator_knows_the_tools_and_what_they_take() {
    let tools = [
        KnownTool { name: "shop__issue_refund".into(), effect: EffectKind::Keyed, shape: refund() },
        KnownTool { name: "call".into(), effect: EffectKind::Read, shape: Shape::Record(BTreeMap::new()) },
    ];
    let found = |text: &str| policies(text).unwrap().validate(&tools, true);
    let sound = r#"
        permit (principal, action in Action::"read", resource);
        @approval("finance") permit (principal, action == Action::"shop__issue_refund", resource)
        when { context.args.amount.lessThan(decimal("5.0")) && context.hour < 18 };
        forbid (principal, action in Action::"call", resource) when { context.args has order && context.args.order == "x" };
    "#;
    assert_eq!(found(sound), []);
    for (text, line, column, says) in [
        (
            "permit (principal, action == Action::\"shop__isue_refund\", resource);",
            1,
            38,
            "there is no tool `shop__isue_refund`; did you mean `shop__issue_refund`?",
        ),
        (
            "permit (principal, action == Action::\"shop__issue_refund\", resource)\nwhen { context.args.amuont > 3 };",
            2,
            8,
            "amuont",
        ),
        (
            "permit (principal, action == Action::\"shop__issue_refund\", resource)\nwhen { context.args.amount > 3 };",
            2,
            8,
            "expected",
        ),
    ] {
        let found = found(text);
        let first = found.first().unwrap_or_else(|| panic!("nothing is found in {text}"));
        assert!(first.says.contains(says), "{first:?}");
        assert_eq!((first.level, first.line, first.column), (Level::Problem, line, column), "{first:?}");
    }
}

#[test]
fn a_tool_nobody_knows_is_not_held_against_a_policy() {
    let tools = [KnownTool { name: "pay".into(), effect: EffectKind::Write, shape: Shape::Unknown }];
    let text = "permit (principal, action == Action::\"pay\", resource) when { context.args.amount > 3 };";
    let found = policies(text).unwrap().validate(&tools, true);
    assert!(found.iter().all(|finding| finding.level == Level::Warning), "{found:?}");
}
