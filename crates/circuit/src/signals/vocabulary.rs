//! Macros that turn the table of a vocabulary into its enums, its instrument and its pool.

/// Defines a set of symbols.
macro_rules! symbols {
    ($(#[$about:meta])* $Set:ident { $($(#[$meaning:meta])* $Word:ident,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $Set {
            $($(#[$meaning])* $Word,)+
        }

        impl $crate::signals::Symbol for $Set {
            const ALL: &'static [Self] = &[$(Self::$Word,)+];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$Word => stringify!($Word),)+
                }
            }

            fn index(self) -> usize {
                self as usize
            }
        }

        impl std::fmt::Display for $Set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::signals::Symbol::name(*self))
            }
        }
    };
}

/// Defines the signs of a vocabulary, with their kinds, statuses, parts of an episode and verdicts.
macro_rules! signs {
    (
        $plural:ident { $($(#[$meaning:meta])* $Word:ident $kind:ident $(=> $status:ident)?,)+ }
        $(episodes { $($Part:ident: $($InPart:ident)+;)+ })?
        $(verdicts { $($Verdict:ident: $($WithVerdict:ident)+;)+ })?
    ) => {
        symbols! {
            /// The signs of this vocabulary.
            Sign { $($(#[$meaning])* $Word,)+ }
        }

        impl $crate::signals::Sign for Sign {
            const VOCABULARY: &'static str = stringify!($plural);

            fn kind(self) -> $crate::signals::Kind {
                match self {
                    $(Self::$Word => $crate::signals::Kind::$kind,)+
                }
            }

            fn status(self) -> Option<$crate::signals::statuses::Sign> {
                match self {
                    $(Self::$Word => None$(.or(Some($crate::signals::statuses::Sign::$status)))?,)+
                }
            }

            $(
                fn outcome(self) -> Option<$crate::signals::outcomes::Sign> {
                    match self {
                        $($(Self::$WithVerdict)|+ => Some($crate::signals::outcomes::Sign::$Verdict),)+
                        #[allow(unreachable_patterns, reason = "some vocabularies have verdicts only")]
                        _ => None,
                    }
                }
            )?
        }

        $(
            impl $crate::signals::Episodic for Sign {
                fn operation(self) -> $crate::signals::operations::Sign {
                    match self {
                        $($(Self::$InPart)|+ => $crate::signals::operations::Sign::$Part,)+
                    }
                }
            }
        )?

        impl $crate::signals::Observation for Sign {
            type Sign = Self;

            const COUNT: usize = <Self as $crate::signals::Symbol>::ALL.len();

            fn all() -> impl Iterator<Item = Self> {
                <Self as $crate::signals::Symbol>::ALL.iter().copied()
            }

            fn ordinal(self) -> usize {
                $crate::signals::Symbol::index(self)
            }

            fn sign(self) -> Self {
                self
            }

            fn dimension(self) -> Option<&'static str> {
                None
            }
        }
    };
}

/// Defines the instrument of a vocabulary, and a pool of instruments by name.
macro_rules! instrument {
    ($Instrument:ident $Observation:ty) => {
        /// An instrument, which emits observations of a subject. Clones have the same subject.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Instrument {
            pipe: $crate::Pipe<$Observation>,
        }

        /// Returns a pool with one instrument per name, each over the conduit's pipe of that name.
        pub fn pool(conduit: &$crate::Conduit<$Observation>) -> $crate::Pool<$Instrument> {
            conduit.derive(|pipe| $Instrument::new(pipe.clone()))
        }

        impl $Instrument {
            /// Creates an instrument over this pipe.
            pub fn new(pipe: $crate::Pipe<$Observation>) -> Self {
                Self { pipe }
            }

            /// Returns the subject that the observations are about.
            pub fn subject(&self) -> &$crate::Subject {
                self.pipe.subject()
            }
        }
    };
}

/// Defines the dimensions and the signals of a vocabulary, if it has dimensions.
macro_rules! dimensions {
    () => {};
    (ordered $ordered:literal { $($(#[$respect:meta])* $Dimension:ident;)+ }) => {
        symbols! {
            /// Qualifiers of the signs.
            Dimension { $($(#[$respect])* $Dimension,)+ }
        }

        impl $crate::signals::Dimension for Dimension {
            const ORDERED: bool = $ordered;
        }

        /// A sign with its qualifier.
        pub type Signal = $crate::signals::Signal<Sign, Dimension>;
    };
}

/// Defines the methods of an instrument: for signs, or for signals if the vocabulary has
/// dimensions.
macro_rules! methods {
    ($Instrument:ident { $($(#[$meaning:meta])* $Word:ident $method:ident;)+ }) => {
        instrument! { $Instrument Sign }

        impl $Instrument {
            /// Emits the sign.
            pub fn sign(&self, sign: Sign) {
                self.pipe.emit(sign);
            }

            $(
                $(#[$meaning])*
                pub fn $method(&self) {
                    self.sign(Sign::$Word);
                }
            )+
        }

        #[cfg(test)]
        #[test]
        fn every_method_says_its_sign() {
            use $crate::signals::Symbol;

            let said = $crate::signals::vocabulary::said_with(pool, |instrument| {
                $(instrument.$method();)+
                Sign::ALL.iter().for_each(|&sign| instrument.sign(sign));
            });
            assert_eq!(said, [Sign::ALL, Sign::ALL].concat());
            $crate::signals::vocabulary::check_symbols::<Sign>();
            assert_eq!(size_of::<Sign>(), 1);
        }
    };
    ($Instrument:ident { $($(#[$meaning:meta])* $Word:ident $method:ident;)+ } ordered $ordered:literal) => {
        instrument! { $Instrument Signal }

        impl $Instrument {
            /// Emits the signal.
            pub fn signal(&self, sign: Sign, dimension: Dimension) {
                self.pipe.emit(Signal { sign, dimension });
            }

            $(
                $(#[$meaning])*
                pub fn $method(&self, dimension: Dimension) {
                    self.signal(Sign::$Word, dimension);
                }
            )+
        }

        #[cfg(test)]
        #[test]
        fn every_method_says_its_sign_in_every_dimension() {
            use $crate::signals::Symbol;

            let said = $crate::signals::vocabulary::said_with(pool, |instrument| {
                $(Dimension::ALL.iter().for_each(|&dimension| instrument.$method(dimension));)+
            });
            assert_eq!(said, <Signal as $crate::signals::Observation>::all().collect::<Vec<_>>());
            assert_eq!(said.len(), Sign::ALL.len() * Dimension::ALL.len());
            $crate::signals::vocabulary::check_symbols::<Sign>();
            $crate::signals::vocabulary::check_symbols::<Dimension>();
            assert_eq!(size_of::<Signal>(), 2);
        }
    };
}

/// Defines a vocabulary: a module with its signs and its instrument, and its dimensions if it has
/// some.
///
/// Each line is a sign, its method, its kind, and the status that it implies, if any. These
/// sections may follow: the dimensions; the parts of an episode with their signs, which must cover
/// all signs; the verdicts with their signs.
macro_rules! vocabulary {
    (
        $(#[$about:meta])*
        $plural:ident $Instrument:ident {
            $($(#[$meaning:meta])* $Word:ident $method:ident $kind:ident $(=> $status:ident)?;)+
        }
        $(ordered $ordered:literal { $($(#[$respect:meta])* $Dimension:ident;)+ })?
        $(episodes { $($Part:ident: $($InPart:ident)+;)+ })?
        $(verdicts { $($Verdict:ident: $($WithVerdict:ident)+;)+ })?
    ) => {
        $(#[$about])*
        pub mod $plural {
            signs! {
                $plural { $($(#[$meaning])* $Word $kind $(=> $status)?,)+ }
                $(episodes { $($Part: $($InPart)+;)+ })?
                $(verdicts { $($Verdict: $($WithVerdict)+;)+ })?
            }
            dimensions! { $(ordered $ordered { $($(#[$respect])* $Dimension;)+ })? }
            methods! { $Instrument { $($(#[$meaning])* $Word $method;)+ } $(ordered $ordered)? }
        }
    };
}

/// Returns the emissions of an instrument of a new conduit while `scenario` uses it.
#[cfg(test)]
pub(super) fn said_with<O: super::Observation, I: Send + Sync + 'static>(
    pool: fn(&crate::Conduit<O>) -> crate::Pool<I>,
    scenario: impl FnOnce(&I),
) -> Vec<O> {
    said(|conduit| {
        let pool = pool(conduit);
        scenario(pool.get(crate::name!("subject")).expect("no factory fails"));
    })
}

/// Returns the emissions of a new conduit's pipes while `scenario` runs.
#[cfg(test)]
fn said<O: super::Observation>(scenario: impl FnOnce(&crate::Conduit<O>)) -> Vec<O> {
    let circuit = crate::Circuit::builder().run_by(crate::RunBy::Waiters).build().expect("valid");
    let conduit = circuit.conduit::<O>().expect("open");
    let (sender, receiver) = std::sync::mpsc::channel();
    let subscriber =
        circuit.subscriber(move |_: &crate::Subject, registrar: &mut crate::Registrar<'_, O>| {
            let sender = sender.clone();
            registrar.receptor(move |observation| sender.send(observation).expect("is listened to"));
        });
    conduit.subscribe(&subscriber.expect("open")).expect("open");
    scenario(&conduit);
    circuit.settle().expect("outside");
    receiver.try_iter().collect()
}

/// Checks the invariants of every set of symbols.
#[cfg(test)]
pub(super) fn check_symbols<S: super::Symbol>() {
    for (index, symbol) in S::ALL.iter().enumerate() {
        assert_eq!(symbol.index(), index);
        assert_eq!(symbol.to_string(), symbol.name());
        assert_eq!(S::ALL.iter().filter(|other| other.name() == symbol.name()).count(), 1);
    }
}
