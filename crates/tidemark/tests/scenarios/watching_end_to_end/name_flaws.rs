//! The judge of named subscriptions finds planted flaws, as in [`super::flaws`].

use super::errand::{Errand, Manner};
use super::flaws::{HEAD, Scene, flawless, gone_to, read, received_after};
use super::judge::{Allowance, Evidence};
use super::names::{Held, effect};
use super::received::{Begin, End, Name, Received, Refusal, Stretch};
use tidemark_engine::record::{encode_acknowledgement, encode_command, kind, put_bytes, put_varint};
use tidemark_engine::{command, record};
use tidemark_log::{Lsn, Record};

/// The records after those of the scene. The first one begins the name at the record of its query;
/// each pair is one transaction, with the positions to which the name moves and the LSNs whose work
/// is done. An empty pair is the end of the name.
type Moves = &'static [(&'static [u64], &'static [u64])];

const NAME: &str = "name";

/// The position was moved for the first answer, and for each of the first three emissions.
const ONE_BY_ONE: Moves = &[(&[2], &[2]), (&[3], &[3]), (&[5], &[5]), (&[6], &[6])];

fn held(manner: Manner, from: u64, seq: u64, received: &[Received]) -> Held {
    let value = (seq == 0 && from == 2).then(|| b"$1\r\n0\r\n".to_vec());
    let begin = Begin::Answer { lsn: from, seq: Some(seq), value };
    let name = Name { query: 0, base: 0 };
    Held {
        errand: Errand { name: NAME.to_owned(), read: read(), manner },
        stretch: Stretch { received: received.to_vec(), ..Stretch::new(name, begin) },
        at_least: 0,
        refusal: None,
        has_lost_name: false,
    }
}

/// Returns two consumers: one that received three emissions, and one that continued after the
/// second of them to the end.
fn both(manner: Manner) -> Vec<Held> {
    let mut second = held(manner, 5, 2, &received_after(2));
    second.stretch.end = End::Complete { head: HEAD };
    vec![held(manner, 2, 0, &received_after(0)[..3]), second]
}

/// As [`both`], but the second consumer continued after all that the first received.
fn one_behind_the_other(manner: Manner) -> Vec<Held> {
    let mut held_by = both(manner);
    held_by[1] = held(manner, 6, 3, &received_after(3));
    held_by
}

fn verdict(moves: Moves, held: &[Held]) -> Result<(), String> {
    verdict_with(moves, held, &gone_to(0))
}

fn verdict_with(moves: Moves, held: &[Held], allowance: &Allowance) -> Result<(), String> {
    let scene = Scene::new();
    let mut named = Vec::new();
    put_bytes(&mut named, NAME.as_bytes());
    [2, 0, 2].into_iter().for_each(|number| put_varint(&mut named, number));
    // At least once, and the first answer is not acknowledged.
    named.extend([0, 0]);
    let rpush = command::resolve(&[b"RPUSH", b"done", b"x"]).expect("a command").id;
    let moved = moves.iter().map(|(positions, effects)| {
        if positions.is_empty() && effects.is_empty() {
            let mut unnamed = Vec::new();
            put_bytes(&mut unnamed, NAME.as_bytes());
            return (kind::UNNAMED, unnamed);
        }
        let mut commands = Vec::new();
        for lsn in *effects {
            let mut done = Vec::new();
            encode_command(&mut done, 5, rpush, &[b"done", effect(NAME, *lsn).as_bytes()]);
            commands.push(done);
        }
        for lsn in *positions {
            let mut moved = Vec::new();
            encode_acknowledgement(&mut moved, NAME.as_bytes(), Lsn(*lsn));
            commands.push(moved);
        }
        let mut transaction = Vec::new();
        commands.iter().for_each(|command| record::put_bytes(&mut transaction, command));
        (kind::TRANSACTION, transaction)
    });
    let behind: Vec<_> = std::iter::once((kind::NAMED, named)).chain(moved).collect();
    let evidence = Evidence::of(&[flawless()], (held, &[]), |see| {
        scene.show(HEAD, see);
        for (lsn, (kind, payload)) in (HEAD + 1..).zip(&behind) {
            see(&Record { lsn: Lsn(lsn), time_us: 0, kind: *kind, payload });
        }
    })?;
    evidence.judge_names(held, allowance)
}

#[track_caller]
fn finds(said: &str, moves: Moves, held: &[Held]) {
    let fault = verdict(moves, held).expect_err("the flaw is found");
    assert!(fault.contains(said), "{fault}");
}

#[test]
fn what_is_as_it_must_be_has_no_fault() {
    assert_eq!(verdict(ONE_BY_ONE, &both(Manner::AtLeast)), Ok(()));
    assert_eq!(verdict(ONE_BY_ONE, &both(Manner::Exactly)), Ok(()));
    let all: Moves = &[(&[6], &[]), (&[9], &[]), (&[10], &[])];
    assert_eq!(verdict(all, &one_behind_the_other(Manner::AtMost)), Ok(()));
}

#[test]
fn acknowledged_but_undelivered_is_found() {
    let mut held_by = both(Manner::AtLeast);
    held_by.remove(0);
    finds("3 is acknowledged, and was delivered to no subscriber", ONE_BY_ONE, &held_by);
    held_by[0] = held(Manner::AtLeast, 2, 0, &received_after(0)[..2]);
    finds("6 is acknowledged, and was delivered to no subscriber", ONE_BY_ONE, &held_by);
}

#[test]
fn a_place_that_was_lost_is_found() {
    let mut held_by = both(Manner::AtLeast);
    held_by[1].at_least = 6;
    finds("it went on behind 5, and 6 was acknowledged", ONE_BY_ONE, &held_by);
    finds("it went on behind 5, where its position never was", &[(&[3], &[]), (&[6], &[])], &held_by);
    let mut held_by = both(Manner::AtLeast);
    held_by[1].stretch.received.remove(0);
    finds("LSN 7 was delivered where 6 comes next", ONE_BY_ONE, &held_by);
    let mut held_by = both(Manner::AtLeast);
    held_by[1].stretch.received.pop();
    finds("up to 10 there is nothing", ONE_BY_ONE, &held_by);
    let mut held_by = both(Manner::AtLeast);
    held_by[1].stretch.begin = Begin::Answer { lsn: 5, seq: Some(2), value: Some(b"$1\r\n2\r\n".to_vec()) };
    finds("an answer was given where it went on behind 5", ONE_BY_ONE, &held_by);
}

#[test]
fn delivered_twice_or_before_the_claim_is_found() {
    let all: Moves = &[(&[5], &[]), (&[6], &[]), (&[9], &[]), (&[10], &[])];
    finds("6 was delivered twice", all, &both(Manner::AtMost));
    let less: Moves = &[(&[6], &[]), (&[9], &[])];
    finds("10 was delivered, and the position is 9", less, &one_behind_the_other(Manner::AtMost));
}

#[test]
fn what_is_done_with_behind_the_end_of_a_name_is_found() {
    let ends_last: Moves = &[(&[3], &[]), (&[5], &[]), (&[6], &[]), (&[], &[])];
    assert_eq!(verdict(ends_last, &both(Manner::AtLeast)), Ok(()));
    let ends_before: Moves = &[(&[3], &[]), (&[5], &[]), (&[], &[]), (&[6], &[])];
    finds("it has ended at 14, and its position was moved at 15", ends_before, &both(Manner::AtLeast));
}

#[test]
fn neither_claimed_nor_delivered_is_found() {
    let all: Moves = &[(&[6], &[]), (&[9], &[]), (&[10], &[])];
    let mut held_by = one_behind_the_other(Manner::AtMost);
    held_by[1].stretch.received.remove(0);
    finds("7 was neither delivered nor claimed", all, &held_by);
    let mut held_by = one_behind_the_other(Manner::AtMost);
    held_by[1].stretch.received.drain(..2);
    assert_eq!(verdict(all, &held_by), Ok(()), "another connection had claimed up to 9");
}

#[test]
fn what_is_done_twice_or_not_or_apart_from_its_acknowledgement_is_found() {
    let held_by = [held(Manner::Exactly, 2, 0, &received_after(0))];
    let flawed: [Moves; 6] = [
        &[(&[2], &[2]), (&[3], &[3]), (&[5], &[5, 5]), (&[6], &[6])],
        &[(&[2], &[2]), (&[3], &[3]), (&[5], &[]), (&[6], &[6])],
        &[(&[2], &[2]), (&[3], &[3]), (&[], &[5]), (&[6], &[6])],
        &[(&[2], &[2]), (&[3], &[3]), (&[6], &[6]), (&[5], &[5])],
        &[(&[3], &[3]), (&[5], &[5]), (&[6], &[6])],
        &[(&[2], &[2]), (&[3], &[3]), (&[5], &[5]), (&[6], &[6]), (&[], &[7])],
    ];
    for moves in flawed {
        finds("it was to be for", moves, &held_by);
    }
    let together: Moves = &[(&[2, 3], &[2, 3]), (&[5, 6], &[5, 6])];
    assert_eq!(verdict(together, &held_by), Ok(()), "several may be done together");
}

#[test]
fn a_name_that_is_refused_without_need_is_found() {
    let mut held_by = both(Manner::AtLeast);
    let refusal = Refusal { behind: 5, word: "STALE_SEQUENCE".to_owned(), lsn: 7, highest: u64::MAX };
    held_by[1].refusal = Some(refusal);
    assert_eq!(verdict_with(ONE_BY_ONE, &held_by, &gone_to(7)), Ok(()));
    finds("which must be there", ONE_BY_ONE, &held_by);
}
