//! What circuits report to `tracing`.
//!
//! A process of its own, in which [`builder`] makes every circuit: the interest that `tracing`
//! caches for a callsite belongs to the process. If a thread without a subscriber reaches a
//! callsite first, while there is only one subscriber, `tracing` caches that no subscriber is
//! interested.

use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, LazyLock, Mutex, mpsc};
use std::thread;

use tidemark_circuit::{Circuit, CircuitBuilder, Overflow, Pipe, RunBy, Supervision, name};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Metadata, Subscriber, subscriber};

/// Notes each span that is made, entered or left, and each event.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    spans: Arc<AtomicU64>,
}

impl Log {
    fn note(&self, line: String) {
        self.lines.lock().expect("no panic").push(line);
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no panic").clone()
    }
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).expect("a string takes all");
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tidemark_circuit")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields(format!("span {}", attributes.metadata().name()));
        attributes.record(&mut fields);
        self.note(fields.0);
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(event.metadata().level().to_string());
        event.record(&mut fields);
        self.note(fields.0);
    }

    fn enter(&self, _: &Id) {
        self.note("enter".to_owned());
    }

    fn exit(&self, _: &Id) {
        self.note("exit".to_owned());
    }
}

/// Two subscribers that always exist, so that each callsite asks all subscribers and not only that
/// of its thread.
static ALWAYS: LazyLock<[Dispatch; 2]> = LazyLock::new(|| [(); 2].map(|()| Dispatch::new(Log::default())));

/// Builder of circuits that report once there are subscribers.
fn builder() -> CircuitBuilder {
    LazyLock::force(&ALWAYS);
    Circuit::builder()
}

fn build(builder: CircuitBuilder) -> Circuit {
    builder.name(name!("plant")).run_by(RunBy::Owner).build().expect("valid")
}

/// The spans and events reported while `scenario` runs.
fn events(scenario: impl FnOnce()) -> Vec<String> {
    let log = Log::default();
    subscriber::with_default(log.clone(), scenario);
    log.lines()
}

#[test]
fn a_run_is_a_span_with_the_circuits_name() {
    let lines = events(|| {
        let circuit = build(builder());
        let pipe = circuit.pipe(|_: u64| ()).expect("open");
        circuit.run(10);
        pipe.emit(1);
        pipe.emit(2);
        circuit.run(10);
        std::mem::forget(pipe);
    });
    assert_eq!(lines, ["span circuit name=plant", "enter", "exit"], "a run with nothing to do is none");
}

#[test]
fn a_failure_is_an_error_within_the_run() {
    let lines = events(|| {
        let circuit = build(builder());
        let pipe = circuit.named(name!("valve")).pipe(|value: u64| panic!("{value} is too much"));
        pipe.expect("open").emit(7);
        circuit.run(10);
    });
    let failure = "ERROR subject=cortex:cortex/circuit:plant/pipe:valve operation=\"receive\" message=\"7 is too much\"";
    assert_eq!(lines, ["span circuit name=plant", "enter", failure, "exit"]);
}

#[test]
fn a_quarantine_is_reported_once() {
    let lines = events(|| {
        let circuit = build(builder().supervision(Supervision::Quarantine { after: 2 }));
        let pipe = circuit.pipe(|_: u64| panic!("always")).expect("open");
        (0..5).for_each(|value| pipe.emit(value));
        circuit.run(10);
    });
    let quarantines: Vec<_> = lines.iter().filter(|line| line.contains("quarantine")).collect();
    assert_eq!(
        quarantines,
        ["DEBUG message=quarantine subject=cortex:cortex/circuit:plant/pipe:plant failures=2"]
    );
}

#[test]
fn each_drop_and_the_close_are_reported() {
    for overflow in [Overflow::DropNewest, Overflow::DropOldest, Overflow::Reject] {
        let lines = events(|| {
            let circuit = build(builder().bounded(1, overflow));
            let pipe = circuit.pipe(|_: u64| ()).expect("open");
            (0..3).for_each(|value| pipe.emit(value));
            circuit.close();
            circuit.close();
        });
        let overflowed = "DEBUG message=overflow subject=cortex:cortex/circuit:plant";
        let closed = "DEBUG message=close subject=cortex:cortex/circuit:plant";
        assert_eq!(lines, [overflowed, overflowed, closed]);
    }
}

/// A subscriber that panics in every method.
struct Failing;

impl Subscriber for Failing {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        panic!("no span")
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        panic!("no event")
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_subscriber_that_panics_harms_no_circuit() {
    let seen = Arc::new(AtomicU64::new(0));
    let sum = Arc::clone(&seen);
    subscriber::with_default(Failing, || {
        let circuit = build(builder());
        let pipe = circuit.pipe(move |value: u64| {
            assert!(value != 2, "two");
            sum.fetch_add(value, Ordering::Relaxed);
        });
        let pipe = pipe.expect("open");
        (1..=3).for_each(|value| pipe.emit(value));
        circuit.run(10);
        circuit.close();
        assert_eq!(circuit.failures(), 1);
    });
    assert_eq!(seen.load(Ordering::Relaxed), 4);
}

#[test]
fn a_subscriber_of_one_thread_hears_of_all_circuits_that_this_one_waits_for() {
    const LENGTH: usize = 70;
    let lines = events(|| {
        let waiting = || builder().run_by(RunBy::Waiters).build().expect("valid");
        let mut last = waiting();
        let mut next = last.pipe(|()| panic!("at the end")).expect("open");
        for _ in 1..LENGTH {
            let (before, behind, target) = (waiting(), last, next);
            let receptor = move |()| {
                target.emit(());
                behind.settle().expect("no circle");
            };
            next = before.pipe(receptor).expect("open");
            last = before;
        }
        next.emit(());
        last.settle().expect("outside");
    });
    let failed = lines.iter().position(|line| line.starts_with("ERROR")).expect("the last one fails");
    let (before, behind) = lines.split_at(failed);
    let count = |lines: &[String], begin: &str| lines.iter().filter(|line| line.starts_with(begin)).count();
    assert_eq!((count(before, "span circuit"), count(behind, "ERROR")), (LENGTH, 1), "{lines:?}");
    assert_eq!(count(&lines, "enter"), count(&lines, "exit"));
}

/// A subscriber that calls a function at each event.
struct AtEvents<F>(F);

impl<F: Fn() + Send + Sync + 'static> Subscriber for AtEvents<F> {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        (self.0)();
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn what_a_subscriber_emits_is_an_input_and_no_effect_of_its_event() {
    let circuit = build(builder());
    let (sender, heard) = mpsc::channel();
    let note = circuit.pipe(move |text| sender.send(text).expect("a receiver listens")).expect("open");
    let events = note.clone();
    subscriber::with_default(AtEvents(move || events.emit("told")), || {
        circuit.pipe(|()| panic!("broken")).expect("open").emit(());
        note.emit("next");
        circuit.run(10);
    });
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), ["next", "told"]);
}

#[test]
fn a_subscriber_that_emits_to_a_full_circuit_is_not_notified_without_end() {
    for overflow in [Overflow::DropNewest, Overflow::DropOldest, Overflow::Reject] {
        let circuit = build(builder().bounded(1, overflow));
        let pipe = circuit.pipe(|_| ()).expect("open");
        let events = pipe.clone();
        subscriber::with_default(AtEvents(move || events.emit("told")), || {
            pipe.emit("first");
            pipe.emit("second");
            pipe.emit("third");
        });
        assert_eq!(circuit.dropped(), 4, "each time what was emitted, and what the subscriber did");
    }
}

#[test]
fn a_thread_that_waits_for_the_end_sees_it_while_a_subscriber_handles_the_close() {
    for run_by in [RunBy::Thread, RunBy::SharedPool, RunBy::Waiters] {
        let circuit = builder().run_by(run_by).build().expect("a thread");
        let held = Arc::new(());
        let kept = Arc::clone(&held);
        let _pipe: Pipe<u64> = circuit.pipe(move |_| _ = &kept).expect("open");
        let both = Arc::new(Barrier::new(2));
        let (closes, meets) = (circuit.clone(), Arc::clone(&both));
        let slow = AtEvents(move || {
            meets.wait();
            // Until the other thread has seen the end.
            meets.wait();
        });
        let other = thread::spawn(move || subscriber::with_default(slow, || closes.close()));
        both.wait();
        circuit.close_and_settle().expect("outside");
        assert_eq!(Arc::strong_count(&held), 1, "the receptor is gone");
        both.wait();
        other.join().expect("no panic");
    }
}

/// A subscriber that panics when it is asked for its interest.
struct Undecided;

impl Subscriber for Undecided {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        panic!("not a word")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_subscriber_that_panics_when_it_is_asked_harms_no_circuit() {
    subscriber::with_default(Undecided, || {
        let circuit = build(builder());
        let last = circuit.cell(0_u64).expect("open");
        last.pipe().emit(7);
        circuit.run(10);
        circuit.close();
        circuit.run(10);
        assert_eq!(last.get(), 7);
    });
}

#[cfg(feature = "signals")]
#[test]
fn signals_are_events_whose_level_follows_from_the_situation() {
    use tidemark_circuit::signals::{breakers, services, trace};

    let lines = events(|| {
        let circuit = build(builder());
        let (breakers, services) = (circuit.conduit().expect("open"), circuit.conduit().expect("open"));
        trace(&breakers).expect("open");
        let subscription = trace(&services).expect("open");
        let breaker = breakers::pool(&breakers);
        let breaker = breaker.get(name!("db")).expect("no factory fails");
        breaker.probe();
        breaker.open();
        let service = services::pool(&services);
        let service = service.get(name!("orders")).expect("no factory fails");
        service.fail(services::Dimension::Caller);
        subscription.close();
        service.success(services::Dimension::Caller);
        while circuit.run(100) {}
    });
    let events: Vec<_> = lines.iter().filter(|line| line.contains("vocabulary")).collect();
    assert_eq!(
        events,
        [
            r#"DEBUG subject="db" vocabulary="breakers" sign="Probe""#,
            r#"ERROR subject="db" vocabulary="breakers" sign="Open" status="Defective""#,
            r#"WARN subject="orders" vocabulary="services" sign="Fail" dimension="Caller" status="Degraded""#,
        ]
    );
}

#[cfg(feature = "signals")]
#[test]
fn every_signal_of_a_vocabulary_is_traced_with_all_its_fields() {
    use tidemark_circuit::signals::{Observation, Sign, leases, situations, trace};

    let lines = events(|| {
        let circuit = build(builder());
        let conduit = circuit.conduit().expect("open");
        trace(&conduit).expect("open");
        let pipe = conduit.get(name!("leader"));
        leases::Signal::all().for_each(|signal| pipe.emit(signal));
        while circuit.run(100) {}
    });
    let events: Vec<_> = lines.into_iter().filter(|line| line.contains("vocabulary")).collect();
    let expected: Vec<_> = leases::Signal::all()
        .map(|leases::Signal { sign, dimension }| {
            let level = match sign.situation() {
                Some(situations::Sign::Critical) => "ERROR",
                Some(situations::Sign::Warning) => "WARN",
                Some(situations::Sign::Normal) | None => "DEBUG",
            };
            let status = sign.status().map_or(String::new(), |status| format!(r#" status="{status}""#));
            format!(
                r#"{level} subject="leader" vocabulary="leases" sign="{sign}" dimension="{dimension}"{status}"#
            )
        })
        .collect();
    assert_eq!(events, expected);
}

#[cfg(feature = "signals")]
#[test]
fn a_subscriber_that_panics_at_a_signal_harms_no_circuit() {
    use tidemark_circuit::signals::{breakers, trace};

    subscriber::with_default(Failing, || {
        let circuit = build(builder());
        let conduit = circuit.conduit().expect("open");
        trace(&conduit).expect("open");
        breakers::pool(&conduit).get(name!("db")).expect("no factory fails").open();
        while circuit.run(100) {}
        assert_eq!(circuit.failures(), 0);
    });
}

#[cfg(feature = "signals")]
#[test]
fn a_closed_conduit_is_not_traced() {
    use tidemark_circuit::signals::{breakers, trace};

    let circuit = build(builder());
    let conduit = circuit.conduit::<breakers::Sign>().expect("open");
    conduit.close();
    assert!(trace(&conduit).is_err());
}
