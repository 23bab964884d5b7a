//! What GNU's `sort` refuses is refused, with the same exit status, and what it takes is taken.

use super::{Both, DATA};

/// Command lines that do not sort, or hardly.
const LINES: &str = r"
sort --nonsense words

sort -W words
sort -1 words
sort -k
sort --key
sort words -t
sort -S
sort --ver
sort --ran words
sort --ignore words
sort --s words
sort --c words
sort --reverse=1 words
sort --debug=x words
sort --help=1
sort --help > /dev/null
sort --version > /dev/null
sort --help --nonsense > /dev/null
sort --nonsense --help
sort -k1 --help > /dev/null

sort --sort=bogus words
sort --sort= words
sort --sort words
sort --check=bogus words
sort --check= words

sort -nd words
sort -ni words
sort -nM words
sort -ng words
sort -nh words
sort -nV words
sort -nR words
sort -gh words
sort -gM words
sort -gd words
sort -hM words
sort -hi words
sort -hV words
sort -MV words
sort -Md words
sort -MR words
sort -n --sort=g words
sort --sort=n --sort=h words
sort -k1,1nd words
sort -k1n,1d words
sort -k1n,2g words
sort -k1nM words
sort -k2 -k1,1hi words
sort -nd -k1,1V words
sort -nd -k1,1 words
sort -n -k1,1d words
sort -nr -k2,2f -k1d words
sort -ndf -k1r words

sort -k 0 words
sort -k 0.1 words
sort -k x words
sort -k -1 words
sort -k '' words
sort -k . words
sort -k 1. words
sort -k 1.0 words
sort -k 1.x words
sort -k 1, words
sort -k ,1 words
sort -k 1,0 words
sort -k 1,1. words
sort -k 1,x words
sort -k 1.2,1.1x words
sort -k 1q words
sort -k '1 2' words
sort -k 1,2,3 words
sort -k 1.2.3 words
sort -k1,1 -k words
sort +1 -2x words
sort +x words
sort +x -2 words
sort +1 -2.x words

sort -t '' words
sort -t ab words
sort -t a -t b words
sort -t '\1' words
sort -t '\0\0' words

sort -S '' words
sort -S b words
sort -S 1X words
sort -S 1R words
sort -S -1 words
sort -S 5%% words
sort -S % words
sort -S x words
sort -S 1Z words
sort -S 99999999999999999999 words
sort --buffer-size=1Q words

sort --batch-size=0 words
sort --batch-size=1 words
sort --batch-size=2x words
sort --batch-size=-2 words
sort --batch-size= words
sort --batch-size=99999999 words
sort --batch-size=99999999999999999999 words
sort --parallel=0 words
sort --parallel=x words
sort --parallel=-1 words
sort --parallel= words
sort --parallel=2k words

sort -o a -o b words
sort -o words
sort -o . words
sort -o /nowhere/out words
sort -o '' words
sort missing
sort words missing
sort .
sort ''
sort words/x

sort -cC words
sort -c --check=quiet words
sort -C --check words
sort -c words words
sort -C words sorted
sort -c -o out words
sort -C -o out words
sort -c --debug words
sort --debug -o out words
sort -c missing
sort -c .
sort -C missing

sort --compress-program=a --compress-program=b words
sort --random-source=a --random-source=b words
sort -R --random-source=/nowhere words
sort -R --random-source=/dev/null words
sort -R --random-source=empty words
sort -k1R --random-source=empty words

sort --files0-from=/dev/null
sort --files0-from=missing
sort --files0-from=words words
sort --files0-from=- words
printf 'words\0-\0' | sort --files0-from=-
printf 'words\0\0sorted\0' | sort --files0-from=-
printf '\0' | sort --files0-from=-
printf 'missing\0' | sort --files0-from=-
printf 'sorted\0words\0' | sort -c --files0-from=-

POSIXLY_CORRECT=1 sort words -r
POSIXLY_CORRECT=1 sort -c words -o out
POSIXLY_CORRECT=1 sort words -o
_POSIX2_VERSION=200112 sort +1 words
_POSIX2_VERSION=200112 POSIXLY_CORRECT=1 sort words -o out
sort words -y
";

#[test]
fn refusals_are_those_of_gnu_sort() {
    let both = Both::new("gnu-refusals", DATA);
    for line in lines(LINES) {
        both.agree(line);
    }
}

#[test]
fn refusals_say_what_is_wrong() {
    let both = Both::new("gnu-refusal-words", DATA);
    for (line, wanted) in [
        ("sort --ver", "--version"),
        ("sort --mem 1G words", "there is no option --mem"),
        ("sort -nd words", "-dn"),
        ("sort -k1,1nM words", "-Mn"),
        ("sort -k 0 words", "its field is 0"),
        ("sort -k 1,x words", "no number follows the comma"),
        ("sort -t ab words", "one byte"),
        ("sort -t a -t b words", "one separator"),
        ("sort -o a -o b words", "two were named"),
        ("sort -c words sorted", "one input"),
        ("sort --files0-from=words words", "not both"),
        ("sort -n --format fixed:10 words", "-n is about lines"),
        ("sort -z --format kv words", "-z is about lines"),
        ("sort -k 0:4 words", "needs --format fixed:SIZE"),
        ("sort -c --dry-run words", "--dry-run means nothing"),
        ("sort --sort=x words", "general-numeric"),
        ("sort missing", "missing"),
    ] {
        let output = both.ours(line);
        let words = super::stderr(&output);
        assert!(words.contains(wanted), "{line}: {words}");
        assert!(output.stdout.is_empty(), "{line}");
    }
}

/// Scripts look for it.
#[test]
fn words_begin_with_the_name_that_was_called() {
    let both = Both::new("gnu-names", DATA);
    for line in [
        "sort missing",
        "sort --nonsense words",
        "sort -nd words",
        "sort -k 0 words",
        "sort -o /nowhere/out words",
        "sort -S x words",
        "sort --memory=x words",
        "sort --no-decompress=x words",
        "sort --io=x words",
        "sort -c falling",
        "sort --debug words",
        "sort words >&-",
        "sort words > /dev/full",
        "LC_ALL=de_DE.UTF-8 sort words",
    ] {
        let said = super::stderr(&both.ours(line));
        assert!(said.starts_with("sort: "), "{line}: {said}");
        assert!(!said.contains("sortmill: "), "{line}: {said}");
    }
    let said = super::stderr(&both.ours(&format!("{} sort missing", crate::PROGRAM)));
    assert!(said.starts_with("sortmill: "), "{said}");
}

/// The lines of a table, without empty ones.
pub fn lines(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|line| !line.is_empty())
}
