use super::*;
use crate::keyspace::form::{self, Form};
use crate::persist::damage;
use crate::value::{InParts, Pieces, SnapshotForm};
use proptest::prelude::*;

/// Small blocks, so that short tests have many.
const LIMITS: NodeLimits = NodeLimits { entries: 5, bytes: 200 };

type Fields = Vec<Vec<u8>>;

#[derive(Debug, Clone)]
enum Step {
    Add(u64, Fields),
    AddMany(u8),
    Delete(u64, u64),
    DeleteRange(u64, u64),
    Trim(u64, bool, u64),
    TrimBelow(u64, bool),
    Continue(u64),
    CreateGroup(u8, u64),
    DeleteGroup(u8),
    Deliver(u8, u8, usize, bool),
    Acknowledge(u8, u64),
    DeleteConsumer(u8, u8),
}

fn fields() -> impl Strategy<Value = Fields> {
    let value = prop_oneof![
        3 => prop::collection::vec(any::<u8>(), 0..4),
        3 => any::<i64>().prop_map(|value| value.to_string().into_bytes()),
        2 => (-300..300_i64).prop_map(|value| value.to_string().into_bytes()),
        1 => (0..300_usize).prop_map(|len| vec![b'x'; len]),
        1 => Just(b"007".to_vec()),
        1 => Just(b"-0".to_vec()),
    ];
    let names =
        prop::collection::vec(prop_oneof![4 => Just("name"), 1 => Just("other"), 1 => Just("12")], 1..4);
    names.prop_flat_map(move |names| {
        prop::collection::vec(value.clone(), names.len()).prop_map(move |values| {
            names.iter().zip(values).flat_map(|(name, value)| [name.as_bytes().to_vec(), value]).collect()
        })
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3_u64, fields()).prop_map(|(ahead, fields)| Step::Add(ahead, fields)),
        2 => (1..40_u8).prop_map(Step::AddMany),
        4 => (0..60_u64, 0..4_u64).prop_map(|(ms, seq)| Step::Delete(ms, seq)),
        1 => (0..60_u64, 0..20_u64).prop_map(|(ms, count)| Step::DeleteRange(ms, count)),
        2 => (0..60_u64, any::<bool>(), 0..30_u64).prop_map(|(count, approximate, limit)| Step::Trim(count, approximate, limit)),
        1 => (0..60_u64, any::<bool>()).prop_map(|(ms, approximate)| Step::TrimBelow(ms, approximate)),
        1 => (0..6_u64).prop_map(Step::Continue),
        2 => (0..3_u8, 0..60_u64).prop_map(|(group, ms)| Step::CreateGroup(group, ms)),
        1 => (0..3_u8).prop_map(Step::DeleteGroup),
        5 => (0..3_u8, 0..3_u8, 1..20_usize, any::<bool>()).prop_map(|(group, consumer, count, acknowledging)| Step::Deliver(group, consumer, count, acknowledging)),
        3 => (0..3_u8, 0..60_u64).prop_map(|(group, ms)| Step::Acknowledge(group, ms)),
        1 => (0..3_u8, 0..3_u8).prop_map(|(group, consumer)| Step::DeleteConsumer(group, consumer)),
    ]
}

/// What a group has read, and its pending entries with their consumers.
type GroupModel = (Id, BTreeMap<Id, Vec<u8>>);

#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    entries: BTreeMap<Id, Fields>,
    last: Id,
    max_deleted: Id,
    added: u64,
    groups: BTreeMap<Vec<u8>, GroupModel>,
}

impl Model {
    fn add(&mut self, id: Id, fields: &Fields) {
        self.entries.insert(id, fields.clone());
        (self.last, self.added) = (id, self.added + 1);
    }

    /// What a stream holds, as far as a model says it too.
    fn of(stream: &Stream) -> Self {
        let entry = |entry: EntryRef<'_>| {
            let fields: Fields =
                entry.iter().flat_map(|(name, value)| [name.to_vec(), value.to_vec()]).collect();
            assert_eq!(fields.len(), 2 * entry.fields());
            (entry.id(), fields)
        };
        let group = |(name, group): (&[u8], &Group)| {
            let pending: BTreeMap<Id, Vec<u8>> = group
                .pending_from(Id::MIN)
                .map(|pending| (pending.id, group.owner(pending).to_vec()))
                .collect();
            let of_consumers: usize = group.consumers().map(Consumer::pending).sum();
            assert_eq!((pending.len(), of_consumers), (group.pending(), group.pending()));
            for consumer in group.consumers() {
                let ids = group.pending_of(consumer, Id::MIN).map(|pending| pending.id);
                let owned = pending.iter().filter(|(_, owner)| *owner == consumer.name()).map(|(id, _)| *id);
                assert!(ids.eq(owned), "a consumer has its entries");
            }
            (name.to_vec(), (group.last(), pending))
        };
        Self {
            entries: stream.range(Id::MIN, Id::MAX).map(entry).collect(),
            last: stream.last(),
            max_deleted: stream.max_deleted(),
            added: stream.added(),
            groups: stream.groups().map(group).collect(),
        }
    }
}

fn id(ms: u64, seq: u64) -> Id {
    Id { ms, seq }
}

fn borrowed(fields: &Fields) -> Vec<&[u8]> {
    fields.iter().map(Vec::as_slice).collect()
}

fn add(stream: &mut Stream, model: &mut Model, ahead: u64, fields: &Fields) {
    let wanted = match ahead {
        0 => NewId::Clock,
        1 => NewId::Next { ms: stream.last().ms },
        _ => NewId::Exact(id(stream.last().ms + 1, 3)),
    };
    let id = stream.next_id(wanted, 20).expect("an ID");
    assert!(id > model.last);
    stream.add(id, &borrowed(fields), LIMITS);
    model.add(id, fields);
}

fn name(kind: char, number: u8) -> Vec<u8> {
    format!("{kind}{number}").into_bytes()
}

/// Applies a step to a stream and to a model, and compares the results.
fn run(stream: &mut Stream, model: &mut Model, step: Step) {
    match step {
        Step::Add(ahead, fields) => add(stream, model, ahead, &fields),
        Step::AddMany(count) => {
            for number in 0..count {
                add(stream, model, u64::from(number % 3), &vec![b"name".to_vec(), vec![number]]);
            }
        }
        Step::Delete(ms, seq) => delete(stream, model, id(ms, seq)),
        Step::DeleteRange(ms, count) => {
            let ids: Vec<Id> =
                model.entries.range(id(ms, 0)..).map(|(id, _)| *id).take(count as usize).collect();
            ids.into_iter().for_each(|id| delete(stream, model, id));
        }
        Step::Trim(count, is_approximate, limit) => {
            let limit = if is_approximate { limit } else { 0 };
            let trimmed = stream.trim(Trim { keep: Keep::Newest(count), is_approximate, limit }).entries;
            let due = model.entries.len().saturating_sub(count as usize) as u64;
            assert!(if is_approximate { trimmed <= due } else { trimmed == due });
            assert!(limit == 0 || trimmed <= limit);
            (0..trimmed).for_each(|_| drop(model.entries.pop_first()));
        }
        Step::TrimBelow(ms, is_approximate) => {
            let trimmed = stream.trim(Trim { keep: Keep::From(id(ms, 0)), is_approximate, limit: 0 }).entries;
            let due = model.entries.range(..id(ms, 0)).count() as u64;
            assert!(if is_approximate { trimmed <= due } else { trimmed == due });
            (0..trimmed).for_each(|_| drop(model.entries.pop_first()));
        }
        Step::Continue(behind) => {
            let least = model.entries.last_key_value().map_or(Id::MIN, |(id, _)| *id);
            let last = id(least.ms + behind / 2, least.seq + behind % 2);
            stream.continue_from(last, None, None);
            model.last = last;
        }
        Step::CreateGroup(group, ms) => {
            let created = stream.create_group(&name('g', group), id(ms, 0), None);
            assert_eq!(created, !model.groups.contains_key(&name('g', group)));
            model.groups.entry(name('g', group)).or_insert((id(ms, 0), BTreeMap::new()));
        }
        Step::DeleteGroup(group) => {
            assert_eq!(
                stream.delete_group(&name('g', group)).is_some(),
                model.groups.remove(&name('g', group)).is_some()
            );
        }
        Step::Deliver(group, consumer, count, acknowledging) => {
            let Some((last, pending)) = model.groups.get_mut(&name('g', group)) else { return };
            let group = name('g', group);
            let found = stream.group(&group).expect("the model has it");
            let ids: Vec<Id> = stream.undelivered(found).take(count).map(|entry| entry.id()).collect();
            let behind = model.entries.range(last.next().expect("small IDs")..);
            assert!(behind.map(|(id, _)| id).take(count).eq(&ids));
            assert_eq!(stream.has_undelivered(found), !ids.is_empty());
            assert!(stream.deliver(&group, &name('c', consumer), &ids, acknowledging, 5).is_some());
            *last = ids.last().copied().unwrap_or(*last);
            if acknowledging {
                pending.extend(ids.iter().map(|id| (*id, name('c', consumer))));
            }
        }
        Step::Acknowledge(group, ms) => {
            let Some((_, pending)) = model.groups.get_mut(&name('g', group)) else { return };
            let found = stream.group_mut(&name('g', group)).expect("the model has it");
            let id = pending.range(id(ms, 0)..).next().map_or(id(ms, 0), |(id, _)| *id);
            assert_eq!(found.acknowledge(id), pending.remove(&id).is_some());
        }
        Step::DeleteConsumer(group, consumer) => {
            let Some((_, pending)) = model.groups.get_mut(&name('g', group)) else { return };
            let found = stream.group_mut(&name('g', group)).expect("the model has it");
            let before = pending.len();
            pending.retain(|_, owner| *owner != name('c', consumer));
            assert_eq!(found.delete_consumer(&name('c', consumer)).unwrap_or(0), before - pending.len());
        }
    }
}

fn delete(stream: &mut Stream, model: &mut Model, id: Id) {
    let was_there = model.entries.remove(&id).is_some();
    assert_eq!(stream.delete(id), was_there);
    if was_there {
        model.max_deleted = model.max_deleted.max(id);
    }
}

fn check(stream: &Stream, model: &Model) {
    assert_eq!(Model::of(stream), *model);
    assert_eq!(stream.len(), model.entries.len());
    assert_eq!(stream.first(), model.entries.first_key_value().map_or(Id::MIN, |(id, _)| *id));
    assert_eq!(stream.last_entry(), model.entries.last_key_value().map(|(id, _)| *id));
    for (from, to) in [(0, 70), (3, 21), (20, 20), (21, 3), (22, 70)] {
        let (from, to) = (id(from, 0), id(to, 1));
        let expected: Vec<Id> =
            if from <= to { model.entries.range(from..=to).map(|(id, _)| *id).collect() } else { Vec::new() };
        let forward: Vec<Id> = stream.range(from, to).map(|entry| entry.id()).collect();
        let mut backward: Vec<Id> = stream.range_back(from, to).map(|entry| entry.id()).collect();
        backward.reverse();
        assert_eq!((&forward, &backward), (&expected, &expected), "{from} to {to}");
    }
    assert!(stream.state.blocks.iter().all(|block| block.live() > 0), "no block is empty");
    assert!(stream.state.blocks.iter().is_sorted_by(|one, other| one.last() < other.first()));
}

fn decoded(form: &[u8]) -> Stream {
    let mut cursor = Cursor::new(form);
    let read = Stream::decode(&mut cursor).expect("what was encoded decodes");
    assert!(cursor.is_empty());
    read
}

fn encoded(stream: &Stream) -> Vec<u8> {
    let mut form = Vec::new();
    stream.encode(&mut form);
    form
}

/// Joins the parts that a snapshot has written.
fn put_together(pieces: Pieces) -> Stream {
    let SnapshotForm::Pieces { decode, join } = Stream::SNAPSHOT_FORM else { panic!("it has parts") };
    let mut parts = BTreeMap::new();
    for piece in pieces.into_inner() {
        let mut bytes = Cursor::new(&piece);
        while !bytes.is_empty() {
            let Some(Form::Part(part)) = form::decode(&mut bytes) else { panic!("not a part") };
            let object = decode(&mut bytes, part.count).expect("an element");
            assert!(parts.insert(part.place, object).is_none());
        }
    }
    let object = join(parts.into_values().collect()).expect("all parts are there");
    let Object::Stream(stream) = object else { panic!("it is a stream") };
    stream
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_stream_behaves_as_a_map(steps in prop::collection::vec(step(), 0..60)) {
        let (mut stream, mut model) = (Stream::default(), Model::default());
        for step in steps {
            run(&mut stream, &mut model, step);
            check(&stream, &model);
        }
        // Equal streams have equal digests regardless of their history, and the snapshot form decodes.
        let read = decoded(&encoded(&stream));
        check(&read, &model);
        prop_assert_eq!(read.digest(), stream.digest());
        prop_assert_eq!(encoded(&read), encoded(&stream));
        let mut fresh = Stream::default();
        for (id, fields) in &model.entries {
            fresh.add(*id, &borrowed(fields), NodeLimits { entries: 0, bytes: 0 });
        }
        let state = &mut fresh.state;
        (state.last, state.max_deleted, state.added) = (model.last, model.max_deleted, model.added);
        state.groups = read.state.groups.clone();
        prop_assert_eq!(fresh.digest(), stream.digest());
    }

    #[test]
    fn a_snapshot_and_a_copy_hold_what_was_there(
        before in prop::collection::vec(step(), 0..60),
        during in prop::collection::vec(prop_oneof![3 => step().prop_map(Some), 1 => Just(None)], 0..60),
    ) {
        let (mut stream, mut model) = (Stream::default(), Model::default());
        before.into_iter().for_each(|step| run(&mut stream, &mut model, step));
        let (then, copy) = (model.clone(), stream.copy());
        stream.begin_capture(7);
        let mut pieces = Pieces::default();
        let mut is_more = true;
        for step in during {
            match step {
                Some(step) => run(&mut stream, &mut model, step),
                None if is_more => is_more = stream.capture_step(&mut pieces),
                None => {}
            }
        }
        while is_more {
            is_more = stream.capture_step(&mut pieces);
        }
        prop_assert!(!stream.is_captured() && pieces.ended == 1);
        let read = put_together(pieces);
        check(&read, &then);
        check(&copy, &then);
        check(&stream, &model);
        prop_assert_eq!(read.digest(), copy.digest());
    }

    #[test]
    fn any_bytes_decode_to_a_sound_stream_or_are_refused(bytes in damage::bytes(100)) {
        if let Some(read) = Stream::decode(&mut Cursor::new(&bytes)) {
            check(&read, &Model::of(&read));
        }
    }

    #[test]
    fn damaged_streams_decode_to_a_sound_stream_or_are_refused(
        steps in prop::collection::vec(step(), 0..20),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut stream, mut model) = (Stream::default(), Model::default());
        steps.into_iter().for_each(|step| run(&mut stream, &mut model, step));
        let mut form = encoded(&stream);
        for (at, byte) in damage {
            let at = at.index(form.len());
            form[at] = byte;
        }
        for form in [&form[..], &form[..cut.index(form.len())]] {
            if let Some(read) = Stream::decode(&mut Cursor::new(form)) {
                check(&read, &Model::of(&read));
                prop_assert_eq!(decoded(&encoded(&read)).digest(), read.digest());
            }
        }
    }
}

#[test]
fn what_takes_long_to_free_is_left_to_the_caller() {
    let mut stream = Stream::default();
    for ms in 1..=20_000 {
        stream.add(id(ms, 0), &[b"name", b"value"], NodeLimits::DEFAULT);
    }
    for name in [&b"small"[..], b"large"] {
        assert!(stream.create_group(name, Id::MIN, None));
        let count = if name == b"small" { 100 } else { 20_000 };
        let ids: Vec<Id> = (1..=count).map(|ms| id(ms, 0)).collect();
        stream.deliver(name, b"consumer", &ids, true, 1);
        let group = stream.delete_group(name).expect("it is there");
        assert_eq!((group.pending(), group.is_large()), (count as usize, name == b"large"));
    }
    assert!(stream.delete_group(b"small").is_none());
    let exact = |keep| Trim { keep, is_approximate: false, limit: 0 };
    let few = stream.trim(exact(Keep::Newest(19_000)));
    assert_eq!((few.entries, few.is_large()), (1_000, false));
    let many = stream.trim(exact(Keep::Newest(150)));
    assert_eq!((many.entries, many.is_large()), (18_850, true));
    assert_eq!((stream.len(), stream.first()), (150, id(19_851, 0)));
    assert!(!stream.trim(exact(Keep::From(Id::MAX))).is_large());
    assert!(stream.has_no_entries());
}

#[test]
fn a_block_is_full_at_the_limits_of_redis() {
    let mut stream = Stream::default();
    for ms in 1..=250 {
        stream.add(id(ms, 0), &[b"name", b"value"], NodeLimits::DEFAULT);
    }
    assert_eq!(stream.blocks(), 3, "100 entries each");
    let approximate = |keep| Trim { keep, is_approximate: true, limit: 0 };
    assert_eq!(
        stream.trim(approximate(Keep::Newest(151))).entries,
        0,
        "99 are too many by less than a block"
    );
    assert_eq!(stream.trim(approximate(Keep::Newest(150))).entries, 100);
    assert_eq!(stream.trim(approximate(Keep::From(id(200, 0)))).entries, 0);
    assert_eq!(stream.trim(approximate(Keep::From(id(201, 0)))).entries, 100);
    let large = vec![b'x'; 3000];
    for ms in 1001..=1004 {
        stream.add(id(ms, 0), &[b"name", &large], NodeLimits::DEFAULT);
    }
    assert_eq!(stream.blocks(), 4, "two large ones do not share a block");
}

#[test]
fn a_million_small_entries_take_few_bytes_each() {
    let mut stream = Stream::default();
    for ms in 0..100_000_u64 {
        let (user, price) = (format!("user:{}", ms % 1000), (ms % 977).to_string());
        let at = id(1_700_000_000_000 + ms, 0);
        let fields: [&[u8]; 6] = [b"user", user.as_bytes(), b"price", price.as_bytes(), b"side", b"buy"];
        stream.add(at, &fields, NodeLimits::DEFAULT);
    }
    let bytes: usize = stream.state.blocks.iter().map(|block| block.used() + 96).sum();
    assert!(bytes < 23 * 100_000, "{bytes} bytes");
}

#[test]
fn what_is_left_of_the_ids_is_used() {
    let mut stream = Stream::default();
    stream.continue_from(id(u64::MAX, u64::MAX - 1), None, None);
    assert_eq!(stream.next_id(NewId::Clock, 5), Ok(Id::MAX));
    assert_eq!(stream.next_id(NewId::Next { ms: u64::MAX }, 5), Ok(Id::MAX));
    stream.add(Id::MAX, &[b"name", b"value"], LIMITS);
    assert_eq!(stream.next_id(NewId::Clock, 5), Err(AddError::Exhausted));
    assert!(stream.contains(Id::MAX) && stream.range(Id::MAX, Id::MAX).count() == 1);
    let mut stream = Stream::default();
    stream.continue_from(id(7, u64::MAX), None, None);
    assert_eq!(stream.next_id(NewId::Clock, 7), Ok(id(8, 0)));
    assert_eq!(stream.next_id(NewId::Next { ms: 7 }, 7), Err(AddError::NotGreater));
    assert_eq!(stream.next_id(NewId::Exact(id(7, 5)), 7), Err(AddError::NotGreater));
}
