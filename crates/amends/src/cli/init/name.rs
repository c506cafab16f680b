//! Names for upstreams, made from what servers are started with.

/// The longest name that is made up: it stands before every tool's name.
const NAME_CHARS_MAX: usize = 24;

/// Programs that start another one, which is what the server is.
const STARTERS: [&str; 15] = [
    "npx", "npm", "bunx", "bun", "pnpm", "yarn", "node", "deno", "uvx", "uv", "pipx", "python", "python3", "docker",
    "podman",
];
/// Words of those programs that name nothing.
const FILLERS: [&str; 10] = ["run", "exec", "dlx", "tool", "x", "start", "-m", "mcp-remote", "env", "sh"];

/// Names of scripts and of their folders that say nothing of the server.
const PLAIN: [&str; 11] = ["index", "main", "__main__", "server", "cli", "app", "dist", "build", "lib", "src", "bin"];

/// A name from a command: that of the package, script or image that it starts.
pub(super) fn of_command(command: &[String]) -> String {
    let named = |word: &&String| {
        let base = base(word);
        let variable = word.contains('=') || !word.chars().any(|c| c.is_lowercase());
        !word.starts_with('-') && !STARTERS.contains(&base) && !FILLERS.contains(&base) && !variable
    };
    let word = command.iter().find(named).or(command.first()).map_or("", |word| package(word));
    sound(&shortened(word))
}

/// A name from an address: that of its host.
pub(super) fn of_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default().split(':').next().unwrap_or_default();
    let is_number = host.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '[');
    if is_number || host == "localhost" {
        return "server".to_owned();
    }
    let labels: Vec<&str> = host.split('.').filter(|label| !["www", "mcp", "api"].contains(label)).collect();
    let label = if labels.len() > 1 { labels[labels.len() - 2] } else { labels.first().copied().unwrap_or_default() };
    sound(label)
}

/// The same name in letters that an upstream's name is made of.
pub(super) fn sound(name: &str) -> String {
    let c = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let mended: String = name.trim().chars().map(c).collect();
    let mended: String = mended.trim_matches('-').chars().take(NAME_CHARS_MAX).collect();
    // The name that means a wrapped server must not be taken by chance.
    match mended.as_str() {
        "" => "server".to_owned(),
        "wrapped" => "wrapped-server".to_owned(),
        _ => mended,
    }
}

/// A variable of the environment for a header of an upstream.
pub(super) fn variable(upstream: &str, header: &str) -> String {
    let word = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
    };
    let name = format!("{}_{}", word(upstream), word(header));
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("AMENDS_{name}") } else { name }
}

/// The names made different from each other.
pub(super) fn distinct(names: &mut [&mut String]) {
    for at in 0..names.len() {
        let mut n = 2;
        let wanted = names[at].clone();
        while names[..at].iter().any(|taken| **taken == *names[at]) {
            let stem: String = wanted.chars().take(NAME_CHARS_MAX - 4).collect();
            *names[at] = format!("{stem}-{n}");
            n += 1;
        }
    }
}

/// What a path names: its last part, or the folder of the package where every package calls its script so.
fn package(word: &str) -> &str {
    let parts = word.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).filter(|part| !part.is_empty());
    let stem = |part: &str| part.split('.').next().unwrap_or(part).to_owned();
    let mut parts = parts.skip_while(|part| PLAIN.contains(&stem(part).as_str()));
    parts.next().filter(|part| *part != "." && *part != "..").map_or_else(|| base(word), base)
}

fn base(word: &str) -> &str {
    let last = word.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(word);
    last.strip_suffix(".exe").unwrap_or(last)
}

/// A package's name without what every server's name has in it.
fn shortened(word: &str) -> String {
    // `name@1.2` and `image:tag` name a version as well.
    let bare = word.split(['@', ':']).find(|part| !part.is_empty()).unwrap_or(word);
    let bare =
        [".py", ".js", ".mjs", ".ts", ".rb", ".sh"].iter().find_map(|end| bare.strip_suffix(end)).unwrap_or(bare);
    let mut short = bare;
    for start in ["mcp-server-", "server-", "mcp-"] {
        short = short.strip_prefix(start).unwrap_or(short);
    }
    for end in ["-mcp-server", "-server", "-mcp"] {
        short = short.strip_suffix(end).unwrap_or(short);
    }
    if short.is_empty() { bare.to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> String {
        of_command(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn names_say_what_the_server_is() {
        assert_eq!(command("npx -y @modelcontextprotocol/server-filesystem /tmp"), "filesystem");
        assert_eq!(command("uvx mcp-server-git --repository x"), "git");
        assert_eq!(command("python3 shop.py"), "shop");
        assert_eq!(command("node /x/node_modules/@modelcontextprotocol/server-everything/dist/index.js"), "everything");
        assert_eq!(command("python3 /srv/till/src/server.py"), "till");
        assert_eq!(command("python3 server.py"), "server");
        assert_eq!(command("node ./dist/index.js"), "index");
        assert_eq!(command("docker run -i --rm -e GITHUB_TOKEN ghcr.io/github/github-mcp-server"), "github");
        assert_eq!(command("/usr/bin/amends"), "amends");
        assert_eq!(command("node"), "node");
        assert_eq!(of_url("https://mcp.linear.app/mcp"), "linear");
        assert_eq!(of_url("http://127.0.0.1:9/mcp"), "server");
        assert_eq!(of_url(""), "server");
        assert_eq!(sound("a b\"\n[c]"), "a-b---c");
        assert_eq!(sound("wrapped"), "wrapped-server");
        assert_eq!(variable("shop", "X-Api-Key"), "SHOP_X_API_KEY");
    }

    #[test]
    fn names_that_are_taken_get_a_number() {
        let (mut a, mut b, mut c) = ("shop".to_owned(), "shop".to_owned(), "shop".to_owned());
        distinct(&mut [&mut a, &mut b, &mut c]);
        assert_eq!([a.as_str(), b.as_str(), c.as_str()], ["shop", "shop-2", "shop-3"]);
    }
}
