-- decode_json(text) decodes JSON that JavaScript has written, and replaces each escaped surrogate with U+FFFD. JSON.stringify escapes no
-- other surrogates.
--
-- A JavaScript string may contain a lone surrogate, such as half of an emoji where an error message was cut off. JSON.stringify
-- writes a lone surrogate as an escape, which cjson refuses with an error. Redis keeps what a script has written before an error. A
-- task with such a message would therefore be lost if a script had already taken it out of the place where it waits.
local function decode_json(text)
  return cjson.decode((string.gsub(text, '\\u[dD][89a-fA-F]%x%x', '\\ufffd')))
end
