//! What policies, allowlists, costs and the sieve for private data do, through the real binary, counted in the shop's book.

#[path = "../support/mod.rs"]
mod support;

mod cost;
mod denial;
mod machine;
mod never;
mod private;
mod tools;

use support::{Gateway, Place};

/// The demo's shop under that configuration and those policies. Everybody may read, or it would not be known to be up.
fn up(place: &Place, more: &str, policies: &str) -> Gateway {
    place.write(
        "policies.cedar",
        &format!("@id(\"reads\") permit (principal, action in Action::\"read\", resource);\n{policies}"),
    );
    let text = format!("[policy]\nfiles = [\"policies.cedar\"]\n{more}");
    up_plain(place, &text)
}

/// The demo's shop under that configuration.
fn up_plain(place: &Place, more: &str) -> Gateway {
    let text = format!(
        "{more}\n[upstreams.shop]\ncommand = [\"amends\"]\nprefix = \"\"\n[tools.get_order]\neffect = \"read\"\n\
         [tools.get_refund]\neffect = \"read\"\n"
    );
    let config = place.write("policy.toml", &text).display().to_string();
    place.up_with("", &["--config", &config])
}
