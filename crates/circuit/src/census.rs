//! Circuits that are to be reported, by their names, without keeping them.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, Weak};

use crate::circuit::Circuit;
use crate::followers::Follower;
use crate::machine::Machine;
use crate::stats::Stats;
use crate::sync::unpoisoned;

/// What circuits have done so far, summed up by their names.
///
/// Circuits are not kept. What those have counted that are gone stays in the sums as long as another one of the name is there, so that
/// sums do not fall.
#[derive(Default)]
pub(crate) struct Census(Mutex<BTreeMap<&'static str, Group>>);

impl Census {
    /// Has the circuit counted for as long as it exists. Registering it twice makes no difference.
    pub(crate) fn register(&self, circuit: &Circuit) {
        let machine = circuit.machine();
        let mut groups = unpoisoned(self.0.lock());
        let group = groups.entry(circuit.subject().name().path()).or_default();
        if group.watches.iter().any(|watch| watch.is_of(machine)) {
            return;
        }
        let watch = Arc::new(Watch(Mutex::new(Watched::There(At(NonNull::from(&**machine))))));
        let follower: Weak<Watch> = Arc::downgrade(&watch);
        machine.followers.add(follower);
        group.watches.push(watch);
    }

    /// The sums of all names that there is a circuit of.
    pub(crate) fn take(&self) -> Vec<(&'static str, Stats)> {
        let mut groups = unpoisoned(self.0.lock());
        groups.retain(|_, group| group.forget_gone());
        groups.iter().map(|(name, group)| (*name, group.sum())).collect()
    }

    /// The names of what was registered, in order.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        unpoisoned(self.0.lock()).keys().copied().collect()
    }
}

/// The circuits of one name.
#[derive(Default)]
struct Group {
    watches: Vec<Arc<Watch>>,
    /// What those have counted that are gone.
    gone: Stats,
}

impl Group {
    /// False if no circuit is left.
    fn forget_gone(&mut self) -> bool {
        let gone = &mut self.gone;
        self.watches.retain(|watch| match &*unpoisoned(watch.0.lock()) {
            Watched::There(_) => true,
            Watched::Gone(last) => {
                *gone = add(*gone, *last);
                false
            }
        });
        !self.watches.is_empty()
    }

    fn sum(&self) -> Stats {
        self.watches.iter().map(|watch| watch.stats()).fold(self.gone, add)
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

/// A look at a circuit that does not keep it.
struct Watch(Mutex<Watched>);

enum Watched {
    There(At),
    /// The last numbers of a circuit that is gone.
    Gone(Stats),
}

/// Where a machine is. It is there as long as this is: `gone` replaces this under the lock before the machine is freed.
struct At(NonNull<Machine>);

#[allow(unsafe_code, reason = "a machine may be looked at from any thread")]
// SAFETY: all that is done with it is looking at a machine, which is `Sync`.
unsafe impl Send for At {}

impl At {
    #[allow(unsafe_code, reason = "see the type")]
    fn stats(&self) -> Stats {
        // SAFETY: see the type; whoever has a reference to this holds the lock.
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

    fn is_of(&self, machine: &Machine) -> bool {
        matches!(&*unpoisoned(self.0.lock()), Watched::There(at) if std::ptr::eq(at.0.as_ptr(), machine))
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
