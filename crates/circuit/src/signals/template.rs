//! Vocabularies that qualify the signs of other vocabularies.

use super::Sign;
use crate::operator::flow::Flow;
use crate::operator::{Plan, Stage};

/// Defines a vocabulary without signs of its own: a module with its dimensions, an instrument for
/// the signs of any vocabulary, and optionally a flow that derives the dimensions.
macro_rules! template {
    (
        $(#[$about:meta])*
        $plural:ident $Instrument:ident ordered $ordered:literal {
            $($(#[$respect:meta])* $Dimension:ident $method:ident;)+
        }
        $(and $flow:ident)?
    ) => {
        $(#[$about])*
        pub mod $plural {
            use crate::signals::Sign;
            use crate::{Conduit, Pipe, Pool, Subject};

            $(pub use crate::signals::template::$flow as flow;)?

            symbols! {
                /// Qualifiers of a sign.
                Dimension { $($(#[$respect])* $Dimension,)+ }
            }

            impl crate::signals::Dimension for Dimension {
                const ORDERED: bool = $ordered;
            }

            /// A sign of another vocabulary with its qualifier.
            pub type Signal<S> = crate::signals::Signal<S, Dimension>;

            /// An instrument, which emits signals of a subject. Clones have the same subject.
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $Instrument<S> {
                pipe: Pipe<Signal<S>>,
            }

            /// Returns a pool with one instrument per name, each over the conduit's pipe of that
            /// name.
            pub fn pool<S: Sign>(conduit: &Conduit<Signal<S>>) -> Pool<$Instrument<S>> {
                conduit.derive(|pipe| $Instrument::new(pipe.clone()))
            }

            impl<S: Sign> $Instrument<S> {
                /// Creates an instrument over this pipe.
                pub fn new(pipe: Pipe<Signal<S>>) -> Self {
                    Self { pipe }
                }

                /// Returns the subject that the signals are about.
                pub fn subject(&self) -> &Subject {
                    self.pipe.subject()
                }

                /// Emits the signal.
                pub fn signal(&self, sign: S, dimension: Dimension) {
                    self.pipe.emit(Signal { sign, dimension });
                }

                $(
                    $(#[$respect])*
                    pub fn $method(&self, sign: S) {
                        self.signal(sign, Dimension::$Dimension);
                    }
                )+
            }

            #[cfg(test)]
            #[test]
            fn every_method_says_its_dimension_of_any_sign() {
                use crate::signals::{Observation, Symbol, statuses, vocabulary};

                let said = vocabulary::said_with(pool::<statuses::Sign>, |instrument| {
                    for &sign in statuses::Sign::ALL {
                        $(instrument.$method(sign);)+
                    }
                });
                assert_eq!(said, Signal::all().collect::<Vec<_>>());
                vocabulary::check_symbols::<Dimension>();
                assert_eq!(size_of::<Signal<statuses::Sign>>(), 2);
            }
        }
    };
}

template! {
    /// Degree of agreement between the observers of a subject.
    surveys Survey ordered true {
        /// They disagree.
        Divided divided;
        /// Most of them agree.
        Majority majority;
        /// All of them agree.
        Unanimous unanimous;
    }
}

template! {
    /// Recurrence of a sign of a subject.
    cycles Cycle ordered false {
        /// The sign is new.
        Single single;
        /// The sign is the same as the previous one.
        Repeat repeat;
        /// The sign occurred before, but not last.
        Return returned;
    }
    and recurrences
}

/// Returns a flow that emits each sign with its recurrence. State: the set of signs so far, and the
/// last one.
///
/// ```
/// use tidemark_circuit::signals::cycles;
/// use tidemark_circuit::signals::resources::Sign::{Deny, Grant};
///
/// let said = cycles::flow().trace([Grant, Grant, Deny, Grant])?;
/// let said: Vec<_> = said.iter().map(ToString::to_string).collect();
/// assert_eq!(said, ["Grant Single", "Grant Repeat", "Deny Single", "Grant Return"]);
/// # Ok::<(), tidemark_circuit::Fault>(())
/// ```
pub fn recurrences<S: Sign>() -> Flow<S, cycles::Signal<S>, impl Plan<S, Out = cycles::Signal<S>>> {
    const { assert!(S::ALL.len() <= SIGNS_MAX, "a sign takes one byte") };
    Flow::new().then(Recurrences { said: [0; SIGNS_MAX / 64], last: None })
}

/// Maximum number of signs in a vocabulary.
const SIGNS_MAX: usize = 256;

#[derive(Clone)]
struct Recurrences<S> {
    /// A bit for each sign that has occurred, by its index.
    said: [u64; SIGNS_MAX / 64],
    last: Option<S>,
}

impl<S: Sign> Stage<S> for Recurrences<S> {
    type Out = cycles::Signal<S>;

    #[inline]
    fn apply(&mut self, sign: S) -> Option<cycles::Signal<S>> {
        let (word, bit) = (sign.index() / 64, 1 << (sign.index() % 64));
        let dimension = if self.said[word] & bit == 0 {
            cycles::Dimension::Single
        } else if self.last == Some(sign) {
            cycles::Dimension::Repeat
        } else {
            cycles::Dimension::Return
        };
        self.said[word] |= bit;
        self.last = Some(sign);
        Some(cycles::Signal { sign, dimension })
    }
}
