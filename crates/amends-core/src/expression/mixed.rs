//! Arithmetic over numbers of different kinds. CEL calculates with numbers of one kind and gives no answer for others; JSON has one
//! kind of number, and an agent may write the same one as `5`, `5.0` or `5e0`.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, operators};
use cel::common::types::{CelDouble, CelInt, CelUInt, DYN_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{Env, ExecutionError};

use super::whole::EXACT_MAX;

/// The operators that calculate, and what each is called where it mixes. Nobody can write such a name.
const MIXING: [(&str, &str, cel::common::functions::Function); 5] = [
    (operators::ADD, "@add", |both| calculate(Sign::Add, both)),
    (operators::SUBSTRACT, "@sub", |both| calculate(Sign::Sub, both)),
    (operators::MULTIPLY, "@mul", |both| calculate(Sign::Mul, both)),
    (operators::DIVIDE, "@div", |both| calculate(Sign::Div, both)),
    (operators::MODULO, "@rem", |both| calculate(Sign::Rem, both)),
];

#[derive(Clone, Copy)]
enum Sign {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

/// Declares the functions that calculate with numbers of any kind.
pub(super) fn declare(env: &mut Env) {
    for (_, name, function) in MIXING {
        env.add_overload(name, name, vec![DYN_TYPE, DYN_TYPE], function).expect("each is declared once");
    }
}

/// The same expression, which calculates with numbers of any kind.
pub(super) fn mixing(expression: &IdedExpr) -> IdedExpr {
    let mut mixing = expression.clone();
    mix(&mut mixing);
    mixing
}

fn mix(part: &mut IdedExpr) {
    match &mut part.expr {
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| mix(target));
            call.args.iter_mut().for_each(mix);
            rename(call);
        }
        Expr::Comprehension(over) => {
            [&mut over.iter_range, &mut over.accu_init, &mut over.loop_cond, &mut over.loop_step, &mut over.result]
                .into_iter()
                .for_each(mix);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(mix),
        Expr::Map(map) => mix_entries(&mut map.entries),
        Expr::Struct(fields) => mix_entries(&mut fields.entries),
        Expr::Select(select) => mix(&mut select.operand),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

fn mix_entries(entries: &mut [IdedEntryExpr]) {
    for entry in entries {
        match &mut entry.expr {
            EntryExpr::StructField(field) => mix(&mut field.value),
            EntryExpr::MapEntry(entry) => {
                mix(&mut entry.key);
                mix(&mut entry.value);
            }
        }
    }
}

fn rename(call: &mut CallExpr) {
    // Lists are added to lists only, and `map` and `filter` are told by how they add theirs.
    let lists = call.args.iter().any(|part| matches!(part.expr, Expr::List(_)));
    let named = MIXING.iter().find(|(operator, ..)| *operator == call.func_name);
    if let Some((_, name, _)) = named.filter(|_| call.args.len() == 2 && !lists) {
        call.func_name = (*name).to_owned();
    }
}

fn calculate<'b, 'v>(sign: Sign, both: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let Ok([one, other]) = <[CowVal<'b, 'v>; 2]>::try_from(both) else {
        return Err(ExecutionError::missing_argument_or_target());
    };
    // CEL has no remainder of broken numbers, and calculates otherwise with all that are of one kind.
    let mixes = matches!(sign, Sign::Rem) || one.get_type() != other.get_type();
    if let (Some(left), Some(right)) = (Number::of(&*one), Number::of(&*other))
        && mixes
        && let Some(value) = left.with(sign, right)
    {
        return Ok(value);
    }
    plainly(sign, &*one, &*other)
}

/// What CEL says itself.
fn plainly<'b, 'v>(sign: Sign, one: &(dyn Val + 'v), other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let said = match sign {
        Sign::Add => one.as_adder().map(|it| it.add(other)),
        Sign::Sub => one.as_subtractor().map(|it| it.sub(other)),
        Sign::Mul => one.as_multiplier().map(|it| it.mul(other)),
        Sign::Div => one.as_divider().map(|it| it.div(other)),
        Sign::Rem => one.as_modder().map(|it| it.modulo(other)),
    };
    let said = said.ok_or_else(|| ExecutionError::function_error("arithmetic", "these have none"))?;
    Ok(CowVal::Owned(said?.into_owned()))
}

#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Broken(f64),
}

impl Number {
    fn of(value: &dyn Val) -> Option<Self> {
        let int = value.downcast_ref::<CelInt>().map(|it| Self::Whole((*it.inner()).into()));
        let uint = || value.downcast_ref::<CelUInt>().map(|it| Self::Whole((*it.inner()).into()));
        let double = || value.downcast_ref::<CelDouble>().map(|it| Self::Broken(*it.inner()));
        int.or_else(uint).or_else(double)
    }

    /// What comes of two numbers, where that is a number. Whole ones stay exact.
    fn with<'b, 'v>(self, sign: Sign, other: Self) -> Option<CowVal<'b, 'v>> {
        if let (Some(one), Some(other)) = (self.exact(sign, other), other.exact(sign, self)) {
            let value = match sign {
                Sign::Add => one.checked_add(other),
                Sign::Sub => one.checked_sub(other),
                Sign::Mul => one.checked_mul(other),
                Sign::Div => one.checked_div(other),
                Sign::Rem => one.checked_rem(other),
            }?;
            let int = i64::try_from(value).map(|it| CowVal::owned(CelInt::from(it)));
            return int.or_else(|_| u64::try_from(value).map(|it| CowVal::owned(CelUInt::from(it)))).ok();
        }
        let (one, other) = (self.broken(), other.broken());
        let value = match sign {
            Sign::Add => one + other,
            Sign::Sub => one - other,
            Sign::Mul => one * other,
            Sign::Div => one / other,
            Sign::Rem => one % other,
        };
        value.is_finite().then(|| CowVal::owned(CelDouble::from(value)))
    }

    /// The whole number that it is to be calculated with beside another: itself, or that as which it is written broken where the
    /// other one would not be kept otherwise.
    fn exact(self, sign: Sign, beside: Self) -> Option<i128> {
        match (self, beside) {
            (Self::Whole(whole), Self::Whole(_)) => Some(whole),
            (Self::Whole(whole), Self::Broken(_)) => (whole.unsigned_abs() > EXACT_MAX as u128).then_some(whole),
            (Self::Broken(broken), Self::Whole(_)) => {
                let whole = broken.fract() == 0.0 && broken.abs() < EXACT_MAX && !matches!(sign, Sign::Div);
                whole.then_some(broken as i128)
            }
            (Self::Broken(_), Self::Broken(_)) => None,
        }
    }

    fn broken(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Broken(broken) => broken,
        }
    }
}
