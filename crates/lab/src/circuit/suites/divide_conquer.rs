//! `DivideConquerOps` of the original's newer suite: a merge sort whose steps down and up its tree
//! are emissions, and the same by recursion.
//!
//! The rows differ by more than the cost of an emission. Recursion merges what it has just sorted,
//! a queue what was sorted a level ago, and only the circuit tracks which half is done.

use crate::circuit::rig::Runner;
use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::tally::Tally;
use std::hint::black_box;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tidemark_circuit::{Circuit, Pipe};

/// Length of the sorted array.
const LENGTH: usize = 65_536;
/// Length that is sorted without dividing.
const GRAIN: usize = 2;
const LEAVES: usize = LENGTH / GRAIN;
const NODES: usize = 2 * LEAVES - 1;
/// Every node of the tree is visited on the way down and on the way up.
const VISITS: u64 = 2 * NODES as u64;
const _: () = assert!(LENGTH.is_power_of_two() && GRAIN.is_power_of_two());

pub(super) fn suite() -> [Benchmark; 3] {
    const WHAT: &str = "a merge sort of 65,536 numbers, sorted in twos at the leaves of its tree, by visit of a node on the \
                        way down or up, of which there are 131,070";
    let by_circuit = |name: &str, halves: &str, start: fn() -> anyhow::Result<Work>| {
        let measures = format!(
            "{WHAT}: each visit is an emission to one pipe, {halves}; one emission from outside and one await; visits \
             counted and the order checked; {}",
            Runner::THREAD.driver
        );
        Benchmark::new(format!("DivideConquerOps.{name}"), measures, move |_| start())
    };
    [
        by_circuit("sort_field", "which half is done is in the receptor's own memory", || {
            sort_in_circuit(|_| {
                let mut done = vec![false; NODES];
                Ok(move |parent| second_of(&mut done, parent))
            })
        }),
        by_circuit("sort_pinned", "which half is done is in a pin", || {
            sort_in_circuit(|circuit| {
                let done = circuit.pin(vec![false; NODES])?;
                // Refused only outside the circuit, where no visits happen. Missing visits would be
                // noticed.
                Ok(move |parent| done.with(|done| second_of(done, parent)).unwrap_or(false))
            })
        }),
        Benchmark::new(
            "DivideConquerOps.sort_sequential",
            format!(
                "{WHAT}: by recursion on the caller's stack, without a circuit; divided by as many; the order checked"
            ),
            |_| {
                let mut sort = Sort::new();
                Work::calls(VISITS, move || {
                    sort.shuffle();
                    let clock = Instant::now();
                    sort.recursively(black_box(0));
                    let took = clock.elapsed();
                    anyhow::ensure!(sort.is_done(), "the numbers are not sorted");
                    Ok(took)
                })
            },
        ),
    ]
}

/// A message to the circuit.
enum Step {
    Shuffle,
    Divide(usize),
    Conquer(usize),
    Check,
}

/// `halves` creates the function that records a finished child of a node and returns whether both
/// are finished.
fn sort_in_circuit<H>(halves: impl FnOnce(&Circuit) -> anyhow::Result<H>) -> anyhow::Result<Work>
where
    H: FnMut(usize) -> bool + Send + 'static,
{
    let rig = (Runner::THREAD.rig)()?;
    let (mut visits, mut checks) = (Tally::default(), Tally::default());
    let (visited, checked) = (visits.counter(), checks.counter());
    let (mut sort, mut are_both_done) = (Sort::new(), halves(&rig)?);
    let itself: Arc<OnceLock<Pipe<Step>>> = Arc::default();
    let own = Arc::clone(&itself);
    let pipe = rig.pipe(move |step| {
        let Some(own) = own.get() else { return };
        match step {
            Step::Shuffle => sort.shuffle(),
            Step::Divide(node) => {
                visited.count(node);
                if is_leaf(node) {
                    sort.leaf(node);
                    own.emit(Step::Conquer(node));
                } else {
                    children(node).into_iter().for_each(|child| own.emit(Step::Divide(child)));
                }
            }
            Step::Conquer(node) => {
                visited.count(node);
                if let Some(parent) = parent(node).filter(|&parent| are_both_done(parent)) {
                    sort.merge(parent);
                    own.emit(Step::Conquer(parent));
                }
            }
            Step::Check if sort.is_done() => checked.count(()),
            Step::Check => {}
        }
    })?;
    anyhow::ensure!(itself.set(pipe.clone()).is_ok(), "the cycle is closed once");
    Work::calls(VISITS, move || {
        pipe.emit(Step::Shuffle);
        rig.settle()?;
        let clock = Instant::now();
        pipe.emit(Step::Divide(black_box(0)));
        rig.settle()?;
        let took = clock.elapsed();
        visits.expect(VISITS)?;
        pipe.emit(Step::Check);
        rig.settle()?;
        checks.expect(1)?;
        Ok(took)
    })
}

/// Records a finished half; returns true if both are, and resets the record.
fn second_of(done: &mut [bool], parent: usize) -> bool {
    let was_done = done[parent];
    done[parent] = !was_done;
    was_done
}

/// An array sorted by halves. The nodes of the tree are numbered level by level from the root,
/// which is 0.
struct Sort {
    unsorted: Vec<u32>,
    sorted: Vec<u32>,
    numbers: Vec<u32>,
    merged: Vec<u32>,
}

impl Sort {
    fn new() -> Self {
        // Always the same numbers, independent of the platform.
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let number = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u32
        };
        let unsorted: Vec<u32> = (0..LENGTH).map(number).collect();
        let mut sorted = unsorted.clone();
        sorted.sort_unstable();
        Sort { unsorted, sorted, numbers: vec![0; LENGTH], merged: vec![0; LENGTH] }
    }

    fn shuffle(&mut self) {
        self.numbers.copy_from_slice(&self.unsorted);
    }

    fn is_done(&self) -> bool {
        self.numbers == self.sorted
    }

    fn leaf(&mut self, node: usize) {
        let numbers = &mut self.numbers[range(node)];
        for end in 1..numbers.len() {
            let mut place = end;
            while place > 0 && numbers[place - 1] > numbers[place] {
                numbers.swap(place - 1, place);
                place -= 1;
            }
        }
    }

    /// Merges the sorted halves of a node.
    fn merge(&mut self, node: usize) {
        let numbers = &mut self.numbers[range(node)];
        let merged = &mut self.merged[..numbers.len()];
        let (left, right) = numbers.split_at(numbers.len() / 2);
        let (mut left, mut right) = (left.iter().copied().peekable(), right.iter().copied().peekable());
        for place in &mut *merged {
            let is_left = match (left.peek(), right.peek()) {
                (Some(left), Some(right)) => left <= right,
                (left, _) => left.is_some(),
            };
            let next = if is_left { left.next() } else { right.next() };
            *place = next.expect("both halves together are as long as the whole");
        }
        numbers.copy_from_slice(merged);
    }

    fn recursively(&mut self, node: usize) {
        if is_leaf(node) {
            self.leaf(node);
            return;
        }
        for child in children(node) {
            self.recursively(child);
        }
        self.merge(node);
    }
}

fn is_leaf(node: usize) -> bool {
    node >= LEAVES - 1
}

fn children(node: usize) -> [usize; 2] {
    [2 * node + 1, 2 * node + 2]
}

fn parent(node: usize) -> Option<usize> {
    Some(node.checked_sub(1)? / 2)
}

/// Returns the range of a node's numbers.
fn range(node: usize) -> Range<usize> {
    let level = (node + 1).ilog2();
    let (width, place) = (LENGTH >> level, node + 1 - (1 << level));
    place * width..(place + 1) * width
}

#[cfg(test)]
mod tests {
    use super::{GRAIN, LENGTH, NODES, Sort, children, is_leaf, parent, range};

    #[test]
    fn a_nodes_numbers_are_those_of_its_children() {
        assert_eq!(range(0), 0..LENGTH);
        for node in 0..NODES {
            if is_leaf(node) {
                assert_eq!(range(node).len(), GRAIN);
                continue;
            }
            let [left, right] = children(node);
            assert_eq!((range(left).start, range(right).end), (range(node).start, range(node).end));
            assert_eq!(range(left).end, range(right).start);
            assert_eq!((parent(left), parent(right)), (Some(node), Some(node)));
        }
    }

    #[test]
    fn what_is_not_sorted_is_noticed() {
        let mut sort = Sort::new();
        sort.shuffle();
        assert!(!sort.is_done());
        sort.recursively(0);
        assert!(sort.is_done());
    }
}
