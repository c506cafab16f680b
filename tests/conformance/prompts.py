"""The prompts that the suite gets."""

from mcp.shared.exceptions import MCPError

from state import INVALID_PARAMS, asks, embedded, form, image, responses, text


def argument(name):
    return {"name": name, "description": f"The prompt's {name}", "required": True}


ENTRIES = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": [argument("arg1"), argument("arg2")],
    "test_prompt_with_embedded_resource": [argument("resourceUri")],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}


async def listed(ctx, params):
    entries = ENTRIES.items()
    return {"prompts": [{"name": name, "description": name, "arguments": arguments} for name, arguments in entries]}


async def get(ctx, params):
    given = params.arguments or {}
    missing = [argument["name"] for argument in ENTRIES.get(params.name, []) if argument["name"] not in given]
    if missing:
        raise MCPError(INVALID_PARAMS, f"arguments are missing: {missing}")
    match params.name:
        case "test_simple_prompt":
            said = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            said = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            said = [embedded(given["resourceUri"], "Embedded resource content for testing."), text("Read it.")]
        case "test_prompt_with_image":
            said = [image(), text("Look at it.")]
        case "test_input_required_result_prompt":
            answer = responses(ctx).get("user_context")
            if not isinstance(answer, dict):
                return asks({"user_context": form("What context should the prompt use?", context="string")})
            said = [text(f"With the context {answer['content']['context']}")]
        case _:
            raise MCPError(INVALID_PARAMS, f"there is no prompt {params.name}")
    return {"messages": [{"role": "user", "content": content} for content in said]}
