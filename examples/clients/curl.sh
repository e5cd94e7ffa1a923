#!/usr/bin/env bash
# A chat through Weir with curl, and what the reply's headers say of it.
set -euo pipefail

base=${OPENAI_BASE_URL:-http://127.0.0.1:8642/v1}
key=${OPENAI_API_KEY:-none}
model=${MODEL:-auto}

curl --silent --show-error --fail-with-body --dump-header /dev/stderr "$base/chat/completions" \
  --header "Authorization: Bearer $key" \
  --header 'Content-Type: application/json' \
  --data @- <<JSON
{
  "model": "$model",
  "messages": [
    {"role": "user", "content": "Thank Marta Lindqvist (marta.lindqvist@fjord.example) for her letter."}
  ]
}
JSON
