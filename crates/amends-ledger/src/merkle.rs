//! The Merkle tree over the log, hashed as RFC 6962 says: leaves and nodes are told apart by a byte in front.

use sha2::{Digest as _, Sha256};

/// The hash of a leaf or a node.
pub type Hash = [u8; 32];

/// The hash of a leaf with these bytes.
pub fn leaf(bytes: &[u8]) -> Hash {
    Sha256::new_with_prefix([0]).chain_update(bytes).finalize().into()
}

fn node(left: &Hash, right: &Hash) -> Hash {
    Sha256::new_with_prefix([1]).chain_update(left).chain_update(right).finalize().into()
}

/// The root of a tree that only grows: the roots of its perfect subtrees, which is all that is needed to go on.
///
/// Invariant: there is one root for each bit that is set in `size`, the largest subtree first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    peaks: Vec<Hash>,
}

impl Frontier {
    /// How many leaves there are.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf, given its hash.
    pub fn push(&mut self, leaf: Hash) {
        let mut merged = leaf;
        // One subtree is merged for each bit that carries, as in adding one to a number.
        for _ in 0..self.size.trailing_ones() {
            let left = self.peaks.pop().expect("there is a peak for each bit that is set");
            merged = node(&left, &merged);
        }
        self.peaks.push(merged);
        self.size += 1;
    }

    /// The root of the tree. That of an empty one is the hash of nothing.
    pub fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev();
        match peaks.next() {
            None => Sha256::digest([]).into(),
            Some(last) => peaks.fold(*last, |right, left| node(left, &right)),
        }
    }
}

/// The root of a tree with these leaves.
pub fn root(leaves: &[Hash]) -> Hash {
    let mut frontier = Frontier::default();
    leaves.iter().for_each(|leaf| frontier.push(*leaf));
    frontier.root()
}

/// The hashes that lead from the leaf at that place to the root, the lowest first. `None` where there is no such leaf.
pub fn inclusion(leaves: &[Hash], place: usize) -> Option<Vec<Hash>> {
    if place >= leaves.len() {
        return None;
    }
    let (mut from, mut to) = (0, leaves.len());
    let mut path = Vec::new();
    // Ends: each turn at least halves the larger part of a range that holds the leaf.
    while to - from > 1 {
        let middle = from + split(to - from);
        if place < middle {
            path.push(root(&leaves[middle..to]));
            to = middle;
        } else {
            path.push(root(&leaves[from..middle]));
            from = middle;
        }
    }
    path.reverse();
    Some(path)
}

/// The root that a leaf at that place of a tree of that size leads to along a path. `None` where they do not fit together.
pub fn root_of_inclusion(leaf: Hash, place: u64, size: u64, path: &[Hash]) -> Option<Hash> {
    if place >= size {
        return None;
    }
    let (mut at, mut last) = (place, size - 1);
    let mut hash = leaf;
    for beside in path {
        if last == 0 {
            return None;
        }
        if at % 2 == 1 || at == last {
            hash = node(beside, &hash);
            // A subtree at the right edge has no sibling on some levels, and rises through them unchanged.
            while at % 2 == 0 && at != 0 {
                at /= 2;
                last /= 2;
            }
        } else {
            hash = node(&hash, beside);
        }
        at /= 2;
        last /= 2;
    }
    (last == 0).then_some(hash)
}

/// The hashes that show that the tree of the first `old` leaves is the beginning of the whole. `None` where it cannot be.
pub fn consistency(leaves: &[Hash], old: usize) -> Option<Vec<Hash>> {
    if old == 0 || old > leaves.len() {
        return None;
    }
    let (mut from, mut to) = (0, leaves.len());
    let mut path = Vec::new();
    // Whether the old tree is still a whole subtree of what is looked at, whose root the asker knows.
    let mut known = true;
    while old != to {
        let middle = from + split(to - from);
        if old <= middle {
            path.push(root(&leaves[middle..to]));
            to = middle;
        } else {
            path.push(root(&leaves[from..middle]));
            from = middle;
            known = false;
        }
    }
    if !known {
        path.push(root(&leaves[from..to]));
    }
    path.reverse();
    Some(path)
}

/// Whether a path shows that a tree of `old` leaves and that root is the beginning of one of `new` leaves and that root.
pub fn is_consistent(old: u64, old_root: &Hash, new: u64, new_root: &Hash, path: &[Hash]) -> bool {
    if old == 0 || old > new {
        return false;
    }
    if old == new {
        return path.is_empty() && old_root == new_root;
    }
    let (mut at, mut last) = (old - 1, new - 1);
    while at % 2 == 1 {
        at /= 2;
        last /= 2;
    }
    let mut path = path.iter();
    let first = if at == 0 { Some(old_root) } else { path.next() };
    let Some(first) = first else { return false };
    let (mut from_old, mut from_new) = (*first, *first);
    for beside in path {
        if last == 0 {
            return false;
        }
        if at % 2 == 1 || at == last {
            from_old = node(beside, &from_old);
            from_new = node(beside, &from_new);
            while at % 2 == 0 && at != 0 {
                at /= 2;
                last /= 2;
            }
        } else {
            from_new = node(&from_new, beside);
        }
        at /= 2;
        last /= 2;
    }
    last == 0 && from_old == *old_root && from_new == *new_root
}

/// Where a tree of more than one leaf is split: at the largest power of two below its size.
const fn split(size: usize) -> usize {
    size.next_power_of_two() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The leaves of the test vectors that RFC 6962's own implementations share.
    const LEAVES: [&str; 8] =
        ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
    /// The roots of the trees of the first one, two, … of them.
    const ROOTS: [&str; 8] = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    fn known(count: usize) -> Vec<Hash> {
        LEAVES[..count].iter().map(|text| leaf(&hex(text))).collect()
    }

    /// The definition of RFC 6962, word for word.
    fn by_definition(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => Sha256::digest([]).into(),
            [only] => *only,
            more => {
                let k = (0..).map(|power| 1 << power).take_while(|k| *k < more.len()).last().unwrap();
                node(&by_definition(&more[..k]), &by_definition(&more[k..]))
            }
        }
    }

    fn many(count: u64) -> Vec<Hash> {
        (0..count).map(|n| leaf(&n.to_be_bytes())).collect()
    }

    #[test]
    fn the_roots_are_those_of_the_published_vectors() {
        assert_eq!(root(&[]).to_vec(), hex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
        for (count, expected) in ROOTS.iter().enumerate() {
            assert_eq!(root(&known(count + 1)).to_vec(), hex(expected), "{count}");
        }
    }

    #[test]
    fn the_proofs_are_those_of_the_published_vectors() {
        let leaves = known(8);
        let path = |texts: &[&str]| -> Vec<Vec<u8>> { texts.iter().map(|text| hex(text)).collect() };
        let given = |path: Vec<Hash>| -> Vec<Vec<u8>> { path.iter().map(|hash| hash.to_vec()).collect() };
        let expected = [
            "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
            "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
            "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
        ];
        assert_eq!(given(inclusion(&leaves, 0).unwrap()), path(&expected));
        let expected = [
            "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
            "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        ];
        assert_eq!(given(consistency(&leaves, 6).unwrap()), path(&expected));
    }

    #[test]
    fn every_tree_agrees_with_the_definition_and_every_leaf_is_proven_in_it() {
        for size in 1..70_u64 {
            let leaves = many(size);
            let expected = by_definition(&leaves);
            assert_eq!(root(&leaves), expected, "{size}");
            for (place, leaf) in leaves.iter().enumerate() {
                let path = inclusion(&leaves, place).unwrap();
                assert_eq!(root_of_inclusion(*leaf, place as u64, size, &path), Some(expected), "{place} of {size}");
                let elsewhere = (place as u64 + 1) % size;
                if size > 1 {
                    assert_ne!(root_of_inclusion(*leaf, elsewhere, size, &path), Some(expected));
                    assert_ne!(root_of_inclusion(*leaf, place as u64, size, &path[1..]), Some(expected));
                }
            }
            assert_eq!(inclusion(&leaves, leaves.len()), None);
        }
    }

    #[test]
    fn every_beginning_is_proven_and_no_other_tree_is() {
        let leaves = many(40);
        for new in 1..=40 {
            let new_root = root(&leaves[..new]);
            for old in 1..=new {
                let (path, old_root) = (consistency(&leaves[..new], old).unwrap(), root(&leaves[..old]));
                let holds = |old_root| is_consistent(old as u64, old_root, new as u64, &new_root, &path);
                assert!(holds(&old_root), "{old} of {new}");
                assert!(!holds(&leaf(b"another")), "{old} of {new}");
            }
        }
    }
}
