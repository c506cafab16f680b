//! Canonical JSON (RFC 8785), written into one buffer.
//!
//! Every event of every call is written so, on the path of the call; `serde_json_canonicalizer` gives the same bytes with
//! several allocations for each member, and stands beside this one in the tests.

use std::cmp::Ordering;
use std::io::{self, Error, ErrorKind, Write as _};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

/// The first integer that a double cannot tell from its neighbour: RFC 8785 writes every number as a double.
const INTEGER_END: u128 = 1 << 53;

/// How large a buffer begins; most events fit.
const EVENT_BYTES: usize = 512;

/// Something as canonical JSON.
///
/// Fails on what would come back changed or not at all: an integer that a double does not hold exactly, two members of the
/// same name, raw JSON.
pub(super) fn write(value: &impl Serialize) -> serde_json::Result<String> {
    let out = written(value, Wide::Refused)?;
    String::from_utf8(out).map_err(|_| serde_json::Error::io(invalid("it is not UTF-8")))
}

/// The same, but that every whole number keeps all its digits: two that a double does not tell apart are told apart.
pub(super) fn write_exactly(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    written(value, Wide::Kept)
}

fn written(value: &impl Serialize, wide: Wide) -> serde_json::Result<Vec<u8>> {
    let out = Vec::with_capacity(EVENT_BYTES);
    let mut writing = Writing { out, wide, objects: Vec::new(), members: Vec::new(), sorted: Vec::new() };
    value.serialize(&mut Serializer::with_formatter(io::sink(), &mut writing))?;
    Ok(writing.out)
}

/// What becomes of an integer that a double does not hold exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wide {
    Refused,
    Kept,
}

/// What is written so far. Members are written where they come and put in order when their object ends.
#[derive(Debug)]
struct Writing {
    out: Vec<u8>,
    wide: Wide,
    /// Where the open objects begin, and which of the members is the first of each.
    objects: Vec<(usize, usize)>,
    members: Vec<Member>,
    sorted: Vec<u8>,
}

/// One member of an open object, as a place in what is written.
#[derive(Clone, Copy, Debug)]
struct Member {
    start: usize,
    name_end: usize,
    end: usize,
    /// Whether its name, as written, compares as it should: ASCII without escapes.
    plain: bool,
}

impl Writing {
    fn integer(&mut self, negative: bool, size: u128) -> io::Result<()> {
        if size >= INTEGER_END && self.wide == Wide::Refused {
            return Err(invalid("it holds an integer of 2^53 or more, which canonical JSON cannot keep"));
        }
        if negative {
            self.out.push(b'-');
        }
        write!(self.out, "{size}")
    }

    fn double(&mut self, value: f64) -> io::Result<()> {
        let text = serde_json_canonicalizer::to_string(&value)?;
        if !text.contains(['.', 'e']) && value.abs() >= INTEGER_END as f64 && self.wide == Wide::Refused {
            return Err(invalid("it holds an integer of 2^53 or more, which canonical JSON cannot keep"));
        }
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn begin_member(&mut self) {
        let start = self.out.len();
        self.members.push(Member { start, name_end: start, end: start, plain: false });
    }

    fn end_name(&mut self) {
        if let Some(member) = self.members.last_mut() {
            member.name_end = self.out.len();
            member.plain = self.out[member.start..].iter().all(|byte| byte.is_ascii() && *byte != b'\\');
        }
    }

    fn end_member(&mut self) {
        if let Some(member) = self.members.last_mut() {
            member.end = self.out.len();
        }
    }

    /// Puts the members of the innermost object in the order of their names.
    fn end_object(&mut self) -> io::Result<()> {
        let (start, first) = self.objects.pop().ok_or_else(|| invalid("an object ends that did not begin"))?;
        let (out, members) = (&self.out, &mut self.members[first..]);
        members.sort_unstable_by(|one, other| by_name(out, one, other));
        if members.windows(2).any(|pair| by_name(out, &pair[0], &pair[1]) == Ordering::Equal) {
            return Err(invalid("two members have the same name"));
        }
        self.sorted.clear();
        for (n, member) in members.iter().enumerate() {
            self.sorted.extend((n > 0).then_some(b','));
            self.sorted.extend_from_slice(&out[member.start..member.end]);
        }
        self.out.truncate(start);
        self.out.push(b'{');
        self.out.extend_from_slice(&self.sorted);
        self.out.push(b'}');
        self.members.truncate(first);
        Ok(())
    }
}

/// The order of RFC 8785: by UTF-16 code units, escapes undone. For plain names that is the order of their bytes.
fn by_name(out: &[u8], one: &Member, other: &Member) -> Ordering {
    // Without the quotes: the closing one would come before a longer name's next character, or after it.
    let name = |member: &Member| &out[member.start + 1..member.name_end - 1];
    if one.plain && other.plain {
        return name(one).cmp(name(other));
    }
    let units = |member: &Member| -> Vec<u16> {
        let name: String = serde_json::from_slice(&out[member.start..member.name_end]).unwrap_or_default();
        name.encode_utf16().collect()
    };
    units(one).cmp(&units(other))
}

fn invalid(reason: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, reason)
}

/// Nothing goes to the writer that serde_json holds: an object is in order only once it has ended.
impl Formatter for &mut Writing {
    fn write_null<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.out.write_all(b"null")
    }

    fn write_bool<W: ?Sized + io::Write>(&mut self, _: &mut W, value: bool) -> io::Result<()> {
        self.out.write_all(if value { b"true" } else { b"false" })
    }

    fn write_i8<W: ?Sized + io::Write>(&mut self, _: &mut W, value: i8) -> io::Result<()> {
        self.integer(value < 0, value.unsigned_abs().into())
    }

    fn write_i16<W: ?Sized + io::Write>(&mut self, _: &mut W, value: i16) -> io::Result<()> {
        self.integer(value < 0, value.unsigned_abs().into())
    }

    fn write_i32<W: ?Sized + io::Write>(&mut self, _: &mut W, value: i32) -> io::Result<()> {
        self.integer(value < 0, value.unsigned_abs().into())
    }

    fn write_i64<W: ?Sized + io::Write>(&mut self, _: &mut W, value: i64) -> io::Result<()> {
        self.integer(value < 0, value.unsigned_abs().into())
    }

    fn write_i128<W: ?Sized + io::Write>(&mut self, _: &mut W, value: i128) -> io::Result<()> {
        self.integer(value < 0, value.unsigned_abs())
    }

    fn write_u8<W: ?Sized + io::Write>(&mut self, _: &mut W, value: u8) -> io::Result<()> {
        self.integer(false, value.into())
    }

    fn write_u16<W: ?Sized + io::Write>(&mut self, _: &mut W, value: u16) -> io::Result<()> {
        self.integer(false, value.into())
    }

    fn write_u32<W: ?Sized + io::Write>(&mut self, _: &mut W, value: u32) -> io::Result<()> {
        self.integer(false, value.into())
    }

    fn write_u64<W: ?Sized + io::Write>(&mut self, _: &mut W, value: u64) -> io::Result<()> {
        self.integer(false, value.into())
    }

    fn write_u128<W: ?Sized + io::Write>(&mut self, _: &mut W, value: u128) -> io::Result<()> {
        self.integer(false, value)
    }

    fn write_f32<W: ?Sized + io::Write>(&mut self, _: &mut W, value: f32) -> io::Result<()> {
        self.double(value.into())
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, _: &mut W, value: f64) -> io::Result<()> {
        self.double(value)
    }

    fn write_number_str<W: ?Sized + io::Write>(&mut self, _: &mut W, value: &str) -> io::Result<()> {
        self.double(value.parse().map_err(|_| invalid("it holds a number that is none"))?)
    }

    fn begin_string<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.out.write_all(b"\"")
    }

    fn end_string<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.out.write_all(b"\"")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, _: &mut W, fragment: &str) -> io::Result<()> {
        self.out.write_all(fragment.as_bytes())
    }

    fn write_char_escape<W: ?Sized + io::Write>(&mut self, _: &mut W, escape: CharEscape) -> io::Result<()> {
        match escape {
            CharEscape::Quote => self.out.write_all(b"\\\""),
            CharEscape::ReverseSolidus => self.out.write_all(b"\\\\"),
            CharEscape::Solidus => self.out.write_all(b"/"),
            CharEscape::Backspace => self.out.write_all(b"\\b"),
            CharEscape::FormFeed => self.out.write_all(b"\\f"),
            CharEscape::LineFeed => self.out.write_all(b"\\n"),
            CharEscape::CarriageReturn => self.out.write_all(b"\\r"),
            CharEscape::Tab => self.out.write_all(b"\\t"),
            CharEscape::AsciiControl(byte) => write!(self.out, "\\u{byte:04x}"),
        }
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.out.write_all(b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.out.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, _: &mut W, first: bool) -> io::Result<()> {
        self.out.write_all(if first { b"" } else { b"," })
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        let place = (self.out.len(), self.members.len());
        self.objects.push(place);
        Ok(())
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        Writing::end_object(self)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, _: &mut W, _first: bool) -> io::Result<()> {
        self.begin_member();
        Ok(())
    }

    fn end_object_key<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.end_name();
        Ok(())
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.out.write_all(b":")
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.end_member();
        Ok(())
    }

    fn write_raw_fragment<W: ?Sized + io::Write>(&mut self, _: &mut W, _fragment: &str) -> io::Result<()> {
        Err(invalid("it holds raw JSON, which may not be canonical"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{write, write_exactly};

    /// Numbers that look random and are the same in every run.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % end
        }

        fn text(&mut self) -> String {
            const PARTS: [&str; 20] = [
                "",
                "a",
                "b",
                "ab",
                "A",
                "_",
                "0",
                "é",
                "€",
                "\u{10000}",
                "\u{fb33}",
                "\"",
                "\\",
                "/",
                "\n",
                "\u{1}",
                "\u{7f}",
                "\u{80}",
                "!",
                "#",
            ];
            (0..self.below(4)).map(|_| PARTS[self.below(20) as usize]).collect()
        }

        fn value(&mut self, depth: u64) -> Value {
            match self.below(if depth == 0 { 6 } else { 8 }) {
                0 => Value::Null,
                1 => json!(self.below(2) == 0),
                2 => json!(self.below(1 << 31)),
                3 => json!(-(self.below(1 << 20) as i64)),
                4 => json!(self.below(1 << 30) as f64 / 1024.0 * 10f64.powi(self.below(60) as i32 - 30)),
                5 => json!(self.text()),
                6 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
                _ => Value::Object(self.object(depth - 1)),
            }
        }

        fn object(&mut self, depth: u64) -> Map<String, Value> {
            (0..self.below(7)).map(|_| (self.text(), self.value(depth))).collect()
        }
    }

    #[test]
    fn it_gives_the_bytes_of_the_other_canonicalizer() {
        let (mut dice, mut compared) = (Dice(7), 0);
        for _ in 0..5_000 {
            let value = Value::Object(dice.object(4));
            // What only this one refuses is the topic of another test.
            if let Ok(written) = write(&value) {
                assert_eq!(written, serde_json_canonicalizer::to_string(&value).unwrap());
                assert_eq!(write_exactly(&value).unwrap(), written.as_bytes());
                compared += 1;
            }
        }
        assert!(compared > 3_000, "{compared}");
    }

    #[test]
    fn members_are_in_the_order_of_utf_16_and_prefixes_come_first() {
        let value =
            json!({ "\u{fb33}": 1, "\u{10000}": 2, "ab": 3, "a": 4, "a!": 5, "\r": 6, "€": { "b": [], "a": {} } });
        let expected = "{\"\\r\":6,\"a\":4,\"a!\":5,\"ab\":3,\"€\":{\"a\":{},\"b\":[]},\"\u{10000}\":2,\"\u{fb33}\":1}";
        assert_eq!(write(&value).unwrap(), expected);
    }

    #[test]
    fn what_would_come_back_changed_is_refused() {
        const END: u64 = 1 << 53;
        assert_eq!(write(&[END - 1]).unwrap(), "[9007199254740991]");
        assert_eq!(write(&[-(END as i64) + 1]).unwrap(), "[-9007199254740991]");
        assert!(write(&[END]).is_err());
        assert!(write(&[-(END as i64)]).is_err());
        assert!(write(&[END as f64]).is_err());
        assert_eq!(write(&[1e300, -0.125, 0.0]).unwrap(), "[1e+300,-0.125,0]");
        let raw = serde_json::value::RawValue::from_string("{}".into()).unwrap();
        assert!(write(&raw).is_err() && write_exactly(&raw).is_err());
    }

    #[test]
    fn whole_numbers_keep_their_digits_where_they_are_kept() {
        let exactly = |text: &str| {
            let value: Value = serde_json::from_str(text).unwrap();
            String::from_utf8(write_exactly(&value).unwrap()).unwrap()
        };
        for text in ["[9007199254740993]", "[-9223372036854775807]", "[18446744073709551615]", "[1731726337000123457]"]
        {
            assert_eq!(exactly(text), text);
        }
        assert_eq!(exactly(r#"{"b": 1.0, "a": 1e19}"#), r#"{"a":10000000000000000000,"b":1}"#);
    }
}
