//! Values that a series can have.

use std::fmt;

/// Type of a series' values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// [`f64`], NaN included.
    Float = 1,
    /// [`i64`].
    Integer = 2,
    /// [`bool`].
    Boolean = 3,
}

impl Kind {
    /// Returns the kind with this code in blocks.
    pub(crate) fn of_code(code: u8) -> Option<Self> {
        [Self::Float, Self::Integer, Self::Boolean].into_iter().find(|kind| *kind as u8 == code)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f64 {}
    impl Sealed for i64 {}
    impl Sealed for bool {}
}

/// A value of a series: [`f64`], [`i64`] or [`bool`].
///
/// Blocks store the bits of a value. Equal bits are equal values: a NaN keeps its payload, and zero
/// its sign.
pub trait Sample:
    sealed::Sealed + Copy + PartialEq + PartialOrd + fmt::Debug + Send + Sync + 'static
{
    /// Type of the value in blocks.
    const KIND: Kind;

    /// Returns the bits that blocks store.
    fn to_bits(self) -> u64;

    /// Returns the value with these bits. For [`bool`], all bits but the lowest are ignored.
    fn from_bits(bits: u64) -> Self;

    /// Returns the value as the aggregations see it; an `i64` beyond 2^53 is rounded to the nearest
    /// number that an `f64` can have.
    fn to_f64(self) -> f64;

    /// Whether the value is NaN.
    fn is_nan(self) -> bool;

    /// Returns the sum of two values; `None` if it is beyond the range of the type.
    fn plus(self, other: Self) -> Option<Self>;
}

impl Sample for f64 {
    const KIND: Kind = Kind::Float;

    #[inline]
    fn to_bits(self) -> u64 {
        self.to_bits()
    }

    #[inline]
    fn from_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }

    #[inline]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline]
    fn is_nan(self) -> bool {
        self.is_nan()
    }

    #[inline]
    fn plus(self, other: Self) -> Option<Self> {
        let sum = self + other;
        (sum.is_finite() || !self.is_finite() || !other.is_finite()).then_some(sum)
    }
}

impl Sample for i64 {
    const KIND: Kind = Kind::Integer;

    #[inline]
    fn to_bits(self) -> u64 {
        self.cast_unsigned()
    }

    #[inline]
    fn from_bits(bits: u64) -> Self {
        bits.cast_signed()
    }

    #[inline]
    fn to_f64(self) -> f64 {
        self as f64
    }

    #[inline]
    fn is_nan(self) -> bool {
        false
    }

    #[inline]
    fn plus(self, other: Self) -> Option<Self> {
        self.checked_add(other)
    }
}

impl Sample for bool {
    const KIND: Kind = Kind::Boolean;

    #[inline]
    fn to_bits(self) -> u64 {
        u64::from(self)
    }

    #[inline]
    fn from_bits(bits: u64) -> Self {
        bits & 1 == 1
    }

    #[inline]
    fn to_f64(self) -> f64 {
        f64::from(u8::from(self))
    }

    #[inline]
    fn is_nan(self) -> bool {
        false
    }

    #[inline]
    fn plus(self, other: Self) -> Option<Self> {
        Some(self | other)
    }
}
