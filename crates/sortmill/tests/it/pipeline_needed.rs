//! Orders that a later verb does away with are not made; where they mean something they are.

use std::collections::BTreeMap;

use sortmill::pipeline::{Column, Form, Table, Type, Value, count, fields, first, read_text, sum};

use crate::Scratch;
use crate::pipeline::{host, run, small};
use crate::sort::inputs::{Random, seed};

const BARE: Form = Form::csv(false);

/// Town, items, price.
type Sale = (u64, u64, u64);

struct Sales {
    scratch: Scratch,
    sales: Vec<Sale>,
}

impl Sales {
    fn new(test: &str) -> Self {
        let mut random = Random::new(seed(test));
        let mut below = |most: usize| random.below(most) as u64;
        let sales: Vec<Sale> = (0..20_000)
            .map(|_| (below(50), below(20), below(1000)))
            .collect();
        let scratch = Scratch::new(test);
        let lines: String = sales
            .iter()
            .map(|(town, items, price)| format!("{town} {items} {price}\n"))
            .collect();
        std::fs::write(scratch.path("in"), lines).unwrap();
        Self { scratch, sales }
    }

    fn table(&self) -> Table {
        let columns = ["town", "items", "price"].map(|name| Column::new(name, Type::U64));
        let lines = read_text([self.scratch.path("in")], 0);
        lines
            .flat_map(&fields("line", " ", columns.to_vec()))
            .unwrap()
    }

    /// What comes out of a table, and the verbs that were done for it.
    fn made(&self, table: &Table) -> (Vec<String>, Vec<String>) {
        let out = self.scratch.path("out");
        let pipeline = table.write(&out, BARE).unwrap();
        let report = run(&pipeline, &small()).unwrap();
        let text = std::fs::read_to_string(&out).unwrap();
        let told = pipeline.explain(&small(), &host()).unwrap();
        let names: Vec<String> = report.phases.into_iter().map(|phase| phase.name).collect();
        for name in &names {
            assert!(told.contains(&format!("phase {name}\n")), "{told}");
        }
        (text.lines().map(str::to_owned).collect(), names)
    }

    /// Items in each town and the price of its first sale, of those in the order of `by`.
    fn towns(&self, by: impl Fn(&Sale) -> u64) -> Vec<String> {
        let mut sales = self.sales.clone();
        sales.sort_by_key(by);
        let mut towns: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (town, items, price) in sales {
            towns.entry(town).or_insert((0, price)).0 += items;
        }
        towns
            .iter()
            .map(|(town, (items, price))| format!("{town},{items},{price}"))
            .collect()
    }
}

fn in_order(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_by_key(|line| line.split(',').next().unwrap().parse::<u64>().unwrap());
    lines
}

#[test]
fn groups_and_tops_need_no_order() {
    let sales = Sales::new("needed");
    let (by_price, shuffled) = ([("price", true)], sales.table().shuffle(1, 0).unwrap());
    for table in [
        sales.table().sort(&by_price).unwrap(),
        shuffled.clone(),
        shuffled.sort(&by_price).unwrap(),
    ] {
        let few = table
            .filter(["items"], |[items]| Ok(items.u64()? < 15))
            .unwrap();
        let groups = few.group_by(&["town"]).unwrap();
        let (found, names) = sales.made(&groups.agg(&[sum("items"), count()]).unwrap());
        assert_eq!(names, ["group by town"]);
        let mut model: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (town, items, _) in sales.sales.iter().filter(|sale| sale.1 < 15) {
            let sums = model.entry(*town).or_default();
            *sums = (sums.0 + items, sums.1 + 1);
        }
        let wanted: Vec<String> = model
            .iter()
            .map(|(town, (items, count))| format!("{town},{items},{count}"))
            .collect();
        assert_eq!(in_order(found), wanted);

        let (found, names) = sales.made(&table.top(30, &[("items", true)]).unwrap());
        assert_eq!(names, ["top 30 by items downwards"]);
        let mut all = sales.sales.clone();
        all.sort_by_key(|&(town, items, price)| (std::cmp::Reverse(items), town, price));
        let wanted: Vec<String> = all[..30]
            .iter()
            .map(|(town, items, price)| format!("{town},{items},{price}"))
            .collect();
        assert_eq!(found, wanted);
        assert_eq!(sales.made(&table.distinct().unwrap()).1, ["distinct"]);
    }
}

#[test]
fn the_order_counts_where_somebody_sees_it() {
    let sales = Sales::new("needed-order");
    let sorted = sales.table().sort(&[("price", false)]).unwrap();
    let groups = sorted.group_by(&["town"]).unwrap();
    let (found, names) = sales.made(&groups.agg(&[sum("items"), first("price")]).unwrap());
    assert_eq!(names, ["sort by price", "group by town"]);
    assert_eq!(in_order(found), sales.towns(|sale| sale.2));
    // A reduce takes the first one's price, too.
    let add = |kept: &mut [sortmill::pipeline::Owned], one: &[Value<'_>]| {
        kept[1] = (kept[1].value().u64()? + one[1].u64()?).into();
        Ok(())
    };
    let (found, names) = sales.made(&groups.reduce(add).unwrap());
    assert_eq!(names, ["sort by price", "group by town"]);
    assert_eq!(in_order(found), sales.towns(|sale| sale.2));
    // What a function of batches makes may follow from what it saw before.
    let batches = sorted.map_batches(
        &["town"],
        vec![Column::new("town", Type::U64)],
        1000,
        |batch, out| (0..batch.len()).try_for_each(|at| batch.with(&[Type::U64], at, &mut *out)),
    );
    let (_, names) = sales.made(&batches.unwrap().distinct().unwrap());
    assert_eq!(names, ["sort by price", "distinct"]);
    assert_eq!(sales.made(&sorted.shuffle(1, 0).unwrap()).1.len(), 2);
}

#[test]
fn of_two_sorts_the_first_is_left_out_if_the_second_orders_all_of_it() {
    let sales = Sales::new("needed-sorts");
    let by = |columns: &[&'static str]| -> Vec<(&'static str, bool)> {
        columns
            .iter()
            .map(|&name| (name, name == "items"))
            .collect()
    };
    for (one, other, phases) in [
        (&["town"][..], &["items"][..], 2),
        (&["town"], &["items", "town"], 1),
        (&["town", "price"], &["price", "items", "town"], 1),
        (&["price", "town"], &["town"], 2),
    ] {
        let table = sales
            .table()
            .sort(&by(one))
            .unwrap()
            .sort(&by(other))
            .unwrap();
        let (found, names) = sales.made(&table);
        assert_eq!(names.len(), phases, "{one:?} {other:?}");
        let key = |columns: &[&str], &(town, items, price): &Sale| -> Vec<u64> {
            let value = |&name: &&str| match name {
                "town" => town,
                "items" => u64::MAX - items,
                _ => price,
            };
            columns.iter().map(value).collect()
        };
        let mut wanted = sales.sales.clone();
        wanted.sort_by_key(|sale| key(one, sale));
        wanted.sort_by_key(|sale| key(other, sale));
        let wanted: Vec<String> = wanted
            .iter()
            .map(|(town, items, price)| format!("{town},{items},{price}"))
            .collect();
        assert_eq!(found, wanted, "{one:?} {other:?}");
    }
    // With a verb between them the columns are others.
    let table = sales.table().sort(&by(&["town"])).unwrap();
    let table = table
        .select(&["price", "town", "items"])
        .unwrap()
        .sort(&by(&["town"]))
        .unwrap();
    assert_eq!(sales.made(&table).1.len(), 2);
}
