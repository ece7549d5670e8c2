//! The kept corpus: no input fails, none is missing, and every target accepts most of its inputs.

use std::collections::BTreeSet;
use tidemark_fuzz::{TARGETS, corpus};

#[test]
fn every_kept_input_passes_and_most_reach_the_inside() {
    for target in TARGETS {
        let kept = corpus::kept(target).expect("a corpus");
        let accepted = kept.iter().filter(|(_, input)| (target.run)(input)).count();
        assert!(accepted * 2 > kept.len(), "{}: {accepted} of {} are accepted", target.name, kept.len());
    }
}

#[test]
fn every_corpus_has_what_make_corpus_makes() {
    for target in TARGETS {
        let kept = corpus::kept(target).expect("a corpus");
        // Only names are compared: the bytes depend on the order of a set's members.
        let kept: BTreeSet<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
        let made: BTreeSet<&str> = (target.corpus)().into_iter().map(|(name, _)| name).collect();
        let missing: Vec<_> = made.difference(&kept).collect();
        assert!(missing.is_empty(), "{} lacks {missing:?}: run `tidemark-fuzz make-corpus`", target.name);
    }
}
