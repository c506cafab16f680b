//! What is read, and means something else than what was written.

use toml::de::{DeTable, DeValue};

use super::misread::{Mistake, line_of};

/// What nobody means in the machines of a text: a date or a number that JSON has none of, which would become something else, and a
/// list where a table belongs, whose items would be taken in the order of its keys.
pub(super) fn unmeant(text: &str) -> Vec<Mistake> {
    let Ok(document) = DeTable::parse(text) else { return Vec::new() };
    let mut look = Look { text, found: Vec::new() };
    if let Some(machines) = document.get_ref().get("machines") {
        look.values("machines", machines);
        look.members("machines", machines, |look, machine, written| {
            look.table(machine, written);
            look.part(machine, written, "limits", Look::table);
            look.part(machine, written, "actions", |look, key, actions| look.members(key, actions, Look::action));
        });
    }
    look.found
}

/// A value, with the place where it is written.
type Written<'i> = toml::Spanned<DeValue<'i>>;

/// The lists of tables in an action, with what one of those says.
const LISTS: [(&str, &str); 3] = [
    ("setup", "{ tool = \"…\" }"),
    ("exit", "{ tool = \"…\" }"),
    ("to", "{ when = \"…\", state = \"…\" }, { state = \"…\" }"),
];

/// What is to be written into a list of that name, where it is one of tables.
pub(super) fn sample(name: &str) -> Option<&'static str> {
    LISTS.into_iter().find_map(|(list, sample)| (list == name).then_some(sample))
}

struct Look<'t> {
    text: &'t str,
    found: Vec<Mistake>,
}

impl Look<'_> {
    fn action(&mut self, key: &str, action: &Written<'_>) {
        self.table(key, action);
        self.part(key, action, "retry", Self::table);
        self.part(key, action, "parallel", |look, key, siblings| look.members(key, siblings, Self::table));
        for (list, _) in LISTS {
            self.part(key, action, list, |look, key, items| {
                if let DeValue::Array(items) = items.get_ref() {
                    items.iter().for_each(|item| look.item(key, item));
                }
            });
        }
    }

    fn part(&mut self, key: &str, of: &Written<'_>, name: &str, look: impl Fn(&mut Self, &str, &Written<'_>)) {
        if let DeValue::Table(table) = of.get_ref()
            && let Some(value) = table.get(name)
        {
            look(self, &format!("{key}.{name}"), value);
        }
    }

    fn members(&mut self, key: &str, of: &Written<'_>, look: impl Fn(&mut Self, &str, &Written<'_>)) {
        if let DeValue::Table(table) = of.get_ref() {
            table.iter().for_each(|(name, value)| look(self, &format!("{key}.{}", name.get_ref()), value));
        }
    }

    /// A table that is written as a list.
    fn table(&mut self, key: &str, value: &Written<'_>) {
        if matches!(value.get_ref(), DeValue::Array(_)) {
            let name = key.rsplit('.').next().unwrap_or(key);
            self.wrong(key, value, "a list, and has to be a table", format!("write `{name} = {{ … }}`"));
        }
    }

    /// A table that is written as a list, among others.
    fn item(&mut self, key: &str, item: &Written<'_>) {
        if matches!(item.get_ref(), DeValue::Array(_)) {
            let name = key.rsplit('.').next().unwrap_or(key);
            let fix = format!("write `{name} = [{}]`", sample(name).unwrap_or("{ … }"));
            let (line, key) = (line_of(self.text, item.span().start), key.to_owned());
            let message = format!("`{key}` has a list in it, and has to be a list of tables");
            self.found.push(Mistake { line, message, key: Some(key), fix });
        }
    }

    /// Values that JSON has none of.
    fn values(&mut self, key: &str, value: &Written<'_>) {
        match value.get_ref() {
            DeValue::Table(_) => self.members(key, value, Self::values),
            DeValue::Array(items) => items.iter().for_each(|item| self.values(key, item)),
            DeValue::Datetime(date) => {
                self.wrong(
                    key,
                    value,
                    "a date, and there is none in JSON",
                    format!("write it as a text: `\"{date}\"`"),
                );
            }
            DeValue::Float(number) if !number.as_str().parse::<f64>().is_ok_and(f64::is_finite) => {
                self.wrong(key, value, "no number that JSON has", "write another, or a text".to_owned());
            }
            DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) => {}
        }
    }

    fn wrong(&mut self, key: &str, value: &Written<'_>, is: &str, fix: String) {
        let (line, key) = (line_of(self.text, value.span().start), key.to_owned());
        self.found.push(Mistake { line, message: format!("`{key}` is {is}"), key: Some(key), fix });
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Source;

    #[test]
    fn what_would_become_something_else_is_refused() {
        let machine = "[machines.m]\ninitial = \"a\"\nterminal = [\"z\"]\n";
        let go = "[machines.m.actions.go]\nfrom = [\"a\"]\nto = \"z\"\n";
        for (text, said) in [
            (
                format!("{machine}fields = {{ begun = 2026-01-02 }}\n{go}"),
                "test:4: `machines.m.fields.begun` is a date, and there is none in JSON; write it as a text: `\"2026-01-02\"`",
            ),
            (
                format!("{machine}fields = {{ most = [1.5, inf] }}\n{go}"),
                "test:4: `machines.m.fields.most` is no number that JSON has; write another, or a text",
            ),
            (
                format!("{machine}{go}input = {{ properties = {{ n = {{ maximum = nan }} }} }}\n"),
                "test:7: `machines.m.actions.go.input.properties.n.maximum` is no number that JSON has; write another, or a text",
            ),
            (
                format!("{machine}limits = [3]\n{go}"),
                "test:4: `machines.m.limits` is a list, and has to be a table; write `limits = { … }`",
            ),
            (
                format!("{machine}{go}tool = \"t\"\nretry = [3]\nsetup = [\n  [\"get\"],\n]\n"),
                "test:8: `machines.m.actions.go.retry` is a list, and has to be a table; write `retry = { … }`\n\
                 test:10: `machines.m.actions.go.setup` has a list in it, and has to be a list of tables; write `setup = [{ tool = \"…\" }]`",
            ),
            (
                format!("{machine}{}", go.replace("\"z\"", "[[\"z\"]]")),
                "test:6: `machines.m.actions.go.to` has a list in it, and has to be a list of tables; \
                 write `to = [{ when = \"…\", state = \"…\" }, { state = \"…\" }]`",
            ),
            (
                format!("{machine}{go}setup = {{ tool = \"get\" }}\n"),
                "test:7: `machines.m.actions.go.setup` is a table, and has to be a list; write `setup = [{ tool = \"…\" }]`",
            ),
        ] {
            assert_eq!(Source::of(text, "test").settle().unwrap_err().to_string(), said);
        }
        let sound =
            format!("{machine}fields = {{ most = [1.5, 1e300], none = {{ }} }}\nlimits = {{ steps = 3 }}\n{go}");
        Source::of(sound, "test").settle().unwrap();
    }
}
