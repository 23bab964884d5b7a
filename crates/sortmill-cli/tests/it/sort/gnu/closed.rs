//! Standard streams that the caller has closed: what cannot be read or written is told, and nothing is lost in silence.

use super::super::stderr;
use super::refusals::lines;
use super::{Both, DATA};
use crate::PROGRAM;

const LINES: &str = r"
sort words >&-
sort -rn numbers words >&-
sort -u words >&-
sort -m sorted strict >&-
sort --debug words >&-
sort --help >&-
sort --version >&-
sort empty >&-
sort -c words >&-
sort -c sorted >&-
sort -o out words >&-
sort -o out words <&- >&- 2>&-
sort -o /dev/stdout words >&-

sort <&-
sort -c <&-
sort -u -o out <&-; status=$?; rm -f out; exit $status
sort words - <&-
sort -m sorted - <&-
sort --files0-from=- <&-
sort words <&-

sort words 2>&-
sort missing 2>&-
sort -c falling 2>&-
";

#[test]
fn closed_streams_are_told_as_gnu_sort_tells_them() {
    let both = Both::new("gnu-closed", DATA);
    for line in lines(LINES) {
        both.agree(line);
    }
}

/// Those that GNU does not have.
#[test]
fn no_command_loses_what_it_writes_to_a_closed_stream() {
    let csv: &[u8] = b"id,name\n2,b\n1,a\n";
    let data = [DATA, &[("table.csv", csv)]].concat();
    let both = Both::new("closed-commands", &data);
    for words in [
        "sort words",
        "sort -v words",
        "sort --dry-run words",
        "sort --format csv --by id table.csv",
        "merge sorted strict",
        "shuffle words",
        "uniq -c words",
        "count --by-count words",
        "top 2 words",
        "check words",
        "gen records 10 -",
        "completions bash",
        "doctor",
        "--help",
        "uniq --help",
    ] {
        let output = both.ours(&format!("{PROGRAM} {words} >&-"));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(said.contains("Bad file descriptor"), "{words}: {said}");
    }
}
