//! A circuit for one scenario, and the ways into it.

use crate::micro::cores::{self, Pinned};
use std::ops::Deref;
use tidemark_circuit::{Circuit, ContextError, Lane, Pipe, RunBy, SinkPipe, ThreadPool};

/// Who runs the circuit of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The pool that circuits share.
    Pool,
    /// A thread of its own.
    Thread,
    /// Whoever waits.
    Waiters,
}

/// A circuit with whoever runs it, and how a row says so.
#[derive(Clone, Copy)]
pub(super) struct Runner {
    /// As the last part of what a row measures.
    pub(super) who: &'static str,
    pub(super) rig: fn() -> anyhow::Result<Rig>,
}

impl Runner {
    /// What a circuit has that is made without a word about it.
    pub(super) const SHARED_POOL: Self =
        Runner { who: "the shared pool runs the circuit", rig: || Rig::new(By::Pool) };
    /// A pool's thread and the caller do not share a core.
    pub(super) const POOL: Self = Runner {
        who: "a pool with one thread runs the circuit, on a core of its own",
        rig: || Rig::apart(By::Pool),
    };
    /// The thread and the caller do not share a core.
    pub(super) const THREAD: Self =
        Runner { who: "a thread runs the circuit, on a core of its own", rig: || Rig::apart(By::Thread) };
    /// All on one core.
    pub(super) const WAITERS: Self =
        Runner { who: "the thread that awaits runs the circuit", rig: || Rig::new(By::Waiters) };

    #[cfg(test)]
    pub(super) const ALL: [Self; 4] = [Self::SHARED_POOL, Self::POOL, Self::THREAD, Self::WAITERS];
}

/// A circuit that ends with the scenario.
pub(super) struct Rig {
    circuit: Circuit,
    _pinned: Option<Pinned>,
}

impl Rig {
    /// A circuit whose threads run where the system likes.
    pub(super) fn new(by: By) -> anyhow::Result<Self> {
        let run_by = match by {
            By::Pool => RunBy::SharedPool,
            By::Thread => RunBy::Thread,
            By::Waiters => RunBy::Waiters,
        };
        Ok(Rig { circuit: Circuit::builder().run_by(run_by).build()?, _pinned: None })
    }

    /// A circuit that runs on one core while the caller stays on another, as long as this exists. A pool is one of its own
    /// with a single thread. On a machine with one core nothing is pinned.
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
        // A receptor may hold a pipe of its own circuit, which would keep it for ever.
        self.circuit.close();
        // Fails only inside of the circuit, where no scenario drops its rig.
        let _ = self.circuit.settle();
    }
}

/// A way to give a circuit values.
pub(super) trait Way: 'static {
    fn emit(&mut self, value: u64);

    /// Waits until what was emitted is handled.
    fn settle(&mut self, circuit: &Circuit) -> Result<(), ContextError> {
        circuit.settle()
    }

    /// Has what has arrived counted where that needs to be asked for. `last` was emitted last.
    fn finish(&mut self, circuit: &Circuit, last: u64) -> anyhow::Result<()> {
        let _ = (circuit, last);
        Ok(())
    }
}

/// A pipe as all threads may use it.
impl Way for Pipe<u64> {
    #[inline]
    fn emit(&mut self, value: u64) {
        Pipe::emit(self, value);
    }
}

/// A lane of one's own, to the pipe behind it.
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
