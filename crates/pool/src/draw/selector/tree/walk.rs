//! The ways through the wide tree for any processor.

use super::node::{CHILD_BITS, CHILDREN, Node};

/// The item that a point belongs to.
#[inline]
pub(super) fn select(levels: &[Vec<Node>], mut point: u64) -> usize {
    let mut index = 0;
    for level in levels {
        let node = &level[index];
        let child = node.child_at(point);
        point -= node.sums()[child];
        index = index * CHILDREN + child;
    }
    index
}

/// How many points [`select_several`] searches for at a time: enough for the processor to wait for several nodes at once.
pub(super) const SEVERAL: usize = 8;

/// The items that points belong to, level by level for all of them.
pub(super) fn select_several(levels: &[Vec<Node>], points: &[u64; SEVERAL]) -> [usize; SEVERAL] {
    let (mut points, mut items) = (*points, [0; SEVERAL]);
    for level in levels {
        for (point, index) in points.iter_mut().zip(&mut items) {
            let node = &level[*index];
            let child = node.child_at(*point);
            *point -= node.sums()[child];
            *index = *index * CHILDREN + child;
        }
    }
    items
}

/// The item that a point belongs to, which becomes so much lighter on the way.
#[inline]
pub(super) fn take(levels: &mut [Vec<Node>], mut point: u64, amount: u64) -> usize {
    let mut index = 0;
    for level in levels {
        let node = &mut level[index];
        let child = node.child_at(point);
        point -= node.sums()[child];
        node.add(child, amount.wrapping_neg());
        index = index * CHILDREN + child;
    }
    index
}

/// Adds to the weight of an item, modulo 2⁶⁴.
#[inline]
pub(super) fn add(levels: &mut [Vec<Node>], mut index: usize, difference: u64) {
    for level in levels.iter_mut().rev() {
        let child = index % CHILDREN;
        index >>= CHILD_BITS;
        level[index].add(child, difference);
    }
}

/// The weight of an item of a tree that weighs `total`.
#[inline]
pub(super) fn weight(levels: &[Vec<Node>], total: u64, index: usize) -> u64 {
    let Some((level, above)) = levels.split_last() else { return total };
    let (node, child) = (index / CHILDREN, index % CHILDREN);
    let sums = level[node].sums();
    // The last child ends where its node ends.
    let end = sums.get(child + 1).copied().unwrap_or_else(|| weight(above, total, node));
    end - sums[child]
}
