//! What expressions come to, and which are refused.

use super::super::express::{col, if_else, lit};
use super::*;

const NAMES: [&str; 7] = ["i", "u", "f", "b", "s", "list", "none"];

fn columns() -> Vec<Column> {
    let kinds = [
        Type::I64,
        Type::U64,
        Type::F64,
        Type::Bool,
        Type::String,
        Type::Binary,
        Type::I64,
    ];
    let both = NAMES.iter().zip(kinds);
    let mut columns: Vec<Column> = both.map(|(&name, kind)| Column::new(name, kind)).collect();
    columns[6] = columns[6].clone().or_null();
    columns
}

fn record(i: i64, u: u64, f: f64) -> [Value<'static>; 7] {
    let list = Value::Bytes(&[0x07, 0xa5, 0x02, 0x00]);
    let (b, s) = (Value::Bool(i > 0), Value::Bytes(b"text"));
    [
        Value::I64(i),
        Value::U64(u),
        Value::F64(f),
        b,
        s,
        list,
        Value::Null,
    ]
}

/// What `expr` makes of a record, as it is shown, and of which type it says that is.
fn check(expr: Expr, of: (i64, u64, f64), kind: Type, wanted: Value<'_>) {
    let reckoned = Reckoned::new(&expr, &columns()).unwrap();
    assert_eq!(reckoned.kind, kind, "{expr:?}");
    let record = record(of.0, of.1, of.2);
    let texts = Texts::default();
    let found = reckoned.value(&record, &texts).unwrap();
    assert_eq!(format!("{found:?}"), format!("{wanted:?}"), "{expr:?}");
    assert!(reckoned.nullable || !found.is_null());
}

#[test]
fn numbers_are_reckoned_with() {
    use Type::{Bool, F64, I64, U64};
    let of = (-7, 3, 0.5);
    let (i, u, f) = (|| col("i"), || col("u"), || col("f"));
    check(i() + 1, of, I64, Value::I64(-6));
    check(u() + 1, of, U64, Value::U64(4));
    check(i() - u() * 2u64 + 1, of, I64, Value::I64(-12));
    check(10 - u(), of, U64, Value::U64(7));
    check(u() / 2, of, F64, Value::F64(1.5));
    check(i().floor_div(2), of, I64, Value::I64(-4));
    check(i() % 4, of, I64, Value::I64(1));
    check(i() % -4, of, I64, Value::I64(-3));
    check(u() % 2, of, U64, Value::U64(1));
    check(0.85 * u() + f(), of, F64, Value::F64(0.85 * 3.0 + 0.5));
    check((-f()).floor_div(1.0), of, F64, Value::F64(-1.0));
    check(-f() % 2.0, of, F64, Value::F64(1.5));
    check(-i(), of, I64, Value::I64(7));
    check(-u(), of, I64, Value::I64(-3));
    check(i().abs(), of, I64, Value::I64(7));
    check((f() - 3).abs(), of, F64, Value::F64(2.5));
    check((u() + 1).sqrt(), of, F64, Value::F64(2.0));
    check((f() / 2).sqrt() + 1, of, F64, Value::F64(1.5));
    check((i() + col("none")).sqrt(), of, F64, Value::Null);
    check(i().sqrt(), of, F64, Value::F64(f64::NAN));
    check((f() * 7).cast(U64), of, U64, Value::U64(3));
    check((f() * -7).cast(I64), of, I64, Value::I64(-3));
    check(col("b").cast(I64) + u(), of, I64, Value::I64(3));
    check(u().cast(F64), of, F64, Value::F64(3.0));
    check(f() / 0, of, F64, Value::F64(f64::INFINITY));
    let wide = (i64::MIN, u64::MAX, f64::NAN);
    check(u().gt(i()), wide, Bool, Value::Bool(true));
    check(u() % 10, wide, U64, Value::U64(5));
    // Numbers that only one of the types holds, on the way to one that it does.
    check(u() + i(), wide, I64, Value::I64(i64::MAX));
    check(u().floor_div(-4), wide, I64, Value::I64(-(1 << 62)));
    check((u() - u()) * i(), wide, I64, Value::I64(0));
    check(f().eq(f()), wide, Bool, Value::Bool(false));
    check(f().ne(f()), wide, Bool, Value::Bool(true));
    check(col("list").unary(Unary::ListLength), of, U64, Value::U64(3));
}

#[test]
fn functions_are_reckoned_with() {
    use Type::{Bool, F64, I64, U64};
    let of = (-7, 3, 0.5);
    let said = |text: &str| lit(text);
    check(said("12").parse(I64) * 2, of, I64, Value::I64(24));
    check(
        said("0.25").parse(F64) + col("f"),
        of,
        F64,
        Value::F64(0.75),
    );
    check(said("").parse(I64).or_null() + 1, of, I64, Value::Null);
    check(
        said(" ").parse(I64).or_null().fill_null(4),
        of,
        I64,
        Value::I64(4),
    );
    let day = said("1970-01-02").parse(Type::Timestamp).micros();
    check(day.floor_div(86_400_000_000i64), of, I64, Value::I64(1));
    let hashed = hash_of(Value::Bytes(b"text"), 5);
    check(col("s").hash(5) % 8, of, U64, Value::U64(hashed % 8));
    check(col("none").hash(5), of, U64, Value::Null);
    check(col("s").matches("^te"), of, Bool, Value::Bool(true));
    check(
        !col("s").matches("^te") | col("u").gt(2),
        of,
        Bool,
        Value::Bool(true),
    );
    // Of all that are no numbers the bits are the same, whatever the processor makes of 0 / 0.
    let nan = Value::F64(f64::from_bits(0xfff8_0000_0000_0001));
    assert_eq!(hash_of(nan, 5), hash_of(Value::F64(one_nan(f64::NAN)), 5));
    // As groups have it there is one zero.
    assert_eq!(hash_of(Value::F64(-0.0), 5), hash_of(Value::F64(0.0), 5));
    assert_ne!(hash_of(Value::F64(0.0), 5), hash_of(Value::F64(1.0), 5));
    let both = Reckoned::new(&(col("f") / col("f")), &columns()).unwrap();
    for zero in [0.0, -0.0] {
        let texts = Texts::default();
        let Value::F64(found) = both.value(&record(0, 0, zero), &texts).unwrap() else {
            panic!("a quotient is a float");
        };
        assert_eq!(found.to_bits(), 0x7ff8 << 48);
    }
    for (expr, cause) in [
        (col("i").parse(I64), "i is of type i64, and no text"),
        (col("s").micros(), "s is of type string, and no timestamp"),
        (col("u").matches("x"), "u is of type u64, and no text"),
        (
            (col("i") + 1).parse(I64),
            "what parse takes is of type i64, and no text",
        ),
        (col("s").matches("("), "unclosed group"),
    ] {
        let error = Reckoned::new(&expr, &columns()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.cause.contains(cause), "{error}");
    }
    let wrong = Reckoned::new(&(said("x").parse(I64) + 1), &columns()).unwrap();
    let texts = Texts::default();
    let error = wrong.value(&record(0, 0, 0.0), &texts).unwrap_err();
    assert!(
        error.cause.contains("\"x\" is no value of type i64"),
        "{error}"
    );
}

#[test]
fn values_are_texts_too() {
    use Type::{Bool, String, U64};
    let of = (-7, 3, 0.5);
    let text = |text: &'static str| Value::Bytes(text.as_bytes());
    check(col("i").cast(String), of, String, text("-7"));
    check((col("u") + 1).cast(String), of, String, text("4"));
    check((col("f") * 4).cast(String), of, String, text("2.0"));
    check(col("b").cast(String), of, String, text("false"));
    check(col("s").cast(String), of, String, text("text"));
    check(col("none").cast(String), of, String, Value::Null);
    let time = lit("1970-01-02").parse(Type::Timestamp);
    check(time.cast(String), of, String, text("1970-01-02T00:00:00Z"));
    // As other texts, wherever these stand.
    check(col("u").cast(String).eq("3"), of, Bool, Value::Bool(true));
    check(
        col("u").cast(String).matches("^3$"),
        of,
        Bool,
        Value::Bool(true),
    );
    check(
        col("u").cast(String).parse(U64).abs(),
        of,
        U64,
        Value::U64(3),
    );
    check(
        if_else(
            col("b"),
            "no",
            col("none").cast(String).fill_null(col("i").cast(String)),
        ),
        of,
        String,
        text("-7"),
    );
}

#[test]
fn what_a_type_does_not_hold_is_an_error() {
    let of = (i64::MIN, 3, 1e300);
    let (i, u, f) = (|| col("i"), || col("u"), || col("f"));
    for (expr, cause) in [
        (u() - 5, "3 - 5 is no value of type u64"),
        (i() - 1, "-9223372036854775808 - 1 is no value of type i64"),
        (i().abs(), "abs(-9223372036854775808)"),
        (-i(), "-(-9223372036854775808) is no value of type i64"),
        (u().floor_div(0), "3 // 0 is no value of type u64"),
        (i() % 0, "% 0 is no value of type i64"),
        (f().cast(Type::U64), "is no value of type u64"),
        ((f() * 1e300).cast(Type::I64), "inf is no value of type i64"),
        (i().cast(Type::U64), "is no value of type u64"),
        (lit(u64::MAX) * u64::MAX, "is no value of type u64"),
    ] {
        let reckoned = Reckoned::new(&expr, &columns()).unwrap();
        let record = record(of.0, of.1, of.2);
        let texts = Texts::default();
        let error = reckoned.value(&record, &texts).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input);
        assert!(error.cause.contains(cause), "{error}");
    }
}

#[test]
fn expressions_in_each_other_are_not_too_many() {
    let deep = |count: usize| (1..count).fold(col("u"), |expr, _| expr + 1);
    let of = (0, 3, 0.5);
    check(deep(500), of, Type::U64, Value::U64(502));
    for expr in [deep(501), deep(5_000)] {
        let error = Reckoned::new(&expr, &columns()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.cause.contains("at most 500 others"), "{error}");
    }
}

/// Each round uses twice what the one before made: 25 rounds had no end, and took all memory.
#[test]
fn expressions_are_not_made_of_too_many() {
    let round = |y: Expr| (&y + 3.0 / y.clone()) / 2;
    let of = |count: usize| (0..count).fold(col("f"), |y, _| round(y));
    let found = (0..5).fold(0.5, |y: f64, _| (y + 3.0 / y) * 0.5);
    check(of(5), (0, 3, 0.5), Type::F64, Value::F64(found));
    assert_eq!(of(2).part_count(), 2 * (2 + 5) + 5);
    for count in [25, 200] {
        let error = Reckoned::new(&of(count), &columns()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.cause.contains("at most 100000 others"), "{error}");
    }
    // Values among which one is looked for are as many as anybody likes.
    let many = col("u").is_in(0..200_000u64);
    check(many, (0, 3, 0.5), Type::Bool, Value::Bool(true));
}

#[test]
fn conditions_and_what_is_missing() {
    use Type::{Bool, I64, String};
    let of = (1, 3, 0.5);
    let none = || col("none");
    let (yes, no) = (|| col("b"), || !col("b"));
    check(none() + 1, of, I64, Value::Null);
    check(none().is_null(), of, Bool, Value::Bool(true));
    check(none().fill_null(5) + 1, of, I64, Value::I64(6));
    check(none().eq(none()), of, Bool, Value::Null);
    let unknown = || none().gt(0);
    check(yes() & no(), of, Bool, Value::Bool(false));
    check(yes() | no(), of, Bool, Value::Bool(true));
    check(unknown() & no(), of, Bool, Value::Bool(false));
    check(no() & unknown(), of, Bool, Value::Bool(false));
    check(unknown() & yes(), of, Bool, Value::Null);
    check(yes() & unknown(), of, Bool, Value::Null);
    check(unknown() | yes(), of, Bool, Value::Bool(true));
    check(unknown() | no(), of, Bool, Value::Null);
    check(col("s").lt("tf"), of, Bool, Value::Bool(true));
    check(
        if_else(col("i").ge(1), "a", col("s")),
        of,
        String,
        Value::Bytes(b"a"),
    );
    // Only the one that is asked for is computed, and neither where nobody knows.
    check(
        if_else(no(), col("i").floor_div(0), 2),
        of,
        I64,
        Value::I64(2),
    );
    check(if_else(unknown(), 1, 2), of, I64, Value::I64(2));
    check(if_else(yes(), 1, 2.5), of, Type::F64, Value::F64(1.0));
}

#[test]
fn one_of_several() {
    use Type::Bool;
    let of = (-7, 3, 0.5);
    let yes = |expr: Expr| check(expr, of, Bool, Value::Bool(true));
    let no = |expr: Expr| check(expr, of, Bool, Value::Bool(false));
    yes(col("i").is_in([5, -7]));
    no(col("i").is_in([5, 7]));
    yes(col("i").is_in([-7.0, 1e300]));
    no(col("i").is_in([-7.5, f64::NAN, f64::INFINITY]));
    yes(col("u").is_in([lit(u64::MAX), lit(3i64)]));
    no(col("u").is_in([-3]));
    yes(col("f").is_in([0.25, 0.5]));
    yes((col("f") - 0.5).is_in([-0.0]));
    yes((col("u") * 1.0).is_in([3]));
    no((col("f") * f64::NAN).is_in([f64::NAN]));
    yes(col("s").is_in(["a", "text"]));
    no(col("s").is_in(["a", "texts"]));
    yes(col("list").is_in([lit(vec![0x07, 0xa5, 0x02, 0x00]).cast(Type::Binary)]));
    yes(col("b").is_in([false]));
    no(col("u").is_in(Vec::<i64>::new()));
    check(col("none").is_in([1]), of, Bool, Value::Null);
    for (expr, cause) in [
        (col("i").is_in(["5"]), "\"5\" is not of type i64"),
        (col("s").is_in([5]), "5 is not of type string"),
        (
            col("i").is_in([col("u")]),
            "takes values, and no expressions",
        ),
    ] {
        let error = Reckoned::new(&expr, &columns()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.cause.contains(cause), "{error}");
    }
}

#[test]
fn types_that_do_not_go_together() {
    for (expr, cause) in [
        (col("x") + 1, "there is no column x"),
        (col("s") + 1, "+ takes numbers, and not type string"),
        (col("s").eq(1), "not string and i64"),
        (!col("i"), "not takes a condition, and not type i64"),
        (
            col("b") & col("i"),
            "and takes conditions, and not type i64",
        ),
        (if_else(col("i"), 1, 2), "if_else takes conditions"),
        (col("s").cast(Type::I64), "what text says tells parse"),
        (col("u").cast(Type::Bool), "a condition, as x != 0"),
        (col("u").cast(Type::Binary), "cannot be one of type binary"),
        (
            col("u").cast(Type::String) + 1,
            "+ takes numbers, and not type string",
        ),
        (col("s").unary(Unary::ListLength), "a list, which is binary"),
        (-col("b"), "- takes a number"),
    ] {
        let error = Reckoned::new(&expr, &columns()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Usage);
        assert!(error.cause.contains(cause), "{error}");
    }
}

/// Steps where no value may be missing, a tree where one may be and none is.
#[test]
fn floats_come_to_the_same_by_steps_and_as_a_tree() {
    let mut state = 11_u64;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let nullable: Vec<Column> = columns().into_iter().map(Column::or_null).collect();
    let numbers = [0.0, -0.0, 0.5, -3.0, 1e300, f64::INFINITY, f64::NAN];
    for round in 0..3000 {
        let mut made: Vec<Expr> = vec![col("i"), col("u"), col("f"), col("b").cast(Type::F64)];
        made.extend(numbers.map(lit));
        made.push(lit(2u64));
        // Each of two before it, the last ones more often, so that some are deep on either side.
        for _ in 0..1 + next(40) {
            let mut one = || {
                let back = next(3).min(next(made.len() as u64));
                let at = match next(2) {
                    0 => made.len() as u64 - 1 - back,
                    _ => next(made.len() as u64),
                };
                made[at as usize].clone()
            };
            let (one, other) = (one(), one());
            made.push(match next(10) {
                0 => one.cast(Type::F64) + other,
                1 => one.cast(Type::F64) - other,
                2 => one.cast(Type::F64) * other,
                3 | 4 => one / other,
                5 => one.cast(Type::F64).floor_div(other),
                6 => one.cast(Type::F64) % other,
                7 => -one.cast(Type::F64),
                8 => one.sqrt(),
                _ => if_else(one.gt(other), 1, col("f")).abs(),
            });
            if made
                .last()
                .is_some_and(|last| format!("{last:?}").len() > 20_000)
            {
                break;
            }
        }
        let expr = &made[made.len() - 1];
        let of = |columns: &[Column]| Reckoned::new(expr, columns);
        let (steps, tree) = (of(&columns()).unwrap(), of(&nullable).unwrap());
        assert!(matches!(steps.node, Node::Floats(_)), "{expr:?}");
        assert!(!format!("{:?}", tree.node).contains("Floats(Floats { steps: [Column"));
        let record = record(next(9) as i64 - 4, next(5), numbers[next(7) as usize]);
        let texts = Texts::default();
        let found = [steps, tree].map(|one| match one.value(&record, &texts) {
            Ok(Value::F64(value)) => Ok(value.to_bits()),
            Ok(value) => panic!("{value:?} is no float"),
            Err(error) => Err(error.to_string()),
        });
        assert_eq!(found[0], found[1], "round {round}: {expr:?} of {record:?}");
    }
}
