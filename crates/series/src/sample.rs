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

    /// Returns the values as the words that blocks store, if they have the same bits in memory.
    #[doc(hidden)]
    fn as_words<const N: usize>(values: &mut [Self; N]) -> Option<&mut [u64; N]>;

    /// Returns the values as numbers, those of other types in `converted`.
    #[doc(hidden)]
    fn as_numbers<'v>(values: &'v [Self], converted: &'v mut Vec<f64>) -> &'v [f64] {
        converted.clear();
        converted.extend(values.iter().map(|value| value.to_f64()));
        converted
    }

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
    fn as_words<const N: usize>(values: &mut [Self; N]) -> Option<&mut [u64; N]> {
        Some(words_of(values))
    }

    #[inline]
    fn as_numbers<'v>(values: &'v [Self], _: &'v mut Vec<f64>) -> &'v [f64] {
        values
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
    fn as_words<const N: usize>(values: &mut [Self; N]) -> Option<&mut [u64; N]> {
        Some(words_of(values))
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
    fn as_words<const N: usize>(_: &mut [Self; N]) -> Option<&mut [u64; N]> {
        None
    }

    #[inline]
    fn plus(self, other: Self) -> Option<Self> {
        Some(self | other)
    }
}

/// A type of which every value is one word, and every word a value.
trait Word: Copy {}
impl Word for i64 {}
impl Word for f64 {}

/// Returns values as words with the same bits.
#[inline]
fn words_of<W: Word, const N: usize>(values: &mut [W; N]) -> &mut [u64; N] {
    const { assert!(size_of::<W>() == size_of::<u64>() && align_of::<W>() == align_of::<u64>()) }
    #[expect(unsafe_code, reason = "the standard library has no safe view of other types as words")]
    // SAFETY: both types have the same size and alignment, and every pattern of bits is a value of
    // both.
    unsafe {
        &mut *values.as_mut_ptr().cast::<[u64; N]>()
    }
}

/// Returns integers as words with the same bits.
#[inline]
pub(crate) fn words_of_integers<const N: usize>(integers: &mut [i64; N]) -> &mut [u64; N] {
    words_of(integers)
}
