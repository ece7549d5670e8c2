//! A node of the wide tree: sixteen running sums.

pub(super) const CHILDREN: usize = 16;

/// Number of bits of an item's position that choose a child.
pub(super) const CHILD_BITS: u32 = CHILDREN.trailing_zeros();

/// Lane *i* is the sum of the children before *i*, so the first is always 0. The sum of all is in
/// the node above, or in the tree. A missing child weighs nothing, and its lane is the sum of all.
///
/// Two cache lines, never in two pages.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(128))]
pub(super) struct Node([u64; CHILDREN]);

const _: () = assert!(size_of::<Node>() == 128, "the sums fill the node");

/// As many zeros as there are children, then all ones: the slice at `CHILDREN - 1 - child` is the
/// mask of the lanes after a child.
static BEHIND: [u64; 2 * CHILDREN] = {
    let mut lanes = [0; 2 * CHILDREN];
    let mut lane = CHILDREN;
    while lane < lanes.len() {
        lanes[lane] = u64::MAX;
        lane += 1;
    }
    lanes
};

impl Node {
    /// Creates a node from at most sixteen weights of children; returns it with their sum.
    pub(super) fn of(children: impl IntoIterator<Item = u64>) -> (Self, u64) {
        let (mut node, mut sum) = (Self::default(), 0);
        let mut children = children.into_iter().fuse();
        for lane in &mut node.0 {
            *lane = sum;
            sum += children.next().unwrap_or(0);
        }
        debug_assert!(children.next().is_none(), "a node has {CHILDREN} children");
        (node, sum)
    }

    #[inline]
    pub(super) fn sums(&self) -> &[u64; CHILDREN] {
        &self.0
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(super) fn sums_mut(&mut self) -> &mut [u64; CHILDREN] {
        &mut self.0
    }

    /// Returns the child at a point below the sum of all: the last one whose sum is at most the
    /// point. Compares the first sum of each quarter, then the others of one quarter.
    #[inline]
    pub(super) fn child_at(&self, point: u64) -> usize {
        let among = |first: usize, step: usize| -> usize {
            (1..4).map(|lane| usize::from(self.0[first + lane * step] <= point)).sum()
        };
        let first = 4 * among(0, 4);
        first + among(first, 1)
    }

    /// Adds to the weight of a child, modulo 2⁶⁴: to all sums after it; the last child has none.
    #[inline]
    pub(super) fn add(&mut self, child: usize, difference: u64) {
        let start = CHILDREN - 1 - child % CHILDREN;
        for (sum, mask) in self.0.iter_mut().zip(&BEHIND[start..start + CHILDREN]) {
            *sum = sum.wrapping_add(difference & mask);
        }
    }
}
