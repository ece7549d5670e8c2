//! A thread for one circuit.

use std::io;
use std::sync::OnceLock;

use crate::machine::{MachineRef, Progress};
use crate::sync::hint;
use crate::sync::thread::{self, Thread};

/// How often the thread looks for work before it parks: some twenty microseconds.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 800 };

/// After a batch at least this long, the thread lets entries gather before it looks again: a look at a queue for each single
/// entry costs its producer a cache miss per entry.
const STREAM: u64 = 4;

/// How long entries gather: some two microseconds. Four times as long makes the round trip of a single value slower.
const GATHER_LOOKS: u32 = if cfg!(loom) { 0 } else { 80 };

/// How to reach a circuit's thread.
#[derive(Default)]
pub(crate) struct Parker(OnceLock<Thread>);

impl Parker {
    /// Wakes the thread, if it has started.
    pub(crate) fn unpark(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

/// Starts the thread of a circuit. It ends when the circuit has ended, or nobody else has a reference to it.
pub(crate) fn start(machine: MachineRef, parker: &Parker) -> io::Result<()> {
    let name = machine.subject().name().to_string();
    let handle = thread::Builder::new().name(name).spawn(move || drive(machine))?;
    // The thread does not need to know: whoever finds it asleep finds this set.
    let _ = parker.0.set(handle.thread().clone());
    Ok(())
}

fn drive(machine: MachineRef) {
    let mut seen = 0;
    while !machine.has_ended() {
        let Some(mut running) = machine.enter() else {
            thread::yield_now();
            continue;
        };
        while running.run(usize::MAX, u64::MAX) == Progress::More {}
        let handled = running.handled();
        drop(running);
        if handled - seen >= STREAM {
            gather(&machine);
        }
        seen = handled;
        if machine.has_ended() || machine.is_abandoned() && !machine.has_work() {
            break;
        }
        wait_for_work(&machine);
    }
}

/// Lets entries gather, unless somebody waits for them.
fn gather(machine: &MachineRef) {
    for _ in 0..GATHER_LOOKS {
        if machine.waiters.is_watched() {
            return;
        }
        hint::spin_loop();
    }
}

fn wait_for_work(machine: &MachineRef) {
    for _ in 0..LOOKS {
        if machine.has_work() {
            return;
        }
        hint::spin_loop();
    }
    if let Some(mut running) = machine.enter() {
        running.shrink();
    }
    if !machine.go_idle() {
        // Perhaps somebody is between claiming a place and filling it.
        hint::spin_loop();
        return;
    }
    while machine.is_idle() && !machine.is_abandoned() && !machine.has_ended() {
        thread::park();
    }
}
