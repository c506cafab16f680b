//! Expressions over payloads, in CEL. They run beside the dispatcher, pure and without a clock; it sees only their answers.

mod answers;
mod compared;
mod conjuncts;
mod cost;
mod functions;
mod kinds;
mod mixed;
mod names;
mod places;
mod sure;
mod unanswered;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use cost::Cost;
pub use names::Path;
pub(crate) use places::{Place, Step};
use whole::{Whole, wholly};

/// The functions that every expression may call. Declaring them takes longer than most expressions do.
static STANDARD: LazyLock<Arc<cel::Env>> = LazyLock::new(|| {
    let mut env = cel::Env::stdlib();
    mixed::declare(&mut env);
    Arc::new(env)
});

/// A parsed CEL expression that remembers its source.
#[derive(Clone)]
pub struct Expression {
    source: Arc<str>,
    program: Arc<cel::Program>,
    /// The same, which calculates with numbers of any kind.
    mixing: Arc<cel::IdedExpr>,
    /// The variables it takes from outside; no other one is handed to it.
    variables: Arc<BTreeSet<String>>,
    /// How often its parts may run, by the size of what they run over.
    cost: Cost,
}

/// Why an expression was not taken, or gave no answer.
#[derive(Debug, Error)]
pub enum ExpressionError {
    /// It cannot be read.
    #[error("`{expression}` is not a CEL expression: {reason}")]
    Unreadable {
        /// The expression.
        expression: String,
        /// The parser's words.
        reason: String,
    },
    /// It gave no answer for these values.
    #[error("`{expression}` gives no answer: {reason}")]
    NoAnswer {
        /// The expression.
        expression: String,
        /// The evaluator's words.
        reason: String,
    },
}

impl Expression {
    /// Parses an expression.
    ///
    /// ```
    /// use amends_core::expression::Expression;
    /// use serde_json::json;
    ///
    /// let found = Expression::parse("result.found")?;
    /// assert_eq!(found.evaluate(&[("result", &json!({"found": true}))])?, json!(true));
    /// # Ok::<(), amends_core::expression::ExpressionError>(())
    /// ```
    pub fn parse(source: &str) -> Result<Self, ExpressionError> {
        let program = cel::Program::compile(source).map_err(|error| ExpressionError::Unreadable {
            expression: source.to_owned(),
            reason: error.to_string(),
        })?;
        let cost = Cost::of(program.expression());
        let variables = Arc::new(names::variables(program.expression()));
        let mixing = Arc::new(mixed::mixing(program.expression()));
        Ok(Self { source: source.into(), program: Arc::new(program), mixing, variables, cost })
    }

    /// The text it was parsed from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it mentions that variable.
    pub fn mentions(&self, variable: &str) -> bool {
        self.program.references().has_variable(variable)
    }

    /// The variables it takes from outside.
    ///
    /// ```
    /// # use amends_core::expression::Expression;
    /// let guard = Expression::parse("state.items.all(item, item.price < inputs.most)")?;
    /// assert_eq!(guard.variables().iter().collect::<Vec<_>>(), ["inputs", "state"]);
    /// # Ok::<(), amends_core::expression::ExpressionError>(())
    /// ```
    pub fn variables(&self) -> &BTreeSet<String> {
        &self.variables
    }

    /// The fields of that variable which it needs, and those whose presence it tests with `has`.
    pub fn fields(&self, variable: &str) -> (BTreeSet<String>, BTreeSet<String>) {
        names::fields(self.program.expression(), variable)
    }

    /// What it speaks of, by the names it has outside: `state.order.id` for `state.order['id'] > 3`.
    pub fn paths(&self) -> Vec<Path> {
        names::paths(self.program.expression())
    }

    /// What it speaks of in the items of lists: `inputs.lines[].n` for `inputs.lines.all(line, line.n > 0)`.
    pub(crate) fn within_items(&self) -> Vec<Place> {
        places::within_items(self.program.expression())
    }

    /// The functions it calls that there are not.
    ///
    /// ```
    /// # use amends_core::expression::Expression;
    /// let called = Expression::parse("lower(state.name).startsWith('a')")?.unknown_functions();
    /// assert_eq!(called.into_iter().collect::<Vec<_>>(), ["lower"]);
    /// # Ok::<(), amends_core::expression::ExpressionError>(())
    /// ```
    pub fn unknown_functions(&self) -> BTreeSet<String> {
        functions::unknown(self.program.expression())
    }

    /// The parts of it that must all hold: those it joins with `&&`, else itself.
    pub fn conjuncts(&self) -> Vec<&str> {
        conjuncts::conjuncts(&self.source, self.program.expression()).unwrap_or_else(|| vec![&self.source])
    }

    /// The texts it chooses among, if every answer it can give is a text that is written out in it.
    ///
    /// ```
    /// # use amends_core::expression::Expression;
    /// let gate = Expression::parse("setup.order.paid ? 'skip' : 'proceed'")?;
    /// assert_eq!(gate.answers().unwrap().into_iter().collect::<Vec<_>>(), ["proceed", "skip"]);
    /// # Ok::<(), amends_core::expression::ExpressionError>(())
    /// ```
    pub fn answers(&self) -> Option<BTreeSet<String>> {
        answers::texts(self.program.expression())
    }

    /// Whether all it can say is true or false.
    ///
    /// ```
    /// # use amends_core::expression::Expression;
    /// assert!(Expression::parse("setup.order.paid && inputs.n > 3")?.is_condition());
    /// assert!(!Expression::parse("setup.order.paid ? 'skip' : 'proceed'")?.is_condition());
    /// # Ok::<(), amends_core::expression::ExpressionError>(())
    /// ```
    pub fn is_condition(&self) -> bool {
        answers::is_condition(self.program.expression())
    }

    /// The JSON types of which its value can be, by those of the values it speaks of; nothing where that is not known. A number
    /// that may be whole is `integer` among others.
    pub(crate) fn kinds(&self, known: &kinds::Known<'_>) -> Option<BTreeSet<&'static str>> {
        kinds::kinds(self.program.expression(), known)
    }

    /// Why it never gives an answer, whatever the values of those types are; nothing where it may.
    pub(crate) fn never_answers(&self, known: &kinds::Known<'_>) -> Option<String> {
        unanswered::never(self.program.expression(), known)
    }

    /// Whether it can be true at all, as far as it says that itself: `inputs.n < inputs.n` never is. Of one that may be and may
    /// not, it can.
    pub(crate) fn can_hold(&self) -> bool {
        sure::can(self.program.expression()).hold
    }

    /// What each value it speaks of is compared with, if it only compares values with what is written out in it, and joins that.
    ///
    /// ```
    /// # use amends_core::expression::Expression;
    /// let guard = Expression::parse("inputs.n > 3 && state.kind in ['a', 'b']")?;
    /// let compared: Vec<String> = guard.compared().unwrap().iter().map(|(path, with)| format!("{path} {with:?}")).collect();
    /// assert_eq!(compared, [r#"inputs.n [Number(3)]"#, r#"state.kind [String("a"), String("b")]"#]);
    /// assert!(Expression::parse("inputs.n + 1 > 3")?.compared().is_none());
    /// # Ok::<(), amends_core::expression::ExpressionError>(())
    /// ```
    pub fn compared(&self) -> Option<BTreeMap<Path, Vec<Value>>> {
        compared::compared(self.program.expression())
    }

    /// Its value under those variables. Where that could take too long there is none.
    pub fn evaluate(&self, variables: &[(&str, &Value)]) -> Result<Value, ExpressionError> {
        let no_answer = |reason: String| ExpressionError::NoAnswer { expression: self.source.to_string(), reason };
        let taken = || variables.iter().filter(|(name, _)| self.variables.contains(*name));
        if !self.cost.is_bearable(taken().map(|(_, value)| *value)) {
            return Err(no_answer("it would take too long over so much".into()));
        }
        let answer = |expression: &cel::IdedExpr, as_seen: for<'a> fn(&'a Value) -> Whole<'a>| {
            let mut context = cel::Context::with_env(STANDARD.clone());
            for (name, value) in taken() {
                context.add_variable(*name, as_seen(value)).map_err(|error| no_answer(error.to_string()))?;
            }
            let value = cel::Value::resolve(expression, &context).map_err(|error| no_answer(error.to_string()))?;
            value.json().map_err(|error| no_answer(format!("{error:?}")))
        };
        // What CEL answers is left as it is. It gives no answer where numbers are of different kinds, which JSON does not know.
        let said = answer(self.program.expression(), |value| Whole::as_written(value));
        said.or_else(|error| answer(&self.mixing, |value| Whole::by_worth(value)).map(wholly).map_err(|_| error))
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.source)
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Serialize for Expression {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.source)
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let source = String::deserialize(deserializer)?;
        Self::parse(&source).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_missing_field_gives_no_answer_rather_than_a_wrong_one() {
        let found = Expression::parse("result.found").unwrap();
        assert!(found.evaluate(&[("result", &json!({}))]).is_err());
        assert!(found.mentions("result") && !found.mentions("key"));
    }

    #[test]
    fn what_an_expression_does_not_speak_of_is_not_handed_to_it() {
        let (state, inputs) = (json!({ "n": 2 }), (0..2_000).collect());
        let over =
            |source: &str| Expression::parse(source).unwrap().evaluate(&[("state", &state), ("inputs", &inputs)]);
        assert_eq!(over("[1, 2].all(a, [1, 2].all(b, [1].all(c, a + b + c > state.n)))").unwrap(), json!(true));
        assert_eq!(over("[1].map(state, .state.n + state)").unwrap(), json!([3]));
        assert_eq!(over(".state.n").unwrap(), json!(2));
    }

    #[test]
    fn whole_numbers_are_of_one_kind() {
        let over = |source: &str| {
            let state = json!({ "n": 3, "neg": -1, "half": 0.5, "list": [1, 2], "big": u64::MAX });
            Expression::parse(source).unwrap().evaluate(&[("state", &state)]).unwrap()
        };
        assert_eq!(over("state.n + 1"), json!(4));
        assert_eq!(over("state.n * 2 - state.list[1]"), json!(4));
        assert_eq!(over("state.neg + state.n"), json!(2));
        assert_eq!(over("state.half + 0.5"), json!(1.0));
        assert_eq!(over("state.big > 0 && state.n == 3 && size(state.list) == state.list[1]"), json!(true));
        assert_eq!(over("state")["big"], json!(u64::MAX));
    }

    #[test]
    fn numbers_of_different_kinds_are_calculated_with() {
        let state = json!({
            "five": 5, "as_five": 5.0, "ten": 1e1, "half": 2.5, "nil": 0.0, "large": 9_007_199_254_740_993_i64, "huge": 1e20,
            "most": u64::MAX, "list": [1, 2.0, 2.5],
        });
        for (source, gives) in [
            ("state.five + state.as_five", json!(10)),
            ("state.five - state.ten", json!(-5)),
            ("state.as_five * 3", json!(15)),
            ("state.as_five / 2", json!(2)),
            ("state.as_five % 2", json!(1)),
            ("state.as_five % state.half", json!(0)),
            ("state.nil + state.five", json!(5)),
            ("state.five + state.half", json!(7.5)),
            ("state.half + state.five + state.half", json!(10)),
            ("state.five * 1.5", json!(7.5)),
            ("state.five / 2.0", json!(2.5)),
            ("state.half % 2", json!(0.5)),
            ("double('2.5') + 1", json!(3.5)),
            ("state.large + state.as_five", json!(9_007_199_254_740_998_i64)),
            ("state.large + 1.0", json!(9_007_199_254_740_994_i64)),
            ("state.five + state.huge", json!(1e20)),
            ("state.most - state.five", json!(u64::MAX - 5)),
            ("state.five + state.most - 7u", json!(null)),
            ("state.list[state.list[0] + 0.0 == 1.0 ? state.ten - 9 : 0]", json!(2)),
            ("state.list.map(n, n + 1)", json!([2, 3, 3.5])),
            ("state.list.filter(n, n * 2 > 3.5).map(n, n / 2.0)", json!([1, 1.25])),
            ("state.list.exists_one(n, n + 0.5 == 3.0)", json!(true)),
            ("{ 'sum': state.five + 0.25, 'n': state.as_five }", json!({ "sum": 5.25, "n": 5 })),
            ("state.five + 0.5 > 5", json!(true)),
            ("'n' + string(state.five * 1.5)", json!("n7.5")),
        ] {
            let said = Expression::parse(source).unwrap().evaluate(&[("state", &state)]);
            assert_eq!(said.unwrap_or_default(), gives, "{source}");
        }
    }

    #[test]
    fn what_is_no_arithmetic_stays_without_an_answer() {
        let state = json!({ "n": 5, "x": 5.5, "name": "a", "list": [1], "most": i64::MAX });
        for source in [
            "state.name + 1",
            "state.n + state.name",
            "state.list + 1",
            "state.n / 0",
            "state.n % 0",
            "state.n / 0.0",
            "state.x % 0",
            "state.most + 1",
            "state.list[state.x]",
            "state.list[state.n]",
            "state.lack + 1",
            "-state.name",
            "state.n * true",
            "null + 1",
        ] {
            let error = Expression::parse(source).unwrap().evaluate(&[("state", &state)]);
            assert!(error.is_err(), "{source}: {error:?}");
        }
    }

    #[test]
    fn what_cel_answers_is_left_as_it_is() {
        let state = json!({ "x": 5.0, "two": 2.0, "n": 5, "half": 0.5 });
        for (source, gives) in [
            ("state.x / state.two", json!(2.5)),
            ("state.half + 0.5", json!(1.0)),
            ("state.x", json!(5.0)),
            ("type(state.x) == double", json!(true)),
            ("state.n / 2", json!(2)),
            ("state", state.clone()),
        ] {
            assert_eq!(Expression::parse(source).unwrap().evaluate(&[("state", &state)]).unwrap(), gives, "{source}");
        }
    }

    #[test]
    fn the_type_of_a_value_can_be_asked_for() {
        let over = |source: &str| {
            let read = Expression::parse(source).unwrap();
            assert_eq!(read.variables().iter().collect::<Vec<_>>(), ["state"], "{source}");
            let state = json!({ "n": 3, "half": 0.5, "name": "a", "list": [1], "to": {}, "none": null, "is": true });
            read.evaluate(&[("state", &state)]).unwrap()
        };
        for (name, kind) in [
            ("n", "int"),
            ("half", "double"),
            ("name", "string"),
            ("list", "list"),
            ("to", "map"),
            ("none", "null_type"),
            ("is", "bool"),
        ] {
            assert_eq!(over(&format!("type(state.{name}) == {kind}")), json!(true), "{name}");
            assert_eq!(over(&format!("type(state.{name}) == bytes")), json!(false), "{name}");
        }
    }

    #[test]
    fn what_would_take_too_long_gives_no_answer() {
        let pairs = Expression::parse("result.all(a, result.all(b, result.all(c, a + b + c >= 0)))").unwrap();
        let few: Value = (0..20).collect();
        assert_eq!(pairs.evaluate(&[("result", &few)]).unwrap(), json!(true));
        let many: Value = (0..2_000).collect();
        let error = pairs.evaluate(&[("result", &many)]).unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
        let once = Expression::parse("result.exists(a, a == 1999)").unwrap();
        assert_eq!(once.evaluate(&[("result", &many)]).unwrap(), json!(true));
    }
}
