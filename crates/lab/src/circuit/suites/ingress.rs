//! `IngressOps` of the original's newer suite: several callers at once, and one alone.

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

/// How many callers there are besides the one who awaits.
const OTHERS: u64 = 3;

/// How many round trips a call of the row with one caller does.
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
        Runner::THREAD.who
    );
    all.push(
        Benchmark::new("IngressOps.ingress_idle_roundtrip", idle, |_| {
            round_trips((Runner::THREAD.rig)()?, ROUND_TRIPS)
        })
        .also(["PipeOps.async_emit_single_await"]),
    );
    all
}

/// How a caller enters.
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

/// Threads that emit together with the one that has this.
struct Callers {
    burst: Arc<Burst>,
    /// Dropped to end the threads.
    rounds: Option<Vec<mpsc::Sender<()>>>,
    threads: Vec<JoinHandle<()>>,
}

/// What all callers emit at once.
struct Burst {
    circuit: Circuit,
    pipe: Pipe<u64>,
    entry: Entry,
    count: u64,
    /// All have been woken and are about to begin.
    begin: Barrier,
    /// How many have emitted.
    done: AtomicU64,
    spans: Mutex<Vec<Span>>,
}

/// From when to when somebody has emitted.
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

    /// Emits a burst with all others, and waits until they have. Returns from when the first until when the last of them emitted:
    /// waking them, and noticing that they are done, is not a part of it.
    fn emit(&self) -> anyhow::Result<Span> {
        for round in self.rounds.iter().flatten() {
            round.send(()).context("a caller has ended")?;
        }
        self.burst.emit();
        while self.burst.done.load(Ordering::Acquire) <= OTHERS {
            anyhow::ensure!(!self.threads.iter().any(JoinHandle::is_finished), "a caller has ended");
            // Without sleeping, so that nobody has to wake this thread for the await.
            thread::yield_now();
        }
        self.burst.done.store(0, Ordering::Relaxed);
        let spans = mem::take(&mut *self.burst.spans());
        let both = |one: Span, other: Span| Span {
            began: one.began.min(other.began),
            ended: one.ended.max(other.ended),
        };
        spans.into_iter().reduce(both).context("nobody has emitted")
    }
}

impl Burst {
    /// What each caller does.
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
            // It has nothing to say: a value it lost was noticed by counting.
            let _ = thread.join();
        }
    }
}

fn emit(circuit: &Circuit, pipe: &Pipe<u64>, entry: Entry, count: u64) {
    match entry {
        Entry::Pipe => (0..count).for_each(|value| pipe.emit(black_box(value))),
        // One for each burst, which is part of what it costs. Refused only by a closed circuit; its values are then missed.
        Entry::Lane => {
            if let Ok(mut lane) = circuit.lane() {
                (0..count).for_each(|value| lane.emit(pipe, black_box(value)));
            }
        }
    }
}
