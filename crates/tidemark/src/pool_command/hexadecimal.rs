//! Bytes as hexadecimal digits: secrets, chains, seeds.

use std::fmt::Write as _;

pub(super) fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Decodes 32 bytes from 64 digits.
pub(super) fn decode(digits: &str) -> Result<[u8; 32], String> {
    let wrong = || format!("{:?} is not 64 hexadecimal digits", digits.chars().take(80).collect::<String>());
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = std::str::from_utf8(pair)
            .ok()
            .and_then(|pair| u8::from_str_radix(pair, 16).ok())
            .ok_or_else(wrong)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn what_is_written_is_read_back_and_nothing_else() {
        let bytes: [u8; 32] = std::array::from_fn(|at| at as u8 * 7);
        assert_eq!(decode(&encode(&bytes)), Ok(bytes));
        for wrong in ["", "12", &"g".repeat(64), &"é".repeat(32), &"1".repeat(65)] {
            assert!(decode(wrong).is_err(), "{wrong}");
        }
    }
}
