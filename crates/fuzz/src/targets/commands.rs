//! Commands of the Redis protocol on a connection: for any input, the server sends only complete
//! replies.
//!
//! ```text
//! input   form u8 │ step u8 │ bytes     the bytes come in pieces of `step` + 1
//! form    0 bytes as they are; 1 lines of words, each a command
//! ```

use super::{Target, state, words_of};
use crate::input::Input;
use tidemark_server::fuzzing::Bench;
use tidemark_server::resp::{Decoder, Value, decode, encode_request};

pub(super) const TARGET: Target = Target {
    name: "commands",
    run,
    corpus,
    words: &[
        b"\nGET a",
        b"\nMULTI",
        b"\nEXEC",
        b"\nHELLO 3",
        b"\nSUBSCRIBE c",
        b"\nGET.WATCH a",
        b"\nUNWATCH",
        b"\nSCAN 0 MATCH *",
        b"\nSORT l BY w* GET #",
        b"\nBITFIELD b GET u8 0",
        b"\nXREAD",
        b"\nOBJECT ENCODING a",
        b"\nZRANGE z 0 -1 REV",
        b"\nLPOS l a RANK -1",
        b"\nGETRANGE a 0 -1",
        b"\nSETRANGE a 65000 x",
        b"\nCLIENT LIST",
        b"\nINFO",
        b"\nCONFIG GET *",
        b"\nCOMMAND DOCS",
        b"\nBLPOP l 0",
        b"\nCOPY a b",
        b"\nSINTERCARD 2 s t LIMIT 1",
        b"\nPOOL.STATE p",
        b"\nPOOL.DRAW p COUNT 2",
        b" -9223372036854775808",
        b" 9223372036854775807",
        b" 18446744073709551615",
        b" nan",
        b" inf",
        b" -1",
        b" 0",
        b" (1",
        b" [a",
        b" +",
        b" -",
        b" \\xff\\x00",
        b" COUNT 1",
        b" LIMIT 0 1",
        b" WITHSCORES",
        b" EX 1",
        b" PX 1",
        b" AMOUNT 1",
        b"*1\r\n$4\r\nPING\r\n",
    ],
};

fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let (form, step) = (input.u8() % 2, usize::from(input.u8()) + 1);
    let bytes = match form {
        0 => input.rest().to_vec(),
        _ => requests(input.rest()),
    };
    if bytes.first().is_none_or(|first| *first <= 2) || input_asks_for_megabytes(&data[2..]) {
        return false;
    }
    let sent = Bench::new().talk(&bytes, step);
    let mut decoder = Decoder::new(decode::Limits::default());
    decoder.feed(&sent);
    let mut is_accepted = false;
    while let Some(value) = decoder.next_value().expect("replies are of the protocol") {
        is_accepted |= !matches!(value, Value::Error(_));
    }
    assert!(decoder.is_idle(), "the last reply is whole");
    is_accepted
}

/// Whether a line sets a bit or byte that is millions away from the string's first. The protocol
/// allows a string of 512 MiB in a line of 20 bytes, which is no defect, but is over the memory that
/// the runner permits.
fn input_asks_for_megabytes(input: &[u8]) -> bool {
    const FAR: std::ops::RangeInclusive<u64> = 1 << 21..=1 << 33;
    let is_far = |word: &[u8]| {
        let digits = word.strip_prefix(b"#").unwrap_or(word);
        std::str::from_utf8(digits)
            .ok()
            .and_then(|text| text.parse().ok())
            .is_some_and(|at| FAR.contains(&at))
    };
    let grows = |line: &[u8]| {
        let line = line.to_ascii_uppercase();
        let names: [&[u8]; 3] = [b"SETBIT", b"SETRANGE", b"BITFIELD"];
        names.iter().any(|name| line.windows(name.len()).any(|piece| piece == *name))
    };
    let mut lines = input.split(|byte| matches!(byte, b'\r' | b'\n'));
    lines.any(|line| line.split(u8::is_ascii_whitespace).any(is_far) && grows(line))
}

fn requests(lines: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let words = words_of(line);
        encode_request(&mut bytes, &words);
    }
    bytes
}

const READS: &str = "HELLO 3\nMSET a 1 b two\nMGET a b c\nSTRLEN b\nGETRANGE b 0 -2\nSUBSTR b 1 2\nBITCOUNT b 0 5 BIT\nBITPOS b 1\nBITFIELD a SET u8 #1 200 OVERFLOW SAT INCRBY i4 2 9\nLCS a b IDX WITHMATCHLEN\nSCAN 0 COUNT 5\nOBJECT ENCODING a\nTYPE a\nDBSIZE\nRANDOMKEY";
const SORTING: &str = "RPUSH l 3 1 2\nSORT l DESC LIMIT 0 2 STORE m\nLPOS l 2 RANK -1\nLMPOP 2 x l LEFT COUNT 2\nZADD z 1 a 2 b\nZRANGE z (1 +inf BYSCORE LIMIT 0 1\nZRANGEBYLEX z [a +\nZRANDMEMBER z -5 WITHSCORES\nZDIFF 2 z y WITHSCORES\nHSET h a 1\nHRANDFIELD h -3 WITHVALUES\nHSCAN h 0 NOVALUES\nSADD s a b\nSMISMEMBER s a c\nSSCAN s 0";
const TRANSACTION: &str = "WATCH a\nMULTI\nSET a 1\nINCR a\nGET a\nEXEC\nMULTI\nNOSUCH\nEXEC\nSUBSCRIBE c d\nPSUBSCRIBE p*\nUNSUBSCRIBE\nPUNSUBSCRIBE\nPUBLISH c m";
const WATCHES: &str = "HELLO 3\nSET a 1\nGET.WATCH a AS name\nINCR a\nHGETALL.WATCH h\nHSET h f v\nEMITACK name 1\nUNWATCH\nCLIENT TRACKING ON\nGET a\nCLIENT ID\nCLIENT LIST\nINFO everything\nCONFIG GET max*\nCOMMAND COUNT";

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let lines = |step: u8, text: &str| [&[1, step], text.as_bytes()].concat();
    let mut inputs: Vec<(&'static str, Vec<u8>)> =
        state::SCRIPTS.iter().map(|(name, script)| (*name, lines(255, script))).collect();
    inputs.push(("reads", lines(255, READS)));
    inputs.push(("sorting", lines(40, SORTING)));
    inputs.push(("transaction", lines(255, TRANSACTION)));
    inputs.push(("watches", lines(255, WATCHES)));
    inputs.push(("bytes", [&[0, 3], requests(b"SET a 1\nGET a").as_slice()].concat()));
    inputs
}

#[cfg(test)]
mod tests {
    use super::input_asks_for_megabytes;

    #[test]
    fn only_offsets_that_are_far_away_and_allowed_ask_for_megabytes() {
        for line in
            ["SETBIT b 2147483647 1", "GET a\nsetrange r 500000000 x\r\n", "BITFIELD b SET u8 #9000000 1"]
        {
            assert!(input_asks_for_megabytes(line.as_bytes()), "{line}");
        }
        for line in
            ["SETBIT b 7 1\nEXPIREAT n 1800000000", "SETBIT b 18446744073709551615 1", "SETRANGE a 65000 x"]
        {
            assert!(!input_asks_for_megabytes(line.as_bytes()), "{line}");
        }
    }
}
