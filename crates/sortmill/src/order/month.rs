//! Names of months (`-M`): three letters behind blanks, small or capital; one byte, 0 for what is none.

use super::fields::without_blanks;
use super::window::Window;

const NAMES: [&[u8; 3]; 12] = [
    b"JAN", b"FEB", b"MAR", b"APR", b"MAY", b"JUN", b"JUL", b"AUG", b"SEP", b"OCT", b"NOV", b"DEC",
];

/// The month that `part` begins with.
#[inline]
pub fn encode(part: &[u8], window: &mut Window<'_>) {
    let number = without_blanks(part)
        .first_chunk::<3>()
        .map_or(0, |letters| {
            let letters = letters.map(|letter| letter.to_ascii_uppercase());
            let found = NAMES.iter().position(|&name| *name == letters);
            found.map_or(0, |index| index + 1)
        });
    window.push(number as u8);
}
