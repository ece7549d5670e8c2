use super::*;
use crate::persist::damage;
use proptest::prelude::*;

impl List {
    fn elements(&self) -> Vec<Vec<u8>> {
        self.iter_from(0).map(<[u8]>::to_vec).collect()
    }

    fn check(&self) {
        assert!(self.chunks.iter().all(|chunk| chunk.len() > 0), "no chunk is empty");
        assert!(self.chunks.iter().all(|chunk| chunk.len() == 1 || chunk.used() <= CHUNK_BYTES));
        assert_eq!(self.chunks.iter().map(Chunk::len).sum::<usize>(), self.len);
        for chunk in &self.chunks {
            assert_eq!(chunk_index(chunk, chunk.end()), chunk.len());
        }
        let mut back: Vec<Vec<u8>> = self.iter_back().map(<[u8]>::to_vec).collect();
        back.reverse();
        assert_eq!(back, self.elements(), "both directions see the same elements");
    }
}

fn of(elements: &[Vec<u8>]) -> List {
    let mut list = List::default();
    elements.iter().for_each(|element| list.push(End::Back, element));
    list
}

#[derive(Debug, Clone)]
enum Step {
    Push(bool, Vec<u8>),
    PushMany(bool, u8, usize),
    Pop(bool),
    Rotate(bool, bool),
    Set(i64, Vec<u8>),
    Insert(bool, Vec<u8>, Vec<u8>),
    Remove(i64, Vec<u8>),
    Trim(usize, usize),
}

/// Few different values, of sizes around the limits of the packed form.
fn element() -> impl Strategy<Value = Vec<u8>> {
    let size = prop_oneof![
        8 => 0..8_usize,
        2 => 250..260_usize,
        2 => 1000..1100_usize,
        1 => 1600..1700_usize,
        1 => 8000..9000_usize
    ];
    (size, 0..4_u8).prop_map(|(size, byte)| vec![byte; size])
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<bool>(), element()).prop_map(|(front, element)| Step::Push(front, element)),
        2 => (any::<bool>(), any::<u8>(), 0..300_usize).prop_map(|(front, byte, count)| Step::PushMany(front, byte, count)),
        2 => any::<bool>().prop_map(Step::Pop),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(from, to)| Step::Rotate(from, to)),
        3 => (-400..400_i64, element()).prop_map(|(index, element)| Step::Set(index, element)),
        3 => (any::<bool>(), element(), element()).prop_map(|(behind, pivot, element)| Step::Insert(behind, pivot, element)),
        1 => (-3..3_i64, element()).prop_map(|(count, element)| Step::Remove(count, element)),
        1 => (0..20_usize, 0..20_usize).prop_map(|(front, back)| Step::Trim(front, back)),
    ]
}

fn end(front: bool) -> End {
    if front { End::Front } else { End::Back }
}

fn push(model: &mut VecDeque<Vec<u8>>, front: bool, element: Vec<u8>) {
    if front { model.push_front(element) } else { model.push_back(element) }
}

fn pop(model: &mut VecDeque<Vec<u8>>, front: bool) -> Option<Vec<u8>> {
    if front { model.pop_front() } else { model.pop_back() }
}

fn remove(model: &mut VecDeque<Vec<u8>>, element: &[u8], count: i64) -> usize {
    let before = model.len();
    let mut left = if count == 0 { usize::MAX } else { count.unsigned_abs() as usize };
    let mut keep = |other: &Vec<u8>| {
        let goes = other == element && left > 0;
        left -= usize::from(goes);
        !goes
    };
    *model = if count < 0 {
        let mut kept: VecDeque<_> = std::mem::take(model).into_iter().rev().filter(&mut keep).collect();
        kept.make_contiguous().reverse();
        kept
    } else {
        std::mem::take(model).into_iter().filter(&mut keep).collect()
    };
    before - model.len()
}

/// Applies a step to a list and to a deque of vectors, and compares the results.
fn run(list: &mut List, model: &mut VecDeque<Vec<u8>>, step: Step) {
    match step {
        Step::Push(front, element) => {
            list.push(end(front), &element);
            push(model, front, element);
        }
        Step::PushMany(front, byte, count) => {
            for n in 0..count {
                let element = vec![byte; n % 40];
                list.push(end(front), &element);
                push(model, front, element);
            }
        }
        Step::Pop(front) => assert_eq!(list.pop(end(front), <[u8]>::to_vec), pop(model, front)),
        Step::Rotate(from, to) => {
            let moved = pop(model, from);
            moved.iter().for_each(|element| push(model, to, element.clone()));
            assert_eq!(list.rotate(end(from), end(to)), moved);
        }
        Step::Set(index, element) => {
            let at = if index < 0 { index + model.len() as i64 } else { index };
            let slot = usize::try_from(at).ok().and_then(|at| model.get_mut(at));
            assert_eq!(list.get(index), slot.as_deref().map(Vec::as_slice));
            assert_eq!(list.set(index, &element), slot.is_some());
            if let Some(slot) = slot {
                *slot = element;
            }
        }
        Step::Insert(behind, pivot, element) => {
            let at = model.iter().position(|other| *other == pivot);
            assert_eq!(list.insert_beside(&pivot, behind, &element), at.is_some());
            if let Some(at) = at {
                model.insert(at + usize::from(behind), element);
            }
        }
        Step::Remove(count, element) => {
            assert_eq!(list.remove(&element, count), remove(model, &element, count));
        }
        Step::Trim(front, back) => {
            list.trim(front..model.len().saturating_sub(back));
            model.truncate(model.len().saturating_sub(back));
            model.drain(..front.min(model.len()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_list_behaves_as_a_deque_of_byte_strings(steps in proptest::collection::vec(step(), 0..60)) {
        let (mut list, mut model) = (List::default(), VecDeque::new());
        for step in steps {
            run(&mut list, &mut model, step);
            list.check();
            prop_assert_eq!(list.elements(), Vec::from_iter(model.clone()));
        }
        let from = model.len() / 3;
        prop_assert!(list.iter_from(from).eq(model.iter().skip(from).map(Vec::as_slice)));
        // Equal lists have equal digests regardless of their history, and the snapshot form
        // decodes.
        let fresh = of(&list.elements());
        prop_assert_eq!(fresh.digest(), list.digest());
        let mut form = Vec::new();
        list.encode(&mut form);
        let mut cursor = Cursor::new(&form);
        let read = List::decode(&mut cursor);
        prop_assert_eq!(read.is_some(), !list.is_empty());
        if let Some(read) = read {
            prop_assert!(cursor.is_empty());
            prop_assert_eq!(read.elements(), list.elements());
        }
    }

    #[test]
    fn any_bytes_decode_to_what_they_are_or_are_refused(bytes in damage::bytes(100)) {
        let encode = |list: &List| {
            let mut form = Vec::new();
            list.encode(&mut form);
            form
        };
        damage::check(&bytes, List::decode, encode, List::elements)?;
    }
}

#[test]
fn a_digest_depends_on_order_and_on_where_elements_end() {
    let digest = |elements: &[&str]| {
        of(&elements.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>()).digest()
    };
    assert_ne!(digest(&["a", "b"]), digest(&["b", "a"]));
    assert_ne!(digest(&["ab", ""]), digest(&["a", "b"]));
}

#[test]
fn an_element_that_has_become_shorter_leaves_no_more_room_than_a_chunk_has() {
    let mut list = of(&[vec![0; CHUNK_BYTES + 80]]);
    assert!(list.set(0, &vec![1; CHUNK_BYTES - 11]));
    list.check();
    for end in [End::Front, End::Back] {
        list.push(end, b"");
        list.check();
    }
    assert_eq!(list.len(), 3);
}

#[test]
fn a_queue_that_wanders_keeps_its_memory() {
    let mut list = of(&vec![b"element".to_vec(); 20]);
    for _ in 0..10_000 {
        list.rotate(End::Back, End::Front);
    }
    assert_eq!((list.chunks.len(), list.len()), (1, 20));
    assert!(!list.chunks[0].is_full_size(), "180 bytes of elements stay in a small buffer");
}

#[test]
fn a_list_that_was_long_gives_its_memory_back() {
    let mut list = of(&vec![b"element".to_vec(); 100_000]);
    list.trim(0..3);
    assert!(list.chunks.capacity() < 64 && !list.chunks[0].is_full_size());
    let mut list = of(&vec![b"element".to_vec(); 100_000]);
    while list.len() > 3 {
        list.pop(End::Front, |_| ());
    }
    assert!(list.chunks.capacity() < 64 && !list.chunks[0].is_full_size());
}
