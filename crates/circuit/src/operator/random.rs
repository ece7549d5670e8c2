//! Random operators, whose draws are determined by a seed.

use super::{Plan, Stage, Then};
use crate::ArgumentError;
use crate::Fault;
use crate::Fiber;
use crate::Site;
use crate::random::Generator;

impl<E: Send + 'static, R: Plan<E, Out = E>> Fiber<E, R> {
    /// Passes each value with this probability, between 0 and 1.
    ///
    /// The seed of the [`Site`] and the position of the operator in the chain determine the draws,
    /// so runs are reproducible. State: one number. Cost: a few nanoseconds.
    ///
    /// ```
    /// # use tidemark_circuit::{ArgumentError, Fiber};
    /// let coin = Fiber::<u32>::new().chance(0.5)?;
    /// let heads = coin.trace(0..1000).unwrap().len();
    /// assert!((400..600).contains(&heads));
    /// # Ok::<(), ArgumentError>(())
    /// ```
    pub fn chance(self, probability: f64) -> Result<Fiber<E, Then<R, Chance>>, ArgumentError> {
        // Written so that NaN is refused as well.
        if !(0.0..=1.0).contains(&probability) {
            return Err(ArgumentError::new("chance", format!("{probability} is not between 0 and 1")));
        }
        Ok(self.with(Chance { probability }))
    }
}

/// The plan of [`Fiber::chance`].
#[derive(Clone)]
pub struct Chance {
    probability: f64,
}

impl<I> Plan<I> for Chance {
    type Out = I;
    type Stage = Chances;

    fn start(&self, site: &Site<'_>) -> Result<Chances, Fault> {
        Ok(Chances { probability: self.probability, generator: Generator::new(site.seed) })
    }
}

/// The stage of [`Fiber::chance`].
pub struct Chances {
    probability: f64,
    generator: Generator,
}

impl<I> Stage<I> for Chances {
    type Out = I;

    #[inline]
    fn apply(&mut self, value: I) -> Option<I> {
        // A double has 53 bits of precision; the draw is always less than 1.
        let draw = (self.generator.next() >> 11) as f64 / (1_u64 << 53) as f64;
        (draw < self.probability).then_some(value)
    }
}
