//! The words that a block consists of: a writer and a reader with bounds.

/// Words that are being written.
#[derive(Debug, Default, Clone)]
pub(crate) struct Words(Vec<u64>);

impl Words {
    /// Begins words with room for `count`.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// Appends a word.
    pub(crate) fn push(&mut self, word: u64) {
        self.0.push(word);
    }

    /// Appends words.
    pub(crate) fn extend(&mut self, words: &[u64]) {
        self.0.extend_from_slice(words);
    }

    /// Appends words that are stored with the lowest byte first.
    pub(crate) fn extend_from_bytes(&mut self, words: &[[u8; 8]]) {
        self.0.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
    }

    /// Appends `count` words of zero bits and returns them.
    pub(crate) fn extend_zeroed(&mut self, count: usize) -> &mut [u64] {
        let start = self.0.len();
        self.0.resize(start + count, 0);
        &mut self.0[start..]
    }

    /// Returns the number of words.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the words so far.
    pub(crate) fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// Returns the words.
    pub(crate) fn into_vec(self) -> Vec<u64> {
        self.0
    }
}

/// A position in words that are being read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u64]);

impl<'a> Reader<'a> {
    /// Begins at the first of `words`.
    pub(crate) fn new(words: &'a [u64]) -> Self {
        Self(words)
    }

    /// Takes the next word; `None` at the end.
    #[inline]
    pub(crate) fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*word)
    }

    /// Takes `count` words; `None` if fewer are left.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u64]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Whether all words have been taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
