//! Names that may have been meant by another one.

/// Returns at most three of the names that differ from `name` by one typing error, or by two if it
/// has more than four bytes, most similar first. Respects case.
pub fn similar<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let allowed = if name.len() <= 4 { 1 } else { 2 };
    let distances = names.map(|known| (strsim::osa_distance(name, known), known));
    let mut close: Vec<(usize, &str)> = distances.filter(|&(distance, _)| distance <= allowed).collect();
    close.sort_unstable();
    close.into_iter().take(3).map(|(_, known)| known).collect()
}
