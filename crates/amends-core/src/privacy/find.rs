//! Finding in a text what must not be read.

use std::collections::BTreeSet;

use super::category::Category;
use super::number;
use super::pattern::{PAIRS, PATTERNS, not_masked};

/// A place in a text, and what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) category: Category,
}

/// How sure it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Whatever looks like it: what is recorded is masked rather once too often.
    Likely,
    /// Only what hardly anything else looks like.
    Sure,
}

/// The places of everything in those categories, in order. Places that overlap are one, of the category that comes first
/// in the list of them.
pub(super) fn find(text: &str, categories: &BTreeSet<Category>, how: How) -> Vec<Found> {
    let sure = how == How::Sure;
    let mut found = Vec::new();
    let mut add = |start, end, category| {
        if start < end {
            found.push(Found { start, end, category });
        }
    };
    for index in PATTERNS.any.matches(text) {
        let pattern = &PATTERNS.each[index];
        if !categories.contains(&pattern.category) || (sure && !pattern.sure) {
            continue;
        }
        for captures in pattern.regex.captures_iter(text) {
            let whole = captures.get(0);
            if let Some(place) = captures.get(1).or(whole).filter(|place| (pattern.holds)(place.as_str())) {
                add(place.start(), place.end(), pattern.category);
            }
        }
    }
    if categories.contains(&Category::Credential) && !sure {
        let pairs = PAIRS.captures_iter(text).filter_map(|captures| captures.get(1));
        for place in pairs.filter(|place| not_masked(place.as_str())) {
            add(place.start(), place.end(), Category::Credential);
        }
    }
    if categories.contains(&Category::PaymentCard) {
        let is_sure = |place: &std::ops::Range<usize>| !sure || number::is_usual_card(&text[place.clone()]);
        for place in number::cards(text).into_iter().filter(is_sure) {
            add(place.start, place.end, Category::PaymentCard);
        }
    }
    merged(found)
}

fn merged(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by_key(|place| (place.start, place.end));
    let mut merged: Vec<Found> = Vec::with_capacity(found.len());
    for place in found {
        match merged.last_mut() {
            Some(last) if place.start < last.end => {
                last.end = last.end.max(place.end);
                last.category = last.category.min(place.category);
            }
            _ => merged.push(place),
        }
    }
    merged
}
