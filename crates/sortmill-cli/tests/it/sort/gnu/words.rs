//! Words are read as GNU's `sort` reads them, wherever they stand.

use super::refusals::lines;
use super::{Both, DATA};

const LINES: &str = r"
sort words
sort < words
sort - < words
sort words - < numbers
sort - words < numbers
sort - - < words
sort -- words
sort -r -- words
sort words -r
sort words -r numbers
sort words -- -r
sort -rn numbers
sort -n -r numbers
sort -nr -- numbers
sort -nk1 numbers
sort -rnk1,1 numbers
sort -k1nr numbers
sort -k 1nr numbers
sort -k1,1nr numbers words
sort --key=1nr numbers
sort --key 1nr numbers
sort --k 1nr numbers
sort --rev words
sort --reverse words
sort --num numbers
sort --numeric-sort --reverse numbers
sort --human human
sort --month-sort months
sort --version-sort versions
sort --version-s versions
sort --gen numbers
sort --sort=n numbers
sort --sort n numbers
sort --sort=numeric numbers
sort --so=ve versions
sort --sort=h human
sort --sort=m months
sort --sort=g numbers
sort --dict words
sort --ignore-c words
sort --ignore-l words
sort --ignore-n bytes
sort --stable -f words
sort --sta -f words
sort --u words
sort --zero nul
sort --field-separator=: -k3n colons
sort --field : -k3n colons
sort -t: -k3n colons
sort -t : -k3n colons
sort -nt: -k3 colons
sort -t: -t: -k3n colons
sort -t '\0' -k2 nul
sort -zt '\0' nul
sort -t t words
sort -t ' ' -k2 fields
sort -t '	' -k2n table
sort -t '\' -k2 words
sort -s -u words
sort -rr words
sort -r -r --reverse words
sort -bdfi words
sort -VR --random-source=table versions
sort -RV --random-source=table versions
sort -Rd --random-source=table words
sort -id words
sort -di words
sort -nf numbers
sort -hf human
sort -Mf months
sort -y words
sort -y 10 words
sort -y10 words
sort -ry5 words

sort +1 fields
sort +1 -2 fields
sort +1n -2 fields
sort +1 -2n fields
sort +0 -1 fields
sort +0 -0 fields
sort +0.1 -0.3 fields
sort +1.1 fields
sort +1b -2b fields
sort +2nr +0 -1 fields
sort -r +1 -2 fields
sort fields +1 -2
sort -t: +2n -3 colons
sort +1 -2 -k1,1 fields
sort -k3n +0 -1 fields
_POSIX2_VERSION=200112 sort +1 -2 fields
_POSIX2_VERSION=199209 sort +1 fields
_POSIX2_VERSION=200809 sort +1 fields
_POSIX2_VERSION=nonsense sort +1 fields
POSIXLY_CORRECT=1 sort +1 -2 fields
POSIXLY_CORRECT=1 sort -r fields
POSIXLY_CORRECT=1 sort fields -o out
POSIXLY_CORRECT=1 sort fields -oout
POSIXLY_CORRECT=1 sort -- fields

sort -k ' 2' fields
sort -k +2 fields
sort -k '2, 2' fields
sort -k 2,+2 fields
sort -k 1,1.0 fields
sort -k 99999999999999999999 fields
sort -k 1,99999999999999999999 fields
sort -k 2,1 fields
sort -k 18446744073709551615,18446744073709551615 fields

sort -S 1 words
sort -S 0 words
sort -S 50% words
sort -S 200% words
sort -S 1b words
sort -S 1K words
sort -S 10M words
sort -S M words
sort -S ' 5' words
sort -S +5 words
sort -S 1G -S 1M words
sort -S 100G words
sort -S 1E words
sort --buffer-size=10M words
sort --buffer 10M words
sort --parallel=1 words
sort --parallel=1000 words
sort --parallel 4 words
sort --par=2 words
sort --batch-size=2 words
sort --batch-size=16 words
sort -T . words
sort -T '' words
sort -T . -T /tmp words
sort -T /nowhere words
sort --temporary-directory=. words
sort --temp . words
sort --temporary . words
sort --compress-program=gzip words
sort --compress-program=gzip --compress-program=gzip words
sort --compress-program=/nowhere words
sort --compress gzip words
sort --random-source=/nowhere words
sort --random-source=table --random-source=table -R words
";

#[test]
fn words_are_read_as_gnu_sort_reads_them() {
    let both = Both::new("gnu-words", DATA);
    for line in lines(LINES) {
        both.agree(line);
    }
}

#[test]
fn our_own_flags_are_there_under_either_name_and_only_in_full() {
    let both = Both::new("gnu-own-flags", DATA);
    for line in [
        "sort --format fixed:1 --key 0:1 numbers",
        "sort --memory 100MB --threads 1 --no-direct words",
        "sort -v words",
        "sort --dry-run words",
    ] {
        assert_eq!(both.ours(line).status.code(), Some(0), "{line}");
    }
    for line in [
        "sort --form fixed:4 words",
        "sort --dry words",
        "sort --memor 1G words",
    ] {
        let output = both.ours(line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(
            super::stderr(&output).contains("there is no option"),
            "{line}"
        );
    }
}

#[test]
fn a_locale_that_does_not_matter_is_mentioned_once() {
    let both = Both::new("gnu-locale", DATA);
    for (line, is_told) in [
        ("LC_ALL=en_US.UTF-8 sort words", true),
        ("LC_ALL= LC_COLLATE=de_DE.UTF-8 LANG=C sort words", true),
        ("LC_ALL= LC_COLLATE= LANG=sv_SE sort words", true),
        ("LC_ALL=C LANG=sv_SE sort words", false),
        ("LC_ALL=POSIX sort words", false),
        ("LC_ALL=C.UTF-8 sort words", false),
        ("LC_ALL=C.utf8 sort words", false),
        ("LC_ALL= LC_COLLATE= LANG= sort words", false),
        ("LC_ALL=en_US.UTF-8 sort --locale=C words", false),
        ("LC_ALL=en_US.UTF-8 sort --format fixed:1 words", false),
    ] {
        let output = both.ours(line);
        assert_eq!(output.status.code(), Some(0), "{line}");
        let words = super::stderr(&output);
        assert_eq!(
            words.lines().count(),
            usize::from(is_told),
            "{line}: {words}"
        );
        assert_eq!(words.contains("--locale=C"), is_told, "{line}: {words}");
    }
}
