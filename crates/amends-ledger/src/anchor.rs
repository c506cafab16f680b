//! The anchor: a file that checkpoints are appended to and that is meant to be carried elsewhere.
//!
//! The file is only ever appended to, a note and an empty line at a time. A crash may leave half a note at its end; the
//! next append closes it with an empty line and writes the note again in full.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::log::Checkpoint;
use crate::note::is_whole;

/// How much of the end is read to find the last note; notes are a few hundred bytes long.
const TAIL_BYTES: u64 = 64 << 10;

/// What is in an anchor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// The notes, in order.
    pub notes: Vec<String>,
    /// Pieces that are neither notes nor what a crash leaves behind.
    pub debris: Vec<String>,
}

impl Anchor {
    /// Reads a whole file.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(Self::parse(&String::from_utf8_lossy(&std::fs::read(path)?)))
    }

    /// Reads the text of one.
    pub fn parse(text: &str) -> Self {
        let mut anchor = Self::default();
        // What was begun and not finished: a crash's work if the next note begins with it.
        let mut torn: Option<String> = None;
        // Half of a character is as good as none of it.
        let text = text.replace(char::REPLACEMENT_CHARACTER, "");
        let mut pieces = blocks(&text).into_iter().peekable();
        while let Some(block) = pieces.next() {
            let signed = pieces.next_if(|next| next.starts_with('—'));
            let whole = signed.map(|signatures| format!("{block}\n{signatures}"));
            let note = whole.as_ref().filter(|note| is_whole(note) && Checkpoint::unchecked(note).is_ok());
            let is_torn = |torn: &String| note.is_some_and(|note| note.starts_with(torn.trim_end_matches('\n')));
            anchor.debris.extend(torn.take().filter(|torn| !is_torn(torn)));
            match (note, &whole) {
                // One that lacked nothing but its line break was written twice.
                (Some(note), _) if anchor.notes.last() == Some(note) => {}
                (Some(note), _) => anchor.notes.push(note.clone()),
                (None, Some(whole)) => torn = Some(whole.clone()),
                (None, None) => torn = Some(block),
            }
        }
        anchor
    }
}

/// The last note of a file; nothing where there is no file or no note in it.
pub fn last(path: &Path) -> io::Result<Option<String>> {
    match File::open(path) {
        Ok(mut file) => Ok(tail(&mut file)?.notes.pop()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Appends a note, unless the file ends with one that covers as much, and has it on the disk. Several processes may do so
/// at once. Says whether it was appended.
pub fn append(path: &Path, note: &str, size: u64) -> io::Result<bool> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    file.lock()?;
    let covered = tail(&mut file)?.notes.pop().and_then(|last| Checkpoint::unchecked(&last).ok());
    if covered.is_some_and(|last| last.size >= size) {
        return Ok(false);
    }
    let length = file.seek(SeekFrom::End(0))?;
    let mut ending = [0; 2];
    if length >= 2 {
        file.seek(SeekFrom::End(-2))?;
        file.read_exact(&mut ending)?;
    }
    let closing = match (length, &ending) {
        (0, _) | (_, b"\n\n") => "",
        (_, [_, b'\n']) => "\n",
        _ => "\n\n",
    };
    file.write_all(format!("{closing}{note}\n").as_bytes())?;
    file.sync_all()?;
    Ok(true)
}

fn tail(file: &mut File) -> io::Result<Anchor> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Anchor::parse(&String::from_utf8_lossy(&bytes)))
}

/// Runs of lines without an empty one between them. Each ends with a line break, except where the text does not.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block = String::new();
    for line in text.split_inclusive('\n') {
        if line == "\n" {
            blocks.extend((!block.is_empty()).then(|| std::mem::take(&mut block)));
        } else {
            block.push_str(line);
        }
    }
    blocks.extend((!block.is_empty()).then_some(block));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::NoteKey;

    fn note(size: u64) -> String {
        let key = NoteKey::new("amends/x", &[1; 32]).unwrap();
        Checkpoint { origin: "amends/x".into(), size, root: [size as u8; 32] }.sign(&key)
    }

    #[test]
    fn notes_are_read_back_in_order_and_one_that_covers_no_more_is_not_appended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchor");
        assert_eq!(last(&path).unwrap(), None);
        assert!(append(&path, &note(1), 1).unwrap());
        assert!(append(&path, &note(3), 3).unwrap());
        assert!(!append(&path, &note(3), 3).unwrap());
        assert!(!append(&path, &note(2), 2).unwrap());
        let anchor = Anchor::read(&path).unwrap();
        assert_eq!(anchor, Anchor { notes: vec![note(1), note(3)], debris: Vec::new() });
        assert_eq!(last(&path).unwrap(), Some(note(3)));
    }

    #[test]
    fn a_note_torn_anywhere_is_written_again_and_leaves_no_debris() {
        let folder = tempfile::tempdir().unwrap();
        let whole = format!("{}\n", note(2));
        for cut in 0..whole.len() {
            let path = folder.path().join(cut.to_string());
            assert!(append(&path, &note(1), 1).unwrap());
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            file.write_all(&whole.as_bytes()[..cut]).unwrap();
            assert_eq!(Anchor::read(&path).unwrap().debris, Vec::<String>::new(), "at {cut}");
            append(&path, &note(2), 2).unwrap();
            let anchor = Anchor::read(&path).unwrap();
            assert_eq!(anchor, Anchor { notes: vec![note(1), note(2)], debris: Vec::new() }, "at {cut}");
        }
    }

    #[test]
    fn what_no_crash_leaves_behind_is_debris() {
        let text = format!("{}\nsomething else\n\n{}\n", note(1), note(2));
        let anchor = Anchor::parse(&text);
        assert_eq!(anchor.notes, [note(1), note(2)]);
        assert_eq!(anchor.debris, ["something else\n"]);
    }
}
