//! Registry of reported circuits by name, without keeping them alive.

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

/// The stats of registered circuits, summed by name.
///
/// Circuits are not kept alive. The counts of a dropped circuit stay in its name's sum until the
/// sums are taken, and beyond that while another circuit of the name exists. So counters do not
/// decrease.
#[derive(Default)]
pub(crate) struct Census(Mutex<Groups>);

impl Census {
    /// Registers the circuit for as long as it exists. Repeated registrations have no effect.
    ///
    /// Takes amortised constant time, regardless of the number of circuits.
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

    /// Returns the names of the registered circuits, in order.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        unpoisoned(self.0.lock()).by_name.keys().copied().collect()
    }
}

#[derive(Default)]
struct Groups {
    by_name: BTreeMap<&'static str, Group>,
    /// Number of groups and watches after the last removal of dropped circuits.
    kept: usize,
    /// Number of watches added since then.
    added: usize,
}

impl Groups {
    /// The sums may never be taken. So dropped circuits are removed whenever the number of watches
    /// has doubled since the last removal.
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

#[derive(Default)]
struct Group {
    /// By the circuits' ids.
    watches: HashMap<Id, Arc<Watch>>,
    /// Sum of the counts of removed circuits.
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

/// A weak reference to a circuit.
struct Watch(Mutex<Watched>);

enum Watched {
    There(At),
    /// The last stats of a dropped circuit.
    Gone(Stats),
}

/// Address of a machine. It is valid as long as this exists: `gone` replaces it under the lock
/// before the machine is freed.
struct At(NonNull<Machine>);

#[allow(unsafe_code, reason = "a machine may be looked at from any thread")]
// SAFETY: it is only used to read a machine, which is `Sync`.
unsafe impl Send for At {}

impl At {
    #[allow(unsafe_code, reason = "see the type")]
    fn stats(&self) -> Stats {
        // SAFETY: see the type; a reference to this exists only under the lock.
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
            // A dropped circuit has no backlog, even if values were left.
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

    /// Registers a circuit of this name and drops it after it has counted three entries.
    fn register_and_drop(census: &Census, name: &str) {
        let circuit = circuit(name);
        census.register(&circuit);
        let pipe = circuit.discard().expect("open");
        (0..2).for_each(|value| pipe.emit(value));
        // The release of the handle is an entry of its own.
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
    fn dropped_circuits_take_no_memory_though_no_reader_takes_the_sums() {
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
