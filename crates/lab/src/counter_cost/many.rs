//! Many keys, all alike or a few of them hot.

use super::moves::{plain, quota};
use super::rivals::Word;
use super::threads::by_one_and_two;
use crate::micro::benchmark::{Benchmark, each};
use crate::random::Random;
use foldhash::{HashMap, HashMapExt};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tidemark_counter::Counter;

/// How many keys are looked up by their names, as in the original.
const NAMES: usize = 1_000;
/// How many there are among which a few are hot, and how hot.
const SKEWED: usize = 4_096;
const EXPONENT: f64 = 1.2;
/// How many all alike.
const ALIKE: usize = 1_024;
/// Places that keys have in proportion to their shares.
const PLACES: usize = 1 << 16;

/// Counters by name, and the next one to ask for.
struct Store {
    names: Vec<String>,
    counters: HashMap<Box<str>, Counter>,
    next: AtomicUsize,
}

impl Store {
    fn new() -> Self {
        let names: Vec<String> = (0..NAMES).map(|key| format!("key-{key}")).collect();
        let mut counters = HashMap::with_capacity(NAMES);
        names.iter().for_each(|name| _ = counters.insert(name.as_str().into(), plain()));
        Store { names, counters, next: AtomicUsize::new(0) }
    }

    fn add(&self, name: &str) -> bool {
        self.counters.get(name).is_some_and(|counter| counter.add(1).is_ok())
    }
}

/// Draws among keys of which a few are hot (Zipf), each independent of all others, and things of which each key has one.
struct Skewed<T> {
    places: Vec<u16>,
    things: Vec<T>,
}

impl<T> Skewed<T> {
    fn new(make: fn() -> T) -> Self {
        let share = |key: usize| (key as f64 + 1.0).powf(-EXPONENT);
        let all: f64 = (0..SKEWED).map(share).sum();
        let (mut places, mut sum) = (Vec::with_capacity(PLACES), 0.0);
        for key in 0..SKEWED {
            sum += share(key);
            let end = (sum / all * PLACES as f64).round() as usize;
            places.resize(end.clamp(places.len(), PLACES), key as u16);
        }
        places.resize(PLACES, 0);
        Skewed { places, things: (0..SKEWED).map(|_| make()).collect() }
    }

    /// The thing of the operation with this number, and an amount of 1 or 2.
    #[inline]
    fn draw(&self, number: u64) -> (&T, u64) {
        let draw = Random::new(1, number).next();
        let key = self.places[(draw >> 48) as usize];
        (&self.things[usize::from(key)], 1 + (draw & 1))
    }
}

pub(super) fn rows() -> Vec<Benchmark> {
    let mut all = vec![
        Benchmark::new(
            "CounterOps.Update_ManyKeys",
            "adding 1 to one of 1,024 cold counters after the other, by one thread",
            |_| {
                let counters: Vec<Counter> = (0..ALIKE).map(|_| plain()).collect();
                each(move |number| counters[number as usize % ALIKE].add(1))
            },
        ),
        Benchmark::new(
            "CounterOps.Store_lookup_Update",
            "looking up one of 1,000 counters by its name and adding 1, by one thread",
            |_| {
                let store = Store::new();
                each(move |number| store.add(&store.names[number as usize % NAMES]))
            },
        )
        .at_most(20.0),
        Benchmark::new("CounterOps.ManyKeys_draw", "drawing one of 4,096 keys, and nothing else", |_| {
            let skewed = Skewed::new(|| ());
            each(move |number| skewed.draw(number).1)
        }),
    ];
    all.extend(by_one_and_two(
        "Store_GetOrCreate_Concurrent",
        "asking a shared word which of 1,000 counters is next, looking it up by its name and adding 1",
        Store::new,
        |store, _| store.add(&store.names[store.next.fetch_add(1, Relaxed) % NAMES]),
    ));
    let [two, one] = by_one_and_two(
        "ManyKeys_VSA_After",
        "drawing one of 4,096 quotas of which a few are hot, and taking 1 or 2",
        || Skewed::new(quota),
        |skewed, number| {
            let (counter, amount) = skewed.draw(number);
            counter.take(amount)
        },
    );
    all.extend([two.also(["ManyKeys_VSA_Optimized", "ManyKeys_VSA_Optimized_PerP_Hier"]), one]);
    all.extend(by_one_and_two(
        "ManyKeys_Atomic",
        "drawing one of 4,096 words of which a few are hot, and taking 1 or 2",
        || Skewed::new(|| Word::new(1 << 50)),
        |skewed, number| {
            let (word, amount) = skewed.draw(number);
            word.take(amount as i64)
        },
    ));
    all
}

#[cfg(test)]
mod tests {
    use super::{SKEWED, Skewed};

    #[test]
    fn few_keys_are_hot_and_shares_fall() {
        let skewed = Skewed::new(|| ());
        let places = |key: usize| skewed.places.iter().filter(|place| usize::from(**place) == key).count();
        // 1 over the sum of all shares, 4.67, is 21 %.
        assert!((13_000..15_000).contains(&places(0)), "{}", places(0));
        assert!(places(0) > places(1) && places(1) > places(10) && places(10) > places(1_000));
        assert!(skewed.places.iter().all(|place| usize::from(*place) < SKEWED));
    }
}
