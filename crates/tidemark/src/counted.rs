//! Numbers with the nouns that they count.

/// Returns the noun for a count: `pool` for one, `pools` for any other number.
pub(crate) fn plural(count: u64, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

/// Returns a count with its noun: `1 pool`, `2 pools`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {}", plural(count, noun))
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn only_one_is_singular() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "pool")), ["0 pools", "1 pool", "2 pools"]);
    }
}
