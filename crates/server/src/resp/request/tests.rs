//! Compares the parser with a simple reference: stateless, unsplit input, no optimisations.

use super::*;
use proptest::prelude::*;

type Command = Vec<Vec<u8>>;
type Outcome = (Vec<Command>, Option<ProtocolError>);

/// Passes `input` to the parser in pieces that end at `splits`, as from a connection.
fn parse_in_pieces(input: &[u8], splits: &[usize], limits: &RequestLimits) -> Outcome {
    let mut parser = RequestParser::default();
    let (mut commands, mut start) = (Vec::new(), 0);
    let mut ends: Vec<usize> = splits.iter().map(|split| split % (input.len() + 1)).collect();
    ends.sort_unstable();
    ends.push(input.len());
    for end in ends {
        loop {
            let pending = &input[start..end];
            match parser.next(pending, limits) {
                Ok(None) => break,
                Err(error) => return (commands, Some(error)),
                Ok(Some(consumed)) => {
                    assert!(consumed > 0 && consumed <= pending.len());
                    commands.push(parser.arguments(pending).map(<[u8]>::to_vec).collect());
                    start += consumed;
                }
            }
        }
    }
    (commands, None)
}

/// Reference implementation: parses everything from the beginning each time.
fn parse_slowly(input: &[u8], limits: &RequestLimits) -> Outcome {
    let (mut commands, mut rest) = (Vec::new(), input);
    while !rest.is_empty() {
        match one_command_slowly(rest, limits) {
            Ok(Some((command, consumed))) => {
                commands.push(command);
                rest = &rest[consumed..];
            }
            Ok(None) => break,
            Err(error) => return (commands, Some(error)),
        }
    }
    (commands, None)
}

fn one_command_slowly(
    input: &[u8],
    limits: &RequestLimits,
) -> Result<Option<(Command, usize)>, ProtocolError> {
    if input[0] != b'*' {
        let Some(end) = input.iter().take(LINE_LIMIT).position(|byte| *byte == b'\n') else {
            return if input.len() >= LINE_LIMIT { Err(ProtocolError::InlineTooLong) } else { Ok(None) };
        };
        let (mut text, mut ranges) = (Vec::new(), Vec::new());
        let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        inline::split(line, &mut text, &mut ranges).map_err(|_| ProtocolError::UnbalancedQuotes)?;
        let words = ranges.iter().map(|(start, end)| text[*start as usize..*end as usize].to_vec()).collect();
        return Ok(Some((words, end + 1)));
    }
    let Some((count, mut position)) = line_slowly(input, 0, ProtocolError::ArrayLineTooLong)? else {
        return Ok(None);
    };
    let count: i64 = count.ok_or(ProtocolError::ArrayLength)?;
    if count > limits.arguments as i64 {
        return Err(ProtocolError::ArrayLength);
    }
    if count > UNAUTHENTICATED_ARGUMENTS as i64 && !limits.authenticated {
        return Err(ProtocolError::UnauthenticatedArrayLength);
    }
    let mut command = Vec::new();
    for _ in 0..count {
        let Some((length, after)) = line_slowly(input, position, ProtocolError::BulkLineTooLong)? else {
            return Ok(None);
        };
        if input[position] != b'$' {
            return Err(ProtocolError::ExpectedBulk(input[position]));
        }
        let length = length.filter(|length| (0..=limits.bulk_bytes as i64).contains(length));
        let length = length.ok_or(ProtocolError::BulkLength)? as usize;
        if length > UNAUTHENTICATED_BULK_BYTES && !limits.authenticated {
            return Err(ProtocolError::UnauthenticatedBulkLength);
        }
        if input.len() < after + length + 2 {
            return Ok(None);
        }
        command.push(input[after..after + length].to_vec());
        position = after + length + 2;
    }
    Ok(Some((command, position)))
}

/// Returns the number of a line (`None` if it is not one) and the offset after the line.
fn line_slowly(
    input: &[u8],
    from: usize,
    too_long: ProtocolError,
) -> Result<Option<(Option<i64>, usize)>, ProtocolError> {
    let line = &input[from.min(input.len())..];
    let Some(end) = line.iter().take(LINE_LIMIT).position(|byte| *byte == b'\r') else {
        return if line.len() >= LINE_LIMIT { Err(too_long) } else { Ok(None) };
    };
    if line.len() < end + 2 {
        return Ok(None);
    }
    let text = if end == 0 { "" } else { std::str::from_utf8(&line[1..end]).unwrap_or("") };
    let number = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    Ok(Some((number, from + end + 2)))
}

fn frame(arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn valid_request() -> impl Strategy<Value = Vec<u8>> {
    let argument = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        4 => prop::collection::vec(argument, 0..14).prop_map(|arguments| frame(&arguments)),
        1 => "[ a-z\"'\\\\x0]{0,30}\r?\n".prop_map(String::into_bytes),
    ]
}

fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "*",
        "$",
        "\r\n",
        "\r",
        "\n",
        "-1",
        "0",
        "00",
        "1",
        "12",
        "-0",
        "+1",
        "99999999",
        "9999999999",
        "$-1\r\n",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        " ",
        "\0",
        "\"",
        "'",
        "*3\r\n",
        "$17000\r\n",
        "*8\r]",
        "$\r",
        "*11\r\n",
        "x",
    ];
    prop::sample::select(pieces.to_vec()).prop_map(|piece| piece.as_bytes().to_vec())
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        6 => valid_request(),
        2 => fragment(),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ];
    let parts = prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat());
    // Few bytes, all meaningful: almost every stream is malformed in its own way.
    let meaningful = prop::sample::select(b"**$$\r\r\r\n0123-x\" ".to_vec());
    let dense = ("[*]", prop::collection::vec(meaningful, 0..16))
        .prop_map(|(first, rest)| [first.into_bytes(), rest].concat());
    let parts = prop_oneof![1 => parts, 1 => dense];
    let damage = prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>()));
    (parts, damage).prop_map(|(mut bytes, damage)| {
        if let Some((at, byte)) = damage
            && !bytes.is_empty()
        {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

fn limits() -> impl Strategy<Value = RequestLimits> {
    prop_oneof![
        Just(RequestLimits::default()),
        Just(RequestLimits { authenticated: false, ..RequestLimits::default() }),
        Just(RequestLimits { arguments: 4, bulk_bytes: 9, authenticated: true }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_what_the_reference_gives(
        input in stream(),
        splits in prop::collection::vec(any::<usize>(), 0..20),
        limits in limits(),
    ) {
        prop_assert_eq!(parse_in_pieces(&input, &splits, &limits), parse_slowly(&input, &limits));
    }

    #[test]
    fn small_steps_give_what_the_reference_gives(input in stream(), step in 1..5_usize, limits in limits()) {
        let splits: Vec<usize> = (0..input.len()).step_by(step).collect();
        prop_assert_eq!(parse_in_pieces(&input, &splits, &limits), parse_slowly(&input, &limits));
    }
}

fn error_of(input: &[u8]) -> Option<String> {
    parse_in_pieces(input, &[], &RequestLimits::default()).1.map(|error| error.to_string())
}

#[test]
fn errors_are_those_of_redis() {
    let cases: [(&[u8], &str); 9] = [
        (b"*x\r\n", "Protocol error: invalid multibulk length"),
        (b"*2147483647\r\n", "Protocol error: invalid multibulk length"),
        (b"*20000000000000000000\r\n", "Protocol error: invalid multibulk length"),
        (b"*1\r\n$-1\r\n", "Protocol error: invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "Protocol error: invalid bulk length"),
        (b"*1\r\n$\r\n", "Protocol error: invalid bulk length"),
        (b"*1\r\nGET\r\n", "Protocol error: expected '$', got 'G'"),
        (b"*01\r\n", "Protocol error: invalid multibulk length"),
        (b"get \"a\r\n", "Protocol error: unbalanced quotes in request"),
    ];
    for (input, text) in cases {
        assert_eq!(error_of(input).as_deref(), Some(text), "{}", input.escape_ascii());
    }
}

#[test]
fn a_line_without_end_is_refused_at_the_limit() {
    for (first, text) in [
        (&b"a"[..], "Protocol error: too big inline request"),
        (b"*", "Protocol error: too big mbulk count string"),
        (b"*1\r\n$", "Protocol error: too big bulk count string"),
    ] {
        let mut input = first.to_vec();
        let line_start = input.len() - 1;
        input.resize(line_start + LINE_LIMIT - 1, b'1');
        assert_eq!(error_of(&input), None);
        input.push(b'1');
        assert_eq!(error_of(&input).as_deref(), Some(text));
    }
}

#[test]
fn a_stranger_may_send_little() {
    let limits = RequestLimits { authenticated: false, ..RequestLimits::default() };
    let outcome = |input: &[u8]| parse_in_pieces(input, &[], &limits).1;
    assert_eq!(outcome(b"*10\r\n$16384\r\n"), None);
    assert_eq!(outcome(b"*11\r\n"), Some(ProtocolError::UnauthenticatedArrayLength));
    assert_eq!(outcome(b"*1\r\n$16385\r\n"), Some(ProtocolError::UnauthenticatedBulkLength));
}

#[test]
fn announced_lengths_reserve_nothing() {
    let mut parser = RequestParser::default();
    assert_eq!(parser.next(b"*1048576\r\n$536870912\r\n", &RequestLimits::default()), Ok(None));
    assert!(parser.capacity() < 1024, "{} bytes reserved", parser.capacity());
    assert!(parser.needed() > 536_870_912);
}

#[test]
fn what_was_seen_of_one_line_is_not_taken_for_the_next() {
    let input = b"*8\r]\r*3";
    for step in 1..=input.len() {
        let splits: Vec<usize> = (0..input.len()).step_by(step).collect();
        let (commands, error) = parse_in_pieces(input, &splits, &RequestLimits::default());
        assert_eq!(
            (commands, error),
            (Vec::new(), Some(ProtocolError::ExpectedBulk(b'\r'))),
            "pieces of {step}"
        );
    }
}

#[test]
fn empty_requests_have_no_arguments() {
    let (commands, error) =
        parse_in_pieces(b"*0\r\n*-1\r\n\r\n  \r\nPING\r\n", &[], &RequestLimits::default());
    let nothing = Command::new();
    let expected = vec![nothing.clone(), nothing.clone(), nothing.clone(), nothing, vec![b"PING".to_vec()]];
    assert_eq!((commands, error), (expected, None));
}

#[test]
fn an_argument_may_hold_any_byte_and_be_empty() {
    let arguments = vec![b"SET".to_vec(), Vec::new(), (0..=255).collect()];
    let (commands, error) = parse_in_pieces(&frame(&arguments), &[3, 9, 20], &RequestLimits::default());
    assert_eq!((commands, error), (vec![arguments], None));
}
