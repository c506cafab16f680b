//! One pass over a JSON text in chunks, to know enough of it to answer even when it cannot be read.

mod capture;

use serde_json::value::RawValue;

use capture::Capture;

/// How many bytes of an id are kept; a longer one is not answered by.
pub const ID_BYTES_MAX: usize = 256;
/// How many bytes of a method's name are kept.
pub const METHOD_BYTES_MAX: usize = 128;
/// How many bytes of the names of a tool and of a session are kept.
pub const NAMED_BYTES_MAX: usize = 1024;

/// A one-pass scanner over a JSON text fed in chunks: it finds how deep it nests, whether as much is closed as was opened,
/// the top-level members `id` and `method`, wherever they stand, and of a tool's call the tool and the session it names.
///
/// It does not validate; that is the parser's work. It is for the message that is too large, too deep or cut off, and must
/// still be answered by its id.
#[derive(Debug)]
pub struct Scanner {
    depth_max: usize,
    depth: usize,
    deepest: usize,
    place: Place,
    escaped: bool,
    /// How many of the objects it is in are looked into: the outermost, its `params`, and their `arguments`.
    known: usize,
    /// What the next string in the innermost of those is.
    turn: Turn,
    capture: Capture,
}

/// Where the scanner stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the first byte of the value.
    Before,
    /// Inside it, outside a string.
    Inside,
    /// Inside a string.
    String,
    /// After the value.
    After,
    /// After the value, and something stands there that should not.
    Trailing,
}

/// Which part of a member comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Name,
    Value,
}

/// A text that nests deeper than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message nests deeper than {depth_max} levels")]
pub struct TooDeep {
    /// How deep it may nest.
    pub depth_max: usize,
}

/// What a scan found.
#[derive(Debug)]
pub struct Scanned {
    /// The greatest nesting.
    pub depth: usize,
    /// The top-level `id`, if it is a string or a number and not too long.
    pub id: Option<Box<RawValue>>,
    /// The top-level `method`, if it is a string and not too long.
    pub method: Option<String>,
    /// The `name` in its `params`, if it is a string and not too long.
    pub tool: Option<String>,
    /// The `session` among the `arguments` there, or at the top level, if it is a string and not too long.
    pub session: Option<String>,
    /// Whether there is one object, list or string in which as much is closed as was opened, and nothing after it.
    pub whole: bool,
}

impl Scanned {
    /// The top-level `id` as it was written.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref().map(RawValue::get)
    }
}

impl Scanner {
    /// A scanner that objects to more than `depth_max` levels.
    pub fn new(depth_max: usize) -> Self {
        Self {
            depth_max,
            depth: 0,
            deepest: 0,
            place: Place::Before,
            escaped: false,
            known: 0,
            turn: Turn::Name,
            capture: Capture::default(),
        }
    }

    /// Takes the next chunk. After an error it can be fed on, for the sake of the id.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), TooDeep> {
        let mut rest = chunk;
        while !rest.is_empty() {
            let used = if self.place == Place::String { self.in_string(rest) } else { self.outside(rest) };
            rest = &rest[used..];
        }
        if self.deepest > self.depth_max { Err(TooDeep { depth_max: self.depth_max }) } else { Ok(()) }
    }

    /// What was found.
    pub fn finish(mut self) -> Scanned {
        if self.place == Place::Inside {
            self.capture.close_cut();
        }
        Scanned {
            depth: self.deepest,
            id: self.capture.id,
            method: self.capture.method,
            tool: self.capture.tool,
            session: self.capture.session,
            whole: self.place == Place::After,
        }
    }

    /// Runs to the end of the string; returns how many bytes it took.
    fn in_string(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        if self.escaped {
            self.escaped = false;
            at = 1;
        }
        loop {
            let Some(found) = bytes[at..].iter().position(|byte| *byte == b'"' || *byte == b'\\') else {
                self.capture.keep(bytes);
                return bytes.len();
            };
            at += found + 1;
            if bytes[at - 1] == b'"' {
                self.capture.keep(&bytes[..at]);
                self.place = if self.depth == 0 { Place::After } else { Place::Inside };
                self.capture.close_string(self.known);
                return at;
            }
            if at == bytes.len() {
                self.escaped = true;
                self.capture.keep(bytes);
                return at;
            }
            at += 1;
        }
    }

    /// Runs to the start of the next string; returns how many bytes it took.
    fn outside(&mut self, bytes: &[u8]) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            if self.place == Place::Trailing {
                break;
            }
            match byte {
                b'"' => {
                    self.start_value();
                    if self.place == Place::Trailing {
                        break;
                    }
                    if self.is_known() && self.turn == Turn::Name {
                        self.capture.open_name();
                    }
                    self.capture.keep(b"\"");
                    self.place = Place::String;
                    return at + 1;
                }
                b'{' | b'[' => {
                    self.start_value();
                    if self.place == Place::Trailing {
                        break;
                    }
                    if self.depth == self.known {
                        // A nested value is none of those that are kept, but one of them may be in it.
                        let within = self.capture.opens();
                        if *byte == b'{' && (self.depth == 0 || within) {
                            self.known += 1;
                            self.turn = Turn::Name;
                        }
                    }
                    self.depth += 1;
                    self.deepest = self.deepest.max(self.depth);
                }
                b'}' | b']' if self.depth == 0 => self.place = Place::Trailing,
                b'}' | b']' => {
                    if self.is_known() {
                        self.capture.close_member();
                        self.known -= 1;
                        self.turn = Turn::Value;
                    }
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.place = Place::After;
                    }
                }
                b',' if self.is_known() => {
                    self.capture.close_member();
                    self.turn = Turn::Name;
                }
                b':' if self.is_known() => self.turn = Turn::Value,
                b' ' | b'\t' | b'\n' | b'\r' => {}
                _ => {
                    self.start_value();
                    if self.is_known() {
                        self.capture.keep(std::slice::from_ref(byte));
                    }
                }
            }
        }
        bytes.len()
    }

    /// Whether it stands in an object that is looked into, and not deeper.
    const fn is_known(&self) -> bool {
        self.known > 0 && self.depth == self.known
    }

    /// A byte of a value, outside of strings: notes where the text begins, and what stands after its end.
    fn start_value(&mut self) {
        match self.place {
            Place::Before => self.place = Place::Inside,
            Place::After => self.place = Place::Trailing,
            Place::Inside | Place::String | Place::Trailing => {}
        }
    }
}

/// Whether a value can be the id of a request: a string or a number of bounded length.
pub(crate) fn is_id(raw: &RawValue) -> bool {
    let text = raw.get();
    text.len() <= ID_BYTES_MAX && text.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str, chunk: usize) -> Scanned {
        let mut scanner = Scanner::new(64);
        for part in text.as_bytes().chunks(chunk) {
            let _ = scanner.feed(part);
        }
        scanner.finish()
    }

    fn id(text: &str) -> Option<String> {
        let found = scan(text, 4096).id.map(|id| id.get().to_owned());
        for chunk in [1, 2, 3, 7] {
            assert_eq!(scan(text, chunk).id.map(|id| id.get().to_owned()), found, "{text} in chunks of {chunk}");
        }
        found
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"method":"x"}"#).as_deref(), Some("7"));
        assert_eq!(id(r#"{"params":{"id":1,"a":["id",{"id":2}]},"id" : "a\"b" }"#).as_deref(), Some(r#""a\"b""#));
        assert_eq!(id(r#"{"\u0069\u0064":-1.5e3,"x":"id"}"#).as_deref(), Some("-1.5e3"));
        assert_eq!(id(r#"{"a":"\\","id":3}"#).as_deref(), Some("3"));
        assert_eq!(id(r#"{"id":1,"id":2}"#).as_deref(), Some("2"));
        assert_eq!(id(r#"{"id":1,"id":{"id":2}}"#), None);
        assert_eq!(id(&format!(r#"{{"id":1,"id":"{}"}}"#, "x".repeat(300))), None);
        assert_eq!(id(r#"[{"id":1}]"#), None);
        assert_eq!(id(r#"{"id":1} {"id":2}"#).as_deref(), Some("1"));
        assert_eq!(id(r#"{"id":null}"#), None);
        assert_eq!(id(r#"{"id":{"id":1}}"#), None);
        assert_eq!(id(r#"{"x":"id","id":true}"#), None);
        assert_eq!(id(&format!(r#"{{"id":"{}"}}"#, "x".repeat(300))), None);
    }

    #[test]
    fn a_cut_text_still_gives_what_was_complete() {
        assert_eq!(id(r#"{"id":"abc","params":{"x":"#).as_deref(), Some("\"abc\""));
        assert_eq!(id(r#"{"id":"abc""#).as_deref(), Some("\"abc\""));
        assert_eq!(id(r#"{"id":12"#), None);
        assert_eq!(id(r#"{"id":"ab"#), None);
        let cut = scan(r#"{"method":"tools/call","id":1,"params":{"#, 5);
        assert_eq!((cut.method.as_deref(), cut.whole, cut.depth), (Some("tools/call"), false, 2));
    }

    #[test]
    fn what_is_whole_is_told_from_what_is_not() {
        for text in [r#"{"a":[1,2,{"b":"}"}]}"#, " {} ", "[]", "\"x\""] {
            assert!(scan(text, 3).whole, "{text}");
        }
        for text in ["", "{", "{}}", "}{", "{}}x", "{} {}", "{},", "{\"a\":\"", "[[]", "{}\"x\""] {
            assert!(!scan(text, 3).whole, "{text}");
        }
    }

    #[test]
    fn the_tool_and_the_session_of_a_call_are_found_wherever_they_stand() {
        let named = |text: &str| {
            let found = |chunk| {
                let scanned = scan(text, chunk);
                (scanned.tool, scanned.session)
            };
            for chunk in [1, 2, 3, 7] {
                assert_eq!(found(chunk), found(4096), "{text} in chunks of {chunk}");
            }
            found(4096)
        };
        let both = (Some("step".to_owned()), Some("ses_1".to_owned()));
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        let call =
            format!(r#"{{"params":{{"arguments":{{"inputs":{deep},"session":"ses_1"}},"name":"step"}},"id":1}}"#);
        assert_eq!(named(&call), both);
        assert_eq!(named(r#"{"id":1,"params":{"name":"step","arguments":{"session":"ses_1","inputs":{"x":"#), both);
        assert_eq!(named(r#"{"session":"ses_1","inputs":{"name":"other","session":"other"}}"#), (None, both.1.clone()));
        let nothing = (None, None);
        assert_eq!(named(r#"{"name":"step","arguments":{"session":"s"},"x":{"name":"step"}}"#), nothing);
        assert_eq!(named(r#"{"params":[{"name":"step"}],"x":{"arguments":{"session":"s"}}}"#), nothing);
        assert_eq!(named(r#"[{"params":{"name":"step"}}]"#), nothing);
        assert_eq!(named(r#"{"params":{"name":"step"},"params":{"name":7,"arguments":{"session":{}}}}"#), nothing);
        assert_eq!(named(&format!(r#"{{"params":{{"name":"{}"}}}}"#, "x".repeat(2_000))), nothing);
    }

    #[test]
    fn too_deep_is_said_at_once_and_the_id_is_still_found() {
        let text = format!(r#"{{"p":{}{},"id":5}}"#, "[".repeat(100), "]".repeat(100));
        let mut scanner = Scanner::new(64);
        assert_eq!(scanner.feed(text.as_bytes()), Err(TooDeep { depth_max: 64 }));
        let scanned = scanner.finish();
        assert_eq!((scanned.depth, scanned.id.unwrap().get()), (101, "5"));
    }
}
