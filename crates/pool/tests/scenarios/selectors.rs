//! Which item each point selects: every selector, compared point by point with a plain cumulative
//! scan.

use proptest::prelude::*;
use tidemark_pool::AMOUNT_MAX;
use tidemark_pool::selector::{Alias, AnySelector, Fenwick, PrefixSum, Selector, SelectorKind, WideTree};

/// Returns the item of each point by a plain scan of the weights.
fn scan(weights: &[u64]) -> Vec<usize> {
    let items = weights.iter().enumerate();
    items.flat_map(|(item, &weight)| std::iter::repeat_n(item, weight as usize)).collect()
}

/// Returns the item of each point by a selector.
fn selected(selector: &impl Selector) -> Vec<usize> {
    (0..selector.total()).map(|point| selector.select(point)).collect()
}

/// Returns the item of each point by a selector that is given batches of `parcel` points.
fn selected_in_parcels(selector: &impl Selector, parcel: usize) -> Vec<usize> {
    let points: Vec<u64> = (0..selector.total()).collect();
    let mut items = vec![usize::MAX; points.len()];
    for (points, items) in points.chunks(parcel).zip(items.chunks_mut(parcel)) {
        selector.select_each(points, items);
    }
    items
}

/// Returns the number of points of each item.
fn counted(selector: &impl Selector) -> Vec<u64> {
    let mut counts = vec![0; selector.len()];
    selected(selector).into_iter().for_each(|item| counts[item] += 1);
    counts
}

fn weights_of(selector: &impl Selector) -> Vec<u64> {
    (0..selector.len()).map(|item| selector.weight(item)).collect()
}

/// Returns weights of many shapes for this many items, small enough to test every point.
fn shapes(items: usize) -> Vec<Vec<u64>> {
    let shape = |weight: &dyn Fn(usize) -> u64| (0..items).map(weight).collect::<Vec<u64>>();
    let last = items.saturating_sub(1);
    vec![
        shape(&|_| 1),
        shape(&|_| 0),
        shape(&|item| item as u64 % 4),
        shape(&|item| (items - item) as u64 % 5),
        // Nothing at the front, nothing at the end, and a gap in the middle.
        shape(&|item| u64::from(item >= items / 2)),
        shape(&|item| u64::from(item < items.div_ceil(2))),
        shape(&|item| u64::from(item < items / 3 || item > 2 * items / 3)),
        // A single item at each end and in the middle.
        shape(&|item| 3 * u64::from(item == 0)),
        shape(&|item| 3 * u64::from(item == last)),
        shape(&|item| 3 * u64::from(item == items / 2)),
        // One item that outweighs all others together.
        shape(&|item| if item == last { 1 + 2 * items as u64 } else { 1 }),
        shape(&|item| (item as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 61),
    ]
}

/// Sizes around each at which a tree gains a node or a level.
const SIZES: [usize; 20] = [0, 1, 2, 3, 7, 8, 9, 14, 15, 16, 17, 31, 32, 33, 255, 256, 257, 4095, 4096, 4097];

#[test]
fn every_point_belongs_to_the_item_that_a_cumulative_scan_finds() {
    for weights in SIZES.into_iter().flat_map(shapes) {
        let expected = scan(&weights);
        let described = || format!("{} items, {:?} …", weights.len(), &weights[..weights.len().min(20)]);
        assert!(selected(&WideTree::new(&weights)) == expected, "tree: {}", described());
        assert!(selected(&WideTree::portable(&weights)) == expected, "portable tree: {}", described());
        assert!(selected(&Fenwick::new(&weights)) == expected, "fenwick: {}", described());
        assert!(selected(&PrefixSum::new(&weights)) == expected, "prefix sum: {}", described());
    }
}

#[test]
fn several_points_at_once_belong_to_the_items_that_they_belong_to_one_by_one() {
    for weights in [0, 1, 16, 17, 300].into_iter().flat_map(shapes) {
        let portable = AnySelector::Tree(WideTree::portable(&weights));
        for selector in
            SelectorKind::ALL.map(|kind| AnySelector::with(kind, &weights)).into_iter().chain([portable])
        {
            let expected = selected(&selector);
            for parcel in [1, 7, 8, 9, 100] {
                let items = selected_in_parcels(&selector, parcel);
                assert!(items == expected, "{} items, {}", weights.len(), selector.kind());
            }
        }
    }
}

#[test]
fn every_item_has_as_many_points_of_an_alias_table_as_its_weight_says() {
    for weights in SIZES.into_iter().flat_map(shapes) {
        assert!(counted(&Alias::new(&weights)) == weights, "{} items", weights.len());
    }
}

#[test]
fn all_small_weights_of_few_items_are_distinguished() {
    // All vectors of five weights from 0 to 6.
    for number in 0..7_u64.pow(5) {
        let weights: Vec<u64> = (0..5).map(|item| number / 7_u64.pow(item) % 7).collect();
        let expected = scan(&weights);
        assert_eq!(selected(&WideTree::new(&weights)), expected);
        assert_eq!(selected(&WideTree::portable(&weights)), expected);
        assert_eq!(selected(&Fenwick::new(&weights)), expected);
        assert_eq!(selected(&PrefixSum::new(&weights)), expected);
        assert_eq!(counted(&Alias::new(&weights)), weights);
    }
}

/// Checks the first and the last point of each item.
fn boundaries_belong_to_their_items(selector: &impl Selector, weights: &[u64]) {
    let mut first = 0;
    for (item, &weight) in weights.iter().enumerate() {
        assert_eq!(selector.weight(item), weight);
        if weight > 0 {
            assert_eq!(selector.select(first), item, "the first point, {first}");
            assert_eq!(selector.select(first + weight - 1), item, "the last point, {}", first + weight - 1);
            first += weight;
        }
    }
    assert_eq!(selector.total(), first);
}

#[test]
fn items_of_large_weights_begin_and_end_where_a_cumulative_scan_says() {
    let random = |item: u64| item.wrapping_mul(0xD134_2543_DE82_EF95).rotate_left(29);
    let items = 100_000;
    let largest = AMOUNT_MAX / items;
    let many: Vec<u64> =
        (0..items).map(|item| random(item) % (1 + largest) * u64::from(item % 7 > 0)).collect();
    let mut full = vec![largest; items as usize];
    full[77] += AMOUNT_MAX % items;
    let one = vec![0, AMOUNT_MAX, 0];
    let steps: Vec<u64> = (0..63).map(|bit| 1 << bit).collect();
    for weights in [many, full, one, steps] {
        boundaries_belong_to_their_items(&WideTree::new(&weights), &weights);
        boundaries_belong_to_their_items(&WideTree::portable(&weights), &weights);
        boundaries_belong_to_their_items(&Fenwick::new(&weights), &weights);
        boundaries_belong_to_their_items(&PrefixSum::new(&weights), &weights);
    }
}

#[test]
fn a_tree_that_grew_is_the_tree_that_was_made_at_once() {
    for make in [WideTree::new, WideTree::portable] {
        let mut grown = make(&[]);
        let weights: Vec<u64> = (0..4100).map(|item| item % 3).collect();
        for (item, &weight) in weights.iter().enumerate() {
            grown.push(weight);
            assert_eq!(grown.total(), weights[..=item].iter().sum::<u64>());
        }
        assert_eq!(weights_of(&grown), weights);
        assert_eq!(selected(&grown), scan(&weights));
    }
}

#[test]
fn items_come_and_go_around_the_sizes_at_which_a_tree_grows() {
    for kind in SelectorKind::ALL {
        for size in [1, 16, 17, 256, 257] {
            let mut weights: Vec<u64> = (0..size).map(|item| 1 + item % 3).collect();
            let mut selector = AnySelector::with(kind, &weights);
            for _ in 0..3 {
                for weight in [4, 0, 2] {
                    selector.push(weight);
                    weights.push(weight);
                }
                assert_eq!(counted(&selector), weights, "{kind}, {size} items");
                for _ in 0..3 {
                    selector.set(weights.len() - 1, 0);
                    selector.pop();
                    weights.pop();
                    assert_eq!(counted(&selector), weights, "{kind}, {size} items");
                }
            }
        }
    }
}

#[test]
fn a_raffle_gives_every_ticket_once() {
    for kind in SelectorKind::ALL {
        let weights = [5, 0, 1, 300, 2, 0, 40];
        let mut selector = AnySelector::with(kind, &weights);
        assert_eq!(selector.kind(), kind);
        let mut drawn = [0; 7];
        while selector.total() > 0 {
            let point = 0x9E37_79B9_7F4A_7C15 % selector.total();
            drawn[selector.take(point, 1)] += 1;
        }
        assert_eq!(drawn, weights, "{kind}");
        assert_eq!(weights_of(&selector), [0; 7], "{kind}");
    }
}

#[test]
fn a_tree_of_a_million_items_takes_at_most_nine_bytes_an_item() {
    let items = 1_000_000;
    let bytes = WideTree::new(&vec![1; items]).heap_bytes();
    assert!(bytes <= 9 * items, "{bytes} bytes");
}

/// A change of a selector. Indexes count modulo the number of items.
#[derive(Debug, Clone)]
enum Step {
    Set {
        item: usize,
        weight: u64,
    },
    Lower {
        item: usize,
        amount: u64,
    },
    Take {
        point: u64,
        amount: u64,
    },
    Push {
        weight: u64,
    },
    /// Removes the last item and its weight.
    Pop,
}

fn weight() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 4 => 0..10_u64, 1 => 0..AMOUNT_MAX / 2000]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (any::<usize>(), weight()).prop_map(|(item, weight)| Step::Set { item, weight }),
        2 => (any::<usize>(), any::<u64>()).prop_map(|(item, amount)| Step::Lower { item, amount }),
        3 => (any::<u64>(), any::<u64>()).prop_map(|(point, amount)| Step::Take { point, amount }),
        3 => weight().prop_map(|weight| Step::Push { weight }),
        2 => Just(Step::Pop),
        2 => Just(Step::Pop),
    ]
}

/// A selector, and the expected weights in a plain array.
struct Pair {
    selector: AnySelector,
    weights: Vec<u64>,
}

impl Pair {
    fn take_step(&mut self, step: &Step) {
        let Self { selector, weights } = self;
        match *step {
            Step::Push { weight } => {
                selector.push(weight);
                weights.push(weight);
            }
            Step::Pop if !weights.is_empty() => {
                selector.set(weights.len() - 1, 0);
                selector.pop();
                weights.pop();
            }
            Step::Set { item, weight } if !weights.is_empty() => {
                let item = item % weights.len();
                selector.set(item, weight);
                weights[item] = weight;
            }
            Step::Lower { item, amount } if !weights.is_empty() => {
                let item = item % weights.len();
                let amount = amount % (weights[item] + 1);
                selector.lower(item, amount);
                weights[item] -= amount;
            }
            Step::Take { point, amount } if selector.total() > 0 => {
                let point = point % selector.total();
                let item = selector.select(point);
                let amount = amount % (weights[item] + 1);
                assert_eq!(selector.take(point, amount), item);
                weights[item] -= amount;
            }
            Step::Pop | Step::Set { .. } | Step::Lower { .. } | Step::Take { .. } => (),
        }
    }

    /// Checks every answer, except points inside the range of an item.
    fn check(&self) {
        let Self { selector, weights } = self;
        assert_eq!(weights_of(selector), *weights);
        assert_eq!(selector.is_empty(), weights.is_empty());
        assert_eq!(selector.total(), weights.iter().sum::<u64>());
        if selector.kind() != SelectorKind::Alias {
            return boundaries_belong_to_their_items(selector, weights);
        }
        if selector.total() < 100_000 {
            assert_eq!(counted(selector), *weights);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_done_a_selector_has_the_weights_of_a_plain_array(
        weights in prop::collection::vec(weight(), 0..300),
        steps in prop::collection::vec(step(), 0..100),
    ) {
        let trees = [AnySelector::Tree(WideTree::portable(&weights))].into_iter();
        for selector in trees.chain(SelectorKind::ALL.map(|kind| AnySelector::with(kind, &weights))) {
            let mut pair = Pair { selector, weights: weights.clone() };
            for step in &steps {
                pair.take_step(step);
            }
            pair.check();
        }
    }

    #[test]
    fn with_and_without_vector_instructions_the_same_item_is_found_and_changed(
        weights in prop::collection::vec(0..AMOUNT_MAX / 5000, 1..5000),
        points in prop::collection::vec(any::<u64>(), 1..200),
    ) {
        let (mut one, mut other) = (WideTree::new(&weights), WideTree::portable(&weights));
        for point in points {
            if one.total() == 0 {
                break;
            }
            let point = point % one.total();
            let item = one.select(point);
            prop_assert_eq!(other.select(point), item);
            let amount = one.weight(item).div_ceil(2);
            prop_assert_eq!((one.take(point, amount), other.take(point, amount)), (item, item));
            prop_assert_eq!(one.weight(item), other.weight(item));
            prop_assert_eq!(one.total(), other.total());
        }
        prop_assert_eq!(weights_of(&one), weights_of(&other));
    }
}
