//! Which files are read and written, and when.

use sortmill::io::codec::CODECS;

use super::super::packed::{packed, unpacked};
use super::super::sorted;
use super::{Both, DATA};

#[test]
fn outputs_appear_under_their_names() {
    let both = Both::new("gnu-output", DATA);
    for line in super::refusals::lines(
        r"
sort -o out words
sort words -o out
sort -oout words
sort --output=out words
sort --output out words
sort -o out -o out words
sort -o words words
sort -o words words numbers words
sort -r -o numbers words
sort -o words < words
sort -o out missing words
sort -o words missing
sort -nd -o out words
sort -o - words
sort - -o out < words
sort -u -o words words
sort -z -o nul nul
sort -o new/ words
sort -o words/ words
sort -o words/x words
mkdir d; sort -o d/ words; status=$?; rmdir d; exit $status
sort -o /dev/null words
sort -o /dev/stdout words
sort words > out
sort words >> numbers
sort -o out empty
ln -s words link; sort -o link words; rm link
mkdir d; sort -o d/out words
mkdir d; cd d; sort -o ../words ../words
",
    ) {
        both.agree(line);
    }
}

#[test]
fn inputs_that_are_in_order_are_merged() {
    let both = Both::new("gnu-merge", DATA);
    for line in super::refusals::lines(
        r"
sort -m sorted strict
sort -m sorted
sort -m empty
sort -m empty empty
sort -m sorted empty strict
sort -m sorted sorted sorted
sort -mu sorted sorted strict
sort -m < sorted
sort -m - strict < sorted
sort -mr falling
sort -mr falling falling
sort -mn strict
sort -mnr falling falling
sort -m -o out sorted strict
sort -m -o sorted sorted strict
sort -m -o strict sorted strict
sort -m -o sorted sorted sorted
sort -m -u -o sorted sorted sorted
sort --merge sorted strict
sort --mer sorted strict
sort -m unended newlines missing
sort -m --batch-size=2 sorted strict sorted strict
sort words > a; sort numbers > b; sort -m a b words missing
sort words > a; sort numbers > b; sort -m a b
sort -f words > a; sort -f bytes > b; sort -mf a b
sort -k2n fields > a; sort -k2n table > b; sort -m -k2n a b
sort -k2n fields > a; sort -k2n table > b; sort -ms -k2n b a
sort -zu nul > a; sort -mz a a
sort -V versions > a; sort -mV a a -u
printf 'sorted\0strict\0' | sort -m --files0-from=-
",
    ) {
        both.agree(line);
    }
}

#[test]
fn names_of_inputs_come_from_a_file() {
    let both = Both::new("gnu-files0", DATA);
    for line in super::refusals::lines(
        r"
printf 'words\0numbers\0' > list; sort --files0-from=list
printf 'words\0numbers' > list; sort --files0-from=list
printf 'words\0words\0' > list; sort -u --files0-from list
printf 'words\0' | sort --files0-from=-
printf 'words\0' | sort --files0 -
printf 'words\0missing\0' | sort --files0-from=-
printf 'words\0.\0' | sort --files0-from=-
printf 'words\0' > list; printf 'x' > x; sort --files0-from=list < x
find . -name '*s' -print0 | sort -z | sort --files0-from=-
printf 'a b\0' > list; echo z > 'a b'; sort --files0-from=list
",
    ) {
        both.agree(line);
    }
}

/// Compressed files are bytes like others, and the end of an output's name says nothing, unless that is asked for.
#[test]
fn compressed_files_are_bytes() {
    let plain = super::super::text(3000, 1);
    for codec in CODECS {
        let (name, bytes) = (
            format!("in.{}", codec.extension()),
            packed(codec, &plain, 700),
        );
        let data: [(&str, &[u8]); 3] = [(&name, &bytes), ("plain", &plain), ("words", DATA[0].1)];
        let both = Both::new(&format!("gnu-packed-{}", codec.extension()), &data);
        for line in [
            "sort NAME",
            "sort < NAME",
            "sort -u NAME words NAME",
            "sort -o NAME NAME",
            "sort -o NAME words && sort NAME",
            "sort -c NAME",
            "sort -z NAME",
            "printf 'NAME\\0words' | sort --files0-from=-",
            "sort --compress gzip -o NAME words",
            "sort --compress-program=gzip words",
        ] {
            both.agree(&line.replace("NAME", &name));
        }
        let asked = both.ours(&format!("sort --decompress {name}"));
        assert!(asked.stdout == sorted(&plain), "{codec:?}");
        let script = format!("sort --compress-output auto -o new-{name} plain; cat new-{name}");
        let asked = both.ours(&script).stdout;
        assert!(unpacked(codec, &asked) == sorted(&plain), "{codec:?}");
    }
}
