//! Recovery of the original's working directory from every state in which the original can leave
//! it.

mod simulated;

use proptest::prelude::*;
use simulated::{Format, HEADER_BYTES, Original, header, left, open_file, recover, snapshot_json};
use std::fmt::Write as _;
use std::io;
use tidemark_pool::original::{
    Basis, Cut, Damage, Given, Limits, LogPosition, Note, OriginalItem, Placement, ReadError, Recovered,
    Recovery, Snapshot, Unreadable,
};
use tidemark_pool::{Catalogue, CatalogueError, Item};

const GOLD: usize = 0;
const SILVER: usize = 1;
const ROCK: usize = 2;

fn configuration() -> Vec<OriginalItem> {
    vec![
        OriginalItem::new("gold", 100, 20),
        OriginalItem::new("silver", 5, 30),
        OriginalItem::new("rock", -1, 40),
    ]
}

fn started() -> Original {
    Original::start(configuration(), Format::StringLine)
}

fn notes(recovered: &Recovered) -> String {
    recovered.report.notes.iter().flat_map(|note| [note.to_string(), "\n".into()]).collect()
}

fn has_note(recovered: &Recovered, wanted: &Note) -> bool {
    recovered.report.notes.contains(wanted)
}

#[test]
fn after_a_stop_in_order_everything_is_there() {
    for format in [Format::StringLine, Format::Json] {
        let mut original = Original::start(configuration(), format);
        original.draws(GOLD, 7);
        original.draws(SILVER, 6);
        original.draws(ROCK, 3);
        original.update(GOLD, 500, 25);
        original.draws(GOLD, 1);
        original.stop();
        let recovered = original.recover();
        assert_eq!(recovered.recommended, Some(Basis::Snapshot));
        assert_eq!(left(recovered.from_snapshot.as_ref()), original.stock);
        assert_eq!(left(recovered.from_history.as_ref()), original.stock);
        assert_eq!(recovered.last_request, 17);
        let report = &recovered.report;
        assert_eq!((report.draws, report.failed_draws, report.updates, report.forgotten), (16, 1, 1, 0));
        assert_eq!(notes(&recovered), "");
        let catalogue = recovered.recommended_stocks().expect("stocks").catalogue().expect("a catalogue");
        let items =
            vec![Item::limited("gold", 25, 499), Item::limited("silver", 30, 0), Item::unlimited("rock", 40)];
        assert_eq!(catalogue, Catalogue::new(items).expect("a catalogue"));
    }
}

#[test]
fn after_a_kill_the_header_says_nothing_and_everything_is_there() {
    let mut original = started();
    original.draws(GOLD, 40);
    original.draw(GOLD);
    original.kill();
    let recovered = original.recover_without_configuration();
    assert_eq!(left(recovered.from_snapshot.as_ref())[GOLD].quantity, 60);
    assert_eq!(recovered.report.forgotten, 40);
    assert_eq!(recovered.report.files[0].records_beyond_header, 41);
    assert_eq!(recovered.last_request, 40);
}

#[test]
fn after_a_kill_and_a_restart_the_history_knows_what_the_snapshot_has_forgotten() {
    let mut original = started();
    original.draws(GOLD, 30);
    original.draw(GOLD);
    original.rotate();
    original.draws(SILVER, 5);
    original.kill();
    original.start_anew();
    for recovered in [original.recover(), original.recover_without_configuration()] {
        assert_eq!(recovered.recommended, Some(Basis::History));
        assert_eq!(left(recovered.from_snapshot.as_ref()), configuration());
        assert_eq!(left(recovered.from_history.as_ref()), original.truth());
        assert_eq!((recovered.report.forgotten, recovered.report.draws), (36, 36));
        assert_eq!(recovered.last_request, 36);
        assert!(has_note(&recovered, &Note::SnapshotForgets));
        let setback = recovered.report.setbacks[0].to_string();
        let expected = "wal.002 at byte 256: the number of draws goes back from 36 to 1: the original began anew and forgot 36 draws before";
        assert_eq!(setback, expected);
    }
    // The original continues, rotates and stops cleanly: its snapshot is no longer the initial one.
    original.draws(GOLD, 10);
    original.draws(ROCK, 2);
    original.rotate();
    original.draws(GOLD, 4);
    original.stop();
    let recovered = original.recover();
    assert_eq!(recovered.recommended, Some(Basis::History));
    assert_eq!(left(recovered.from_snapshot.as_ref()), original.stock);
    assert_eq!(left(recovered.from_history.as_ref()), original.truth());
    assert_eq!(recovered.report.forgotten, 36);
    // Without the configuration, recovery can compare only the counts.
    let recovered = original.recover_without_configuration();
    assert_eq!(recovered.recommended, Some(Basis::Snapshot));
    assert!(has_note(&recovered, &Note::SnapshotForgets));
    assert_eq!(recovered.report.drawn, [("gold".into(), 45), ("silver".into(), 5), ("rock".into(), 2)]);
}

#[test]
fn what_was_awarded_more_often_than_it_was_there_is_said() {
    let mut original = Original::start(vec![OriginalItem::new("car", 1, 1)], Format::Json);
    original.draws(0, 1);
    for _ in 0..2 {
        original.kill();
        original.start_anew();
        original.draws(0, 1);
    }
    let recovered = original.recover();
    let stocks = recovered.recommended_stocks().expect("stocks");
    assert_eq!(recovered.recommended, Some(Basis::History));
    assert_eq!(stocks.to_string(), "car: 0 left, weight 1, 3 drawn of 1\n");
    assert_eq!(stocks.over_awarded().count(), 1);
    assert_eq!(recovered.report.setbacks_total, 2);
}

#[test]
fn draws_that_a_rotation_carries_over_are_counted_once() {
    let mut original = started();
    original.draws(GOLD, 30);
    (0..5).for_each(|_| original.draw(GOLD));
    original.rotate();
    let recovered = original.recover();
    assert_eq!(left(recovered.from_snapshot.as_ref())[GOLD].quantity, 65);
    assert_eq!(left(recovered.from_history.as_ref())[GOLD].quantity, 65);
    assert!(has_note(&recovered, &Note::CarriedOver { draws: 5 }), "{}", notes(&recovered));
    original.draws(GOLD, 1);
    original.stop();
    let recovered = original.recover_without_configuration();
    assert_eq!(left(recovered.from_snapshot.as_ref())[GOLD].quantity, 64);
    assert_eq!(recovered.recommended, Some(Basis::Snapshot));
}

#[test]
fn draws_that_two_rotations_carry_over_are_counted_once() {
    // The batch after a rotation does not fit either, so the same draws are carried over twice.
    let closed = |number, records: &str| {
        let mut bytes = header(number, Some(records.len() as u64));
        bytes.extend_from_slice(records.as_bytes());
        (number, bytes)
    };
    let draws = |requests: std::ops::RangeInclusive<u64>| {
        requests.fold(String::from("3,tmp/snapshot.json\n"), |mut records, request| {
            writeln!(records, "1,{request},gold,0,true").expect("memory");
            records
        })
    };
    let mut original = started();
    original.files = vec![
        closed(0, &draws(1..=5)),
        closed(1, &draws(6..=8)),
        closed(2, &draws(6..=9)),
        closed(3, &draws(6..=11)),
    ];
    original.snapshot = snapshot_json(11, &[OriginalItem::new("gold", 95, 20)]);
    let recovered = original.recover();
    assert_eq!(recovered.recommended, Some(Basis::Snapshot));
    assert_eq!(left(recovered.from_snapshot.as_ref())[GOLD].quantity, 89);
    assert_eq!(left(recovered.from_history.as_ref())[GOLD].quantity, 89);
    let report = &recovered.report;
    assert_eq!((report.draws, report.repeated, report.setbacks_total, report.forgotten), (11, 7, 0, 0));
    // A start from the beginning looks the same, except that the file before it was not closed.
    original.files[0].1[..HEADER_BYTES].copy_from_slice(&header(0, None));
    original.files[1] = (1, open_file(1, &draws(1..=5)));
    original.files.truncate(2);
    original.snapshot = snapshot_json(0, &configuration());
    let recovered = original.recover();
    assert_eq!((recovered.report.draws, recovered.report.repeated), (10, 0));
    assert_eq!(left(recovered.recommended_stocks())[GOLD].quantity, 90);
}

#[test]
fn a_snapshot_by_hand_is_not_counted_twice() {
    let mut original = started();
    original.draws(GOLD, 50);
    original.snapshot();
    original.draws(GOLD, 10);
    original.stop();
    for recovered in [original.recover(), original.recover_without_configuration()] {
        assert_eq!(left(recovered.from_snapshot.as_ref())[GOLD].quantity, 40);
        assert_eq!(notes(&recovered), "");
    }
}

#[test]
fn a_snapshot_whose_record_was_not_written_is_the_newest() {
    // A snapshot by hand, and a kill before the next flush.
    let mut original = started();
    original.draws(GOLD, 50);
    original.snapshot();
    original.kill();
    let recovered = original.recover();
    assert_eq!(recovered.report.placement, Some(Placement::BehindAll));
    assert_eq!(left(recovered.from_snapshot.as_ref())[GOLD].quantity, 50);
    assert!(has_note(&recovered, &Note::SnapshotIsNewest { draws: 50 }));
    // A snapshot by a rotation, and a kill during it. No file has the five draws to be carried
    // over.
    let mut original = started();
    original.draws(GOLD, 50);
    (0..5).for_each(|_| original.draw(GOLD));
    let mut rotated = original.clone();
    rotated.rotate();
    original.snapshot = rotated.snapshot;
    original.files.push((1, header(1, None)));
    let recovered = original.recover_without_configuration();
    assert_eq!(recovered.report.placement, Some(Placement::BehindAll));
    assert_eq!(left(recovered.from_snapshot.as_ref())[GOLD].quantity, 50);
    assert_eq!(recovered.last_request, 55);
}

#[test]
fn a_file_may_have_both_formats_and_the_next_one_another() {
    let mut original = started();
    original.draws(GOLD, 3);
    original.format = Format::Json;
    original.draws(SILVER, 2);
    original.rotate();
    original.draws(GOLD, 4);
    original.kill();
    let recovered = original.recover();
    assert_eq!(left(recovered.from_history.as_ref()), original.truth());
    assert_eq!(left(recovered.from_snapshot.as_ref()), original.truth());
    let lines: Vec<String> = recovered.report.files.iter().map(ToString::to_string).collect();
    let expected = [
        "wal.000: string_line and json, 444 bytes, 6 records (5 draws, 0 failed draws, 0 updates, 1 snapshots)",
        "wal.001: json, 526 bytes, 5 records (4 draws, 0 failed draws, 0 updates, 1 snapshots), 5 of them behind the length in the \
         header",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_mapped_file_ends_in_zeros() {
    let mut original = started();
    original.draws(GOLD, 3);
    original.kill();
    let bytes = &mut original.files[0].1;
    let written = bytes.len() as u64;
    bytes.resize(10_000, 0);
    let recovered = original.recover();
    let file = &recovered.report.files[0];
    assert_eq!((file.bytes, file.zero_bytes, file.cut, file.unreadable), (10_000, 10_000 - written, None, 0));
    assert_eq!(left(recovered.from_snapshot.as_ref()), original.truth());
}

#[test]
fn files_without_records_are_no_hindrance() {
    let mut original = started();
    original.draws(GOLD, 3);
    original.kill();
    original.files.push((1, Vec::new()));
    original.files.push((2, vec![0; 4096]));
    original.files.push((3, header(3, None)));
    original.files.push((4, header(4, None)[..100].to_vec()));
    let recovered = original.recover();
    assert_eq!(left(recovered.from_snapshot.as_ref()), original.truth());
    assert_eq!(recovered.report.files[4].cut, Some(Cut { offset: 0, bytes: 100 }));
}

#[test]
fn a_file_cut_off_at_any_byte_gives_the_records_before() {
    for format in [Format::StringLine, Format::Json] {
        let mut original = Original::start(configuration(), format);
        original.draws(GOLD, 3);
        original.update(SILVER, 50, 3);
        original.draws(SILVER, 9);
        let whole = original.files[0].1.clone();
        for zeros in [0, 30] {
            for length in 0..=whole.len() {
                let mut bytes = whole[..length].to_vec();
                let lines = bytes.iter().skip(HEADER_BYTES).filter(|&&byte| byte == b'\n').count() as u64;
                bytes.resize(length + zeros, 0);
                let given = Given { configuration: Some(configuration()), ..Given::default() };
                if length < HEADER_BYTES && zeros > 0 {
                    // No crash leaves this file, but recovery must not fail on it.
                    let mut recovery = Recovery::new(given).expect("few items");
                    let read = recovery.read(0, &bytes[..]);
                    // Zeros alone are an empty file; one to three bytes of the magic are a wrong
                    // magic.
                    assert_eq!(read.is_ok(), length == 0 || length >= 4, "{length}: {read:?}");
                    continue;
                }
                let recovered = recover(given, &[(0, bytes)]);
                let file = &recovered.report.files[0];
                assert_eq!((file.records, file.unreadable), (lines, 0), "{length}");
                let at =
                    whole[..length].iter().rposition(|&byte| byte == b'\n').map_or(HEADER_BYTES, |at| at + 1);
                let at = if length < HEADER_BYTES { 0 } else { at };
                let cut = (length > at).then_some(Cut { offset: at as u64, bytes: (length - at) as u64 });
                assert_eq!(file.cut, cut, "{length}");
                let drawn: u64 = recovered.report.drawn.iter().map(|(_, drawn)| drawn).sum();
                assert_eq!(drawn, recovered.report.draws);
                assert_eq!(recovered.last_request, drawn);
            }
        }
    }
}

#[test]
fn a_flipped_bit_does_not_change_what_was_drawn_without_being_noticed() {
    for format in [Format::StringLine, Format::Json] {
        let mut original = Original::start(configuration(), format);
        original.draws(GOLD, 3);
        original.draws(SILVER, 6);
        original.draws(ROCK, 1);
        let (whole, truth) = (original.files[0].1.clone(), original.recover().report.drawn);
        let snapshot = Snapshot::parse(original.snapshot.as_bytes()).ok();
        let given = Given { snapshot, configuration: Some(configuration()), ..Given::default() };
        for bit in 8 * HEADER_BYTES..8 * whole.len() {
            original.files[0].1[bit / 8] ^= 1 << (bit % 8);
            let recovered = recover(given.clone(), &original.files);
            original.files[0].1[bit / 8] = whole[bit / 8];
            let report = &recovered.report;
            let unknown = recovered.from_history.as_ref().is_some_and(|stocks| !stocks.unknown.is_empty());
            let missing = report.notes.iter().any(|note| matches!(note, Note::MissingDraws { .. }));
            let cut = report.files[0].cut.is_some();
            let noticed = report.damages_total > 0 || report.setbacks_total > 0 || unknown || missing || cut;
            assert!(noticed || report.drawn == truth, "bit {bit}: {:?}", report.drawn);
        }
    }
}

#[test]
fn damage_in_the_middle_is_located_and_what_follows_is_read() {
    let records = "3,snapshot.json\n1,1,gold,0,true\n1,2,go\0\0\0\0\0\x001,3,gold,0,true\nnonsense\n1,4,gold,0,true\n\
                   1,5,gold,0,true+1,6,gold,0,true\n1,7,gold,0,true\n1,90,gold,0,true\n1,9,gold,0,true\n";
    let given = Given { configuration: Some(configuration()), ..Given::default() };
    let recovered = recover(given, &[(0, open_file(0, records))]);
    let damage = |text: &str, reason| {
        let offset = (HEADER_BYTES + records.find(text).expect("the text")) as u64;
        Damage { place: LogPosition { file: 0, offset }, reason }
    };
    let expected = [
        damage("1,2,go", Unreadable::BreaksOff),
        damage("nonsense", Unreadable::UnknownKind),
        damage("1,5,", Unreadable::JoinedLines),
        damage("1,90,", Unreadable::OutOfOrder),
    ];
    assert_eq!(recovered.report.damages, expected);
    assert_eq!((recovered.report.draws, recovered.last_request), (6, 9));
    assert!(has_note(&recovered, &Note::MissingDraws { draws: 3 }), "{}", notes(&recovered));
    assert_eq!(
        expected[3].to_string(),
        "wal.000 at byte 389: the number of the draw does not fit between its neighbours"
    );
}

#[test]
fn a_changed_snapshot_is_used_only_if_it_is_asked_for() {
    let mut original = started();
    original.draws(GOLD, 10);
    original.rotate();
    original.stop();
    original.snapshot = original.snapshot.replace("\"quantity\":90", "\"quantity\":99999");
    let recovered = original.recover();
    assert_eq!((recovered.recommended, recovered.from_snapshot.as_ref()), (Some(Basis::History), None));
    assert_eq!(left(recovered.from_history.as_ref()), original.truth());
    assert!(notes(&recovered).starts_with("the snapshot was changed or is damaged"));
    let recovered = original.recover_without_configuration();
    assert_eq!((recovered.recommended, recovered.recommended_stocks()), (None, None));
    assert!(has_note(&recovered, &Note::NoCatalogue));
    assert_eq!(recovered.report.drawn, [("gold".into(), 10)]);
    let snapshot = Snapshot::parse(original.snapshot.as_bytes()).ok();
    let given = Given { snapshot, accept_changed_snapshot: true, ..Given::default() };
    let recovered = recover(given, &original.files);
    assert_eq!(left(recovered.from_snapshot.as_ref())[GOLD].quantity, 99_999);
}

#[test]
fn draws_that_came_back_after_a_restart_are_counted_once_each() {
    // A stop at 20 and a kill at 30. The restart reads up to 20 and appends after 30, numbering
    // from 21.
    let mut original = started();
    original.draws(GOLD, 20);
    original.stop();
    original.draws(GOLD, 10);
    original.kill();
    assert_eq!(original.recover().report.forgotten, 10);
    original.request = 20;
    original.draws(GOLD, 5);
    original.kill();
    let recovered = original.recover();
    assert_eq!(left(recovered.from_snapshot.as_ref())[GOLD].quantity, 65);
    assert_eq!(left(recovered.from_history.as_ref())[GOLD].quantity, 65);
    assert_eq!((recovered.last_request, recovered.report.forgotten), (30, 15));
    let setback = recovered.report.setbacks[0];
    assert_eq!((setback.from, setback.to, setback.after_snapshot), (30, 21, false));
    // Then a rotation writes a snapshot without the ten draws.
    original.stock[GOLD].quantity = 75;
    original.rotate();
    let recovered = original.recover();
    assert_eq!(recovered.recommended, Some(Basis::History));
    assert_eq!(left(recovered.from_snapshot.as_ref())[GOLD].quantity, 75);
    assert_eq!(left(recovered.from_history.as_ref())[GOLD].quantity, 65);
}

#[test]
fn what_a_restart_has_written_over_is_located_and_the_rest_is_read() {
    // A mapped file, a stop at 20 and a kill at 30. The restart overwrites what follows 20, up to
    // the middle of a record.
    let mut original = started();
    original.draws(GOLD, 20);
    original.stop();
    let length = original.files[0].1.len();
    original.draws(GOLD, 10);
    let lost = original.files[0].1.split_off(length);
    original.request = 20;
    original.draws(SILVER, 2);
    let end = original.files[0].1.len();
    original.files[0].1.extend_from_slice(&lost[end - length..]);
    let recovered = original.recover();
    let place = LogPosition { file: 0, offset: end as u64 };
    assert_eq!(recovered.report.damages, [Damage { place, reason: Unreadable::UnknownKind }]);
    assert_eq!(recovered.report.drawn, [("gold".into(), 27), ("silver".into(), 2)]);
    assert_eq!(left(recovered.recommended_stocks())[GOLD].quantity, 73);
}

#[test]
fn a_start_that_is_killed_before_its_first_record_is_a_start_anew() {
    let mut original = started();
    original.draws(GOLD, 30);
    original.draw(GOLD);
    original.rotate();
    original.draws(GOLD, 5);
    let mut again = original.clone();
    again.start_anew();
    // The file exists and the snapshot is overwritten; nothing else is written.
    let disk = &again.disks[again.disks.len() - 2];
    original.snapshot = disk.snapshot.clone();
    original.files = disk.files.clone();
    for recovered in [original.recover(), original.recover_without_configuration()] {
        assert_eq!(recovered.recommended, Some(Basis::History));
        assert_eq!(left(recovered.recommended_stocks()), original.truth());
        assert_eq!(recovered.report.forgotten, 36);
    }
}

#[test]
fn draws_that_were_never_written_are_in_the_snapshot_alone() {
    // Batches larger than a file: each rotation begins with a snapshot, and no file has the draws.
    let mut original = started();
    for _ in 0..4 {
        original.request += 10;
        original.stock[GOLD].quantity -= 10;
        original.rotate();
    }
    original.draws(GOLD, 1);
    original.stop();
    let recovered = original.recover();
    assert_eq!(recovered.recommended, Some(Basis::Snapshot));
    assert_eq!(left(recovered.recommended_stocks()), original.stock);
    let expected = "40 numbers of draws are jumped over: the history does not have these draws\n\
                    snapshot and history give different amounts for 1 items\n";
    assert_eq!(notes(&recovered), expected);
}

#[test]
fn without_a_record_of_the_snapshot_numbers_decide() {
    let records = "1,9,gold,0,true\n2,silver,8,8\n1,10,gold,0,true\n1,11,gold,0,true\n2,silver,9,9\n";
    let json = snapshot_json(10, &configuration());
    let given = Given { snapshot: Snapshot::parse(json.as_bytes()).ok(), ..Given::default() };
    let recovered = recover(given, &[(4, open_file(4, records))]);
    assert_eq!(recovered.report.placement, Some(Placement::ByNumber));
    let left = left(recovered.from_snapshot.as_ref());
    assert_eq!((left[GOLD].quantity, left[SILVER].quantity, left[SILVER].weight), (99, 9, 9));
}

#[test]
fn the_snapshot_alone_is_enough_when_there_are_no_files() {
    let json = snapshot_json(10, &configuration());
    let given = Given { snapshot: Snapshot::parse(json.as_bytes()).ok(), ..Given::default() };
    let recovered = recover(given, &[]);
    assert_eq!(left(recovered.recommended_stocks()), configuration());
    assert_eq!(recovered.last_request, 10);
}

#[test]
fn what_a_catalogue_must_not_have_is_said() {
    let items = vec![
        OriginalItem::new("gold", 10, 20),
        OriginalItem::new("debt", -7, -3),
        OriginalItem::new("gold", 99, 1),
        OriginalItem::new("", 1, 1),
    ];
    let given = Given { configuration: Some(items), ..Given::default() };
    let recovered = recover(given, &[(0, open_file(0, "1,1,bronze,0,true\n2,bronze,5,5\n"))]);
    let expected = "item \"gold\" is in a catalogue more than once: only the first of them is kept\n\
                    item \"debt\" has the weight -3: it becomes 0, so the item is not drawn\n\
                    item \"debt\" has the quantity -7: it becomes 0\n";
    assert_eq!(notes(&recovered), expected);
    let stocks = recovered.recommended_stocks().expect("stocks");
    assert_eq!(stocks.items()[..2], [Item::limited("gold", 20, 10), Item::limited("debt", 0, 0)]);
    assert_eq!(stocks.unknown, [("bronze".into(), 1)]);
    assert_eq!(stocks.catalogue(), Err(CatalogueError::EmptyId { number: 3 }));
}

#[test]
fn what_is_no_file_of_the_original_is_refused_and_the_rest_is_read() {
    let mut recovery = Recovery::new(Given::default()).expect("few items");
    let refusal = |result: Result<(), ReadError>| result.expect_err("a refusal").to_string();
    recovery.read(3, &open_file(3, "1,1,gold,0,true\n")[..]).expect("a file");
    assert_eq!(
        refusal(recovery.read(4, &b"1,2,gold,0,true\n"[..])),
        "wal.004 is no log of the original: it begins with 0x2c322c31 instead of 0x746e776c"
    );
    assert_eq!(
        refusal(recovery.read(4, &b""[..])),
        "wal.004 was given after wal.004: give the files in the order of their numbers"
    );
    let header = header(6, None);
    let broken = io::Read::chain(&header[..], Broken);
    assert_eq!(refusal(recovery.read(6, broken)), "wal.006 cannot be read: broken");
    recovery.read(7, &open_file(7, "1,2,gold,0,true\n")[..]).expect("a file");
    let recovered = recovery.finish();
    assert_eq!(recovered.report.drawn, [("gold".into(), 2)]);
    assert!(has_note(&recovered, &Note::MissingFiles { after: 4, before: 6 }));
    assert!(recovered.report.to_string().contains("wal.004: no log of the original, not read\n"));
}

#[test]
fn a_damaged_header_hides_no_records() {
    let records =
        "1,1,gold,0,true\n2,gold,5,5\n{\"type\":1,\"request_id\":2,\"item_id\":\"gold\",\"success\":true}\n";
    let whole = open_file(0, records);
    let read = |bytes: &[u8]| {
        let mut recovery = Recovery::new(Given::default()).expect("few items");
        let result = recovery.read(0, bytes).map_err(|error| error.to_string());
        (result, recovery.finish().report)
    };
    let (sound, expected) = read(&whole);
    assert_eq!((sound, expected.has_gaps()), (Ok(()), false));
    for byte in 0..4 {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1;
        let magic = u32::from_le_bytes(damaged[..4].try_into().expect("four bytes"));
        let (result, report) = read(&damaged);
        assert_eq!(result, Ok(()));
        assert_eq!(
            (report.draws, &report.drawn, report.has_gaps()),
            (expected.draws, &expected.drawn, false)
        );
        assert!(report.notes.contains(&Note::DamagedHeader { file: 0, magic }), "{report}");
    }
    let mut blank = whole.clone();
    blank[..256].fill(0);
    assert_eq!(read(&blank).1.drawn, expected.drawn);

    // Data before the first record counts as unreadable, and is a gap.
    let mut shifted = whole;
    shifted[0] ^= 1;
    shifted.splice(256..256, *b"what is this\n");
    let (result, report) = read(&shifted);
    assert_eq!((result, report.files[0].unreadable, report.has_gaps()), (Ok(()), 1, true));
    let (result, report) = read(&[b"no record\n".repeat(99), vec![0; 99]].concat());
    assert_eq!((result.is_err(), report.files[0].foreign, report.has_gaps()), (true, true, true));
}

struct Broken;

impl io::Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("broken"))
    }
}

#[test]
fn what_can_grow_has_a_limit() {
    let long = format!("1,1,{},0,true\n1,5,gold,0,true\n", "x".repeat(100));
    let mut records = long.repeat(2);
    for number in 0..50 {
        writeln!(records, "1,3,item {number},0,true").expect("memory");
    }
    let limits = Limits { line_bytes: 99, listed: 3, unknown_items: 10 };
    let recovered = recover(Given { limits, ..Given::default() }, &[(0, open_file(0, &records))]);
    let report = &recovered.report;
    assert_eq!(report.damages[0].reason, Unreadable::TooLong);
    assert_eq!((report.damages.len(), report.damages_total), (2, 2));
    assert_eq!((report.setbacks.len(), report.setbacks_total), (3, 51));
    assert_eq!(report.drawn.len(), 10);
    assert!(has_note(&recovered, &Note::UnknownItems { draws: 41 }), "{}", notes(&recovered));
}

/// An event in the life of the original.
#[derive(Debug, Clone)]
enum Event {
    Draw(usize),
    Flush,
    Rotate,
    Snapshot,
    Update(usize, i64),
    ChangeFormat,
    KillAndStart,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => (0..3_usize).prop_map(Event::Draw),
        5 => Just(Event::Flush),
        2 => Just(Event::Rotate),
        1 => Just(Event::Snapshot),
        2 => (0..2_usize, 0..50_i64).prop_map(|(item, quantity)| Event::Update(item, quantity)),
        1 => Just(Event::ChangeFormat),
        1 => Just(Event::KillAndStart),
    ]
}

fn happen(original: &mut Original, event: &Event) {
    match *event {
        Event::Draw(item) => original.draw(item),
        Event::Flush => original.flush(),
        Event::Rotate => original.rotate(),
        Event::Snapshot => original.snapshot(),
        Event::Update(item, quantity) => original.update(item, quantity, 9),
        Event::ChangeFormat => {
            original.format = if original.format == Format::Json { Format::StringLine } else { Format::Json }
        }
        // The original flushes first: what it never wrote to disk cannot be recovered.
        Event::KillAndStart => {
            original.flush();
            original.start_anew();
        }
    }
}

proptest! {
    /// Without a crash, both the snapshot and the history give the stock that the original has in
    /// memory.
    #[test]
    fn without_a_crash_both_ways_give_what_the_original_had(events in prop::collection::vec(event(), 0..120)) {
        let mut original = started();
        for event in events.iter().filter(|event| !matches!(event, Event::KillAndStart)) {
            happen(&mut original, event);
        }
        original.flush();
        let recovered = original.recover();
        prop_assert_eq!(left(recovered.from_snapshot.as_ref()), original.stock.clone());
        prop_assert_eq!(left(recovered.from_history.as_ref()), original.stock);
        prop_assert_eq!(recovered.last_request, original.request);
    }

    /// After any crash, the recommended stock accounts for every written draw, and no item is in
    /// stock again.
    #[test]
    fn with_crashes_the_recommended_stock_has_every_draw(events in prop::collection::vec(event(), 0..120)) {
        let mut original = started();
        for event in events.iter().filter(|event| !matches!(event, Event::Update(..))) {
            happen(&mut original, event);
        }
        original.flush();
        let recovered = original.recover();
        prop_assert_eq!(left(recovered.recommended_stocks()), original.truth());
        let drawn: std::collections::BTreeMap<_, _> = recovered.report.drawn.iter().cloned().collect();
        prop_assert_eq!(drawn, original.awarded);
    }

    #[test]
    fn any_bytes_are_survived(
        files in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 0..4),
        json in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let given = Given { snapshot: Snapshot::parse(&json).ok(), ..Given::default() };
        let mut recovery = Recovery::new(given).expect("few items");
        for (number, bytes) in (0..).zip(&files) {
            let bare = recovery.read(number, &bytes[..]);
            prop_assert!(matches!(bare, Ok(()) | Err(ReadError::Magic { .. })), "{:?}", bare);
            let begun = recovery.read(number, &[&header(number, None), &bytes[..]].concat()[..]);
            prop_assert!(matches!(begun, Ok(()) | Err(ReadError::Order { .. })), "{:?}", begun);
        }
        let recovered = recovery.finish();
        let report = &recovered.report;
        let written: u64 = report.files.iter().map(|file| file.draws + file.failed_draws).sum();
        prop_assert_eq!(report.draws + report.failed_draws + report.repeated, written);
        prop_assert!(!report.to_string().is_empty());
    }

    /// Files with bytes overwritten, removed and inserted: recovery does not panic, and its counts
    /// are consistent.
    #[test]
    fn damaged_files_are_survived(
        events in prop::collection::vec(event(), 0..60),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 1..8),
        limits in (1..100_usize, 0..5_usize, 0..3_usize),
    ) {
        let mut original = started();
        events.iter().for_each(|event| happen(&mut original, event));
        original.flush();
        let mut json = original.snapshot.clone().into_bytes();
        for (index, byte, kind) in damages {
            let file = index.index(original.files.len());
            for bytes in [&mut original.files[file].1, &mut json] {
                let at = index.index(bytes.len());
                match kind {
                    0 => bytes[at] = byte,
                    1 => { bytes.remove(at); }
                    _ => bytes.insert(at, byte),
                }
            }
        }
        let (line_bytes, listed, unknown_items) = limits;
        let limits = Limits { line_bytes, listed, unknown_items };
        let given = Given {
            snapshot: Snapshot::parse(&json).ok(),
            accept_changed_snapshot: true,
            configuration: Some(configuration()),
            limits,
        };
        let mut recovery = Recovery::new(given).expect("few items");
        for (number, bytes) in &original.files {
            let read = recovery.read(*number, &bytes[..]);
            prop_assert!(matches!(read, Ok(()) | Err(ReadError::Magic { .. })), "{:?}", read);
        }
        let recovered = recovery.finish();
        let files = &recovered.report.files;
        let written: u64 = files.iter().map(|file| file.draws + file.failed_draws).sum();
        let report = &recovered.report;
        prop_assert_eq!(report.draws + report.failed_draws + report.repeated, written);
        prop_assert!(recovered.report.damages.len() <= listed && recovered.report.setbacks.len() <= listed);
        prop_assert!(recovered.report.forgotten <= recovered.report.draws);
        let stocks = recovered.from_history.as_ref().expect("stocks");
        prop_assert!(stocks.items.iter().all(|item| item.beyond <= item.drawn));
        prop_assert!(!recovered.report.to_string().is_empty());
    }
}

proptest! {
    // Each case runs a recovery after each of its steps.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After a kill at any step, even during the overwrite of a snapshot, the recommended stock is
    /// that of the written records.
    #[test]
    fn a_kill_at_any_step_loses_nothing_that_was_written(events in prop::collection::vec(event(), 0..30)) {
        let mut original = started();
        events.iter().for_each(|event| happen(&mut original, event));
        for disk in &original.disks {
            let snapshot = Snapshot::parse(disk.snapshot.as_bytes()).ok();
            let given = Given { snapshot, configuration: Some(configuration()), ..Given::default() };
            let recovered = recover(given, &disk.files);
            prop_assert_eq!(left(recovered.recommended_stocks()), disk.written.clone(), "{}", recovered.report);
        }
    }
}
