//! What the pages and manifests say is so: examples settle, links lead somewhere, arrows point one way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use amends_gateway::{Config, ConfigError};

/// Which of our crates each one may depend on.
const ARROWS: [(&str, &[&str]); 6] = [
    ("amends-core", &[]),
    ("amends-wire", &["amends-core"]),
    ("amends-ledger", &["amends-core"]),
    ("amends-gateway", &["amends-core", "amends-wire", "amends-ledger"]),
    ("amends-sim", &["amends-core", "amends-wire", "amends-ledger"]),
    ("amends", &["amends-core", "amends-ledger", "amends-gateway", "amends-sim"]),
];

/// Folders of one machine, and hosts that hand out packages. Lock files name neither. Written in parts, so that this file does
/// not name them either.
const FOREIGN: [[&str; 2]; 9] = [
    ["/wo", "rk/"],
    ["/ro", "ot/"],
    ["registry.npm", "js.org"],
    ["registry.yarn", "pkg.com"],
    ["python", "hosted.org"],
    ["pypi", ".org"],
    ["index.cra", "tes.io"],
    ["static.cra", "tes.io"],
    ["arti", "factory"],
];

const SOURCE_LINES_MAX: usize = 600;

#[test]
fn every_example_configuration_settles() {
    let ours = |file: &PathBuf| file.starts_with("examples") && !file.starts_with("examples/clients");
    let ends = |file: &PathBuf, with: &str| file.to_string_lossy().ends_with(with);
    let other = |file: &PathBuf| ends(file, ".scenario.toml") || ends(file, ".cases.toml");
    let examples = files().into_iter().filter(|file| ours(file) && is(file, "toml") && !other(file));
    let mut seen = 0;
    for file in examples {
        seen += 1;
        settles(&root().join(&file)).unwrap_or_else(|error| panic!("{}: {}", file.display(), chain(&error)));
    }
    assert!(seen > 0, "there are no examples");
    settles(&root().join("crates/amends/src/cli/demo.toml")).expect("the demo's configuration settles");
}

#[test]
fn every_configuration_on_a_page_settles() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut seen = 0;
    for page in pages() {
        for (line, block) in blocks(&read(&page), "toml") {
            seen += 1;
            let file = folder.path().join(format!("{seen}.toml"));
            fs::write(&file, block).expect("it can be written");
            settles(&file).unwrap_or_else(|error| panic!("{}:{line}: {}", page.display(), chain(&error)));
        }
    }
    assert!(seen > 0, "no page shows a configuration");
}

#[test]
fn every_scenario_in_the_examples_and_on_a_page_goes_as_it_is_written() {
    let amends = |folder: &Path, files: &[PathBuf]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_amends"));
        let told = command.args(["machine", "test"]).args(files).current_dir(folder).output().expect("it runs");
        let said = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(told.status.success(), "{said}{}", String::from_utf8_lossy(&told.stderr));
    };
    let written = |file: &PathBuf| file.to_string_lossy().ends_with(".scenario.toml");
    let examples: Vec<PathBuf> = files().into_iter().filter(written).collect();
    assert!(examples.len() > 8, "{examples:?}");
    amends(&root(), &examples);

    let page = read(Path::new("docs/machines.md"));
    let folder = tempfile::tempdir().expect("a folder can be made");
    let scenarios = blocks(&page, "toml scenario");
    assert!(!scenarios.is_empty(), "the page shows no scenario");
    fs::write(folder.path().join("amends.toml"), &blocks(&page, "toml")[0].1).expect("it can be written");
    for (n, (_, scenario)) in scenarios.iter().enumerate() {
        let file = PathBuf::from(format!("{n}.scenario.toml"));
        fs::write(folder.path().join(&file), scenario).expect("it can be written");
        amends(folder.path(), &[file]);
    }
}

#[test]
fn json_in_examples_and_on_pages_can_be_read() {
    for file in files().into_iter().filter(|file| file.starts_with("examples") && is(file, "json")) {
        let read: Result<serde_json::Value, _> = serde_json::from_str(&read(&file));
        assert!(read.is_ok(), "{}: {read:?}", file.display());
    }
    for page in pages() {
        for (line, block) in blocks(&read(&page), "json") {
            let read: Result<serde_json::Value, _> = serde_json::from_str(&block);
            assert!(read.is_ok(), "{}:{line}: {read:?}", page.display());
        }
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    for page in pages() {
        let folder = page.parent().unwrap_or(Path::new("")).to_owned();
        for target in links(&read(&page)) {
            let path = target.split('#').next().unwrap_or("");
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            assert!(root().join(&folder).join(path).exists(), "{}: `{target}` leads nowhere", page.display());
        }
    }
}

#[test]
fn dependencies_between_our_crates_point_one_way() {
    for entry in fs::read_dir(root().join("crates")).expect("the crates are there") {
        let manifest = entry.expect("it can be listed").path().join("Cargo.toml");
        let Ok(text) = fs::read_to_string(&manifest) else {
            continue;
        };
        let manifest: toml::Table = toml::from_str(&text).expect("a manifest is TOML");
        let name = manifest["package"]["name"].as_str().expect("a crate has a name").to_owned();
        let (_, allowed) = ARROWS
            .iter()
            .find(|(known, _)| *known == name)
            .unwrap_or_else(|| panic!("`{name}` is a new crate; say what it may know"));
        for dependency in dependencies(&manifest).filter(|dependency| dependency.starts_with("amends")) {
            assert!(allowed.contains(&dependency.as_str()), "`{name}` must not depend on `{dependency}`");
        }
    }
}

#[test]
fn no_file_names_a_machine_or_a_package_host() {
    for file in files() {
        let Ok(text) = fs::read_to_string(root().join(&file)) else {
            continue;
        };
        for foreign in FOREIGN.map(|parts| parts.concat()) {
            let line = text.lines().position(|line| line.contains(&foreign));
            assert_eq!(line, None, "{} names `{foreign}`, counting lines from 0", file.display());
        }
    }
}

#[test]
fn no_source_file_has_grown_too_long_to_hold_in_the_head() {
    let sources = ["rs", "py", "mjs", "js", "ts", "html", "css", "sh"];
    for file in files().into_iter().filter(|file| sources.iter().any(|kind| is(file, kind))) {
        let lines = read(&file).lines().count();
        assert!(lines <= SOURCE_LINES_MAX, "{} has {lines} lines; look for the second noun in it", file.display());
    }
}

/// Settles a configuration the way the command that reads it does.
fn settles(file: &Path) -> Result<Config, ConfigError> {
    let wraps = fs::read_to_string(file).is_ok_and(|text| text.contains("[upstreams.wrapped]"));
    if wraps { Config::load_wrap(file) } else { Config::load(file) }
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

/// What a crate needs to be built and used, on every target. What only its tests need may point anywhere.
fn dependencies(manifest: &toml::Table) -> impl Iterator<Item = String> {
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let tables = targets.filter_map(|(_, target)| target.as_table()).chain([manifest]);
    let kinds = tables.flat_map(|table| [table.get("dependencies"), table.get("build-dependencies")]);
    let named = kinds.flatten().filter_map(toml::Value::as_table).flat_map(|table| table.keys().cloned());
    named.collect::<Vec<_>>().into_iter()
}

/// The fenced blocks of that language, each with the line it starts at.
fn blocks(page: &str, language: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, bool, String)> = None;
    for (n, line) in page.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(word), None) => open = Some((n + 1, word.trim() == language, String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take().filter(|block| block.1).map(|(at, _, text)| (at, text))),
            (None, Some((_, _, text))) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Where the links and pictures of a page lead, code left out.
fn links(page: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut code = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        let spans = line.split('`').step_by(2).collect::<Vec<_>>().join("x");
        let targets = spans.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
        links.extend(targets.filter(|_| !code).map(str::to_owned));
    }
    links
}

fn pages() -> Vec<PathBuf> {
    files().into_iter().filter(|file| is(file, "md")).collect()
}

fn is(file: &Path, kind: &str) -> bool {
    file.extension().is_some_and(|extension| extension == kind)
}

fn read(file: &Path) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of the project, from its root: what git knows or would take, else everything that is not built or fetched.
fn files() -> Vec<PathBuf> {
    let listed = Command::new("git").args(["ls-files", "-z", "-co", "--exclude-standard"]).current_dir(root()).output();
    let mut files: Vec<PathBuf> = match listed {
        Ok(listed) if listed.status.success() => {
            let text = String::from_utf8_lossy(&listed.stdout).into_owned();
            text.split('\0').filter(|path| !path.is_empty()).map(PathBuf::from).collect()
        }
        _ => Vec::new(),
    };
    if files.is_empty() {
        walk(Path::new(""), &mut files);
    }
    files.retain(|file| root().join(file).is_file());
    files
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let made = ["target", "node_modules", ".git", ".venv", "__pycache__"];
    for entry in fs::read_dir(root().join(folder)).expect("a folder can be listed").flatten() {
        let path = folder.join(entry.file_name());
        if made.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        match entry.path().is_dir() {
            true => walk(&path, files),
            false => files.push(path),
        }
    }
}

#[test]
fn nothing_is_ignored_where_calls_are_decided_and_driven_without_a_reason() {
    let mut bare = Vec::new();
    for folder in ["crates/amends-core/src", "crates/amends-gateway/src/driver", "crates/amends-ledger/src"] {
        let sources: Vec<PathBuf> =
            files().into_iter().filter(|path| path.starts_with(folder) && is(path, "rs")).collect();
        assert!(sources.len() > 10, "{folder} has {} files", sources.len());
        for path in sources {
            let text = read(&path);
            // Tests, at the foot of a file, decide nothing.
            let lines: Vec<&str> = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).collect();
            for (n, line) in lines.iter().enumerate() {
                let reasoned = lines[n.saturating_sub(4)..=n].iter().any(|line| line.contains("//"));
                if line.contains("let _ =") && !reasoned {
                    bare.push(format!("{}:{}", path.display(), n + 1));
                }
            }
        }
    }
    assert!(bare.is_empty(), "an error is ignored without a word on why: {bare:#?}");
}

#[test]
fn most_of_what_is_listed_as_warm_is_still_there() {
    let sources = |name: &str| -> String {
        let folder = Path::new("crates").join(name.replace('_', "-")).join("src");
        files().iter().filter(|file| file.starts_with(&folder) && is(file, "rs")).map(|file| read(file)).collect()
    };
    let crates: Vec<(String, String)> =
        ARROWS.iter().map(|(name, _)| name.replace('-', "_")).map(|name| (name.clone(), sources(&name))).collect();
    let listed = read(Path::new("crates/amends/warm.ld"));
    let ours: Vec<_> = listed.lines().filter_map(|line| line.strip_prefix(".text._R").and_then(named)).collect();
    let ours: Vec<_> = ours
        .iter()
        .filter_map(|parts| {
            Some((parts, &crates.iter().find(|(name, _)| Some(name.as_str()) == parts.first().copied())?.1))
        })
        .collect();
    let is_there =
        |parts: &[&str], source: &str| parts.last().is_some_and(|function| source.contains(&format!("fn {function}")));
    let gone: Vec<_> =
        ours.iter().filter(|(parts, source)| !is_there(parts, source)).map(|(parts, _)| parts.join("::")).collect();
    assert!(ours.len() > 500, "only {} functions of ours are listed", ours.len());
    assert!(gone.len() * 10 < ours.len(), "bench/warm/list.py has to be run again; gone are {gone:#?}");
}

/// The parts of the name of a function, or of what is inside of one, as the compiler writes it: its crate, the modules, the function.
fn named(name: &str) -> Option<Vec<&str>> {
    let name = name.strip_prefix("NC").unwrap_or(name);
    let mut rest = name.strip_prefix("NvN").or(name.strip_prefix("NvM"))?;
    let mut parts = Vec::new();
    while let Some(first) = rest.chars().next() {
        // What tells crates apart, what tells equal names apart, and what points back in the name.
        if let Some(after) = rest.strip_prefix("Cs*_").or(rest.strip_prefix("B*_")) {
            // The last crate is the one that the function is compiled in.
            if rest.starts_with('C') && !parts.is_empty() {
                break;
            }
            rest = after;
        } else if first == 's' {
            rest = rest.split_once('_')?.1;
        } else if first.is_ascii_digit() {
            let (digits, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
            let after = after.strip_prefix('_').unwrap_or(after);
            let Some((part, after)) = digits.parse().ok().and_then(|length| after.split_at_checked(length)) else {
                break;
            };
            parts.push(part);
            rest = after;
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    parts.retain(|part| !part.is_empty());
    (parts.len() > 1).then_some(parts)
}
