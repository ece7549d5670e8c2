//! Makes a new input: one of the corpus with a few random changes.

use fastrand::Rng;

/// Longest input. Bytes.
pub(crate) const INPUT_BYTES_MAX: usize = 16 * 1024;
/// Most changes of one input.
const CHANGES_MAX: u64 = 6;
/// Integers at the edges of ranges and limits.
const INTERESTING: [u64; 26] = [
    0,
    1,
    2,
    7,
    8,
    16,
    17,
    25,
    32,
    63,
    64,
    127,
    128,
    255,
    256,
    4096,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 32,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Returns a mutant of `base`. `other` is another input to take pieces from; `words` are the
/// target's own.
pub(crate) fn mutate(base: &[u8], other: &[u8], words: &[&[u8]], random: &mut Rng) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for _ in 0..=random.u64(..) % CHANGES_MAX {
        change(&mut bytes, other, words, random);
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], words: &[&[u8]], random: &mut Rng) {
    let at = random.usize(..=bytes.len());
    match random.usize(..14) {
        // One byte or bit.
        0..=2 if at < bytes.len() => bytes[at] ^= 1 << random.usize(..8),
        3 if at < bytes.len() => bytes[at] = random.u64(..) as u8,
        4 if at < bytes.len() => {
            let step = (random.usize(..35) as u8).wrapping_sub(17);
            bytes[at] = bytes[at].wrapping_add(step);
        }
        // Overwrites with an integer, in either byte order.
        5 | 6 => {
            let value = INTERESTING[random.usize(..INTERESTING.len())];
            let width = [1, 2, 4, 8][random.usize(..4)];
            let mut written = value.to_le_bytes()[..width].to_vec();
            if random.usize(..4) == 0 {
                written.reverse();
            }
            overwrite(bytes, at, &written);
        }
        // Replaces a decimal number, as texts have them.
        7 => replace_number(bytes, at, random),
        8 => {
            let end = at + random.usize(..=bytes.len() - at).min(64);
            bytes.drain(at..end);
        }
        9 => bytes.truncate(at),
        // Repeats a piece of the input itself.
        10 => {
            let start = random.usize(..=bytes.len());
            let end = start + random.usize(..=(bytes.len() - start).min(256));
            let piece = bytes[start..end].to_vec();
            insert(bytes, at, &piece);
        }
        // A piece of another input: inserted, written over, or as the new end.
        11 => {
            let start = random.usize(..=other.len());
            let end = start + random.usize(..=(other.len() - start).min(512));
            match random.usize(..3) {
                0 => insert(bytes, at, &other[start..end]),
                1 => overwrite(bytes, at, &other[start..end]),
                _ => {
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[start..]);
                }
            }
        }
        _ if !words.is_empty() => {
            let word = words[random.usize(..words.len())];
            if random.usize(..2) == 0 { insert(bytes, at, word) } else { overwrite(bytes, at, word) }
        }
        _ => insert(bytes, at, &[random.u64(..) as u8]),
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    if bytes.len() + piece.len() <= INPUT_BYTES_MAX {
        bytes.splice(at..at, piece.iter().copied());
    }
}

fn overwrite(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    let end = (at + piece.len()).min(bytes.len());
    bytes.splice(at..end, piece.iter().copied());
}

/// Replaces the first run of digits from `at` on with another number.
fn replace_number(bytes: &mut Vec<u8>, at: usize, random: &mut Rng) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|digit| at + digit) else { return };
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = INTERESTING[random.usize(..INTERESTING.len())];
    let written = match random.usize(..4) {
        0 => value.wrapping_add(1).to_string(),
        1 => format!("-{value}"),
        2 => format!("{}.5", value / 10),
        _ => value.to_string(),
    };
    bytes.splice(start..start + digits, written.into_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_are_bounded_and_follow_from_the_seed() {
        let (base, other) = (vec![b'1'; INPUT_BYTES_MAX - 3], vec![b'2'; 700]);
        let all = |seed| {
            let mut random = Rng::with_seed(seed);
            (0..2000).map(|_| mutate(&base, &other, &[b"word"], &mut random)).collect::<Vec<_>>()
        };
        let mutants = all(7);
        assert!(mutants.iter().all(|mutant| mutant.len() <= INPUT_BYTES_MAX));
        assert!(mutants.iter().filter(|mutant| **mutant != base).count() > 1900);
        assert_eq!(mutants, all(7));
        let mut random = Rng::with_seed(1);
        (0..2000).for_each(|_| assert!(mutate(b"", b"", &[], &mut random).len() <= INPUT_BYTES_MAX));
    }
}
