"""Streams a chat through Weir with the openai package (pip install openai).

Only the base URL differs from a program that calls the vendor directly; the
package also reads it, and the key, from OPENAI_BASE_URL and OPENAI_API_KEY.
"""

import os

import openai

client = openai.OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8642/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
)

try:
    raw = client.chat.completions.with_raw_response.create(
        model=os.environ.get("MODEL", "auto"),
        messages=[
            {
                "role": "user",
                "content": "Thank Marta Lindqvist (marta.lindqvist@fjord.example) for her letter.",
            }
        ],
        stream=True,
    )
except openai.APIStatusError as err:
    # A refusal is an error like any other: its message names label and rule.
    raise SystemExit(f"HTTP {err.status_code}, {err.code}: {err.message}") from err

for chunk in raw.parse():
    if chunk.choices and chunk.choices[0].delta.content:
        print(chunk.choices[0].delta.content, end="", flush=True)
print(f"\n-- {raw.headers['x-weir-placement']}, masked: {raw.headers.get('x-weir-masked')}")
