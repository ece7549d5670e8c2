//! What selectors cost, by how many items there are: to build one, to select, to select for 64 points at once (a point), to change a weight, and
//! to select and change.
//!
//! `cargo bench -p tidemark-pool --bench selectors` prints a table. A figure is nanoseconds, the best of many short rounds, and in
//! brackets their median. The selectors take turns, so that all meet the same disturbances. The cost of the generator, which makes
//! a point or an item, is in the figures; it stands in the first line.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tidemark_pool::Selector;
use tidemark_pool::selector::{Alias, AnySelector, Fenwick, PrefixSum, WideTree};

/// How often each selector has its turn, and how many rounds of each column a turn has: enough to fill the caches anew.
const TURNS: usize = 3;
const ROUNDS: usize = 12;
const ROUND: Duration = Duration::from_micros(500);
/// How many points are selected for at once.
const PARCEL: usize = 64;
const ITEMS: [usize; 6] = [4, 16, 1_000, 10_000, 100_000, 1_000_000];

fn main() {
    let mut random = SplitMix(1);
    let mut times = Vec::new();
    rounds(&mut times, || random.below(1 << 40));
    println!("a random number below another: {}", figures(&mut times));
    for items in ITEMS {
        println!();
        println!(
            "{:<10} {:<15} {:>15} {:>15} {:>15} {:>21} {:>15} {:>15}",
            items, "items", "build, an item", "select", "select each", "set", "select, lower", "take"
        );
        table(items);
    }
}

fn table(items: usize) {
    let mut random = SplitMix(2);
    // Heavy enough that lowering by little does not change what is measured.
    let weights: Vec<u64> = (0..items).map(|_| (1 << 30) + random.below(1 << 31)).collect();
    let mut contestants = [
        Contestant::new("tree", &weights, WideTree::new),
        Contestant::new("tree, portable", &weights, WideTree::portable),
        Contestant::new("tree, any", &weights, AnySelector::new),
        Contestant::new("alias", &weights, Alias::new),
        Contestant::new("fenwick", &weights, Fenwick::new),
        Contestant::new("prefix-sum", &weights, PrefixSum::new),
    ];
    for _ in 0..TURNS {
        contestants.iter_mut().for_each(|contestant| (contestant.turn)(&mut contestant.times));
    }
    for Contestant { name, times: [build, select, each, set, lower, take], .. } in &mut contestants {
        build.iter_mut().for_each(|time| *time /= items as f64);
        each.iter_mut().for_each(|time| *time /= PARCEL as f64);
        println!(
            "{:<10} {:<15} {:>15} {:>15} {:>15} {:>21} {:>15} {:>15}",
            "",
            name,
            figures(build),
            figures(select),
            figures(each),
            figures(set),
            figures(lower),
            figures(take)
        );
    }
}

/// What was measured of a selector, by column.
type Times = [Vec<f64>; 6];

/// A selector and what was measured of it.
struct Contestant<'a> {
    name: &'static str,
    turn: Box<dyn FnMut(&mut Times) + 'a>,
    times: Times,
}

impl<'a> Contestant<'a> {
    fn new<S: Selector + 'a>(name: &'static str, weights: &'a [u64], build: fn(&[u64]) -> S) -> Self {
        let mut random = SplitMix(3);
        let mut selector = build(weights);
        let items = weights.len() as u64;
        let turn = move |[build_times, select, each, set, lower, take]: &mut Times| {
            rounds(build_times, || build(black_box(weights)).total());
            rounds(select, || selector.select(random.below(selector.total())));
            let mut found = [0; PARCEL];
            rounds(each, || {
                let points: [u64; PARCEL] = std::array::from_fn(|_| random.below(selector.total()));
                selector.select_each(&points, &mut found);
                black_box(&found);
            });
            rounds(set, || {
                selector.set(random.below(items) as usize, (1 << 30) + random.below(1 << 31));
            });
            rounds(lower, || {
                let index = selector.select(random.below(selector.total()));
                selector.lower(index, 1 + index as u64 % 4);
            });
            rounds(take, || selector.take(random.below(selector.total()), 1));
        };
        Self { name, turn: Box::new(turn), times: Times::default() }
    }
}

fn rounds<T>(times: &mut Vec<f64>, mut action: impl FnMut() -> T) {
    times.extend((0..ROUNDS).map(|_| time(&mut action)));
}

/// Nanoseconds an action, over a round.
fn time<T>(action: &mut impl FnMut() -> T) -> f64 {
    let (mut batch, mut done) = (1_u32, 0_u32);
    let began = Instant::now();
    loop {
        for _ in 0..batch {
            black_box(action());
        }
        done += batch;
        let elapsed = began.elapsed();
        if elapsed >= ROUND {
            return elapsed.as_nanos() as f64 / f64::from(done);
        }
        batch = (2 * batch).min(1024);
    }
}

/// The best and the median, as text.
fn figures(times: &mut [f64]) -> String {
    times.sort_unstable_by(f64::total_cmp);
    format!("{:.1} ({:.1})", times[0], times[times.len() / 2])
}

/// Random enough, and next to nothing in time.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let number = mixed ^ (mixed >> 31);
        ((u128::from(number) * u128::from(limit)) >> 64) as u64
    }
}
