//! DiceDB's protocol as its clients speak it: frames of protocol buffers, and the form of watched
//! reads' answers in them.

use super::inbound::{Inbound, PATIENCE};
use super::stream::{content, elements};
use serde_json::{Value, json};
use std::io;
use std::time::Duration;

/// Field numbers of result bodies.
const ZRANGE: u64 = 41;
const ZRANK: u64 = 45;
const HGETALL: u64 = 36;
const NUMBERS: [u64; 2] = [40, 46];

/// Bytes of an error that are noted: its beginning identifies it.
const ERROR_BYTES: usize = 20;

/// A received result: its message, the fingerprint of its subscription, and its content.
#[derive(Debug)]
pub(crate) struct Result {
    pub(crate) is_ok: bool,
    pub(crate) message: String,
    pub(crate) fingerprint: u64,
    pub(crate) said: Value,
}

/// A connection.
pub(crate) struct Connection(Inbound);

impl Connection {
    pub(crate) fn open(port: u16) -> io::Result<Self> {
        Ok(Self(Inbound::connect(port)?))
    }

    pub(crate) fn send(&mut self, words: &[&str]) -> io::Result<()> {
        let mut message = Vec::new();
        for (index, word) in words.iter().enumerate() {
            message.push(if index == 0 { 0x0a } else { 0x12 });
            message.push(u8::try_from(word.len()).ok().filter(u8::is_ascii).expect("a short word"));
            message.extend_from_slice(word.as_bytes());
        }
        let length = u32::try_from(message.len()).expect("a short message");
        self.0.send(&[&length.to_be_bytes(), message.as_slice()].concat())
    }

    /// Sends a command and returns its answer, before which no push can come.
    pub(crate) fn ask(&mut self, words: &[&str]) -> io::Result<Result> {
        self.send(words)?;
        Ok(self.next(PATIENCE)?.expect("a server that runs answers"))
    }

    /// Returns the next result; `None` after `patience`.
    pub(crate) fn next(&mut self, patience: Duration) -> io::Result<Option<Result>> {
        let end_of = |bytes: &[u8]| Some(4 + u32::from_be_bytes(*bytes.first_chunk()?) as usize);
        Ok(self.0.next(patience, end_of)?.map(|frame| result(&frame[4..])))
    }
}

// ---- received results ----

enum Field<'a> {
    Number(u64, i64),
    Bytes(u64, &'a [u8]),
}

fn fields(mut message: &[u8]) -> Vec<Field<'_>> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        found.push(match tag & 7 {
            0 => Field::Number(tag >> 3, varint(&mut message) as i64),
            2 => {
                let length = varint(&mut message) as usize;
                let (content, rest) = message.split_at(length);
                message = rest;
                Field::Bytes(tag >> 3, content)
            }
            other => panic!("a field of its own type: {other}"),
        });
    }
    found
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first().expect("a whole number");
        *message = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            break;
        }
    }
    number
}

fn result(frame: &[u8]) -> Result {
    let mut result = Result { is_ok: true, message: String::new(), fingerprint: 0, said: Value::Null };
    for field in fields(frame) {
        match field {
            Field::Number(1, status) => result.is_ok = status == 0,
            Field::Number(_, number) => result.fingerprint = number as u64,
            Field::Bytes(2, text) => result.message = String::from_utf8_lossy(text).into_owned(),
            Field::Bytes(field, body) => result.said = said(field, body),
        }
    }
    if !result.is_ok {
        result.said = error(&result.message);
    }
    result
}

fn error(text: &str) -> Value {
    json!({ "error": text.chars().take(ERROR_BYTES).collect::<String>() })
}

/// Returns the content of a body: a text, a number, pairs, or members with score and rank.
fn said(field: u64, body: &[u8]) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let parts = fields(body);
    let of = |message: &[u8]| {
        let (mut number, mut texts, mut rank) = (0, vec![String::new(), String::new()], 0);
        for part in fields(message) {
            match part {
                Field::Number(1, score) => number = score,
                Field::Number(_, place) => rank = place,
                Field::Bytes(at, bytes) => texts[at as usize - 1] = text(bytes),
            }
        }
        (number, texts, rank)
    };
    let messages = parts.iter().filter_map(|part| match part {
        Field::Bytes(_, message) => Some(of(message)),
        Field::Number(..) => None,
    });
    let mut elements = messages.clone().map(|(score, texts, rank)| json!([score, texts[1], rank]));
    match field {
        HGETALL => messages.map(|(_, texts, _)| json!(texts)).collect(),
        ZRANGE => elements.collect(),
        ZRANK => elements.next().unwrap_or_default(),
        _ if NUMBERS.contains(&field) => match parts.first() {
            Some(Field::Number(_, number)) => json!(number),
            _ => json!(0),
        },
        _ => match parts.first() {
            Some(Field::Bytes(_, bytes)) => json!(text(bytes)),
            _ => json!(""),
        },
    }
}

// ---- expected results ----

/// Returns the form of a RESP3 answer in this protocol.
pub(crate) fn of(words: &[Vec<u8>], answer: &[u8]) -> Value {
    received(words, answer).unwrap_or_else(|why| error(&why))
}

const NOT_TEXT: &str = "ERR the answer is not UTF-8";

fn received(words: &[Vec<u8>], answer: &[u8]) -> std::result::Result<Value, String> {
    if answer.starts_with(b"-") {
        return Ok(error(&String::from_utf8_lossy(content(answer))));
    }
    let member = |at: usize| String::from_utf8_lossy(&words[at]).into_owned();
    Ok(match words[0].as_slice() {
        b"HGETALL" => {
            let texts: Vec<String> =
                elements(answer).into_iter().map(text).collect::<std::result::Result<_, _>>()?;
            texts.chunks(2).map(|pair| json!(pair)).collect()
        }
        b"ZRANGE" => {
            let mut received = Vec::new();
            for (index, element) in elements(answer).into_iter().enumerate() {
                let parts = elements(element);
                let member = text(parts[0])?;
                received.push(json!([score(parts[1])?, member, index + 1]));
            }
            received.into()
        }
        b"ZRANK" => match elements(answer)[..] {
            [rank, of] => {
                let rank: i64 = text(rank)?.parse().unwrap_or_default();
                json!([score(of)?, member(2), rank + 1])
            }
            _ => json!([0, member(2), 0]),
        },
        b"ZCARD" | b"ZCOUNT" => json!(text(answer)?.parse::<i64>().unwrap_or_default()),
        _ => json!(text(answer)?),
    })
}

fn text(answer: &[u8]) -> std::result::Result<String, String> {
    String::from_utf8(content(answer).to_vec()).map_err(|_| NOT_TEXT.to_owned())
}

/// Returns a score, which must be a whole number.
fn score(answer: &[u8]) -> std::result::Result<i64, String> {
    let number: f64 = text(answer)?.parse().unwrap_or(f64::NAN);
    let is_whole = number.fract() == 0.0 && number.abs() < 9_223_372_036_854_775_808.0;
    if is_whole { Ok(number as i64) } else { Err(format!("ERR the score {number} is not an integer")) }
}
