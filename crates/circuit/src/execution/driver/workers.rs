//! A few threads that run any number of circuits. A circuit without work costs them nothing.

use std::io;
use std::num::NonZeroUsize;
use std::sync::OnceLock;

use super::pace;
use super::pool::{LOOKS, Shared, ThreadPool};
use crate::error::{ArgumentError, Error};
use crate::execution::machine::{MachineRef, Progress};
use crate::sync::{Arc, hint, thread};

/// How many entries a circuit may handle before the next circuit gets its turn.
const TURN: usize = 1024;

impl ThreadPool {
    /// Makes a pool with this many threads. Fails if `threads` is zero, or the system cannot start
    /// a thread.
    pub fn new(threads: usize) -> Result<Self, Error> {
        if threads == 0 {
            let message = "the number of threads is 0; it must be at least 1";
            return Err(ArgumentError::new("new", message).into());
        }
        Ok(Self::start(threads)?)
    }

    fn start(threads: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let pool = Self::of(Arc::clone(&shared));
        for number in 0..threads {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name(format!("circuits-{number}")).spawn(move || shared.work())?;
        }
        Ok(pool)
    }

    /// The default pool: one thread for each processor.
    pub(crate) fn global() -> io::Result<&'static Self> {
        static GLOBAL: OnceLock<ThreadPool> = OnceLock::new();
        if let Some(pool) = GLOBAL.get() {
            return Ok(pool);
        }
        let pool = Self::start(std::thread::available_parallelism().map_or(1, NonZeroUsize::get))?;
        Ok(GLOBAL.get_or_init(|| pool))
    }
}

impl Shared {
    fn work(&self) {
        while let Some(machine) = self.next() {
            self.run(MachineRef::take_over(machine));
        }
    }

    fn run(&self, machine: MachineRef) {
        loop {
            let Some(mut running) = machine.enter() else {
                // A waiting receptor runs it in this driver's place, for however long, or a caller
                // closes it.
                if machine.put_off() {
                    return;
                }
                continue;
            };
            let before = running.handled();
            let progress = running.run_published(TURN);
            let batch = running.handled().wrapping_sub(before);
            drop(running);
            // A lane's producer may always have more, which must not keep other circuits waiting.
            let is_wanted = self.is_wanted();
            let has_more = progress == Progress::More || is_wanted && machine.has_work();
            if has_more && is_wanted {
                return self.push(machine.hand_over());
            }
            if has_more {
                continue;
            }
            if !is_wanted {
                pace::gather(&machine, batch);
            }
            if self.linger(&machine) {
                continue;
            }
            if let Some(mut running) = machine.enter() {
                running.shrink();
            }
            if machine.go_idle() {
                return;
            }
            // A producer may be between claiming a ticket and filling its slot, preempted by the
            // system.
            if self.is_wanted() {
                return self.push(machine.hand_over());
            }
            hint::spin_loop();
        }
    }

    /// Polls for a while whether more arrives for this circuit: a caller that has just waited for
    /// it often continues, and then need not wake a thread.
    fn linger(&self, machine: &MachineRef) -> bool {
        for _ in 0..LOOKS {
            if machine.has_work() {
                return true;
            }
            if self.is_wanted() || machine.is_abandoned() {
                return false;
            }
            hint::spin_loop();
        }
        false
    }
}
