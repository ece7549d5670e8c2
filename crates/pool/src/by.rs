//! Identity of a caller: the user and the request ID.

use crate::refusal::Refusal;

/// Maximum length of a user name or a request ID, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The user and the request that a draw is made for. Anonymous by default.
///
/// ```
/// use tidemark_pool::By;
///
/// let by = By { user: Some(b"mira"), ..By::request(b"order 17") };
/// assert_eq!(by.request, Some(&b"order 17"[..]));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct By<'a> {
    /// User that the draws belong to: 1 to [`NAME_BYTES_MAX`] bytes.
    pub user: Option<&'a [u8]>,
    /// Request ID (an idempotency key), 1 to [`NAME_BYTES_MAX`] bytes. A repeated request gets its
    /// first answer again, and nothing is drawn.
    pub request: Option<&'a [u8]>,
    /// Time of the call. Milliseconds since 1970-01-01 UTC.
    pub now_ms: u64,
}

impl<'a> By<'a> {
    /// Returns a caller with this request ID and no user.
    pub fn request(id: &'a [u8]) -> Self {
        Self { request: Some(id), ..Self::default() }
    }

    pub(crate) fn is_anonymous(&self) -> bool {
        self.user.is_none() && self.request.is_none()
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let check = |what, name: Option<&[u8]>| match name.map(<[u8]>::len) {
            Some(bytes) if !(1..=NAME_BYTES_MAX).contains(&bytes) => {
                Err(Refusal::NameLength { what, bytes, max: NAME_BYTES_MAX })
            }
            _ => Ok(()),
        };
        check("user", self.user)?;
        check("request", self.request)
    }
}
