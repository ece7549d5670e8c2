//! `IngressOps` of the original's newer suite: one caller, and several at once.

use super::emission::round_trips;
use crate::circuit::batch::end;
use crate::circuit::rig::Runner;
use crate::micro::benchmark::{Benchmark, Work};
use crate::micro::tally::Tally;
use anyhow::Context;
use std::hint::black_box;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tidemark_circuit::{Circuit, Pipe};

/// Number of callers besides the one that awaits.
const OTHERS: u64 = 3;

/// Round trips per call of the row with one caller.
const ROUND_TRIPS: u64 = 64;

pub(super) fn suite() -> Vec<Benchmark> {
    let rows = [
        ("ingress_contended_emit_batch", Entry::Pipe, 1, true),
        ("ingress_contended_emit_batch_lane", Entry::Lane, 1, true),
        ("ingress_contended_admission_batch", Entry::Pipe, 1, false),
        ("ingress_contended_admission_batch_lane", Entry::Lane, 1, false),
        ("ingress_sustained_emit_400k", Entry::Pipe, 10, true),
        ("ingress_sustained_emit_400k_lane", Entry::Lane, 10, true),
    ];
    let mut all: Vec<Benchmark> = rows.into_iter().map(contended).collect();
    let idle = format!(
        "an emission into a circuit and an await of it, one after the other, 64 times, counted: how long it takes to wake; {}",
        Runner::THREAD.driver
    );
    all.push(
        Benchmark::new("IngressOps.ingress_idle_roundtrip", idle, |_| {
            round_trips((Runner::THREAD.rig)()?, ROUND_TRIPS)
        })
        .also(["PipeOps.async_emit_single_await"]),
    );
    all
}

/// How a caller enters the circuit.
#[derive(Clone, Copy)]
enum Entry {
    Pipe,
    Lane,
}

fn contended((name, entry, bursts, is_awaited): (&str, Entry, u64, bool)) -> Benchmark {
    let how = match entry {
        Entry::Pipe => "one pipe",
        Entry::Lane => "a lane each",
    };
    let until = if is_awaited {
        "and one await when all have emitted"
    } else {
        "until the last has returned; awaited and counted outside of the measured time"
    };
    let count = bursts * 10;
    let measures = format!(
        "{count},000 emissions each by four threads at once, by {how}, {until}, each; from when the first of them begins; counted; \
         the shared pool runs the circuit"
    );
    Benchmark::new(format!("IngressOps.{name}"), measures, move |sizes| {
        let (rig, burst) = ((Runner::SHARED_POOL.rig)()?, sizes.batch * bursts);
        let mut tally = Tally::default();
        let pipe = end(&rig, tally.counter())?;
        let callers = Callers::new(&rig, &pipe, entry, burst)?;
        Work::calls(burst * (OTHERS + 1), move || {
            let Span { began, ended } = callers.emit()?;
            rig.settle()?;
            let took = if is_awaited { began.elapsed() } else { ended - began };
            tally.expect(burst * (OTHERS + 1))?;
            Ok(took)
        })
    })
}

/// Threads that emit together with the owner of this value.
struct Callers {
    burst: Arc<Burst>,
    /// Dropped to end the threads.
    rounds: Option<Vec<mpsc::Sender<()>>>,
    threads: Vec<JoinHandle<()>>,
}

/// The concurrent emissions of all callers.
struct Burst {
    circuit: Circuit,
    pipe: Pipe<u64>,
    entry: Entry,
    count: u64,
    /// Passed when all threads are awake.
    begin: Barrier,
    /// Number of callers that have emitted.
    done: AtomicU64,
    spans: Mutex<Vec<Span>>,
}

/// Start and end of an emitting phase.
#[derive(Clone, Copy)]
struct Span {
    began: Instant,
    ended: Instant,
}

impl Callers {
    fn new(circuit: &Circuit, pipe: &Pipe<u64>, entry: Entry, count: u64) -> anyhow::Result<Self> {
        let burst = Arc::new(Burst {
            circuit: circuit.clone(),
            pipe: pipe.clone(),
            entry,
            count,
            begin: Barrier::new(OTHERS as usize + 1),
            done: AtomicU64::new(0),
            spans: Mutex::default(),
        });
        let (mut senders, mut threads) = (Vec::new(), Vec::new());
        for _ in 0..OTHERS {
            let (sender, rounds) = mpsc::channel();
            let burst = Arc::clone(&burst);
            senders.push(sender);
            threads.push(
                thread::Builder::new()
                    .name("caller".to_owned())
                    .spawn(move || rounds.into_iter().for_each(|()| burst.emit()))?,
            );
        }
        Ok(Callers { burst, rounds: Some(senders), threads })
    }

    /// Emits a burst together with all other callers and waits for them. Returns the span from the
    /// first to the last emission, without the wake-up of threads and the detection of their end.
    fn emit(&self) -> anyhow::Result<Span> {
        for round in self.rounds.iter().flatten() {
            round.send(()).context("a caller has ended")?;
        }
        self.burst.emit();
        while self.burst.done.load(Ordering::Acquire) <= OTHERS {
            anyhow::ensure!(!self.threads.iter().any(JoinHandle::is_finished), "a caller has ended");
            // Yields instead of parking, so that the await needs no wake-up of this thread.
            thread::yield_now();
        }
        self.burst.done.store(0, Ordering::Relaxed);
        let spans = mem::take(&mut *self.burst.spans());
        let both = |one: Span, other: Span| Span {
            began: one.began.min(other.began),
            ended: one.ended.max(other.ended),
        };
        spans.into_iter().reduce(both).context("nothing was emitted")
    }
}

impl Burst {
    /// The emissions of each caller.
    fn emit(&self) {
        self.begin.wait();
        let began = Instant::now();
        emit(&self.circuit, &self.pipe, self.entry, self.count);
        let ended = Instant::now();
        self.spans().push(Span { began, ended });
        self.done.fetch_add(1, Ordering::Release);
    }

    fn spans(&self) -> MutexGuard<'_, Vec<Span>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Callers {
    fn drop(&mut self) {
        self.rounds = None;
        for thread in self.threads.drain(..) {
            // Has no result: lost values are noticed by counting.
            let _ = thread.join();
        }
    }
}

fn emit(circuit: &Circuit, pipe: &Pipe<u64>, entry: Entry, count: u64) {
    match entry {
        Entry::Pipe => (0..count).for_each(|value| pipe.emit(black_box(value))),
        // One per burst, as part of its cost. Refused only by a closed circuit; its values are then
        // missing.
        Entry::Lane => {
            if let Ok(mut lane) = circuit.lane() {
                (0..count).for_each(|value| lane.emit(pipe, black_box(value)));
            }
        }
    }
}
