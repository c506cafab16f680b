"""What Amends answers, as the signals of PydanticAI.

A toolset in an `AmendsToolset` tells the model what the model can mend, the run what the run cannot, and a person what
only a person can decide:

    from amends_pydantic_ai import AmendsToolset

    agent = Agent("openai:gpt-5", toolsets=[AmendsToolset.connect("http://127.0.0.1:7070/mcp")])
"""

from ._envelope import Envelope, ErrorEnvelope, RefusedEnvelope
from ._registry import Meaning
from .carried import Carried, by_conversation, carried, carry
from .errors import Unavailable
from .reading import envelope_of
from .signals import meaning_of, signal_for
from .toolset import AmendsToolset

__all__ = (
    "AmendsToolset",
    "Carried",
    "Envelope",
    "ErrorEnvelope",
    "Meaning",
    "RefusedEnvelope",
    "Unavailable",
    "by_conversation",
    "carried",
    "carry",
    "envelope_of",
    "meaning_of",
    "signal_for",
)
