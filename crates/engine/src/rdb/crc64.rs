//! CRC-64 with the polynomial of Jones, reflected, from zero: the checksum of Redis's dumps and files.

/// The polynomial 0xad93d23594c935a9, its bits reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// Remainders of each byte, followed by 0 to 7 zero bytes.
static TABLE: [[u64; 256]; 8] = table();

const fn table() -> [[u64; 256]; 8] {
    let mut table = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { rest >> 1 ^ POLYNOMIAL } else { rest >> 1 };
            bit += 1;
        }
        table[0][byte] = rest;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = table[zeros - 1][byte];
            table[zeros][byte] = before >> 8 ^ table[0][(before & 0xff) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    table
}

/// Returns the checksum. O(bytes), eight at a time.
pub fn crc64(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut crc = 0_u64;
    for word in words {
        let mixed = (crc ^ u64::from_le_bytes(*word)).to_le_bytes();
        crc = mixed.iter().zip(TABLE.iter().rev()).fold(0, |crc, (byte, row)| crc ^ row[usize::from(*byte)]);
    }
    rest.iter().fold(crc, |crc, byte| crc >> 8 ^ TABLE[0][usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn checksums_are_those_of_redis() {
        assert_eq!(crc64(b""), 0);
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn eight_bytes_at_a_time_give_what_one_at_a_time_does(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let slow = bytes.iter().fold(0, |crc: u64, byte| {
                (0..8).fold(crc ^ u64::from(*byte), |crc, _| {
                    if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 }
                })
            });
            prop_assert_eq!(crc64(&bytes), slow);
        }
    }
}
