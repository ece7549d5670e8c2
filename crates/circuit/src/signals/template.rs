//! Vocabularies whose signs are those of another one: what is said of what was said.

use super::Sign;
use crate::operator::flow::Flow;
use crate::operator::{Plan, Stage};

/// A vocabulary without signs of its own: a module with its dimensions and an instrument for the signs of any vocabulary, and with a
/// flow if there is one that finds them.
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
                /// In what respect it can be said.
                Dimension { $($(#[$respect])* $Dimension,)+ }
            }

            impl crate::signals::Dimension for Dimension {
                const ORDERED: bool = $ordered;
            }

            /// A sign of another vocabulary, and in what respect it is said.
            pub type Signal<S> = crate::signals::Signal<S, Dimension>;

            /// What says it. Clones say it of the same subject.
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $Instrument<S> {
                pipe: Pipe<Signal<S>>,
            }

            /// One instrument per name, each over the conduit's pipe of that name.
            pub fn pool<S: Sign>(conduit: &Conduit<Signal<S>>) -> Pool<$Instrument<S>> {
                conduit.derive(|pipe| $Instrument::new(pipe.clone()))
            }

            impl<S: Sign> $Instrument<S> {
                /// An instrument over this pipe.
                pub fn new(pipe: Pipe<Signal<S>>) -> Self {
                    Self { pipe }
                }

                /// Of whom it says it.
                pub fn subject(&self) -> &Subject {
                    self.pipe.subject()
                }

                /// Says what is given.
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
    /// How far those agree who observe a subject.
    surveys Survey ordered true {
        /// They do not.
        Divided divided;
        /// Most of them do.
        Majority majority;
        /// All of them do.
        Unanimous unanimous;
    }
}

template! {
    /// How a sign comes back in what is said of a subject.
    cycles Cycle ordered false {
        /// It was not said before.
        Single single;
        /// It was the last thing said.
        Repeat repeat;
        /// It was said before, but not last.
        Return returned;
    }
    and recurrences
}

/// Emits each sign with how it comes back. State: which signs were said, and which was the last; nothing is forgotten.
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

/// How many signs a vocabulary may have.
const SIGNS_MAX: usize = 256;

/// The stage of [`cycles::flow`].
#[derive(Clone)]
struct Recurrences<S> {
    /// A bit for each sign that was said, by its index.
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
