//! What the tools of machines are given, read and found well formed.

mod again;

use amends_core::failure::bounded;
use amends_core::nearest::nearest;
use amends_core::recovery::Template;
use amends_core::refusal::ArgumentFault;
use amends_core::{Recovery, Refusal, RefusalKind};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::names::Tool;
use super::resource::What;
use super::sound::{Unsound, unsound};
use crate::object::{self, Object, is_null, is_object};
use crate::schema::{NO_SUCH_FIELD, NOTHING, PRESENT};
use crate::splice::Splice;

/// The member that names the walk.
pub const SESSION: &str = "session";
/// The member that says how many moves the agent thinks were made.
pub const EXPECT_SEQ: &str = "expect_seq";
/// The largest whole number that every JSON reader tells from its neighbours.
const EXACT_MAX: u64 = (1 << 53) - 1;
/// How many bytes an action's inputs may have.
pub const INPUTS_BYTES_MAX: usize = 1 << 20;
/// How many characters the handle of a walk may have.
pub const SESSION_CHARS_MAX: usize = 128;
/// How many bytes of what was given a template says again; more is to be given once more.
pub(super) const TEMPLATE_BYTES_MAX: usize = 4096;
/// How many characters of a value are said again.
const SHOWN_CHARS_MAX: usize = 60;
/// How far alternatives within alternatives are followed.
const ALTERNATIVES_DEPTH_MAX: usize = 8;
/// How many characters an action's name may have.
const NAME_CHARS_MAX: usize = 256;
/// What is expected of a name that is there twice.
const ONCE: &str = "to be given once";

/// What an agent wants of a walk.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// An action taken.
    Step {
        /// The machine, for a walk that begins.
        machine: Option<String>,
        /// The action.
        action: String,
        /// Its inputs.
        inputs: Inputs,
        /// The walk.
        session: Option<String>,
        /// How many moves the agent thinks were made.
        expect_seq: Option<u64>,
    },
    /// The walk begun again.
    Reset {
        /// The walk.
        session: Option<String>,
    },
    /// Another walk, begun at a past point.
    Fork {
        /// The walk.
        session: Option<String>,
        /// After how many of its moves; where it is now, if not said.
        seq: Option<u64>,
    },
    /// The move that is being made, stopped.
    Cancel {
        /// The walk.
        session: Option<String>,
    },
    /// To look.
    Look {
        /// The walk.
        session: Option<String>,
        /// At what.
        what: What,
    },
}

impl Wanted {
    /// The walk that was named.
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::Step { session, .. }
            | Self::Reset { session }
            | Self::Fork { session, .. }
            | Self::Cancel { session }
            | Self::Look { session, .. } => session.as_deref(),
        }
    }
}

/// The inputs of an action: an object that can be read as a whole.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// As they were written.
    pub raw: Box<RawValue>,
    /// What they say.
    pub value: Map<String, Value>,
}

/// Reads the arguments of one of our tools. `name` is what it is served under.
///
/// ```
/// use amends_wire::mcp::steps::{Tool, Wanted, read};
/// use serde_json::value::RawValue;
///
/// let given = RawValue::from_string(r#"{"action":"pay","inputs":{"amount":5}}"#.into())?;
/// assert!(matches!(read(Tool::Step, "step", Some(&given)), Ok(Wanted::Step { action, .. }) if action == "pay"));
/// let cut = RawValue::from_string(r#"{"action":"pay","inputs":"{\"amount\":"}"#.into())?;
/// let refusal = read(Tool::Step, "step", Some(&cut)).unwrap_err();
/// assert_eq!((refusal.kind.as_str(), refusal.details[0].field.as_str()), ("validation_failed", "inputs"));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn read(tool: Tool, name: &str, arguments: Option<&RawValue>) -> Result<Wanted, Box<Refusal>> {
    let text = arguments.map_or("{}", RawValue::get);
    let known: &[&str] = match tool {
        Tool::Step => &["action", "inputs", "machine", SESSION, EXPECT_SEQ],
        Tool::Reset | Tool::Cancel => &[SESSION],
        Tool::Fork => &[SESSION, "seq"],
        Tool::Walk => &[SESSION, "what"],
    };
    let mut given = Given::new(text, known);
    let session = given.name(SESSION, SESSION_CHARS_MAX);
    let wanted = match tool {
        Tool::Step => {
            let action = given.name("action", NAME_CHARS_MAX);
            if action.is_none() && !given.has("action") {
                given.fault("action", PRESENT, Some(NOTHING.to_owned()));
            }
            Wanted::Step {
                machine: given.name("machine", NAME_CHARS_MAX),
                action: action.unwrap_or_default(),
                inputs: given.inputs(),
                expect_seq: given.count(EXPECT_SEQ),
                session,
            }
        }
        Tool::Reset => Wanted::Reset { session },
        Tool::Fork => Wanted::Fork { session, seq: given.count("seq") },
        Tool::Cancel => Wanted::Cancel { session },
        Tool::Walk => Wanted::Look { session, what: given.what() },
    };
    given.done(name, wanted)
}

/// Reads the arguments of an action's own tool, served under that name: its inputs, and beside them what is ours.
pub fn read_action(
    name: &str,
    machine: &str,
    action: &str,
    schema: Option<&Value>,
    arguments: Option<&RawValue>,
) -> Result<Wanted, Box<Refusal>> {
    let text = arguments.map_or("{}", RawValue::get);
    let (session_name, expect_name) = extras(schema);
    let mut given = Given::open(text);
    let session = given.name(session_name, SESSION_CHARS_MAX);
    let expect_seq = given.count(expect_name);
    let mut splice = Splice::new(text);
    for ours in [session_name, expect_name] {
        // What is not there needs not be taken out.
        if given.has(ours) {
            let _ = splice.remove_member(text, ours);
        }
    }
    let rest = splice.finish();
    let inputs = given.as_inputs("", &rest);
    let (machine, action) = (Some(machine.to_owned()), action.to_owned());
    given.done(name, Wanted::Step { machine, action, inputs, session, expect_seq })
}

/// The walk that arguments name, where they name one, whatever else is wrong with them.
pub fn session_of(arguments: Option<&RawValue>) -> Option<String> {
    named(arguments, SESSION, SESSION_CHARS_MAX)
}

/// The action that arguments name, where they name one, whatever else is wrong with them.
pub fn action_of(arguments: Option<&RawValue>) -> Option<String> {
    named(arguments, "action", NAME_CHARS_MAX)
}

fn named(arguments: Option<&RawValue>, member: &str, most: usize) -> Option<String> {
    let mut given = Given::open(arguments?.get());
    given.name(member, most)
}

/// What our own two members are called beside the inputs of an action: another name where the inputs have that one.
pub(super) fn extras(schema: Option<&Value>) -> (&'static str, &'static str) {
    let has = |name: &str| schema.is_some_and(|schema| names(schema, schema, name, ALTERNATIVES_DEPTH_MAX));
    let session = if has(SESSION) { "amends_session" } else { SESSION };
    let expect = if has(EXPECT_SEQ) { "amends_expect_seq" } else { EXPECT_SEQ };
    (session, expect)
}

/// Whether a schema names that member, also in its alternatives.
fn names(schema: &Value, root: &Value, name: &str, depth: usize) -> bool {
    let all = ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|keyword| schema[keyword].as_array()).flatten();
    let branches = ["then", "else"].into_iter().filter_map(|keyword| schema.get(keyword));
    let target = schema["$ref"].as_str().and_then(|target| root.pointer(target.strip_prefix('#')?));
    let mut parts = all.chain(branches).chain(target);
    schema["properties"].get(name).is_some() || (depth > 0 && parts.any(|part| names(part, root, name, depth - 1)))
}

/// Arguments that are looked at member by member.
struct Given<'a> {
    object: Option<Object<'a>>,
    /// The members there can be; any, where nothing is said.
    known: Option<&'a [&'a str]>,
    faults: Vec<ArgumentFault>,
    /// Where among them is that of inputs of which a reader would make something else, and those inputs.
    unsound: Option<(usize, String)>,
}

impl<'a> Given<'a> {
    /// Arguments that may have those members and no others.
    fn new(text: &'a str, known: &'a [&'a str]) -> Self {
        let mut given = Self { known: Some(known), ..Self::open(text) };
        let names: Vec<String> =
            given.object.iter().flat_map(Object::members).map(|member| member.name().into_owned()).collect();
        for name in names.iter().filter(|name| !known.contains(&name.as_str())).take(8) {
            given.faults.push(ArgumentFault {
                field: bounded(name),
                expected: NO_SUCH_FIELD.to_owned(),
                got: None,
                nearest: nearest(name, known.iter().copied()),
            });
        }
        given
    }

    /// Arguments that may have any members.
    fn open(text: &'a str) -> Self {
        let object = Object::parse(text);
        let mut given = Self { object, known: None, faults: Vec::new(), unsound: None };
        match &given.object {
            None => given.fault("", "an object", Some(cut(text))),
            Some(object) => {
                let repeated = object.repeated();
                let twice = object.members().iter().map(|member| member.name()).find(|name| repeated.contains(name));
                if let Some(name) = twice.map(|name| bounded(&name)) {
                    given.fault(&name, ONCE, Some("the same name twice".to_owned()));
                }
            }
        }
        given
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.object.as_ref().and_then(|object| object.get(name)).filter(|raw| !is_null(raw))
    }

    fn fault(&mut self, field: &str, expected: impl Into<String>, got: Option<String>) {
        let (field, expected) = (field.to_owned(), expected.into());
        self.faults.push(ArgumentFault { field, expected, got, nearest: Vec::new() });
    }

    /// A name: visible characters, not too many.
    fn name(&mut self, name: &str, most: usize) -> Option<String> {
        let raw = self.get(name)?;
        let read = object::string(raw).map(|text| text.into_owned());
        let sound = |text: &String| {
            !text.is_empty()
                && text.chars().count() <= most
                && !text.chars().any(|c| c.is_control() || c.is_whitespace())
        };
        let found = read.filter(sound);
        if found.is_none() {
            self.fault(name, format!("text of 1 to {most} visible characters"), Some(cut(raw.get())));
        }
        found
    }

    /// A whole number that is not negative. Some write `3` as `3.0`, whose JSON comes from protocol buffers.
    fn count(&mut self, name: &str) -> Option<u64> {
        let raw = self.get(name)?;
        let whole = raw.get().strip_suffix(".0").unwrap_or(raw.get());
        let found = whole.parse::<u64>().ok().filter(|found| *found <= EXACT_MAX);
        if found.is_none() {
            self.fault(name, "a whole number ≥ 0", Some(cut(raw.get())));
        }
        found
    }

    fn what(&mut self) -> What {
        let Some(raw) = self.get("what") else { return What::Next };
        let text = object::string(raw);
        if let Some(what) = text.as_deref().and_then(What::parse) {
            return what;
        }
        let all: Vec<&str> = What::ALL.iter().map(|what| what.as_str()).collect();
        let words = all.iter().map(|what| format!("`{what}`")).collect::<Vec<_>>().join(", ");
        self.fault("what", format!("one of {words}"), Some(cut(raw.get())));
        if let (Some(text), Some(fault)) = (text, self.faults.last_mut()) {
            fault.nearest = nearest(&text, all);
        }
        What::Next
    }

    /// The inputs of an action: an object, or a text that is a whole one, since some clients write it so.
    fn inputs(&mut self) -> Inputs {
        let Some(raw) = self.get("inputs") else { return Inputs::nothing() };
        match object::string(raw) {
            _ if is_object(raw) => self.as_inputs("inputs", raw.get()),
            Some(text) => self.as_inputs("inputs", &text),
            None => {
                self.fault("inputs", "an object", Some(cut(raw.get())));
                Inputs::nothing()
            }
        }
    }

    fn as_inputs(&mut self, field: &str, text: &str) -> Inputs {
        if text.len() > INPUTS_BYTES_MAX {
            self.fault(field, format!("at most {INPUTS_BYTES_MAX} bytes"), Some(format!("{} bytes", text.len())));
            return Inputs::nothing();
        }
        let text = text.trim();
        let path = |at: Vec<String>| {
            let names = at.iter().map(|name| bounded(name));
            (!field.is_empty()).then(|| field.to_owned()).into_iter().chain(names).collect::<Vec<_>>().join(".")
        };
        let found = unsound(text);
        if found.is_some() {
            self.unsound = Some((self.faults.len(), text.to_owned()));
        }
        match found {
            Some(Unsound::Twice(at)) => {
                self.fault(&path(at), ONCE, Some("the same name twice".to_owned()));
                return Inputs::nothing();
            }
            Some(Unsound::Beyond(at, number)) => {
                let expected = format!("a whole number from {} to {}, or text", i64::MIN, u64::MAX);
                self.fault(&path(at), expected, Some(cut(&number)));
                return Inputs::nothing();
            }
            None => {}
        }
        let read =
            serde_json::from_str::<Value>(text).and_then(|value| Ok((value, RawValue::from_string(text.to_owned())?)));
        match read {
            Ok((Value::Object(value), raw)) => Inputs { raw, value },
            Ok(_) => {
                self.fault(field, "an object", Some(cut(text)));
                Inputs::nothing()
            }
            // Cut short, not JSON at all, a number beyond all range, half of a character.
            Err(error) => {
                let why =
                    if error.is_eof() { "text that ends too early".to_owned() } else { bounded(&error.to_string()) };
                self.fault(field, "an object in JSON", Some(why));
                Inputs::nothing()
            }
        }
    }

    fn done(self, name: &str, wanted: Wanted) -> Result<Wanted, Box<Refusal>> {
        let Some(first) = self.faults.first() else { return Ok(wanted) };
        let what = match (&first.field, first.expected.as_str()) {
            (field, PRESENT) => format!("`{field}` is missing"),
            (field, NO_SUCH_FIELD) => format!("there is no `{field}`"),
            (field, ONCE) => format!("`{field}` is given twice"),
            (field, expected) if field.is_empty() => format!("expected {expected}"),
            (field, expected) => format!("`{field}` must be {expected}"),
        };
        let more = if self.faults.len() > 1 { format!(" (and {} more)", self.faults.len() - 1) } else { String::new() };
        let message = format!("`{name}` does not take these arguments: {what}{more}; nothing was done");
        let mut refusal = Refusal::of(RefusalKind::ValidationFailed, message);
        let (args, missing) = self.again(&wanted);
        let template = Template { tool: name.to_owned(), args, missing };
        refusal.recovery = Some(Recovery { template: Some(template), ..Recovery::default() });
        refusal.details = self.faults;
        Err(Box::new(refusal))
    }
}

impl Inputs {
    /// No inputs at all.
    pub fn nothing() -> Self {
        let raw = RawValue::from_string("{}".to_owned()).expect("an empty object is JSON");
        Self { raw, value: Map::new() }
    }
}

fn cut(text: &str) -> String {
    let text = bounded(text);
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn faults(tool: Tool, text: &str) -> Vec<(String, String, Option<String>)> {
        let refusal = read(tool, "step", Some(&raw(text))).expect_err(text);
        assert_eq!(refusal.kind, RefusalKind::ValidationFailed);
        refusal.details.into_iter().map(|fault| (fault.field, fault.expected, fault.got)).collect()
    }

    fn fault(text: &str) -> (String, String, String) {
        let (field, expected, got) = faults(Tool::Step, text).swap_remove(0);
        (field, expected, got.unwrap_or_default())
    }

    #[test]
    fn a_step_is_read_and_its_inputs_keep_their_bytes() {
        let text = r#"{"action":"pay","inputs":{ "amount":1.0 },"session":"ses_1","expect_seq":3}"#;
        let Ok(Wanted::Step { action, inputs, session, expect_seq, machine }) =
            read(Tool::Step, "step", Some(&raw(text)))
        else {
            panic!("it is well formed");
        };
        assert_eq!((action.as_str(), session.as_deref(), expect_seq, machine), ("pay", Some("ses_1"), Some(3), None));
        let doubled = text.replace("\"expect_seq\":3", "\"expect_seq\":3.0");
        let read_doubled = read(Tool::Step, "step", Some(&raw(&doubled)));
        assert!(matches!(read_doubled, Ok(Wanted::Step { expect_seq: Some(3), .. })), "a whole number may be a double");
        assert_eq!((inputs.raw.get(), &inputs.value["amount"]), (r#"{ "amount":1.0 }"#, &json!(1.0)));
        let as_text = r#"{"action":"pay","inputs":"{\"amount\":5}","session":null}"#;
        let read_as_text = read(Tool::Step, "step", Some(&raw(as_text)));
        assert!(matches!(read_as_text, Ok(Wanted::Step { inputs, .. }) if inputs.raw.get() == r#"{"amount":5}"#));
    }

    #[test]
    fn everything_that_does_not_fit_is_named_with_what_was_expected_and_what_was_there() {
        let object = "an object in JSON";
        for (text, field, expected, got) in [
            (r#"{"inputs":{}}"#, "action", PRESENT, "nothing"),
            (r#"{"action":7}"#, "action", "text of 1 to 256 visible characters", "7"),
            (r#"{"action":"a b"}"#, "action", "text of 1 to 256 visible characters", "\"a b\""),
            (r#"{"action":"a","inputs":[1]}"#, "inputs", "an object", "[1]"),
            (r#"{"action":"a","inputs":3}"#, "inputs", "an object", "3"),
            (r#"{"action":"a","inputs":"[1]"}"#, "inputs", "an object", "[1]"),
            (r#"{"action":"a","inputs":"{\"amount\": 5"}"#, "inputs", object, "text that ends too early"),
            (r#"{"action":"a","inputs":"{\"amount\": NaN}"}"#, "inputs", object, "expected value at line 1 column 12"),
            (r#"{"action":"a","inputs":{"x":1e999}}"#, "inputs", object, "number out of range at line 1 column 10"),
            (r#"{"action":"a","inputs":{"x":1,"x":2}}"#, "inputs.x", "to be given once", "the same name twice"),
            (
                r#"{"action":"a","inputs":{"x":[{"y":1,"y":2}]}}"#,
                "inputs.x.0.y",
                "to be given once",
                "the same name twice",
            ),
            (
                r#"{"action":"a","inputs":{"x":{"y":18446744073709551616}}}"#,
                "inputs.x.y",
                "a whole number from -9223372036854775808 to 18446744073709551615, or text",
                "18446744073709551616",
            ),
            (r#"{"action":"a","session":5}"#, "session", "text of 1 to 128 visible characters", "5"),
            (r#"{"action":"a","expect_seq":-1}"#, "expect_seq", "a whole number ≥ 0", "-1"),
            (r#"{"action":"a","expect_seq":9007199254740992}"#, "expect_seq", "a whole number ≥ 0", "9007199254740992"),
            (r#"{"action":"a","expect_seq":1.5}"#, "expect_seq", "a whole number ≥ 0", "1.5"),
            (r#"{"action":"a","expect_seq":"3"}"#, "expect_seq", "a whole number ≥ 0", "\"3\""),
            (r#"{"action":"a","action":"b"}"#, "action", "to be given once", "the same name twice"),
            (r#"{"action":"a","sesion":"s"}"#, "sesion", NO_SUCH_FIELD, ""),
        ] {
            assert_eq!(fault(text), (field.to_owned(), expected.to_owned(), got.to_owned()), "{text}");
        }
        let refusal = read(Tool::Step, "step", Some(&raw(r#"{"action":"a","sesion":"s"}"#))).unwrap_err();
        assert_eq!(refusal.details[0].nearest, ["session"]);
        assert!(refusal.message.starts_with("`step` does not take these arguments: there is no `sesion`"));
    }

    #[test]
    fn what_was_right_is_given_again_and_nothing_that_was_meant_is_left_out() {
        let again = |tool, text: &str| {
            let template = read(tool, "t", Some(&raw(text))).unwrap_err().recovery.unwrap().template.unwrap();
            (Value::Object(template.args), template.missing)
        };
        let inputs = json!({ "n": 5 });
        assert_eq!(
            again(Tool::Step, r#"{"action":"a","inputs":{"n":5},"sesion":"ses_1"}"#),
            (json!({ "action": "a", "inputs": inputs }), vec!["session".to_owned()])
        );
        assert_eq!(
            again(Tool::Step, r#"{"action":"a","inputs":"{\"n\":5}","machine":"m","session":"s","expect_seq":"x"}"#),
            (json!({ "action": "a", "inputs": inputs, "machine": "m", "session": "s" }), vec!["expect_seq".to_owned()])
        );
        let flat = again(Tool::Step, r#"{"action":"a","amount":5}"#);
        assert_eq!(flat, (json!({ "action": "a" }), vec!["inputs".to_owned()]), "inputs that stand beside");
        assert_eq!(
            again(Tool::Fork, r#"{"seq":-1,"session":"s"}"#),
            (json!({ "session": "s" }), vec!["seq".to_owned()])
        );
        let own = read_action("pay", "m", "pay", None, Some(&raw(r#"{"n":5,"expect_seq":"x"}"#))).unwrap_err();
        let template = own.recovery.unwrap().template.unwrap();
        assert_eq!((Value::Object(template.args), template.missing), (inputs, vec!["expect_seq".to_owned()]));
    }

    #[test]
    fn what_is_huge_is_refused_with_its_size() {
        let huge = format!(r#"{{"action":"a","inputs":{{"x":"{}"}}}}"#, "y".repeat(INPUTS_BYTES_MAX));
        let (field, expected, got) = fault(&huge);
        assert_eq!((field.as_str(), expected.as_str()), ("inputs", "at most 1048576 bytes"));
        assert!(got.ends_with("bytes") && got.len() < 20, "{got}");
        let long = format!(r#"{{"action":"{}"}}"#, "y".repeat(10_000));
        assert!(fault(&long).2.len() < 200);
    }

    #[test]
    fn the_other_tools_are_read_alike() {
        assert!(matches!(read(Tool::Reset, "reset", None), Ok(Wanted::Reset { session: None })));
        let fork = raw(r#"{"session":"ses_1","seq":2}"#);
        let fork = read(Tool::Fork, "fork", Some(&fork)).unwrap();
        assert!(matches!(&fork, Wanted::Fork { seq: Some(2), .. }) && fork.session() == Some("ses_1"));
        let look = raw(r#"{"what":"graph.mmd"}"#);
        assert!(matches!(
            read(Tool::Walk, "walk", Some(&look)),
            Ok(Wanted::Look { what: What::GraphMermaid, session: None })
        ));
        let (field, expected, got) = faults(Tool::Walk, r#"{"what":"histroy"}"#).swap_remove(0);
        assert_eq!((field.as_str(), got.as_deref()), ("what", Some("\"histroy\"")));
        assert!(expected.contains("`history`"), "{expected}");
        assert_eq!(faults(Tool::Cancel, r#"{"sesion":"x"}"#)[0].0, "sesion");
    }

    #[test]
    fn an_actions_own_tool_takes_its_inputs_and_ours_beside_them() {
        let text = r#"{ "amount":1.0, "session":"ses_1", "expect_seq":2 }"#;
        let step = read_action("pay", "order", "pay", None, Some(&raw(text))).unwrap();
        let Wanted::Step { inputs, session, expect_seq, machine, .. } = step else { panic!("it is a step") };
        assert_eq!(inputs.value, json!({ "amount": 1.0 }).as_object().cloned().unwrap());
        assert!(inputs.raw.get().contains("1.0"));
        assert_eq!((session.as_deref(), expect_seq, machine.as_deref()), (Some("ses_1"), Some(2), Some("order")));
        let schema = json!({ "properties": { "session": { "type": "string" } } });
        let text = r#"{"session":"theirs","amends_session":"ses_2"}"#;
        let step = read_action("pay", "order", "pay", Some(&schema), Some(&raw(text))).unwrap();
        assert_eq!(step.session(), Some("ses_2"));
        assert!(matches!(step, Wanted::Step { inputs, .. } if inputs.value["session"] == "theirs"));
        let within = json!({ "oneOf": [{ "properties": { "session": {} } }] });
        let step = read_action("pay", "order", "pay", Some(&within), Some(&raw(text))).unwrap();
        assert_eq!(step.session(), Some("ses_2"), "an alternative has that name");
        let refusal = read_action("pay", "order", "pay", None, Some(&raw(r#"{"expect_seq":"x"}"#))).unwrap_err();
        assert_eq!(refusal.details[0].field, "expect_seq");
    }
}
