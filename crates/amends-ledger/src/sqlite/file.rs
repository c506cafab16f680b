//! The file of a ledger.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The file of a ledger that is open, so that it is noticed when another one, or none, is there in its place.
///
/// A deleted file can be written to for as long as it is open. A process that went on doing so would not see the claims of
/// those that came later, and they not its own.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    identity: Identity,
}

impl File {
    /// The file that is there.
    pub(super) fn at(path: &Path) -> Result<Self, Error> {
        let identity = identify(path).map_err(|error| Error::Unavailable { reason: error.to_string() })?;
        Ok(Self { path: path.to_owned(), identity })
    }

    /// Fails if it is not the file that was opened.
    pub(super) fn still_there(&self) -> Result<(), Error> {
        match identify(&self.path) {
            Ok(identity) if identity == self.identity => Ok(()),
            Ok(_) => Err(Error::Unavailable { reason: "another file is in the ledger's place".into() }),
            Err(error) => Err(Error::Unavailable { reason: format!("the ledger's file cannot be found: {error}") }),
        }
    }
}

/// Makes an empty file that only its owner can read, unless there is a file already.
pub(super) fn make(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(unix)]
fn identify(path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
type Identity = ();

#[cfg(not(unix))]
fn identify(path: &Path) -> io::Result<Identity> {
    fs::metadata(path).map(drop)
}
