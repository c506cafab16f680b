//! The faults of the demo, with order ids as cues.

/// The script behind `amends shop --demo`.
///
/// Every fault repeats, so that trying a story again teaches the same thing.
pub fn demo_faults() -> &'static str {
    r#"# A charge whose answer is lost: was the card charged? There is no key to ask again with.
[[fault]]
tool = "charge_card"
when = { order = "ord_lost" }
attempts = ["lose_response", "ok"]
repeat = true

# A refund whose answer is lost: asking again with the same key gives the first answer.
[[fault]]
tool = "issue_refund"
when = { order = "ord_lost" }
attempts = ["lose_response", "ok"]
repeat = true

# A refund that comes too soon.
[[fault]]
tool = "issue_refund"
when = { order = "ord_limited" }
attempts = ["rate_limited", "ok"]
repeat = true
retry_after = 2

# A read that works the third time.
[[fault]]
tool = "get_order"
when = { order = "ord_down" }
attempts = ["status_503", "status_503", "ok"]
repeat = true
retry_after = 1

# A refund whose answer is lost, and whose second request hears only that the first was processed.
[[fault]]
tool = "issue_refund"
when = { order = "ord_conflict" }
attempts = ["lose_response", "conflict_done"]
repeat = true
"#
}

#[cfg(test)]
mod tests {
    use super::super::script::Script;
    use super::*;

    #[test]
    fn the_demo_is_a_sound_script() {
        Script::default().add_toml(demo_faults()).expect("the demo's script is sound");
    }
}
