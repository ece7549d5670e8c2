//! Random numbers of an epoch; each draw has its own.
//!
//! They are the key stream of ChaCha with 12 rounds, a 64-bit block counter and a 64-bit nonce.
//! Draw *k* owns the eight bytes from 8 *k* of each nonce's stream, read as a little-endian number.
//! So an auditor with the key can compute the result of one draw in O(1):
//!
//! | nonce | |
//! |---|---|
//! | 0 | first number of a draw |
//! | *level* · 2³² | number for a nested table; levels count from 1 |
//! | *level* · 2³² + *attempt* | replaces a number rejected because it would favour some items |
//!
//! Numbers are scaled below a bound by multiplication (Lemire, *Fast Random Integer Generation in
//! an Interval*, 2019): *x* maps to ⌊*x* · bound / 2⁶⁴⌋, and as many *x* are rejected as it takes
//! to give each result the same number of *x*.

use chacha20::cipher::{Block, StreamCipherCore};
use chacha20::variants::Ietf;
use chacha20::{ChaChaCore, KeyIvInit, R12};
use std::fmt;

/// Number of blocks computed at a time: as many as the library computes in parallel with AVX-512,
/// if it is built with `--cfg chacha20_avx512`, as in this workspace. Otherwise it computes four in
/// parallel; the numbers are the same.
const BLOCKS: usize = 16;
/// Number of draws that a block covers.
const DRAWS_OF_BLOCK: u64 = 8;
/// Number of words computed at a time.
const WORDS: u64 = BLOCKS as u64 * DRAWS_OF_BLOCK;

type ChaCha = ChaChaCore<R12, Ietf>;

/// Random numbers of one key. 1,100 bytes; allocates only for draws from nested tables.
pub struct Numbers {
    key: [u8; 32],
    first: Stream,
    /// Streams of the nested levels used so far.
    deeper: Vec<Stream>,
}

impl Numbers {
    /// Creates the numbers of a key.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key, first: Stream::at(&key, 0, 0), deeper: Vec::new() }
    }

    /// Returns the number of a draw below `bound`, which is at least 1, uniformly distributed.
    /// O(1); consecutive draws are faster.
    #[inline]
    pub fn below(&mut self, draw: u64, bound: u64) -> u64 {
        let word = self.first.word(draw);
        scale(word, bound).unwrap_or_else(|| self.next_below(0, draw, bound))
    }

    /// As [`below`](Self::below), for a table nested `level` deep. Level 0 is the first table.
    #[inline]
    pub fn below_at(&mut self, level: u32, draw: u64, bound: u64) -> u64 {
        match level.checked_sub(1) {
            None => self.below(draw, bound),
            Some(below) => self.below_deep(below, draw, bound),
        }
    }

    /// Returns a number for a table on level `below` + 1.
    fn below_deep(&mut self, below: u32, draw: u64, bound: u64) -> u64 {
        while self.deeper.len() <= below as usize {
            self.deeper.push(Stream::at(&self.key, nonce(self.deeper.len() as u32 + 1, 0), draw));
        }
        let word = self.deeper[below as usize].word(draw);
        scale(word, bound).unwrap_or_else(|| self.next_below(below + 1, draw, bound))
    }

    /// Returns the numbers of a draw, one for each table that it passes, as a function from bounds
    /// to numbers.
    #[inline]
    pub(crate) fn of_draw(&mut self, draw: u64) -> impl FnMut(u64) -> u64 {
        let mut level = 0;
        move |bound| {
            let number = self.below_at(level, draw, bound);
            level += 1;
            number
        }
    }

    /// Returns the replacement of a rejected number.
    #[cold]
    fn next_below(&self, level: u32, draw: u64, bound: u64) -> u64 {
        let mut attempt = 1;
        loop {
            let word = Stream::at(&self.key, nonce(level, attempt), draw).word(draw);
            if let Some(number) = scale(word, bound) {
                return number;
            }
            attempt += 1;
        }
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Numbers(hidden)")
    }
}

fn nonce(level: u32, attempt: u32) -> u64 {
    u64::from(level) << 32 | u64::from(attempt)
}

/// Scales a word below `bound`. `None` if the word must be rejected for a uniform distribution.
#[inline]
fn scale(word: u64, bound: u64) -> Option<u64> {
    // Only in debug builds, like the assertion below: every draw runs this.
    debug_assert!(bound > 0, "there is no number below 0");
    let product = u128::from(word) * u128::from(bound);
    let (number, rest) = ((product >> 64) as u64, product as u64);
    // Rejects the first (2^64 mod bound) remainders of each share. The first comparison is nearly
    // always false and avoids the division.
    if rest < bound && rest < bound.wrapping_neg() % bound {
        return None;
    }
    debug_assert!(number < bound, "it is below the bound");
    Some(number)
}

/// Words of one nonce, in chunks.
struct Stream {
    key: [u8; 32],
    nonce: u64,
    /// Draw of the first word; a multiple of [`WORDS`].
    first: u64,
    /// Eight little-endian numbers each.
    blocks: [[u8; 64]; BLOCKS],
}

impl Stream {
    /// Creates a stream that holds the chunk of this draw.
    fn at(key: &[u8; 32], nonce: u64, draw: u64) -> Self {
        let mut stream = Self { key: *key, nonce, first: 0, blocks: [[0; 64]; BLOCKS] };
        stream.fill(draw);
        stream
    }

    #[inline]
    fn word(&mut self, draw: u64) -> u64 {
        if draw.wrapping_sub(self.first) >= WORDS {
            self.fill(draw);
        }
        let place = (draw % WORDS) as usize;
        u64::from_le_bytes(self.blocks.as_flattened().as_chunks().0[place])
    }

    /// Computes the chunk of this draw. O(1).
    #[cold]
    #[inline(never)]
    fn fill(&mut self, draw: u64) {
        self.first = draw - draw % WORDS;
        let counter = self.first / DRAWS_OF_BLOCK;
        // The library has a 32-bit counter followed by the nonce. With the upper half of the
        // counter in front of the nonce, the block is that of a 64-bit counter. A chunk starts at a
        // multiple of its size, so it never overflows the lower half.
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&((counter >> 32) as u32).to_le_bytes());
        nonce[4..].copy_from_slice(&self.nonce.to_le_bytes());
        let mut core = ChaCha::new(&self.key.into(), &nonce.into());
        core.set_block_pos(counter as u32);
        core.write_keystream_blocks(Block::<ChaCha>::cast_slice_from_core_mut(&mut self.blocks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference implementation of ChaCha, word by word: the block of a counter and a nonce.
    fn block(key: &[u8; 32], counter: u64, nonce: u64) -> [u8; 64] {
        fn quarter(state: &mut [u32; 16], [a, b, c, d]: [usize; 4]) {
            for (to, by, into, left) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
                state[to] = state[to].wrapping_add(state[by]);
                state[into] = (state[into] ^ state[to]).rotate_left(left);
            }
        }
        let mut begin = [0; 16];
        let constants = b"expand 32-byte k";
        let tail = [counter.to_le_bytes(), nonce.to_le_bytes()].concat();
        let bytes = [&constants[..], key, &tail].concat();
        for (word, bytes) in begin.iter_mut().zip(bytes.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let mut state = begin;
        for _ in 0..6 {
            for column in 0..4 {
                quarter(&mut state, [column, 4 + column, 8 + column, 12 + column]);
            }
            for row in 0..4 {
                quarter(&mut state, [row, 4 + (row + 1) % 4, 8 + (row + 2) % 4, 12 + (row + 3) % 4]);
            }
        }
        let mut out = [0; 64];
        for (place, (now, before)) in state.iter().zip(begin).enumerate() {
            out[place * 4..][..4].copy_from_slice(&now.wrapping_add(before).to_le_bytes());
        }
        out
    }

    /// Word of a draw, computed alone.
    fn word(key: &[u8; 32], nonce: u64, draw: u64) -> u64 {
        let block = block(key, draw / 8, nonce);
        u64::from_le_bytes(block[(draw % 8) as usize * 8..][..8].try_into().expect("eight bytes"))
    }

    proptest! {
        #[test]
        fn each_draw_has_its_own_word_of_the_key_stream(
            key: [u8; 32], level in 0_u32..3, draws in proptest::collection::vec(any::<u64>(), 1..20), bound in 1_u64..,
        ) {
            let mut numbers = Numbers::new(key);
            // Includes chunk borders and the last draws.
            for draw in draws.into_iter().chain([0, 1, 127, 128, u64::MAX, 0, u64::MAX - 1]) {
                let expected = (0_u32..)
                    .find_map(|attempt| scale(word(&key, nonce(level, attempt), draw), bound))
                    .expect("one that is not refused");
                prop_assert_eq!(numbers.below_at(level, draw, bound), expected);
            }
        }
    }

    #[test]
    fn all_numbers_have_equally_many_words() {
        // The argument for 64 bits, checked exhaustively for 8-bit words.
        for bound in 1_u64..=255 {
            let mut shares = vec![0; bound as usize];
            for word in 0_u64..256 {
                let product = word * bound;
                let (number, rest) = (product >> 8, product & 255);
                if rest >= 256 % bound {
                    shares[number as usize] += 1;
                }
            }
            assert!(shares.iter().all(|&share| share == 256 / bound), "bound {bound}: {shares:?}");
        }
    }

    #[test]
    fn at_the_edges_words_are_refused() {
        // 2^64 mod 3 is 1: the word 0 is rejected.
        assert_eq!((scale(0, 3), scale(1, 3), scale(u64::MAX, 3)), (None, Some(0), Some(2)));
        let bound = (1 << 63) + 1;
        let refused = (0..1_000).filter(|&word| scale(word, bound).is_none()).count();
        assert_eq!(refused, 500, "just under half of all");
        assert_eq!(scale(u64::MAX, 1), Some(0));
    }

    #[test]
    fn numbers_show_nothing_of_their_key() {
        assert_eq!(format!("{:?}", Numbers::new([7; 32])), "Numbers(hidden)");
    }
}
