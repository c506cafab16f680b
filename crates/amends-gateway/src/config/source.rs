//! A configuration file's text, and where in it each key stands.

use std::path::{Path, PathBuf};

use amends_core::machine::Finding;
use toml::de::{DeTable, DeValue};

use super::{Config, ConfigError, Fragment, Released, Spec, settle};

/// A configuration file's text.
#[derive(Clone, Debug)]
pub struct Source {
    origin: String,
    text: String,
    folder: PathBuf,
}

impl Source {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { folder, ..Self::of(text, &path.display().to_string()) })
    }

    /// A text that is no file. `origin` stands for it in what is said about it.
    pub fn of(text: String, origin: &str) -> Self {
        Self { origin: origin.to_owned(), text, folder: PathBuf::new() }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What stands for it in what is said about it.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// What it says.
    pub fn settle(&self) -> Result<Config, ConfigError> {
        self.settled(Spec::parse(&self.text, &self.origin)?)
    }

    /// What it says, where the wrapped server's command is given elsewhere.
    pub fn settle_wrap(&self) -> Result<Config, ConfigError> {
        self.settled(self.wrapping()?)
    }

    /// The same without its machines.
    pub fn settle_beside_machines(&self) -> Result<Config, ConfigError> {
        self.settled(Spec { machines: Default::default(), ..self.wrapping()? })
    }

    fn wrapping(&self) -> Result<Spec, ConfigError> {
        let mut spec = Spec::parse(&self.text, &self.origin)?;
        if let Some(wrapped) = spec.upstreams.get_mut("wrapped") {
            wrapped.command.get_or_insert_with(|| vec!["wrapped".into()]);
        }
        Ok(spec)
    }

    /// What it would say if those rules were released in the place of what it names as its release. Nothing where it names
    /// none.
    pub fn settle_released(&self, rules: &Fragment) -> Result<Option<Config>, ConfigError> {
        let mut spec = self.wrapping()?;
        if spec.playbook.release.take().is_none() {
            return Ok(None);
        }
        rules.lay_over(&mut spec)?;
        self.settled(spec).map(Some)
    }

    /// The released rules are laid over what was written; a mistake that is found after that gets its line here.
    fn settled(&self, mut spec: Spec) -> Result<Config, ConfigError> {
        let release = spec.playbook.release.as_ref().map(|file| Released::read(&self.folder.join(file))).transpose()?;
        if let Some(released) = &release {
            released.rules.lay_over(&mut spec)?;
        }
        spec.look_beside(&self.folder);
        let settled = settle(spec).map_err(|error| match &release {
            Some(released) if error.key().is_some_and(|key| released.rules.source().has(&key)) => {
                released.rules.source().placed(error)
            }
            _ => self.placed(error),
        });
        Ok(settled?.released(release))
    }

    /// The same mistake with the line it is in, where that is known.
    pub(super) fn placed(&self, error: ConfigError) -> ConfigError {
        let error = match error {
            ConfigError::Machines(wrong) => return ConfigError::Machines(wrong.placed(self)),
            ConfigError::Cycle { key, tool, path, .. } => {
                let place = self.line(&key).map(|line| (self.origin.clone(), line));
                return ConfigError::Cycle { place, key, tool, path };
            }
            error => error,
        };
        match error.key().and_then(|key| self.line(&key)) {
            Some(line) => ConfigError::Malformed { origin: self.origin.clone(), line, reason: error.to_string() },
            None => error,
        }
    }

    /// Whether that section or key is written.
    pub fn has(&self, key: &str) -> bool {
        let Ok(document) = DeTable::parse(&self.text) else { return false };
        let mut whole = false;
        find(document.get_ref(), key, None, &mut whole);
        whole
    }

    /// The line of a key, or of the nearest section around it that is written.
    pub fn line(&self, key: &str) -> Option<usize> {
        self.lines()(key)
    }

    /// What is found in its machines, each with its line where that is known, in their order.
    pub fn in_order(&self, found: impl IntoIterator<Item = Finding>) -> Vec<(Option<usize>, Finding)> {
        let line = self.lines();
        let mut placed: Vec<_> = found.into_iter().map(|finding| (line(&finding.key()), finding)).collect();
        placed.sort_by_key(|(line, _)| line.unwrap_or(usize::MAX));
        placed
    }

    /// The same for many keys: the text is read once.
    pub fn lines(&self) -> impl Fn(&str) -> Option<usize> + '_ {
        let document = DeTable::parse(&self.text).ok();
        let breaks: Vec<usize> = self.text.match_indices('\n').map(|(at, _)| at).collect();
        move |key| {
            let at = find(document.as_ref()?.get_ref(), key, None, &mut false)?;
            Some(breaks.partition_point(|end| *end < at) + 1)
        }
    }
}

/// Where the last part of a dotted path begins that is written, and whether that is the whole path. A name may itself have
/// dots in it.
fn find(table: &DeTable<'_>, path: &str, nearest: Option<usize>, whole: &mut bool) -> Option<usize> {
    let entry = table
        .iter()
        .filter_map(|(name, value)| Some((name, value, beyond(path, name.get_ref())?)))
        .max_by_key(|(name, ..)| name.get_ref().len());
    let Some((name, value, rest)) = entry else { return nearest };
    find_in(value.get_ref(), rest, Some(name.span().start), whole)
}

/// The same of what stands under a key, or in a list.
fn find_in(value: &DeValue<'_>, path: &str, here: Option<usize>, whole: &mut bool) -> Option<usize> {
    match value {
        _ if path.is_empty() => *whole = true,
        DeValue::Table(inner) => return find(inner, path, here, whole),
        DeValue::Array(items) => {
            let item = items.iter().enumerate().find_map(|(n, item)| Some((item, item_at(n, item.get_ref(), path)?)));
            if let Some((item, rest)) = item {
                return find_in(item.get_ref(), rest, Some(item.span().start), whole);
            }
        }
        _ => {}
    }
    here
}

/// What is left of a path behind an item of a list: it is named by its number, or by the name it has in there.
fn item_at<'p>(n: usize, item: &DeValue<'_>, path: &'p str) -> Option<&'p str> {
    let name = match item {
        DeValue::Table(item) => item.get("as").or_else(|| item.get("tool")).and_then(|name| name.get_ref().as_str()),
        _ => None,
    };
    name.and_then(|name| beyond(path, name)).or_else(|| beyond(path, &n.to_string()))
}

/// What is left of a path behind that name.
fn beyond<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    match path.strip_prefix(name)? {
        "" => Some(""),
        rest => rest.strip_prefix('.'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_its_path_and_an_unwritten_one_by_its_section() {
        let text = "[tools.pay]\neffect = \"write\"\n\n[tools.\"a.b\".retry.class.ToolTransient]\nmax_attempts = 2\n";
        let source = Source::of(text.to_owned(), "test");
        assert_eq!(source.line("tools.pay.effect"), Some(2));
        assert_eq!(source.line("tools.pay.key"), Some(1));
        assert_eq!(source.line("tools.a.b.retry.class.ToolTransient"), Some(4));
        assert_eq!(source.line("tools.a.b.retry.class.ToolTransient.max_attempts"), Some(5));
        assert_eq!(source.line("retry.class.X"), None);
    }

    #[test]
    fn an_item_of_a_list_is_found_by_its_number_or_its_name() {
        let text = "[a]\nlegs = [\n  { tool = \"get\" },\n  { tool = \"get\", as = \"two\", args = {\n    n = \"x\" } },\n]\n\
                    [[a.to]]\nwhen = \"p\"\n\n[[a.to]]\nwhen = \"q\"\n[[a.to]]\nstate = \"z\"\n";
        let source = Source::of(text.to_owned(), "test");
        for (key, line) in [
            ("a.legs", 2),
            ("a.legs.0", 3),
            ("a.legs.two", 4),
            ("a.legs.1.args", 4),
            ("a.legs.two.args.n", 5),
            ("a.legs.9", 2),
            ("a.to.1.when", 11),
            ("a.to.1", 10),
            ("a.to.2.when", 12),
        ] {
            assert_eq!(source.line(key), Some(line), "{key}");
        }
    }

    #[test]
    fn what_is_refused_is_refused_with_its_line() {
        for (text, says) in [
            ("[tools.a]\n\neffect = \"keyed\"", "test:1: `tools.a.key`"),
            (
                "\n[retry.verdict.in_doubt]\nmax_attempts = 2",
                "test:2: `retry.verdict.in_doubt`: `retry_with_backoff` on",
            ),
            (
                "\n\n[retry.class.ProviderTransient]\nmax_attempts = 99",
                "test:4: `retry.class.ProviderTransient`: `max_at",
            ),
            (
                "[tools.a]\n[tools.a.retry.class.ToolTerminal]\nretryable = true",
                "test:2: `tools.a.retry.class.ToolTerm",
            ),
            ("[tools.a.playbook.in_doubt]\ncompensation = \"wait\"", "test:1: `tools.a.playbook.in_doubt`: `wait` on"),
        ] {
            let refused = Source::of(text.to_owned(), "test").settle().unwrap_err().to_string();
            assert!(refused.starts_with(says), "{refused}");
        }
    }
}
