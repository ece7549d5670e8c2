use super::*;
use crate::command::parse::canonical_integer;
use crate::keyspace::ValueRef;
use crate::value::stream::{Id, Keep, NodeLimits, Trim};
use crate::value::{End, Hash, List, Object, Set, SortedSet, Stream, Text, TypedValue};
use crate::wire::reply::format_double;
use proptest::prelude::*;

/// What a value has, as text: elements of lists in order, others sorted.
fn shown(value: &Restored) -> String {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let sorted = |mut elements: Vec<String>| {
        elements.sort();
        elements.join(" ")
    };
    match value {
        Restored::String(bytes) => format!("string {}", text(bytes)),
        Restored::Object(Object::List(list)) => {
            format!("list {}", list.iter_from(0).map(text).collect::<Vec<_>>().join(" "))
        }
        Restored::Object(Object::Set(set)) => {
            format!("{} {}", set.encoding(), sorted(set.iter().map(|member| text(&member)).collect()))
        }
        Restored::Object(Object::Hash(hash)) => {
            let pairs = hash.iter().map(|(field, value)| format!("{}={}", text(field), text(value)));
            format!("{} {}", hash.encoding(), sorted(pairs.collect()))
        }
        Restored::Object(Object::SortedSet(set)) => {
            let members =
                set.iter().map(|(member, score)| format!("{}:{}", format_double(score), text(member)));
            format!("{} {}", set.encoding(), members.collect::<Vec<_>>().join(" "))
        }
        Restored::Object(Object::Stream(stream)) => {
            let entries = stream.range(Id::MIN, Id::MAX).map(|entry| {
                let pair = |(name, value): (Text<'_>, Text<'_>)| format!("{}={}", text(&name), text(&value));
                format!("{} {}", entry.id(), entry.iter().map(pair).collect::<Vec<_>>().join(","))
            });
            let groups = stream.groups().map(|(name, group)| {
                let pending = group.pending_from(Id::MIN).map(|pending| {
                    let owner = text(group.owner(pending));
                    format!("{} {owner} {} {}", pending.id, pending.delivered_ms, pending.deliveries)
                });
                let consumers = group
                    .consumers()
                    .map(|consumer| format!("{}@{}", text(consumer.name()), consumer.seen_ms()));
                let (pending, consumers) = (pending.collect::<Vec<_>>(), consumers.collect::<Vec<_>>());
                format!(
                    "{} {} {:?} {pending:?} {consumers:?}",
                    text(name),
                    group.last(),
                    group.entries_read()
                )
            });
            format!(
                "stream {} {} {} {} {:?} {:?}",
                stream.last(),
                stream.max_deleted(),
                stream.added(),
                stream.len(),
                entries.collect::<Vec<_>>(),
                groups.collect::<Vec<_>>()
            )
        }
        Restored::Object(other) => panic!("{other:?} has no form in Redis"),
    }
}

fn decoded(content: &[u8]) -> String {
    decode(content).map_or_else(|error| error.to_string(), |value| shown(&value))
}

fn encoded(value: &Restored) -> Vec<u8> {
    let mut content = Vec::new();
    let value = match value {
        Restored::String(bytes) => match canonical_integer(bytes) {
            Some(integer) => ValueRef::Int(integer),
            None => ValueRef::Raw(bytes),
        },
        Restored::Object(object) => ValueRef::Object(object),
    };
    encode(value, &mut content).expect("a value of Redis");
    content
}

/// Values as files of older versions have them, which Redis tests with.
#[test]
fn old_encodings_are_read() {
    for (content, value) in [
        (&b"\x09\x10\x02\x02f1\x02\0v1\x02f2\x02\0v2\xff"[..], "listpack f1=v1 f2=v2"),
        (
            b"\x0d\x1b\x1b\0\0\0\x16\0\0\0\x04\0\0\x02f1\x04\x02v1\x04\x02f2\x04\x02v2\xff",
            "listpack f1=v1 f2=v2",
        ),
        (
            b"\x0c\x19\x19\0\0\0\x16\0\0\0\x04\0\0\x03one\x05\xf2\x02\x03two\x05\xf3\xff",
            "listpack 1:one 2:two",
        ),
        (b"\x0e\x01\x0d\x0d\0\0\0\x0a\0\0\0\x01\0\0\xf8\xff", "list 7"),
        (b"\x0a\x0d\x0d\0\0\0\x0a\0\0\0\x01\0\0\xf8\xff", "list 7"),
        (b"\x0b\x10\x02\0\0\0\x04\0\0\0\x01\0\x02\0\x03\0\x04\0", "intset 1 2 3 4"),
        (b"\x03\x02\x02bb\x0220\x01c\x035e1", "listpack 20:bb 50:c"),
        (b"\x03\x02\x01a\xfe\x01b\xff", "listpack -inf:b inf:a"),
        (b"\x01\x02\x01a\xc0\x05", "list a 5"),
        (b"\x02\x02\x01a\xc0\x05", "hashtable 5 a"),
        (b"\x04\x01\x01a\xc1\x00\x01", "listpack a=256"),
        (b"\x05\x01\x01a\0\0\0\0\0\0\xf8\x3f", "listpack 1.5:a"),
        // Since version 11: a set in a listpack.
        (b"\x14\x0c\x0c\0\0\0\x02\0\x81a\x02\x05\x01\xff", "hashtable 5 a"),
        (b"\x12\x01\x01\x03abc", "list abc"),
    ] {
        assert_eq!(decoded(content), value, "{}", content.escape_ascii());
    }
}

#[test]
fn what_is_damaged_is_refused() {
    for (content, part) in [
        (&b""[..], "end too early"),
        (b"\x08", "type is unknown"),
        (b"\x06", "a value of a module cannot"),
        (b"\x0f", "end too early"),
        (b"\x13\x01\x02ab", "block of a stream"),
        // A stream of one entry that is not there, and one whose group comes twice.
        (b"\x0f\x00\x01\x01\x00\x00", "another length"),
        (b"\x0f\x00\x00\x05\x00\x02\x01g\x00\x00\x00\x00\x01g\x00\x00\x00\x00", "comes twice"),
        // A pending entry without consumer, and one that only a consumer has.
        (
            b"\x0f\x00\x00\x05\x00\x01\x01g\x00\x00\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\
              \0\0\0\0\0\0\0\0\x01\x00",
            "pending entries",
        ),
        (
            b"\x0f\x00\x00\x05\x00\x01\x01g\x00\x00\x00\x01\x01c\0\0\0\0\0\0\0\0\x01\
              \0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0",
            "pending entries",
        ),
        (b"\x16", "type is unknown"),
        (b"\0\x03ab", "end too early"),
        (b"\0\x01ab", "bytes follow"),
        (b"\0\xc4", "no known encoding"),
        (b"\0\x82", "no known byte"),
        (b"\x01\xc0\x01", "where a length should be"),
        (b"\x01\x00", "no elements"),
        (b"\x02\x00", "no elements"),
        (b"\x04\x00", "no elements"),
        (b"\x05\x00", "no elements"),
        (b"\x12\x00", "no elements"),
        (b"\x10\x07\x07\0\0\0\0\0\xff", "no elements"),
        (b"\x02\x02\x01a\x01a", "comes twice"),
        (b"\x04\x02\x01a\x01x\x01a\x01y", "comes twice"),
        (b"\x05\x02\x01a\0\0\0\0\0\0\0\0\x01a\0\0\0\0\0\0\xf8\x3f", "comes twice"),
        (b"\x05\x01\x01a\0\0\0\0\0\0\xf8\x7f", "no number"),
        (b"\x03\x01\x01a\xfd", "no number"),
        (b"\x03\x01\x01a\x03nan", "no number"),
        (b"\x10\x09\x09\0\0\0\x01\0\x05\x01\xff", "last element of a pair"),
        (b"\x0b\x09\x02\0\0\0\x01\0\0\0\x01", "an intset is damaged"),
        (b"\x0b\x0c\x02\0\0\0\x02\0\0\0\x05\0\x05\0", "an intset is damaged"),
        (b"\x0b\x0b\x03\0\0\0\x01\0\0\0\x05\0\0", "an intset is damaged"),
        // A listpack whose length backwards, whose count, or whose end is wrong.
        (b"\x14\x09\x09\0\0\0\x01\0\x05\x02\xff", "a listpack is damaged"),
        (b"\x14\x09\x09\0\0\0\x02\0\x05\x01\xff", "a listpack is damaged"),
        (b"\x14\x09\x09\0\0\0\x01\0\x05\x01\xfe", "a listpack is damaged"),
        // A string that claims four gigabytes.
        (b"\x14\x0d\x0d\0\0\0\x01\0\xf0\xff\xff\xff\xff\x05\xff", "a listpack is damaged"),
        // A ziplist whose entry states another length of the one before, and one whose tail is wrong.
        (b"\x0a\x0f\x0f\0\0\0\x0c\0\0\0\x02\0\0\xf8\x03\xf8\xff", "a ziplist is damaged"),
        (b"\x0a\x0d\x0d\0\0\0\x0b\0\0\0\x01\0\0\xf8\xff", "a ziplist is damaged"),
        (b"\x09\x07\x01\xfe\xff\xff\xff\xff\xff", "a zipmap is damaged"),
        (b"\x09\x06\x01\x01a\x01\x05\xff", "a zipmap is damaged"),
    ] {
        let error = decoded(content);
        assert!(error.starts_with("ERR Bad data format"), "{}: {error}", content.escape_ascii());
        assert!(error.contains(part), "{}: {error}", content.escape_ascii());
    }
}

/// A few kilobytes of compressed zeros would be gigabytes of elements.
#[test]
fn a_value_may_not_expand_without_bounds() {
    // A listpack of a hundred million ones, two bytes each, compressed as repetitions of 264 bytes.
    let count = 100_000_000_usize;
    let len = 6 + 2 * count + 1;
    let mut compressed = vec![7];
    compressed.extend_from_slice(&(len as u32).to_le_bytes());
    compressed.extend_from_slice(&[0xff, 0xff, 1, 1]);
    let mut left = 2 * count - 2;
    while left >= 3 {
        // Not one that leaves less than the shortest.
        let run = left.min(264) - if left > 264 && left < 267 { 3 } else { 0 };
        match run - 2 {
            short @ 0..7 => compressed.push((short as u8) << 5),
            long => compressed.extend_from_slice(&[0xe0, (long - 7) as u8]),
        }
        compressed.push(1);
        left -= run;
    }
    let mut literals: Vec<u8> = [1, 1].into_iter().cycle().take(left).collect();
    literals.push(0xff);
    compressed.push(literals.len() as u8 - 1);
    compressed.append(&mut literals);
    let mut content = vec![kind::LIST_QUICKLIST_2, 1, node::PACKED as u8, 0xc3];
    put_length(&mut content, compressed.len());
    put_length(&mut content, len);
    content.append(&mut compressed);
    assert!(content.len() < 3 << 20);
    assert_eq!(decode(&content).map(|_| ()), Err(RdbError::Expands));
    let claim = b"\0\xc3\x02\x81\xff\xff\xff\xff\xff\xff\xff\xff\0a";
    assert!(decode(claim).is_err());
}

#[test]
fn our_own_types_have_no_form() {
    let mut content = Vec::new();
    let error = encode(ValueRef::Unit, &mut content).expect_err("refused");
    assert!(error.to_string().contains("cannot be dumped"));
}

#[test]
fn lengths_are_read_back() {
    for length in [0, 1, 63, 64, 16_383, 16_384, u32::MAX as usize, u32::MAX as usize + 1, usize::MAX] {
        let mut bytes = Vec::new();
        put_length(&mut bytes, length);
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.length(), Ok(length as u64));
        assert!(reader.is_empty());
    }
}

/// An element: a number at an edge of an encoding, text, or a long and compressible one.
fn element() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0..64_u32, -2..2_i64)
            .prop_map(|(bit, near)| { (1_i64 << bit).wrapping_add(near).to_string().into_bytes() }),
        (0..63_u32, -2..2_i64).prop_map(|(bit, near)| (near - (1_i64 << bit)).to_string().into_bytes()),
        proptest::collection::vec(any::<u8>(), 0..80),
        (any::<u8>(), 0..300_usize).prop_map(|(byte, count)| vec![byte; count]),
        (4090..4100_usize).prop_map(|count| (0..count).map(|at| (at * at / 8) as u8).collect()),
    ]
}

fn some_value() -> impl Strategy<Value = Restored> {
    let score = prop_oneof![
        (-300..300_i32).prop_map(f64::from),
        any::<f64>().prop_filter("a score is a number", |score| !score.is_nan()),
        Just(f64::INFINITY),
        Just(-0.0),
    ];
    prop_oneof![
        element().prop_map(Restored::String),
        proptest::collection::vec(element(), 1..300).prop_map(|elements| {
            let mut list = List::default();
            elements.iter().for_each(|element| list.push(End::Back, element));
            Restored::Object(list.into_object())
        }),
        proptest::collection::vec(element(), 1..600).prop_map(|members| {
            let mut set = Set::default();
            for member in &members {
                set.insert(member);
            }
            Restored::Object(set.into_object())
        }),
        proptest::collection::vec(any::<i16>().prop_map(|member| member.to_string()), 1..300).prop_map(
            |members| {
                let mut set = Set::default();
                for member in &members {
                    set.insert(member.as_bytes());
                }
                Restored::Object(set.into_object())
            }
        ),
        proptest::collection::vec((element(), element()), 1..300).prop_map(|pairs| {
            let mut hash = Hash::default();
            for (field, value) in &pairs {
                hash.set(field, value);
            }
            Restored::Object(hash.into_object())
        }),
        some_stream().prop_map(|stream| Restored::Object(stream.into_object())),
        proptest::collection::vec((score, element()), 1..200).prop_map(|members| {
            let mut set = SortedSet::default();
            members.iter().for_each(|(score, member)| set.update(member, |_| Some(*score)));
            Restored::Object(set.into_object())
        }),
    ]
}

/// One step of making a stream.
#[derive(Debug, Clone)]
enum Step {
    /// Adds an entry so far behind the last one.
    Add {
        ms: u64,
        seq: u64,
        fields: Vec<(Vec<u8>, Vec<u8>)>,
    },
    /// Deletes one of the entries.
    Delete(proptest::sample::Index),
    Trim(u64),
    CreateGroup(u8),
    /// Delivers some entries to a consumer.
    Deliver {
        group: u8,
        consumer: u8,
        count: usize,
    },
    /// Ends that an entry is pending.
    Acknowledge {
        group: u8,
        at: proptest::sample::Index,
    },
}

fn some_stream() -> impl Strategy<Value = Stream> {
    let fields = prop_oneof![
        4 => proptest::collection::vec(element(), 2).prop_map(|values| {
            vec![b"a".to_vec(), b"17".to_vec()].into_iter().zip(values).collect()
        }),
        1 => proptest::collection::vec((element(), element()), 1..4),
    ];
    let ms = prop_oneof![8 => 0..3_u64, 1 => any::<u32>().prop_map(u64::from)];
    let step = prop_oneof![
        12 => (ms, 0..300_u64, fields).prop_map(|(ms, seq, fields)| Step::Add { ms, seq, fields }),
        2 => any::<proptest::sample::Index>().prop_map(Step::Delete),
        1 => (0..300_u64).prop_map(Step::Trim),
        1 => (0..3_u8).prop_map(Step::CreateGroup),
        3 => (0..3_u8, 0..3_u8, 0..9_usize)
            .prop_map(|(group, consumer, count)| Step::Deliver { group, consumer, count }),
        2 => (0..3_u8, any::<proptest::sample::Index>())
            .prop_map(|(group, at)| Step::Acknowledge { group, at }),
    ];
    proptest::collection::vec(step, 0..300).prop_map(|steps| {
        let mut stream = Stream::default();
        for (now_ms, step) in (1_u64..).zip(steps) {
            match step {
                Step::Add { ms, seq, fields } => {
                    let last = stream.last();
                    let next = Id { ms: last.ms + ms, seq: if ms == 0 { last.seq + 1 + seq } else { seq } };
                    let fields: Vec<&[u8]> =
                        fields.iter().flat_map(|(name, value)| [&name[..], &value[..]]).collect();
                    if next > last {
                        stream.add(next, &fields, NodeLimits::DEFAULT);
                    }
                }
                Step::Delete(at) if stream.len() > 0 => {
                    let id =
                        stream.range(Id::MIN, Id::MAX).nth(at.index(stream.len())).expect("an entry").id();
                    stream.delete(id);
                }
                Step::Trim(most) => {
                    let trim = Trim { keep: Keep::Newest(most), is_approximate: false, limit: 0 };
                    let _few = stream.trim(trim);
                }
                Step::CreateGroup(group) => {
                    let last = if group == 0 { Id::MIN } else { stream.last() };
                    stream.create_group(&[group], last, None);
                }
                Step::Deliver { group, consumer, count } => {
                    let Some(of) = stream.group(&[group]) else { continue };
                    let ids: Vec<Id> = stream.undelivered(of).take(count).map(|entry| entry.id()).collect();
                    stream.deliver(&[group], &[b'c', consumer], &ids, true, now_ms);
                }
                Step::Acknowledge { group, at } => {
                    let Some(group) = stream.group_mut(&[group]).filter(|group| group.pending() > 0) else {
                        continue;
                    };
                    let id = group.pending_from(Id::MIN).nth(at.index(group.pending())).expect("one").id;
                    group.acknowledge(id);
                }
                Step::Delete(_) => {}
            }
        }
        stream
    })
}

/// What Redis 7.0.15 answers to `DUMP` after `XADD s 1-1 a 1 b x`, `XADD s 1-2 a 2 b y`, `XADD s 5-0 c z`, `XDEL s
/// 1-2` and `XGROUP CREATE s g 1-1`.
const OF_REDIS: &[u8] = b"\x13\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01@@@\x00\x00\x00\x19\x00\x02\x01\x01\x01\x02\x01\x81a\x02\x81b\x02\x00\x01\x02\x01\x00\x01\x00\x01\x01\x01\x81x\x02\x05\x01\x03\x01\x00\x01\x01\x01\x02\x01\x81y\x02\x05\x01\x00\x01\x04\x01\xdf\xff\x02\x01\x01\x81c\x02\x81z\x02\x06\x01\xff\x02\x05\x00\x01\x01\x01\x02\x03\x01\x01g\x01\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x0a\x00\xdca\xc6f\xdeq\x08\x1b";

#[test]
fn a_stream_has_the_bytes_of_redis() {
    let mut stream = Stream::default();
    let id = |ms, seq| Id { ms, seq };
    stream.add(id(1, 1), &[b"a", b"1", b"b", b"x"], NodeLimits::DEFAULT);
    stream.add(id(1, 2), &[b"a", b"2", b"b", b"y"], NodeLimits::DEFAULT);
    stream.add(id(5, 0), &[b"c", b"z"], NodeLimits::DEFAULT);
    stream.delete(id(1, 2));
    stream.create_group(b"g", id(1, 1), None);
    let mut content = encoded(&Restored::Object(stream.into_object()));
    seal(&mut content);
    assert_eq!(content.escape_ascii().to_string(), OF_REDIS.escape_ascii().to_string());
}

#[test]
fn older_and_newer_forms_of_streams_are_read() {
    let blocks = &OF_REDIS[1..OF_REDIS.len() - 34];
    let group = |entries_read: &[u8], active: &[u8]| {
        let mut group = b"\x01\x01g\x01\x01".to_vec();
        group.extend_from_slice(entries_read);
        // One pending entry, 1-1, delivered three times, the last time at 5.
        group.extend_from_slice(b"\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\x05\0\0\0\0\0\0\0\x03");
        group.extend_from_slice(b"\x01\x01c\x06\0\0\0\0\0\0\0");
        group.extend_from_slice(active);
        group.extend_from_slice(b"\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01");
        group
    };
    let newer = b"\x02\x05\x00\x01\x01\x01\x02\x03";
    let shown = |parts: &[&[u8]]| decoded(&parts.concat());
    let second = shown(&[b"\x13", blocks, newer, &group(b"\x01", b"")]);
    assert!(second.starts_with("stream 5-0 1-2 3 2 "), "{second}");
    assert!(second.contains("g 1-1 Some(1) [\\\"1-1 c 5 3\\\"] [\\\"c@6\\\"]"), "{second}");
    let third = shown(&[b"\x15", blocks, newer, &group(b"\x01", b"\x07\0\0\0\0\0\0\0")]);
    assert_eq!(third, second, "when a consumer was active last is not kept");
    let first = shown(&[b"\x0f", blocks, b"\x02\x05\x00", &group(b"", b"")]);
    // As Redis does: what was ever added is what is there, and of that the group has read its part.
    assert!(first.starts_with("stream 5-0 0-0 2 2 "), "{first}");
    assert!(first.contains("g 1-1 Some(1) "), "{first}");
}

#[test]
fn a_long_block_is_divided() {
    let mut stream = Stream::default();
    for ms in 1..=5_000 {
        stream.add(Id { ms, seq: 0 }, &[b"a", b"1"], NodeLimits { entries: 0, bytes: 0 });
    }
    (1..=400).for_each(|ms| assert!(stream.delete(Id { ms, seq: 0 })));
    assert_eq!(stream.blocks(), 1);
    let before = Restored::Object(stream.into_object());
    let after = decode(&encoded(&before)).expect("a stream");
    assert_eq!(shown(&after), shown(&before));
    let Restored::Object(Object::Stream(stream)) = after else { panic!("a stream") };
    assert_eq!(stream.blocks(), 12, "400 entries a block, and none of only deleted ones");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_value_is_read_back(value in some_value()) {
        let content = encoded(&value);
        let again = decode(&content).expect("what was encoded decodes");
        // Not with `prop_assert_eq`, which would print a long value in full.
        prop_assert!(shown(&again) == shown(&value));
    }

    #[test]
    fn a_value_without_its_end_is_refused(value in some_value(), cut: proptest::sample::Index) {
        let content = encoded(&value);
        prop_assert!(decode(&content[..cut.index(content.len())]).is_err());
    }

    #[test]
    fn a_damaged_value_is_a_value_or_refused(
        value in some_value(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut content = encoded(&value);
        for (at, byte) in damage {
            let at = at.index(content.len());
            content[at] = byte;
        }
        if let Ok(value) = decode(&content) {
            let content = encoded(&value);
            prop_assert_eq!(shown(&decode(&content).expect("what was encoded decodes")), shown(&value));
        }
    }

    #[test]
    fn any_bytes_are_a_value_or_refused(
        kind in 0..23_u8,
        bytes in crate::persist::damage::bytes(100),
        as_string: bool,
    ) {
        let mut content = vec![kind];
        if as_string {
            put_length(&mut content, bytes.len());
        }
        content.extend_from_slice(&bytes);
        if let Ok(value) = decode(&content) {
            let content = encoded(&value);
            prop_assert_eq!(shown(&decode(&content).expect("what was encoded decodes")), shown(&value));
        }
    }
}
