//! All vocabularies.

use std::fmt::Write as _;
use std::sync::mpsc;
use std::thread;

use tidemark_circuit::signals::*;
use tidemark_circuit::{Circuit, Conduit, Flow, Name, Refused, Registrar, RunBy, Subject, name};

use crate::emitting::{drivers, settle};

/// Serventis' registry of its vocabularies.
const REGISTRY: &str = include_str!("signals.txt");

/// Calls a macro with each vocabulary but the templates, in the registry's order, with its
/// dimensions and episodes.
macro_rules! every {
    ($call:ident) => {
        [
            $call!(statuses dimensions),
            $call!(situations dimensions),
            $call!(operations episodes),
            $call!(outcomes),
            $call!(systems dimensions),
            $call!(trends),
            $call!(tasks episodes),
            $call!(services dimensions),
            $call!(processes episodes),
            $call!(transactions dimensions episodes),
            $call!(timers dimensions),
            $call!(changes episodes),
            $call!(locks episodes),
            $call!(latches episodes),
            $call!(atomics episodes),
            $call!(resources episodes),
            $call!(leases dimensions episodes),
            $call!(pools),
            $call!(exchanges dimensions),
            $call!(queues),
            $call!(stacks),
            $call!(caches),
            $call!(pipelines),
            $call!(messages dimensions),
            $call!(flows dimensions),
            $call!(routers),
            $call!(valves),
            $call!(breakers),
            $call!(guards dimensions),
            $call!(counters),
            $call!(gauges),
            $call!(probes dimensions episodes),
            $call!(sensors dimensions),
            $call!(logs),
            $call!(evals dimensions),
            $call!(agents dimensions episodes),
            $call!(actors),
            $call!(members dimensions),
        ]
    };
}

/// The universal vocabularies. The registry gives no interpretations of their signs.
const UNIVERSAL: [&str; 6] = ["statuses", "situations", "operations", "outcomes", "systems", "trends"];

/// A name in the registry's spelling: `HalfOpen` is `HALF_OPEN`.
fn lexeme(name: &str) -> String {
    let mut lexeme = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !lexeme.is_empty() {
            lexeme.push('_');
        }
        lexeme.push(letter.to_ascii_uppercase());
    }
    lexeme
}

/// The rest of a vocabulary's first line.
fn dimensions<D: Dimension>() -> String {
    let mut text = if D::ORDERED { " spectrum" } else { " category" }.to_owned();
    for dimension in D::ALL {
        // `Self` cannot be a name in Rust.
        let name = if dimension.name() == "Own" { "Self" } else { dimension.name() };
        write!(text, " {}", lexeme(name)).expect("a string takes all");
    }
    text + "\n"
}

/// The lines of a vocabulary.
fn entry<S: Sign>(dimensions: &str, operation: Option<fn(S) -> operations::Sign>) -> String {
    let mut text = S::VOCABULARY.to_owned() + if dimensions.is_empty() { "\n" } else { dimensions };
    for sign in S::ALL {
        let name = lexeme(sign.name());
        if UNIVERSAL.contains(&S::VOCABULARY) {
            writeln!(text, "    {name}").expect("a string takes all");
            continue;
        }
        let kind = match sign.kind() {
            Kind::Operation => "OPERATION",
            Kind::Outcome => "OUTCOME",
        };
        let reading = |name: Option<&str>| name.map_or("-".to_owned(), lexeme);
        let status = reading(sign.status().map(Symbol::name));
        let operation = reading(operation.map(|operation| operation(*sign).name()));
        let outcome = reading(sign.outcome().map(Symbol::name));
        writeln!(text, "    {name:<12} {kind:<10} {status:<10} {operation:<8} {outcome}")
            .expect("a string takes all");
    }
    text
}

#[test]
fn vocabularies_are_those_of_serventis() {
    macro_rules! entry {
        ($vocabulary:ident) => {
            entry::<$vocabulary::Sign>("", None)
        };
        ($vocabulary:ident episodes) => {
            entry::<$vocabulary::Sign>("", Some(Episodic::operation))
        };
        ($vocabulary:ident dimensions) => {
            entry::<$vocabulary::Sign>(&dimensions::<$vocabulary::Dimension>(), None)
        };
        ($vocabulary:ident dimensions episodes) => {
            entry::<$vocabulary::Sign>(&dimensions::<$vocabulary::Dimension>(), Some(Episodic::operation))
        };
    }
    let mut ours = every!(entry).to_vec();
    // They follow the other universal ones.
    let templates = ["surveys".to_owned()
        + &dimensions::<surveys::Dimension>()
        + "cycles"
        + &dimensions::<cycles::Dimension>()];
    ours.splice(UNIVERSAL.len()..UNIVERSAL.len(), templates);

    let theirs: Vec<_> = REGISTRY.lines().filter(|line| !line.starts_with('#')).collect();
    for (ours, theirs) in ours.concat().lines().zip(&theirs) {
        assert_eq!(ours, *theirs);
    }
    assert_eq!(ours.concat().lines().count(), theirs.len());
    let signs = theirs.iter().filter(|line| line.starts_with(' ')).count();
    assert_eq!(
        (signs, theirs.len() - signs),
        (237, 40),
        "as many signs and vocabularies as the registry counts"
    );
}

#[test]
fn the_universal_readings_are_lifted_to_themselves() {
    for sign in statuses::Sign::ALL {
        assert_eq!(sign.status(), Some(*sign));
    }
    for sign in operations::Sign::ALL {
        assert_eq!(sign.operation(), *sign);
    }
    for sign in outcomes::Sign::ALL {
        assert_eq!(sign.outcome(), Some(*sign));
    }
}

#[test]
fn ordinals_are_dense_and_in_order() {
    fn check<O: Observation>() {
        assert!(O::all().map(O::ordinal).eq(0..O::COUNT));
        let map = Map::new(|observation: O| observation.to_string());
        assert!(O::all().all(|observation| map[observation] == observation.to_string()));
        assert!(size_of::<O>() <= 2);
    }
    macro_rules! check {
        ($vocabulary:ident $(episodes)?) => {
            check::<$vocabulary::Sign>()
        };
        ($vocabulary:ident dimensions $(episodes)?) => {
            check::<$vocabulary::Signal>()
        };
    }
    every!(check);
    check::<surveys::Signal<evals::Sign>>();
    check::<cycles::Signal<services::Sign>>();
}

#[test]
fn an_episode_begins_with_an_act() {
    fn check<S: Episodic>() {
        for sign in S::ALL.iter().filter(|sign| sign.operation() == operations::Sign::Begin) {
            assert_eq!(sign.kind(), Kind::Operation, "{} {sign}", S::VOCABULARY);
        }
    }
    macro_rules! check {
        ($vocabulary:ident $(dimensions)? episodes) => {
            check::<$vocabulary::Sign>()
        };
        ($vocabulary:ident $(dimensions)?) => {
            ()
        };
    }
    every!(check);
}

/// What a conduit's subscribers receive, with the names, until the end of the test.
fn heard<O: Observation>(circuit: &Circuit, conduit: &Conduit<O>) -> mpsc::Receiver<(&'static str, O)> {
    let (sender, receiver) = mpsc::channel();
    let subscriber = circuit.subscriber(move |subject: &Subject, registrar: &mut Registrar<'_, O>| {
        let (name, sender) = (subject.name().path(), sender.clone());
        registrar.receptor(move |observation| sender.send((name, observation)).expect("is listened to"));
    });
    conduit.subscribe(&subscriber.expect("open")).expect("open");
    receiver
}

#[test]
fn what_is_said_of_each_subject_is_lifted_by_itself() {
    use statuses::Sign::{Converging, Defective, Diverging};

    let circuit = Circuit::builder().run_by(RunBy::Waiters).build().expect("valid");
    let said = circuit.conduit::<leases::Signal>().expect("open");
    let statuses = circuit.conduit::<statuses::Sign>().expect("open");
    let heard = heard(&circuit, &statuses);
    let sign = Flow::new().map(|signal: leases::Signal| signal.sign);
    let lifted = statuses.pool(&sign.flow(sequencers::episodes()));
    said.subscribe(&circuit.subscriber_to(lifted).expect("open")).expect("open");

    let leases = leases::pool(&said);
    let lease = |name: Name| leases.get(name).expect("no factory fails");
    let holder = leases::Dimension::Lessee;
    lease(name!("a")).acquire(holder);
    lease(name!("b")).release(holder);
    lease(name!("a")).grant(holder);
    lease(name!("a")).revoke(holder);
    circuit.settle().expect("outside");
    let expected = [("a", Diverging), ("b", Defective), ("a", Converging), ("a", Defective)];
    assert_eq!(heard.try_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn scores_and_cycles_are_signals_like_any_others() {
    let circuit = Circuit::builder().run_by(RunBy::Waiters).build().expect("valid");
    let said = circuit.conduit::<caches::Sign>().expect("open");
    let statuses = circuit.conduit::<statuses::Signal>().expect("open");
    let cycles = circuit.conduit::<cycles::Signal<caches::Sign>>().expect("open");
    let (scored, recurred) = (heard(&circuit, &statuses), heard(&circuit, &cycles));
    let scores = statuses.pool(&scorecards::flow(caches::Sign::status));
    let recurrences = cycles.pool(&cycles::flow());
    said.subscribe(&circuit.subscriber_to(scores).expect("open")).expect("open");
    said.subscribe(&circuit.subscriber_to(recurrences).expect("open")).expect("open");

    let caches = caches::pool(&said);
    let cache = caches.get(name!("sessions")).expect("no factory fails");
    (0..6).for_each(|_| cache.miss());
    cache.lookup();
    cache.miss();
    circuit.settle().expect("outside");
    let texts = |observations: Vec<String>| observations.join(", ");
    let scored = texts(scored.try_iter().map(|(_, signal)| signal.to_string()).collect());
    let recurred = texts(recurred.try_iter().map(|(_, signal)| signal.to_string()).collect());
    assert_eq!(scored, "Degraded Tentative, ".repeat(5) + "Degraded Confirmed, Degraded Confirmed");
    assert_eq!(
        recurred,
        "Miss Single, ".to_owned() + &"Miss Repeat, ".repeat(5) + "Lookup Single, Miss Return"
    );
}

#[test]
fn signs_are_lifted_to_a_status_and_that_to_a_situation() {
    use situations::Sign::{Critical, Normal, Warning};
    use statuses::Sign as Status;

    let lifted = |sign: breakers::Sign| (sign.status(), sign.situation());
    assert_eq!(lifted(breakers::Sign::Close), (Some(Status::Stable), Some(Normal)));
    assert_eq!(lifted(breakers::Sign::Trip), (Some(Status::Degraded), Some(Warning)));
    assert_eq!(lifted(breakers::Sign::Open), (Some(Status::Defective), Some(Critical)));
    assert_eq!(lifted(breakers::Sign::Probe), (None, None));

    let urgencies: Vec<_> = Status::ALL.iter().map(|status| status.urgency()).collect();
    assert_eq!(urgencies, [Normal, Normal, Warning, Warning, Warning, Critical, Critical]);
}

#[test]
fn signals_say_what_they_are() {
    let signal = services::Signal { sign: services::Sign::Fail, dimension: services::Dimension::Caller };
    assert_eq!(signal.to_string(), "Fail Caller");
    assert_eq!((signal.sign(), Observation::dimension(signal)), (services::Sign::Fail, Some("Caller")));
    assert_eq!(Observation::dimension(breakers::Sign::HalfOpen), None);
    assert_eq!(breakers::Sign::HalfOpen.to_string(), "HalfOpen");
}

/// Makes two threads emit every sign of a vocabulary, each for its own subjects, and checks what is
/// received.
fn signs_are_heard_from_outside<S: Sign + Observation>(run_by: RunBy) {
    let circuit = Circuit::builder().run_by(run_by).build().expect("valid");
    let said = circuit.conduit::<S>().expect("open");
    let heard = heard(&circuit, &said);
    let names = [name!("a"), name!("b")];
    thread::scope(|scope| {
        for name in names {
            let pipe = said.get(name);
            scope.spawn(move || S::ALL.iter().for_each(|sign| assert!(pipe.try_emit(*sign).is_ok())));
        }
    });
    settle(&circuit);
    let heard: Vec<_> = heard.try_iter().collect();
    for name in names {
        let of_one = heard.iter().filter(|(of, _)| *of == name.path()).map(|(_, sign)| *sign);
        assert!(of_one.eq(S::ALL.iter().copied()), "{} of {name}", S::VOCABULARY);
    }
    assert_eq!(heard.len(), 2 * S::ALL.len());
    circuit.close();
    assert_eq!(said.get(names[0]).try_emit(S::ALL[0]), Err(Refused::Closed(S::ALL[0])));
}

#[test]
fn signs_that_threads_say_from_outside_are_heard_in_order_with_each_driver() {
    macro_rules! check {
        ($vocabulary:ident $($with:ident)*) => {
            drivers().into_iter().for_each(signs_are_heard_from_outside::<$vocabulary::Sign>)
        };
    }
    every!(check);
}

/// A signal with more data, which is larger than a slot of the queue.
type Report = (services::Signal, [u64; 8]);

#[test]
fn signals_in_large_values_are_heard_whole_with_each_driver() {
    for run_by in drivers() {
        let circuit = Circuit::builder().run_by(run_by).build().expect("valid");
        let (sender, receiver) = mpsc::channel();
        let pipe = circuit.pipe(move |report: Report| sender.send(report).expect("is listened to"));
        let pipe = pipe.expect("open");
        let report = |signal: services::Signal| (signal, [signal.ordinal() as u64; 8]);
        services::Signal::all().for_each(|signal| assert!(pipe.try_emit(report(signal)).is_ok()));
        settle(&circuit);
        assert!(receiver.try_iter().eq(services::Signal::all().map(report)));
    }
}
