//! Series seen through functions: of values, in types ([`function`]), or of whole series, chosen while
//! the program runs ([`view`]).

mod error;
mod expression;
mod function;
mod operators;
mod transform;
mod view;

pub use error::ViewError;
pub use expression::{Expression, ExpressionError};
pub use function::{Function, Lens, ReadRuns};
pub use transform::{Difference, Gap, Span, Transform};
pub use view::{Points, View};
