//! A thread for one circuit.

use std::io;

use super::pace;
use super::parker::Parker;
use crate::execution::machine::{MachineRef, Progress};
use crate::sync::hint;
use crate::sync::thread;

/// How often the thread polls for work before it parks: about twenty microseconds.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 800 };

/// Starts the thread of a circuit. It ends when the circuit has ended, or when it has the only
/// reference.
pub(crate) fn start(machine: MachineRef, parker: &Parker) -> io::Result<()> {
    // The name of a circuit may contain a NUL, that of a thread may not.
    let name = machine.subject().name().path().replace('\0', "?");
    let handle = thread::Builder::new().name(name).spawn(move || drive(machine))?;
    parker.set(handle.thread().clone());
    Ok(())
}

fn drive(machine: MachineRef) {
    while !machine.has_ended() {
        let Some(mut running) = machine.enter() else {
            thread::yield_now();
            continue;
        };
        let before = running.handled();
        while running.run_published(usize::MAX) == Progress::More {}
        let batch = running.handled().wrapping_sub(before);
        drop(running);
        pace::gather(&machine, batch);
        if machine.has_ended() || machine.is_abandoned() && !machine.has_work() {
            break;
        }
        wait_for_work(&machine);
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
        // A producer may be between claiming a ticket and filling its slot.
        hint::spin_loop();
        return;
    }
    while machine.is_idle() && !machine.is_abandoned() && !machine.has_ended() {
        thread::park();
    }
}
