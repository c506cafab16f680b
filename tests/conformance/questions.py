"""The tools that ask the client for something: on the way (2025-11-25), or by their answer (2026-07-28)."""

import mcp_types as types

from state import ROOTS, asks, form, responses, sample, text, unsealed


def says(words):
    return {"content": [text(words)]}


# Stateful: the question goes out while the call runs.


async def sampling(ctx, args):
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=args["prompt"]))
    answer = await ctx.session.create_message(messages=[message], max_tokens=100, related_request_id=ctx.request_id)
    return says(f"LLM response: {getattr(answer.content, 'text', '')}")


async def ask(ctx, message, schema):
    answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return says(f"User response: action={answer.action}, content={answer.content}")


async def elicitation(ctx, args):
    fields = {"username": {"type": "string", "description": "The name"}, "email": {"type": "string", "description": "The address"}}
    return await ask(ctx, args["message"], {"type": "object", "properties": fields, "required": list(fields)})


async def defaults(ctx, args):
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return await ask(ctx, "Please look over these values", {"type": "object", "properties": fields, "required": []})


def titled(*options):
    return [{"const": value, "title": title} for value, title in options]


async def enums(ctx, args):
    levels = titled(("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option"))
    plain = ["option1", "option2", "option3"]
    fields = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": levels},
        "legacyEnum": {"type": "string", "enum": plain, "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": levels}},
    }
    return await ask(ctx, "Please choose", {"type": "object", "properties": fields, "required": []})


# Stateless: the question is the answer, and the client calls again.


def answered(ctx, *names):
    """Whether the client answered all of these, with an object each."""
    return all(isinstance(responses(ctx).get(name), dict) for name in names)


async def one_form(ctx, args):
    if not answered(ctx, "user_name"):
        return asks({"user_name": form("What is your name?", name="string")})
    return says(f"Hello, {responses(ctx)['user_name'].get('content', {}).get('name')}!")


async def one_sample(ctx, args):
    if not answered(ctx, "capital_question"):
        return asks({"capital_question": sample("What is the capital of France?")})
    return says(f"The model said {responses(ctx)['capital_question']['content']}")


async def one_roots(ctx, args):
    if not answered(ctx, "client_roots"):
        return asks({"client_roots": ROOTS})
    return says(f"The roots are {responses(ctx)['client_roots']['roots']}")


async def with_state(ctx, args):
    if not answered(ctx, "confirm"):
        return asks({"confirm": form("Please confirm", ok="boolean")}, {"tool": "request_state"})
    unsealed(ctx.params.get("requestState"))
    return says("state-ok")


async def many(ctx, args):
    questions = {
        "user_name": form("What is your name?", name="string"),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": ROOTS,
    }
    if not answered(ctx, *questions):
        return asks(questions, {"asked": list(questions)})
    unsealed(ctx.params.get("requestState"))
    return says("Everything was answered.")


async def rounds(ctx, args):
    state = unsealed(ctx.params["requestState"]) if ctx.params.get("requestState") else {"round": 1}
    if state["round"] == 1 and answered(ctx, "step1"):
        name = responses(ctx)["step1"]["content"]["name"]
        return asks({"step2": form("Step 2: What is your favorite color?", color="string")}, {"round": 2, "name": name})
    if state["round"] == 2 and answered(ctx, "step2"):
        return says(f"{state['name']} likes {responses(ctx)['step2']['content']['color']}.")
    return asks({"step1": form("Step 1: What is your name?", name="string")}, {"round": 1})


async def declared(ctx, args):
    can = ctx.session.client_capabilities
    questions = {}
    if can is not None and can.sampling is not None:
        questions["greeting"] = sample("Generate a greeting", 50)
    if can is not None and can.elicitation is not None:
        questions["user_name"] = form("What is your name?", name="string")
    return asks(questions) if questions else says("The client can be asked nothing.")


ROUNDS = {
    "test_streaming_elicitation": one_form,
    "test_input_required_result_elicitation": one_form,
    "test_input_required_result_sampling": one_sample,
    "test_input_required_result_list_roots": one_roots,
    "test_input_required_result_request_state": with_state,
    "test_input_required_result_tampered_state": with_state,
    "test_input_required_result_multiple_inputs": many,
    "test_input_required_result_multi_round": rounds,
    "test_input_required_result_capabilities": declared,
}
