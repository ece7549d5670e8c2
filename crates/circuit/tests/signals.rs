//! The vocabularies as a whole.
#![cfg(feature = "signals")]

use tidemark_circuit::signals::*;

/// Calls a macro with every vocabulary that has dimensions, or every one that has none.
macro_rules! with_dimensions {
    ($call:ident) => {
        [
            $call!(statuses),
            $call!(situations),
            $call!(systems),
            $call!(services),
            $call!(transactions),
            $call!(timers),
            $call!(leases),
            $call!(exchanges),
            $call!(messages),
            $call!(flows),
            $call!(guards),
            $call!(probes),
            $call!(sensors),
            $call!(evals),
            $call!(agents),
            $call!(members),
        ]
    };
}

macro_rules! every {
    ($call:ident) => {
        [
            $call!(statuses),
            $call!(situations),
            $call!(operations),
            $call!(outcomes),
            $call!(systems),
            $call!(trends),
            $call!(tasks),
            $call!(services),
            $call!(processes),
            $call!(transactions),
            $call!(timers),
            $call!(changes),
            $call!(locks),
            $call!(latches),
            $call!(atomics),
            $call!(resources),
            $call!(leases),
            $call!(pools),
            $call!(exchanges),
            $call!(queues),
            $call!(stacks),
            $call!(caches),
            $call!(pipelines),
            $call!(messages),
            $call!(flows),
            $call!(routers),
            $call!(valves),
            $call!(breakers),
            $call!(guards),
            $call!(counters),
            $call!(gauges),
            $call!(probes),
            $call!(sensors),
            $call!(logs),
            $call!(evals),
            $call!(agents),
            $call!(actors),
            $call!(members),
        ]
    };
}

#[test]
fn there_are_as_many_words_as_serventis_has() {
    macro_rules! signs {
        ($vocabulary:ident) => {
            $vocabulary::Sign::ALL.len()
        };
    }
    macro_rules! dimensions {
        ($vocabulary:ident) => {
            $vocabulary::Dimension::ALL.len()
        };
    }
    assert_eq!(every!(signs).iter().sum::<usize>(), 237);
    let of_templates = surveys::Dimension::ALL.len() + cycles::Dimension::ALL.len();
    assert_eq!(with_dimensions!(dimensions).iter().sum::<usize>() + of_templates, 51);
}

#[test]
fn every_vocabulary_is_called_as_its_module() {
    macro_rules! is_called {
        ($vocabulary:ident) => {
            assert_eq!($vocabulary::Sign::VOCABULARY, stringify!($vocabulary))
        };
    }
    every!(is_called);
}

#[test]
fn only_assessments_of_degree_are_ordered() {
    macro_rules! ordered {
        ($vocabulary:ident) => {
            <$vocabulary::Dimension as Dimension>::ORDERED.then_some(stringify!($vocabulary))
        };
    }
    let ordered: Vec<_> = with_dimensions!(ordered).into_iter().flatten().collect();
    assert_eq!(ordered, ["statuses", "situations"]);
    const { assert!(<surveys::Dimension as Dimension>::ORDERED && !<cycles::Dimension as Dimension>::ORDERED) };
    assert!(statuses::Dimension::Tentative < statuses::Dimension::Confirmed);
}

#[test]
fn acts_and_outcomes_are_told_apart() {
    assert_eq!(caches::Sign::Lookup.kind(), Kind::Operation);
    assert_eq!(caches::Sign::Miss.kind(), Kind::Outcome);
    assert_eq!(breakers::Sign::HalfOpen.kind(), Kind::Outcome);
}

#[test]
fn signs_are_lifted_to_a_status_and_that_to_a_situation() {
    use situations::Sign::{Critical, Normal, Warning};
    use statuses::Sign as Status;

    let lifted = |sign: breakers::Sign| (sign.status(), sign.situation());
    assert_eq!(lifted(breakers::Sign::Close), (Some(Status::Stable), Some(Normal)));
    assert_eq!(lifted(breakers::Sign::Trip), (Some(Status::Degraded), Some(Warning)));
    assert_eq!(lifted(breakers::Sign::Open), (Some(Status::Defective), Some(Critical)));
    assert_eq!(lifted(breakers::Sign::Probe), (None, None));

    let urgencies: Vec<_> = Status::ALL.iter().map(|status| status.urgency()).collect();
    assert_eq!(urgencies, [Normal, Normal, Warning, Warning, Warning, Critical, Critical]);
    assert!(Status::ALL.iter().all(|&status| status.status() == Some(status)));
}

#[test]
fn signals_say_what_they_are() {
    let signal = services::Signal { sign: services::Sign::Fail, dimension: services::Dimension::Caller };
    assert_eq!(signal.to_string(), "Fail Caller");
    assert_eq!((signal.sign(), Observation::dimension(signal)), (services::Sign::Fail, Some("Caller")));
    assert_eq!(Observation::dimension(breakers::Sign::HalfOpen), None);
    assert_eq!(breakers::Sign::HalfOpen.to_string(), "HalfOpen");
}
