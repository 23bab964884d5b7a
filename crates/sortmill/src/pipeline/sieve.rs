//! Lines in which a regular expression is found, looked for in many lines at once: most lines of most texts have none, and are
//! never taken one by one.
//!
//! ```text
//! lines, back to back --> where is the first match? --> the line it begins in --> the mapper, one line at a time
//!                             ^------------ behind that line <--------------------/
//! ```
//!
//! A part of a line is a part of all lines, so what is found in a line is found there; a match that takes in the end of one lets a
//! line through that the mapper looks at again. That is not so of expressions that look at what stands around a match (`^`, `$`,
//! `\b`): the ends of lines are no ends there.

use super::patterns::Pattern;
use super::read::{Bound, Reader};
use super::verbs::Step;
use crate::job::{MapFn, Mapper};
use sortmill_io::sync::Arc;

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
            } if Reader::new(bound).begins_with_line() && pattern.looks_at_match_alone() => {
                Some(Self(pattern.clone()))
            }
            _ => None,
        }
    }

    /// Mappers of several lines, each in front of one of `one_by_one`.
    pub fn before(self, one_by_one: MapFn) -> MapFn {
        Arc::new(move |state_bytes| self.clone().before_one(one_by_one(state_bytes)))
    }

    fn before_one(self, mut mapper: Mapper) -> Mapper {
        Box::new(move |lines, made| {
            let Some(lines) = lines else {
                return mapper(None, made);
            };
            let ((input, offset), at) = (made.place, made.at());
            let mut from = 0;
            while from < lines.len()
                && let Some(line) = self.0.line_with(lines, from)
            {
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
        })
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn lines_that_may_match_are_found() {
        let found = |pattern: &str, lines: &[u8]| -> Vec<Vec<u8>> {
            let pattern = Pattern::new(pattern).unwrap();
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
        // Over the end of a line: that one, and then those that have a match of their own.
        assert_eq!(found(r"1\nb|b", lines), [&b"a1\n"[..], b"b\n"]);
        assert_eq!(found(r"\n", b"x\ny"), [b"x\n"]);
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
            assert_eq!(read.looks_at_match_alone(), alone, "{pattern}");
        }
    }
}
