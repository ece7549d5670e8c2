//! Nanoseconds per command of the request parser: `cargo bench -p tidemark-server --bench request`.

use std::hint::black_box;
use std::time::Instant;
use tidemark_server::resp::request::{RequestLimits, RequestParser};

/// Long enough to hide the clock, short enough to stay in the cache.
const COMMANDS: usize = 200;
const ROUNDS: usize = 20_000;

fn main() {
    let set = b"*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000042\r\n$3\r\nxxx\r\n".as_slice();
    let inline = b"SET key:000000000042 xxx\r\n".as_slice();
    for (name, command) in [("SET, 3 arguments", set), ("SET, inline", inline)] {
        let mut samples: Vec<f64> = (0..5).map(|_| nanoseconds_per_command(command)).collect();
        samples.sort_by(f64::total_cmp);
        println!("{name}: {:.1} ns (of 5 runs: {:.1} to {:.1})", samples[2], samples[0], samples[4]);
    }
}

fn nanoseconds_per_command(command: &[u8]) -> f64 {
    let input = command.repeat(COMMANDS);
    let limits = RequestLimits::default();
    let mut parser = RequestParser::default();
    let start = Instant::now();
    for _ in 0..ROUNDS {
        let mut rest = black_box(input.as_slice());
        while let Ok(Some(consumed)) = parser.next(rest, &limits) {
            black_box(parser.argument(2, rest));
            rest = &rest[consumed..];
        }
    }
    start.elapsed().as_nanos() as f64 / (COMMANDS * ROUNDS) as f64
}
