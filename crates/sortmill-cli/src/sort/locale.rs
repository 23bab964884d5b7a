//! Whether the environment asks for an order of text that is not that of bytes, which is the one there is here.

use std::ffi::OsString;

use crate::common::note;

/// Mentions a locale other than C once, on stderr.
pub fn mention() {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    // In this order, as setlocale(3) looks.
    let named = set("LC_ALL")
        .or_else(|| set("LC_COLLATE"))
        .or_else(|| set("LANG"));
    if let Some(locale) = named.filter(|locale| !is_of_bytes(locale)) {
        let locale = locale.display();
        note(&format!(
            "lines are ordered as by LC_ALL=C, not by the locale {locale}; --locale=C silences this"
        ));
    }
}

/// Whether text in this locale is ordered by its bytes.
fn is_of_bytes(locale: &OsString) -> bool {
    let known = ["C", "POSIX", "C.UTF-8", "C.utf8"];
    known.iter().any(|name| locale == name)
}
