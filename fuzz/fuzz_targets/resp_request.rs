//! Any bytes, in any split, give the same commands or the same error as the same bytes in one piece.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_server::resp::request::{ProtocolError, RequestLimits, RequestParser};

fuzz_target!(|data: &[u8]| {
    let Some((&[first, second], input)) = data.split_first_chunk::<2>() else { return };
    let limits = RequestLimits { authenticated: first & 1 == 0, ..RequestLimits::default() };
    let whole = parse(input, input.len().max(1), &limits);
    let pieces = parse(input, usize::from(second) + 1, &limits);
    assert_eq!(whole, pieces);
});

type Commands = Vec<Vec<Vec<u8>>>;

/// Shows `input` to a parser in pieces of `step` bytes.
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
        assert!(parser.capacity() <= 16 * input.len() + 4096, "memory follows the bytes that are there");
    }
    (commands, None)
}
