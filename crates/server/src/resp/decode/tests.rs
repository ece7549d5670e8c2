use super::{Decoder, Limits, ProtocolError};
use crate::resp::{Value, encode_value};
use proptest::prelude::*;

const SMALL: Limits = Limits { line_bytes: 24, bulk_bytes: 32, value_bytes: 48, elements: 12, depth: 3 };

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// Returns all values and the error for `input`, split into pieces of the lengths `cuts`.
fn decode(limits: Limits, input: &[u8], cuts: &[usize]) -> (Vec<Value>, Option<ProtocolError>) {
    let mut decoder = Decoder::new(limits);
    let mut values = Vec::new();
    let mut rest = input;
    let mut cuts = cuts.iter().copied();
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(cuts.next().unwrap_or(rest.len()).clamp(1, rest.len()));
        rest = later;
        decoder.feed(piece);
        loop {
            match decoder.next_value() {
                Ok(Some(value)) => values.push(value),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.next_value(), Err(error.clone()), "a failed decoder stays failed");
                    return (values, Some(error));
                }
            }
        }
    }
    (values, None)
}

fn one(input: &[u8]) -> Value {
    let (mut values, error) = decode(Limits::default(), input, &[]);
    assert_eq!(error, None);
    assert_eq!(values.len(), 1);
    values.remove(0)
}

fn error(input: &[u8]) -> ProtocolError {
    decode(SMALL, input, &[]).1.expect("the input is not RESP")
}

#[test]
fn every_scalar_type_is_understood() {
    assert_eq!(one(b"+OK\r\n"), Value::Simple(b"OK".to_vec()));
    assert_eq!(one(b"-ERR no\r\n"), Value::Error(b"ERR no".to_vec()));
    assert_eq!(one(b"!6\r\nERR\r\nx\r\n"), Value::Error(b"ERR\r\nx".to_vec()));
    assert_eq!(one(b":-42\r\n"), Value::Integer(-42));
    assert_eq!(one(b":+9223372036854775807\r\n"), Value::Integer(i64::MAX));
    assert_eq!(one(b"$4\r\na\r\nb\r\n"), bulk("a\r\nb"));
    assert_eq!(one(b"$0\r\n\r\n"), bulk(""));
    assert_eq!(one(b"_\r\n"), Value::Null);
    assert_eq!(one(b"$-1\r\n"), Value::Null);
    assert_eq!(one(b"*-1\r\n"), Value::Null);
    assert_eq!(one(b"#t\r\n"), Value::Boolean(true));
    assert_eq!(one(b",1.5e3\r\n"), Value::Double(1500.0));
    assert_eq!(one(b",-inf\r\n"), Value::Double(f64::NEG_INFINITY));
    assert!(matches!(one(b",nan\r\n"), Value::Double(number) if number.is_nan()));
    assert_eq!(one(b"(-123456789012345678901234567890\r\n").as_bytes().map(<[u8]>::len), Some(31));
    assert_eq!(one(b"=8\r\ntxt:some\r\n"), Value::Verbatim { format: *b"txt", text: b"some".to_vec() });
}

#[test]
fn aggregates_nest_and_empty_ones_are_complete_at_once() {
    assert_eq!(one(b"*0\r\n"), Value::Array(vec![]));
    assert_eq!(
        one(b"*3\r\n~1\r\n:1\r\n%1\r\n+a\r\n*0\r\n>0\r\n"),
        Value::Array(vec![
            Value::Set(vec![Value::Integer(1)]),
            Value::Map(vec![(Value::Simple(b"a".to_vec()), Value::Array(vec![]))]),
            Value::Push(vec![]),
        ])
    );
}

#[test]
fn attributes_belong_to_the_value_that_follows() {
    assert_eq!(
        one(b"*2\r\n|1\r\n+ttl\r\n:9\r\n$1\r\nx\r\n:2\r\n"),
        Value::Array(vec![
            Value::Attributed {
                attributes: vec![(Value::Simple(b"ttl".to_vec()), Value::Integer(9))],
                value: Box::new(bulk("x")),
            },
            Value::Integer(2),
        ])
    );
    assert_eq!(one(b"|0\r\n+x\r\n").as_bytes(), Some(&b"x"[..]));
}

#[test]
fn what_is_not_resp_is_one_error() {
    assert_eq!(error(b"HTTP/1.1\r\n"), ProtocolError::UnknownType(b'H'));
    assert_eq!(error(b"\r\n"), ProtocolError::UnknownType(b'\r'));
    assert_eq!(error(b"+OK\n"), ProtocolError::BareLineFeed);
    assert_eq!(error(b"\n"), ProtocolError::BareLineFeed);
    assert_eq!(error(b"$1\r\nabc"), ProtocolError::UnterminatedBulk);
    assert_eq!(error(b"$-2\r\n"), ProtocolError::InvalidLength("-2".into()));
    assert_eq!(error(b"$?\r\n"), ProtocolError::InvalidLength("?".into()));
    assert_eq!(error(b"%-1\r\n"), ProtocolError::InvalidLength("-1".into()));
    assert_eq!(error(b":1x\r\n"), ProtocolError::InvalidScalar { kind: "integer", text: "1x".into() });
    assert_eq!(
        error(b",infinity\r\n"),
        ProtocolError::InvalidScalar { kind: "double", text: "infinity".into() }
    );
    assert_eq!(error(b"#yes\r\n"), ProtocolError::InvalidScalar { kind: "boolean", text: "yes".into() });
    assert_eq!(error(b"(12a\r\n"), ProtocolError::InvalidScalar { kind: "big number", text: "12a".into() });
    assert_eq!(error(b"=3\r\ntxt\r\n"), ProtocolError::InvalidVerbatim);
}

#[test]
fn limits_refuse_a_header_before_its_bytes_arrive() {
    assert_eq!(error(b"$33\r\n"), ProtocolError::BulkTooLong(32));
    assert_eq!(
        error(b"*2\r\n$32\r\n01234567890123456789012345678901\r\n$17\r\n"),
        ProtocolError::ValueTooLong(48)
    );
    assert_eq!(error(b"*13\r\n"), ProtocolError::TooManyElements(12));
    assert_eq!(error(b"%18446744073709551615\r\n"), ProtocolError::TooManyElements(12));
    assert_eq!(error(b"*1\r\n*1\r\n*1\r\n*1\r\n"), ProtocolError::TooDeep(3));
    assert_eq!(error(b"+0123456789012345678901234\r\n"), ProtocolError::LineTooLong(24));
    assert_eq!(decode(SMALL, b"+012345678901234567890123\r\n", &[]).1, None);
}

#[test]
fn limits_count_per_value_not_per_connection() {
    let value = b"*1\r\n$32\r\n01234567890123456789012345678901\r\n";
    let (values, error) = decode(SMALL, &value.repeat(20), &[]);
    assert_eq!((values.len(), error), (20, None));
}

#[test]
fn idle_means_between_two_values() {
    let mut decoder = Decoder::default();
    assert!(decoder.is_idle());
    decoder.feed(b"*1\r\n:1");
    assert_eq!(decoder.next_value(), Ok(None));
    assert!(!decoder.is_idle());
    decoder.feed(b"\r\n");
    assert_eq!(decoder.next_value(), Ok(Some(Value::Array(vec![Value::Integer(1)]))));
    assert!(decoder.is_idle());
}

fn any_value() -> impl Strategy<Value = Value> {
    let text = || proptest::collection::vec(any::<u8>(), 0..20);
    let one_line = || proptest::collection::vec(b' '..b'~', 0..20);
    let scalar = prop_oneof![
        one_line().prop_map(Value::Simple),
        text().prop_map(Value::Error),
        text().prop_map(Value::Bulk),
        any::<i64>().prop_map(Value::Integer),
        any::<bool>().prop_map(Value::Boolean),
        proptest::num::f64::NORMAL.prop_map(Value::Double),
        "-?[0-9]{1,40}".prop_map(|digits| Value::BigNumber(digits.into_bytes())),
        text().prop_map(|text| Value::Verbatim { format: *b"mkd", text }),
        Just(Value::Null),
    ];
    scalar.prop_recursive(4, 40, 5, |inner| {
        let many = proptest::collection::vec(inner.clone(), 0..5);
        let pairs = proptest::collection::vec((inner.clone(), inner.clone()), 0..4);
        prop_oneof![
            many.clone().prop_map(Value::Array),
            many.clone().prop_map(Value::Set),
            many.prop_map(Value::Push),
            pairs.clone().prop_map(Value::Map),
            (pairs, inner)
                .prop_map(|(attributes, value)| Value::Attributed { attributes, value: Box::new(value) }),
        ]
    })
}

/// Generates almost valid RESP, which finds more cases than random bytes.
fn nearly_resp() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\r\n".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"-1\r\n".to_vec()),
        "[-+:$*%~>|_,#(!=][0-9]{0,2}\r\n".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn values_survive_encoding_and_any_split(
        values in proptest::collection::vec(any_value(), 1..4),
        cuts in proptest::collection::vec(1_usize..9, 0..200),
    ) {
        let mut encoded = Vec::new();
        for value in &values {
            encode_value(&mut encoded, value);
        }
        prop_assert_eq!(decode(Limits::default(), &encoded, &cuts), (values, None));
    }

    #[test]
    fn any_bytes_in_any_split_give_the_same_values_or_one_error(
        input in nearly_resp(),
        cuts in proptest::collection::vec(1_usize..5, 0..100),
    ) {
        // Compared as text, in which a NaN equals itself.
        let whole = format!("{:?}", decode(SMALL, &input, &[]));
        prop_assert_eq!(format!("{:?}", decode(SMALL, &input, &cuts)), &whole[..]);
        prop_assert_eq!(format!("{:?}", decode(SMALL, &input, &vec![1; input.len()])), whole);
    }
}
