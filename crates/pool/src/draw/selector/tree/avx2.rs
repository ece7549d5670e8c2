//! Walks through the wide tree for processors with AVX2: a node is four registers of four sums.
//!
//! Four calls need `unsafe`: a function compiled for AVX2 may only run on a processor with AVX2.
//! Only [`Avx2::detect`] creates an [`Avx2`], so the value proves that the processor has it, and
//! the calls are its methods. Everything else is safe code. The compiler turns four adjacent values
//! that fill a register into one load, and four that are extracted from one into one store.
#![allow(unsafe_code, reason = "calls what is compiled for AVX2, behind the proof that the processor has it")]

use super::node::{CHILD_BITS, CHILDREN, Node};
use super::walk::SEVERAL;
use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m256i, _mm256_andnot_si256, _mm256_cmpgt_epi64, _mm256_extract_epi64, _mm256_movemask_epi8,
    _mm256_packs_epi16, _mm256_packs_epi32, _mm256_set1_epi64x, _mm256_setr_epi64x, _mm256_sub_epi64,
};

/// Proof that the processor has AVX2 and POPCNT.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

#[expect(clippy::unused_self, reason = "it is the proof")]
impl Avx2 {
    /// Returns the proof if the processor has both.
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt")).then_some(Self(()))
    }

    /// As [`walk::select`](super::walk::select).
    #[inline]
    pub(super) fn select(self, levels: &[Vec<Node>], point: u64) -> usize {
        // SAFETY: `self` proves that the processor has the features that the function is compiled
        // for.
        unsafe { select(levels, point) }
    }

    /// As [`walk::select_several`](super::walk::select_several).
    #[inline]
    pub(super) fn select_several(self, levels: &[Vec<Node>], points: &[u64; SEVERAL]) -> [usize; SEVERAL] {
        // SAFETY: `self` proves that the processor has the features that the function is compiled
        // for.
        unsafe { select_several(levels, points) }
    }

    /// As [`walk::take`](super::walk::take).
    #[inline]
    pub(super) fn take(self, levels: &mut [Vec<Node>], point: u64, amount: u64) -> usize {
        // SAFETY: `self` proves that the processor has the features that the function is compiled
        // for.
        unsafe { take(levels, point, amount) }
    }

    /// As [`walk::add`](super::walk::add).
    #[inline]
    pub(super) fn add(self, levels: &mut [Vec<Node>], index: usize, difference: u64) {
        // SAFETY: `self` proves that the processor has the features that the function is compiled
        // for.
        unsafe { add(levels, index, difference) }
    }
}

/// Lanes of a node, in order.
type Lanes = [__m256i; 4];

// The searches keep point + 1 in every lane: a sum below that is at most the point.

#[target_feature(enable = "avx2,popcnt")]
fn select(levels: &[Vec<Node>], point: u64) -> usize {
    let mut behind = _mm256_set1_epi64x(point as i64 + 1);
    let mut index = 0;
    for level in levels {
        let sums = level[index].sums();
        let less = lanes_below(&load(sums), behind);
        let child = count(&less);
        behind = _mm256_sub_epi64(behind, _mm256_set1_epi64x(sums[child] as i64));
        index = index * CHILDREN + child;
    }
    index
}

#[target_feature(enable = "avx2,popcnt")]
fn select_several(levels: &[Vec<Node>], points: &[u64; SEVERAL]) -> [usize; SEVERAL] {
    let (mut points, mut items) = (*points, [0; SEVERAL]);
    for level in levels {
        for (point, index) in points.iter_mut().zip(&mut items) {
            let sums = level[*index].sums();
            let child = count(&lanes_below(&load(sums), _mm256_set1_epi64x(*point as i64 + 1)));
            *point -= sums[child];
            *index = *index * CHILDREN + child;
        }
    }
    items
}

#[target_feature(enable = "avx2,popcnt")]
fn take(levels: &mut [Vec<Node>], point: u64, amount: u64) -> usize {
    let mut behind = _mm256_set1_epi64x(point as i64 + 1);
    let amount = _mm256_set1_epi64x(amount as i64);
    let mut index = 0;
    for level in levels {
        let sums = level[index].sums_mut();
        let lanes = load(sums);
        let less = lanes_below(&lanes, behind);
        let child = count(&less);
        behind = _mm256_sub_epi64(behind, _mm256_set1_epi64x(sums[child] as i64));
        // The sums after the child are those that are not less. This depends neither on the count
        // nor on the child.
        for ((sums, lanes), less) in sums.as_chunks_mut().0.iter_mut().zip(lanes).zip(less) {
            store(sums, _mm256_sub_epi64(lanes, _mm256_andnot_si256(less, amount)));
        }
        index = index * CHILDREN + child;
    }
    index
}

#[target_feature(enable = "avx2,popcnt")]
fn add(levels: &mut [Vec<Node>], mut index: usize, difference: u64) {
    for level in levels.iter_mut().rev() {
        let child = index % CHILDREN;
        index >>= CHILD_BITS;
        level[index].add(child, difference);
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(sums: &[u64; CHILDREN]) -> Lanes {
    let four = |first: usize| {
        let [a, b, c, d] = [sums[first], sums[first + 1], sums[first + 2], sums[first + 3]];
        _mm256_setr_epi64x(a as i64, b as i64, c as i64, d as i64)
    };
    [four(0), four(4), four(8), four(12)]
}

#[target_feature(enable = "avx2")]
#[inline]
fn store(sums: &mut [u64; 4], lanes: __m256i) {
    *sums = [
        _mm256_extract_epi64::<0>(lanes) as u64,
        _mm256_extract_epi64::<1>(lanes) as u64,
        _mm256_extract_epi64::<2>(lanes) as u64,
        _mm256_extract_epi64::<3>(lanes) as u64,
    ];
}

/// Returns all ones in the lanes that are less than `behind`.
#[target_feature(enable = "avx2")]
#[inline]
fn lanes_below(lanes: &Lanes, behind: __m256i) -> Lanes {
    let [a, b, c, d] = *lanes;
    [
        _mm256_cmpgt_epi64(behind, a),
        _mm256_cmpgt_epi64(behind, b),
        _mm256_cmpgt_epi64(behind, c),
        _mm256_cmpgt_epi64(behind, d),
    ]
}

/// Returns the number of lanes after the first that are all ones.
#[target_feature(enable = "avx2,popcnt")]
#[inline]
fn count(lanes: &Lanes) -> usize {
    let [a, b, c, d] = *lanes;
    // Two bytes a lane. The first lane's bytes come first; the order of the others does not matter.
    let bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    (_mm256_movemask_epi8(bytes) as u32 >> 2).count_ones() as usize / 2
}
