//! Where a key lives: its hash slot, as Redis Cluster computes it, and its hash inside a table.

use foldhash::quality::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

/// Number of hash slots, as in Redis Cluster.
pub const SLOTS: usize = 16_384;

/// Seeded once a process, so that nobody can choose keys that fall into one bucket.
static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// The hash by which tables order their entries. It differs from process to process and is never stored.
#[inline]
pub fn hash(key: &[u8]) -> u64 {
    let mut hasher = STATE.build_hasher();
    hasher.write(key);
    hasher.finish()
}

/// The hash slot of a key: CRC16 of the key, or of what stands between its first `{` and the next `}` if that is not
/// empty, modulo [`SLOTS`].
#[inline]
pub fn slot(key: &[u8]) -> usize {
    crc16(hash_tag(key)) as usize % SLOTS
}

fn hash_tag(key: &[u8]) -> &[u8] {
    // Nearly every key is without braces; a scan without an early end is done many bytes at a time.
    if key.iter().fold(0, |found, &byte| found | u8::from(byte == b'{')) == 0 {
        return key;
    }
    let Some(open) = key.iter().position(|&byte| byte == b'{') else { return key };
    let inside = &key[open + 1..];
    match inside.iter().position(|&byte| byte == b'}') {
        Some(close) if close > 0 => &inside[..close],
        _ => key,
    }
}

/// CRC-16/XMODEM tables for eight bytes at a time: `TABLES[n][b]` is the CRC of byte `b` followed by `n` zero bytes.
static TABLES: [[u16; 256]; 8] = tables();

const fn tables() -> [[u16; 256]; 8] {
    let mut tables = [[0_u16; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = (before << 8) ^ tables[0][(before >> 8) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

fn crc16(bytes: &[u8]) -> u16 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut crc = 0_u16;
    for chunk in chunks {
        let head = [chunk[0] ^ (crc >> 8) as u8, chunk[1] ^ crc as u8];
        crc = TABLES[7][head[0] as usize] ^ TABLES[6][head[1] as usize];
        for (index, &byte) in chunk[2..].iter().enumerate() {
            crc ^= TABLES[5 - index][byte as usize];
        }
    }
    rest.iter().fold(crc, |crc, &byte| (crc << 8) ^ TABLES[0][((crc >> 8) as u8 ^ byte) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slots_are_those_of_redis_cluster() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot(b"{user1000}.following"), slot(b"{user1000}.followers"));
        assert_eq!(slot(b"foo{}bar"), crc16(b"foo{}bar") as usize % SLOTS);
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn eight_bytes_at_a_time_equal_one_at_a_time(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let slow = bytes
                .iter()
                .fold(0_u16, |crc, &byte| (crc << 8) ^ TABLES[0][((crc >> 8) as u8 ^ byte) as usize]);
            prop_assert_eq!(crc16(&bytes), slow);
        }
    }
}
