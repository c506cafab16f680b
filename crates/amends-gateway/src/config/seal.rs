//! The key that seals payloads: where it is read from, and how its file is made.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use amends_ledger::{Error, Vault, new_key};

use super::{KeySource, LedgerConfig};
use crate::key::make_once;

impl LedgerConfig {
    /// The vault of this ledger. The key's file is made where there is none and the default names it.
    pub(crate) fn vault(&self) -> Result<Vault, Error> {
        Ok(self.keys()?.taking_unsealed(self.takes_unsealed))
    }

    fn keys(&self) -> Result<Vault, Error> {
        match &self.sealing_key {
            None => Ok(Vault::unlocked()),
            Some(KeySource::Env(name)) => {
                let keys = std::env::var(name)
                    .map_err(|_| unavailable(format!("the sealing key's variable `{name}` is not set")))?;
                parse(&keys, &format!("the sealing key in `{name}`"))
            }
            Some(KeySource::File(path)) => {
                let ours = Self::at(self.place.clone()).sealing_key == self.sealing_key;
                let keys = read_or_make(path, ours).map_err(|error| {
                    unavailable(format!("the sealing key `{}` cannot be read: {error}", path.display()))
                })?;
                parse(&keys, &format!("the sealing key `{}`", path.display()))
            }
        }
    }

    /// What is worth knowing of how payloads rest, in a sentence; nothing where they are sealed or do not rest at all.
    pub fn unsealed(&self) -> Option<String> {
        let rests = !matches!(self.place, super::LedgerPlace::Memory);
        (rests && self.sealing_key.is_none())
            .then(|| "no `ledger.sealing_key`: arguments and answers rest in the ledger as they are".to_owned())
    }
}

fn parse(keys: &str, what: &str) -> Result<Vault, Error> {
    Vault::parse(keys).map_err(|error| unavailable(format!("{what} is of no use: {error}")))
}

fn read_or_make(path: &Path, make: bool) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && make => {
            make_once(path, &new_key().map_err(io::Error::other)?)
        }
        read => read,
    }
}

fn unavailable(reason: String) -> Error {
    Error::Unavailable { reason }
}

#[cfg(test)]
mod tests {
    use super::super::LedgerPlace;
    use super::*;

    fn config(folder: &Path) -> LedgerConfig {
        LedgerConfig::at(LedgerPlace::Sqlite(folder.join("amends.db")))
    }

    #[test]
    fn the_default_file_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        assert!(config(folder.path()).vault().unwrap().is_locked());
        let path = folder.path().join("amends.db.seal");
        let key = fs::read_to_string(&path).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(config(folder.path()).vault().unwrap().is_locked());
        assert_eq!(fs::read_to_string(&path).unwrap(), key);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn of_many_that_make_it_at_once_all_read_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let keys: Vec<String> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..8).map(|_| scope.spawn(|| read_or_make(&path, true).unwrap())).collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0] && Vault::parse(key).is_ok()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_somebody_named_is_not_made_and_nonsense_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my.key");
        let named = LedgerConfig { sealing_key: Some(KeySource::File(path.clone())), ..config(folder.path()) };
        assert!(matches!(named.vault(), Err(Error::Unavailable { .. })));
        assert!(!path.exists());
        fs::write(&path, "hunter2\n").unwrap();
        let refused = named.vault().unwrap_err().to_string();
        assert!(refused.contains("my.key") && refused.contains("line 1") && !refused.contains("hunter2"), "{refused}");
        let unset = LedgerConfig { sealing_key: Some(KeySource::Env("AMENDS_NO_SUCH_KEY".into())), ..named };
        assert!(unset.vault().unwrap_err().to_string().contains("AMENDS_NO_SUCH_KEY"));
    }
}
