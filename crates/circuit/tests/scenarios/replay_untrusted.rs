//! A journal may come from an untrusted source: whatever it contains, its replay stays within its
//! limits.

use std::sync::{Arc, Mutex};

use crate::frames::{frame, header};
use proptest::prelude::*;
use tidemark_circuit::{
    Capture, Circuit, Flow, Name, Recorded, Registrar, Replay, ReplayError, RunBy, Subject, name,
};

/// Replays these frames with these limits, to a pipe of `E`.
fn limited<E: Recorded + Send + 'static>(
    frames: &[u8],
    limit: impl FnOnce(&mut Replay<&[u8]>),
) -> Result<u64, ReplayError> {
    let journal = [&header(), frames].concat();
    let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
    let mut replay = Replay::new(&journal[..])?;
    replay.pipe("pipe", &circuit.pipe(|_: E| ()).expect("open"));
    let conduit = circuit.conduit::<u8>().expect("open");
    replay.conduit("conduit", &conduit);
    limit(&mut replay);
    replay.run(&circuit).map(|replayed| replayed.inputs)
}

/// Each absent element takes one byte in the journal, and 64 KiB in memory.
type Large = Vec<Option<[u8; 65_536]>>;

#[test]
fn a_value_takes_no_more_memory_than_is_allowed() {
    let emit = |value: &[u8]| [frame(1, b"pipe"), frame(2, &[&[0, 0, 0], value].concat())].concat();
    // As many values without bytes as a number can encode.
    let most = [&[0xFF; 9][..], &[1]].concat();
    assert!(limited::<Vec<()>>(&emit(&most), |_| ()).is_err());
    let many = emit(&[0xFF, 0xFF, 0x7F]);
    assert!(matches!(
        limited::<Vec<()>>(&many, |replay| replay.limit_value(1000)),
        Err(ReplayError::TooLarge { bytes_max: 1000, .. })
    ));
    assert_eq!(limited::<Vec<()>>(&many, |_| ()).expect("little"), 1);

    let nothings = emit(&[&[100][..], &[0; 100]].concat());
    let error = limited::<Large>(&nothings, |replay| replay.limit_value(1 << 20)).expect_err("6 MiB");
    assert!(error.to_string().contains("Replay::limit_value"), "{error}");
    assert_eq!(limited::<Large>(&nothings, |_| ()).expect("no more than 64 MiB"), 1);

    let long = emit(&[&[100][..], &[b'x'; 100]].concat());
    assert!(matches!(
        limited::<String>(&long, |replay| replay.limit_value(99)),
        Err(ReplayError::TooLarge { bytes_max: 99, .. })
    ));
}

#[test]
fn a_journal_makes_no_more_names_than_are_allowed() {
    let frames = |prefix: &str| {
        let mut frames = [frame(1, b"conduit"), frame(1, b"pipe")].concat();
        for number in 0..5 {
            let name = format!("limited.{prefix}.n{number}");
            frames.extend(frame(1, name.as_bytes()));
            // One as the name of a conduit's pipe, and one within a value.
            frames.extend(frame(2, &[0, 0, number + 3, 0]));
            let value = [&[name.len() as u8 + 1][..], name.as_bytes(), b"x"].concat();
            frames.extend(frame(2, &[&[0, 1, 0], &value[..]].concat()));
        }
        frames
    };
    let known = Name::new("limited").expect("valid");
    let error = limited::<Name>(&frames("a"), |replay| replay.limit_names(10)).expect_err("eleven");
    assert!(matches!(error, ReplayError::TooManyNames(10)), "{error}");
    assert_eq!(limited::<Name>(&frames("b"), |replay| replay.limit_names(11)).expect("eleven"), 10);
    assert_eq!(limited::<Name>(&frames("b"), |replay| replay.limit_names(0)).expect("none is new"), 10);
    assert_eq!(known.depth(), 1);
}

/// Numbers of kinds in a journal.
const CIRCUIT: u8 = 3;
const CONDUIT: u8 = 4;
const CURRENT: u8 = 5;
const PIPE: u8 = 7;
const SINK: u8 = 10;

/// The subjects of a path: number, kind, and name.
type Path<'a> = &'a [(u8, u8, &'a str)];

/// The emitter of captures.
const THREAD: Path<'_> = &[(1, CURRENT, "main")];

/// Encodes a capture as a value.
fn capture(subject: Path<'_>, current: Path<'_>, value: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    for path in [subject, current] {
        bytes.push(path.len() as u8);
        for (number, kind, name) in path {
            bytes.extend([*number, *kind, name.len() as u8]);
            bytes.extend(name.as_bytes());
        }
    }
    bytes.push(value);
    bytes
}

/// A frame with a value for the first label.
fn emit(value: &[u8]) -> Vec<u8> {
    frame(2, &[&[0, 0, 0], value].concat())
}

/// Captures of this many pipes; each pipe is a subject, as are the two that enclose it and the
/// thread.
fn captures_of(pipes: u8) -> impl Iterator<Item = Vec<u8>> {
    let within = [(2, CIRCUIT, "c"), (3, SINK, "s")];
    (0..pipes).map(move |pipe| capture(&[within[0], within[1], (4 + pipe, PIPE, "a")], THREAD, 7))
}

#[test]
fn a_number_stands_for_one_subject() {
    let pipe: Path<'_> = &[(2, CIRCUIT, "circuit"), (3, CONDUIT, "conduit"), (4, PIPE, "a")];
    let first = [frame(1, b"pipe"), emit(&capture(pipe, THREAD, 7))].concat();
    let run = |then: Path<'_>, by: Path<'_>| {
        limited::<Capture<u8>>(&[&first[..], &emit(&capture(then, by, 7))].concat(), |_| ())
    };
    assert_eq!(run(pipe, THREAD).expect("the same"), 2);
    assert_eq!(run(&[pipe[0], pipe[1], (5, PIPE, "a")], THREAD).expect("another one"), 2);
    let others: [(Path<'_>, Path<'_>, u64); 7] = [
        (&[pipe[0], pipe[1], (4, PIPE, "b")], THREAD, 4),
        (&[pipe[0], pipe[1], (4, SINK, "a")], THREAD, 4),
        (&[pipe[0], (4, PIPE, "a")], THREAD, 4),
        (&[pipe[0], (5, CONDUIT, "conduit"), (4, PIPE, "a")], THREAD, 4),
        (&[pipe[0], (3, SINK, "conduit"), (4, PIPE, "a")], THREAD, 3),
        (&[pipe[0], (2, CONDUIT, "conduit"), (5, PIPE, "a")], THREAD, 2),
        (pipe, &[(4, CURRENT, "main")], 4),
    ];
    for (then, by, number) in others {
        let error = run(then, by).expect_err("something else");
        let at = (header().len() + first.len()) as u64;
        assert!(
            matches!(error, ReplayError::Contradiction { position, subject } if (position, subject) == (at, number)),
            "{then:?}: {error}"
        );
        assert!(error.to_string().contains(&format!("at byte {at}")), "{error}");
    }
}

#[test]
fn a_journal_makes_no_more_subjects_than_are_allowed() {
    let pipes = |pipes| -> Vec<u8> {
        let frames = captures_of(pipes).map(|capture| emit(&capture));
        std::iter::once(frame(1, b"pipe")).chain(frames).flatten().collect()
    };
    let run = |pipes: &[u8]| limited::<Capture<u8>>(pipes, |replay| replay.limit_subjects(10));
    assert_eq!(run(&pipes(7)).expect("three, and one for each pipe"), 7);
    assert_eq!(run(&[pipes(7), emit(&captures_of(1).next().expect("one"))].concat()).expect("known"), 8);
    let error = run(&pipes(8)).expect_err("one more");
    assert!(matches!(error, ReplayError::TooManySubjects(10)), "{error}");
    assert!(error.to_string().contains("Replay::limit_subjects"), "{error}");

    // All in one value, which takes less space in the journal, and in memory as a vector.
    let value = std::iter::once(vec![5]).chain(captures_of(5)).flatten().collect::<Vec<u8>>();
    let value = [frame(1, b"pipe"), emit(&value)].concat();
    let run = |bytes_max| limited::<Vec<Capture<u8>>>(&value, |replay| replay.limit_value(bytes_max));
    assert_eq!(run(10_000).expect("they take less"), 1);
    let error = run(1_000).expect_err("eight subjects");
    assert!(matches!(error, ReplayError::TooLarge { bytes_max: 1_000, .. }), "{error}");
}

#[test]
fn a_journal_begins_no_more_subscriptions_than_are_allowed() {
    let begin = |number| frame(15, &[0, 0, number, 1]);
    let end = |number| frame(4, &[0, number]);
    let run = |frames: &[Vec<u8>]| {
        let frames = [&frame(1, b"conduit")[..], &frames.concat()].concat();
        limited::<u8>(&frames, |replay| replay.limit_subjects(2))
    };
    assert_eq!(run(&[begin(0), begin(1), end(0), begin(2), end(1), begin(3)]).expect("two at a time"), 6);
    let error = run(&[begin(0), begin(1), begin(2)]).expect_err("three");
    assert!(matches!(error, ReplayError::TooManySubjects(2)), "{error}");
}

#[test]
fn texts_and_names_take_no_more_memory_than_is_allowed() {
    let texts = |count: u8| -> Vec<u8> { (0..count).flat_map(|text| frame(1, &[b'a' + text; 76])).collect() };
    let run = |frames: &[u8]| limited::<Name>(frames, |replay| replay.limit_value(1_000));
    assert_eq!(run(&texts(10)).expect("a hundred bytes each"), 0);
    let error = run(&texts(11)).expect_err("more than a thousand");
    assert!(matches!(error, ReplayError::TooLarge { bytes_max: 1_000, .. }), "{error}");

    let names = |count: u8| -> Vec<u8> {
        let names = (0..count).map(|name| [&[100], &[b'A' + name; 100][..]].concat());
        std::iter::once(frame(1, b"pipe")).chain(names.map(|name| emit(&name))).flatten().collect()
    };
    assert_eq!(run(&names(9)).expect("nine hundred, and a label"), 9);
    let error = run(&names(20)).expect_err("eleven are new");
    assert!(matches!(error, ReplayError::TooLarge { bytes_max: 1_000, .. }), "{error}");
}

#[test]
fn a_label_of_a_sink_stands_for_one_number() {
    let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
    let captured = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&captured);
    let end = circuit.pipe(move |capture: Capture<u8>| seen.lock().expect("no panic").push(capture));
    let end = end.expect("open");
    let sinks = [(); 2].map(|()| circuit.sink(&end).expect("open"));
    let pipe = |sink: usize| sinks[sink].get(name!("a")).subject().clone();
    let run = |frames: &[Vec<u8>]| {
        let texts = [frame(1, b"end"), frame(1, b"one"), frame(1, b"other")];
        let journal = [header(), texts.concat(), frames.concat()].concat();
        let mut replay = Replay::new(&journal[..])?;
        replay.pipe("end", &end);
        replay.sink("one", &sinks[0]);
        replay.sink("other", &sinks[1]);
        captured.lock().expect("no panic").clear();
        replay.run(&circuit)?;
        let captured = captured.lock().expect("no panic");
        Ok::<Vec<Subject>, ReplayError>(captured.iter().map(|capture| capture.subject().clone()).collect())
    };
    let of =
        |sink: u8| emit(&capture(&[(2, CIRCUIT, "c"), (sink, SINK, "s"), (sink + 1, PIPE, "a")], THREAD, 7));
    let link = |label, sink, context| frame(16, &[label, sink, context]);
    assert_eq!(run(&[link(1, 3, 9), link(2, 5, 9), of(3), of(5)]).expect("two sinks"), [pipe(0), pipe(1)]);
    let subjects = run(&[of(3), link(1, 3, 9), of(3), link(1, 3, 9), of(3)]).expect("linked meanwhile");
    assert_eq!(subjects[1..], [pipe(0), pipe(0)]);
    assert_ne!(subjects[0], pipe(0));

    let of_pipe = emit(&capture(&[(2, CIRCUIT, "c"), (3, PIPE, "s")], THREAD, 7));
    let contradictions: [(&[Vec<u8>], u64); 8] = [
        (&[link(1, 3, 9), link(2, 3, 9)], 3),
        (&[link(1, 3, 9), link(1, 4, 9)], 4),
        (&[link(1, 3, 9), link(1, 3, 8)], 8),
        (&[link(1, 3, 3)], 3),
        (&[link(1, 3, 9), link(2, 9, 9)], 9),
        (&[link(1, 3, 9), of_pipe.clone()], 3),
        (&[of_pipe, link(1, 3, 9)], 3),
        (&[of(3), link(1, 3, 4)], 4),
    ];
    for (index, (frames, number)) in contradictions.into_iter().enumerate() {
        let error = run(frames).expect_err("something else");
        assert!(
            matches!(error, ReplayError::Contradiction { subject, .. } if subject == number),
            "{index}: {error}"
        );
    }
}

/// The labels of generated frames.
const LABELS: [&str; 10] = [
    "conduit",
    "port",
    "basin",
    "subscriber",
    "subscription",
    "pipe",
    "a.b",
    "conduit#1",
    "sink",
    "captures",
];

/// Frames of all kinds with fields that are right, nearly right, or random.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![6 => 0..11_u8, 1 => any::<u8>()];
    let numbers = prop::collection::vec(number, 0..6);
    let value = prop_oneof![Just(vec![]), prop::collection::vec(any::<u8>(), 0..10)];
    let text = prop_oneof![
        4 => prop::sample::select(&LABELS[..]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..10),
    ];
    prop_oneof![
        2 => text.prop_map(|text| frame(1, &text)),
        5 => (0..19_u8, numbers, value)
            .prop_map(|(kind, numbers, value)| frame(kind, &[&numbers[..], &value].concat())),
    ]
}

proptest! {
    #[test]
    fn forged_frames_are_an_error_or_inputs(
        frames in prop::collection::vec(any_frame(), 0..30), ended: bool,
    ) {
        let mut journal = header();
        LABELS.iter().for_each(|text| journal.extend(frame(1, text.as_bytes())));
        frames.iter().for_each(|frame| journal.extend(frame));
        if ended {
            journal.extend(frame(9, &[frames.len() as u8]));
        }
        let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
        let conduit = circuit.conduit::<Vec<Option<i64>>>().expect("open");
        let subscriber = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, _>| ()).expect("open");
        let subscription = conduit.subscribe(&subscriber).expect("open");
        let mut replay = Replay::new(&journal[..]).expect("a journal");
        replay.conduit("conduit", &conduit);
        replay.subscriber("subscriber", &subscriber);
        replay.subscription("subscription", &subscription);
        replay.port("port", &circuit.port(1_i64).expect("open"));
        replay.basin("basin", &circuit.basin::<i64>(2).expect("valid"));
        replay.pipe("pipe", &circuit.pipe(|_: Vec<()>| ()).expect("open"));
        let captures = circuit.pipe(|_: Capture<u8>| ()).expect("open");
        replay.pipe("captures", &captures);
        replay.sink("sink", &circuit.sink(&captures).expect("open"));
        replay.tapped("conduit", &conduit, &Flow::new().map(|value: Vec<Option<i64>>| value.len())).expect("open");
        replay.on_reservoir::<Vec<Option<i64>>, _>("conduit", |reservoir| drop(reservoir.drain()));
        match replay.run(&circuit) {
            Ok(replayed) => prop_assert!(replayed.inputs <= frames.len() as u64),
            Err(ReplayError::Damaged(at)) => prop_assert!((at as usize) < journal.len()),
            Err(error) => {
                let wrong = matches!(error, ReplayError::Io(_) | ReplayError::NotAJournal | ReplayError::Mislabelled(_));
                prop_assert!(!wrong, "{error}");
            }
        }
    }
}
