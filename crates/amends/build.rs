//! Packs the table of addresses that the loader fills in at the start: plain, it is two megabytes that are read once.

use std::process::Command;

/// The first version of the C library that understands a packed table.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    // Only here is it known which C library the program will meet.
    let at_home = of("HOST") == of("TARGET") && of("CARGO_CFG_TARGET_OS") == "linux";
    if at_home && of("CARGO_CFG_TARGET_ENV") == "gnu" && of("PROFILE") == "release" && c_library() >= Some(PACKED_SINCE)
    {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn c_library() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = said.split_whitespace().nth(1)?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
