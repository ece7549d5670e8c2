//! Secrets of epochs, and their commitments.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use std::fmt;

/// Length of a secret, a commitment and a key, in bytes.
pub const SECRET_BYTES: usize = 32;

/// Maximum length of a client seed, in bytes.
pub const CLIENT_SEED_BYTES_MAX: usize = 256;

/// 32 random bytes that all draws of an epoch follow from. They predict every draw, so reveal them
/// only after the epoch.
///
/// ```
/// use tidemark_pool::Secret;
///
/// let secret = Secret::new([7; 32]);
/// assert_eq!(format!("{secret:?}"), "Secret(hidden)");
/// // What is published beforehand: anybody can compare, once the secret is shown.
/// assert_eq!(
///     secret.commitment().to_string(),
///     "4bb06f8e4e3a7715d201d573d0aa423762e55dabd61a2c02278fa56cc6d294e0",
/// );
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// The secret; if sealed, its commitment.
    bytes: [u8; SECRET_BYTES],
    is_sealed: bool,
}

impl Secret {
    /// Creates a secret from bytes, which must be random, for example from the operating system.
    pub fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        Self { bytes, is_sealed: false }
    }

    /// Creates a sealed secret: only its commitment is known. An auditor uses it for an epoch that
    /// is not over. No draws follow from it.
    pub fn sealed(commitment: Commitment) -> Self {
        Self { bytes: commitment.0, is_sealed: true }
    }

    /// Returns whether only the commitment is known.
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// Returns the SHA-256 of the secret, which is published before the epoch.
    pub fn commitment(&self) -> Commitment {
        if self.is_sealed { Commitment(self.bytes) } else { Commitment(Sha256::digest(self.bytes).into()) }
    }

    /// Returns the bytes, for the log and for auditors; if sealed, those of the commitment.
    pub fn reveal(&self) -> &[u8; SECRET_BYTES] {
        &self.bytes
    }

    /// Returns the key of the epoch's numbers: the secret itself or, with a client seed,
    /// HMAC-SHA256 of the seed under the secret. If the commitment came before the seed, neither
    /// side alone chose the draws.
    pub fn key(&self, client_seed: &[u8]) -> [u8; SECRET_BYTES] {
        if client_seed.is_empty() {
            return self.bytes;
        }
        let mut mac =
            <Hmac<Sha256> as Mac>::new_from_slice(&self.bytes).expect("HMAC takes keys of any length");
        mac.update(client_seed);
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// SHA-256 of a [`Secret`]; displayed as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Commitment(pub [u8; SECRET_BYTES]);

impl fmt::Display for Commitment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_the_secret_or_its_hmac_of_the_clients_seed() {
        let secret = Secret::new([0x0b; 32]);
        assert_eq!(&secret.key(b""), secret.reveal());
        let hex = Commitment(secret.key(b"Hi There")).to_string();
        assert_eq!(hex, "198a607eb44bfbc69903a0f1cf2bbdc5ba0aa3f3d9ae3c1c7a3b1696a0b68cf7");
    }

    #[test]
    fn a_sealed_secret_has_the_commitment_of_the_one_it_stands_for() {
        let secret = Secret::new([7; 32]);
        let sealed = Secret::sealed(secret.commitment());
        assert_eq!(sealed.commitment(), secret.commitment());
        assert!(sealed.is_sealed() && sealed != secret);
    }
}
