//! Typed bodies of `wire.Result`, built from RESP3 answers.

use super::answer::{Answer, Answers};
use super::protobuf::{put_integer, put_item, put_message, put_number, put_text};
use super::result::Unanswerable;

/// Content of a body, and the answers that it is built from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// No body.
    None,
    /// An empty body: its field says which command was answered.
    Empty,
    /// `1: string`; empty for null.
    Text,
    /// `1: string`, `PONG` followed by the client's text.
    Pong,
    /// `1: int64`; 0 for null.
    Number,
    /// `1: bool`
    Truth,
    /// `1: repeated string`
    Texts,
    /// `1: repeated { 1: string, 2: string }`
    Pairs,
    /// `1: repeated element`
    Elements,
    /// `2: element`, built from a rank and a score.
    Element,
}

/// A body: its field in the result and its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) field: u32,
    pub(super) shape: Shape,
}

/// Data of a body of elements that the answer does not contain.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ElementContext<'a> {
    /// Rank of the first element, counted from 1.
    pub(super) first: Rank,
    /// Requested member.
    pub(super) member: &'a [u8],
}

/// Rank of the first of several elements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Rank {
    /// Unknown: all ranks are written as 0, which is not a valid rank.
    #[default]
    Unknown,
    /// Ranks ascend by one.
    Ascending(i64),
    /// Ranks descend by one.
    Descending(i64),
}

impl Rank {
    fn of(self, index: usize) -> i64 {
        match self {
            Rank::Unknown => 0,
            Rank::Ascending(first) => first.saturating_add(index as i64),
            Rank::Descending(first) => first.saturating_sub(index as i64),
        }
    }
}

/// Writes the body for the next answer.
pub(super) fn put(
    buffer: &mut Vec<u8>,
    body: Body,
    answers: &mut Answers<'_>,
    place: &ElementContext<'_>,
) -> Result<(), Unanswerable> {
    if body.shape == Shape::None {
        return Ok(());
    }
    put_message(buffer, body.field, |buffer| match body.shape {
        Shape::None | Shape::Empty => Ok(()),
        Shape::Text => {
            put_text(buffer, 1, text(answers)?);
            Ok(())
        }
        Shape::Pong => {
            let pong = match text(answers)? {
                b"PONG" => b"PONG".to_vec(),
                message => [b"PONG ", message].concat(),
            };
            put_text(buffer, 1, &pong);
            Ok(())
        }
        Shape::Number => {
            put_integer(buffer, 1, integer(answers)?);
            Ok(())
        }
        Shape::Truth => {
            put_number(buffer, 1, u64::from(integer(answers)? != 0));
            Ok(())
        }
        Shape::Texts => {
            for _ in 0..many(answers)? {
                put_item(buffer, 1, text(answers)?);
            }
            Ok(())
        }
        Shape::Pairs => {
            for _ in 0..many(answers)? / 2 {
                let (name, value) = (text(answers)?, text(answers)?);
                put_message(buffer, 1, |buffer| {
                    put_text(buffer, 1, name);
                    put_text(buffer, 2, value);
                    Ok(())
                })?;
            }
            Ok(())
        }
        Shape::Elements => put_elements(buffer, answers, place.first),
        Shape::Element => put_ranked(buffer, answers, place.member),
    })
}

/// Writes members with scores, from arrays of two.
fn put_elements(buffer: &mut Vec<u8>, answers: &mut Answers<'_>, first: Rank) -> Result<(), Unanswerable> {
    for index in 0..many(answers)? {
        let Some(Answer::Many(2)) = answers.next() else { return Err(Unanswerable::Unexpected) };
        let (member, score) = (text(answers)?, integer(answers)?);
        put_element(buffer, 1, member, score, first.of(index))?;
    }
    Ok(())
}

/// Writes an element from a zero-based rank and a score; null becomes zeros.
fn put_ranked(buffer: &mut Vec<u8>, answers: &mut Answers<'_>, member: &[u8]) -> Result<(), Unanswerable> {
    let (rank, score) = match answers.next() {
        Some(Answer::Null) => (0, 0),
        Some(Answer::Many(2)) => (integer(answers)?.saturating_add(1), integer(answers)?),
        _ => return Err(Unanswerable::Unexpected),
    };
    put_element(buffer, 2, member, score, rank)
}

fn put_element(
    buffer: &mut Vec<u8>,
    field: u32,
    member: &[u8],
    score: i64,
    rank: i64,
) -> Result<(), Unanswerable> {
    put_message(buffer, field, |buffer| {
        put_integer(buffer, 1, score);
        put_text(buffer, 2, member);
        put_integer(buffer, 3, rank);
        Ok(())
    })
}

fn text<'a>(answers: &mut Answers<'a>) -> Result<&'a [u8], Unanswerable> {
    match answers.next() {
        Some(Answer::Null) => Ok(b""),
        Some(Answer::Text(text)) if std::str::from_utf8(text).is_ok() => Ok(text),
        Some(Answer::Text(_)) => Err(Unanswerable::NotText),
        _ => Err(Unanswerable::Unexpected),
    }
}

fn integer(answers: &mut Answers<'_>) -> Result<i64, Unanswerable> {
    /// 2^63: a float without a fraction in `-END..END` is a 64-bit integer.
    const END: f64 = 9_223_372_036_854_775_808.0;
    match answers.next() {
        Some(Answer::Null) => Ok(0),
        Some(Answer::Integer(number)) => Ok(number),
        Some(Answer::Truth(truth)) => Ok(i64::from(truth)),
        Some(Answer::Double(number)) if number.fract() == 0.0 && (-END..END).contains(&number) => {
            Ok(number as i64)
        }
        Some(Answer::Double(number)) => Err(Unanswerable::NotAnInteger(number)),
        _ => Err(Unanswerable::Unexpected),
    }
}

fn many(answers: &mut Answers<'_>) -> Result<usize, Unanswerable> {
    match answers.next() {
        Some(Answer::Many(count)) => Ok(count),
        Some(Answer::Null) => Ok(0),
        _ => Err(Unanswerable::Unexpected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(shape: Shape, answer: &[u8], place: &ElementContext<'_>) -> Result<Vec<u8>, Unanswerable> {
        let mut buffer = Vec::new();
        put(&mut buffer, Body { field: 3, shape }, &mut Answers::of(answer), place)?;
        Ok(buffer)
    }

    fn plain(shape: Shape, answer: &[u8]) -> Result<Vec<u8>, Unanswerable> {
        body(shape, answer, &ElementContext::default())
    }

    #[test]
    fn answers_become_bodies() {
        for (shape, answer, expected) in [
            (Shape::None, b"+OK\r\n".as_slice(), b"".as_slice()),
            (Shape::Empty, b"+OK\r\n", b"\x1a\x00"),
            (Shape::Text, b"$1\r\nv\r\n", b"\x1a\x03\x0a\x01v"),
            (Shape::Text, b"_\r\n", b"\x1a\x00"),
            (Shape::Pong, b"+PONG\r\n", b"\x1a\x06\x0a\x04PONG"),
            (Shape::Pong, b"$1\r\na\r\n", b"\x1a\x08\x0a\x06PONG a"),
            (Shape::Number, b":5\r\n", b"\x1a\x02\x08\x05"),
            (Shape::Number, b",5\r\n", b"\x1a\x02\x08\x05"),
            (Shape::Truth, b":1\r\n", b"\x1a\x02\x08\x01"),
            (Shape::Truth, b":0\r\n", b"\x1a\x00"),
            (Shape::Texts, b"*2\r\n$1\r\na\r\n$0\r\n\r\n", b"\x1a\x05\x0a\x01a\x0a\x00"),
            (Shape::Pairs, b"%1\r\n$1\r\na\r\n$1\r\nb\r\n", b"\x1a\x08\x0a\x06\x0a\x01a\x12\x01b"),
        ] {
            assert_eq!(plain(shape, answer).as_deref(), Ok(expected), "{shape:?}");
        }
    }

    #[test]
    fn elements_have_ranks_from_one() {
        let answer = b"*2\r\n*2\r\n$1\r\na\r\n,1\r\n*2\r\n$1\r\nb\r\n,-2\r\n";
        let ranked = |first| body(Shape::Elements, answer, &ElementContext { first, member: b"" });
        let element = |rank: u8| [b"\x0a\x07\x08\x01\x12\x01a\x18".as_slice(), &[rank]].concat();
        let minus_two = b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x01b";
        let other = |rank: u8| [b"\x0a\x10".as_slice(), minus_two, b"\x18", &[rank]].concat();
        let expected = |one, two| [b"\x1a\x1b".as_slice(), &element(one), &other(two)].concat();
        assert_eq!(ranked(Rank::Ascending(3)), Ok(expected(3, 4)));
        assert_eq!(ranked(Rank::Descending(3)), Ok(expected(3, 2)));
        let place = ElementContext { member: b"m", ..ElementContext::default() };
        let ranked = body(Shape::Element, b"*2\r\n:0\r\n,9\r\n", &place);
        assert_eq!(ranked, Ok(b"\x1a\x09\x12\x07\x08\x09\x12\x01m\x18\x01".to_vec()));
        assert_eq!(body(Shape::Element, b"_\r\n", &place), Ok(b"\x1a\x05\x12\x03\x12\x01m".to_vec()));
    }

    #[test]
    fn what_has_no_form_here_is_refused() {
        assert_eq!(plain(Shape::Text, b"$1\r\n\xff\r\n"), Err(Unanswerable::NotText));
        assert_eq!(plain(Shape::Number, b",1.5\r\n"), Err(Unanswerable::NotAnInteger(1.5)));
        assert_eq!(plain(Shape::Number, b",inf\r\n"), Err(Unanswerable::NotAnInteger(f64::INFINITY)));
        assert!(plain(Shape::Number, b",9223372036854775808\r\n").is_err());
        for shape in [Shape::Text, Shape::Number, Shape::Texts, Shape::Pairs, Shape::Elements, Shape::Element]
        {
            assert_eq!(plain(shape, b"~3\r\n"), Err(Unanswerable::Unexpected), "{shape:?}");
            assert_eq!(plain(shape, b""), Err(Unanswerable::Unexpected), "{shape:?}");
        }
    }
}
