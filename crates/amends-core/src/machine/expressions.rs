//! The expressions of an action, each with its place in the declaration.

use super::{Action, Does, Target, ToolUse};
use crate::expression::Expression;

/// The part of an action that an expression is in, where in that, and the expression.
pub(super) type Placed<'a> = (&'static str, Vec<String>, &'a Expression);

impl Action {
    /// Its expressions, each with its place.
    pub(super) fn expressions(&self) -> impl Iterator<Item = Placed<'_>> {
        let judges = [("guard", &self.guard), ("gate", &self.stage.gate), ("assert", &self.stage.assert)];
        let judges = judges.into_iter().filter_map(|(part, judge)| Some((part, Vec::new(), judge.as_ref()?)));
        let given = self.args.iter().map(|(name, given)| ("args", vec![name.clone()], given));
        let writes = self.writes.iter().map(|(field, write)| ("writes", vec![field.clone()], write));
        let setup = legs("setup", &self.stage.setup);
        let exit = legs("exit", &self.stage.exit);
        judges
            .chain(setup)
            .chain(self.does.arguments())
            .chain(given)
            .chain(exit)
            .chain(writes)
            .chain(self.to.conditions())
    }
}

impl Does {
    fn arguments(&self) -> Vec<Placed<'_>> {
        match self {
            Self::Tool(used) => used.args.iter().map(|(name, args)| ("args", vec![name.clone()], args)).collect(),
            Self::Parallel(siblings) => {
                let args =
                    siblings.iter().flat_map(|(sibling, used)| used.args.iter().map(move |args| (sibling, args)));
                let within = |sibling: &String, name: &String| vec![sibling.clone(), "args".to_owned(), name.clone()];
                args.map(|(sibling, (name, args))| ("parallel", within(sibling, name), args)).collect()
            }
            Self::Nothing | Self::Function(_) | Self::Machine(_) | Self::Allowed(_) => Vec::new(),
        }
    }
}

impl Target {
    fn conditions(&self) -> impl Iterator<Item = Placed<'_>> {
        let branches = match self {
            Self::One(_) => [].as_slice(),
            Self::Choice(branches) => branches.as_slice(),
        };
        let conditions = branches.iter().enumerate();
        conditions.filter_map(|(n, branch)| Some(("to", vec![n.to_string(), "when".to_owned()], branch.when.as_ref()?)))
    }
}

fn legs<'a>(part: &'static str, legs: &'a [(String, ToolUse)]) -> impl Iterator<Item = Placed<'a>> {
    legs.iter().enumerate().flat_map(move |(n, (_, used))| {
        used.args.iter().map(move |(name, args)| (part, vec![n.to_string(), "args".to_owned(), name.clone()], args))
    })
}
