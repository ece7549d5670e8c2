//! A counted B+tree: an ordered sequence with lookup by order and by rank in O(log n).
//!
//! ```text
//!                     ┌ counts      5 │ 4 │ 6          items below each child
//!  Inner              ┤ separators      f │ j          first item below every child but the first
//!                     └ children    ╷   ╷   ╷
//!                          ┌────────┘   │   └────────┐
//!  Leaf               a b c d e      f g h i     j k l m n o
//! ```
//!
//! A rank is the sum of the counts to the left of the path. Nodes are vectors: a step down is a
//! binary search in contiguous memory, and up to 64 neighbours share one allocation.
//!
//! Invariants, which the tests check after every change:
//! - all leaves have the same depth; every node but the root has `MIN` to `MAX` items or children;
//! - `counts[i]` is the number of items below `children[i]`, `separators[i]` a copy of the first
//!   item below `children[i + 1]`;
//! - items ascend strictly.

use std::cmp::Ordering;
use std::ops::Range;

/// Most items of a leaf and children of an inner node.
const MAX: usize = 64;
/// Fewest items of a leaf and children of an inner node, unless it is the root. Well below half of
/// `MAX`, so that a node is not merged right after a split, or split right after a merge.
const MIN: usize = 16;
const _: () = assert!(MIN >= 2 && MIN * 2 < MAX);

/// An ordered sequence of distinct items; see the module docs.
///
/// `T` is cloned into inner nodes about once per leaf; it should be small and cheap to clone.
#[derive(Debug)]
pub(super) struct RankTree<T> {
    root: Node<T>,
    len: usize,
}

#[derive(Debug)]
enum Node<T> {
    Leaf(Vec<T>),
    Inner(Box<InnerNode<T>>),
}

#[derive(Debug)]
struct InnerNode<T> {
    counts: Vec<usize>,
    separators: Vec<T>,
    children: Vec<Node<T>>,
}

/// The right part of a split node.
struct Split<T> {
    separator: T,
    right: Node<T>,
    count: usize,
}

impl<T> Default for RankTree<T> {
    fn default() -> Self {
        Self { root: Node::Leaf(Vec::new()), len: 0 }
    }
}

impl<T: Ord + Clone> RankTree<T> {
    /// Creates a tree from strictly ascending items. O(n).
    pub(super) fn from_ascending(items: Vec<T>) -> Self {
        // Not in release builds: one comparison for each item.
        debug_assert!(items.is_sorted_by(|one, next| one < next), "items ascend strictly");
        let len = items.len();
        let mut nodes: Vec<(usize, Node<T>)> =
            chunks(items).map(|leaf| (leaf.len(), Node::Leaf(leaf))).collect();
        while nodes.len() > 1 {
            nodes = chunks(nodes)
                .map(|children| {
                    let inner = InnerNode::of(children);
                    (inner.counts.iter().sum(), Node::Inner(Box::new(inner)))
                })
                .collect();
        }
        let root = nodes.pop().map_or_else(|| Node::Leaf(Vec::new()), |(_, node)| node);
        Self { root, len }
    }

    /// Returns the number of items.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds an item. It must not be in the tree.
    pub(super) fn insert(&mut self, item: T) {
        let split = self.root.insert(item);
        self.len += 1;
        let Some(Split { separator, right, count }) = split else { return };
        let left = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
        self.root = Node::Inner(Box::new(InnerNode {
            counts: vec![self.len - count, count],
            separators: vec![separator],
            children: vec![left, right],
        }));
    }

    /// Removes the item for which `compare` returns `Equal`.
    pub(super) fn remove(&mut self, compare: impl Fn(&T) -> Ordering) -> Option<T> {
        let removed = self.root.remove(&compare)?;
        self.len -= 1;
        self.drop_single_root();
        Some(removed)
    }

    /// Removes the items of these ranks and passes them to `taken`, ascending. O(log n + items).
    pub(super) fn remove_range(&mut self, range: Range<usize>, mut taken: impl FnMut(T)) {
        let end = range.end.min(self.len);
        let mut left = end.saturating_sub(range.start);
        while left > 0 {
            let removed = self.root.remove_run(range.start, left, &mut taken);
            assert!((1..=left).contains(&removed), "{removed} of {left} items are taken out");
            self.len -= removed;
            left -= removed;
            self.drop_single_root();
        }
    }

    /// Returns the number of items that satisfy `precedes`, which must hold for a prefix of the
    /// sequence only. This is the rank of the first item after the prefix.
    pub(super) fn partition_point(&self, precedes: impl Fn(&T) -> bool) -> usize {
        let mut node = &self.root;
        let mut rank = 0;
        loop {
            match node {
                Node::Leaf(items) => return rank + items.partition_point(&precedes),
                Node::Inner(inner) => {
                    let index = inner.separators.partition_point(&precedes);
                    rank += inner.counts[..index].iter().sum::<usize>();
                    node = &inner.children[index];
                }
            }
        }
    }

    /// Returns the item of a rank.
    pub(super) fn get(&self, rank: usize) -> Option<&T> {
        let (leaf, offset) = self.leaf_at(rank);
        leaf.get(offset)
    }

    /// Iterates over the items of these ranks; ranks beyond the end have none.
    pub(super) fn range(&self, range: Range<usize>) -> Iter<'_, T> {
        let end = range.end.min(self.len);
        Iter { tree: self, range: range.start.min(end)..end, front: &[], back: &[] }
    }

    /// Returns the leaf that contains a rank, and the index in it.
    fn leaf_at(&self, mut rank: usize) -> (&[T], usize) {
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(items) => return (items, rank),
                Node::Inner(inner) => {
                    let (index, rest) = inner.child_at(rank);
                    (node, rank) = (&inner.children[index], rest);
                }
            }
        }
    }

    /// Replaces a root that has a single child by that child.
    fn drop_single_root(&mut self) {
        while let Node::Inner(inner) = &mut self.root
            && inner.children.len() == 1
            && let Some(child) = inner.children.pop()
        {
            self.root = child;
        }
    }
}

/// Distributes items to nodes of at most three quarters of `MAX` and at least `MIN`, if possible.
fn chunks<T>(items: Vec<T>) -> impl Iterator<Item = Vec<T>> {
    const FILL: usize = MAX / 4 * 3;
    let mut left = items.len();
    let mut items = items.into_iter();
    std::iter::from_fn(move || {
        let size = match left {
            0 => return None,
            1..=FILL => left,
            // If the last node would get too few, the last two share evenly.
            _ if left < FILL + MIN => left / 2,
            _ => FILL,
        };
        left -= size;
        let mut node = Vec::with_capacity(MAX);
        node.extend(items.by_ref().take(size));
        Some(node)
    })
}

/// Returns where to split a full node into which an item goes at `index`: in the middle, or near an
/// end for insertions at an end. So ascending or descending insertions leave nodes well filled.
fn split_point(index: usize) -> usize {
    match index {
        0 => MIN,
        MAX => MAX - MIN,
        _ => MAX / 2,
    }
}

/// Splits off the upper part of a vector, with capacity for a whole node.
fn split_off<T>(items: &mut Vec<T>, at: usize) -> Vec<T> {
    let mut right = Vec::with_capacity(MAX);
    right.extend(items.drain(at..));
    right
}

impl<T: Ord + Clone> Node<T> {
    /// Returns the number of items of a leaf or children of an inner node.
    fn width(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Inner(inner) => inner.children.len(),
        }
    }

    fn first(&self) -> Option<&T> {
        let mut node = self;
        loop {
            match node {
                Self::Leaf(items) => return items.first(),
                Self::Inner(inner) => node = inner.children.first()?,
            }
        }
    }

    fn insert(&mut self, item: T) -> Option<Split<T>> {
        match self {
            Self::Inner(inner) => inner.insert(item),
            Self::Leaf(items) => {
                let index = items.partition_point(|other| *other < item);
                // Not in release builds: the table of members has been searched.
                debug_assert!(items.get(index) != Some(&item), "the item is not in the tree");
                if items.len() < MAX {
                    items.insert(index, item);
                    return None;
                }
                let middle = split_point(index);
                let mut right = split_off(items, middle);
                if index <= middle {
                    items.insert(index, item);
                } else {
                    right.insert(index - middle, item);
                }
                Some(Split { separator: right[0].clone(), count: right.len(), right: Self::Leaf(right) })
            }
        }
    }

    fn remove(&mut self, compare: &impl Fn(&T) -> Ordering) -> Option<T> {
        match self {
            Self::Leaf(items) => {
                let index = items.partition_point(|item| compare(item) == Ordering::Less);
                let found = items.get(index).is_some_and(|item| compare(item) == Ordering::Equal);
                found.then(|| items.remove(index))
            }
            Self::Inner(inner) => {
                let index = inner.separators.partition_point(|item| compare(item) != Ordering::Greater);
                let removed = inner.children[index].remove(compare)?;
                let was_first =
                    index > 0 && inner.separators.get(index - 1).is_some_and(|first| *first == removed);
                inner.shrunk(index, 1, was_first);
                Some(removed)
            }
        }
    }

    /// Removes at most `max` items from `rank`, all of one leaf. Returns how many.
    fn remove_run(&mut self, rank: usize, max: usize, taken: &mut impl FnMut(T)) -> usize {
        match self {
            Self::Leaf(items) => {
                let end = rank.saturating_add(max).min(items.len());
                items.drain(rank..end).for_each(taken);
                end - rank
            }
            Self::Inner(inner) => {
                let (index, rank) = inner.child_at(rank);
                let removed = inner.children[index].remove_run(rank, max, taken);
                inner.shrunk(index, removed, rank == 0);
                removed
            }
        }
    }
}

impl<T: Ord + Clone> InnerNode<T> {
    fn of(nodes: Vec<(usize, Node<T>)>) -> Self {
        let mut inner = Self {
            counts: Vec::with_capacity(MAX),
            separators: Vec::with_capacity(MAX),
            children: Vec::with_capacity(MAX),
        };
        for (count, node) in nodes {
            inner.separators.extend(node.first().filter(|_| !inner.children.is_empty()).cloned());
            inner.counts.push(count);
            inner.children.push(node);
        }
        inner
    }

    /// Returns the child that contains a rank, and the rank within it. A rank beyond the end is in
    /// the last child.
    fn child_at(&self, mut rank: usize) -> (usize, usize) {
        for (index, &count) in self.counts.iter().enumerate() {
            if rank < count || index + 1 == self.counts.len() {
                return (index, rank);
            }
            rank -= count;
        }
        (0, rank)
    }

    fn insert(&mut self, item: T) -> Option<Split<T>> {
        let index = self.separators.partition_point(|first| *first <= item);
        let split = self.children[index].insert(item);
        self.counts[index] += 1;
        let split = split?;
        self.counts[index] -= split.count;
        let mut sibling = None;
        if self.children.len() < MAX {
            self.add(index, split);
        } else {
            // The new child is inserted after `index`.
            let middle = split_point(index + 1);
            let (mut right, separator) = self.split(middle);
            if index < middle {
                self.add(index, split);
            } else {
                right.add(index - middle, split);
            }
            let count = right.counts.iter().sum();
            sibling = Some(Split { separator, count, right: Node::Inner(Box::new(right)) });
        }
        sibling
    }

    /// Adds the right part of child `index` after it.
    fn add(&mut self, index: usize, split: Split<T>) {
        self.counts.insert(index + 1, split.count);
        self.separators.insert(index, split.separator);
        self.children.insert(index + 1, split.right);
    }

    /// Splits off the children from `middle`; the separator before them belongs to neither part.
    fn split(&mut self, middle: usize) -> (Self, T) {
        let mut separators = split_off(&mut self.separators, middle - 1);
        let separator = separators.remove(0);
        let counts = split_off(&mut self.counts, middle);
        let children = split_off(&mut self.children, middle);
        (Self { counts, separators, children }, separator)
    }

    /// Restores the invariants after child `index` lost items; its first one too if `was_first`.
    fn shrunk(&mut self, index: usize, removed: usize, was_first: bool) {
        self.counts[index] -= removed;
        if was_first
            && index > 0
            && let Some(first) = self.children[index].first()
        {
            self.separators[index - 1] = first.clone();
        }
        if self.children[index].width() < MIN && self.children.len() > 1 {
            self.refill(index.min(self.children.len() - 2));
        }
    }

    /// Merges child `left` with its right neighbour, or balances them if they do not fit one node.
    fn refill(&mut self, left: usize) {
        let right = left + 1;
        let total = self.children[left].width() + self.children[right].width();
        let right_count = self.counts.remove(right);
        let right_node = self.children.remove(right);
        let separator = self.separators.remove(left);
        let split = match (&mut self.children[left], right_node) {
            (Node::Leaf(items), Node::Leaf(mut more)) => {
                items.append(&mut more);
                (total > MAX).then(|| {
                    let right = split_off(items, total / 2);
                    Split { separator: right[0].clone(), count: right.len(), right: Node::Leaf(right) }
                })
            }
            (Node::Inner(inner), Node::Inner(more)) => {
                inner.append(*more, separator);
                (total > MAX).then(|| {
                    let (right, separator) = inner.split(total / 2);
                    let count = right.counts.iter().sum();
                    Split { separator, count, right: Node::Inner(Box::new(right)) }
                })
            }
            _ => unreachable!("all leaves are at one depth, so neighbours are of one kind"),
        };
        self.counts[left] += right_count;
        if let Some(split) = split {
            self.counts[left] -= split.count;
            self.add(left, split);
        }
        // A leaf that was empty before it was merged starts with another item now.
        if left > 0
            && let Some(first) = self.children[left].first()
        {
            self.separators[left - 1] = first.clone();
        }
    }

    /// Appends the children of the right neighbour; `separator` is between the two nodes.
    fn append(&mut self, mut right: Self, separator: T) {
        self.separators.push(separator);
        self.separators.append(&mut right.separators);
        self.counts.append(&mut right.counts);
        self.children.append(&mut right.children);
    }
}

/// Iterator over consecutive ranks from either end: O(log n) at first, then O(1) amortised.
#[derive(Debug)]
pub(super) struct Iter<'a, T> {
    tree: &'a RankTree<T>,
    /// Remaining ranks.
    range: Range<usize>,
    /// Rest of the leaf at the front, from rank `range.start`. It may extend beyond `range.end`.
    front: &'a [T],
    /// Rest of the leaf at the back, up to rank `range.end`. It may start before `range.start`.
    back: &'a [T],
}

impl<'a, T: Ord + Clone> Iterator for Iter<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        if self.range.is_empty() {
            return None;
        }
        if self.front.is_empty() {
            let (leaf, offset) = self.tree.leaf_at(self.range.start);
            self.front = &leaf[offset..];
        }
        let (first, rest) = self.front.split_first()?;
        self.front = rest;
        self.range.start += 1;
        Some(first)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.range.len(), Some(self.range.len()))
    }
}

impl<'a, T: Ord + Clone> DoubleEndedIterator for Iter<'a, T> {
    #[inline]
    fn next_back(&mut self) -> Option<&'a T> {
        if self.range.is_empty() {
            return None;
        }
        if self.back.is_empty() {
            let (leaf, offset) = self.tree.leaf_at(self.range.end - 1);
            self.back = &leaf[..=offset];
        }
        let (last, rest) = self.back.split_last()?;
        self.back = rest;
        self.range.end -= 1;
        Some(last)
    }
}

impl<T: Ord + Clone> ExactSizeIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks all invariants below a node. Returns its depth and number of items.
    fn check(node: &Node<u32>, is_root: bool) -> (usize, usize) {
        assert!(node.width() <= MAX && (is_root || node.width() >= MIN), "width {}", node.width());
        match node {
            Node::Leaf(items) => {
                assert!(items.is_sorted_by(|one, next| one < next));
                (0, items.len())
            }
            Node::Inner(inner) => {
                assert!(inner.children.len() >= 2);
                assert_eq!(inner.counts.len(), inner.children.len());
                let firsts: Vec<u32> = inner.children[1..].iter().filter_map(Node::first).copied().collect();
                assert_eq!(inner.separators, firsts);
                let below: Vec<_> = inner.children.iter().map(|child| check(child, false)).collect();
                assert!(below.iter().all(|(depth, _)| *depth == below[0].0), "leaves at one depth");
                assert!(below.iter().map(|(_, count)| count).eq(&inner.counts));
                (below[0].0 + 1, inner.counts.iter().sum())
            }
        }
    }

    fn assert_equal(tree: &RankTree<u32>, model: &[u32]) {
        assert_eq!(check(&tree.root, true).1, model.len());
        assert_eq!(tree.len(), model.len());
        assert!(tree.range(0..usize::MAX).eq(model));
        assert!(tree.range(0..usize::MAX).rev().eq(model.iter().rev()));
    }

    fn filled(items: impl Iterator<Item = u32>) -> RankTree<u32> {
        let mut tree = RankTree::default();
        items.for_each(|item| tree.insert(item));
        tree
    }

    #[test]
    fn a_tree_of_four_levels_keeps_its_order_whatever_the_order_of_insertion() {
        let count = 100_003_u32;
        let model: Vec<u32> = (0..count).collect();
        assert_equal(&filled(0..count), &model);
        assert_equal(&filled((0..count).rev()), &model);
        let mut shuffled = filled((0..u64::from(count)).map(|n| (n * 48_271 % u64::from(count)) as u32));
        assert_equal(&shuffled, &model);
        for n in (0..count).step_by(997) {
            assert_eq!(shuffled.get(n as usize), Some(&n));
            assert_eq!(shuffled.partition_point(|item| *item < n), n as usize);
        }
        assert!(shuffled.get(count as usize).is_none());
        let mut taken = Vec::new();
        shuffled.remove_range(10..count as usize - 10, |item| taken.push(item));
        assert!(taken.iter().copied().eq(10..count - 10));
        assert_equal(
            &shuffled,
            &model.iter().copied().filter(|n| *n < 10 || *n >= count - 10).collect::<Vec<_>>(),
        );
    }

    #[test]
    fn items_that_come_in_order_fill_their_nodes_well() {
        for tree in [filled(0..10_000), filled((0..10_000).rev())] {
            let Node::Inner(root) = &tree.root else { panic!("10,000 items need inner nodes") };
            let leaves = 10_000.0 / (MAX - MIN) as f64;
            assert!((root.children.len() as f64) < leaves / MIN as f64);
        }
    }

    #[test]
    fn a_tree_is_emptied_from_either_end() {
        for from_the_front in [true, false] {
            let mut tree = filled(0..5_000);
            for left in (0..5_000_u32).rev() {
                let rank = if from_the_front { 0 } else { left as usize };
                let expected = if from_the_front { 4_999 - left } else { left };
                tree.remove_range(rank..rank + 1, |item| assert_eq!(item, expected));
                check(&tree.root, true);
            }
            assert_eq!(tree.len(), 0);
        }
    }

    #[derive(Debug, Clone)]
    enum PathStep {
        Insert(u32, u32),
        Remove(u32, u32),
        RemoveRange(usize, usize),
    }

    fn step() -> impl Strategy<Value = PathStep> {
        prop_oneof![
            4 => (0..5_000_u32, 1..300_u32).prop_map(|(from, count)| PathStep::Insert(from, count)),
            2 => (0..5_000_u32, 1..300_u32).prop_map(|(from, count)| PathStep::Remove(from, count)),
            1 => (0..5_000_usize, 0..2_000_usize).prop_map(|(from, count)| PathStep::RemoveRange(from, count)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..ProptestConfig::default() })]
        #[test]
        fn a_tree_behaves_as_a_sorted_vector(steps in proptest::collection::vec(step(), 0..60)) {
            let (mut tree, mut model) = (RankTree::default(), Vec::<u32>::new());
            for step in steps {
                match step {
                    // Runs in strides cause splits and merges that single items rarely do.
                    PathStep::Insert(from, count) => for item in (0..count).map(|n| from + n * 7 % count) {
                        if let Err(index) = model.binary_search(&item) {
                            model.insert(index, item);
                            tree.insert(item);
                        }
                    },
                    PathStep::Remove(from, count) => for item in (0..count).map(|n| from + n * 5 % count) {
                        let expected = model.binary_search(&item).ok().map(|index| model.remove(index));
                        prop_assert_eq!(tree.remove(|other| other.cmp(&item)), expected);
                    },
                    PathStep::RemoveRange(from, count) => {
                        let range = from.min(model.len())..(from + count).min(model.len());
                        let mut taken = Vec::new();
                        tree.remove_range(from..from + count, |item| taken.push(item));
                        prop_assert_eq!(taken, model.drain(range).collect::<Vec<_>>());
                    }
                }
                assert_equal(&tree, &model);
                assert_equal(&RankTree::from_ascending(model.clone()), &model);
            }
            for (rank, item) in model.iter().enumerate().step_by(13) {
                prop_assert_eq!(tree.get(rank), Some(item));
                prop_assert_eq!(tree.partition_point(|other| other <= item), rank + 1);
                let middle: Vec<&u32> = tree.range(rank..rank + 100).collect();
                prop_assert!(middle.into_iter().eq(model.iter().skip(rank).take(100)));
            }
        }

        #[test]
        fn both_ends_of_a_range_meet(len in 0..500_u32, start in 0..500_usize, count in 0..500_usize, turns: [bool; 32]) {
            let tree = filled(0..len);
            let model: Vec<u32> = (0..len).collect();
            let end = (start + count).min(model.len());
            let (mut range, mut model) = (tree.range(start..start + count), model[start.min(end)..end].iter());
            for turn in turns.iter().cycle().take(600) {
                prop_assert_eq!(range.len(), model.len());
                let (item, expected) =
                    if *turn { (range.next(), model.next()) } else { (range.next_back(), model.next_back()) };
                prop_assert_eq!(item, expected);
            }
        }
    }
}
