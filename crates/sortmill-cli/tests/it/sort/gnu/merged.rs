//! `sort -m`: inputs in order and in none, drawn at random, with options drawn at random; onto an input, from pipes, and
//! more of them than are merged at once.

use super::random::{Random, drawn_count, input, options};
use super::{Both, DATA, stderr};

/// Of `-R` only equal lines come together in the same way; the bytes that decide it are given.
const SOURCE: &str = "--random-source=a";

#[test]
fn merges_drawn_at_random() {
    let mut random = Random::new();
    // A line is four commands; more than these would take a soak its time.
    for round in 0..drawn_count().div_ceil(16).min(16) {
        let equal = random.below(3) > 0;
        let inputs = [0, 1, 2].map(|_| input(&mut random, equal));
        let [a, b, c] = inputs.each_ref().map(String::as_bytes);
        let both = Both::new("gnu-merged", &[("a", a), ("b", b), ("c", c), ("none", b"")]);
        let lines: Vec<String> = (0..8).map(|_| merges(&mut random)).collect();
        println!("round {round}");
        both.agree(&lines.concat());
    }
}

/// Sorts three files and merges them; merges them as they are; each way sometimes onto one of them.
fn merges(random: &mut Random) -> String {
    let options = options(random);
    let files = random.one(&["a b c", "c a", "b", "a none b", "b - a c < c", "a a b"]);
    let output = random.one(&["", "", " -o out", " -o b"]);
    let drops = random.one(&["", "", " -u", " -s"]);
    format!(
        "for f in a b c; do sort {options} {SOURCE} -o $f.sorted $f; done 2>/dev/null\n\
         (mkdir d; cp none d; for f in a b c; do mv $f.sorted d/$f; done; cp a d/source; cd d; \
         sort -m {options}{drops} --random-source=source{output} {files}; echo = $?; cat out b) 2>/dev/null\n\
         rm -r d\n\
         (cp b kept; sort -m {options}{drops} {SOURCE}{output} {files}; echo = $?; cat out b; mv kept b; rm -f out) \
         2>/dev/null\n"
    )
}

#[test]
fn merges_as_they_are_written() {
    let both = Both::new("gnu-merged-lines", DATA);
    for line in super::refusals::lines(
        r"
sort -m words
sort -m words numbers
sort -mu words words
sort -mr words numbers bytes
sort -mn numbers human
sort -ms -k2,2n table fields
sort -m -k2,2n table fields
sort -m unended words
sort -m words unended
sort -mz nul unended
sort -m -t: -k3,3n colons passwd
sort -m -t: -k3,3n colons
sort -m -o words words numbers
sort -m -u -o words words words
sort -m -o out empty empty
sort -m empty newlines -o newlines
sort -m - words < numbers
sort -m - - < words
sort -m - sorted - < strict
sort -mu -o out - - - < sorted
sort -m < words
sort -mc words
sort -mC sorted
sort -m --debug sorted strict
sort -m --batch-size=2 words numbers bytes table
sort -m --batch-size=1 words
sort -m --parallel=2 -S 1K words numbers
sort -m missing words
sort -m words . numbers
sort -m <(sort words) <(sort numbers) <(sort bytes)
sort -m -o out <(sort words) <(sort numbers)
sort -mu <(sort words) - <(sort words) < sorted
sort words | sort -m sorted -
find . -name '*s' -print0 | sort -z > list; sort -m --files0-from=list
printf 'words\0numbers\0' | sort -m --files0-from=-
sort -mf words words | sort -c
sort -mM months months
sort -mh human human -o human; cat human
sort -mV versions versions
sort -mR --random-source=words words words
sort -mk1.2,1.3 -k2b fields fields table
sort -m words numbers | head -2
",
    ) {
        both.agree(line);
    }
}

/// By way of runs, on our side in little memory and on theirs by sixteen.
#[test]
fn more_files_than_are_merged_at_once() {
    let both = Both::new("gnu-merged-many", DATA);
    let make = "for n in $(seq 40); do seq $((n % 7)) 3 $((n * 5 % 900 + 1)) > f$n; done";
    for sorts in [
        "for f in f*; do sort -o $f $f; done",
        "for f in f*; do sort -rn -o $f $f; done",
        ":",
    ] {
        both.agree(&format!(
            "{make}; {sorts}\n\
             sort -m f* | cksum\n\
             for options in -m -mu -ms '-m -rn' '-mu -k1.2n' '-m -k1.2n' '-ms -k1.2n'; do\n\
             sort $options f* | cksum; sort $options -S 1K f* -o out; cksum out; done\n\
             for f in f*; do printf x >> $f; done; sort -m -S 1K f* | cksum\n\
             sort -m -rn -S 1K -o f7 f*; cksum f7; rm -f f* out"
        ));
    }
}

/// One who writes to two pipes in turns, more than they hold: GNU's `sort` waits for ever there.
#[test]
fn pipes_that_are_written_in_turns() {
    let both = Both::new("gnu-merged-turns", DATA);
    let output = both.ours(
        "mkfifo p q; seq 100001 150000 | tee q > p & sort -m p q > merged; wait; \
         (seq 100001 150000; seq 100001 150000) | sort | cmp - merged && echo the same",
    );
    assert_eq!(output.stdout, b"the same\n", "{}", stderr(&output));
}
