//! Scenarios by example: what passes, what is a mismatch, and how that reads.

use std::sync::Arc;

use amends_core::contract::Contract;
use amends_core::machine::{ActionSpec, MachineSpec, Machines};
use amends_core::playbook::PlaybookSpec;
use amends_core::{Certainty, Code, EffectKind, Event, Fact, Failure, Playbook, Report as Ended, Rules, ToolName};
use serde_json::json;

use super::{Cast, Happened, Recording, Report, Scenario, ScenarioError, Sent, retell, tell};

fn machines() -> Machines {
    let order = MachineSpec::new("new")
        .terminal(["paid"])
        .action("pay", ActionSpec::new(["new"], "paid").tool("charge").arg("n", "inputs.n").writes("n", "inputs.n"))
        .action("look", ActionSpec::new(["new"], "new").tool("read").times(3));
    Machines::read(&[("order".into(), order)].into()).unwrap()
}

fn rules(tool: &ToolName) -> Arc<Rules> {
    let effect = if tool.as_str() == "read" { EffectKind::Read } else { EffectKind::Write };
    let contract = Contract { effect, declared: true, ..Contract::undeclared(5_000, 30_000, 600_000) };
    Arc::new(Rules { playbook: Playbook::parse(&PlaybookSpec::default(), &contract).unwrap(), contract })
}

fn told(steps: &str) -> Result<Report, ScenarioError> {
    let text = format!("config = \"-\"\nmachine = \"order\"\n{steps}");
    let recorded = |call: &str| {
        let lost = Ended::answered(Failure::of(Code::RateLimited), Certainty::NotProcessed, None);
        let sent = |report, gives, body| Sent { tool: ToolName::new("read"), report: Some(report), gives, body };
        let body = match call {
            "call_1" => None,
            "call_kept" => Some(json!(8)),
            _ => return None,
        };
        Some(vec![sent(lost, false, None), sent(Ended::success(None), true, body)])
    };
    tell(&Scenario::read(&text)?, &Cast { machines: &machines(), rules: &rules, recorded: &recorded })
}

fn differences(steps: &str) -> String {
    told(steps).unwrap().differences()
}

#[test]
fn a_walk_that_goes_as_written_passes() {
    let report = told(
        "[[steps]]\naction = \"look\"\nanswers = [{ tool = \"read\", timeout = true }, { tool = \"read\", result = 3 }]\n\
         expect = { result = 3, calls = [\"read\", \"read\"] }\n\
         [[steps]]\naction = \"pay\"\ninputs = { n = 2 }\nanswers = [{ tool = \"charge\", with = { n = 2 }, result = {} }]\n\
         expect = { state = \"paid\", fields = { n = 2 }, valid_next_actions = [] }\n",
    )
    .unwrap();
    assert!(report.passed(), "{}", report.differences());
    assert_eq!(report.steps.len(), 2);
}

#[test]
fn what_goes_otherwise_is_shown_with_what_was_expected() {
    let said = differences(
        "[[steps]]\naction = \"pay\"\ninputs = { n = 2 }\nanswers = [{ tool = \"charge\", with = { n = 3 }, result = {} }]\n\
         expect = { state = \"new\" }\n",
    );
    let expected = "  step 1, `pay`, which leads to `paid`:\n    `charge` is given\n    - {\"n\":3}\n    + {\"n\":2}\n    \
                    state\n    - new\n    + paid\n";
    assert_eq!(said, expected);
}

#[test]
fn a_call_without_an_answer_and_an_answer_without_a_call_are_mismatches() {
    let said = differences("[[steps]]\naction = \"pay\"\ninputs = { n = 2 }\n[[steps]]\naction = \"look\"\n");
    assert!(said.contains("+ `charge` was called with `{\"n\":2}`"), "{said}");
    assert!(!said.contains("step 2"), "nothing can be told after that: {said}");
    let said = differences(
        "[[steps]]\naction = \"pay\"\ninputs = { n = 2 }\nanswers = [{ tool = \"charge\", result = 1 }, { tool = \"read\", result = 1 }]\n",
    );
    assert!(said.contains("- `read`\n    + it was not called again"), "{said}");
}

#[test]
fn nothing_else_is_done_while_a_move_is_in_doubt() {
    let report = told(
        "[[steps]]\naction = \"pay\"\ninputs = { n = 2 }\nanswers = [{ tool = \"charge\", in_doubt = true }]\n\
         expect = { refusal = { kind = \"action_error\" }, state = \"new\", valid_next_actions = [] }\n\
         [[steps]]\naction = \"look\"\nexpect = { refusal = { kind = \"in_flight\" }, calls = [] }\n",
    )
    .unwrap();
    assert!(report.passed(), "{}", report.differences());
}

#[test]
fn recorded_answers_are_given_again_in_their_order() {
    let steps = |call: &str, result: &str, expected: u64| {
        format!(
            "[[steps]]\naction = \"look\"\npatience = \"120s\"\n\
             answers = [{{ tool = \"read\", recorded = \"{call}\"{result} }}]\nexpect = {{ result = {expected} }}\n"
        )
    };
    let gives_7 = ", result = 7";
    for steps in [steps("call_1", gives_7, 7), steps("call_kept", "", 8), steps("call_kept", gives_7, 7)] {
        let report = told(&steps).unwrap();
        assert!(report.passed(), "{}", report.differences());
    }
    let refused = |call: &str, result: &str| told(&steps(call, result, 7)).unwrap_err().to_string();
    assert_eq!(refused("call_2", gives_7), "step 1: no export knows the call `call_2`");
    let said = refused("call_1", "");
    assert!(said.starts_with("step 1: what `call_1` gave is not in the export: write it in `result`, or"), "{said}");
    let other =
        "[[steps]]\naction = \"pay\"\ninputs = { n = 2 }\nanswers = [{ tool = \"charge\", recorded = \"call_1\" }]\n";
    let said = "step 1: the answer of `charge` is that of `call_1`, which called `read` and not `charge`";
    assert_eq!(told(other).unwrap_err().to_string(), said);
}

#[test]
fn a_recorded_time_that_was_over_is_over_again() {
    let cast = Cast { machines: &machines(), rules: &rules, recorded: &|_| None };
    let head = "config = \"-\"\nmachine = \"order\"\n[[steps]]\naction = \"look\"\n";
    let first = format!("{head}answers = [{{ tool = \"read\", timeout = true }}, {{ tool = \"read\", result = 3 }}]\n");
    let ends = |happened: &[Happened]| {
        let facts = happened.iter().flat_map(|happened| &happened.step.events).map(|event| &event.fact);
        let end = |fact: &Fact| match fact {
            Fact::AttemptTimedOut { .. } => Some("its time was over"),
            Fact::AttemptEnded { .. } => Some("it was answered"),
            _ => None,
        };
        facts.filter_map(end).collect::<Vec<_>>()
    };
    let told = retell(&Scenario::read(&first).unwrap(), &cast).unwrap();
    let events: Vec<Event> = told.iter().flat_map(|happened| happened.step.events.clone()).collect();
    let call = events.iter().find_map(|event| match &event.fact {
        Fact::AttemptStarted { attempt, .. } => Some(attempt.call.to_string()),
        _ => None,
    });
    let call = call.expect("it was sent");
    let recording = Recording { events, ..Recording::default() };
    let recorded = |known: &str| recording.sent(known);
    let cast = Cast { machines: &machines(), rules: &rules, recorded: &recorded };
    let again = format!("{head}answers = [{{ tool = \"read\", recorded = \"{call}\", result = 3 }}]\n");
    let again = retell(&Scenario::read(&again).unwrap(), &cast).unwrap();
    assert_eq!(ends(&told), ["its time was over", "it was answered"]);
    assert_eq!(ends(&again), ends(&told));
}

#[test]
fn a_machine_that_is_not_declared_is_told() {
    let look = MachineSpec::new("new")
        .terminal(["seen"])
        .action("look", ActionSpec::new(["new"], "seen").allowed(["read"], json!({ "type": "object" }), 3));
    let pay = MachineSpec::new("new").terminal(["paid"]).action("pay", ActionSpec::new(["new"], "paid").tool("charge"));
    let machines = Machines::read(&[("order".into(), pay), ("case".into(), look)].into()).unwrap();
    let said = |machine: &str| {
        let scenario = format!("config = \"-\"\nmachine = \"{machine}\"\n[[steps]]\nreset = true\n");
        let cast = Cast { machines: &machines, rules: &rules, recorded: &|_| None };
        tell(&Scenario::read(&scenario).unwrap(), &cast).unwrap_err().to_string()
    };
    assert_eq!(said("oder"), "there is no machine `oder`; did you mean `order`?");
    assert_eq!(said("shipment"), "there is no machine `shipment`; known: `case`, `order`");
    let stage =
        "there is no machine `case.look`; it is a stage of `case`: say `machine = \"case\"`, and take `look` first";
    assert_eq!(said("case.look"), stage);
}

#[test]
fn what_was_done_of_an_action_that_failed_is_not_done_again() {
    let both = ActionSpec::new(["new"], "paid").parallel("card", "charge", &[]).parallel("note", "write", &[]);
    let order = MachineSpec::new("new").terminal(["paid"]).loops(3).action("pay", both);
    let machines = Machines::read(&[("order".into(), order)].into()).unwrap();
    let scenario = Scenario::read(
        "config = \"-\"\nmachine = \"order\"\n\
         [[steps]]\naction = \"pay\"\n\
         answers = [{ tool = \"charge\", result = { id = \"ch_1\" } }, { tool = \"write\", error = \"InputInvalid\" }]\n\
         expect = { refusal = { kind = \"action_error\" }, state = \"new\", calls = [\"charge\", \"write\"] }\n\
         [[steps]]\naction = \"pay\"\nanswers = [{ tool = \"write\", result = {} }]\n\
         expect = { state = \"paid\", calls = [\"write\"], result = { card = { id = \"ch_1\" }, note = {} } }\n",
    )
    .unwrap();
    let report = tell(&scenario, &Cast { machines: &machines, rules: &rules, recorded: &|_| None }).unwrap();
    assert!(report.passed(), "{}", report.differences());
}

/// A scenario of a machine of its own, and where it goes otherwise.
fn differs(order: MachineSpec, text: &str) -> String {
    let machines = Machines::read(&[("order".into(), order)].into()).unwrap();
    let scenario = Scenario::read(&format!("config = \"-\"\nmachine = \"order\"\n{text}")).unwrap();
    tell(&scenario, &Cast { machines: &machines, rules: &rules, recorded: &|_| None }).unwrap().differences()
}

#[test]
fn inputs_and_guards_are_judged_as_in_the_gateway() {
    let input = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let pay = |guard: &str| ActionSpec::new(["new"], "paid").guard(guard).input(input.clone());
    let order = MachineSpec::new("new")
        .terminal(["paid"])
        .loops(3)
        .action("open", ActionSpec::new(["new"], "new").writes("open", "true"))
        .action("gated", pay("has(state.open)"))
        .action("limited", pay("inputs.n <= 5"));
    let said = differs(
        order,
        "[[steps]]\naction = \"gated\"\n\
         expect = { refusal = { kind = \"invalid_transition\", field = \"n\", guard = \"has(state.open)\" } }\n\
         [[steps]]\naction = \"limited\"\ninputs = { n = 9 }\n\
         expect = { refusal = { kind = \"invalid_transition\", field = \"inputs.n\", guard = \"inputs.n <= 5\" } }\n\
         [[steps]]\naction = \"limited\"\nexpect = { refusal = { kind = \"validation_failed\", field = \"n\" } }\n",
    );
    assert_eq!(said, "");
}

#[test]
fn a_repeated_key_gives_what_the_first_gave() {
    let said = differences(
        "[[steps]]\naction = \"look\"\nkey = \"k\"\nanswers = [{ tool = \"read\", result = 3 }]\nexpect = { result = 3 }\n\
         [[steps]]\naction = \"look\"\nkey = \"k\"\nexpect = { result = 3, calls = [] }\n",
    );
    assert_eq!(said, "");
}

#[test]
fn a_tool_takes_what_the_scenario_says_that_it_takes() {
    let look = ActionSpec::new(["new"], "seen").allowed(["read"], json!({ "type": "object" }), 3);
    let order = || MachineSpec::new("new").terminal(["seen"]).action("look", look.clone());
    let tools = "[tools.read]\n\
                 input = { type = \"object\", properties = { of = { type = \"string\" } }, additionalProperties = false }\n";
    let said = differs(
        order(),
        &format!(
            "{tools}[[steps]]\naction = \"look\"\n\
             [[steps]]\naction = \"read\"\ninputs = {{ n = 1 }}\n\
             expect = {{ refusal = {{ kind = \"action_error\", field = \"n\" }}, calls = [] }}\n\
             [[steps]]\naction = \"read\"\ninputs = {{ of = \"x\" }}\nanswers = [{{ tool = \"read\", result = 1 }}]\n"
        ),
    );
    assert_eq!(said, "");
    let step = "[[steps]]\naction = \"look\"\n";
    let wrong = |tools: &str| told(&format!("{tools}{step}")).unwrap_err().to_string();
    assert!(wrong("[tools.raed]\n").starts_with("no machine calls `raed`"), "{}", wrong("[tools.raed]\n"));
    let unusable = wrong("[tools.read]\ninput = { type = \"strng\" }\n");
    assert!(unusable.starts_with("line 4: the `input` of `read` cannot be used: "), "{unusable}");
    let unknown = wrong("[tools.read]\ninptu = {}\n");
    assert_eq!(unknown, "line 4: unknown key `inptu`; did you mean `input`?");
}

#[test]
fn a_person_says_what_became_of_a_call_and_what_it_gave() {
    let pay = ActionSpec::new(["new"], "paid").tool("charge").writes("id", "result.id");
    let order = || MachineSpec::new("new").terminal(["paid"]).action("pay", pay.clone());
    let doubt = "[[steps]]\naction = \"pay\"\nanswers = [{ tool = \"charge\", in_doubt = true }]\n";
    let said = differs(
        order(),
        &format!(
            "{doubt}person = \"happened\"\ncontent = {{ id = \"ch_1\" }}\n\
             expect = {{ refusal = {{ kind = \"action_error\" }}, state = \"new\", valid_next_actions = [\"pay\"] }}\n\
             [[steps]]\naction = \"pay\"\nexpect = {{ state = \"paid\", fields = {{ id = \"ch_1\" }}, calls = [] }}\n"
        ),
    );
    assert_eq!(said, "");
    let unsaid = told("[[steps]]\naction = \"look\"\ncontent = { id = 1 }\n").unwrap_err().to_string();
    assert!(unsaid.starts_with("line 5: step 1: `content` is what a person says that a call gave"), "{unsaid}");
}

#[test]
fn calls_that_are_made_at_the_same_time_get_the_answers_that_name_their_arguments() {
    let both = ActionSpec::new(["new"], "paid").parallel("a", "read", &[("of", "'a'")]);
    let both = both.parallel("b", "read", &[("of", "'b'")]);
    let said = differs(
        MachineSpec::new("new").terminal(["paid"]).action("both", both),
        "[[steps]]\naction = \"both\"\nanswers = [\n  { tool = \"read\", with = { of = \"b\" }, result = 2 },\n  \
         { tool = \"read\", with = { of = \"a\" }, result = 1 },\n]\nexpect = { result = { a = 1, b = 2 } }\n",
    );
    assert_eq!(said, "");
}
