//! What is wrong with a record.

/// Where in a record it is, and what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// Byte in the record, from 0.
    pub at: usize,
    /// In words.
    pub cause: String,
    /// What to do about it.
    pub hint: Option<&'static str>,
}

impl Wrong {
    /// Because of `cause`, at byte `at`.
    pub fn new(at: usize, cause: impl Into<String>) -> Self {
        Self {
            at,
            cause: cause.into(),
            hint: None,
        }
    }

    /// The same with a way out of it.
    #[must_use]
    pub fn hint(self, hint: &'static str) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }
}

/// Some bytes of a record, to be shown: not too many, and none that a terminal should not be sent.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    const BYTES_MAX: usize = 40;
    let some = bytes[..bytes.len().min(BYTES_MAX)].escape_ascii();
    let more = if bytes.len() > BYTES_MAX { " ..." } else { "" };
    format!("\"{some}\"{more}")
}
