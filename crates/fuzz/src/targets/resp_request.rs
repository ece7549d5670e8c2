//! Requests of the Redis protocol: any bytes, in any split, give the same commands or the same
//! error as in one piece.

use super::Target;
use tidemark_server::resp::request::{ProtocolError, RequestLimits, RequestParser};

pub(super) const TARGET: Target = Target {
    name: "resp_request",
    run,
    corpus,
    words: &[b"\r\n", b"*1\r\n", b"$3\r\nGET\r\n", b"$0\r\n\r\n", b"*-1\r\n", b"$", b"*"],
};

fn run(data: &[u8]) -> bool {
    let Some((&[first, second], input)) = data.split_first_chunk::<2>() else { return false };
    let limits = RequestLimits { authenticated: first & 1 == 0, ..RequestLimits::default() };
    let whole = parse(input, input.len().max(1), &limits);
    let pieces = parse(input, usize::from(second) + 1, &limits);
    assert_eq!(whole, pieces);
    !whole.0.is_empty()
}

type Commands = Vec<Vec<Vec<u8>>>;

/// Parses `input` in pieces of `step` bytes.
fn parse(input: &[u8], step: usize, limits: &RequestLimits) -> (Commands, Option<ProtocolError>) {
    let mut parser = RequestParser::default();
    let (mut commands, mut start, mut end) = (Vec::new(), 0, 0);
    while end < input.len() {
        end = (end + step).min(input.len());
        loop {
            let pending = &input[start..end];
            match parser.next(pending, limits) {
                Ok(None) => break,
                Ok(Some(consumed)) => {
                    commands.push(parser.arguments(pending).map(<[u8]>::to_vec).collect());
                    start += consumed;
                }
                Err(error) => return (commands, Some(error)),
            }
        }
        assert!(
            parser.capacity() <= 16 * input.len() + 4096,
            "the parser holds {} bytes for an input of {}",
            parser.capacity(),
            input.len()
        );
    }
    (commands, None)
}

fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("arrays", b"\0\x03*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n\r\n\r\n*1\r\n$4\r\nPING\r\n".to_vec()),
        ("inline", b"\0\0SET k \"a\\x00\\n b\" 'c'\r\nPING\nGET  k\r\n".to_vec()),
        ("stranger", b"\x01\x01*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n*11\r\n$16384\r\n".to_vec()),
        ("too-long", b"\0\x07*1\r\n$999999999999\r\n".to_vec()),
        ("empty-arrays", b"\0\x01*0\r\n*-1\r\n\r\n*1\r\n$0\r\n\r\n".to_vec()),
    ]
}
