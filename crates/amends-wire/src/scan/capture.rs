//! The members that a scan keeps: `id` and `method`, and of a call its tool and its session.

use serde_json::value::RawValue;

use super::{ID_BYTES_MAX, METHOD_BYTES_MAX, NAMED_BYTES_MAX, is_id};

/// How many bytes of a member's name are looked at: enough for `arguments` written in escapes.
const NAME_BYTES_MAX: usize = 64;

/// The bytes that are being kept, and the members that were.
#[derive(Debug, Default)]
pub(super) struct Capture {
    kept: Kept,
    bytes: Vec<u8>,
    pub(super) id: Option<Box<RawValue>>,
    pub(super) method: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) session: Option<String>,
}

/// What the bytes are that are being kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kept {
    #[default]
    Nothing,
    Name,
    Id,
    Method,
    Tool,
    Session,
    /// The value of a member in which there are others to keep; it is not kept itself.
    Within,
}

impl Capture {
    /// The name of a member begins.
    pub(super) fn open_name(&mut self) {
        self.kept = Kept::Name;
        self.bytes.clear();
    }

    /// Keeps these bytes, if they belong to something that is kept and is not too long.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        let max = match self.kept {
            Kept::Nothing | Kept::Within => return,
            Kept::Name => NAME_BYTES_MAX,
            Kept::Id => ID_BYTES_MAX,
            Kept::Method => METHOD_BYTES_MAX,
            Kept::Tool | Kept::Session => NAMED_BYTES_MAX,
        };
        if self.bytes.len() + bytes.len() > max {
            self.kept = Kept::Nothing;
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// A string ended. If it was the name of a member of the object that far in, its value is kept if it is one of those, and an
    /// earlier one of the same name no longer counts, whatever comes.
    pub(super) fn close_string(&mut self, level: usize) {
        if self.kept != Kept::Name {
            return;
        }
        let name = serde_json::from_slice::<String>(&self.bytes).unwrap_or_default();
        self.bytes.clear();
        self.kept = match (level, name.as_str()) {
            (1, "id") => {
                self.id = None;
                Kept::Id
            }
            (1, "method") => {
                self.method = None;
                Kept::Method
            }
            (1, "params") => {
                (self.tool, self.session) = (None, None);
                Kept::Within
            }
            (2, "name") => {
                self.tool = None;
                Kept::Tool
            }
            (2, "arguments") => {
                self.session = None;
                Kept::Within
            }
            (1 | 3, "session") => {
                self.session = None;
                Kept::Session
            }
            _ => Kept::Nothing,
        };
    }

    /// A nested value begins, which is nothing to keep. Says whether it is one in which there may be something.
    pub(super) fn opens(&mut self) -> bool {
        std::mem::take(&mut self.kept) == Kept::Within
    }

    /// A member ended. A value that is not a string or a number is dropped; the last of a name counts.
    pub(super) fn close_member(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        let text = std::str::from_utf8(&self.bytes).unwrap_or_default();
        match kept {
            Kept::Id => {
                self.id = RawValue::from_string(text.to_owned()).ok().filter(|raw| is_id(raw));
            }
            Kept::Method => self.method = serde_json::from_str(text).ok(),
            Kept::Tool => self.tool = serde_json::from_str(text).ok(),
            Kept::Session => self.session = serde_json::from_str(text).ok(),
            Kept::Nothing | Kept::Name | Kept::Within => {}
        }
    }

    /// The text ended within a member. A string that was closed is complete all the same; a number may have gone on.
    pub(super) fn close_cut(&mut self) {
        if self.bytes.len() > 1 && self.bytes.last() == Some(&b'"') {
            self.close_member();
        }
    }
}
