//! What a draw costs, by how many items there are: `cargo bench -p tidemark-pool --bench draws`.
//!
//! A figure is nanoseconds, the best of many short rounds, and in brackets their median. Stock never runs out. The columns: the random
//! number alone; a draw at fixed odds; one of a raffle, whose ticket is gone; one at fixed odds whose undoing is kept; each of a thousand
//! at once.

mod measure;

use measure::Times;
use tidemark_pool::selector::{AnySelector, WideTree};
use tidemark_pool::{AMOUNT_MAX, Catalogue, Item, Mode, Numbers, Pool, Repeats, Secret, Selector, SoldOut};

const TURNS: usize = 3;
const ROUNDS: usize = 12;
const ITEMS: [usize; 6] = [4, 6, 1_000, 10_000, 100_000, 1_000_000];
const MANY: usize = 1_000;

fn main() {
    println!(
        "{:<10} {:<10} {:>14} {:>14} {:>14} {:>14} {:>14}",
        "items", "selector", "number", "draw", "raffle", "staged", "of a thousand"
    );
    for items in ITEMS {
        row::<WideTree>(items, "tree");
        row::<AnySelector>(items, "tree, any");
    }
}

fn row<S: Selector>(items: usize, name: &str) {
    let [mut number, mut draw, mut raffle, mut staged, mut many]: [Times; 5] = Default::default();
    let mut numbers = Numbers::new([1; 32]);
    let mut next = 0;
    let mut fixed = pool::<S>(items, Mode::FixedOdds);
    let mut urn = pool::<S>(items, Mode::PerUnit);
    let mut undone = pool::<S>(items, Mode::FixedOdds);
    undone.stage();
    let mut drawn = Vec::with_capacity(MANY);
    for _ in 0..TURNS {
        number.rounds(ROUNDS, || {
            next += 1;
            numbers.below(next, 1 << 40)
        });
        draw.rounds(ROUNDS, || fixed.draw());
        raffle.rounds(ROUNDS, || urn.draw());
        staged.rounds(ROUNDS, || {
            if undone.staged_draws() == MANY as u64 {
                undone.commit();
                undone.stage();
            }
            undone.draw()
        });
        many.rounds(ROUNDS, || {
            drawn.clear();
            fixed.draw_many(MANY, Repeats::Allowed, &mut drawn)
        });
    }
    many.divide(MANY);
    let [number, draw, raffle, staged, many] =
        [number, draw, raffle, staged, many].map(|mut times| times.figures());
    println!("{items:<10} {name:<10} {number:>14} {draw:>14} {raffle:>14} {staged:>14} {many:>14}");
}

fn pool<S: Selector>(items: usize, mode: Mode) -> Pool<S> {
    let quantity = AMOUNT_MAX / 64 / items as u64;
    let items = (0..items).map(|item| Item::limited(item.to_string(), 1 + item as u64 % 31, quantity));
    let catalogue = Catalogue::with(items.collect(), mode, SoldOut::Renormalise).expect("a catalogue");
    Pool::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]))
}
