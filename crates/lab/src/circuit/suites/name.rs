//! `NameOps`: creation of names that exist already, and their queries.

use super::lookup::in_turn;
use crate::micro::benchmark::{Benchmark, each};
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use tidemark_circuit::{ArgumentError, Extent, Name, name};

const PARTS: [&str; 3] = ["first", "second", "third"];
const PATH: &str = "first.second.third";
const DEEP: &str = "root.level1.level2.level3.level4";

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = making();
    all.extend(interning());
    all.extend(asking());
    all.extend(depths("1k", 1_000));
    all.extend(depths("10k", 10_000));
    all
}

fn making() -> Vec<Benchmark> {
    let mut all = vec![
        Benchmark::new(
            "NameOps.name_chained_deep",
            "a name of five parts, each below the one before",
            |_| {
                each(|_| {
                    ["b", "c", "d", "e"]
                        .iter()
                        .try_fold(Name::new(black_box("a"))?, |name, part| name.extend(part))
                })
            },
        ),
        Benchmark::new("NameOps.name_from_enum", "a name from a literal that was used before", |_| {
            each(|_| name!("bench.second"))
        }),
        Benchmark::new("NameOps.name_from_iterable", "a name from three parts in an array", |_| {
            each(|_| Name::from_parts(black_box(PARTS)))
        }),
        Benchmark::new("NameOps.name_from_iterator", "a name from an iterator over three parts", |_| {
            each(|_| Name::from_parts(black_box(&PARTS).iter()))
        }),
        Benchmark::new(
            "NameOps.name_from_mapped_iterable",
            "a name from three things mapped to parts",
            |_| {
                each(|_| {
                    Name::from_parts(
                        black_box([0_usize, 1, 2]).iter().map(|place| PARTS[place % PARTS.len()]),
                    )
                })
            },
        ),
        Benchmark::new("NameOps.name_from_name", "a name below another one", |_| {
            let first = Name::new(PARTS[0])?;
            each(move |_| first.join(Name::new(black_box(PARTS[1]))?))
        }),
    ];
    all.extend(Benchmark::with_batch(
        "NameOps.name_chaining",
        "a name of three parts, each below the one before",
        |_| each(|_| chained()),
    ));
    all.extend(Benchmark::with_batch("NameOps.name_from_string", "a name of one part from its text", |_| {
        each(|_| Name::new(black_box(PARTS[0])))
    }));
    all.extend(Benchmark::with_batch("NameOps.name_parsing", "a name of three parts from its text", |_| {
        each(|_| Name::new(black_box(PATH)))
    }));
    all
}

fn interning() -> [Benchmark; 3] {
    [
        Benchmark::new(
            "NameOps.name_interning_chained",
            "a name from its text, the same part by part, and comparing the two",
            |_| each(|_| Ok::<_, ArgumentError>(Name::new(black_box(PATH))? == chained()?)),
        ),
        Benchmark::new(
            "NameOps.name_interning_same_path",
            "a name from its text twice, and comparing the two",
            |_| each(|_| Ok::<_, ArgumentError>(Name::new(black_box(PATH))? == Name::new(black_box(PATH))?)),
        ),
        Benchmark::new(
            "NameOps.name_interning_segments",
            "a name, one below it, what encloses that, and comparing it with the first",
            |_| {
                each(|_| {
                    let first = Name::new(black_box(PARTS[0]))?;
                    let below = Name::new(black_box(PARTS[0]))?.extend(black_box(PARTS[1]))?;
                    Ok::<_, ArgumentError>(Some(first) == below.enclosure())
                })
            },
        ),
    ]
}

fn asking() -> Vec<Benchmark> {
    let mut all = vec![
        Benchmark::new("NameOps.name_enclosure", "what encloses a name of five parts", |_| {
            let deep = Name::new(DEEP)?;
            each(move |_| black_box(deep).enclosure())
        }),
        Benchmark::new(
            "NameOps.name_iterate_hierarchy",
            "counting a name of five parts and all that enclose it",
            |_| {
                let deep = Name::new(DEEP)?;
                each(move |_| black_box(deep).iter().count())
            },
        ),
    ];
    all.extend([
        Benchmark::new("NameOps.name_within", "whether a name of five parts is below its first", |_| {
            let (deep, root) = (Name::new(DEEP)?, Name::new("root")?);
            each(move |_| black_box(&deep).within(black_box(&root)))
        }),
        Benchmark::new("NameOps.name_within_false", "whether a name of five parts is below another", |_| {
            let (deep, other) = (Name::new(DEEP)?, Name::new("unrelated")?);
            each(move |_| black_box(&deep).within(black_box(&other)))
        }),
        Benchmark::new("NameOps.name_hashCode", "the hash of a name", |_| {
            let deep = Name::new(DEEP)?;
            let hasher = RandomState::new();
            each(move |_| hasher.hash_one(black_box(deep)))
        }),
    ]);
    all.extend(Benchmark::with_batch("NameOps.name_compare", "which of two names comes first", |_| {
        let (deep, first) = (Name::new(DEEP)?, Name::new(PARTS[0])?);
        each(move |_| black_box(deep).cmp(&black_box(first)))
    }));
    all.extend(Benchmark::with_batch("NameOps.name_depth", "of how many parts a name is", |_| {
        let deep = Name::new(DEEP)?;
        each(move |_| black_box(deep).depth())
    }));
    all.extend(Benchmark::with_batch(
        "NameOps.name_path_generation",
        "the text of a name, which it keeps",
        |_| {
            let deep = Name::new(DEEP)?;
            each(move |_| black_box(deep).path())
        },
    ));
    all
}

/// Rows of so many names in one call, and the cost of iterating over their depths alone.
fn depths(size: &str, count: u64) -> [Benchmark; 2] {
    [
        Benchmark::new(
            format!("NameOps.name_depth_varied_batch_{size}"),
            format!(
                "of how many parts a name is, {count} in one call, of 256 in turn with one part to eight; see \
                 name_depth_control_batch_{size}"
            ),
            move |_| in_turn(count, varied()?, |name| name.depth()),
        ),
        Benchmark::new(
            format!("NameOps.name_depth_control_batch_{size}"),
            format!(
                "going through {count} depths without asking for them, which is part of name_depth_varied_batch_{size}"
            ),
            move |_| in_turn(count, varied()?.iter().map(Name::depth).collect(), |depth| depth),
        ),
    ]
}

/// 256 names, some of them eight times as deep as others.
fn varied() -> Result<Vec<Name>, ArgumentError> {
    let below = |name: Name, level| name.extend(&format!("level-{level}"));
    (0..256).map(|number| (0..number % 8).try_fold(Name::new(&format!("varied-{number}"))?, below)).collect()
}

fn chained() -> Result<Name, ArgumentError> {
    Name::new(black_box(PARTS[0]))?.extend(black_box(PARTS[1]))?.extend(black_box(PARTS[2]))
}
