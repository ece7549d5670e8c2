//! Many keys, equally likely or with a few hot ones.

use super::moves::{plain, quota};
use super::threads::by_one_and_two;
use crate::baseline::Atomic;
use crate::micro::benchmark::{Benchmark, each};
use crate::random::Random;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tidemark_counter::counters::{Counters, Error, Handle, Options, Settings};
use tidemark_counter::store::Memory;
use tidemark_counter::{Counter, Promise};

/// Number of keys that are looked up by name, as in the original.
const NAMES: usize = 1_000;
/// Number of keys with a few hot ones, ...
const SKEWED: usize = 4_096;
const EXPONENT: f64 = 1.2;
/// Number of equally likely keys.
const ALIKE: usize = 1_024;
/// Number of keys requested in one call.
const AT_ONCE: usize = 10_000;
/// Longer than any measurement.
const NEVER: Duration = Duration::from_hours(24);
/// Slots of the table, which keys share in proportion to their probability.
const PLACES: usize = 1 << 16;

/// Named counters, as programs use them, and the next one to request. Nothing is committed during
/// the measurement.
struct Store {
    names: Vec<String>,
    counters: Counters,
    next: AtomicUsize,
}

impl Store {
    fn with(count: u64) -> Result<Self, Error> {
        let names = names(count);
        let each = Settings {
            promise: Promise::Relaxed { cap: 1 << 60 },
            high: u64::MAX,
            low: u64::MAX,
            max_age: NEVER,
            ..Settings::default()
        };
        let options =
            Options { settings: Arc::new(move |_| each), interval: NEVER, idle: None, ..Options::default() };
        let store =
            Store { counters: Counters::open(Memory::default(), options)?, names, next: AtomicUsize::new(0) };
        // All of them are loaded before the measurement.
        store.handles().try_for_each(|handle| handle.map(drop))?;
        Ok(store)
    }

    /// Iterates over a handle to each counter, in the order of their names.
    fn handles(&self) -> impl Iterator<Item = Result<Handle, Error>> {
        self.names.chunks(AT_ONCE).flat_map(|names| {
            let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
            self.counters.get_all(&names)
        })
    }

    fn of_1000() -> Self {
        Store::with(NAMES as u64).expect("counters in memory")
    }

    #[inline]
    fn add(&self, number: usize) -> bool {
        self.counters.add(self.names[number].as_bytes(), 1).is_ok()
    }

    #[inline]
    fn scattered(&self, number: u64) -> usize {
        scattered(number, self.names.len())
    }
}

fn names(count: u64) -> Vec<String> {
    (0..count).map(|key| format!("key-{key}")).collect()
}

/// Returns an index below `among` for this operation, far from the previous one, so that memory
/// accesses are not predictable.
#[inline]
fn scattered(number: u64, among: usize) -> usize {
    (Random::new(1, number).next() % among as u64) as usize
}

/// Independent draws among keys of which a few are hot (Zipf), and a value per key.
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

    /// Returns the value of this operation's key, and an amount of 1 or 2.
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
            "looking up one of 1,000 counters by its name and adding 1, one after the other, by one thread",
            |_| {
                let store = Store::of_1000();
                each(move |number| store.add(number as usize % NAMES))
            },
        )
        .at_most(20.0)
        .in_summary(),
        Benchmark::new(
            "CounterOps.Store_lookup_Update_300k",
            "drawing one of 300,000 counters, looking it up by its name and adding 1, by one thread",
            |sizes| {
                let store = Store::with(sizes.many_names)?;
                each(move |number| store.add(store.scattered(number)))
            },
        ),
        Benchmark::new(
            "CounterOps.Handle_Update_300k",
            "drawing one of 300,000 counters and adding 1 by its handle, by one thread",
            |sizes| {
                let store = Store::with(sizes.many_names)?;
                let handles: Vec<Handle> = store.handles().collect::<Result<_, Error>>()?;
                each(move |number| handles[store.scattered(number)].add(1).is_ok())
            },
        ),
        Benchmark::new(
            "CounterOps.Store_draw_300k",
            "drawing one of 300,000 names, and nothing else",
            |sizes| {
                let names = names(sizes.many_names);
                each(move |number| names[scattered(number, names.len())].len())
            },
        ),
        Benchmark::new("CounterOps.ManyKeys_draw", "drawing one of 4,096 keys, and nothing else", |_| {
            let skewed = Skewed::new(|| ());
            each(move |number| skewed.draw(number).1)
        }),
    ];
    let [two, one] = by_one_and_two(
        "Store_GetOrCreate_Concurrent",
        "asking a shared word which of 1,000 counters is next, looking it up by its name and adding 1",
        Store::of_1000,
        |store, _| store.add(store.next.fetch_add(1, Relaxed) % NAMES),
    );
    all.extend([two.in_summary(), one]);
    let [two, one] = by_one_and_two(
        "ManyKeys_VSA_After",
        "drawing one of 4,096 quotas of which a few are hot, and taking 1 or 2",
        || Skewed::new(quota),
        |skewed, number| {
            let (counter, amount) = skewed.draw(number);
            counter.take(amount)
        },
    );
    let two = two.also(["ManyKeys_VSA_Optimized", "ManyKeys_VSA_Optimized_PerP_Hier"]);
    all.extend([two.in_summary(), one]);
    all.extend(by_one_and_two(
        "ManyKeys_Atomic",
        "drawing one of 4,096 words of which a few are hot, and taking 1 or 2",
        || Skewed::new(|| Atomic::new(1 << 50)),
        |skewed, number| {
            let (word, amount) = skewed.draw(number);
            word.take(amount)
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
