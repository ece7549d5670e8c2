//! Simulated runs depend on their seed and on nothing else.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use tidemark_circuit::{Circuit, ContextError, Fiber, Name, Overflow, Registrar, Simulation, Subject};

const MILLI: Duration = Duration::from_millis(1);

/// The result of the work, unless it hangs.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, done) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    done.recv_timeout(Duration::from_mins(1)).expect("it returns")
}

/// Two circuits that send each other values, a conduit with a late subscriber, and operators that
/// draw random numbers and read the clock.
fn run(seed: u64) -> Vec<String> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let seen = Arc::clone(&seen);
        move |value: u64| seen.lock().expect("no panic").push(format!("{name} {value}"))
    };
    let mut simulation = Simulation::new(seed);
    let (first, second) = (simulation.circuit(), simulation.circuit());
    let end = second.pipe(note("end")).expect("open");
    let fiber = Fiber::<u64>::new().chance(0.7).and_then(|f| f.every_duration(Duration::from_micros(1)));
    let sampled = second.pipe(note("sampled")).expect("open").prepend(&fiber.expect("valid")).expect("open");
    let conduit = first.conduit::<u64>().expect("open");
    let log = note("conduit");
    let forward = first
        .pipe(move |value: u64| {
            log(value);
            end.emit(value);
            sampled.emit(value);
        })
        .expect("open");
    let subscriber = first
        .subscriber(move |_: &Subject, registrar: &mut Registrar<'_, u64>| registrar.pipe(&forward))
        .expect("open");
    let name = Name::new("a").expect("valid");
    for caller in 0..3_u64 {
        let conduit = conduit.clone();
        simulation.caller((0..8).map(|step| {
            let conduit = conduit.clone();
            Box::new(move || conduit.get(name).emit(caller * 100 + step)) as Box<dyn FnOnce()>
        }));
    }
    let late = conduit.clone();
    simulation.caller([Box::new(move || drop(late.subscribe(&subscriber))) as Box<dyn FnOnce()>]);
    simulation.run();
    let seen = seen.lock().expect("no panic");
    seen.clone()
}

#[test]
fn a_seed_gives_one_run() {
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed));
    }
}

#[test]
fn seeds_give_many_runs_and_each_keeps_the_order_of_callers() {
    let mut different = BTreeSet::new();
    for seed in 0..200 {
        let run = run(seed);
        for caller in ["end ", "end 1", "end 2"] {
            let of_caller =
                |text: &&String| text.starts_with(caller) && (text.len() > 5) == (caller.len() > 4);
            let own: Vec<_> = run.iter().filter(of_caller).collect();
            assert!(own.is_sorted(), "{own:?}");
        }
        different.insert(run);
    }
    assert!(different.len() > 190, "{} different runs of 200", different.len());
}

#[test]
fn time_passes_only_when_advanced() {
    let mut simulation = Simulation::new(1);
    let circuit = simulation.circuit();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let fiber = Fiber::<u32>::new().every_duration(Duration::from_hours(1)).expect("valid");
    let end = circuit.pipe(move |value| log.lock().expect("no panic").push(value)).expect("open");
    let pipe = end.prepend(&fiber).expect("open");
    for value in 0..4 {
        pipe.emit(value);
        simulation.run();
        simulation.advance(Duration::from_secs(1801));
    }
    assert_eq!(*seen.lock().expect("no panic"), [2]);
}

#[test]
fn circuits_may_be_bounded() {
    let mut simulation = Simulation::new(1);
    let builder = Circuit::builder().bounded(2, Overflow::Reject);
    let circuit = simulation.circuit_from(builder).expect("valid");
    let pipe = circuit.pipe(|_: u32| ()).expect("open");
    assert_eq!((0..5).filter(|value| pipe.try_emit(*value).is_ok()).count(), 2);
    simulation.run();
    assert_eq!((0..5).filter(|value| pipe.try_emit(*value).is_ok()).count(), 2);
}

#[test]
fn waiting_for_what_only_the_simulation_can_do_is_refused() {
    let refused = in_time(|| {
        let mut simulation = Simulation::new(1);
        let circuit = simulation.circuit();
        let cell = circuit.cell(0).expect("open");
        cell.pipe().emit(7);
        let settled = circuit.settled();
        let refused =
            [circuit.settle(), circuit.pulse().map(drop), settled.map(drop), circuit.close_and_settle()];
        assert!(!circuit.is_closed(), "what is refused does nothing");
        simulation.run();
        assert_eq!((cell.get(), circuit.settle()), (7, Ok(())), "there is nothing to wait for");
        refused
    });
    for refusal in refused {
        let refusal = refusal.expect_err("no driver would run it").to_string();
        assert!(refusal.contains("Simulation::run"), "{refusal}");
    }
}

#[test]
fn closing_something_of_a_simulated_circuit_and_waiting_is_refused_and_closes_nothing() {
    let (refused, received) = in_time(|| {
        let mut simulation = Simulation::new(1);
        let circuit = simulation.circuit();
        let conduit = circuit.conduit::<u32>().expect("open");
        let kept = circuit.conduit::<u32>().expect("open");
        let subscriber = circuit.subscriber_to(kept.clone()).expect("open");
        let subscription = conduit.subscribe(&subscriber).expect("open");
        let tap = conduit.tap(&Fiber::<u32>::new()).expect("open");
        let reservoirs = [kept.reservoir(4).expect("open"), tap.conduit().reservoir(4).expect("open")];
        let bank = circuit.bank::<u32>().expect("open");
        let ticker = circuit.ticker(MILLI, &circuit.pipe(|_| ()).expect("open")).expect("valid");
        let refused = vec![
            subscription.close_and_settle(),
            tap.close_and_settle(),
            subscriber.close_and_settle(),
            reservoirs[0].close_and_settle(),
            bank.close_and_settle(),
            ticker.close_and_settle(),
            conduit.close_and_settle(),
        ];
        conduit.get(Name::new("a").expect("valid")).emit(7);
        simulation.run();
        (refused, reservoirs.map(|reservoir| reservoir.drain().len()))
    });
    assert!(refused.iter().all(Result::<(), ContextError>::is_err), "{refused:?}");
    assert_eq!(received, [1, 1]);
}

/// The ticks that tickers with these intervals, in milliseconds, have sent after each of the
/// pauses.
fn ticks(intervals: [u32; 2], pauses: &[Duration]) -> Vec<Vec<(usize, u64)>> {
    let mut simulation = Simulation::new(1);
    let circuits = [simulation.circuit(), simulation.circuit()];
    let (sender, receiver) = mpsc::channel();
    let tickers: Vec<_> = (0..2)
        .map(|index| {
            let sender = sender.clone();
            let target = circuits[0].pipe(move |tick| sender.send((index, tick)).expect("received"));
            circuits[0].ticker(intervals[index] * MILLI, &target.expect("open")).expect("valid")
        })
        .collect();
    let after = |pause: &Duration| {
        simulation.advance(*pause);
        simulation.run();
        receiver.try_iter().collect()
    };
    let ticks = pauses.iter().map(after).collect();
    tickers.iter().for_each(tidemark_circuit::Ticker::close);
    simulation.advance(Duration::from_hours(1));
    simulation.run();
    assert_eq!(receiver.try_iter().next(), None, "they are closed");
    ticks
}

#[test]
fn tickers_tick_as_the_simulation_has_time_pass() {
    let each = ticks([10, 1000], &[10 * MILLI; 100]);
    let first: Vec<_> = each.iter().flatten().filter(|(index, _)| *index == 0).collect();
    assert!(first.iter().map(|(_, tick)| *tick).eq(0..100), "{first:?}");
    assert_eq!(each[99], [(0, 99), (1, 0)], "the older one first");
    thread::sleep(5 * MILLI);
    assert_eq!(ticks([1, 1], &[Duration::ZERO]), [[]], "another clock does not matter");
}

#[test]
fn ticks_come_in_the_order_in_which_they_were_due() {
    let all = ticks([3, 2], &[6 * MILLI]);
    assert_eq!(all, [[(1, 0), (0, 0), (1, 1), (0, 1), (1, 2)]]);
}

#[test]
fn a_simulated_ticker_leaves_no_number_out_however_much_time_passes() {
    let century = Duration::from_hours(24 * 365 * 100);
    let all = ticks([1, 3_600_000], &[century, century, century, 2 * MILLI]).concat();
    for index in 0..2 {
        let own: Vec<_> = all.iter().filter(|(of, _)| *of == index).map(|(_, tick)| *tick).collect();
        assert!((0..own.len() as u64).eq(own.iter().copied()), "{own:?}");
        // As many as may wait each time, and a few while those are handled.
        assert!((3 * 1024..3 * 1024 + 16).contains(&own.len()), "{}", own.len());
    }
}
