//! Operators that compare values by their order.
//!
//! Each has two forms: by the natural order of the type, which may be partial, and, with `_by`, by
//! a given comparison. A value that the natural order cannot compare (such as NaN) is dropped,
//! except by `clamp`, which passes it unchanged.

use std::cmp::Ordering;

use super::{And, Guard, Map, Part, Plan};
use crate::ArgumentError;
use crate::Fiber;

impl<E: Send + 'static, R: Plan<E, Out = E>> Fiber<E, R> {
    /// Passes the values greater than the bound. No state.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().above(0).below(10).trace([-1, 0, 5, 10, 12])?, [5]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn above(self, bound: E) -> Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>
    where
        E: Part + PartialOrd,
    {
        self.guard(move |value: &E| *value > bound)
    }

    /// [`above`](Self::above) by a given order.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// let late = Fiber::new().above_by("mm", |left, right| left.len().cmp(&right.len()));
    /// assert_eq!(late.trace(["z", "abc"])?, ["abc"]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn above_by<C>(
        self,
        bound: E,
        mut compare: C,
    ) -> Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>
    where
        E: Part,
        C: FnMut(&E, &E) -> Ordering + Part,
    {
        self.guard(move |value: &E| compare(value, &bound).is_gt())
    }

    /// Passes the values less than the bound. No state.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().below(5).trace([3, 5, 7])?, [3]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn below(self, bound: E) -> Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>
    where
        E: Part + PartialOrd,
    {
        self.guard(move |value: &E| *value < bound)
    }

    /// [`below`](Self::below) by a given order.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().below_by(5.0, f64::total_cmp).trace([3.0, 5.0, 7.0])?, [3.0]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn below_by<C>(
        self,
        bound: E,
        mut compare: C,
    ) -> Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>
    where
        E: Part,
        C: FnMut(&E, &E) -> Ordering + Part,
    {
        self.guard(move |value: &E| compare(value, &bound).is_lt())
    }

    /// Passes the values greater than or equal to the bound. No state.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().min(5).trace([3, 5, 7])?, [5, 7]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn min(self, bound: E) -> Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>
    where
        E: Part + PartialOrd,
    {
        self.guard(move |value: &E| *value >= bound)
    }

    /// [`min`](Self::min) by a given order.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().min_by(5.0, f64::total_cmp).trace([3.0, 5.0, 7.0])?, [5.0, 7.0]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn min_by<C>(self, bound: E, mut compare: C) -> Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>
    where
        E: Part,
        C: FnMut(&E, &E) -> Ordering + Part,
    {
        self.guard(move |value: &E| compare(value, &bound).is_ge())
    }

    /// Passes the values less than or equal to the bound. No state.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().max(5).trace([3, 5, 7])?, [3, 5]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn max(self, bound: E) -> Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>
    where
        E: Part + PartialOrd,
    {
        self.guard(move |value: &E| *value <= bound)
    }

    /// [`max`](Self::max) by a given order.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().max_by(5.0, f64::total_cmp).trace([3.0, 5.0, 7.0])?, [3.0, 5.0]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn max_by<C>(self, bound: E, mut compare: C) -> Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>
    where
        E: Part,
        C: FnMut(&E, &E) -> Ordering + Part,
    {
        self.guard(move |value: &E| compare(value, &bound).is_le())
    }

    /// Passes the values from `lower` to `upper`, both included. No state.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// assert_eq!(Fiber::new().range(3, 5)?.trace(1..=7).unwrap(), [3, 4, 5]);
    /// assert!(Fiber::new().range(5, 3).is_err());
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn range(
        self,
        lower: E,
        upper: E,
    ) -> Result<Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>, ArgumentError>
    where
        E: Part + PartialOrd,
    {
        in_order("range", lower.partial_cmp(&upper))?;
        Ok(self.guard(move |value: &E| *value >= lower && *value <= upper))
    }

    /// [`range`](Self::range) by a given order.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// let fiber = Fiber::new().range_by(3.0, 5.0, f64::total_cmp)?;
    /// assert_eq!(fiber.trace([1.0, 3.0, 7.0]).unwrap(), [3.0]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn range_by<C>(
        self,
        lower: E,
        upper: E,
        mut compare: C,
    ) -> Result<Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>, ArgumentError>
    where
        E: Part,
        C: FnMut(&E, &E) -> Ordering + Part,
    {
        in_order("range_by", Some(compare(&lower, &upper)))?;
        Ok(self.guard(move |value: &E| compare(value, &lower).is_ge() && compare(value, &upper).is_le()))
    }

    /// Drops the values from `lower` to `upper`, both included, and passes those outside. No state.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// assert_eq!(Fiber::new().deadband(3, 7)?.trace([1, 3, 5, 7, 9]).unwrap(), [1, 9]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn deadband(
        self,
        lower: E,
        upper: E,
    ) -> Result<Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>, ArgumentError>
    where
        E: Part + PartialOrd,
    {
        in_order("deadband", lower.partial_cmp(&upper))?;
        Ok(self.guard(move |value: &E| *value < lower || *value > upper))
    }

    /// [`deadband`](Self::deadband) by a given order.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// let fiber = Fiber::new().deadband_by(3.0, 5.0, f64::total_cmp)?;
    /// assert_eq!(fiber.trace([1.0, 3.0, 7.0]).unwrap(), [1.0, 7.0]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn deadband_by<C>(
        self,
        lower: E,
        upper: E,
        mut compare: C,
    ) -> Result<Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>, ArgumentError>
    where
        E: Part,
        C: FnMut(&E, &E) -> Ordering + Part,
    {
        in_order("deadband_by", Some(compare(&lower, &upper)))?;
        Ok(self.guard(move |value: &E| compare(value, &lower).is_lt() || compare(value, &upper).is_gt()))
    }

    /// Replaces a value outside `lower` to `upper` by the nearer bound. No state; drops nothing.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// assert_eq!(Fiber::new().clamp(0, 10)?.trace([-5, 5, 15]).unwrap(), [0, 5, 10]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn clamp(
        self,
        lower: E,
        upper: E,
    ) -> Result<Fiber<E, And<R, Map<impl FnMut(E) -> E + Part>>>, ArgumentError>
    where
        E: Part + PartialOrd,
    {
        in_order("clamp", lower.partial_cmp(&upper))?;
        Ok(self.replace(move |value| match value {
            value if value < lower => lower.clone(),
            value if value > upper => upper.clone(),
            value => value,
        }))
    }

    /// [`clamp`](Self::clamp) by a given order.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// let fiber = Fiber::new().clamp_by(0.0, 1.0, f64::total_cmp)?;
    /// assert_eq!(fiber.trace([-0.5, 0.5, 1.5]).unwrap(), [0.0, 0.5, 1.0]);
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn clamp_by<C>(
        self,
        lower: E,
        upper: E,
        mut compare: C,
    ) -> Result<Fiber<E, And<R, Map<impl FnMut(E) -> E + Part>>>, ArgumentError>
    where
        E: Part,
        C: FnMut(&E, &E) -> Ordering + Part,
    {
        in_order("clamp_by", Some(compare(&lower, &upper)))?;
        Ok(self.replace(move |value| match value {
            value if compare(&value, &lower).is_lt() => lower.clone(),
            value if compare(&value, &upper).is_gt() => upper.clone(),
            value => value,
        }))
    }

    /// Passes a value that is greater than all previous ones. The first one passes.
    ///
    /// State: one value. Cost: a comparison, and a copy of each value that passes.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().high().trace([3, 5, 2, 7, 6])?, [3, 5, 7]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn high(self) -> Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>
    where
        E: Part + PartialOrd,
    {
        self.guard(record(|value: &E, highest: &E| value.partial_cmp(highest)))
    }

    /// [`high`](Self::high) by a given order. The state is unchanged if the comparison panics.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().high_by(f64::total_cmp).trace([3.0, 2.0, 5.0])?, [3.0, 5.0]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn high_by<C>(self, mut compare: C) -> Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>
    where
        E: Part,
        C: FnMut(&E, &E) -> Ordering + Part,
    {
        self.guard(record(move |value: &E, highest: &E| Some(compare(value, highest))))
    }

    /// Passes a value that is less than all previous ones. The first one passes.
    ///
    /// State: one value. Cost: a comparison, and a copy of each value that passes.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().low().trace([5, 3, 7, 2])?, [5, 3, 2]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn low(self) -> Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>
    where
        E: Part + PartialOrd,
    {
        self.guard(record(|value: &E, lowest: &E| lowest.partial_cmp(value)))
    }

    /// [`low`](Self::low) by a given order. The state is unchanged if the comparison panics.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Fiber};
    /// assert_eq!(Fiber::new().low_by(f64::total_cmp).trace([3.0, 5.0, 2.0])?, [3.0, 2.0]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn low_by<C>(self, mut compare: C) -> Fiber<E, And<R, Guard<impl FnMut(&E) -> bool + Part>>>
    where
        E: Part,
        C: FnMut(&E, &E) -> Ordering + Part,
    {
        self.guard(record(move |value: &E, lowest: &E| Some(compare(lowest, value))))
    }
}

/// Returns a predicate that holds for each new record, by `compare`, and keeps it. A value that
/// cannot be compared, even with itself, is never a record.
fn record<E: Part>(
    mut compare: impl FnMut(&E, &E) -> Option<Ordering> + Part,
) -> impl FnMut(&E) -> bool + Part {
    let mut furthest: Option<E> = None;
    move |value| {
        let beyond = match &furthest {
            Some(furthest) => compare(value, furthest) == Some(Ordering::Greater),
            None => compare(value, value).is_some(),
        };
        if beyond {
            furthest = Some(value.clone());
        }
        beyond
    }
}

/// Returns an error if the lower bound is above the upper one or cannot be compared with it.
fn in_order(operation: &'static str, lower_to_upper: Option<Ordering>) -> Result<(), ArgumentError> {
    match lower_to_upper {
        None => Err(ArgumentError::new(
            operation,
            "the bounds cannot be compared; neither may be NaN or the like",
        )),
        Some(Ordering::Greater) => {
            Err(ArgumentError::new(operation, "the lower bound must not be above the upper bound"))
        }
        Some(_) => Ok(()),
    }
}

/// Code that must not compile: values without an order, and bounds of another type than the values.
/// Each one is next to a variant that differs only in that and compiles.
#[cfg(doctest)]
mod refused {
    macro_rules! refused {
        ($($name:ident: $good:literal, $values:literal $code:literal $bad:literal;)*) => {$(
            #[doc = concat!(
                "```\n#[derive(Clone, PartialEq, PartialOrd)]\nstruct Value;\n",
                "let _ = tidemark_circuit::Fiber::<Value>::new().", $good, ";\n```\n\n",
                "```compile_fail,", $code, "\n#[derive(Clone, PartialEq", $values, ")]\nstruct Value;\n",
                "let _ = tidemark_circuit::Fiber::<Value>::new().", $bad, ";\n```",
            )]
            struct $name;
        )*};
    }

    refused! {
        Above: "above(Value)", "" "E0277" "above(Value)";
        Below: "below(Value)", "" "E0277" "below(Value)";
        Clamp: "clamp(Value, Value)", "" "E0277" "clamp(Value, Value)";
        ClampMixed: "clamp(Value, Value)", ", PartialOrd" "E0308" "clamp(Value, 1)";
        Deadband: "deadband(Value, Value)", "" "E0277" "deadband(Value, Value)";
        DeadbandMixed: "deadband(Value, Value)", ", PartialOrd" "E0308" "deadband(Value, 1)";
        Max: "max(Value)", "" "E0277" "max(Value)";
        Min: "min(Value)", "" "E0277" "min(Value)";
        Range: "range(Value, Value)", "" "E0277" "range(Value, Value)";
        RangeMixed: "range(Value, Value)", ", PartialOrd" "E0308" "range(Value, 1)";
    }
}
