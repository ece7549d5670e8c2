//! Lenses with labels: filters find them as they find series, and watches of labels follow them.

use crate::rules::run;
use crate::series::{expect, wire};
use crate::sliding_ranges::wake;
use crate::support;
use crate::support::commands::Random;
use crate::support::{Client, START_US, engine, replayed, run_on_threads, transaction};
use crate::watched_ranges::{Folding, emitted};
use crate::watching::{Cut, answers, watch};
use tidemark_engine::watch::WriteBudget;
use tidemark_engine::{Engine, Protocol};

/// A series and two lenses over it, all with labels.
fn labelled() -> Engine {
    let engine = engine();
    run(
        &engine,
        &[
            "TS.CREATE oven LABELS room kitchen unit f",
            "TS.MADD oven 1 32 oven 2 212",
            "LENS.CREATE celsius oven fahrenheit_to_celsius LABELS room kitchen unit c",
            "LENS.CREATE kelvin celsius celsius_to_kelvin labels room kitchen unit k",
        ],
    );
    engine
}

#[test]
fn filters_find_lenses_by_their_labels() {
    let engine = labelled();
    expect(
        &engine,
        &[
            ("TS.QUERYINDEX room=kitchen", "*3 $celsius $kelvin $oven"),
            ("TS.QUERYINDEX room=kitchen unit!=f", "*2 $celsius $kelvin"),
            ("TS.QUERYINDEX unit=~c|k", "*2 $celsius $kelvin"),
            ("TS.QUERYLABELS VALUES unit", "*3 $c $f $k"),
            ("TS.QUERYLABELS LABELS FILTER unit=c", "*2 $room $unit"),
            ("TS.MGET SELECTED_LABELS unit FILTER unit=c", "*1 *3 $celsius *1 *2 $unit $c *2 :2 +100"),
            ("TS.MGET LATEST FILTER unit=(c,f)", "*2 *3 $celsius *0 *2 :2 +100 *3 $oven *0 *2 :2 +212"),
            ("TS.MRANGE - + FILTER unit=c", "*1 *3 $celsius *0 *2 *2 :1 +0 *2 :2 +100"),
            ("TS.MREVRANGE - + COUNT 1 FILTER unit=k", "*1 *3 $kelvin *0 *1 *2 :2 +373.15"),
            (
                "TS.MRANGE - + AGGREGATION avg 10 FILTER room=kitchen GROUPBY room REDUCE max",
                "*1 *3 $room=kitchen *0 *1 *2 :0 +323.15",
            ),
            ("TS.MRANGE - + EXCLUDEEMPTY FILTER unit=c unit!=k", "*1 *3 $celsius *0 *2 *2 :1 +0 *2 :2 +100"),
        ],
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn the_index_has_the_labels_of_lenses_however_they_come_move_and_go() {
    let engine = labelled();
    let found = |filter: &str| Client::new(&engine).run(&format!("TS.QUERYINDEX {filter}"));
    for (line, filter, answer) in [
        ("RENAME celsius z", "unit=c", "*1 $z"),
        ("COPY z y", "unit=c", "*2 $y $z"),
        ("LENS.COMPOSE x z", "unit=c", "*2 $y $z"),
        ("LENS.CREATE w z LABELS unit c", "unit=c", "*3 $w $y $z"),
        ("LENS.DROP w", "unit=c", "*2 $y $z"),
        ("SET y string", "unit=c", "*1 $z"),
        ("TS.CREATE y2 LABELS unit c", "unit=c", "*2 $y2 $z"),
        ("RENAME kelvin y2", "unit=c", "*1 $z"),
        ("PERSIST z", "unit=k", "*1 $y2"),
        ("MOVE z 1", "unit=c", "*0"),
        ("SWAPDB 0 1", "unit=c", "*1 $z"),
        ("FLUSHDB", "unit=c", "*0"),
        ("SWAPDB 0 1", "room=kitchen", "*2 $oven $y2"),
        ("DEL y2 oven", "room=kitchen", "*0"),
    ] {
        run(&engine, &[line]);
        assert_eq!(found(filter), wire(answer), "after {line}");
        let replica = replayed(&engine);
        assert_eq!(replica.digest(), engine.digest(), "after {line}");
        let again = Client::new(&replica).run(&format!("TS.QUERYINDEX {filter}"));
        assert_eq!(again, wire(answer), "after {line}, from the log");
    }
}

#[test]
fn labels_of_a_lens_stand_behind_its_transforms() {
    let engine = engine();
    let refused = "-ERR LENS: LABELS needs names and values in turn, none of them empty, and values without \
                   parentheses and commas";
    expect(
        &engine,
        &[
            ("TS.ADD a 1 1", ":1"),
            ("TS.ADD labels 1 2", ":1"),
            ("LENS.CREATE l a + labels ASOF 5 LABELS asof asof labels labels", "+OK"),
            ("TS.GET l", "*2 :1 +3"),
            ("LENS.LIST SOURCE labels", "*1 $l"),
            ("TS.QUERYINDEX labels=labels", "*1 $l"),
            ("LENS.CREATE m a LABELS", refused),
            ("LENS.CREATE m a LABELS l", refused),
            ("LENS.CREATE m a abs LABELS l v x", refused),
            ("LENS.CREATE m a LABELS l (v)", refused),
            ("EXISTS m", ":0"),
        ],
    );
    assert_eq!(
        Client::new(&engine).run("LENS.INFO l"),
        "*8 +source $1 a +unit +ms +labels *2 *2 $4 asof $4 asof *2 $6 labels $6 labels +transforms *1 *4 \
         +transform $15 + labels ASOF 5 +reads $54 the point, and the other key's newest, at most 5 older"
    );
}

#[test]
fn a_lens_that_a_filter_finds_and_that_sees_nothing_is_named() {
    let engine = labelled();
    run(&engine, &["TS.ADD other 1 1 LABELS room kitchen", "DEL oven"]);
    let missing = "-ERR LENS: 'celsius': there is no 'oven' for the lens to see";
    expect(
        &engine,
        &[
            ("TS.QUERYINDEX unit=c", "*1 $celsius"),
            ("TS.MGET FILTER room=kitchen", missing),
            ("TS.MRANGE - + FILTER room=kitchen", missing),
            ("TS.MRANGE - + FILTER room=kitchen GROUPBY room REDUCE sum", missing),
            ("TS.MRANGE -5m now FILTER unit=c", missing),
            ("TS.MRANGE - + FILTER room=kitchen unit=", "*1 *3 $other *0 *1 *2 :1 +1"),
            ("TS.ADD oven 1 1 UNIT s", ":1"),
            (
                "TS.MRANGE -5m now FILTER unit=c",
                "-ERR TSDB: a time relative to now needs series of several keys to have the unit ms; give a number",
            ),
        ],
    );
}

#[test]
fn a_watched_filter_sees_lenses() {
    let engine = labelled();
    let query = watch(&engine, "TS.MGET FILTER unit=c");
    for (line, expected) in [
        ("TS.ADD oven 3 392", Some("%1 $celsius *2 %0 *2 :3 ,200")),
        ("TS.ADD other 3 392", None),
        ("RENAME celsius other:celsius", Some("%1 $other:celsius *2 %0 *2 :3 ,200")),
        (
            "LENS.CREATE copper other LABELS unit c",
            Some("%2 $copper *2 %0 *2 :3 ,392 $other:celsius *2 %0 *2 :3 ,200"),
        ),
        ("LENS.DROP other:celsius", Some("%1 $copper *2 %0 *2 :3 ,392")),
        ("DEL copper", Some("%0")),
    ] {
        let before = answers(&query).len();
        run(&engine, &[line]);
        let emitted = answers(&query);
        assert_eq!(emitted.get(before).cloned(), expected.map(wire), "{line}");
    }
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

/// How many reads a command evaluates.
fn evaluated(engine: &Engine, line: &str) -> u64 {
    let (before, _) = engine.evaluation_figures();
    let answer = Client::new(engine).run(line);
    assert!(!answer.starts_with('-'), "{line}: {answer}");
    engine.evaluation_figures().0 - before
}

#[test]
fn a_watched_range_of_labels_follows_a_lens_until_it_leaves() {
    let engine = engine();
    run(&engine, &["TS.ADD a 1 1 LABELS room hall", "TS.ADD source 1 10"]);
    let range = watch(&engine, "TS.MRANGE - + FILTER room=hall");
    run(
        &engine,
        &[
            "TS.ADD a 2 2",
            "LENS.CREATE l source affine 2 0 LABELS room hall",
            "TS.ADD source 2 20",
            "TS.ADD a 3 3",
            "TS.ADD source 1 10 ON_DUPLICATE LAST",
            "DEL source",
            "TS.ADD a 4 4",
            "TS.ADD source 9 1",
            "LENS.DROP l",
            "TS.ADD source 10 1",
            "TS.ADD a 5 5",
        ],
    );
    let series = |key: &str, rows: &str| format!("${} {key} *3 %0 %1 $11 aggregators *0 {rows}", key.len());
    let (a2, a4) = ("*2 *2 :1 ,1 *2 :2 ,2", "*4 *2 :1 ,1 *2 :2 ,2 *2 :3 ,3 *2 :4 ,4");
    let both = |a: &str, l: &str| format!("%2 {} {}", series("a", a), series("l", l));
    assert_eq!(
        emitted(&range),
        [
            (true, "*1 *3 $1 a $6 change *1 *2 :2 ,2".to_owned()),
            // A lens came: its rows are compared, not followed.
            (false, both(a2, "*1 *2 :1 ,20")),
            (true, "*1 *3 $1 l $6 change *1 *2 :2 ,40".to_owned()),
            (true, "*1 *3 $1 a $6 change *1 *2 :3 ,3".to_owned()),
            (false, "-ERR LENS: 'l': there is no 'source' for the lens to see".to_owned()),
            (false, both(a4, "*1 *2 :9 ,2")),
            (false, format!("%1 {}", series("a", a4))),
            (true, "*1 *3 $1 a $6 change *1 *2 :5 ,5".to_owned()),
        ]
    );
    assert_eq!(replayed(&engine).digest(), engine.digest());
}

#[test]
fn watches_of_labels_are_evaluated_for_sources_of_their_lenses_alone() {
    let engine = engine();
    run(
        &engine,
        &[
            "TS.CREATE source",
            "TS.CREATE other",
            "TS.CREATE a LABELS room hall",
            "LENS.CREATE below source abs",
            "LENS.CREATE l below abs LABELS room hall",
            "LENS.CREATE attic other abs LABELS room attic",
        ],
    );
    for line in [
        "TS.MRANGE - + FILTER room=hall",
        "TS.MGET FILTER room=(hall,cellar)",
        "TS.MREVRANGE - + FILTER room=~h.* GROUPBY room REDUCE max",
        "TS.QUERYINDEX room=hall",
        "TS.QUERYLABELS VALUES room FILTER room=hall",
    ] {
        watch(&engine, line);
    }
    for (line, expected) in [
        ("SET x 1", 0),
        ("TS.ADD other 1 1", 0),
        ("TS.MADD other 2 1 other 3 1", 0),
        ("LENS.CREATE third other abs LABELS room attic", 0),
        ("LENS.CREATE fourth source abs", 0),
        // Points of a source do not change which labels there are.
        ("TS.ADD source 1 1", 3),
        ("TS.MADD source 2 1 other 4 1", 3),
        ("TS.DEL source 1 1", 3),
        ("DEL source", 3),
        ("TS.ADD source 1 1", 3),
        ("RENAME source moved", 3),
        ("RENAME moved source", 3),
        ("EXPIRE source 100", 3),
        ("LENS.DROP below", 3),
        ("LENS.CREATE below source delta", 3),
        ("RENAME attic hall", 0),
        ("LENS.DROP l", 5),
        ("TS.ADD source 2 1", 0),
        ("LENS.CREATE l source LABELS room cellar", 1),
        ("TS.ADD source 3 1", 1),
        ("COPY l copied", 1),
        ("SET l 1", 1),
        ("FLUSHDB", 5),
        ("TS.ADD source 1 1", 0),
    ] {
        assert_eq!(evaluated(&engine, line), expected, "{line}");
    }
}

#[test]
fn a_lens_without_transforms_has_its_own_labels_in_watches() {
    let engine = engine();
    run(&engine, &["TS.ADD a 1 1 LABELS room hall unit c", "LENS.CREATE l a LABELS room hall unit k"]);
    let groups = watch(&engine, "TS.MRANGE - + FILTER room=hall GROUPBY unit REDUCE sum");
    let plain = watch(&engine, "TS.RANGE l - +");
    run(&engine, &["TS.ADD a 2 2", "LENS.DROP l", "TS.ADD a 3 3"]);
    let entry = |unit: &str| format!("*3 $6 unit={unit} $6 change *1 *2 :2 ,2");
    assert_eq!(emitted(&groups)[0], (true, format!("*2 {} {}", entry("c"), entry("k"))));
    assert_eq!(emitted(&groups)[2], (true, "*1 *3 $6 unit=c $6 change *1 *2 :3 ,3".to_owned()));
    assert_eq!(emitted(&plain)[0], (true, "*1 *2 :2 ,2".to_owned()));
}

#[test]
fn a_labelled_lens_and_its_source_expire_while_they_are_watched() {
    for (line, expected) in [
        ("PEXPIRE l 100", "%1 $1 a *2 %0 *2 :1 ,1"),
        ("PEXPIRE source 100", "-ERR LENS: 'l': there is no 'source' for the lens to see"),
    ] {
        let engine = engine();
        run(
            &engine,
            &[
                "TS.ADD a 1 1 LABELS room hall",
                "TS.ADD source 1 1",
                "LENS.CREATE l source abs LABELS room hall",
                line,
            ],
        );
        let query = watch(&engine, "TS.MGET FILTER room=hall");
        engine.expire_due(START_US + 200_000, 100);
        assert_eq!(answers(&query), [expected], "{line}");
        assert_eq!(replayed(&engine).digest(), engine.digest());
    }
}

#[test]
fn a_dormant_read_of_a_labelled_lens_goes_on_where_it_would_be() {
    for line in
        ["TS.MRANGE - + FILTER room=hall", "TS.MGET FILTER room=hall", "TS.MRANGE -5s + FILTER room=hall"]
    {
        let engine = engine();
        run(&engine, &["TS.ADD source 1 1", "TS.ADD a 1 1 LABELS room hall"]);
        let query = watch(&engine, line);
        let cut = Cut::of(&engine);
        engine.limit_writes(WriteBudget { write_us: 0, heard_us: 0, unheard_us: 0 });
        run(&engine, &["TS.ADD a 2 2", "LENS.CREATE l source abs LABELS room hall", "TS.ADD source 2 -2"]);
        assert!(query.query.is_dormant(), "{line}");
        engine.limit_writes(WriteBudget::UNLIMITED);
        wake(&engine, &query.query, &cut, START_US);
        let before = query.query.count();
        run(&engine, &["TS.ADD source 3 -3", "LENS.DROP l", "TS.ADD source 4 4", "TS.ADD a 3 3"]);
        assert_eq!(query.query.count(), before + if line.contains("-5s") { 1 } else { 3 }, "{line}");
        let again = replayed(&engine);
        assert_eq!(again.query(query.query.id()).expect("it is watched").count(), query.query.count());
    }
}

const READS: [&str; 16] = [
    "TS.MRANGE - + FILTER room=hall",
    "TS.MREVRANGE - + WITHLABELS COUNT 3 FILTER room=hall",
    "TS.MRANGE - + SELECTED_LABELS unit none FILTER room=~h.*",
    "TS.MRANGE - + AGGREGATION avg,count 5000 FILTER room=hall",
    "TS.MREVRANGE - + COUNT 2 AGGREGATION min,max 4000 BUCKETTIMESTAMP end EXCLUDEEMPTY FILTER room=hall",
    "TS.MRANGE - + EXCLUDEEMPTY FILTER_BY_VALUE 3 4 FILTER room=hall",
    "TS.MRANGE - + FILTER room=hall GROUPBY unit REDUCE sum",
    "TS.MREVRANGE - + WITHLABELS COUNT 4 FILTER room=hall GROUPBY unit REDUCE max",
    "TS.MRANGE - + SELECTED_LABELS room unit FILTER room=(hall,attic) GROUPBY room REDUCE std.p",
    "TS.MRANGE - + LATEST FILTER room=hall unit!=c",
    "TS.MRANGE - + AGGREGATION twa 3000 EMPTY FILTER room=hall",
    "TS.MRANGE -12s + FILTER room=hall",
    "TS.MREVRANGE -12s now AGGREGATION max 4000 FILTER room=hall GROUPBY unit REDUCE sum",
    "TS.MRANGE -8s -1s EXCLUDEEMPTY FILTER room=~h.*",
    "TS.RANGE l - +",
    "TS.MRANGE - + FILTER room=hall unit=",
];

/// Reads whose emissions are answers.
const WHOLE: [&str; 4] = [
    "TS.MGET FILTER room=hall",
    "TS.MGET LATEST WITHLABELS FILTER room=~.+ unit!=f",
    "TS.QUERYINDEX room=hall",
    "TS.QUERYLABELS VALUES unit",
];

fn random_write(random: &mut Random, now_ms: u64) -> String {
    let (source, other) = (random.pick(&["a", "b", "c"]), random.pick(&["a", "b", "c"]));
    let (lens, second) = (random.pick(&["l", "m", "n"]), random.pick(&["l", "m", "n"]));
    let at = now_ms + 1_000 - random.below(15_000);
    let value = random.pick(&["1", "3.5", "4", "NaN", "-0"]);
    let labels = random.pick(&[
        "",
        " LABELS room hall unit c",
        " LABELS room hall unit k",
        " LABELS room hall",
        " LABELS room attic unit c",
    ]);
    match random.below(40) {
        0..=15 => format!("TS.ADD {source} {at} {value} ON_DUPLICATE LAST{labels}"),
        16 | 17 => format!("TS.MADD {source} {at} 2 {other} {at} 3 {source} {} 1", at + 1),
        18 => format!("TS.DEL {source} {at} {}", at + random.below(6_000)),
        19 => format!("TS.ALTER {source}{labels}"),
        20..=26 => {
            let transform =
                random.pick(&["", " abs", " delta", " moving avg 3", " fill 2000 0", " affine 2 1"]);
            format!("LENS.CREATE {lens} {source}{transform}{labels}")
        }
        27 => format!("LENS.CREATE {lens} {source} + {other} ASOF 5s{labels}"),
        28 | 29 => format!("LENS.CREATE {lens} {second} abs{labels}"),
        30 | 31 => format!("LENS.DROP {lens}"),
        32 => format!("RENAME {lens} {second}"),
        33 => format!("COPY {lens} {second} REPLACE"),
        34 => format!("PEXPIRE {} {}", random.pick(&[lens, lens, source]), random.pick(&["900", "-1"])),
        35 => random.pick(&["DEL a", "DEL b l", "RENAME c b", "SET m 1", "SET c 1", "FLUSHALL"]).to_owned(),
        36 => random.pick(&["MOVE l 1", "MOVE a 1", "SWAPDB 0 1", "SWAPDB 0 1"]).to_owned(),
        37 => "TS.CREATERULE a b AGGREGATION max 3000".to_owned(),
        38 => format!("TS.CREATE {source} UNIT {}{labels}", random.pick(&["ms", "ms", "us"])),
        _ => format!("LENS.COMPOSE {lens} {second} {second}"),
    }
}

/// Clients follow watches of labels through random changes of series and lenses, ticks, expiry and
/// transactions. Then the emissions are made again from the log, and from snapshots in between.
#[test]
fn clients_have_what_a_read_answers_whatever_happens_to_labelled_lenses() {
    let mut seen = [0; 3];
    for seed in 0..8 {
        let mut random = Random::new(3000 + seed);
        let engine = engine();
        let mut client = Client::new(&engine);
        run(
            &engine,
            &[
                "TS.CREATE a DUPLICATE_POLICY LAST LABELS room hall unit c",
                "TS.CREATE b LABELS room hall unit f",
                "TS.CREATE c",
                "LENS.CREATE l c affine 2 1 LABELS room hall unit c",
                "LENS.CREATE m l abs LABELS room hall",
            ],
        );
        let whole: Vec<_> = WHOLE.into_iter().map(|line| (line, watch(&engine, line))).collect();
        let (mut folding, mut cuts): (Vec<Folding>, Vec<Option<Cut>>) = (Vec::new(), vec![None]);
        for step in 0..200 {
            client.now_us += random.below(800) * 1_000;
            if step % 3 == 0 && folding.len() < READS.len() {
                let protocol = if random.once_in(2) { Protocol::Resp2 } else { Protocol::Resp3 };
                folding.extend(Folding::begin(&engine, READS[folding.len()], protocol, client.now_us));
            }
            if random.once_in(50) {
                cuts.push(Some(Cut::of(&engine)));
            }
            if random.once_in(3) {
                engine.tick_due(client.now_us, 100);
            }
            let lines: Vec<String> = (0..if random.once_in(6) { 2 + random.below(3) } else { 1 })
                .map(|_| random_write(&mut random, client.now_us / 1000))
                .collect();
            if let [line] = &lines[..] {
                client.run(line);
            } else {
                transaction(&engine, None, &lines.iter().map(String::as_str).collect::<Vec<_>>());
            }
            // What has expired is there for watches until a record says so.
            engine.expire_due(client.now_us, 1000);
            let why = format!("seed {seed}, step {step}: {}", lines.join("; "));
            folding.iter_mut().for_each(|one| one.follow(&engine, &why));
            for (line, query) in &whole {
                let present = Client { protocol: Protocol::Resp3, ..Client::new(&engine) }.run(line);
                let latest = answers(query).pop().unwrap_or_else(|| support::shown(&query.answer));
                assert_eq!(latest, present, "{line}, behind {why}");
            }
        }
        for one in &folding {
            for (is_change, answer) in emitted(&one.subscribed) {
                seen[if answer.starts_with('-') { 0 } else { 1 + usize::from(is_change) }] += 1;
            }
            for cut in &cuts {
                one.make_anew(&engine, cut.as_ref(), &format!("seed {seed}"));
            }
        }
        for cut in cuts.iter().flatten() {
            let again = cut.restored();
            support::apply_from(&engine, cut.lsn.next(), &again);
            assert_eq!(again.digest(), engine.digest(), "seed {seed}, behind {}", cut.lsn);
        }
        assert_eq!(replayed(&engine).digest(), engine.digest(), "seed {seed}");
    }
    assert!(seen.iter().all(|count| *count > 100), "errors, answers and changes are emitted: {seen:?}");
}

/// Writers on several threads lock what their own keys need; watches of labels still see every change of a
/// lens's source once, in the order of the log.
#[test]
fn watches_of_labels_follow_lenses_whose_sources_are_written_on_several_threads() {
    let engine = engine();
    run(
        &engine,
        &[
            "TS.CREATE a LABELS room hall",
            "TS.CREATE b",
            "TS.CREATE c",
            "LENS.CREATE l c abs LABELS room hall",
            "LENS.CREATE m l abs LABELS room hall",
        ],
    );
    let mut folding: Vec<Folding> = READS[..9]
        .iter()
        .filter_map(|line| Folding::begin(&engine, line, Protocol::Resp3, START_US))
        .collect();
    assert_eq!(folding.len(), 9);
    run_on_threads(&engine, |thread, step| {
        let mut random = Random::new((1000 * thread + step) as u64);
        if random.once_in(4) {
            format!("SET text{thread} {step}")
        } else {
            random_write(&mut random, START_US / 1000)
        }
    });
    for one in &mut folding {
        one.follow(&engine, "writers on several threads");
        let mut emissions = Vec::new();
        one.subscribed.query.emissions_after(0, usize::MAX, &mut emissions).expect("all are retained");
        assert!(emissions.len() > 10 && emissions.is_sorted_by(|one, other| one.lsn < other.lsn));
        one.make_anew(&engine, None, "writers on several threads");
    }
    assert_eq!(replayed(&engine).digest(), engine.digest());
}
