//! A span as it is exported.

/// What a span stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Something within this process.
    Internal = 1,
    /// A call that an agent made of us.
    Server = 2,
    /// An attempt at an upstream.
    Client = 3,
}

/// One span, complete.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(super) trace: [u8; 16],
    pub(super) id: [u8; 8],
    pub(super) parent: Option<[u8; 8]>,
    pub(super) state: String,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) start_ms: u64,
    pub(super) end_ms: u64,
    pub(super) attributes: Vec<Attribute>,
    pub(super) events: Vec<SpanEvent>,
    /// How many further events there were.
    pub(super) events_left_out: u32,
    pub(super) failed: bool,
}

/// Something that happened during a span.
#[derive(Clone, Debug)]
pub(super) struct SpanEvent {
    pub(super) name: &'static str,
    pub(super) at_ms: u64,
    pub(super) attributes: Vec<Attribute>,
}

/// A name and what it says.
pub(super) type Attribute = (&'static str, Said);

/// What an attribute says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Word(&'static str),
    Text(String),
    Number(i64),
    Yes,
}

impl From<&'static str> for Said {
    fn from(word: &'static str) -> Self {
        Self::Word(word)
    }
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}
