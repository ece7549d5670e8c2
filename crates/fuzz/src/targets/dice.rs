//! Frames of DiceDB's protocol on a connection: for any input, the server sends only complete
//! frames.
//!
//! ```text
//! input   form u8 │ step u8 │ bytes     the bytes come in pieces of `step` + 1
//! form    0: bytes as they are; 1: blocks, each a frame's payload;
//!         2: lines, each a command's words
//! ```

use super::{Target, words_of};
use crate::input::{Input, put_block};
use tidemark_server::fuzzing::Bench;

pub(super) const TARGET: Target = Target {
    name: "dice",
    run,
    corpus,
    words: &[
        b"\nGET k",
        b"\nSET k v",
        b"\nZADD z 1 a",
        b"\nZRANGE z 1 2",
        b"\nZRANGE z 1 2 BYSCORE",
        b"\nZRANK z a",
        b"\nZPOPMAX z 3",
        b"\nGET.WATCH k",
        b"\nZRANGE.WATCH z 1 5",
        b"\nUNWATCH 1",
        b"\nHANDSHAKE id watch",
        b"\nHANDSHAKE id command",
        b"\nEMITACK 1 1",
        b"\nEMITRECONNECT 1-0 1 k",
        b"\nHGETALL h",
        b"\nHSET h f v",
        b"\nKEYS *",
        b" 9223372036854775807",
        b" -1",
        b" \\xff",
        b" EX 1",
        b"\x0a\x03GET",
        b"\x12\x01k",
        b"\x18\x07",
        b"\0\0\0\x05",
    ],
};

fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let (form, step) = (input.u8() % 3, usize::from(input.u8()) + 1);
    let bytes = match form {
        0 => input.rest().to_vec(),
        1 => {
            let mut bytes = Vec::new();
            while !input.is_empty() {
                put_frame(&mut bytes, input.block());
            }
            bytes
        }
        _ => {
            let lines = input.rest().split(|byte| *byte == b'\n');
            lines.flat_map(|line| frame_of(&words_of(line))).collect()
        }
    };
    // Any other first byte means the Redis protocol.
    if bytes.first().is_none_or(|first| *first > 2) {
        return false;
    }
    let mut sent = &*Bench::new().talk(&bytes, step);
    let mut is_accepted = false;
    while !sent.is_empty() {
        let (header, rest) = sent.split_first_chunk().expect("a frame has a header");
        let length = u32::from_be_bytes(*header) as usize;
        let (payload, rest) = rest.split_at_checked(length).expect("a frame is sent as a whole");
        // The status is the first field, and is omitted for success.
        is_accepted |= !payload.starts_with(&[0x08]);
        sent = rest;
    }
    is_accepted
}

fn put_frame(into: &mut Vec<u8>, payload: &[u8]) {
    into.extend((payload.len() as u32).to_be_bytes());
    into.extend_from_slice(payload);
}

/// Returns a command as a frame: `wire.Command { 1: name, 2: arguments }`.
fn frame_of(words: &[Vec<u8>]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (place, word) in words.iter().enumerate() {
        payload.push(if place == 0 { 0x0a } else { 0x12 });
        tidemark_engine::record::put_bytes(&mut payload, word);
    }
    let mut frame = Vec::new();
    put_frame(&mut frame, &payload);
    frame
}

const LINES: &str = "HANDSHAKE id command\nPING\nSET k 5 EX 100\nINCR k\nGET k\nGETEX k\nTTL k\nEXPIRE k 10\nTYPE k\nEXISTS k n\nDEL k";
const SORTED_SETS: &str = "ZADD z 1 a 2 b 3 c\nZRANGE z 1 2\nZRANGE z 1 3 BYSCORE\nZRANK z b\nZCOUNT z 1 2\nZPOPMAX z 1\nZPOPMIN z\nZREM z a\nZCARD z";
const HASHES: &str = "HSET h f v g w\nHGET h f\nHGETALL h\nKEYS *\nFLUSHDB\nECHO hello";
const WATCHES: &str = "HANDSHAKE id watch\nSET k v\nGET.WATCH k\nSET k w\nZADD z 1 a\nZRANGE.WATCH z 1 5\nHGETALL.WATCH h\nEMITACK 1 1\nEMITRECONNECT 1-0 1 k\nUNWATCH 1";

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let lines = |step: u8, text: &str| [&[2, step], text.as_bytes()].concat();
    let mut blocks = vec![1, 255];
    for line in SORTED_SETS.lines() {
        put_block(&mut blocks, &frame_of(&words_of(line.as_bytes()))[4..]);
    }
    let raw: Vec<u8> = HASHES.lines().flat_map(|line| frame_of(&words_of(line.as_bytes()))).collect();
    vec![
        ("strings", lines(255, LINES)),
        ("sorted-sets", lines(7, SORTED_SETS)),
        ("hashes", lines(255, HASHES)),
        ("watches", lines(255, WATCHES)),
        ("blocks", blocks),
        ("bytes", [&[0, 2], raw.as_slice()].concat()),
    ]
}
