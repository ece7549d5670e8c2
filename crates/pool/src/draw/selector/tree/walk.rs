//! Portable walks through the wide tree.

use super::node::{CHILD_BITS, CHILDREN, Node};

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

/// Number of points that [`select_several`] searches in parallel: enough for the processor to
/// overlap loads of nodes.
pub(super) const SEVERAL: usize = 8;

/// Returns the items at several points, level by level.
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

/// Returns the item at a point, and lowers its weight on the way.
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

/// Returns the weight of an item of a tree with this total.
#[inline]
pub(super) fn weight(levels: &[Vec<Node>], total: u64, index: usize) -> u64 {
    let Some((level, above)) = levels.split_last() else { return total };
    let (node, child) = (index / CHILDREN, index % CHILDREN);
    let sums = level[node].sums();
    // The last child ends where its node ends.
    let end = sums.get(child + 1).copied().unwrap_or_else(|| weight(above, total, node));
    end - sums[child]
}
