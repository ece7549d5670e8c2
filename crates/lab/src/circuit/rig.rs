//! A circuit for one scenario, and ways to emit into it.

use crate::micro::cores::{self, Pinned};
use std::ops::Deref;
use tidemark_circuit::{Circuit, ContextError, Lane, Pipe, RunBy, SinkPipe, ThreadPool};

/// Kind of runner of a scenario's circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The shared pool.
    Pool,
    /// A dedicated thread.
    Thread,
    /// The waiting callers.
    Waiters,
}

/// A runner of a circuit, and its description in rows.
#[derive(Clone, Copy)]
pub(super) struct Runner {
    /// Last part of a row's description.
    pub(super) driver: &'static str,
    pub(super) rig: fn() -> anyhow::Result<Rig>,
}

impl Runner {
    /// The default runner of a circuit.
    pub(super) const SHARED_POOL: Self =
        Runner { driver: "the shared pool runs the circuit", rig: || Rig::new(By::Pool) };
    /// A pool's thread on another core than the caller.
    pub(super) const POOL: Self = Runner {
        driver: "a pool with one thread runs the circuit, on a core of its own",
        rig: || Rig::apart(By::Pool),
    };
    /// A dedicated thread on another core than the caller.
    pub(super) const THREAD: Self =
        Runner { driver: "a thread runs the circuit, on a core of its own", rig: || Rig::apart(By::Thread) };
    /// All on one core.
    pub(super) const WAITERS: Self =
        Runner { driver: "the thread that awaits runs the circuit", rig: || Rig::new(By::Waiters) };

    #[cfg(test)]
    pub(super) const ALL: [Self; 4] = [Self::SHARED_POOL, Self::POOL, Self::THREAD, Self::WAITERS];
}

/// A circuit that is closed on drop.
pub(super) struct Rig {
    circuit: Circuit,
    _pinned: Option<Pinned>,
}

impl Rig {
    /// Creates a circuit whose threads are not pinned.
    pub(super) fn new(by: By) -> anyhow::Result<Self> {
        let run_by = match by {
            By::Pool => RunBy::SharedPool,
            By::Thread => RunBy::Thread,
            By::Waiters => RunBy::Waiters,
        };
        Ok(Rig { circuit: Circuit::builder().run_by(run_by).build()?, _pinned: None })
    }

    /// Creates a circuit pinned to one core, and pins the caller to another, while this exists. A
    /// pool is a separate one with a single thread. On a machine with one core nothing is pinned.
    pub(super) fn apart(by: By) -> anyhow::Result<Self> {
        let run_by = match by {
            By::Pool => RunBy::Pool(ThreadPool::new(1)?),
            By::Thread => RunBy::Thread,
            By::Waiters => return Self::new(by),
        };
        let circuit = Circuit::builder().run_by(run_by).build()?;
        let pipe = circuit.pipe(cores::stay_on)?;
        pipe.emit(cores::consumer());
        circuit.settle()?;
        Ok(Rig { circuit, _pinned: Some(Pinned::to(cores::producer())) })
    }
}

impl Deref for Rig {
    type Target = Circuit;

    #[inline]
    fn deref(&self) -> &Circuit {
        &self.circuit
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // A receptor may hold a pipe of its own circuit, a cycle that would keep the circuit alive.
        self.circuit.close();
        // Fails only inside the circuit, where no scenario drops its rig.
        let _ = self.circuit.settle();
    }
}

/// A way to emit values into a circuit.
pub(super) trait Way: 'static {
    fn emit(&mut self, value: u64);

    /// Waits until all emissions are handled.
    fn settle(&mut self, circuit: &Circuit) -> Result<(), ContextError> {
        circuit.settle()
    }

    /// Makes arrivals count if this takes an extra step. `last` is the last emitted value.
    fn finish(&mut self, circuit: &Circuit, last: u64) -> anyhow::Result<()> {
        let _ = (circuit, last);
        Ok(())
    }
}

/// A pipe, which all threads may use.
impl Way for Pipe<u64> {
    #[inline]
    fn emit(&mut self, value: u64) {
        Pipe::emit(self, value);
    }
}

/// The caller's own lane to the pipe.
impl Way for (Lane, Pipe<u64>) {
    #[inline]
    fn emit(&mut self, value: u64) {
        self.0.emit(&self.1, value);
    }
}

impl Way for SinkPipe<u64> {
    #[inline]
    fn emit(&mut self, value: u64) {
        SinkPipe::emit(self, value);
    }
}
