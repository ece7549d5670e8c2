//! The state of a server's counters at one moment, and the rates between two.

use crate::answer::{field, number, share};
use std::time::{Duration, Instant};
use tidemark_server::resp::Value;

/// Totals since the server began to count.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Totals {
    pub(super) moves: u64,
    pub(super) moved_units: u64,
    pub(super) commits: u64,
    pub(super) committed_units: u64,
    pub(super) commit_errors: u64,
}

/// Values at the moment of the reading.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct State {
    /// Number of counters.
    pub(super) keys: u64,
    /// Counters with uncommitted units.
    pub(super) uncommitted: u64,
    pub(super) uncommitted_units: u64,
    pub(super) reserved_units: u64,
    pub(super) oldest: Duration,
}

/// One of the counters that move most.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TopKey {
    pub(super) key: Vec<u8>,
    pub(super) id: String,
    pub(super) db: u64,
    pub(super) moves: u64,
    pub(super) error: u64,
    pub(super) units: u64,
    pub(super) committed: u64,
    pub(super) churn: f64,
}

/// The replies of a server at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) totals: Totals,
    pub(super) state: State,
    /// One of this many moves is sampled; 0 means none.
    pub(super) sample: u64,
    /// The period until now that the keys' figures cover.
    pub(super) window: Duration,
    pub(super) keys: Vec<TopKey>,
}

/// Averages per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rates {
    pub(super) moves: f64,
    pub(super) moved_units: f64,
    pub(super) commits: f64,
    pub(super) committed_units: f64,
    pub(super) write_reduction: f64,
    pub(super) churn: f64,
}

impl Totals {
    /// Returns the share of moves that needed no record of their own. 0 to 1.
    pub(super) fn write_reduction(&self) -> f64 {
        saved(self.commits, self.moves)
    }

    /// Returns the share of units that was not committed. 0 to 1.
    pub(super) fn churn(&self) -> f64 {
        saved(self.committed_units, self.moved_units)
    }

    /// Returns the difference since `earlier`; `None` if the server has reset its counts.
    fn since(&self, earlier: &Self) -> Option<Self> {
        Some(Self {
            moves: self.moves.checked_sub(earlier.moves)?,
            moved_units: self.moved_units.checked_sub(earlier.moved_units)?,
            commits: self.commits.checked_sub(earlier.commits)?,
            committed_units: self.committed_units.checked_sub(earlier.committed_units)?,
            commit_errors: self.commit_errors.checked_sub(earlier.commit_errors)?,
        })
    }
}

impl Reading {
    /// Reads the replies to `INFO counters` and `COUNTER.TOP`; `None` if a field is missing.
    pub(super) fn of(info: &Value, top: &Value, at: Instant) -> Option<Self> {
        let info = String::from_utf8_lossy(info.as_bytes()?).into_owned();
        let line = |name: &str| -> Option<u64> {
            let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            value.parse().ok()
        };
        let totals = Totals {
            moves: line("counter_moves")?,
            moved_units: line("counter_moved_units")?,
            commits: line("counter_commits")?,
            committed_units: line("counter_committed_units")?,
            commit_errors: line("counter_commit_errors")?,
        };
        let state = State {
            keys: line("counter_keys")?,
            uncommitted: line("counters_uncommitted")?,
            uncommitted_units: line("counter_uncommitted_units")?,
            reserved_units: line("counter_reserved_units")?,
            oldest: Duration::from_millis(line("counter_oldest_uncommitted_ms")?),
        };
        let keys = field(top, "keys")?.as_elements()?;
        Some(Self {
            at,
            totals,
            state,
            sample: number(top, "sample")?,
            window: Duration::from_millis(number(top, "window")?),
            keys: keys.iter().map(top_key).collect::<Option<_>>()?,
        })
    }

    /// Returns the rates since an earlier reading; `None` if they cannot be computed.
    pub(super) fn rates_since(&self, earlier: &Self) -> Option<Rates> {
        let seconds = self.at.checked_duration_since(earlier.at)?.as_secs_f64();
        let totals = self.totals.since(&earlier.totals).filter(|_| seconds > 0.0)?;
        Some(Rates {
            moves: totals.moves as f64 / seconds,
            moved_units: totals.moved_units as f64 / seconds,
            commits: totals.commits as f64 / seconds,
            committed_units: totals.committed_units as f64 / seconds,
            write_reduction: totals.write_reduction(),
            churn: totals.churn(),
        })
    }
}

fn saved(spent: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { all.saturating_sub(spent) as f64 / all as f64 }
}

fn top_key(key: &Value) -> Option<TopKey> {
    Some(TopKey {
        key: field(key, "key")?.as_bytes()?.to_vec(),
        id: String::from_utf8_lossy(field(key, "id")?.as_bytes()?).into_owned(),
        db: number(key, "db")?,
        moves: number(key, "moves")?,
        error: number(key, "error")?,
        units: number(key, "units")?,
        committed: number(key, "committed")?,
        churn: share(field(key, "churn")?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{Rates, Reading};
    use crate::top::counters::test_reading::reading;
    use std::time::Duration;
    use tidemark_server::resp::Value;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.as_bytes().to_vec())
    }

    const INFO: &str = "# Counters\r\ncounter_keys:3\r\ncounter_moves:12345\r\ncounter_moved_units:50000\r\n\
        counter_commits:345\r\ncounter_committed_units:10000\r\ncounter_commit_errors:2\r\n\
        counter_write_reduction_ratio:0.9\r\ncounters_uncommitted:2\r\ncounter_uncommitted_units:40\r\n\
        counter_reserved_units:10\r\ncounter_oldest_uncommitted_ms:820\r\n";

    fn top(with_maps: bool) -> Value {
        let of = |pairs: Vec<(&str, Value)>| {
            let pairs = pairs.into_iter().map(|(name, value)| (bulk(name), value));
            if with_maps {
                Value::Map(pairs.collect())
            } else {
                Value::Array(pairs.flat_map(|(name, value)| [name, value]).collect())
            }
        };
        let keys = reading().keys.into_iter().map(|key| {
            let number = |number: u64| Value::Integer(number as i64);
            of(vec![
                ("key", Value::Bulk(key.key)),
                ("id", bulk(&key.id)),
                ("db", number(key.db)),
                ("moves", number(key.moves)),
                ("error", number(key.error)),
                ("units", number(key.units)),
                ("committed", number(key.committed)),
                ("churn", if with_maps { Value::Double(key.churn) } else { bulk(&key.churn.to_string()) }),
            ])
        });
        let keys = Value::Array(keys.collect());
        of(vec![("sample", Value::Integer(16)), ("window", Value::Integer(45_200)), ("keys", keys)])
    }

    #[test]
    fn replies_are_read_in_either_protocol() {
        let expected = reading();
        for with_maps in [true, false] {
            assert_eq!(Reading::of(&bulk(INFO), &top(with_maps), expected.at).as_ref(), Some(&expected));
        }
        assert_eq!(Reading::of(&bulk("counter_moves:1\r\n"), &top(true), expected.at), None);
        assert_eq!(Reading::of(&bulk(INFO), &Value::Array(vec![]), expected.at), None);
    }

    #[test]
    fn rates_are_differences_by_the_time_between() {
        let earlier = reading();
        let mut later = reading();
        later.at = earlier.at + Duration::from_secs(2);
        later.totals.moves += 100;
        later.totals.moved_units += 300;
        later.totals.commits += 10;
        later.totals.committed_units += 75;
        let expected = Rates {
            moves: 50.0,
            moved_units: 150.0,
            commits: 5.0,
            committed_units: 37.5,
            write_reduction: 0.9,
            churn: 0.75,
        };
        assert_eq!(later.rates_since(&earlier), Some(expected));
        assert_eq!(later.rates_since(&later), None, "no time has passed");
        later.totals.moves = 3;
        assert_eq!(later.rates_since(&earlier), None, "the server has begun anew");
    }
}
