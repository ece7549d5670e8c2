//! Journals of circuits: any frames with valid checksums are inputs of a circuit or an error.
//!
//! ```text
//! input   flags u8 │ (length u8 │ content of a frame)*
//! flags   1: begin without any label
//! ```

use super::Target;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};
use tidemark_circuit::{
    Basin, Capture, Circuit, Conduit, Flow, Name, Pipe, Port, Recipe, Recording, Registrar, Replay,
    Reservoir, RunBy, Sink, Subject, Subscriber, Subscription, Tap,
};

const WITHOUT_LABELS: u8 = 1;
const HEADER_BYTES: usize = 26 + 1 + 8 + 4;
const LABELS: [&str; 9] =
    ["conduit", "port", "basin", "subscriber", "subscription", "pipe", "conduit#1", "sink", "captures"];

type Value = Vec<Option<(String, i64)>>;

pub(super) const TARGET: Target = Target {
    name: "circuit_journal",
    run,
    corpus,
    words: &[
        b"\x08\x01conduit",
        b"\x05\x01port",
        b"\x06\x01basin",
        b"\x05\x01pipe",
        b"\x02\x01a",
        b"\x04\x01a.b",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\xff\x7f",
        b"\x04\x02\0\0\0",
    ],
};

/// All names that a journal may use. Names are never freed, so a journal makes none: that would
/// count as a leak.
static NAMES: OnceLock<Vec<Name>> = OnceLock::new();

fn run(data: &[u8]) -> bool {
    NAMES.get_or_init(|| {
        ["a", "a.b", "b", "circuit", "main"].map(|name| Name::new(name).expect("valid")).to_vec()
    });
    let (flags, mut data) = data.split_first().map_or((0, data), |(flags, data)| (*flags, data));
    let header = [&b"tidemark circuit journal 4\n"[..], &[0; 8]].concat();
    let mut journal = [&header[..], &crc32(&header).to_le_bytes()].concat();
    if flags & WITHOUT_LABELS == 0 {
        LABELS.iter().for_each(|label| put_frame(&[&[1], label.as_bytes()].concat(), &mut journal));
    }
    while let Some((&length, rest)) = data.split_first() {
        let (content, rest) = rest.split_at(usize::from(length & 0x7f).min(rest.len()));
        put_frame(content, &mut journal);
        data = rest;
    }
    replay(&journal)
}

/// The circuit that is recorded and replayed.
struct Parts {
    circuit: Circuit,
    conduit: Conduit<Value>,
    port: Port<i64>,
    basin: Basin<i64>,
    subscriber: Subscriber<Value>,
    subscription: Subscription<Value>,
    captures: Pipe<Capture<u8>>,
    sink: Sink<u8>,
    pipe: Pipe<Vec<()>>,
}

impl Parts {
    fn new() -> Parts {
        let circuit = Circuit::builder().run_by(RunBy::Owner).build().expect("valid");
        let conduit = circuit.conduit::<Value>().expect("open");
        let subscriber = circuit.subscriber(|_: &Subject, _: &mut Registrar<'_, _>| ()).expect("open");
        let captures = circuit.pipe(|_: Capture<u8>| ()).expect("open");
        Parts {
            port: circuit.port(1_i64).expect("open"),
            basin: circuit.basin::<i64>(2).expect("valid"),
            subscription: conduit.subscribe(&subscriber).expect("open"),
            sink: circuit.sink(&captures).expect("open"),
            pipe: circuit.pipe(|_: Vec<()>| ()).expect("open"),
            subscriber,
            captures,
            conduit,
            circuit,
        }
    }

    /// Returns the recipe of the conduit.
    fn lengths() -> impl Recipe<In = Value, Out = usize> {
        Flow::new().map(|value: Value| value.len())
    }
}

fn replay(journal: &[u8]) -> bool {
    let parts = Parts::new();
    let mut replay = Replay::new(journal).expect("a journal");
    replay.limit_names(0);
    replay.limit_value(1 << 20);
    replay.conduit("conduit", &parts.conduit);
    replay.port("port", &parts.port);
    replay.basin("basin", &parts.basin);
    replay.subscription("subscription", &parts.subscription);
    replay.subscriber("subscriber", &parts.subscriber);
    replay.on_close("conduit", "subscriber", |_: &Subscription<Value>| ());
    replay.pipe("captures", &parts.captures);
    replay.sink("sink", &parts.sink);
    replay.tapped("conduit", &parts.conduit, &Parts::lengths()).expect("open");
    // Only the newest reservoir of each kind is kept.
    let mut kept: Option<Reservoir<Value>> = None;
    replay.on_reservoir("conduit", move |reservoir| drop(kept.replace(reservoir)));
    replay.pipe("pipe", &parts.pipe);
    let is_accepted = match replay.run(&parts.circuit) {
        Ok(replayed) => replayed.inputs > 0,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    };
    parts.circuit.close();
    while parts.circuit.run(usize::MAX) {}
    is_accepted
}

fn put_frame(content: &[u8], journal: &mut Vec<u8>) {
    // The length takes one byte, because it is below 128.
    journal.push(content.len() as u8);
    journal.extend_from_slice(content);
    journal.extend(crc32(content).to_le_bytes());
}

/// Returns the checksum of IEEE 802.3, computed bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 };
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

/// Bytes that stay readable after the recording has taken its writer.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no writer has panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns a journal of inputs of every kind, as its frames without the header.
fn recorded() -> Vec<u8> {
    let (parts, written) = (Parts::new(), Written::default());
    let recording = Recording::new(&parts.circuit, written.clone());
    recording.conduit("conduit", &parts.conduit).expect("its own");
    recording.port("port", &parts.port).expect("its own");
    recording.basin("basin", &parts.basin).expect("its own");
    recording.subscriber("subscriber", &parts.subscriber).expect("its own");
    recording.subscription("subscription", &parts.subscription).expect("its own");
    recording.pipe("captures", &parts.captures).expect("its own");
    recording.sink("sink", &parts.sink).expect("its own");
    recording.pipe("pipe", &parts.pipe).expect("its own");
    recording.begin().expect("begins");
    let value: Value = vec![None, Some(("text".to_owned(), -3))];
    let name = Name::new("a.b").expect("valid");
    parts.conduit.get(name).emit(value.clone());
    parts.pipe.emit(vec![(), ()]);
    parts.port.replace(5);
    parts.basin.pipe().emit(7);
    parts.sink.get(name).emit(9);
    let tap: Tap<Value, usize> = parts.conduit.tap(&Parts::lengths()).expect("open");
    let reservoir = parts.conduit.reservoir(4).expect("open");
    parts.conduit.get(name).emit(value);
    while parts.circuit.run(usize::MAX) {}
    drop((tap, reservoir));
    parts.subscription.close();
    while parts.circuit.run(usize::MAX) {}
    parts.circuit.close();
    while parts.circuit.run(usize::MAX) {}
    drop(recording);
    let journal = written.0.lock().expect("no writer has panicked").clone();
    let mut rest = &journal[HEADER_BYTES..];
    let mut frames = vec![WITHOUT_LABELS];
    while let Some((&length, behind)) = rest.split_first() {
        assert!(length < 128, "frames of a corpus are short");
        frames.push(length);
        let (content, behind) = behind.split_at(usize::from(length));
        frames.extend_from_slice(content);
        rest = &behind[4..];
    }
    frames
}

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    vec![("recorded", recorded())]
}
