"""The coffee order for Theodosia: theodosia serve theodosia_coffee:build --app-dir FOLDER

Served as its documentation shows: a builder for each session, and its tracker, without which nothing would be recorded.
"""

from burr.core import ApplicationBuilder, Condition, State, action
from theodosia import tracker


@action(reads=[], writes=["stage", "item", "number"])
def take_order(state: State, item: str, number: int) -> State:
    return state.update(stage="ordered", item=item, number=number)


@action(reads=["stage"], writes=["stage", "amount"])
def pay(state: State, amount: float) -> State:
    return state.update(stage="paid", amount=amount)


@action(reads=["stage"], writes=["stage"])
def fulfil(state: State) -> State:
    return state.update(stage="fulfilled")


@action(reads=["stage"], writes=["stage"])
def close(state: State) -> State:
    return state.update(stage="closed")


def build() -> ApplicationBuilder:
    return (
        ApplicationBuilder()
        .with_actions(take_order=take_order, pay=pay, fulfil=fulfil, close=close)
        .with_transitions(
            ("take_order", "pay", Condition.expr("stage == 'ordered'")),
            ("pay", "fulfil", Condition.expr("stage == 'paid'")),
            ("fulfil", "take_order", Condition.expr("stage == 'fulfilled'")),
            ("fulfil", "close", Condition.expr("stage == 'fulfilled'")),
        )
        .with_state(stage="created")
        .with_entrypoint("take_order")
        .with_tracker(tracker("coffee"))
    )
