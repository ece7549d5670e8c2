//! Likely corrections of unknown names.

/// Minimum similarity for a suggestion; 1 is equal.
const SIMILAR: f64 = 0.75;

/// Maximum length of a name that is compared, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Names used elsewhere, and ours.
const SYNONYMS: [(&str, &str); 19] = [
    ("amount", "quantity"),
    ("catalogue", "items"),
    ("chance", "weight"),
    ("count", "quantity"),
    ("fixed_odds", "fixed-odds"),
    ("item_id", "id"),
    ("key", "id"),
    ("limit", "quantity"),
    ("name", "id"),
    ("no_prize", "no-prize"),
    ("none", "no-prize"),
    ("nothing", "no-prize"),
    ("odds", "weight"),
    ("per_unit", "per-unit"),
    ("prizes", "items"),
    ("probability", "weight"),
    ("raffle", "per-unit"),
    ("renormalize", "renormalise"),
    ("stock", "quantity"),
];

/// Returns the most similar known name, if any is similar enough.
pub(super) fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str> + Clone) -> Option<&'n str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let synonym = SYNONYMS.iter().find(|(other, _)| *other == name).map(|(_, ours)| *ours);
    let same = known.clone().into_iter().find(|candidate| Some(*candidate) == synonym);
    same.or_else(|| {
        known
            .into_iter()
            .map(|candidate| (strsim::jaro_winkler(&name, candidate), candidate))
            .filter(|(similarity, _)| *similarity >= SIMILAR)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, candidate)| candidate)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_other_peoples_names_are_recognised() {
        let keys = ["id", "weight", "quantity"];
        assert_eq!(nearest("wieght", keys), Some("weight"));
        assert_eq!(nearest("Quantity", keys), Some("quantity"));
        assert_eq!(nearest("probability", keys), Some("weight"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest(&"weight".repeat(1_000_000), keys), None);
    }
}
