//! Registers of six bits each, the lowest bits of a byte first.

use super::REGISTERS;

/// Bits of a register.
const BITS: usize = 6;
/// Length of all registers, in bytes.
pub(super) const BYTES: usize = REGISTERS * BITS / 8;
/// Highest value of a register.
const HIGHEST: u8 = (1 << BITS) - 1;

// Four registers fill three bytes, so the last one ends with the last byte.
const _: () = assert!(REGISTERS.is_multiple_of(4));

/// Returns a register.
pub(super) fn get(registers: &[u8], index: usize) -> u8 {
    let (byte, shift) = place(index);
    let next = registers.get(byte + 1).copied().unwrap_or(0);
    (u16::from_le_bytes([registers[byte], next]) >> shift) as u8 & HIGHEST
}

/// Sets a register.
pub(super) fn set(registers: &mut [u8], index: usize, value: u8) {
    assert!(value <= HIGHEST, "register {index} is to be {value}, above {HIGHEST}");
    let (byte, shift) = place(index);
    let [mask, next_mask] = (u16::from(HIGHEST) << shift).to_le_bytes();
    let [bits, next_bits] = (u16::from(value) << shift).to_le_bytes();
    registers[byte] = registers[byte] & !mask | bits;
    if next_mask > 0 {
        registers[byte + 1] = registers[byte + 1] & !next_mask | next_bits;
    }
}

/// Visits all registers with their indices.
pub(super) fn each(registers: &[u8], mut visit: impl FnMut(usize, u8)) {
    let (triples, _) = registers.as_chunks::<3>();
    for (number, &[one, two, three]) in triples.iter().enumerate() {
        let bits = u32::from_le_bytes([one, two, three, 0]);
        for inside in 0..4 {
            visit(number * 4 + inside, (bits >> (BITS * inside)) as u8 & HIGHEST);
        }
    }
}

/// Returns the byte in which a register begins, and the bit.
fn place(index: usize) -> (usize, usize) {
    (index * BITS / 8, index * BITS % 8)
}
