//! How the program is linked so that little of it is in memory: functions that are used lie next to each other, and the table of
//! addresses that the loader fills in at the start is packed.

use std::process::Command;

/// The first version of the C library that understands a packed table.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=warm.ld");
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    let on_gnu = of("CARGO_CFG_TARGET_OS") == "linux" && of("CARGO_CFG_TARGET_ENV") == "gnu";
    if !on_gnu || of("HOST") != of("TARGET") || of("PROFILE") != "release" {
        return;
    }
    // Only here is it known which C library the program will meet.
    if c_library() >= Some(PACKED_SINCE) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // The names in the list are those of this architecture, and a linker that somebody chose may not read it.
    let chosen = !of("RUSTC_LINKER").is_empty() || of("CARGO_ENCODED_RUSTFLAGS").contains("link");
    if of("CARGO_CFG_TARGET_ARCH") == "x86_64" && !chosen {
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}/warm.ld", of("CARGO_MANIFEST_DIR"));
    }
}

fn c_library() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = said.split_whitespace().nth(1)?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
