//! Extent: a thing that is enclosed by another one of its own kind.

use std::borrow::Cow;
use std::sync::Arc;

use tidemark_circuit::Extent;

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, unreachable_pub, reason = "read from the source, to prove that every scenario is covered")]
pub const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("EXT-16", "Java: null argument"),
    ("EXT-17", "Java: null argument"),
    ("EXT-23", "Java: null argument"),
    ("EXT-24", "Java: null argument"),
    ("EXT-35", "Java: null argument"),
    ("EXT-36", "Java: null argument"),
    ("EXT-37", "Java: null argument"),
    ("EXT-50", "Java: null argument"),
];

/// A minimal extent. It is equal only to itself.
#[derive(Clone, Debug)]
struct Level(Arc<(String, Option<Level>)>);

impl Level {
    fn root(part: &str) -> Self {
        Self(Arc::new((part.to_owned(), None)))
    }

    fn inner(&self, part: &str) -> Self {
        Self(Arc::new((part.to_owned(), Some(self.clone()))))
    }
}

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Extent for Level {
    fn part(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0.0)
    }

    fn enclosure(&self) -> Option<&Self> {
        self.0.1.as_ref()
    }
}

/// The innermost level of a chain of these parts.
fn chain(parts: &[&str]) -> Level {
    let root = Level::root(parts[0]);
    parts[1..].iter().fold(root, |level, part| level.inner(part))
}

/// The parts from the inside out.
fn parts(level: &Level) -> Vec<String> {
    level.iter().map(|level| level.part().into_owned()).collect()
}

fn upper(level: &Level) -> String {
    level.part().to_uppercase()
}

#[test]
fn ext_01_each_level_is_one_deeper() {
    let a = Level::root("a");
    let b = a.inner("b");
    let c = b.inner("c");
    let d = c.inner("d");
    assert_eq!([a.depth(), b.depth(), c.depth(), d.depth()], [1, 2, 3, 4]);
}

#[test]
fn ext_02_the_depth_of_a_root_is_one() {
    assert_eq!(Level::root("root").depth(), 1);
}

#[test]
fn ext_03_the_enclosure_of_a_child_is_its_parent() {
    let parent = Level::root("parent");
    assert_eq!(parent.inner("child").enclosure(), Some(&parent));
}

#[test]
fn ext_04_what_is_done_with_the_enclosure_is_done_once() {
    let mut visits = 0;
    chain(&["a", "b", "c"]).enclosure().into_iter().for_each(|_| visits += 1);
    assert_eq!(visits, 1);
}

#[test]
fn ext_05_what_is_done_with_the_enclosure_gets_the_parent() {
    let parent = Level::root("parent");
    let child = parent.inner("child");
    assert!(child.enclosure().is_some_and(|enclosure| *enclosure == parent));
}

#[test]
fn ext_06_nothing_is_done_with_the_enclosure_of_a_root() {
    let mut visits = 0;
    Level::root("root").enclosure().into_iter().for_each(|_| visits += 1);
    assert_eq!(visits, 0);
}

#[test]
fn ext_07_a_root_has_no_enclosure() {
    assert_eq!(Level::root("root").enclosure(), None);
}

#[test]
fn ext_08_an_empty_part_is_kept() {
    assert_eq!(Level::root("").part(), "");
    assert_eq!(chain(&["", "x", ""]).path(), "/x/");
}

#[test]
fn ext_09_an_extent_is_the_first_of_its_own_walk() {
    let level = chain(&["a", "b"]);
    assert_eq!(level.iter().next(), Some(&level));
}

#[test]
fn ext_10_special_characters_appear_verbatim_in_the_path() {
    assert_eq!(chain(&["a-b", "c_d!", "é/ü", "{}"]).path(), "a-b/c_d!/é/ü/{}");
}

#[test]
fn ext_11_the_extremity_of_every_level_is_the_root() {
    let root = Level::root("root");
    let child = root.inner("child");
    let grandchild = child.inner("grandchild");
    for level in [&grandchild, &child, &root] {
        assert_eq!(level.extremity(), &root);
    }
}

#[test]
fn ext_12_the_extremity_is_found_over_ten_levels() {
    let root = Level::root("0");
    let deep = (1..10).fold(root.clone(), |level, i| level.inner(&i.to_string()));
    assert_eq!(deep.depth(), 10);
    assert_eq!(deep.extremity(), &root);
}

#[test]
fn ext_13_the_extremity_of_a_root_is_itself() {
    let root = Level::root("root");
    assert_eq!(root.extremity(), &root);
}

#[test]
fn ext_14_prepending_outwards_equals_appending_inwards() {
    let level = chain(&["first", "second", "third"]);
    let outwards =
        level.fold(|level| level.part().into_owned(), |text, level| format!("{}.{text}", level.part()));
    let inwards =
        level.fold_to(|level| level.part().into_owned(), |text, level| format!("{text}.{}", level.part()));
    assert_eq!(outwards, "first.second.third");
    assert_eq!(inwards, outwards);
}

#[test]
fn ext_15_fold_to_goes_from_the_root_to_itself() {
    let text = chain(&["a", "b", "c"])
        .fold_to(|level| level.part().into_owned(), |text, level| text + "." + &level.part());
    assert_eq!(text, "a.b.c");
}

#[test]
fn ext_18_fold_to_of_a_root_only_takes_the_root() {
    let text =
        Level::root("root").fold_to(|level| level.part().into_owned(), |_, _| unreachable!("one level"));
    assert_eq!(text, "root");
}

#[test]
fn ext_19_fold_to_may_transform() {
    let text = chain(&["one", "two"]).fold_to(upper, |text, level| text + "-" + &upper(level));
    assert_eq!(text, "ONE-TWO");
}

#[test]
fn ext_20_fold_sums_numbers() {
    let number = |level: &Level| level.part().parse::<i32>().unwrap();
    let sum = chain(&["10", "20", "30"]).fold(number, |sum, level| sum + number(level));
    assert_eq!(sum, 60);
}

#[test]
fn ext_21_fold_counts_the_levels() {
    assert_eq!(chain(&["a", "b", "c"]).fold(|_| 1, |count, _| count + 1), 3);
}

#[test]
fn ext_22_fold_goes_from_itself_to_the_root() {
    let text = chain(&["a", "b", "c"])
        .fold(|level| level.part().into_owned(), |text, level| format!("{}/{text}", level.part()));
    assert_eq!(text, "a/b/c");
}

#[test]
fn ext_25_fold_of_a_root_only_takes_the_root() {
    let text = Level::root("root").fold(|level| level.part().into_owned(), |_, _| unreachable!("one level"));
    assert_eq!(text, "root");
}

#[test]
fn ext_26_a_finished_walk_stays_finished() {
    let root = Level::root("root");
    let mut walk = root.iter();
    assert_eq!(walk.next(), Some(&root));
    assert_eq!(walk.next(), None);
    assert_eq!(walk.next(), None);
}

#[test]
fn ext_27_a_walk_goes_from_the_inside_out() {
    let level = chain(&["a", "b", "c"]);
    let mut walk = level.iter().map(Extent::part);
    assert_eq!(walk.next().as_deref(), Some("c"));
    assert_eq!(walk.next().as_deref(), Some("b"));
    assert_eq!(walk.next().as_deref(), Some("a"));
    assert_eq!(walk.next(), None);
}

#[test]
fn ext_28_two_walks_are_independent() {
    let level = chain(&["a", "b"]);
    let mut first = level.iter();
    let mut second = level.iter();
    assert_eq!(first.next(), second.next());
    first.next();
    assert_eq!(first.next(), None);
    assert_eq!(second.next().map(Extent::part).as_deref(), Some("a"));
}

#[test]
fn ext_29_the_walk_of_a_root_has_one_step() {
    let root = Level::root("root");
    assert_eq!(root.iter().collect::<Vec<_>>(), [&root]);
}

#[test]
fn ext_30_siblings_are_never_visited() {
    let root = Level::root("root");
    let (left, right) = (root.inner("left"), root.inner("right"));
    assert_eq!(parts(&left), ["left", "root"]);
    assert_eq!(parts(&right), ["right", "root"]);
}

#[test]
fn ext_31_a_path_takes_a_character_as_separator() {
    assert_eq!(chain(&["x", "y"]).path_with('-'), "x-y");
}

#[test]
fn ext_32_a_path_has_slashes_unless_specified_otherwise() {
    assert_eq!(chain(&["a", "b", "c"]).path(), "a/b/c");
}

#[test]
fn ext_33_a_path_takes_a_mapper_and_a_text() {
    assert_eq!(chain(&["foo", "bar"]).path_map(upper, "->"), "FOO->BAR");
}

#[test]
fn ext_34_a_path_takes_a_mapper_and_a_character() {
    assert_eq!(chain(&["hello", "world"]).path_map(upper, '/'), "HELLO/WORLD");
}

#[test]
fn ext_38_the_path_of_a_root_is_its_part() {
    assert_eq!(Level::root("root").path(), "root");
    assert_eq!(Level::root("root").path_with("::"), "root");
}

#[test]
fn ext_39_a_path_takes_a_text_as_separator() {
    assert_eq!(chain(&["a", "b", "c"]).path_with("::"), "a::b::c");
}

#[test]
fn ext_40_a_walk_is_as_long_as_the_depth() {
    let level = chain(&["a", "b", "c", "d"]);
    assert_eq!(level.iter().count(), level.depth());
}

#[test]
fn ext_41_walks_from_further_out_are_shorter() {
    let level = chain(&["a", "b", "c"]);
    let lengths: Vec<usize> = level.iter().map(|level| level.iter().count()).collect();
    assert_eq!(lengths, [3, 2, 1]);
}

#[test]
fn ext_42_a_walk_counts_what_fold_counts() {
    let level = chain(&["a", "b", "c"]);
    assert_eq!(level.iter().count(), level.fold(|_| 1, |count, _| count + 1));
}

#[test]
fn ext_43_a_collected_walk_is_in_order() {
    assert_eq!(parts(&chain(&["a", "b", "c"])), ["c", "b", "a"]);
}

#[test]
fn ext_44_iterator_adapters_work_on_a_walk() {
    let level = chain(&["alpha", "b", "gamma"]);
    let long: Vec<String> =
        level.iter().map(|level| level.part().to_uppercase()).filter(|part| part.len() > 1).collect();
    assert_eq!(long, ["GAMMA", "ALPHA"]);
}

#[test]
fn ext_45_all_ways_of_counting_agree() {
    for length in 1..20 {
        let level = chain(&vec!["x"; length]);
        let mut steps = 0;
        let mut walk = level.iter();
        while walk.next().is_some() {
            steps += 1;
        }
        assert_eq!(level.depth(), length);
        assert_eq!(level.iter().count(), length);
        assert_eq!(level.fold(|_| 1, |count, _| count + 1), length);
        assert_eq!(steps, length);
    }
}

#[test]
fn ext_46_a_chain_may_have_a_hundred_levels_below_the_root() {
    let deep = (1..=100).fold(Level::root("level0"), |level, i| level.inner(&format!("level{i}")));
    assert_eq!(deep.depth(), 101);
    assert_eq!(deep.extremity().part(), "level0");
}

#[test]
fn ext_47_a_level_lies_within_a_distant_enclosure() {
    let root = Level::root("root");
    let deep = (0..10).fold(root.clone(), |level, i| level.inner(&i.to_string()));
    assert!(deep.within(&root));
}

#[test]
fn ext_48_a_level_does_not_lie_within_what_it_encloses() {
    let parent = Level::root("parent");
    let child = parent.inner("child");
    assert!(!parent.within(&child));
    assert!(!parent.within(&child.inner("grandchild")));
}

#[test]
fn ext_49_a_level_lies_within_its_parent() {
    let parent = Level::root("parent");
    assert!(parent.inner("child").within(&parent));
}

#[test]
fn ext_51_a_level_does_not_lie_within_itself() {
    let level = chain(&["a", "b"]);
    assert!(!level.within(&level));
    assert!(!level.extremity().within(level.extremity()));
}

#[test]
fn ext_52_levels_of_unrelated_trees_do_not_lie_within_each_other() {
    let (left, right) = (chain(&["a", "b"]), chain(&["a", "b"]));
    assert!(!left.within(&right) && !right.within(&left));
    assert!(!left.within(right.extremity()) && !right.within(left.extremity()));
}
