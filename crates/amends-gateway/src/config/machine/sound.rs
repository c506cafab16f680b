//! No schema that something fits is refused: what the checker of machines says is held against what validates inputs.

use amends_core::machine::{ActionSpec, MachineSpec, Machines};
use amends_wire::Schema;
use serde_json::{Map, Value, json};

/// Numbers that come in the same order every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())].clone()
    }

    fn scalar(&mut self) -> Value {
        let numbers =
            [json!(0), json!(1), json!(2), json!(2.0), json!(3), json!(-1), json!(1.5), json!(0.3), json!(10)];
        let others =
            [json!(null), json!(true), json!(false), json!(""), json!("a"), json!("ab"), json!("abc"), json!("b1")];
        if self.roll(2) == 0 { self.one(&numbers) } else { self.one(&others) }
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.roll(if depth == 0 { 4 } else { 8 }) {
            0..4 => self.scalar(),
            4 | 5 => (0..self.roll(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let mut members = Map::new();
                for name in ["a", "b", "c"] {
                    if self.roll(2) == 0 {
                        members.insert(name.to_owned(), self.value(depth - 1));
                    }
                }
                Value::Object(members)
            }
        }
    }

    fn schema(&mut self, depth: usize) -> Value {
        if self.roll(12) == 0 {
            return json!(self.roll(3) > 0);
        }
        let mut schema = Map::new();
        for _ in 0..=self.roll(4) {
            let (key, said) = if depth > 0 && self.roll(2) == 0 { self.joined(depth - 1) } else { self.plain() };
            schema.insert(key.to_owned(), said);
        }
        Value::Object(schema)
    }

    fn plain(&mut self) -> (&'static str, Value) {
        let kinds = ["string", "number", "integer", "boolean", "object", "array", "null"];
        let bound = self.one(&[json!(0), json!(1), json!(2), json!(3), json!(1.4), json!(1.6), json!(-1)]);
        let size = json!(self.roll(4));
        match self.roll(24) {
            0..4 => ("type", json!(self.one(&kinds))),
            4 => ("type", json!([self.one(&kinds[..3]), self.one(&kinds[3..])])),
            5 | 6 => ("enum", (0..=self.roll(3)).map(|_| self.value(1)).collect()),
            7 => ("const", self.value(1)),
            8 => ("minimum", bound),
            9 => ("maximum", bound),
            10 => ("exclusiveMinimum", bound),
            11 => ("exclusiveMaximum", bound),
            12 => ("multipleOf", self.one(&[json!(2), json!(5), json!(0.5), json!(0.1), json!(1.5)])),
            13 => ("minLength", size),
            14 => ("maxLength", size),
            15 => ("pattern", json!(self.one(&["^a", "b", "^[a-c]+$", "\\d", "^x"]))),
            16 => ("minItems", size),
            17 => ("maxItems", size),
            18 => ("uniqueItems", json!(true)),
            19 => ("minProperties", size),
            20 => ("maxProperties", size),
            21 => ("dependentRequired", json!({ self.one(&["a", "b"]): [self.one(&["b", "c"])] })),
            _ => ("required", json!([self.one(&["a", "b", "c"])])),
        }
    }

    fn joined(&mut self, depth: usize) -> (&'static str, Value) {
        let some = |dice: &mut Self| (0..=dice.roll(2)).map(|_| dice.schema(depth)).collect::<Value>();
        match self.roll(20) {
            0..4 => {
                let (one, other) = (self.schema(depth), self.schema(depth));
                ("properties", json!({ self.one(&["a", "b"]): one, self.one(&["b", "c"]): other }))
            }
            4 | 5 => ("additionalProperties", if self.roll(2) == 0 { json!(false) } else { self.schema(depth) }),
            6 => ("patternProperties", json!({ self.one(&["^a", "[bc]"]): self.schema(depth) })),
            7 => ("propertyNames", self.schema(depth)),
            8 | 9 => ("items", self.schema(depth)),
            10 => ("prefixItems", some(self)),
            11 => ("contains", self.schema(depth)),
            12 => ("minContains", json!(self.roll(3))),
            13 => ("allOf", some(self)),
            14 => ("anyOf", some(self)),
            15 => ("oneOf", some(self)),
            16 => ("if", self.schema(depth)),
            17 => ("then", self.schema(depth)),
            18 => ("$ref", json!(self.one(&["#/$defs/x", "#/$defs/y"]))),
            _ => ("not", self.schema(depth)),
        }
    }
}

fn is_refused(schema: &Value) -> bool {
    let go = ActionSpec::new(["a"], "z").input(schema.clone());
    let machines = Machines::read(&[("m".into(), MachineSpec::new("a").terminal(["z"]).action("go", go))].into());
    let machines = machines.expect("its input keeps no machine from being read");
    let mut found = machines.declared().flat_map(|machine| machines.look(machine, |_| None));
    found.any(|finding| finding.message.starts_with("no inputs fit its schema"))
}

#[test]
fn a_schema_that_something_fits_is_not_refused() {
    let mut dice = Dice(7);
    let (mut refused, mut fitted) = (0, 0);
    for _ in 0..4_000 {
        let schema = json!({
            "$defs": { "x": dice.schema(1), "y": dice.schema(1) },
            "required": ["n"], "properties": { "n": dice.schema(2) },
        });
        let Ok(validator) = Schema::from_value(schema.clone()) else { continue };
        let no = is_refused(&schema);
        refused += usize::from(no);
        for _ in 0..80 {
            let given = json!({ "n": dice.value(2) });
            let fits = validator.fits(&given) == Some(true);
            fitted += usize::from(fits);
            assert!(!fits || !no, "{given} fits {schema}");
        }
    }
    assert!(refused > 400 && fitted > 10_000, "{refused} were refused, {fitted} values fit");
}
