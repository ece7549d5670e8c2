//! Circuits to be reported, by name, without keeping them alive.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, Weak};

use crate::circuit::Circuit;
use crate::execution::machine::Machine;
use crate::identity::subject::Id;
use crate::observe::followers::Follower;
use crate::observe::stats::Stats;
use crate::sync::unpoisoned;

/// Statistics of circuits, summed by name.
///
/// It does not keep circuits alive. Counts of dropped circuits stay in the sums as long as another
/// circuit of the name exists, and until the sums are taken, so that sums do not decrease.
#[derive(Default)]
pub(crate) struct Census(Mutex<Groups>);

impl Census {
    /// Includes the circuit in the sums for as long as it exists. Registering it twice has no
    /// effect.
    ///
    /// Amortised O(1), however many circuits there are and were.
    pub(crate) fn register(&self, circuit: &Circuit) {
        let (machine, subject) = (circuit.machine(), circuit.subject());
        let mut groups = unpoisoned(self.0.lock());
        let group = groups.by_name.entry(subject.name().path()).or_default();
        let Entry::Vacant(place) = group.watches.entry(subject.id()) else { return };
        let watch = Arc::new(Watch(Mutex::new(Watched::There(At(NonNull::from(&**machine))))));
        let follower: Weak<Watch> = Arc::downgrade(&watch);
        machine.followers.add(follower);
        place.insert(watch);
        groups.count_one();
    }

    /// Returns the sums of all names that have a circuit.
    pub(crate) fn take(&self) -> Vec<(&'static str, Stats)> {
        let mut groups = unpoisoned(self.0.lock());
        groups.forget_gone();
        groups.by_name.retain(|_, group| !group.watches.is_empty());
        groups.by_name.iter().map(|(name, group)| (*name, group.sum())).collect()
    }

    /// Returns the registered names, in order.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        unpoisoned(self.0.lock()).by_name.keys().copied().collect()
    }
}

#[derive(Default)]
struct Groups {
    by_name: BTreeMap<&'static str, Group>,
    /// Number of groups and watches after the last cleanup.
    kept: usize,
    /// Number of watches added since.
    added: usize,
}

impl Groups {
    /// Counts an added watch. The sums may never be taken, so this cleans up each time the number
    /// has doubled.
    fn count_one(&mut self) {
        self.added += 1;
        if self.added > self.kept {
            self.forget_gone();
        }
    }

    fn forget_gone(&mut self) {
        self.by_name.values_mut().for_each(Group::forget_gone);
        self.kept = self.by_name.values().map(|group| 1 + group.watches.len()).sum();
        self.added = 0;
    }
}

/// The circuits of one name.
#[derive(Default)]
struct Group {
    /// By the identities of the circuits.
    watches: HashMap<Id, Arc<Watch>>,
    /// Counts of the circuits that were removed.
    gone: Stats,
}

impl Group {
    fn forget_gone(&mut self) {
        let gone = &mut self.gone;
        self.watches.retain(|_, watch| match &*unpoisoned(watch.0.lock()) {
            Watched::There(_) => true,
            Watched::Gone(last) => {
                *gone = add(*gone, *last);
                false
            }
        });
    }

    fn sum(&self) -> Stats {
        self.watches.values().map(|watch| watch.stats()).fold(self.gone, add)
    }
}

fn add(left: Stats, right: Stats) -> Stats {
    Stats {
        admitted: left.admitted + right.admitted,
        handled: left.handled + right.handled,
        backlog: left.backlog + right.backlog,
        failures: left.failures + right.failures,
        dropped: left.dropped + right.dropped,
    }
}

/// A reference to a circuit that does not keep it alive.
struct Watch(Mutex<Watched>);

enum Watched {
    There(At),
    /// Last numbers of a circuit that was dropped.
    Gone(Stats),
}

/// Address of a machine. The machine exists for as long as this: `gone` replaces this under the
/// lock before the machine is freed.
struct At(NonNull<Machine>);

#[allow(unsafe_code, reason = "a machine may be looked at from any thread")]
// SAFETY: the machine is only read, and is `Sync`.
unsafe impl Send for At {}

impl At {
    #[allow(unsafe_code, reason = "see the type")]
    fn stats(&self) -> Stats {
        // SAFETY: see the type; a caller with a reference to this holds the lock.
        Stats::of(unsafe { self.0.as_ref() })
    }
}

impl Watch {
    fn stats(&self) -> Stats {
        match &*unpoisoned(self.0.lock()) {
            Watched::There(at) => at.stats(),
            Watched::Gone(last) => *last,
        }
    }
}

impl Follower for Watch {
    fn gone(&self) {
        let mut watched = unpoisoned(self.0.lock());
        if let Watched::There(at) = &*watched {
            // Nothing waits any more, whatever was left.
            *watched = Watched::Gone(Stats { backlog: 0, ..at.stats() });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Name, RunBy};

    /// Number of circuits that are made and dropped.
    const MANY: u64 = 10_000;

    fn circuit(name: &str) -> Circuit {
        let name = Name::new(name).expect("a name");
        Circuit::builder().run_by(RunBy::Owner).name(name).build().expect("no thread")
    }

    /// Makes and drops a circuit of this name, which has counted three entries.
    fn register_and_drop(census: &Census, name: &str) {
        let circuit = circuit(name);
        census.register(&circuit);
        let pipe = circuit.discard().expect("open");
        (0..2).for_each(|value| pipe.emit(value));
        // The release of the handle is the third entry.
        drop(pipe);
    }

    fn admitted(census: &Census) -> Vec<(&'static str, u64)> {
        census.take().into_iter().map(|(name, stats)| (name, stats.admitted)).collect()
    }

    fn watches(census: &Census) -> usize {
        let groups = unpoisoned(census.0.lock());
        groups.by_name.values().map(|group| group.watches.len()).sum()
    }

    #[test]
    fn circuits_that_are_gone_take_no_room_though_nobody_takes_the_sums() {
        let census = Census::default();
        let stays: Vec<_> = (0..10).map(|_| circuit("census.stays")).collect();
        stays.iter().for_each(|circuit| census.register(circuit));
        for number in 0..MANY {
            register_and_drop(&census, &format!("census.brief.{}", number % 10));
            assert!(watches(&census) < 100);
        }
    }

    #[test]
    fn sums_have_all_that_are_gone_though_circuits_come_to_be_where_others_were() {
        let census = Census::default();
        let stays = circuit("census.sums");
        census.register(&stays);
        for _ in 0..MANY {
            register_and_drop(&census, "census.sums");
        }
        assert_eq!(admitted(&census), [("census.sums", 3 * MANY)]);
        assert_eq!(admitted(&census), [("census.sums", 3 * MANY)]);
        drop(stays);
        assert_eq!(admitted(&census), []);
    }

    #[test]
    fn sums_last_until_they_are_taken_while_there_is_no_circuit_of_the_name() {
        let census = Census::default();
        register_and_drop(&census, "census.rare");
        for _ in 0..MANY {
            register_and_drop(&census, "census.frequent");
        }
        let rare = circuit("census.rare");
        census.register(&rare);
        assert_eq!(admitted(&census), [("census.rare", 3)]);
    }
}
