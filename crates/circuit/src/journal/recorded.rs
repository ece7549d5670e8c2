//! Encoding of values as bytes.

use super::allowance;
use crate::identity::name::Name;

/// A value that can be written into a journal and read back, bit for bit.
///
/// The encoding does not include the type: it is read as the type that its label has in the replay.
/// To detect a mismatch, use an encoding that differs from those of other types, for example with a
/// distinct first byte.
///
/// ```
/// use tidemark_circuit::Recorded;
///
/// #[derive(Debug, PartialEq)]
/// struct Order {
///     item: String,
///     count: u32,
/// }
///
/// impl Recorded for Order {
///     fn write(&self, bytes: &mut Vec<u8>) {
///         self.item.write(bytes);
///         self.count.write(bytes);
///     }
///
///     fn read(bytes: &mut &[u8]) -> Option<Self> {
///         Some(Self { item: Recorded::read(bytes)?, count: Recorded::read(bytes)? })
///     }
/// }
///
/// let order = Order { item: "tea".to_owned(), count: 3 };
/// let mut bytes = Vec::new();
/// order.write(&mut bytes);
/// assert_eq!(Order::read(&mut &bytes[..]), Some(order));
/// ```
pub trait Recorded: Sized {
    /// Appends the value.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Takes a value from the front; none if there is no such value.
    fn read(bytes: &mut &[u8]) -> Option<Self>;
}

/// Maximum number of zero-sized values in one vector.
const ZERO_SIZED_MAX: usize = 1 << 26;

/// Appends a number as LEB128: seven bits to a byte, the lowest first.
pub(super) fn write_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number from the front.
pub(super) fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        let bits = u64::from(byte & 0x7F);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

macro_rules! as_fixed_bytes {
    ($($type:ty),*) => {$(
        impl Recorded for $type {
            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                let taken = bytes.split_off(..size_of::<Self>())?;
                Some(Self::from_le_bytes(taken.try_into().ok()?))
            }
        }
    )*};
}

as_fixed_bytes!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

impl Recorded for () {
    fn write(&self, _: &mut Vec<u8>) {}

    fn read(_: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

impl Recorded for usize {
    fn write(&self, bytes: &mut Vec<u8>) {
        write_number(*self as u64, bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        read_number(bytes)?.try_into().ok()
    }
}

impl Recorded for bool {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        match bytes.split_off_first()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Recorded for char {
    fn write(&self, bytes: &mut Vec<u8>) {
        u32::from(*self).write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        Self::from_u32(u32::read(bytes)?)
    }
}

impl Recorded for String {
    fn write(&self, bytes: &mut Vec<u8>) {
        write_number(self.len() as u64, bytes);
        bytes.extend_from_slice(self.as_bytes());
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let length = usize::read(bytes)?;
        Self::from_utf8(bytes.split_off(..length)?.to_vec()).ok()
    }
}

impl Recorded for Name {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.path().to_owned().write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        allowance::name(&String::read(bytes)?)
    }
}

impl<T: Recorded> Recorded for Vec<T> {
    fn write(&self, bytes: &mut Vec<u8>) {
        write_number(self.len() as u64, bytes);
        self.iter().for_each(|value| value.write(bytes));
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let length = usize::read(bytes)?;
        // A false length must not reserve memory, nor take time.
        let most = if size_of::<T>() > 0 { bytes.len() } else { ZERO_SIZED_MAX };
        if length > most {
            return None;
        }
        allowance::take_bytes(length.saturating_mul(size_of::<T>().max(1)))?;
        (0..length).map(|_| T::read(bytes)).collect()
    }
}

impl<T: Recorded, const N: usize> Recorded for [T; N] {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.iter().for_each(|value| value.write(bytes));
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        (0..N).map(|_| T::read(bytes)).collect::<Option<Vec<T>>>()?.try_into().ok()
    }
}

impl<T: Recorded> Recorded for Option<T> {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.is_some().write(bytes);
        if let Some(value) = self {
            value.write(bytes);
        }
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        if bool::read(bytes)? { T::read(bytes).map(Some) } else { Some(None) }
    }
}

macro_rules! as_parts {
    ($($type:ident)*) => {
        #[allow(non_snake_case, reason = "a part is named as its type")]
        impl<$($type: Recorded),*> Recorded for ($($type,)*) {
            fn write(&self, bytes: &mut Vec<u8>) {
                let ($($type,)*) = self;
                $($type.write(bytes);)*
            }

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($type::read(bytes)?,)*))
            }
        }
    };
}

as_parts!(A);
as_parts!(A B);
as_parts!(A B C);
as_parts!(A B C D);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Everything = (Option<String>, Vec<(i128, f64)>, [bool; 3], (char, usize));

    proptest! {
        #[test]
        fn numbers_come_back(number: u64) {
            let mut bytes = Vec::new();
            write_number(number, &mut bytes);
            prop_assert_eq!(read_number(&mut &bytes[..]), Some(number));
        }

        #[test]
        fn values_come_back_in_every_bit(value: Everything) {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            value.write(&mut first);
            let mut rest = &first[..];
            Everything::read(&mut rest).expect("was written").write(&mut second);
            prop_assert!(rest.is_empty());
            prop_assert_eq!(first, second);
        }

        #[test]
        fn what_can_be_read_of_nonsense_comes_back_when_it_is_written(bytes: Vec<u8>) {
            comes_back::<Everything>(&bytes)?;
            comes_back::<Vec<()>>(&bytes)?;
            comes_back::<Name>(&bytes)?;
        }

        #[test]
        fn what_can_be_read_of_damaged_values_comes_back(
            value: Everything, position: prop::sample::Index, bit in 0..8_u8, more: Vec<u8>,
        ) {
            let mut bytes = Vec::new();
            value.write(&mut bytes);
            let position = position.index(bytes.len());
            bytes[position] ^= 1 << bit;
            bytes.extend(more);
            comes_back::<Everything>(&bytes)?;
        }
    }

    /// Checks that a value read from the front of these bytes is the same after it was written, and
    /// needs each byte that it took.
    fn comes_back<T: Recorded>(bytes: &[u8]) -> Result<(), TestCaseError> {
        let mut rest = bytes;
        let Some(value) = T::read(&mut rest) else { return Ok(()) };
        let taken = bytes.strip_suffix(rest).expect("values are read from the front");
        let (mut first, mut second) = (Vec::new(), Vec::new());
        value.write(&mut first);
        prop_assert!(first.len() <= taken.len(), "a number may have been written longer than it has to be");
        let mut rest = &first[..];
        T::read(&mut rest).expect("was written").write(&mut second);
        prop_assert!(rest.is_empty());
        prop_assert_eq!(first, second);
        if let Some((_, shorter)) = taken.split_last() {
            prop_assert!(T::read(&mut &*shorter).is_none(), "the last byte was not needed");
        }
        Ok(())
    }
}
