//! The two members that a scan keeps: `id` and `method`.

use serde_json::value::RawValue;

use super::{ID_BYTES_MAX, METHOD_BYTES_MAX, is_id};

/// How many bytes of a member's name are looked at: enough for `method` written in escapes.
const NAME_BYTES_MAX: usize = 48;

/// The bytes that are being kept, and the members that were.
#[derive(Debug, Default)]
pub(super) struct Capture {
    kept: Kept,
    bytes: Vec<u8>,
    pub(super) id: Option<Box<RawValue>>,
    pub(super) method: Option<String>,
}

/// What the bytes are that are being kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kept {
    #[default]
    Nothing,
    Name,
    Id,
    Method,
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
            Kept::Nothing => return,
            Kept::Name => NAME_BYTES_MAX,
            Kept::Id => ID_BYTES_MAX,
            Kept::Method => METHOD_BYTES_MAX,
        };
        if self.bytes.len() + bytes.len() > max {
            self.kept = Kept::Nothing;
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// A string ended. If it was the name of a member, its value is kept if it is one of the two, and an earlier one of the
    /// same name no longer counts, whatever comes.
    pub(super) fn close_string(&mut self) {
        if self.kept != Kept::Name {
            return;
        }
        let name = serde_json::from_slice::<String>(&self.bytes).unwrap_or_default();
        self.bytes.clear();
        self.kept = match name.as_str() {
            "id" => {
                self.id = None;
                Kept::Id
            }
            "method" => {
                self.method = None;
                Kept::Method
            }
            _ => Kept::Nothing,
        };
    }

    /// What is being kept turned out to be nothing to keep.
    pub(super) fn drop(&mut self) {
        self.kept = Kept::Nothing;
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
            Kept::Nothing | Kept::Name => {}
        }
    }

    /// The text ended within a member. A string that was closed is complete all the same; a number may have gone on.
    pub(super) fn close_cut(&mut self) {
        if self.bytes.len() > 1 && self.bytes.last() == Some(&b'"') {
            self.close_member();
        }
    }
}
