//! Lines in which a regular expression is found, looked for in many lines at once: most lines of most texts have none, and are
//! never taken one by one.
//!
//! ```text
//! lines, back to back --> where is the first match? --> the line it begins in --> the mapper, one line at a time
//!                             ^------------ behind that line <--------------------/
//! ```
//!
//! A part of a line is a part of all lines, so what is found in a line is found there, by an expression that matches no end of a
//! line. That is not so of expressions that look at what stands around a match (`^`, `$`, `\b`): the ends of lines are no ends
//! there. Where most lines match, nothing is won, and for a while they go to the mapper without being looked at first.

use sortmill_io::sync::Arc;

use super::patterns::{Pattern, line_end};
use super::read::{Bound, Reader};
use super::verbs::Step;
use crate::job::{MapFn, Mapper};

/// Where most lines match, so many stretches of them are not looked at.
const ASIDE: u32 = 32;

/// Lets lines through that may match.
#[derive(Clone)]
pub(super) struct Sieve(Pattern);

impl Sieve {
    /// That of the first of `steps`, if that keeps lines of what `bound` reads by such an expression.
    pub fn of(steps: &[Step], bound: &Arc<Bound>) -> Option<Self> {
        match steps.first()? {
            Step::Matches {
                at: 0,
                pattern,
                is_inverted: false,
            } if Reader::new(bound).begins_with_line() => pattern.of_many_lines().map(Self),
            _ => None,
        }
    }

    /// Mappers of several lines, each in front of one of `one_by_one`.
    pub fn before(self, one_by_one: MapFn) -> MapFn {
        Arc::new(move |state_bytes| self.clone().before_one(one_by_one(state_bytes)))
    }

    fn before_one(self, mut mapper: Mapper) -> Mapper {
        let mut aside = 0;
        Box::new(move |lines, made| {
            let Some(lines) = lines else {
                return mapper(None, made);
            };
            let ((input, offset), at) = (made.place, made.at());
            let (mut from, mut found_bytes) = (0, 0);
            let is_aside = aside > 0;
            aside -= u32::from(is_aside);
            let next = |from: usize| match is_aside {
                true => Some(from..line_end(lines, from)),
                false => self.0.line_with(lines, from),
            };
            while from < lines.len()
                && let Some(line) = next(from)
            {
                found_bytes += line.len();
                made.passed(&lines[from..line.start]);
                let begin = line.start;
                made.give((input, offset.wrapping_add(begin as u64)), at + begin);
                mapper(Some(&lines[line.clone()]), made);
                made.passed(&lines[line.clone()]);
                from = line.end;
                if made.is_full() || made.is_held() {
                    return;
                }
            }
            made.passed(&lines[from..]);
            if !is_aside && 2 * found_bytes > lines.len() {
                aside = ASIDE;
            }
        })
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn lines_that_may_match_are_found() {
        let found = |pattern: &str, lines: &[u8]| -> Vec<Vec<u8>> {
            let pattern = Pattern::new(pattern).unwrap().of_many_lines().unwrap();
            let (mut from, mut found) = (0, Vec::new());
            while from < lines.len()
                && let Some(line) = pattern.line_with(lines, from)
            {
                found.push(lines[line.clone()].to_vec());
                from = line.end;
            }
            found
        };
        let lines = b"a1\nb\n\na22\r\n\xff a3";
        assert_eq!(
            found("a[0-9]", lines),
            [&b"a1\n"[..], b"a22\r\n", b"\xff a3"]
        );
        assert_eq!(found("", lines).len(), 5);
        assert_eq!(found("c", lines), [] as [&[u8]; 0]);
        // Nothing is found over the end of a line.
        assert_eq!(found(r"1\nb|b", lines), [b"b\n"]);
        assert_eq!(found(r"\n", b"x\ny"), [] as [&[u8]; 0]);
        assert_eq!(
            found(r"x[^z]*y|(?s)z.(?-u:.)+", b"x\ny\nxay\nz\nz..\nza\n"),
            [&b"xay\n"[..], b"z..\n"]
        );
        assert_eq!(
            found(r"(?-u)[^a]\W{2}", b"a\n\n\n\xff\xff\xff\n"),
            [b"\xff\xff\xff\n"]
        );
        assert_eq!(found("x", b""), [] as [&[u8]; 0]);
    }

    #[test]
    fn what_stands_around_a_match_is_looked_at_line_by_line() {
        for (pattern, alone) in [
            ("error|warn", true),
            (r"(?i)[^a]\d+\.x*?(a|b){2,3}", true),
            (r"\x{ff}", true),
            (r"(?-u)\xff", true),
            ("^a", false),
            ("a$", false),
            (r"(a|b\b)", false),
            (r"(?m)^a", false),
            (r"\Aa", false),
            (r"\Ba", false),
        ] {
            let read = Pattern::new(pattern).unwrap();
            assert_eq!(read.of_many_lines().is_some(), alone, "{pattern}");
        }
    }
}
