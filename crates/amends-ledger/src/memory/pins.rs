//! Pinned tools in memory.

use amends_core::Digest;

use super::data::Data;
use crate::pin::PinnedTool;

impl Data {
    pub(super) fn pins(&self, place: Option<&Digest>, limit: usize) -> Vec<PinnedTool> {
        let asked_for = |pin: &&PinnedTool| place.is_none_or(|place| pin.place == *place);
        self.pins.values().filter(asked_for).take(limit).cloned().collect()
    }

    pub(super) fn keep_pin(&mut self, pin: PinnedTool) -> bool {
        let key = (pin.place.clone(), pin.tool.clone());
        let follows = self.pins.get(&key).map_or(0, |held| held.version) + 1 == pin.version;
        if follows {
            self.pins.insert(key, pin);
        }
        follows
    }
}
