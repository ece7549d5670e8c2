//! Data sets: what series in use look like, and the original's.

use crate::random::Random;

/// Points at rising times.
#[derive(Clone, Debug)]
pub(super) struct Points {
    pub(super) times: Vec<i64>,
    pub(super) values: Vec<f64>,
    /// Usual distance of two points.
    pub(super) step: i64,
}

/// A data set.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataSet {
    /// Its part of a row's name.
    pub(super) name: &'static str,
    pub(super) describes: &'static str,
    make: fn(u64) -> Points,
}

pub(super) const DATA_SETS: [DataSet; 5] = [
    DataSet { name: "tau", describes: "the original's: time i, value i * 0.1", make: tau },
    DataSet { name: "gauge", describes: "a gauge with two decimals, each second", make: gauge },
    DataSet {
        name: "gauge_jitter",
        describes: "a gauge with two decimals, each second but for half a millisecond, in nanoseconds",
        make: gauge_with_jitter,
    },
    DataSet {
        name: "counter",
        describes: "a counter that rises by whole numbers, every 15 seconds",
        make: counter,
    },
    DataSet { name: "constant", describes: "one value, each second", make: constant },
];

impl DataSet {
    pub(super) fn points(self, count: u64) -> Points {
        (self.make)(count)
    }
}

/// First time of the data sets that have dates, in seconds.
const START_SECONDS: i64 = 1_700_000_000;

fn regular(count: u64, step: i64, values: Vec<f64>) -> Points {
    let times = (0..count as i64).map(|number| START_SECONDS * 1_000 + number * step).collect();
    Points { times, values, step }
}

fn tau(count: u64) -> Points {
    let times: Vec<i64> = (0..count as i64).collect();
    let values = times.iter().map(|time| *time as f64 * 0.1).collect();
    Points { times, values, step: 1 }
}

/// Returns a random walk with two decimals.
fn walk(count: u64) -> Vec<f64> {
    let mut random = Random::new(42, 1);
    let mut hundredths = 2_000_i64;
    let mut next = || {
        hundredths += random.below(41) as i64 - 20;
        hundredths as f64 / 100.0
    };
    (0..count).map(|_| next()).collect()
}

fn gauge(count: u64) -> Points {
    regular(count, 1_000, walk(count))
}

fn gauge_with_jitter(count: u64) -> Points {
    let mut random = Random::new(42, 2);
    let step = 1_000_000_000;
    let mut time = |number: i64| (START_SECONDS + number) * step + random.below(1_000_000) as i64 - 500_000;
    Points { times: (0..count as i64).map(&mut time).collect(), values: walk(count), step }
}

fn counter(count: u64) -> Points {
    let mut random = Random::new(42, 3);
    let mut total = 0_u64;
    let mut next = || {
        total += random.below(100);
        total as f64
    };
    regular(count, 15_000, (0..count).map(|_| next()).collect())
}

fn constant(count: u64) -> Points {
    regular(count, 1_000, vec![21.5; count as usize])
}
