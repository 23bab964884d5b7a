//! Files whose bytes the kernel makes when they are read: those of `/sys` say that they have 4096 of them, whatever they
//! have, and those of `/proc` none.

use std::path::Path;

use super::Both;
use crate::PROGRAM;

/// Some that are there nearly everywhere and do not change.
const FILES: [&str; 5] = [
    "/sys/class/net/*/address",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/devices/system/cpu/online",
    "/proc/filesystems",
    "/proc/version",
];

#[test]
fn files_of_the_kernel_are_read_to_their_ends() {
    if !Path::new("/sys/devices/system/cpu/online").exists() {
        println!("NOT TESTED: no /sys here");
        return;
    }
    let both = Both::new("gnu-kernel", &[("words", b"pear\napple\n")]);
    for files in FILES {
        for script in [
            "sort FILES",
            "sort -r FILES words",
            "sort -u -o out FILES FILES && cat out",
            "sort -m words FILES FILES",
            "sort < /dev/null FILES -",
            "for file in FILES; do sort -c $file; echo $?; sort -C $file; echo $?; done",
        ] {
            both.agree(&script.replace("FILES", files));
        }
    }
    // Ours, held against what they say they do.
    for (ours, theirs) in [
        ("uniq -c FILES", "sort FILES | uniq -c"),
        ("count FILES words", "sort FILES words | uniq -c"),
        ("merge FILES", "sort FILES"),
        (
            "sort --format fixed:1 /sys/devices/system/cpu/online",
            "echo; fold -w 1 /sys/devices/system/cpu/online | sort | tr -d '\\n'",
        ),
        ("sort --format tsv --no-header --by 1 FILES", "sort FILES"),
    ] {
        let files = FILES[0];
        let ours = format!("{PROGRAM} {ours} -q -o out && cmp out <({theirs}) && echo same");
        let seen = both.ours(&ours.replace("FILES", files));
        assert_eq!(seen.stdout, b"same\n", "{ours}: {}", super::stderr(&seen));
    }
}
