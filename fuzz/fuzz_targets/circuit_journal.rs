//! Any frames, with right checksums, are inputs of a circuit or an error.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use tidemark_circuit::{
    Capture, Circuit, Flow, Name, Registrar, Replay, Reservoir, RunBy, Subject, Subscription,
};

const LABELS: [&str; 9] =
    ["conduit", "port", "basin", "subscriber", "subscription", "pipe", "conduit#1", "sink", "captures"];

type Value = Vec<Option<(String, i64)>>;

/// The names that there are. Names are never freed, so a journal makes none: that would be taken for a leak.
static NAMES: OnceLock<Vec<Name>> = OnceLock::new();

fn make_names() {
    let names = ["a", "a.b", "b", "circuit", "main"].map(|name| Name::new(name).expect("valid"));
    NAMES.get_or_init(|| names.to_vec());
}

fuzz_target!(init: make_names(), |data: &[u8]| {
    let header = [&b"tidemark circuit journal 3\n"[..], &[0; 8]].concat();
    let mut journal = [&header[..], &crc32(&header).to_le_bytes()].concat();
    for label in LABELS {
        frame(&[&[1], label.as_bytes()].concat(), &mut journal);
    }
    let mut data = data;
    while let Some((&length, rest)) = data.split_first() {
        let (content, rest) = rest.split_at(usize::from(length & 0x7F).min(rest.len()));
        frame(content, &mut journal);
        data = rest;
    }
    replay(&journal);
});

fn replay(journal: &[u8]) {
    let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
    let conduit = circuit.conduit::<Value>().expect("open");
    let subscriber = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, _>| ()).expect("open");
    let mut replay = Replay::new(journal).expect("a journal");
    replay.limit_names(0);
    replay.limit_value(1 << 20);
    replay.conduit("conduit", &conduit);
    replay.port("port", &circuit.port(1_i64).expect("open"));
    replay.basin("basin", &circuit.basin::<i64>(2).expect("valid"));
    replay.subscription("subscription", &conduit.subscribe(&subscriber).expect("open"));
    replay.subscriber("subscriber", &subscriber);
    replay.on_close("conduit", "subscriber", |_: &Subscription<Value>| ());
    let captures = circuit.pipe(|_: Capture<u8>| ()).expect("open");
    replay.pipe("captures", &captures);
    replay.sink("sink", &circuit.sink(&captures).expect("open"));
    let lengths = Flow::new().map(|value: Value| value.len());
    replay.tapped("conduit", &conduit, &lengths).expect("open");
    // The newest of each kind of reservoir stays.
    let mut kept: Option<Reservoir<Value>> = None;
    replay.on_reservoir("conduit", move |reservoir| drop(kept.replace(reservoir)));
    replay.pipe("pipe", &circuit.pipe(|_: Vec<()>| ()).expect("open"));
    if let Err(error) = replay.run(&circuit) {
        assert!(!error.to_string().is_empty());
    }
    circuit.close();
    while circuit.run(usize::MAX) {}
}

fn frame(content: &[u8], journal: &mut Vec<u8>) {
    // The length is one byte, as it is below 128.
    journal.push(content.len() as u8);
    journal.extend_from_slice(content);
    journal.extend(crc32(content).to_le_bytes());
}

/// The checksum of IEEE 802.3, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 };
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}
