package gate

// protocolWord says that a text is a word of the protocol itself, which need
// not be examined. The list is closed: what is not on it is examined.
func protocolWord(s string) bool {
	if len(s) == 0 {
		return true
	}
	if len(s) > 24 {
		return false
	}
	switch s {
	case "model", "messages", "role", "content", "type", "text", "name", "stream", "stream_options",
		"include_usage", "temperature", "top_p", "n", "stop", "max_tokens", "max_completion_tokens",
		"presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "seed", "user",
		"tools", "tool_choice", "tool_calls", "tool_call_id", "function", "functions", "function_call",
		"arguments", "parameters", "properties", "required", "description", "enum", "items", "strict",
		"additionalProperties", "parallel_tool_calls", "response_format", "json_schema", "json_object",
		"schema", "metadata", "store", "reasoning_effort", "verbosity", "service_tier", "modalities",
		"prediction", "image_url", "url", "detail", "input_audio", "data", "format", "file", "file_id",
		"filename", "file_data", "refusal", "audio", "id", "cache_control", "ephemeral", "prompt_cache_key",
		"safety_identifier", "reasoning_content", "web_search_options",
		"system", "developer", "assistant", "tool", "auto", "none",
		"string", "object", "array", "integer", "number", "boolean", "null", "low", "medium", "high":
		return true
	}
	return false
}
