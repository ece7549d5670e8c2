//! Formats of catalogue files.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Format of a catalogue file.
///
/// ```
/// use tidemark_pool::file::FileFormat;
///
/// assert_eq!("yml".parse(), Ok(FileFormat::Yaml));
/// assert_eq!(FileFormat::from_path("campaigns/spring.toml"), Ok(FileFormat::Toml));
/// assert_eq!(
///     FileFormat::from_path("spring.ini").unwrap_err().to_string(),
///     "\"ini\" is no format of catalogues: use json, yaml (or yml) or toml",
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// JSON (RFC 8259).
    Json,
    /// YAML 1.2, one document, without aliases.
    Yaml,
    /// TOML 1.
    Toml,
}

impl FileFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Toml];

    /// Returns the format of a path, by its extension.
    ///
    /// # Errors
    /// If the extension is unknown or missing.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, UnknownFormat> {
        let extension = path.as_ref().extension().unwrap_or_default();
        extension.to_string_lossy().parse()
    }

    /// Maximum length of a catalogue that a server reads in one step, in bytes: a million items of
    /// JSON take about a second. Other formats take several times as long, and TOML needs far more
    /// memory than text.
    pub fn served_bytes_max(self) -> usize {
        match self {
            Self::Json => 128 << 20,
            Self::Yaml | Self::Toml => 1 << 20,
        }
    }

    /// Returns its name, which is also the usual extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Toml => "toml",
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for FileFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        match name.to_ascii_lowercase().as_str() {
            "json" => Ok(Self::Json),
            "yaml" | "yml" => Ok(Self::Yaml),
            "toml" => Ok(Self::Toml),
            _ => Err(UnknownFormat { name: name.into() }),
        }
    }
}

/// The name is not a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no format of catalogues: use json, yaml (or yml) or toml")]
pub struct UnknownFormat {
    /// The name.
    pub name: Box<str>,
}
