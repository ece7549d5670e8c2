//! Who asks for draws, and as which request.

use crate::refusal::Refusal;

/// The longest name of a user and of a request. Bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Who asks for draws, and as which request. Nobody in particular by default.
///
/// ```
/// use tidemark_pool::By;
///
/// let by = By { user: Some(b"mira"), ..By::request(b"order 17") };
/// assert_eq!(by.request, Some(&b"order 17"[..]));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct By<'a> {
    /// Whose draws they are: 1 to [`NAME_BYTES_MAX`] bytes.
    pub user: Option<&'a [u8]>,
    /// What the asker calls this request, 1 to [`NAME_BYTES_MAX`] bytes: asked again, it is answered as it was, and nothing is drawn.
    pub request: Option<&'a [u8]>,
    /// When. Milliseconds since 1970-01-01 UTC.
    pub now_ms: u64,
}

impl<'a> By<'a> {
    /// Somebody who calls the request like this.
    pub fn request(id: &'a [u8]) -> Self {
        Self { request: Some(id), ..Self::default() }
    }

    /// Whether nothing is said of who asks.
    pub(crate) fn is_nobody(&self) -> bool {
        self.user.is_none() && self.request.is_none()
    }

    /// Whether the names have lengths that names can have.
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
