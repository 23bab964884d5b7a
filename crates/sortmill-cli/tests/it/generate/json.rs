//! JSON lines, read by somebody else, and held against the shares that were asked for.

use serde_json::{Map, Value};

use super::{output, refused};

fn objects(line: &str) -> Vec<Map<String, Value>> {
    let text = String::from_utf8(output(line)).unwrap();
    assert!(text.ends_with('\n'));
    text.lines()
        .map(|line| match serde_json::from_str(line) {
            Ok(Value::Object(object)) => object,
            other => panic!("{line}: {other:?}"),
        })
        .collect()
}

const FIELDS: [&str; 6] = ["time", "user", "tags", "score", "active", "note"];
const OF_USERS: [&str; 2] = ["age", "city"];

/// What each escape, and each letter beyond ASCII, stands for.
const SPECIAL: [&str; 16] = [
    "\n",
    "\t",
    "\r",
    "\u{8}",
    "\u{c}",
    "\"",
    "\\",
    "/",
    "\0",
    "\u{e9}",
    "\u{20ac}",
    "\u{1f600}",
    "\u{e9}",
    "\u{df}",
    "\u{65e5}\u{672c}",
    "\u{1f600}",
];

/// The strings of an object but `time`, none of which is empty.
fn strings(object: &Map<String, Value>) -> Vec<&str> {
    let of_user = object.get("user").and_then(Value::as_object);
    let in_user = of_user.into_iter().flat_map(Map::values);
    let tags = object.get("tags").and_then(Value::as_array);
    in_user
        .chain(tags.into_iter().flatten())
        .chain(object.get("note"))
        .filter_map(Value::as_str)
        .collect()
}

/// A string's words without what is special in it, if anything is.
fn plain(text: &str) -> (String, bool) {
    let special = |letter: char| !letter.is_ascii_lowercase() && letter != ' ';
    let rest: String = text.chars().filter(|letter| special(*letter)).collect();
    assert!(
        rest.is_empty() || SPECIAL.contains(&rest.as_str()),
        "{text:?}"
    );
    (text.replace(special, ""), !rest.is_empty())
}

fn near(found: usize, of: usize, share: f64) {
    let expected = of as f64 * share;
    let bound = 5.0 * (expected * (1.0 - share)).sqrt();
    let off = (found as f64 - expected).abs();
    assert!(off <= bound, "{found} of {of}, not {expected}");
}

#[test]
fn objects_are_what_was_asked_for() {
    for (flags, missing, null, escaped) in [
        ("", 0.05, 0.05, 0.1),
        ("--missing 30 --null 20 --escaped 50 ", 0.3, 0.2, 0.5),
        ("--missing 0 --null 0 --escaped 0 ", 0.0, 0.0, 0.0),
        ("--missing 0 --null 100 ", 0.0, 1.0, 0.1),
    ] {
        let objects = objects(&format!("json {flags}10000 -"));
        let (mut there, mut nulls, mut users, mut texts, mut special) = (0, 0, 0, 0, 0);
        for (number, object) in objects.iter().enumerate() {
            assert_eq!(object["id"], number);
            let mut known = 1;
            for name in FIELDS {
                let Some(value) = object.get(name) else {
                    continue;
                };
                known += 1;
                there += 1;
                nulls += usize::from(value.is_null());
                check_kind(name, value);
            }
            assert_eq!(object.len(), known, "{object:?}");
            if let Some(user) = object.get("user").and_then(Value::as_object) {
                users += 1;
                assert!(user.len() <= 3 && user["name"].is_string());
                for value in OF_USERS.iter().filter_map(|name| user.get(*name)) {
                    there += 1;
                    nulls += usize::from(value.is_null());
                }
            }
            for text in strings(object) {
                let (words, is_special) = plain(text);
                let words: Vec<&str> = words.split(' ').collect();
                assert!(
                    words.len() <= 8 && words.iter().all(|word| !word.is_empty()),
                    "{text:?}"
                );
                texts += 1;
                special += usize::from(is_special);
            }
        }
        assert_eq!(objects.len(), 10_000);
        near(there, 6 * 10_000 + 2 * users, 1.0 - missing);
        near(nulls, there, null);
        near(special, texts, escaped);
    }
}

fn check_kind(name: &str, value: &Value) {
    let is_right = match name {
        "time" => value.as_str().is_some_and(|time| {
            time.len() == 20
                && time.starts_with("20")
                && time.ends_with('Z')
                && &time[10..11] == "T"
        }),
        "user" => value.is_object(),
        "tags" => value.as_array().is_some_and(|tags| tags.len() <= 3),
        "score" => value.is_number(),
        "active" => value.is_boolean(),
        _ => value.is_string(),
    };
    assert!(is_right || value.is_null(), "{name}: {value}");
}

/// Every escape, every length of an array and every way to write a number comes; lines without anything else do.
#[test]
fn everything_that_is_said_comes() {
    let text = String::from_utf8(output("json --escaped 100 3000 -")).unwrap();
    for escape in [
        r"\n",
        r"\t",
        r"\r",
        r"\b",
        r"\f",
        "\\\"",
        r"\\",
        r"\/",
        r"\u0000",
        r"\u00e9",
        r"\u20AC",
        r"\ud83d\ude00",
        "\u{e9}",
        "\u{df}",
        "\u{65e5}\u{672c}",
        "\u{1f600}",
    ] {
        assert!(text.contains(escape), "{escape}");
    }
    for piece in [
        r#""tags":[]"#,
        r#""score":0,"#,
        r#""score":-"#,
        "e+",
        "E-",
        r#""active":true"#,
        r#""active":false"#,
        r#""city":null"#,
        r#""user":null"#,
    ] {
        assert!(text.contains(piece), "{piece}");
    }
    let objects = objects("json 3000 -");
    let tags = |count: usize| {
        let is_so_long = |object: &&Map<String, Value>| {
            object
                .get("tags")
                .and_then(Value::as_array)
                .is_some_and(|tags| tags.len() == count)
        };
        objects.iter().filter(is_so_long).count()
    };
    for count in 0..=3 {
        // A quarter of nine tenths each.
        assert!(
            (550..810).contains(&tags(count)),
            "{count}: {}",
            tags(count)
        );
    }
    let integers = objects
        .iter()
        .filter(|object| object.get("score").is_some_and(Value::is_i64))
        .count();
    assert!((700..1_050).contains(&integers), "{integers}");
    assert_eq!(
        output("json --missing 100 2 -"),
        b"{\"id\":0}\n{\"id\":1}\n"
    );
}

#[test]
fn shares_out_of_range_are_refused() {
    for flag in ["missing", "null", "escaped"] {
        refused(&format!("json --{flag} 101 5 -"), "not between 0 and 100");
        refused(&format!("json --{flag} x 5 -"), "not between 0 and 100");
    }
}
